//! Coins of strategies that somebody else sold or withdrew on spot.
//!
//! Spot has no list of positions: a strategy's position is there as long as the balance of the base asset covers it.
//! Where the balance is smaller for [`READ_LAG_MS`], after readings that agree, the missing quantity is taken from the
//! strategies that held it, at the price at which it was sold, or at the present one where no trade is known.

use crate::decimal::Amount;
use crate::effect::{Adjustment, Cause};
use crate::ids::InstrumentId;
use crate::ledger::Grains;
use crate::order::{PositionSide, Side, Surface};
use crate::timer::Timer;

use super::Engine;
use super::lag::READ_LAG_MS;

/// Rounded commissions in the base asset leave less than this part missing.
const ROUNDING_PARTS: i128 = 100;
/// An own order may be the sale: it is waited for.
const AGAIN_MS: i64 = 1_000;

impl Engine {
    /// Looks for missing coins after a round that compared the spot account.
    pub(super) fn watch_coins(&mut self) {
        for id in self.instruments_of(Surface::Spot) {
            let timer = Timer::MissingCoins { instrument: id };
            match (self.missing_coins(id) > 0, self.timers.is_set(timer)) {
                (true, false) => self.timers.set(self.now.plus_ms(READ_LAG_MS), timer),
                (false, _) => self.timers.cancel(timer),
                (true, true) => {}
            }
        }
    }

    /// How much of what strategies hold of an instrument the balance does not cover.
    fn missing_coins(&self, id: InstrumentId) -> i64 {
        let instrument = &self.instruments[usize::from(id.0)];
        let held_of = |of: InstrumentId| {
            let grains = Grains::of(&self.instruments[usize::from(of.0)]);
            let strategies = self.ledgers.strategies.iter();
            let own =
                strategies.map(|ledger| ledger.at(of, PositionSide::Both).position.qty.max(0));
            grains.amount(grains.of_qty(own.sum()))
        };
        let same_base = self.instruments_of(Surface::Spot).into_iter();
        let same_base =
            same_base.filter(|of| self.instruments[usize::from(of.0)].base == instrument.base);
        let held: Amount = same_base.map(held_of).sum();
        let missing = held - self.balance(Surface::Spot, instrument.base).total;
        if missing.0 <= 0 || missing.0.saturating_mul(ROUNDING_PARTS) < held.0 {
            return 0;
        }
        let grains = Grains::of(instrument);
        grains.qty(grains.of_amount(missing.min(held_of(id))))
    }

    /// Takes the missing coins from the strategies that held them.
    pub(super) fn settle_missing_coins(&mut self, id: InstrumentId) {
        let missing = self.missing_coins(id);
        if missing <= 0 {
            return;
        }
        let may_have_sold = self
            .orders
            .iter()
            .any(|order| (order.terms.instrument, order.terms.side) == (id, Side::Sell));
        if may_have_sold || self.misses_fill(Surface::Spot) {
            let timer = Timer::MissingCoins { instrument: id };
            self.timers.set(self.now.plus_ms(AGAIN_MS), timer);
            return;
        }
        let key = (id, PositionSide::Both);
        let external = self.ledgers.external.at(key.0, key.1).position.qty;
        self.book_untold_sale(id, missing - (-external).max(0));
        self.settle_outside_close(key, Side::Sell, missing);
        self.watch_losses_after_fill();
    }

    /// Books a sale by others that neither an event nor a trade told, at the present price.
    fn book_untold_sale(&mut self, id: InstrumentId, qty: i64) {
        if qty <= 0 {
            return;
        }
        let rules = &self.instruments[usize::from(id.0)];
        let mark = self.markets[usize::from(id.0)].mark(rules.price_scale);
        let account = &mut self.ledgers.account.at_mut(id, PositionSide::Both).position;
        let from = account.qty;
        let cost = account.cost.part(qty, from.saturating_abs().max(1));
        let quote = mark.map_or(cost, |mark| crate::ledger::value(rules, qty, mark));
        account.fill(Side::Sell, qty, quote);
        let external = &mut self
            .ledgers
            .external
            .at_mut(id, PositionSide::Both)
            .position;
        external.fill(Side::Sell, qty, quote);
        let adjustment = Adjustment::Position {
            instrument: id,
            side: PositionSide::Both,
            from,
            to: from - qty,
        };
        self.tell_adjustment(adjustment, Cause::Reconciliation);
    }
}
