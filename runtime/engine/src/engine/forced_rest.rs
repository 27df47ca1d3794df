//! Forced closes and own fills that are reported in another order than the venue made them.
//!
//! The engine shares a forced close among the strategies by their positions when it is reported.
//! Two cases make that wrong:
//! - An own fill that the venue made after the close is reported before it. The strategy then seems
//!   to hold less than it held.
//! - An own fill that the venue made before the close is reported after it.
//!
//! In both cases a part of the close is left that no strategy held. It belongs to the strategy of
//! that fill.
//!
//! If no event reported the close at all, a snapshot moves a position by it, and the venue's list
//! of forced orders may explain that.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use windvane_model::effect::Notice;
use windvane_model::forced::{ForcedCloseReport, ForcedShare};
use windvane_model::ids::{InstrumentId, StrategyId, Time, VenueOrderId};
use windvane_model::order::{PositionSide, Side, Surface};
use windvane_model::protocol::{Fill, OrderUpdate, PositionUpdate};

use super::Engine;
use super::forced::{Due, ForcedOrder, take_closed};
use super::snapshot::Names;

/// At most this many own fills and parts of forced closes are remembered, and for this long.
/// Snapshots may show a close half a minute later, and the list of forced orders later still.
const REMEMBERED_MAX: usize = 256;
const KEPT_MS: i64 = 120_000;

/// Fills and closes that may turn out to be reported out of order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct OutOfOrder {
    /// The last own fills.
    fills: VecDeque<OwnFill>,
    /// The parts of the last forced closes that no strategy held.
    rests: VecDeque<Rest>,
    /// How much snapshots moved positions, where that closed no held position, and when.
    moved: BTreeMap<(InstrumentId, PositionSide), (i64, Time)>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct OwnFill {
    told: Time,
    /// The venue's time.
    made: Time,
    strategy: StrategyId,
    instrument: InstrumentId,
    position_side: PositionSide,
    side: Side,
    qty: i64,
}

/// Positions that listed outside trades moved, the newest at the end.
pub(super) type ListedShifts = VecDeque<ListedShift>;

/// How much a listed outside trade moved a position, beyond what it closed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ListedShift {
    told: Time,
    instrument: InstrumentId,
    position_side: PositionSide,
    order_id: VenueOrderId,
    qty: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Rest {
    told: Time,
    due: Due,
    /// The report of the close, without shares.
    report: ForcedCloseReport,
}

