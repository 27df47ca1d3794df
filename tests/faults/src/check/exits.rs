//! A market order that closes must not open anything. It closes if it is for no more than its
//! strategy holds, and no more than the account holds, in the runtime's view. Somebody else may
//! have closed the position a moment before. Then the venue must refuse the order, or execute no
//! more than what is left.

use rust_decimal::Decimal;
use serde_json::Value;

use super::Check;
use super::wire::{self, Placed, RequestKind};
use crate::witness::{Entry, PositionView, View, WitnessEvent};

/// The rule.
#[derive(Debug)]
pub struct Exits;

fn position(truth: &Value, book: &str) -> Decimal {
    let list = truth
        .pointer("/accounts/0/positions")
        .and_then(Value::as_array);
    let of = |one: &&Value| wire::book_of(one) == book;
    let positions = list.into_iter().flatten().filter(of);
    positions.filter_map(|one| wire::number(one, "qty")).sum()
}

fn held(positions: &[PositionView], book: &str) -> Decimal {
    let of = |held: &&PositionView| wire::book(&held.instrument, &held.position_side) == book;
    let positions = positions.iter().filter(of);
    positions.map(|held| wire::decimal(&held.qty)).sum()
}

/// Whether an order only reduces this position.
fn takes_away(position: Decimal, order: &Placed) -> bool {
    let left = if order.buys { -position } else { position };
    left >= order.qty
}

/// Whether in the runtime's view the order closes a position, and no other order closes that
/// position too.
fn closes(view: &View, order: &Placed) -> bool {
    let strategy = wire::strategy(&order.id);
    let mut strategies = view.strategies.iter();
    let own = strategies.find(|one| one.id == strategy);
    let side = if order.buys { "BUY" } else { "SELL" };
    let book = order.book();
    let alongside = view.orders.iter().any(|other| {
        other.client_order_id != order.id
            && wire::book(&other.instrument, &other.position_side) == book
            && other.side == side
    });
    own.is_some_and(|own| takes_away(held(&own.positions, &book), order))
        && takes_away(held(&view.positions, &book), order)
        && !alongside
}

impl Check for Exits {
    fn rule(&self) -> &'static str {
        "an order that closes opens nothing"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let WitnessEvent::Market {
            what,
            view,
            before,
            after,
        } = &entry.seen
        else {
            return Ok(());
        };
        let RequestKind::Place(orders) = wire::request_kind(what) else {
            return Ok(());
        };
        for order in orders.iter().filter(|order| closes(view, order)) {
            let book = order.book();
            let (was, is) = (position(before, &book), position(after, &book));
            let opens = if order.buys {
                is > was.max(Decimal::ZERO)
            } else {
                is < was.min(Decimal::ZERO)
            };
            if opens {
                return Err(format!(
                    "{} closes {} of {book}, but changes the position from {was} to {is}",
                    order.id, order.qty
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::log::{Log, verdict};
    use crate::witness::{OrderView, StrategyView};

    fn holding(qty: &str) -> Vec<PositionView> {
        vec![PositionView {
            dust: String::new(),
            instrument: "futures:BTCUSDT".to_owned(),
            position_side: "BOTH".to_owned(),
            qty: qty.to_owned(),
            cost: "0".to_owned(),
        }]
    }

    /// The strategy and the account hold this in the runtime's view.
    fn view(own: &str, account: &str) -> View {
        View {
            positions: holding(account),
            strategies: vec![StrategyView {
                id: "mm".to_owned(),
                positions: holding(own),
                ..StrategyView::default()
            }],
            ..View::default()
        }
    }

    fn truth(qty: &str) -> Value {
        json!({"accounts": [{"positions": [{"symbol": "BTCUSDT", "qty": qty}]}]})
    }

    /// Judges a sale of 1 at the market.
    fn judged(view: View, before: &str, after: &str) -> Result<(), String> {
        let log = Log::new().market("mm.a.1", "SELL", view, (truth(before), truth(after)));
        verdict(Exits, &log)
    }

    #[test]
    fn a_close_that_opens_the_other_side_is_found() {
        assert_eq!(judged(view("1", "1"), "1", "0"), Ok(()));
        assert!(
            judged(view("1", "1"), "0", "-1").is_err(),
            "others closed the position"
        );
        assert!(judged(view("1", "1"), "0.4", "-0.6").is_err());
        assert_eq!(
            judged(view("1", "1"), "0", "0"),
            Ok(()),
            "the venue refused the order"
        );
    }

    #[test]
    fn a_hedge_mode_close_is_judged_by_its_side() {
        for (side, buys, qty, over) in [("LONG", "SELL", "1", "-1"), ("SHORT", "BUY", "-1", "1")] {
            let sided = |of: &str, own: &str| {
                let mut view = view(own, own);
                let own = &mut view.strategies[0].positions[0];
                own.position_side = of.to_owned();
                view.positions[0].position_side = of.to_owned();
                view
            };
            let truth = |qty: &str| {
                json!({"accounts": [{"positions": [
                    {"symbol": "BTCUSDT", "position_side": side, "qty": qty},
                ]}]})
            };
            let judged = |view: View, after: &str| {
                let truths = (truth("0"), truth(after));
                let log = Log::new().market_of("mm.a.1", (buys, side), view, truths);
                verdict(Exits, &log)
            };
            assert!(judged(sided(side, qty), over).is_err(), "{side}");
            assert_eq!(judged(sided(side, qty), "0"), Ok(()), "{side}");
            let other = if side == "LONG" { "SHORT" } else { "LONG" };
            assert_eq!(
                judged(sided(other, qty), over),
                Ok(()),
                "the strategy does not hold {side}"
            );
        }
    }

    #[test]
    fn an_opening_order_is_accepted() {
        assert_eq!(judged(view("0", "0"), "0", "-1"), Ok(()));
        assert_eq!(
            judged(view("0.5", "1"), "0.5", "-0.5"),
            Ok(()),
            "the strategy flips its position"
        );
        let nets = view("1", "0");
        assert_eq!(judged(nets, "0", "-1"), Ok(()), "another strategy is short");
        let mut alongside = view("1", "1");
        alongside.orders.push(OrderView {
            instrument: "futures:BTCUSDT".to_owned(),
            client_order_id: "mm.a.0".to_owned(),
            side: "SELL".to_owned(),
            ..OrderView::default()
        });
        assert_eq!(judged(alongside, "0", "-1"), Ok(()));
    }
}
