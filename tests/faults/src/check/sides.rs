//! In hedge mode a strategy closes only its own part of a side: the rest of `LONG` or `SHORT`
//! belongs to another strategy or to a person. The rule judges market orders with the view of the
//! runtime when it sent them. If others closed a part in between, an order that was correct at its
//! intent is too large. That time is excluded.

use std::collections::BTreeMap;

use super::Check;
use super::wire::{self, Placed, RequestKind};
use crate::witness::{Entry, View, WitnessEvent};

/// An order is sent within this time after its intent, nanoseconds.
const ON_ITS_WAY_NS: i64 = 60_000_000_000;

/// The rule.
#[derive(Debug, Default)]
pub struct Sides {
    /// When outside orders last closed a part of a strategy's position.
    closed_outside: BTreeMap<String, i64>,
}

/// Whether a strategy holds as much of a side as an order closes.
fn is_held(view: &View, order: &Placed) -> bool {
    let mut strategies = view.strategies.iter();
    let own = strategies.find(|one| one.id == wire::strategy(&order.id));
    let book = order.book();
    let held = own.and_then(|own| {
        let mut positions = own.positions.iter();
        positions.find(|held| wire::book(&held.instrument, &held.position_side) == book)
    });
    let qty = held
        .map(|held| wire::decimal(&held.qty))
        .unwrap_or_default();
    order.qty <= if order.buys { -qty } else { qty }
}

impl Check for Sides {
    fn rule(&self) -> &'static str {
        "a strategy closes only what it holds of a side"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::ClosedOutside { strategy, .. } => {
                self.closed_outside.insert(strategy.clone(), entry.at_ns);
            }
            WitnessEvent::Market { what, view, .. } => {
                let RequestKind::Place(orders) = wire::request_kind(what) else {
                    return Ok(());
                };
                let closing = orders
                    .iter()
                    .filter(|order| wire::closes_side(order.buys, &order.position_side));
                for order in closing.filter(|order| !is_held(view, order)) {
                    let closed = self.closed_outside.get(wire::strategy(&order.id));
                    if closed.is_none_or(|at| entry.at_ns - at > ON_ITS_WAY_NS) {
                        return Err(format!(
                            "{} closes {} of {}, which its strategy does not hold",
                            order.id,
                            order.qty,
                            order.book()
                        ));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::check::log::{Log, verdict};
    use crate::witness::{PositionView, StrategyView};

    /// The strategy holds this quantity of a side in the runtime's view.
    fn view(position_side: &str, qty: &str) -> View {
        let held = PositionView {
            dust: String::new(),
            instrument: "futures:BTCUSDT".to_owned(),
            position_side: position_side.to_owned(),
            qty: qty.to_owned(),
            cost: "0".to_owned(),
        };
        View {
            strategies: vec![StrategyView {
                id: "mm".to_owned(),
                positions: vec![held],
                ..StrategyView::default()
            }],
            ..View::default()
        }
    }

    /// Judges a market order of 1.
    fn judged(log: Log, side: &str, position_side: &str, view: View) -> Result<(), String> {
        let truth = (Value::Null, Value::Null);
        let log = log.market_of("mm.a.1", (side, position_side), view, truth);
        verdict(Sides::default(), &log)
    }

    #[test]
    fn a_close_of_another_strategys_position_is_found() {
        for (side, position_side, enough, too_little) in
            [("SELL", "LONG", "1", "0.9"), ("BUY", "SHORT", "-1", "-0.9")]
        {
            let of = |qty| judged(Log::new(), side, position_side, view(position_side, qty));
            assert_eq!(of(enough), Ok(()));
            assert!(of(too_little).is_err(), "{position_side}");
            assert!(of("0").is_err(), "{position_side}");
            let other = if position_side == "LONG" {
                "SHORT"
            } else {
                "LONG"
            };
            let held = view(other, enough);
            assert!(judged(Log::new(), side, position_side, held).is_err());
        }
    }

    #[test]
    fn opening_orders_need_no_position() {
        for (side, position_side) in [("BUY", "LONG"), ("SELL", "SHORT"), ("SELL", "BOTH")] {
            let held = view(position_side, "0");
            assert_eq!(judged(Log::new(), side, position_side, held), Ok(()));
        }
    }

    #[test]
    fn a_recent_outside_close_excuses_an_order() {
        let closed = Log::new().closed_outside("mm", "1");
        let held = || view("LONG", "0");
        let soon = closed.clone().later_ms(1_000);
        assert_eq!(judged(soon, "SELL", "LONG", held()), Ok(()));
        assert!(judged(closed.later_ms(61_000), "SELL", "LONG", held()).is_err());
    }
}
