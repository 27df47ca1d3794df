//! Open orders of outside parties on the account: shown to people, never changed. No rule reads
//! them.

use std::collections::BTreeMap;

use windvane_model::ids::{InstrumentId, VenueOrderId};
use windvane_model::order::Surface;
use windvane_model::protocol::{OrderReport, OrderUpdate};
use windvane_model::truth::OpenOrder;

use super::Engine;

/// At most this many are kept, so that an outside party cannot fill the memory.
const ORDERS_MAX: usize = 1_000;

/// By instrument and the venue's order id.
pub(super) type External = BTreeMap<(InstrumentId, VenueOrderId), OpenOrder>;

impl Engine {
    /// Open orders of outside parties, as the venue last reported them.
    pub fn external_orders(&self) -> impl Iterator<Item = &OpenOrder> {
        self.external_orders.values()
    }

    /// Notes an event of an order that is not an own order.
    pub(super) fn note_external(&mut self, update: &OrderUpdate) {
        let key = (update.instrument, update.order_id);
        // An account trade does not contain the terms of its order; an event does.
        if self.live.is_none() || update.orig_qty.0 == 0 {
            return;
        }
        if update.status.is_final() {
            self.external_orders.remove(&key);
            return;
        }
        let order = OpenOrder {
            report: OrderReport {
                status: update.status,
                executed_qty: update.executed_qty,
                ..update.report()
            },
            terms: update.terms(),
        };
        if self.external_orders.len() < ORDERS_MAX || self.external_orders.contains_key(&key) {
            self.external_orders.insert(key, order);
        }
    }

    /// Takes the venue's list of all open orders of a surface, unless an event since the request
    /// makes it stale.
    pub(super) fn list_external(&mut self, surface: Surface, listed: Vec<OpenOrder>) {
        let line = self.line_mut(surface);
        if line.is_none_or(|line| line.events != line.round.events_when_asked) {
            return;
        }
        let instruments = &self.instruments;
        self.external_orders
            .retain(|(id, _), _| instruments[usize::from(id.0)].surface != surface);
        for order in listed {
            let key = (order.report.instrument, order.report.order_id);
            if self.external_orders.len() < ORDERS_MAX {
                self.external_orders.insert(key, order);
            }
        }
    }
}
