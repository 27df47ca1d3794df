//! Asks an exchange through the seam of the session: encoded, signed, judged and understood there. The
//! bytes are written here, one call after the other.
//!
//! The session's `Requests` tell an engine what became of a request; `check` tells people, with the
//! words of the call that failed.
//!
//! What may never enter here: what routes are called, and what answers say.

use windvane_client::clock::{Offset, Sample, estimate};
use windvane_client::{Client, NotDone, Refusal, RequestError, Wait, WaitReason};
use windvane_client_core::gateway::Answer;
use windvane_model::protocol::{Outcome, Reply};
use windvane_model::truth::{Subject, Truth};
use windvane_model::{Request, Surface};
use windvane_protocol::speak::{Asked, Heard, Note};
use windvane_session::{Exchange, Question, venue_surface};

use super::venue::PATIENCE;

/// An exchange, and the client that writes to it.
#[derive(Clone, Copy)]
pub(super) struct Asker<'a> {
    pub(super) client: &'a Client,
    pub(super) exchange: &'a dyn Exchange,
}

/// A request, as it was answered.
#[derive(Debug, Default)]
pub(super) struct Answered {
    pub(super) replies: Vec<Reply>,
    pub(super) notes: Vec<Note>,
    /// The first call, if it failed.
    pub(super) failed: Option<NotDone>,
    /// The first of the later calls that failed.
    pub(super) failed_later: Option<NotDone>,
}

impl Answered {
    /// What the exchange says, if the request was a question and is answered.
    pub(super) fn truth(&self) -> Option<&Truth> {
        // Other replies may come before and after the one that was asked for.
        self.replies.iter().find_map(|reply| match reply {
            Reply::Read {
                outcome: Outcome::Done(truth),
                ..
            } => Some(truth),
            _ => None,
        })
    }
}

impl<'a> Asker<'a> {
    pub(super) const fn new(client: &'a Client, exchange: &'a dyn Exchange) -> Self {
        Self { client, exchange }
    }

    /// Asks about the account. Nothing is answered where the exchange has no such question.
    pub(super) async fn read(self, subject: Subject) -> Answered {
        let request = Request::Read(subject);
        self.request(&request).await.unwrap_or_default()
    }

    /// Makes the calls of a request, each of which waits for its share of the budget; `None` if the
    /// request cannot be made.
    pub(super) async fn request(self, request: &Request) -> Option<Answered> {
        let calls = self.exchange.encode(request).ok()?;
        let patient = self.client.with_patience(PATIENCE);
        let patient = Asker::new(&patient, self.exchange);
        let mut outcomes = Vec::new();
        for call in &calls {
            outcomes.push(patient.call(call).await);
        }
        let heard = outcomes.iter().map(|outcome| match outcome {
            Ok(text) => Heard::Done(text),
            Err(NotDone::Refused(refusal)) => Heard::Refused {
                code: refusal.code(),
                msg: "",
            },
            Err(_) => Heard::Unknown,
        });
        let heard: Vec<_> = heard.collect();
        let said = self.exchange.reply(request, &heard);
        let mut outcomes = outcomes.into_iter();
        Some(Answered {
            replies: said.said,
            notes: said.notes,
            failed: outcomes.next().and_then(Result::err),
            failed_later: outcomes.find_map(Result::err),
        })
    }

    /// Makes one call, which waits for the budget as long as the client does. Answers the text.
    ///
    /// # Errors
    /// It was not carried out, or perhaps not.
    pub(super) async fn call(self, call: &Asked) -> Result<String, NotDone> {
        let (client, exchange) = (self.client, self.exchange);
        let cost = exchange.cost(call);
        let passed = client.pass(call.route, &cost).await;
        let departed = passed.map_err(NotDone::Wait)?;
        // Signed after waiting: a timestamp must be fresh.
        let unsigned = exchange.unsigned(client.now().local_us, call);
        let signed = exchange.sign(&unsigned);
        let signed = signed.unwrap_or_else(|| exchange.gateway().sign(&unsigned));
        let prepared =
            signed.map_err(|error| NotDone::Refused(RequestError::from(error).into()))?;
        let came = client.exchange(call.route.surface, prepared).await;
        let headers = came.as_ref().map(|raw| raw.texts()).unwrap_or_default();
        let answer = match &came {
            Ok(raw) => Ok(Answer {
                status: raw.status,
                headers: &headers,
                text: &raw.text,
            }),
            Err(failure) => Err(failure.clone()),
        };
        let judged = exchange.judge(client.now(), &unsigned, (&cost, departed), answer);
        judged.map(|()| came.map(|raw| raw.text).unwrap_or_default())
    }

    /// Makes the call of a question.
    ///
    /// # Errors
    /// It was not carried out, or the exchange has no such question.
    pub(super) async fn question(self, question: Question<'_>) -> Result<String, NotDone> {
        let Some(call) = self.exchange.ask(question) else {
            let error = RequestError::NoRoute(format!("{question:?}"));
            return Err(NotDone::Refused(error.into()));
        };
        self.call(&call).await
    }

    /// Reads the clock of a surface so many times. The shortest round trip counts from here on; the
    /// first one also pays for the connection.
    ///
    /// # Errors
    /// The clock was not read.
    pub(super) async fn clock(self, surface: Surface, samples: u8) -> Result<Offset, NotDone> {
        let mut taken = Vec::new();
        for _ in 0..samples {
            let sent_us = self.client.now().local_us;
            let text = self.question(Question::Clock(surface)).await?;
            let received_us = self.client.now().local_us;
            let shown = self.exchange.clock_ms(&text);
            let server_ms = shown.ok_or_else(|| unreadable("it tells no time", &text))?;
            taken.push(Sample {
                sent_us,
                received_us,
                server_ms,
            });
        }
        let offset = estimate(&taken).ok_or_else(|| {
            NotDone::Wait(Wait {
                why: WaitReason::NoConnection("the local clock was set back meanwhile".to_owned()),
                after: std::time::Duration::from_secs(1),
            })
        })?;
        let gateway = self.exchange.gateway();
        gateway.set_offset(venue_surface(surface), offset);
        Ok(offset)
    }
}

/// An answer that was given and is not understood.
pub(super) fn unreadable(error: &str, text: &str) -> NotDone {
    NotDone::Refused(Refusal::Unreadable {
        error: error.to_owned(),
        excerpt: text.chars().take(200).collect(),
    })
}

#[cfg(test)]
mod tests;
