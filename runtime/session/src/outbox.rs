//! Requests that wait until the record of their intent is durable.

use std::collections::VecDeque;

use windvane_model::{ClientOrderId, Request, planted};

/// Outgoing requests, in the order of the engine's effects.
///
/// A request that adds no exposure passes at once and does not wait for the disk. But a cancel
/// never overtakes its order.
#[derive(Debug, Default)]
pub struct Outbox {
    durable: u64,
    waiting: VecDeque<(u64, Request)>,
}

impl Outbox {
    /// Queues a request, or returns it if it may leave at once.
    pub fn push(&mut self, record: u64, request: Request) -> Option<Request> {
        let must_follow = self
            .waiting
            .iter()
            .any(|(_, first)| follows(&request, first));
        let is_durable = record <= self.durable || planted!(PlaceBeforeDurable);
        let must_follow = must_follow && !planted!(CancelOvertakes);
        if is_durable && !must_follow {
            return Some(request);
        }
        self.waiting.push_back((record, request));
        None
    }

    /// Records up to this sequence are durable. Returns the requests that may leave now, in order.
    pub fn release(&mut self, durable: u64) -> Vec<Request> {
        self.durable = self.durable.max(durable);
        let mut kept = VecDeque::new();
        let mut released = Vec::new();
        for (record, request) in self.waiting.drain(..) {
            let must_follow = kept.iter().any(|(_, first)| follows(&request, first));
            if record <= self.durable && !must_follow {
                released.push(request);
            } else {
                kept.push_back((record, request));
            }
        }
        self.waiting = kept;
        released
    }

    /// Whether an order with this id waits here, so that the venue cannot have it yet.
    pub fn holds(&self, id: &ClientOrderId) -> bool {
        self.waiting.iter().any(
            |(_, request)| matches!(request, Request::Place(order) if order.client_order_id == *id),
        )
    }

    /// Number of waiting requests.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// The order that a cancel or a query is about.
pub(crate) const fn about(request: &Request) -> Option<&ClientOrderId> {
    match request {
        Request::Cancel {
            client_order_id, ..
        }
        | Request::Query {
            client_order_id, ..
        } => Some(client_order_id),
        _ => None,
    }
}

/// Whether a request is about the order that `first` places.
fn follows(request: &Request, first: &Request) -> bool {
    let Request::Place(order) = first else {
        return false;
    };
    about(request) == Some(&order.client_order_id)
}
