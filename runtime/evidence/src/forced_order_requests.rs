//! Requests for the venue's forced orders. An account snapshot or the list of the account's trades
//! showed that an outside party closed a position, and no event reported whether it was the venue.
//! A person may have closed it by hand, and the configured reaction is only for forced closes.
//!
//! If a request is not answered, the engine sends one more before the close counts as one by an
//! outside party.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::names::Names;
use windvane_model::protocol::Outcome;
use windvane_model::state_report::{OpenOrder, StateReport};

use crate::connection::OF_ANY_ROUTE;
use crate::lag::READ_LAG_MS;

/// Time after a failed request, time from the first request to the second, and the largest number
/// of requests.
const ASK_AGAIN_MS: i64 = 10_000;

const ASK_SECOND_MS: i64 = 4_000;

const TRIES: u32 = 10;

/// After this many requests without a response, the close counts as one by an outside party.
const AWAITED: u32 = 2;

/// Pending requests for forced orders, by instrument.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ForcedOrderRequests(BTreeMap<InstrumentId, PendingQuery>);

/// A pending request for the forced orders of an instrument.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PendingQuery {
    /// Orders before this time, by the venue's clock, explain nothing.
    since: Time,
    sent: Time,
    waits: bool,
    tries: u32,
}

impl PendingQuery {
    /// The request as a new process continues it: no response to the request of the old process can
    /// come.
    #[must_use]
    const fn without_answer(&self) -> Self {
        Self {
            waits: false,
            ..*self
        }
    }

    fn is_overdue(&self, now: Time) -> bool {
        let is_first = self.waits && self.tries < AWAITED;
        let wait_ms = if is_first {
            ASK_SECOND_MS
        } else {
            ASK_AGAIN_MS
        };
        now > self.sent.plus_ms(wait_ms)
    }
}

/// The meaning of a response about forced orders.
#[derive(Clone, Copy, Debug)]
pub enum ForcedOrdersResponse<'a> {
    /// No request was sent, or the response shows nothing yet.
    Nothing,
    /// The venue does not list forced orders at all.
    NotListed,
    /// The listed orders; those before this time explain nothing.
    Listed(&'a [OpenOrder], Time),
}

impl ForcedOrderRequests {
    /// Plans a request for the forced orders of an instrument since the last reconciliation round
    /// that left nothing unexplained.
    pub fn plan(&mut self, id: InstrumentId, since: Option<Time>) {
        let query = PendingQuery {
            // The snapshot of that round may have shown an older state of the account.
            since: since.unwrap_or_default().plus_ms(-READ_LAG_MS),
            sent: Time::default(),
            waits: false,
            tries: 0,
        };
        self.0.entry(id).or_insert(query);
    }

    /// Instruments whose requests are sent again.
    pub fn overdue(&mut self, now: Time) -> Vec<InstrumentId> {
        let mut overdue = Vec::new();
        for (id, query) in &mut self.0 {
            if query.is_overdue(now) {
                query.waits = false;
                overdue.push(*id);
            }
        }
        overdue
    }

    /// Notes the next request about an instrument. Returns whether there is one.
    pub fn ask(&mut self, instrument: InstrumentId, now: Time) -> bool {
        let Some(query) = self.0.get_mut(&instrument) else {
            return false;
        };
        if query.waits {
            return false;
        }
        if query.tries >= TRIES {
            self.0.remove(&instrument);
            return false;
        }
        query.tries += 1;
        query.waits = true;
        query.sent = now;
        true
    }

    /// Whether a response is still expected about forced orders of an instrument. A failed request
    /// is repeated once before the close counts as one by an outside party.
    pub fn awaits_answer(&self, id: InstrumentId) -> bool {
        let query = self.0.get(&id);
        query.is_some_and(|query| query.waits && query.tries <= AWAITED)
    }

    /// Takes a response about forced orders.
    pub fn take_answer<'a>(
        &mut self,
        id: InstrumentId,
        outcome: &'a Outcome<StateReport>,
    ) -> ForcedOrdersResponse<'a> {
        let Some(query) = self.0.get_mut(&id) else {
            return ForcedOrdersResponse::Nothing;
        };
        match outcome {
            Outcome::Done(StateReport::ForcedOrders(listed)) => {
                query.waits = false;
                ForcedOrdersResponse::Listed(listed, query.since)
            }
            Outcome::Refused(refusal) if !OF_ANY_ROUTE.contains(&refusal.code) => {
                self.0.remove(&id);
                ForcedOrdersResponse::NotListed
            }
            // Nothing is known yet: the engine keeps waiting and asks again.
            _ => ForcedOrdersResponse::Nothing,
        }
    }

    /// No request about an instrument is needed any more.
    pub fn end(&mut self, id: InstrumentId) {
        self.0.remove(&id);
    }

    /// Takes over the requests of an earlier process.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        for (id, query) in &old.0 {
            if let Some(id) = names.instruments.get(id) {
                self.0.insert(*id, query.without_answer());
            }
        }
    }
}
