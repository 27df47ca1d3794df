//! Opposite positions of strategies that are all being closed. The engine settles them against each
//! other at the mark price, without an order. The account's position does not change, so nothing is
//! paid and nothing can fail at the venue. Only the account's net position is closed at the market.
//!
//! A strategy whose orders are still being cancelled is not ready for settlement. Until it is
//! ready, the opposing part of a position is not closed: the account has no exposure from it.
//!
//! Own positions are settled first. Positions of outside parties count after that, against the own
//! net position: otherwise a close would take a part of theirs.

use windvane_evidence::PositionKey;
use windvane_evidence::position::closing_side;
use windvane_model::effect::{Adjustment, Cause};
use windvane_model::ids::StrategyId;
use windvane_model::ledger::value;
use windvane_model::order::{OrderType, Side};

use super::Engine;

const fn opposite(side: Side) -> Side {
    match side {
        Side::Sell => Side::Buy,
        Side::Buy => Side::Sell,
    }
}

impl Engine {
    /// Other strategies whose positions are being closed.
    fn others_flattening(&self, strategy: StrategyId) -> impl Iterator<Item = StrategyId> {
        let all = (0..self.strategies.len()).map(|index| StrategyId(index as u16));
        all.filter(move |other| *other != strategy && self.is_flattening(*other))
    }

    /// The quantity of a strategy's position that orders of this side would close, whatever outside
    /// parties hold.
    fn opposing_qty(
        &self,
        strategy: StrategyId,
        (id, position_side): PositionKey,
        closing: Side,
    ) -> i64 {
        let ledger = &self.ledgers.strategies[usize::from(strategy.0)];
        (-closing.sign() * ledger.at(id, position_side).position.qty).max(0)
    }

    /// Settles the positions of a strategy that is being closed against opposite positions of other
    /// strategies that are being closed.
    pub(super) fn settle_opposite(&mut self, strategy: StrategyId) {
        let own = self.ledgers.strategies[usize::from(strategy.0)].iter();
        let held = own.filter(|(_, _, holding)| holding.position.qty != 0);
        let held: Vec<_> = held
            .map(|(id, side, holding)| ((id, side), closing_side(holding.position.qty)))
            .collect();
        for (key, closing) in held {
            let others: Vec<_> = self.others_flattening(strategy).collect();
            for other in others {
                if self.strategies[usize::from(other.0)].open_orders > 0 {
                    continue;
                }
                let theirs = self.opposing_qty(other, key, opposite(closing));
                let qty = self.opposing_qty(strategy, key, closing).min(theirs);
                if qty > 0 && self.settle_between(strategy, other, key, closing, qty) {
                    // The other strategy may have waited for this settlement.
                    self.continue_flattening(other);
                }
            }
        }
    }

    /// Books a trade between two strategies at the mark price. Returns whether there is a price.
    fn settle_between(
        &mut self,
        strategy: StrategyId,
        other: StrategyId,
        (id, position_side): PositionKey,
        closing: Side,
        qty: i64,
    ) -> bool {
        let rules = &self.instruments[usize::from(id.0)];
        let mark = self.mark(id).map(|mark| value(rules, qty, mark.mark));
        let last = self.last_price(id).map(|last| rules.notional(last, qty));
        let Some(quote) = mark.or(last) else {
            return false;
        };
        for (strategy, side) in [(strategy, closing), (other, opposite(closing))] {
            let own = &mut self.ledgers.strategies[usize::from(strategy.0)];
            let position = &mut own.at_mut(id, position_side).position;
            position.fill(side, qty, quote);
        }
        let (sold, bought) = match closing {
            Side::Sell => (strategy, other),
            Side::Buy => (other, strategy),
        };
        let settled = Adjustment::Settled {
            instrument: id,
            side: position_side,
            sold,
            bought,
            qty,
            quote,
        };
        self.report_adjustment(settled, Cause::Flatten);
        self.deliver_position(strategy, id, position_side);
        self.deliver_position(other, id, position_side);
        true
    }

    /// The part of a closing order of this quantity that is left out. It is opposed by the position
    /// of another strategy that is being closed and is not ready for settlement. The part that the
    /// account's net position covers is always closed.
    pub(super) fn left_to_opposite(
        &self,
        strategy: StrategyId,
        key: PositionKey,
        closing: Side,
        qty: i64,
    ) -> i64 {
        let is_closed = self.is_flattening(strategy);
        if !is_closed || self.mark(key.0).is_none() {
            return 0;
        }
        let others = self.others_flattening(strategy);
        let opposed: i64 = others
            .map(|other| self.opposing_qty(other, key, opposite(closing)))
            .sum();
        let held = -closing.sign() * self.ledgers.account.at(key.0, key.1).position.qty;
        let covered = (held - self.closes_under_way(key, closing)).max(0);
        opposed.min(qty - covered.min(qty)).max(0)
    }

    /// Whether a position of a strategy waits for settlement against an opposite one.
    pub(super) fn waits_for_opposite(&self, strategy: StrategyId) -> bool {
        let own = self.ledgers.strategies[usize::from(strategy.0)].iter();
        let mut held = own.filter(|(_, _, holding)| holding.position.qty != 0);
        held.any(|(id, side, holding)| {
            let closing = closing_side(holding.position.qty);
            let whole = self.opposing_qty(strategy, (id, side), closing);
            self.left_to_opposite(strategy, (id, side), closing, whole) > 0
        })
    }

    /// The quantity that open closing orders may still close.
    pub(super) fn closes_under_way(&self, (id, position_side): PositionKey, closing: Side) -> i64 {
        let orders = self.orders.iter().filter(|order| {
            let terms = &order.terms;
            self.is_flattening(order.strategy)
                && terms.order_type == OrderType::Market
                && (terms.instrument, terms.position_side, terms.side)
                    == (id, position_side, closing)
        });
        orders
            .map(windvane_model::orders::Order::remaining_qty)
            .sum()
    }
}
