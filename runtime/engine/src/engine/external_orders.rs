//! Open orders of outside parties on the account, which are shown to people and never changed.

use windvane_model::order::Surface;
use windvane_model::protocol::OrderUpdate;
use windvane_model::state_report::OpenOrder;

use super::Engine;

impl Engine {
    /// Open orders of outside parties, as the venue last reported them.
    pub fn external_orders(&self) -> impl Iterator<Item = &OpenOrder> {
        self.external_orders.iter()
    }

    /// Notes an event of an order that is not an own order.
    pub(super) fn note_external_order(&mut self, update: &OrderUpdate) {
        if self.live.is_some() {
            self.external_orders.note(update);
        }
    }

    /// Takes the venue's list of all open orders of a surface, unless an event since the request
    /// makes it stale.
    pub(super) fn list_external_orders(&mut self, surface: Surface, listed: Vec<OpenOrder>) {
        let connection = self.connection_mut(surface);
        if connection
            .is_none_or(|connection| connection.events != connection.round.events_when_asked)
        {
            return;
        }
        self.external_orders
            .list(surface, listed, &self.instruments);
    }
}
