//! Fills that were booked in another order than the venue made them. A fill stated in a response
//! may be booked before the event of an older fill arrives. Quantity and money are the same, but
//! the split differs: a higher entry cost of the position means that the realized profit, and so
//! the balance, is higher by the same amount.
//!
//! An account event that is not older than the booked fills reports both. If both differ from the
//! books by the same amount, the engine takes them.

use windvane_model::decimal::Amount;
use windvane_model::ids::InstrumentId;
use windvane_model::order::{PositionSide, Surface};
use windvane_model::protocol::{BalanceUpdate, PositionUpdate};
use windvane_model::state_report::AccountSnapshot;

use crate::Evidence;

/// A reported entry is rounded by at least one part in this many.
const ENTRY_PARTS: i128 = 100_000_000;

/// A balance, and the position whose entry differs by the same amount.
pub type EntryShift = (BalanceUpdate, (InstrumentId, PositionSide));

impl Evidence<'_> {
    /// The amounts that the order of fills shifted; `None` if anything else differs.
    pub fn entry_shifts(
        &self,
        surface: Surface,
        statement: &AccountSnapshot,
    ) -> Option<Vec<EntryShift>> {
        let is_possible = surface == Surface::Futures
            && self.positions_agree(&statement.positions)
            && !self.misses_fill(surface);
        if !is_possible {
            return None;
        }
        self.different_balances(surface, statement)
            .map(|reported| Some((*reported, self.position_with_shift(statement, reported)?)))
            .collect()
    }

    /// The only position whose entry differs by the same amount as a balance.
    fn position_with_shift(
        &self,
        statement: &AccountSnapshot,
        reported: &BalanceUpdate,
    ) -> Option<(InstrumentId, PositionSide)> {
        let connection = self.connection(Surface::Futures)?;
        let at = connection.newest_events.balance(reported.asset)?;
        if connection.history.has_fill_after(at) {
            return None;
        }
        let moved = reported.total - self.balance(Surface::Futures, reported.asset).total;
        let mut found = None;
        for position in &statement.positions {
            let rules = self.instrument(position.instrument)?;
            if rules.quote != reported.asset {
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
    fn shift_of_entry(&self, reported: &PositionUpdate) -> Option<(Amount, Amount)> {
        let (id, side) = (reported.instrument, reported.position_side);
        let rules = self.instrument(id)?;
        let tick = rules.filters.price.map_or(0, |filter| filter.tick_size);
        let half_tick = rules.notional(tick, reported.qty.0.saturating_abs()).0 / 2;
        let rounding = Amount(half_tick.max(reported.cost.0.abs() / ENTRY_PARTS));
        let known = self.ledgers.account.at(id, side).position.cost;
        Some((reported.cost - known, rounding))
    }
}