impl OutOfOrder {
    fn forget(&mut self, now: Time) {
        let is_old = |told: Time| now > told.plus_ms(KEPT_MS);
        while self.fills.len() > REMEMBERED_MAX
            || (self.fills.front()).is_some_and(|first| is_old(first.told))
        {
            self.fills.pop_front();
        }
        while self.rests.len() > REMEMBERED_MAX
            || (self.rests.front()).is_some_and(|first| is_old(first.told))
        {
            self.rests.pop_front();
        }
        self.moved.retain(|_, (_, at)| !is_old(*at));
    }
}

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
        self.out_of_order.forget(self.now);
        let mut left = fill.qty.0;
        while let Some(place) = self.rest_before(update).filter(|_| left > 0) {
            let rest = &mut self.out_of_order.rests[place];
            let qty = left.min(rest.due.qty);
            let (part, remaining) = rest.due.split(qty);
            rest.due = remaining;
            let report = rest.report.clone();
            left -= qty;
            let by = Some((report.kind, report.order_id));
            let share = self.give_share(strategy, update.instrument, &part, by);
            self.tell_late_share(&report, &part, share);
        }
        self.out_of_order.fills.push_back(OwnFill {
            told: self.now,
            made,
            strategy,
            instrument: update.instrument,
            position_side: update.position_side,
            side: update.side,
            qty: fill.qty.0,
        });
    }

    /// A part of a forced close that came after this own fill and closed the position that the fill
    /// opened.
    fn rest_before(&self, update: &OrderUpdate) -> Option<usize> {
        let concerns = |rest: &Rest| {
            let key = (rest.report.instrument, rest.due.position_side);
            key == (update.instrument, update.position_side)
                && rest.due.side == update.side.opposite()
                && rest.due.qty > 0
                && update.transaction_time <= rest.due.made
        };
        self.out_of_order.rests.iter().position(concerns)
    }

    /// Gives the unowned part of a close to strategies whose own fills the venue made after it,
    /// because they held it then. Returns their shares, and the remainder.
    pub(super) fn share_with_later_fills(
        &mut self,
        instrument: InstrumentId,
        mut rest: Due,
        by: Option<ForcedOrder>,
    ) -> (Vec<ForcedShare>, Due) {
        self.out_of_order.forget(self.now);
        let mut shares = Vec::new();
        for place in 0..self.out_of_order.fills.len() {
            let fill = &mut self.out_of_order.fills[place];
            let concerns = (fill.instrument, fill.position_side, fill.side)
                == (instrument, rest.position_side, rest.side)
                && fill.made > rest.made;
            let qty = fill.qty.min(rest.qty);
            if !concerns || qty <= 0 || rest.made == Time::default() {
                continue;
            }
            fill.qty -= qty;
            let strategy = fill.strategy;
            let (part, remaining) = rest.split(qty);
            rest = remaining;
            shares.push(self.give_share(strategy, instrument, &part, by));
        }
        (shares, rest)
    }

    /// How much booked own fills that the venue made after a moment moved a position.
    pub(super) fn own_fills_after(&self, id: InstrumentId, side: PositionSide, at: Time) -> i64 {
        if at == Time::default() {
            return 0;
        }
        let fills = self.out_of_order.fills.iter();
        let later = fills
            .filter(|fill| (fill.instrument, fill.position_side) == (id, side) && fill.made > at);
        later.map(|fill| fill.side.sign() * fill.qty).sum()
    }

    /// Keeps the unowned part of a forced close: an earlier fill may still be reported.
    pub(super) fn keep_rest(&mut self, due: Due, report: &ForcedCloseReport) {
        if due.qty <= 0 || due.made == Time::default() {
            return;
        }
        self.out_of_order.forget(self.now);
        let report = ForcedCloseReport {
            shares: Vec::new(),
            ..report.clone()
        };
        let told = self.now;
        self.out_of_order
            .rests
            .push_back(Rest { told, due, report });
    }

    /// Notes how much a listed outside trade moved a position without closing it. A forced order
    /// with another id does not explain it.
    pub(super) fn note_listed_shift(&mut self, update: &OrderUpdate, by: i64) {
        if by == 0 {
            return;
        }
        let (id, side) = (update.instrument, update.position_side);
        self.forget_listed_shifts();
        self.note_shift(id, side, by);
        self.listed_shifts.push_back(ListedShift {
            told: self.now,
            instrument: id,
            position_side: side,
            order_id: update.order_id,
            qty: by,
        });
    }

    /// Drops old listed trades. No forced order with their id was listed for long, so people made
    /// these trades.
    fn forget_listed_shifts(&mut self) {
        let now = self.now;
        let is_old = |shift: &ListedShift| now > shift.told.plus_ms(KEPT_MS);
        while self.listed_shifts.len() >= REMEMBERED_MAX
            || self.listed_shifts.front().is_some_and(is_old)
        {
            let Some(shift) = self.listed_shifts.pop_front() else {
                return;
            };
            let key = (shift.instrument, shift.position_side);
            if let Some((moved, _)) = self.out_of_order.moved.get_mut(&key) {
                *moved -= shift.qty;
            }
        }
    }

    /// Notes that an accepted snapshot moves a position and closes no held position.
    pub(super) fn note_moved_position(&mut self, told: &PositionUpdate) {
        let (id, side) = (told.instrument, told.position_side);
        if usize::from(id.0) >= self.instruments.len() || self.surface_of(id) != Surface::Futures {
            return;
        }
        // If the account was never known, the snapshot does not show a change.
        if self.agreed_at(Surface::Futures).is_none() {
            return;
        }
        self.note_shift(id, side, told.qty.0 - self.account_qty(id, side));
    }

    /// Notes that a position moved by this quantity, and that no held position was closed.
    fn note_shift(&mut self, id: InstrumentId, side: PositionSide, by: i64) {
        if by != 0 {
            let now = self.now;
            let (moved, at) = self.out_of_order.moved.entry((id, side)).or_default();
            (*moved, *at) = (*moved + by, now);
        }
    }

    /// Whether a position moved so, and no forced close explains it yet.
    pub(super) fn is_shifted(&self, id: InstrumentId, side: PositionSide) -> bool {
        let moved = self.out_of_order.moved.get(&(id, side));
        moved.is_some_and(|(qty, _)| *qty != 0)
    }

    /// Instruments whose position a snapshot moved just now, with no outside close that explains
    /// it.
    pub(super) fn instruments_moved_now(&self) -> BTreeSet<InstrumentId> {
        let moved = self.out_of_order.moved.iter();
        let now = moved.filter(|(_, (_, at))| *at == self.now);
        now.map(|((id, _), _)| *id).collect()
    }

    /// Takes the part that a forced close explains out of the moves by snapshots and listed trades,
    /// and returns that quantity. If the `order` of the forced close is known, trades of other
    /// orders do not count.
    pub(super) fn take_moved_position(
        &mut self,
        id: InstrumentId,
        side: PositionSide,
        closing: Side,
        qty: i64,
        order: Option<VenueOrderId>,
    ) -> i64 {
        let Some((moved, _)) = self.out_of_order.moved.get_mut(&(id, side)) else {
            return 0;
        };
        let concerns = |shift: &&ListedShift| (shift.instrument, shift.position_side) == (id, side);
        let is_foreign = |shift: &&ListedShift| order.is_some_and(|own| own != shift.order_id);
        let listed = self.listed_shifts.iter().filter(concerns);
        let foreign: i64 = listed.filter(is_foreign).map(|shift| shift.qty).sum();
        let mut open = *moved - foreign;
        let taken = take_closed(&mut open, closing, qty);
        *moved = open + foreign;
        if taken > 0 {
            self.listed_shifts
                .retain(|shift| !concerns(&shift) || is_foreign(&shift));
        }
        taken
    }

    /// Reports that a strategy bears a part of a close that was reported earlier. The reaction
    /// followed then.
    fn tell_late_share(&mut self, report: &ForcedCloseReport, part: &Due, share: ForcedShare) {
        let report = ForcedCloseReport {
            qty: part.qty,
            quote: part.quote,
            realized_pnl: share.realized_pnl,
            fee: part.fee,
            shares: vec![share],
            unowned: 0,
            left: self.account_qty(report.instrument, report.position_side),
            latched: false,
            ..report.clone()
        };
        self.forced.reports.add_share(&report, share);
        self.record_forced_close(&report);
        self.notices.push_back(Notice::ForcedClose {
            time: self.now,
            report: Box::new(report),
        });
    }

    /// Takes over what an earlier process remembered.
    pub(super) fn inherit_order_of_fills(&mut self, from: &Self, names: &Names) {
        for fill in &from.out_of_order.fills {
            let strategy = names.strategies.get(&fill.strategy).copied();
            let instrument = names.instruments.get(&fill.instrument).copied();
            if let Some((strategy, instrument)) = strategy.zip(instrument) {
                self.out_of_order.fills.push_back(OwnFill {
                    strategy,
                    instrument,
                    ..*fill
                });
            }
        }
        for rest in &from.out_of_order.rests {
            if let Some(instrument) = names.instruments.get(&rest.report.instrument) {
                let mut rest = rest.clone();
                rest.report.instrument = *instrument;
                self.out_of_order.rests.push_back(rest);
            }
        }
    }
}
