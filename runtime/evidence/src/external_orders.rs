//! Open orders of outside parties on the account: shown to people, never changed. No rule reads
//! them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::ids::{InstrumentId, VenueOrderId};
use windvane_model::instrument::Instrument;
use windvane_model::order::Surface;
use windvane_model::protocol::{OrderReport, OrderUpdate};
use windvane_model::state_report::OpenOrder;

/// At most this many are kept, so that an outside party cannot fill the memory.
const ORDERS_MAX: usize = 1_000;

/// By instrument and the venue's order id.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ExternalOrders(BTreeMap<(InstrumentId, VenueOrderId), OpenOrder>);

impl ExternalOrders {
    /// Open orders of outside parties, as the venue last reported them.
    pub fn iter(&self) -> impl Iterator<Item = &OpenOrder> {
        self.0.values()
    }

    /// Notes an event of an order that is not an own order.
    pub fn note(&mut self, update: &OrderUpdate) {
        let key = (update.instrument, update.order_id);
        // An entry in the list of the account's trades does not contain the parameters of its
        // order; an event does.
        if update.orig_qty.0 == 0 {
            return;
        }
        if update.status.is_final() {
            self.0.remove(&key);
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
        if self.0.len() < ORDERS_MAX || self.0.contains_key(&key) {
            self.0.insert(key, order);
        }
    }

    /// Takes the venue's list of all open orders of a surface.
    pub fn list(&mut self, surface: Surface, listed: Vec<OpenOrder>, instruments: &[Instrument]) {
        self.0
            .retain(|(id, _), _| instruments[usize::from(id.0)].surface != surface);
        for order in listed {
            let key = (order.report.instrument, order.report.order_id);
            if self.0.len() < ORDERS_MAX {
                self.0.insert(key, order);
            }
        }
    }

    /// Takes all of them.
    pub fn take_all(&mut self) -> Vec<OpenOrder> {
        std::mem::take(&mut self.0).into_values().collect()
    }

    /// Puts one back.
    pub fn insert(&mut self, order: OpenOrder) {
        let key = (order.report.instrument, order.report.order_id);
        self.0.insert(key, order);
    }
}
