//! Positions of the account on symbols that are not configured: a person or another program holds
//! them. No strategy owns them, and no order of this run changes them. Their unrealized profit is
//! part of the account, so the account's loss limits count it as the venue reports it.
//!
//! An account snapshot reports every position. These positions are accepted together with the
//! balances of the same snapshot: a closed position and the money that it returned belong together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::order::PositionSide;
use windvane_model::planted;
use windvane_model::state_report::StatedPosition;

/// The state of these positions.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct UnconfiguredPositions {
    /// `None` before the first snapshot.
    known: Option<BTreeMap<(String, PositionSide), StatedPosition>>,
    /// All positions of a snapshot that is not compared yet.
    read: Option<Vec<StatedPosition>>,
}

impl UnconfiguredPositions {
    /// The positions as the venue last reported them.
    pub fn positions(&self) -> impl Iterator<Item = &StatedPosition> {
        self.known.iter().flat_map(BTreeMap::values)
    }

    /// The unrealized profit of these positions.
    pub fn unrealized(&self) -> Amount {
        if planted!(OtherSymbolsIgnored) {
            return Amount::ZERO;
        }
        self.positions().map(|position| position.unrealized).sum()
    }

    /// The sum of the unrealized losses of the losing positions; not negative.
    pub fn losses(&self) -> Amount {
        let losses = self
            .positions()
            .map(|position| (-position.unrealized).max(Amount::ZERO));
        losses.sum()
    }

    /// Notes all positions of a snapshot, before the snapshot is compared.
    pub fn note(&mut self, positions: &[StatedPosition]) {
        self.read = Some(positions.to_vec());
    }

    /// All positions of the snapshot that is compared now, if it is not taken yet.
    pub fn take_read(&mut self) -> Option<Vec<StatedPosition>> {
        self.read.take()
    }

    /// Takes the positions of the compared snapshot. Returns the profit that positions realized by
    /// becoming smaller; `None` for the first snapshot.
    pub fn take(&mut self, read: Vec<StatedPosition>) -> Option<Amount> {
        let is_other = |position: &StatedPosition| {
            position.instrument.is_none() && position.qty != Amount::ZERO
        };
        let others = read.into_iter().filter(is_other);
        let known: BTreeMap<_, _> = others.map(|position| (key(&position), position)).collect();
        let before = self.known.replace(known)?;
        let after = self.known.iter().flatten();
        let after: BTreeMap<_, _> = after.collect();
        let realized = before.iter().map(|(key, position)| {
            let after = after.get(key);
            realized_between(position, after.copied())
        });
        Some(realized.sum())
    }

    /// Takes the positions of an event: positions that it does not list have not changed. Returns
    /// the profit that positions realized by becoming smaller; `None` before the first snapshot.
    pub fn take_reported_positions(&mut self, positions: &[StatedPosition]) -> Option<Amount> {
        let known = self.known.as_mut()?;
        let mut realized = Amount::ZERO;
        for position in positions {
            if position.instrument.is_some() {
                continue;
            }
            let before = if position.qty == Amount::ZERO {
                known.remove(&key(position))
            } else {
                known.insert(key(position), position.clone())
            };
            if let Some(before) = before {
                realized += realized_between(&before, Some(position));
            }
        }
        Some(realized)
    }

    /// Takes over the positions that an earlier process knew.
    pub fn inherit(&mut self, old: &Self) {
        self.known.clone_from(&old.known);
    }
}

fn key(position: &StatedPosition) -> (String, PositionSide) {
    (position.symbol.clone(), position.position_side)
}

/// The profit that a position realized by becoming smaller: the decrease of its unrealized profit.
fn realized_between(before: &StatedPosition, after: Option<&StatedPosition>) -> Amount {
    let (qty, unrealized) = after.map_or((Amount::ZERO, Amount::ZERO), |after| {
        (after.qty, after.unrealized)
    });
    let is_smaller = qty.abs() < before.qty.abs() || qty.0.signum() == -before.qty.0.signum();
    if is_smaller {
        (before.unrealized - unrealized).max(Amount::ZERO)
    } else {
        Amount::ZERO
    }
}
