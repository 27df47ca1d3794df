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
use crate::order::{PositionSide, Side};

use super::Engine;

/// What a ledger holds that an order of this side would close.
fn held(ledger: &Ledger, id: InstrumentId, position_side: PositionSide, closing: Side) -> i64 {
    let qty = ledger.at(id, position_side).position.qty;
    (-closing.sign() * qty).max(0)
}

impl Engine {
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
            self.give_up(strategy, (id, position_side), closing, qty);
        }
    }

    /// Closes a part of a strategy's position that outside orders closed, at what they got for it.
    /// Answers that amount. People and the strategy are told.
    pub(super) fn give_up(
        &mut self,
        strategy: StrategyId,
        (id, position_side): (InstrumentId, PositionSide),
        closing: Side,
        qty: i64,
    ) -> Amount {
        let external = &self.ledgers.external.at(id, position_side).position;
        // More than what is missing is never given up, so that there is something to share.
        let whole = external.qty.saturating_abs().max(qty);
        let quote = Amount(external.cost.part(qty, whole).0.abs());
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
