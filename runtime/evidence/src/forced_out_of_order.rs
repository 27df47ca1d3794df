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
use windvane_model::forced::ForcedCloseReport;
use windvane_model::ids::{InstrumentId, StrategyId, Time, VenueOrderId};
use windvane_model::names::Names;
use windvane_model::order::{PositionSide, Side};
use windvane_model::protocol::{Fill, OrderUpdate};

use crate::PositionKey;
use crate::forced::DueClose;
use crate::outside_closes::take_closed;

/// At most this many own fills and parts of forced closes are remembered, and for this long.
/// Snapshots may show a close half a minute later, and the list of forced orders later still.
const REMEMBERED_MAX: usize = 256;

const KEPT_MS: i64 = 120_000;

/// Fills and closes that may turn out to be reported out of order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct OutOfOrder {
    /// The last own fills.
    fills: VecDeque<OwnFill>,
    /// The parts of the last forced closes that no strategy held.
    unowned_parts: VecDeque<UnownedPart>,
    /// How much snapshots moved positions, where that closed no held position, and when.
    moved: BTreeMap<(InstrumentId, PositionSide), (i64, Time)>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct OwnFill {
    reported_at: Time,
    /// The venue's time.
    made: Time,
    strategy: StrategyId,
    instrument: InstrumentId,
    position_side: PositionSide,
    side: Side,
    qty: i64,
}

/// How much a listed outside trade moved a position, beyond what it closed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ListedShift {
    reported_at: Time,
    instrument: InstrumentId,
    position_side: PositionSide,
    order_id: VenueOrderId,
    qty: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct UnownedPart {
    reported_at: Time,
    due: DueClose,
    /// The report of the close, without shares.
    report: ForcedCloseReport,
}

/// Positions that listed outside trades moved, the newest at the end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ListedShifts(VecDeque<ListedShift>);

impl OutOfOrder {
    fn forget(&mut self, now: Time) {
        let is_old = |reported_at: Time| now > reported_at.plus_ms(KEPT_MS);
        while self.fills.len() > REMEMBERED_MAX
            || (self.fills.front()).is_some_and(|first| is_old(first.reported_at))
        {
            self.fills.pop_front();
        }
        while self.unowned_parts.len() > REMEMBERED_MAX
            || (self.unowned_parts.front()).is_some_and(|first| is_old(first.reported_at))
        {
            self.unowned_parts.pop_front();
        }
        self.moved.retain(|_, (_, at)| !is_old(*at));
    }

    /// Takes the parts of forced closes that came after this own fill and closed the position that
    /// the fill opened, and remembers the fill.
    pub fn note_own_fill(
        &mut self,
        strategy: StrategyId,
        update: &OrderUpdate,
        fill: &Fill,
        now: Time,
    ) -> Vec<(DueClose, ForcedCloseReport)> {
        self.forget(now);
        let mut left = fill.qty.0;
        let mut parts = Vec::new();
        while let Some(place) = self.unowned_part_before(update).filter(|_| left > 0) {
            let rest = &mut self.unowned_parts[place];
            let qty = left.min(rest.due.qty);
            let (part, remaining) = rest.due.split(qty);
            rest.due = remaining;
            parts.push((part, rest.report.clone()));
            left -= qty;
        }
        self.fills.push_back(OwnFill {
            reported_at: now,
            made: update.transaction_time,
            strategy,
            instrument: update.instrument,
            position_side: update.position_side,
            side: update.side,
            qty: fill.qty.0,
        });
        parts
    }

    /// A part of a forced close that came after this own fill and closed the position that the fill
    /// opened.
    fn unowned_part_before(&self, update: &OrderUpdate) -> Option<usize> {
        let concerns = |rest: &UnownedPart| {
            let key = (rest.report.instrument, rest.due.position_side);
            key == (update.instrument, update.position_side)
                && rest.due.side == update.side.opposite()
                && rest.due.qty > 0
                && update.transaction_time <= rest.due.made
        };
        self.unowned_parts.iter().position(concerns)
    }

    /// Divides the unowned part of a close among the strategies whose own fills the venue made
    /// after it, because they held it then. Returns their parts, and the remainder.
    pub fn take_later_fills(
        &mut self,
        instrument: InstrumentId,
        mut rest: DueClose,
        now: Time,
    ) -> (Vec<(StrategyId, DueClose)>, DueClose) {
        self.forget(now);
        let mut parts = Vec::new();
        for fill in &mut self.fills {
            let concerns = (fill.instrument, fill.position_side, fill.side)
                == (instrument, rest.position_side, rest.side)
                && fill.made > rest.made;
            let qty = fill.qty.min(rest.qty);
            if !concerns || qty <= 0 || rest.made == Time::default() {
                continue;
            }
            fill.qty -= qty;
            let (part, remaining) = rest.split(qty);
            rest = remaining;
            parts.push((fill.strategy, part));
        }
        (parts, rest)
    }

