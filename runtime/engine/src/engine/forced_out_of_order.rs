//! Forced closes and own fills that are reported in another order than the venue made them: the shares
//! of strategies that follow (`windvane_evidence::forced_out_of_order`).

use windvane_evidence::forced::{DueClose, ForcedOrder};
use windvane_model::effect::Notice;
use windvane_model::forced::{ForcedCloseReport, ForcedShare};
use windvane_model::ids::{InstrumentId, StrategyId, Time};
use windvane_model::order::Surface;
use windvane_model::protocol::{Fill, OrderUpdate, PositionUpdate};

use super::Engine;

impl Engine {
    /// Remembers a booked own fill. If the venue made it before a forced close that was already
    /// reported, the unowned part of that close belongs to the fill's strategy.
    pub(super) fn note_own_fill(
        &mut self,
        strategy: StrategyId,
        update: &OrderUpdate,
        fill: &Fill,
    ) {
        let made = update.transaction_time;
        if self.live.is_none() || made == Time::default() {
            return;
        }
        let parts = self
            .out_of_order
            .note_own_fill(strategy, update, fill, self.now);
        for (part, report) in parts {
            let by = Some((report.kind, report.order_id));
            let share = self.give_share(strategy, update.instrument, &part, by);
            self.deliver_late_share(&report, &part, share);
        }
    }

    /// Gives the unowned part of a close to strategies whose own fills the venue made after it,
    /// because they held it then. Returns their shares, and the remainder.
    pub(super) fn share_with_later_fills(
        &mut self,
        instrument: InstrumentId,
        rest: DueClose,
        by: Option<ForcedOrder>,
    ) -> (Vec<ForcedShare>, DueClose) {
        let (parts, rest) = self
            .out_of_order
            .take_later_fills(instrument, rest, self.now);
        let give = |(strategy, part): (StrategyId, DueClose)| {
            self.give_share(strategy, instrument, &part, by)
        };
        let shares = parts.into_iter().map(give).collect();
        (shares, rest)
    }

    /// Notes that an accepted snapshot moves a position and closes no held position.
    pub(super) fn note_moved_position(&mut self, reported: &PositionUpdate) {
        let (id, side) = (reported.instrument, reported.position_side);
        if usize::from(id.0) >= self.instruments.len() || self.surface_of(id) != Surface::Futures {
            return;
        }
        // If the account was never known, the snapshot does not show a change.
        if self.agreed_at(Surface::Futures).is_none() {
            return;
        }
        let by = reported.qty.0 - self.account_qty(id, side);
        self.out_of_order.note_shift((id, side), by, self.now);
    }

    /// Reports that a strategy bears a part of a close that was reported earlier. The reaction
    /// followed then.
    fn deliver_late_share(
        &mut self,
        report: &ForcedCloseReport,
        part: &DueClose,
        share: ForcedShare,
    ) {
        let report = ForcedCloseReport {
            qty: part.qty,
            quote: part.quote,
            realized_pnl: share.realized_pnl,
            fee: part.fee,
            shares: vec![share],
            unowned: 0,
            left: self.account_qty(report.instrument, report.position_side),
            kill_switch_changed: false,
            ..report.clone()
        };
        self.forced.reports.add_share(&report, share);
        self.record_forced_close(&report);
        self.notices.push_back(Notice::ForcedClose {
            time: self.now,
            report: Box::new(report),
        });
    }
}
