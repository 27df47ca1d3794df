//! Queries an exchange for the checks. The session's exchange encodes, signs, judges and decodes;
//! this file sends the requests, one after the other.
//!
//! The session's `Requests` report the result of a request to an engine. The checks need the text
//! of the failed request for people instead.
//!
//! This file does not choose routes and does not interpret responses.

use std::time::Duration;

use windvane_client::clock::{Offset, Sample, estimate};
use windvane_client::{Client, NotDone, Refusal, RequestError, Wait, WaitReason};
use windvane_client_core::gateway::Answer;
use windvane_model::protocol::{Outcome, Reply};
use windvane_model::state_report::{StateReport, Subject};
use windvane_model::{Request, Surface};
use windvane_protocol::adapter::{CallResult, EncodedCall, Note};
use windvane_session::{Exchange, Query, venue_surface};

/// The maximum time for a single response.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// An exchange, and the client that sends its requests.
#[derive(Clone, Copy)]
pub(super) struct QueryClient<'a> {
    pub(super) client: &'a Client,
    pub(super) exchange: &'a dyn Exchange,
}

/// The results of a request.
#[derive(Debug, Default)]
pub(super) struct QueryResult {
    pub(super) replies: Vec<Reply>,
    pub(super) notes: Vec<Note>,
    /// The error of the first call, if it failed.
    pub(super) failed: Option<NotDone>,
    /// The error of the first later call that failed.
    pub(super) failed_later: Option<NotDone>,
}

impl QueryResult {
    /// The data that a read returned, if it succeeded.
    pub(super) fn state_report(&self) -> Option<&StateReport> {
        // Other replies may come before and after the requested one.
        self.replies.iter().find_map(|reply| match reply {
            Reply::Read {
                outcome: Outcome::Done(state_report),
                ..
            } => Some(state_report),
            _ => None,
        })
    }
}

impl<'a> QueryClient<'a> {
    pub(super) const fn new(client: &'a Client, exchange: &'a dyn Exchange) -> Self {
        Self { client, exchange }
    }

    /// Reads a part of the account. The result is empty if the exchange has no such query.
    pub(super) async fn read(self, subject: Subject) -> QueryResult {
        let request = Request::Read(subject);
        self.request(&request).await.unwrap_or_default()
    }

    /// Performs the calls of a request. Each waits for its share of the budget. `None` if the
    /// request cannot be encoded.
    pub(super) async fn request(self, request: &Request) -> Option<QueryResult> {
        let calls = self.exchange.encode_request(request).ok()?;
        let patient = self.client.with_patience(PATIENCE);
        let patient = QueryClient::new(&patient, self.exchange);
        let mut outcomes = Vec::new();
        for call in &calls {
            outcomes.push(patient.call(call).await);
        }
        let results = outcomes.iter().map(|outcome| match outcome {
            Ok(text) => CallResult::Done(text),
            Err(NotDone::Refused(refusal)) => CallResult::Refused {
                code: refusal.code(),
                msg: "",
            },
            Err(_) => CallResult::Unknown,
        });
        let results: Vec<_> = results.collect();
        let decoded = self.exchange.decode_reply(request, &results);
        let mut outcomes = outcomes.into_iter();
        Some(QueryResult {
            replies: decoded.items,
            notes: decoded.notes,
            failed: outcomes.next().and_then(Result::err),
            failed_later: outcomes.find_map(Result::err),
        })
    }

    /// Performs one call and returns the text of the response. It waits for the budget as long as
    /// the client allows.
    ///
    /// # Errors
    /// The request was not carried out, or its result is unknown.
    pub(super) async fn call(self, call: &EncodedCall) -> Result<String, NotDone> {
        let (client, exchange) = (self.client, self.exchange);
        let cost = exchange.cost(call);
        let passed = client.pass(call.route, &cost).await;
        let departed = passed.map_err(NotDone::Wait)?;
        // Signed only after the wait, because a timestamp must be fresh.
        let unsigned = exchange.unsigned(client.now().local_us, call);
        let signed = exchange.sign(&unsigned);
        let signed = signed.unwrap_or_else(|| exchange.gateway().sign(&unsigned));
        let prepared =
            signed.map_err(|error| NotDone::Refused(RequestError::from(error).into()))?;
        let received = client.exchange(call.route.surface, prepared).await;
        let headers = received.as_ref().map(|raw| raw.texts()).unwrap_or_default();
        let answer = match &received {
            Ok(raw) => Ok(Answer {
                status: raw.status,
                headers: &headers,
                text: &raw.text,
            }),
            Err(failure) => Err(failure.clone()),
        };
        let judged = exchange.judge(client.now(), &unsigned, (&cost, departed), answer);
        judged.map(|()| received.map(|raw| raw.text).unwrap_or_default())
    }

    /// Performs the call of a query.
    ///
    /// # Errors
    /// The query failed, or the exchange has no such query.
    pub(super) async fn query(self, query: Query<'_>) -> Result<String, NotDone> {
        let Some(call) = self.exchange.encode_query(query) else {
            let error = RequestError::NoRoute(format!("{query:?}"));
            return Err(NotDone::Refused(error.into()));
        };
        self.call(&call).await
    }

    /// Reads the clock of a surface `samples` times. The shortest round trip counts from now on;
    /// the first one also includes the time to connect.
    ///
    /// # Errors
    /// The clock could not be read.
    pub(super) async fn clock(self, surface: Surface, samples: u8) -> Result<Offset, NotDone> {
        let mut readings = Vec::new();
        for _ in 0..samples {
            let sent_us = self.client.now().local_us;
            let text = self.query(Query::Clock(surface)).await?;
            let received_us = self.client.now().local_us;
            let shown = self.exchange.clock_ms(&text);
            let server_ms = shown.ok_or_else(|| unreadable("it contains no time", &text))?;
            readings.push(Sample {
                sent_us,
                received_us,
                server_ms,
            });
        }
        let offset = estimate(&readings).ok_or_else(|| {
            NotDone::Wait(Wait {
                why: WaitReason::NoConnection("the local clock was set back meanwhile".to_owned()),
                after: Duration::from_secs(1),
            })
        })?;
        let gateway = self.exchange.gateway();
        gateway.set_offset(venue_surface(surface), offset);
        Ok(offset)
    }
}

/// The error for a response that cannot be decoded.
pub(super) fn unreadable(error: &str, text: &str) -> NotDone {
    NotDone::Refused(Refusal::Unreadable {
        error: error.to_owned(),
        excerpt: text.chars().take(200).collect(),
    })
}

#[cfg(test)]
mod tests;
