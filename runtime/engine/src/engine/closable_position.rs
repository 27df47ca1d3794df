//! How much of a strategy's position the account really holds. Outside orders (liquidation, ADL, a
//! person) and reconciliation close positions of the account without changing the strategies'
//! sub-ledgers. A close by the sub-ledger alone could then open an unwanted position.
//!
//! The rule: the quantity that outside orders took from a side is missing there. Strategies may
//! close the sum of their sub-ledgers on that side, less the missing quantity. Closing orders of
//! other strategies that are already open come first. Where nothing is missing, a close needs no
//! cover by the account, because strategies net against each other (one may be long what another is
//! short).

use windvane_model::decimal::Amount;
use windvane_model::effect::Notice;
use windvane_model::holding::Ledger;
use windvane_model::ids::{InstrumentId, StrategyId};
use windvane_model::order::{OrderTerms, OrderType, PositionSide, Qty, Side, Surface};
use windvane_model::planted;
use windvane_model::rules::{Rejection, Rule};

use super::Engine;

/// The quantity in a ledger that an order of this side would close.
fn held(ledger: &Ledger, id: InstrumentId, position_side: PositionSide, closing: Side) -> i64 {
    let qty = ledger.at(id, position_side).position.qty;
    (-closing.sign() * qty).max(0)
}

impl Engine {
    /// Returns the parameters with which a strategy's order may be sent, for an order without
    /// `reduce_only` in one-way mode. An order that exits a position must not open one on the other
    /// side of the account:
    ///
    /// - While an outside close is not settled yet, no more may be exited than is left.
    /// - A market exit is sent with `reduceOnly` where the account covers it, because an outside
    ///   party may have closed the position a moment ago. It is sent unchanged beside resting
    ///   orders that only reduce: the venue may refuse reduce-only orders beyond the position.
    ///
    /// `added` is the quantity of this callback's earlier orders of the same side.
    pub(crate) fn exit_terms(
        &self,
        strategy: StrategyId,
        terms: OrderTerms,
        added: i64,
    ) -> Result<OrderTerms, Rejection> {
        let (id, closing) = (terms.instrument, terms.side);
        let Some(Qty(qty)) = terms.qty else {
            return Ok(terms);
        };
        let one_way = self.surface_of(id) == Surface::Futures
            && terms.position_side == PositionSide::Both
            && !self.hedge_mode;
        let own = held(
            &self.ledgers.strategies[usize::from(strategy.0)],
            id,
            PositionSide::Both,
            closing,
        );
        if self.live.is_none() || !one_way || own == 0 {
            return Ok(terms);
        }
        let is_market = terms.order_type == OrderType::Market;
        let closable = self.closable(strategy, id, PositionSide::Both, closing);
        if closable < own && qty > closable && (is_market || qty <= own) {
            return Err(self.qty_rejection(Rule::ReduceOnlyPosition, id, qty, closable));
        }
        let mut wire = terms;
        let covered = is_market && self.covers_exit(strategy, id, closing, (qty, own), added);
        wire.reduce_only = covered && !planted!(ExitMayOpen);
        Ok(wire)
    }

    /// Whether a market order of this quantity only reduces the strategy's position and the
    /// account's, together with the open orders.
    fn covers_exit(
        &self,
        strategy: StrategyId,
        id: InstrumentId,
        closing: Side,
        (qty, own): (i64, i64),
        added: i64,
    ) -> bool {
        let account = held(&self.ledgers.account, id, PositionSide::Both, closing);
        let (mut of_own, mut of_account) = (added, added);
        for order in self.orders.iter() {
            let order_terms = &order.terms;
            if order_terms.instrument != id || order_terms.side != closing {
                continue;
            }
            let is_market = order_terms.order_type == OrderType::Market;
            if is_market || order_terms.reduce_only {
                of_account += order.remaining_qty();
            }
            if is_market && order.strategy == strategy {
                of_own += order.remaining_qty();
            }
        }
        qty <= own - of_own && qty <= account - of_account
    }

