//! A request of the engine whose calls are in progress, and their results so far.

use std::collections::BTreeSet;

use windvane_client_core::budget::Lane;
use windvane_client_core::outcome::NotDone;
use windvane_model::{ClientOrderId, Request, Time};
use windvane_protocol::adapter::{EncodedCall, Note};

/// A request of the engine, and the results of its calls so far.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) request: Request,
    pub(super) lane: Lane,
    pub(super) calls: Vec<EncodedCall>,
    pub(super) outcomes: Vec<CallOutcome>,
    pub(super) handed: Time,
    pub(super) since: Option<Time>,
    /// It waits for the order that it cancels, at most until this time.
    pub(super) follow_by: Option<Time>,
}

impl PendingRequest {
    /// Whether it is a cancel that waits for this order.
    pub(super) fn follows(&self, id: &ClientOrderId) -> bool {
        let is_of_order = matches!(&self.request,
            Request::Cancel { client_order_id, .. } if client_order_id == id);
        is_of_order && self.follow_by.is_some()
    }
}

/// The result of one call.
#[derive(Debug)]
pub(super) enum CallOutcome {
    Done(String),
    Not(NotDone),
    /// The call was not made: too little weight is left for calls that can wait.
    Postponed,
}

impl CallOutcome {
    /// Whether a later call may give a result.
    pub(super) const fn is_pending(&self) -> bool {
        matches!(
            self,
            Self::Postponed | Self::Not(NotDone::Unknown(_) | NotDone::Wait(_))
        )
    }
}

/// Orders on symbols that are not configured. Every list of open orders reports them again.
#[derive(Debug, Default)]
pub(super) struct Elsewhere(BTreeSet<ClientOrderId>);

impl Elsewhere {
    /// Whether a note is new. After a thousand such orders no note is new, to limit the memory.
    pub(super) fn is_news(&mut self, note: &Note) -> bool {
        const ORDERS_MAX: usize = 1_000;
        let Note::Elsewhere { order, .. } = note else {
            return true;
        };
        self.0.len() < ORDERS_MAX && self.0.insert(*order)
    }
}
