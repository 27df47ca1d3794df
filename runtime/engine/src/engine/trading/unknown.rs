//! Orders with an unknown outcome, for display: their strategy opens nothing more in their
//! instrument.

use windvane_model::ids::{InstrumentId, StrategyId, Time};
use windvane_model::instrument::Instrument;
use windvane_model::order_state::OrderState;

use super::super::Engine;
use super::BlockWords;

/// An order query is usually answered within this time: only longer cases are shown.
const SHOWN_MS: i64 = 2_000;

/// Orders of a strategy in an instrument whose outcome has been unknown for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownOrders {
    /// The strategy.
    pub strategy: StrategyId,
    /// The instrument.
    pub instrument: InstrumentId,
    /// Number of such orders.
    pub count: u64,
    /// Since when the outcome of the first of them is unknown.
    pub since: Time,
}

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
    pub fn unknown_order_words(&self, orders: &UnknownOrders) -> BlockWords {
        let strategy = self.strategy_name(orders.strategy).unwrap_or_default();
        let instrument = self.instrument(orders.instrument).map(Instrument::name);
        let instrument = instrument.unwrap_or_default();
        let orders = match orders.count {
            1 => "1 order is".to_owned(),
            many => format!("{many} orders are"),
        };
        BlockWords {
            what: format!("strategy {strategy} in {instrument}"),
            reason: format!(
                "the outcome of {orders} not known: the venue gave no answer, or it may have cancelled resting orders"
            ),
            what_to_do: "the engine queries each order every second, and the strategy opens nothing more in \
                         the instrument until the venue answers; closes and cancels pass"
                .to_owned(),
        }
    }
}
