//! Fills that were booked in another order than the venue made them. A fill stated in a response
//! may be booked before the event of an older fill arrives. Quantity and money are the same, but
//! the split differs: a higher entry cost of the position means that the realized profit, and so
//! the balance, is higher by the same amount.
//!
//! An account event that is not older than the booked fills reports both. If both differ from the
//! books by the same amount, the engine takes them.

use windvane_model::decimal::Amount;
use windvane_model::effect::Cause;
use windvane_model::ids::InstrumentId;
use windvane_model::order::{PositionSide, Surface};
use windvane_model::protocol::{BalanceUpdate, PositionUpdate};
use windvane_model::truth::AccountTruth;

use super::Engine;

/// A reported entry is rounded by at least one part in this many.
const ENTRY_PARTS: i128 = 100_000_000;

/// A balance, and the position whose entry differs by the same amount.
type Shift = (BalanceUpdate, (InstrumentId, PositionSide));

impl Engine {
    /// Takes an account event that differs from the books only by the order of fills. Returns
    /// whether it does.
    pub(super) fn take_order_of_fills(
        &mut self,
        surface: Surface,
        statement: &AccountTruth,
    ) -> bool {
        let Some(shifts) = self.shifts_by_order(surface, statement) else {
            return false;
        };
        for (balance, (id, side)) in shifts {
            let moved = balance.total - self.balance(surface, balance.asset).total;
            let position = &mut self.ledgers.account.at_mut(id, side).position;
            position.cost += moved;
            position.realized_pnl += moved;
            self.confirm_entry(id, side);
            self.take_balance(surface, &balance, Cause::Event);
        }
        true
    }

    /// The amounts that the order of fills shifted; `None` if anything else differs.
    fn shifts_by_order(&self, surface: Surface, statement: &AccountTruth) -> Option<Vec<Shift>> {
        let is_possible = surface == Surface::Futures
            && self.positions_agree(&statement.positions)
            && !self.misses_fill(surface);
        if !is_possible {
            return None;
        }
        let differs = |told: &&BalanceUpdate| {
            let known = self.balance(surface, told.asset).total;
            !self.is_same(surface, told.asset, told.total, known)
        };
        let different = statement.balances.iter().filter(differs);
        different
            .map(|told| Some((*told, self.position_with_shift(statement, told)?)))
            .collect()
    }

    /// The only position whose entry differs by the same amount as a balance.
    fn position_with_shift(
        &self,
        statement: &AccountTruth,
        told: &BalanceUpdate,
    ) -> Option<(InstrumentId, PositionSide)> {
        let line = self.live.as_ref()?.lines.get(&Surface::Futures)?;
        let at = line.newest.balance(told.asset)?;
        if line.past.has_fill_after(at) {
            return None;
        }
        let moved = told.total - self.balance(Surface::Futures, told.asset).total;
        let mut found = None;
        for position in &statement.positions {
            let rules = self.instrument(position.instrument)?;
            if rules.quote != told.asset {
                continue;
            }
            let (shift, rounding) = self.shift_of_entry(position)?;
            if shift.abs() <= rounding {
                continue;
            }
            if found.is_some() || (moved - shift).abs() > rounding {
                return None;
            }
            found = Some((position.instrument, position.position_side));
        }
        found
    }

    /// How much more a reported position costs than in the books, and the amount that the venue may
    /// have rounded.
    fn shift_of_entry(&self, told: &PositionUpdate) -> Option<(Amount, Amount)> {
        let (id, side) = (told.instrument, told.position_side);
        let rules = self.instrument(id)?;
        let tick = rules.filters.price.map_or(0, |filter| filter.tick_size);
        let half_tick = rules.notional(tick, told.qty.0.saturating_abs()).0 / 2;
        let rounding = Amount(half_tick.max(told.cost.0.abs() / ENTRY_PARTS));
        let known = self.ledgers.account.at(id, side).position.cost;
        Some((told.cost - known, rounding))
    }
}
