//! Positions of the account on symbols that are not configured, and what they do to the loss limits
//! (`windvane_evidence::unconfigured_positions`).

use windvane_model::decimal::Amount;
use windvane_model::state_report::StatedPosition;

use super::Engine;

impl Engine {
    /// Positions of the account on symbols that are not configured, as the venue last reported
    /// them.
    pub fn unconfigured_positions(&self) -> impl Iterator<Item = &StatedPosition> {
        self.unconfigured_positions.positions()
    }

    /// Notes all positions of a snapshot, before the snapshot is compared.
    pub(super) fn note_all_positions(&mut self, positions: &[StatedPosition]) {
        if self.live.is_some() {
            self.unconfigured_positions.note(positions);
        }
    }

    /// Takes the positions of the compared snapshot. Positions in the first snapshot do not count
    /// as a loss of this run.
    pub(super) fn take_unconfigured_positions(&mut self) {
        let Some(read) = self.unconfigured_positions.take_read() else {
            return;
        };
        for position in &read {
            self.take_implied_mark(position);
        }
        if let Some(realized) = self.unconfigured_positions.take(read) {
            self.unconfigured_profit += realized;
        } else {
            let held = self.unconfigured_positions.unrealized();
            self.losses.shift(held);
        }
    }

    /// Resets the profit of other symbols: the balances agree with a snapshot, so none is in
    /// flight.
    pub(super) const fn forget_unconfigured_profit(&mut self) {
        self.unconfigured_profit = Amount::ZERO;
    }

    /// The part of an increase that positions on other symbols realized, by the venue's reports
    /// before and after. Their unrealized profit was counted already.
    pub(super) fn take_unconfigured_profit(&mut self, increase: Amount) -> Amount {
        let realized = self.unconfigured_profit.min(increase).max(Amount::ZERO);
        self.unconfigured_profit -= realized;
        realized
    }

    /// Takes the positions of an event: positions that it does not list have not changed.
    pub(super) fn take_reported_positions(&mut self, positions: &[StatedPosition]) {
        let Some(realized) = self
            .unconfigured_positions
            .take_reported_positions(positions)
        else {
            return;
        };
        self.unconfigured_profit += realized;
        self.watch_all_losses();
    }
}
