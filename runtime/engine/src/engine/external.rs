//! Open orders of others on the account: shown to people, never touched. No rule reads them.

use std::collections::BTreeMap;

use crate::ids::{InstrumentId, VenueOrderId};
use crate::order::Surface;
use crate::protocol::{OrderReport, OrderUpdate};
use crate::truth::OpenOrder;

use super::Engine;

/// So many are known at most: whoever places more does not fill our memory.
const ORDERS_MAX: usize = 1_000;

/// By instrument and the venue's id.
pub(super) type External = BTreeMap<(InstrumentId, VenueOrderId), OpenOrder>;

impl Engine {
    /// Open orders of others on the account, as the venue told of them last.
    pub fn external_orders(&self) -> impl Iterator<Item = &OpenOrder> {
        self.external_orders.values()
    }

    /// Takes note of an order event that is not of ours.
    pub(super) fn note_external(&mut self, update: &OrderUpdate) {
        let key = (update.instrument, update.order_id);
        // An account trade says nothing of its order; an event does.
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

    /// Takes the venue's list of all that rest on a surface, unless an event since the question
    /// makes it an old one.
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
