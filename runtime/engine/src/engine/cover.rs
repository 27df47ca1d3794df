//! What of a strategy's position the account really holds. Outside orders (liquidation, ADL, a
//! person) and reconciliation close positions of the account, and the sub-ledgers of strategies
//! know nothing of it: a close by the sub-ledger alone could open a position that nobody wants.
//!
//! The rule: what outside orders took from a side is missing there. What is left of that side, the
//! sub-ledgers of all strategies on it less what is missing, is what may be closed; orders of
//! other strategies that are closing already come first. Where nothing is missing, a close needs
//! no cover by the account: strategies net between each other (what one is long another is short).

use crate::decimal::Amount;
use crate::effect::Notice;
use crate::holding::Ledger;
use crate::ids::{InstrumentId, StrategyId};
use crate::order::{OrderTerms, OrderType, PositionSide, Qty, Side, Surface};
use crate::planted;
use crate::rules::{Rejection, Rule};

use super::Engine;

/// What a ledger holds that an order of this side would close.
fn held(ledger: &Ledger, id: InstrumentId, position_side: PositionSide, closing: Side) -> i64 {
    let qty = ledger.at(id, position_side).position.qty;
    (-closing.sign() * qty).max(0)
}

impl Engine {
    /// A strategy's order without `reduce_only` in one-way mode, as it may leave. One that exits its
    /// position must not open a position on the other side of the account:
    ///
    /// - while others closed a part that is not settled yet, no more may be exited than is left;
    /// - a market exit is sent with `reduceOnly` where the account covers it, because others may have
    ///   closed the position a moment ago. Beside resting orders that only reduce it is left as it is:
    ///   the venue may refuse more of these than it has a position for.
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

    /// Whether a market order of this quantity only reduces the strategy's position and the account's,
    /// beside the orders that are under way.
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
            // Others may sell coins of their own, which were there before. What is missing: `missing_coins`.
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

    /// Whether a strategy's sub-ledger holds what the account does not.
    pub(super) fn uncovered(
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

    /// What outside orders closed of a strategy's positions is closed in its sub-ledger too, at
    /// what they got for it. People and the strategy are told.
    pub(super) fn settle_with_external(&mut self, strategy: StrategyId) {
        for (id, position_side, closing, qty) in self.uncovered(strategy) {
            let value = self.close_value((id, position_side), closing, qty);
            self.give_up(strategy, (id, position_side), closing, qty, value);
            self.take_close_value((id, position_side), qty, value);
        }
    }

    /// Closes a part of a strategy's position that outside orders closed, at what they got for it: `value`, or
    /// where that is not known the average of what belongs to nobody.
    /// Answers that amount. People and the strategy are told.
    pub(super) fn give_up(
        &mut self,
        strategy: StrategyId,
        (id, position_side): (InstrumentId, PositionSide),
        closing: Side,
        qty: i64,
        value: Option<Amount>,
    ) -> Amount {
        let external = &self.ledgers.external.at(id, position_side).position;
        // More than what is missing is never given up, so that there is something to share.
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
        self.tell_position(strategy, id, position_side);
        quote
    }

    /// Books a trade between a strategy and what belongs to none: the account is not changed.
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
