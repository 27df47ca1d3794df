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
use windvane_model::truth::StatedPosition;

use super::Engine;

/// The state of these positions.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Others {
    /// `None` before the first snapshot.
    known: Option<BTreeMap<(String, PositionSide), StatedPosition>>,
    /// All positions of a snapshot that is not compared yet.
    read: Option<Vec<StatedPosition>>,
}

impl Others {
    fn unrealized(&self) -> Amount {
        let known = self.known.iter().flatten();
        known.map(|(_, position)| position.unrealized).sum()
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

impl Engine {
    /// Positions of the account on symbols that are not configured, as the venue last reported
    /// them.
    pub fn other_positions(&self) -> impl Iterator<Item = &StatedPosition> {
        self.others.known.iter().flat_map(BTreeMap::values)
    }

    /// The unrealized profit of these positions.
    pub(super) fn unrealized_of_others(&self) -> Amount {
        if planted!(OtherSymbolsIgnored) {
            return Amount::ZERO;
        }
        self.others.unrealized()
    }

    /// The sum of the unrealized losses of the losing positions; not negative.
    pub(super) fn losses_of_others(&self) -> Amount {
        let known = self.other_positions();
        let losses = known.map(|position| (-position.unrealized).max(Amount::ZERO));
        losses.sum()
    }

    /// Notes all positions of a snapshot, before the snapshot is compared.
    pub(super) fn note_stated(&mut self, positions: &[StatedPosition]) {
        if self.live.is_some() {
            self.others.read = Some(positions.to_vec());
        }
    }

    /// Takes the positions of the compared snapshot. Positions in the first snapshot do not count
    /// as a loss of this run.
    pub(super) fn take_stated(&mut self) {
        let Some(read) = self.others.read.take() else {
            return;
        };
        for position in &read {
            self.take_stated_mark(position);
        }
        let is_other = |position: &StatedPosition| {
            position.instrument.is_none() && position.qty != Amount::ZERO
        };
        let others = read.into_iter().filter(is_other);
        let known: BTreeMap<_, _> = others.map(|position| (key(&position), position)).collect();
        let Some(before) = self.others.known.replace(known) else {
            let held = self.unrealized_of_others();
            self.losses.shift(held);
            return;
        };
        let after = self.others.known.iter().flatten();
        let after: BTreeMap<_, _> = after.collect();
        let realized = before.iter().map(|(key, position)| {
            let after = after.get(key);
            realized_between(position, after.copied())
        });
        self.realized_elsewhere += realized.sum::<Amount>();
    }

    /// Resets the profit of other symbols: the balances agree with a snapshot, so none is in
    /// flight.
    pub(super) const fn forget_realized_elsewhere(&mut self) {
        self.realized_elsewhere = Amount::ZERO;
    }

    /// The part of an increase that positions on other symbols realized, by the venue's reports
    /// before and after. Their unrealized profit was counted already.
    pub(super) fn take_realized_elsewhere(&mut self, increase: Amount) -> Amount {
        let realized = self.realized_elsewhere.min(increase).max(Amount::ZERO);
        self.realized_elsewhere -= realized;
        realized
    }

    /// Takes the positions of an event: positions that it does not list have not changed.
    pub(super) fn take_told(&mut self, positions: &[StatedPosition]) {
        let Some(known) = &mut self.others.known else {
            return;
        };
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
                self.realized_elsewhere += realized_between(&before, Some(position));
            }
        }
        self.watch_all_losses();
    }

    /// Takes over the positions that an earlier process knew.
    pub(super) fn inherit_others(&mut self, from: &Self) {
        self.others.known.clone_from(&from.others.known);
    }
}