    /// How much booked own fills that the venue made after a moment moved a position.
    pub fn own_fills_after(&self, key: PositionKey, at: Time) -> i64 {
        if at == Time::default() {
            return 0;
        }
        let later = self
            .fills
            .iter()
            .filter(|fill| (fill.instrument, fill.position_side) == key && fill.made > at);
        later.map(|fill| fill.side.sign() * fill.qty).sum()
    }

    /// Keeps the unowned part of a forced close: an earlier fill may still be reported.
    pub fn keep_unowned_part(&mut self, due: DueClose, report: &ForcedCloseReport, now: Time) {
        if due.qty <= 0 || due.made == Time::default() {
            return;
        }
        self.forget(now);
        let report = ForcedCloseReport {
            shares: Vec::new(),
            ..report.clone()
        };
        let reported_at = now;
        self.unowned_parts.push_back(UnownedPart {
            reported_at,
            due,
            report,
        });
    }

    /// Notes that a position moved by this quantity, and that no held position was closed.
    pub fn note_shift(&mut self, key: PositionKey, by: i64, now: Time) {
        if by != 0 {
            let (moved, at) = self.moved.entry(key).or_default();
            (*moved, *at) = (*moved + by, now);
        }
    }

    /// Whether a position moved so, and no forced close explains it yet.
    pub fn is_shifted(&self, key: PositionKey) -> bool {
        let moved = self.moved.get(&key);
        moved.is_some_and(|(qty, _)| *qty != 0)
    }

    /// Instruments whose position a snapshot moved at this time, with no outside close that
    /// explains it.
    pub fn moved_at(&self, now: Time) -> BTreeSet<InstrumentId> {
        let moved = self.moved.iter();
        let now = moved.filter(|(_, (_, at))| *at == now);
        now.map(|((id, _), _)| *id).collect()
    }

    /// Takes over what an earlier process remembered.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        for fill in &old.fills {
            let strategy = names.strategies.get(&fill.strategy).copied();
            let instrument = names.instruments.get(&fill.instrument).copied();
            if let Some((strategy, instrument)) = strategy.zip(instrument) {
                self.fills.push_back(OwnFill {
                    strategy,
                    instrument,
                    ..*fill
                });
            }
        }
        for rest in &old.unowned_parts {
            if let Some(instrument) = names.instruments.get(&rest.report.instrument) {
                let mut rest = rest.clone();
                rest.report.instrument = *instrument;
                self.unowned_parts.push_back(rest);
            }
        }
    }
}

impl ListedShifts {
    /// Notes how much a listed outside trade moved a position without closing it. A forced order
    /// with another id does not explain it.
    pub fn note(
        &mut self,
        out_of_order: &mut OutOfOrder,
        update: &OrderUpdate,
        by: i64,
        now: Time,
    ) {
        if by == 0 {
            return;
        }
        let (id, side) = (update.instrument, update.position_side);
        self.forget(out_of_order, now);
        out_of_order.note_shift((id, side), by, now);
        self.0.push_back(ListedShift {
            reported_at: now,
            instrument: id,
            position_side: side,
            order_id: update.order_id,
            qty: by,
        });
    }

    /// Drops old listed trades. No forced order with their id was listed for long, so people made
    /// these trades.
    fn forget(&mut self, out_of_order: &mut OutOfOrder, now: Time) {
        let is_old = |shift: &ListedShift| now > shift.reported_at.plus_ms(KEPT_MS);
        while self.0.len() >= REMEMBERED_MAX || self.0.front().is_some_and(is_old) {
            let Some(shift) = self.0.pop_front() else {
                return;
            };
            let key = (shift.instrument, shift.position_side);
            if let Some((moved, _)) = out_of_order.moved.get_mut(&key) {
                *moved -= shift.qty;
            }
        }
    }

    /// Takes the part that a forced close explains out of the moves by snapshots and listed trades,
    /// and returns that quantity. If the `order` of the forced close is known, trades of other
    /// orders do not count.
    pub fn take_moved(
        &mut self,
        out_of_order: &mut OutOfOrder,
        key: PositionKey,
        closing: Side,
        qty: i64,
        order: Option<VenueOrderId>,
    ) -> i64 {
        let Some((moved, _)) = out_of_order.moved.get_mut(&key) else {
            return 0;
        };
        let concerns = |shift: &&ListedShift| (shift.instrument, shift.position_side) == key;
        let is_foreign = |shift: &&ListedShift| order.is_some_and(|own| own != shift.order_id);
        let listed = self.0.iter().filter(concerns);
        let foreign: i64 = listed.filter(is_foreign).map(|shift| shift.qty).sum();
        let mut open = *moved - foreign;
        let taken = take_closed(&mut open, closing, qty);
        *moved = open + foreign;
        if taken > 0 {
            self.0
                .retain(|shift| !concerns(&shift) || is_foreign(&shift));
        }
        taken
    }
}
