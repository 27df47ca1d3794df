//! How an account snapshot differs from the books.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::effect::Adjustment;
use windvane_model::ids::InstrumentId;
use windvane_model::order::{PositionSide, Surface};
use windvane_model::protocol::PositionUpdate;
use windvane_model::state_report::AccountSnapshot;

use crate::Evidence;

/// An entry price that differs by less than one part in this many differs by the venue's rounding.
const ENTRY_PARTS: i128 = 100_000_000;

/// Entry costs of positions that a snapshot confirmed.
pub type ConfirmedEntries = BTreeMap<(InstrumentId, PositionSide), ConfirmedEntry>;

/// A position as it was in the books when a snapshot confirmed its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmedEntry {
    qty: i64,
    cost: Amount,
    /// The tick to which the venue may have rounded the entry price.
    tick: i64,
}

/// How a reported entry cost of a position differs from the books.
#[derive(Clone, Copy, Debug)]
pub struct StatedEntry {
    /// How much higher it is.
    pub moved: Amount,
    /// The difference is the venue's rounding.
    pub is_rounding: bool,
}

impl Evidence<'_> {
    /// The differences between the account and the books. Balances and positions that are not
    /// listed are not compared.
    pub fn differences(&self, surface: Surface, account: &AccountSnapshot) -> Vec<Adjustment> {
        let mut differences = Vec::new();
        for balance in &account.balances {
            let from = self.balance(surface, balance.asset).total;
            if from != balance.total {
                differences.push(Adjustment::Balance {
                    surface,
                    asset: balance.asset,
                    from,
                    to: balance.total,
                });
            }
        }
        for position in &account.positions {
            let (id, side) = (position.instrument, position.position_side);
            if usize::from(id.0) >= self.instruments.len() {
                continue;
            }
            let from = self.ledgers.account.at(id, side).position.qty;
            if from != position.qty.0 {
                differences.push(Adjustment::Position {
                    instrument: id,
                    side,
                    from,
                    to: position.qty.0,
                });
            }
        }
        differences
    }

    /// Whether every reported position equals the books.
    pub fn positions_agree(&self, reported: &[PositionUpdate]) -> bool {
        reported.iter().all(|position| {
            let (id, side) = (position.instrument, position.position_side);
            usize::from(id.0) >= self.instruments.len()
                || self.ledgers.account.at(id, side).position.qty == position.qty.0
        })
    }

    /// The present entry of a position.
    pub fn known_entry(&self, id: InstrumentId, side: PositionSide) -> ConfirmedEntry {
        let filters = &self.instruments[usize::from(id.0)].filters;
        let position = self.ledgers.account.at(id, side).position;
        ConfirmedEntry {
            qty: position.qty,
            cost: position.cost,
            tick: filters.price.map_or(0, |filter| filter.tick_size),
        }
    }

    /// Compares the entry cost of a reported position with the books; `None` if their quantities
    /// differ.
    pub fn stated_entry(&self, reported: &PositionUpdate) -> Option<StatedEntry> {
        let rules = self.instrument(reported.instrument)?;
        let tick = rules.filters.price.map_or(0, |filter| filter.tick_size);
        let half_tick = rules.notional(tick, reported.qty.0.saturating_abs()).0 / 2;
        let account = &self.ledgers.account;
        let position = account
            .at(reported.instrument, reported.position_side)
            .position;
        let moved = reported.cost - position.cost;
        let parts = reported.cost.0.abs() / ENTRY_PARTS;
        let is_rounding = moved.0.abs() <= parts.max(half_tick);
        (position.qty == reported.qty.0).then_some(StatedEntry { moved, is_rounding })
    }
}
