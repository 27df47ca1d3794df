//! Positions of the account on symbols that are not configured, and what they do to the loss limits
//! (`windvane_evidence::others`).

use windvane_model::decimal::Amount;
use windvane_model::truth::StatedPosition;

use super::Engine;

impl Engine {
    /// Positions of the account on symbols that are not configured, as the venue last reported
    /// them.
    pub fn other_positions(&self) -> impl Iterator<Item = &StatedPosition> {
        self.others.positions()
    }

    /// Notes all positions of a snapshot, before the snapshot is compared.
    pub(super) fn note_stated(&mut self, positions: &[StatedPosition]) {
        if self.live.is_some() {
            self.others.note(positions);
        }
    }

    /// Takes the positions of the compared snapshot. Positions in the first snapshot do not count
    /// as a loss of this run.
    pub(super) fn take_stated(&mut self) {
        let Some(read) = self.others.take_read() else {
            return;
        };
        for position in &read {
            self.take_stated_mark(position);
        }
        if let Some(realized) = self.others.take(read) {
            self.realized_elsewhere += realized;
        } else {
            let held = self.others.unrealized();
            self.losses.shift(held);
        }
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
        let Some(realized) = self.others.take_told(positions) else {
            return;
        };
        self.realized_elsewhere += realized;
        self.watch_all_losses();
    }
}
