//! How `check` asks the exchange: through the seam of the session, call by call. A run asks by the session's
//! requests, which also plan for orders.

use windvane_client::budget::Lane;
use windvane_client::{Client, NotDone};
use windvane_client_core::gateway::{Answer, Failure};
use windvane_client_core::outcome::Refusal;
use windvane_engine::protocol::{Outcome, Reply};
use windvane_engine::truth::{Subject, Truth};
use windvane_engine::{InstrumentId, Request, Surface};
use windvane_session::Exchange;
use windvane_venue::speak::{Asked, FuturesAccount, Heard, Note};

use super::venue::PATIENCE;

/// An exchange that can be asked, and where its futures account is read.
pub(super) struct Asking<'a> {
    pub exchange: &'a dyn Exchange,
    pub client: &'a Client,
    pub futures_account: FuturesAccount,
}

/// One question, as it was answered.
pub(super) struct Answered {
    pub truth: Option<Truth>,
    pub notes: Vec<Note>,
    pub texts: Vec<String>,
    /// The first call, if it failed.
    pub failed: Option<NotDone>,
    /// The first of the later calls that failed.
    pub failed_later: Option<NotDone>,
}

impl Asking<'_> {
    /// Asks for something of the account.
    pub(super) async fn read(&self, subject: Subject) -> Answered {
        let request = Request::Read(subject);
        let mut answered = Answered {
            truth: None,
            notes: Vec::new(),
            texts: Vec::new(),
            failed: None,
            failed_later: None,
        };
        let Ok(calls) = self.exchange.encode(&request) else {
            return answered;
        };
        let mut outcomes = Vec::new();
        for call in &calls {
            outcomes.push(self.call(call).await);
        }
        let heard = outcomes.iter().map(|outcome| match outcome {
            Ok(text) => Heard::Done(text),
            Err(NotDone::Refused(refusal)) => Heard::Refused {
                code: refusal.code(),
                msg: "",
            },
            Err(_) => Heard::Unknown,
        });
        let said = self.exchange.reply(&request, &heard.collect::<Vec<_>>());
        answered.notes = said.notes;
        // Other replies may come before the one that was asked for.
        answered.truth = said.said.into_iter().find_map(|reply| match reply {
            Reply::Read {
                outcome: Outcome::Done(truth),
                ..
            } => Some(truth),
            _ => None,
        });
        for (at, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                Ok(text) => answered.texts.push(text),
                Err(why) => {
                    let failed = match at {
                        0 => &mut answered.failed,
                        _ => &mut answered.failed_later,
                    };
                    failed.get_or_insert(why);
                }
            }
        }
        answered
    }

    /// Makes one call, which waits a while for its share of the budget.
    ///
    /// # Errors
    /// It was not carried out, or perhaps not.
    pub(super) async fn call(&self, call: &Asked) -> Result<String, NotDone> {
        let cost = self.exchange.cost(call);
        let surface = call.route.surface;
        let client = self.client.with_patience(PATIENCE);
        let passed = client.pass((surface, Lane::of(call.route)), &cost).await;
        let departed = passed.map_err(NotDone::Wait)?;
        // Signed after waiting: a timestamp must be fresh.
        let unsigned = self.exchange.unsigned(client.now().local_us, call);
        let not_made = |failure| NotDone::Refused(Refusal::NotMade(failure));
        let prepared = match self.exchange.sign(&unsigned) {
            Some(prepared) => prepared.map_err(|error| not_made(error.into()))?,
            // The exchange of `check` signs by itself.
            None => client
                .gateway()
                .sign(&unsigned)
                .map_err(|error| not_made(error.into()))?,
        };
        let raw = client.exchange(surface, prepared).await;
        let headers = raw.as_ref().map(|raw| raw.texts()).unwrap_or_default();
        let answer: Result<_, Failure> = raw.as_ref().map_err(Clone::clone).map(|raw| Answer {
            status: raw.status,
            headers: &headers,
            text: &raw.text,
        });
        let sent = (&cost, departed);
        self.exchange.judge(client.now(), &unsigned, sent, answer)?;
        Ok(raw.map(|raw| raw.text).unwrap_or_default())
    }

    /// The instruments of a surface.
    pub(super) fn instruments(&self, surface: Surface) -> impl Iterator<Item = InstrumentId> {
        let ids = (0..=u16::MAX).map(InstrumentId);
        let names = self.exchange.names();
        let known = ids.map_while(|id| Some((id, names.rules(id)?.surface)));
        known.filter_map(move |(id, of)| (of == surface).then_some(id))
    }
}