    /// How much of its position a strategy may close with orders of this side.
    pub(crate) fn closable(
        &self,
        strategy: StrategyId,
        id: InstrumentId,
        position_side: PositionSide,
        closing: Side,
    ) -> i64 {
        let held = |ledger: &Ledger| held(ledger, id, position_side, closing);
        let own = held(&self.ledgers.strategies[usize::from(strategy.0)]);
        if self.surface_of(id) == Surface::Spot {
            // Outside parties may sell coins of their own that were there before. `missing_coins`
            // handles missing coins.
            return own;
        }
        let external = self.ledgers.external.at(id, position_side).position.qty;
        let missing = closing.sign() * external;
        if missing <= 0 {
            return own;
        }
        let others = self.ledgers.strategies.iter().enumerate();
        let others = others.filter(|(index, _)| *index != usize::from(strategy.0));
        let left_to_others = others.map(|(_, ledger)| {
            let holding = ledger.at(id, position_side);
            let leaving = match closing {
                Side::Sell => holding.open_sell,
                Side::Buy => holding.open_buy,
            };
            (held(ledger) - leaving).max(0)
        });
        let left = own + left_to_others.sum::<i64>() - missing;
        left.clamp(0, own)
    }

    /// The parts of a strategy's positions that the account does not hold, with their closing
    /// sides.
    pub(super) fn unclosable_parts(
        &self,
        strategy: StrategyId,
    ) -> Vec<(InstrumentId, PositionSide, Side, i64)> {
        let own = self.ledgers.strategies[usize::from(strategy.0)].iter();
        own.filter_map(|(id, position_side, holding)| {
            let qty = holding.position.qty;
            let closing = if qty > 0 { Side::Sell } else { Side::Buy };
            let closable = self.closable(strategy, id, position_side, closing);
            let uncovered = qty.saturating_abs() - closable;
            (uncovered > 0).then_some((id, position_side, closing, uncovered))
        })
        .collect()
    }

    /// Closes in the sub-ledger what outside orders closed of a strategy's positions, at the
    /// outside price. The strategy and people are notified.
    pub(super) fn give_up_unclosable_parts(&mut self, strategy: StrategyId) {
        for (id, position_side, closing, qty) in self.unclosable_parts(strategy) {
            let value = self.close_values.part((id, position_side), closing, qty);
            self.give_up(strategy, (id, position_side), closing, qty, value);
            self.close_values.take((id, position_side), qty, value);
        }
    }

    /// Closes the part of a strategy's position that outside orders closed, and returns its quote
    /// amount. That amount is `value`, or, if unknown, the average cost of the unowned position.
    /// The strategy and people are notified.
    pub(super) fn give_up(
        &mut self,
        strategy: StrategyId,
        (id, position_side): (InstrumentId, PositionSide),
        closing: Side,
        qty: i64,
        value: Option<Amount>,
    ) -> Amount {
        let external = &self.ledgers.external.at(id, position_side).position;
        // The unowned position contains the missing quantity, with its cost. `qty` is at most that
        // quantity, so its average cost can be taken from there.
        let whole = external.qty.saturating_abs().max(qty);
        let average = Amount(external.cost.part(qty, whole).0.abs());
        let quote = value.unwrap_or(average);
        let key = (id, position_side);
        let realized_pnl = self.move_to_external(strategy, key, closing, qty, quote);
        self.notices.push_back(Notice::ClosedOutside {
            time: self.now,
            strategy,
            instrument: id,
            qty: -closing.sign() * qty,
            realized_pnl,
        });
        self.deliver_position(strategy, id, position_side);
        quote
    }

    /// Books a trade between a strategy and the unowned position. The account does not change.
    pub(super) fn move_to_external(
        &mut self,
        strategy: StrategyId,
        (id, position_side): (InstrumentId, PositionSide),
        side: Side,
        qty: i64,
        quote: Amount,
    ) -> Amount {
        let opposite = match side {
            Side::Sell => Side::Buy,
            Side::Buy => Side::Sell,
        };
        let external = &mut self.ledgers.external.at_mut(id, position_side).position;
        external.fill(opposite, qty, quote);
        let own = &mut self.ledgers.strategies[usize::from(strategy.0)];
        own.at_mut(id, position_side)
            .position
            .fill(side, qty, quote)
    }
}
