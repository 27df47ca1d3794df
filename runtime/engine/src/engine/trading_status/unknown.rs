//! Orders with an unknown outcome, for display: their strategy opens nothing more in their
//! instrument.

use windvane_model::order_state::OrderState;
use windvane_supervision::descriptions::{BlockDescription, UnknownOrders};

use super::super::Engine;

/// An order query is usually answered within this time: only longer cases are shown.
const SHOWN_MS: i64 = 2_000;

impl Engine {
    /// Orders whose outcome has been unknown for some time, by strategy and instrument.
    pub fn unknown_orders(&self) -> Vec<UnknownOrders> {
        let mut all: Vec<UnknownOrders> = Vec::new();
        let orders = self.orders.iter().filter(|_| self.live.is_some());
        for order in orders.filter(|order| order.state == OrderState::Unknown) {
            let since = order.lost.unwrap_or(order.submitted);
            if self.now <= since.plus_ms(SHOWN_MS) {
                continue;
            }
            let key = (order.strategy, order.instrument());
            let known = all.iter_mut();
            let mut known = known.filter(|one| (one.strategy, one.instrument) == key);
            if let Some(one) = known.next() {
                one.count += 1;
                one.since = one.since.min(since);
            } else {
                all.push(UnknownOrders {
                    strategy: key.0,
                    instrument: key.1,
                    count: 1,
                    since,
                });
            }
        }
        all
    }

    /// Describes such orders for people.
    pub fn describe_unknown_orders(&self, orders: &UnknownOrders) -> BlockDescription {
        let strategy = self.strategy_name(orders.strategy).unwrap_or_default();
        self.display_names()
            .describe_unknown_orders(orders, strategy)
    }
}
