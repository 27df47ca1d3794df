//! Positions that account events report and that the books do not have.
//!
//! The venue may report a close only by its account event. While strategies keep trading, no two
//! account snapshots agree, so that snapshots do not show the close for a long time. But each
//! account event of a fill reports the position. If the books do not have a reported position and
//! did not have it before, and no fill explains it for [`EXPLAINED_MS`], the run is degraded.
//! Strategies then open nothing until a fill or a snapshot explains the position. Snapshots agree
//! in that state, and show what happened.
//!
//! An event may arrive after own fills that are newer than it. The engine then compares it with the
//! books at the time when the venue made it. The fills may have reversed the position, so that the
//! close would look like an opening beside the present books.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_model::doubt::Doubt;
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::order::{PositionSide, Surface};
use windvane_model::protocol::{AccountReason, AccountUpdate};

use super::Engine;
use super::lag::READ_LAG_MS;

/// The fill of an account event arrives within this time, or the run is degraded.
const EXPLAINED_MS: i64 = 3_000;
/// An own fill is booked at most this long after the venue made it, if no event is lost.
const BOOKED_MS: i64 = 1_000;

type Key = (InstrumentId, PositionSide);

/// Positions that account events of the present user stream report and the books do not have.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct StatedPositions {
    rows: BTreeMap<Key, Stated>,
    /// Instruments with outside trades that no order event reported, for which the engine has not
    /// asked yet whether the venue closed a position.
    untold: BTreeSet<InstrumentId>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Stated {
    qty: i64,
    /// A later event left out the position: it may be flat now.
    left_out: bool,
    /// When the newest event that reports it arrived.
    told: Time,
    /// Since when the books differ from every such event.
    since: Time,
    /// The venue's time of the first of these events.
    made: Time,
}

impl Engine {
    /// Compares the positions of an account event with the books. `newest` is the event without
    /// values that a newer event reported.
    pub(super) fn note_stated_positions(&mut self, update: &AccountUpdate, newest: &AccountUpdate) {
        if update.surface != Surface::Futures {
            return;
        }
        if moves_positions(update.reason) {
            let listed = |key: &Key| {
                let mut positions = update.positions.iter();
                positions.any(|told| (told.instrument, told.position_side) == *key)
            };
            for (key, stated) in &mut self.stated_positions.rows {
                stated.left_out |= !listed(key);
            }
        }
        let mut closed = Vec::new();
        for told in &newest.positions {
            let key @ (id, side) = (told.instrument, told.position_side);
            if usize::from(id.0) >= self.instruments.len() {
                continue;
            }
            let known = self.stated_positions.rows.get(&key).copied();
            let held = self.ledgers.account.at(id, side).position.qty;
            // An event may be late: it reports a position that the books had a moment ago.
            if known.is_none() && (held == told.qty.0 || self.held_lately(key, told.qty.0)) {
                continue;
            }
            let stated = Stated {
                qty: told.qty.0,
                left_out: false,
                told: self.now,
                since: known.map_or(self.now, |known| known.since),
                made: known.map_or(update.event_time, |known| known.made),
            };
            self.stated_positions.rows.insert(key, stated);
            if self.was_closed_before_fills(update.event_time, key, told.qty.0) {
                closed.push(key);
            }
        }
        self.state_closes(&closed);
        self.review_stated_positions();
    }

    /// Whether an event from before own fills reports a position that is smaller than in the books
    /// of that time, or on the other side, and no open own order may have closed it.
    fn was_closed_before_fills(&self, made: Time, key: Key, stated: i64) -> bool {
        let live = self.live.as_ref();
        let line = live.and_then(|live| live.lines.get(&Surface::Futures));
        let (Some(line), Some(offset_ns)) = (line, self.clock_offset_ns(Surface::Futures)) else {
            return false;
        };
        let made = Time(made.0.saturating_sub(offset_ns));
        let booked = made.plus_ms(BOOKED_MS);
        let held = self.account_qty(key.0, key.1);
        let held_at = |at| line.past.qty_at(self.now, at, key, held);
        // Own fills of that moment may have been booked a little later.
        let (Some(before), Some(after)) = (held_at(made), held_at(booked)) else {
            return false;
        };
        // If own fills changed nothing since then, the present books show what the event reports.
        before != held
            && is_smaller(stated, before)
            && is_smaller(stated, after)
            && !self.may_have_closed(key, before, booked)
    }

    fn held_lately(&self, key: Key, qty: i64) -> bool {
        let live = self.live.as_ref();
        let line = live.and_then(|live| live.lines.get(&Surface::Futures));
        line.is_some_and(|line| line.past.held(self.now, key, qty))
    }

    /// Forgets positions that the books have by now, and sets or clears the degraded reasons.
    pub(super) fn review_stated_positions(&mut self) {
        let account = &self.ledgers.account;
        self.stated_positions.rows.retain(|(id, side), stated| {
            let held = account.at(*id, *side).position.qty;
            held != stated.qty && !(stated.left_out && held == 0)
        });
        self.doubt_stated_positions();
    }

    /// Sets the degraded reasons of positions that nothing explained in time.
    fn doubt_stated_positions(&mut self) {
        let now = self.now;
        let rows = self.stated_positions.rows.iter();
        let overdue = rows.filter(|(key, stated)| {
            now > stated.since.plus_ms(EXPLAINED_MS) && !self.misses_own_fills(**key, stated.qty)
        });
        let overdue: Vec<Key> = overdue.map(|(key, _)| *key).collect();
        let instruments: BTreeSet<InstrumentId> = overdue.iter().map(|(id, _)| *id).collect();
        let doubts = self.doubts();
        let known = doubts.iter().filter_map(|doubt| match doubt {
            Doubt::StatedPosition(id) => Some(*id),
            _ => None,
        });
        let known: BTreeSet<InstrumentId> = known.collect();
        let ended: Vec<_> = (known.difference(&instruments).copied())
            .filter(|id| !self.examines_trades(*id))
            .collect();
        let begun: Vec<_> = instruments.difference(&known).copied().collect();
        self.state_closes(&self.stated_smaller(&overdue));
        if ended.is_empty() && begun.is_empty() {
            return;
        }
        for id in ended {
            self.set_doubt(Doubt::StatedPosition(id), false);
        }
        for id in begun {
            self.set_doubt(Doubt::StatedPosition(id), true);
        }
        self.update_state();
    }

    /// Selects positions that events report as smaller than the books, or on the other side:
    /// something closed them. In the other positions, outside parties opened more.
    fn stated_smaller(&self, keys: &[Key]) -> Vec<Key> {
        let is_smaller = |key: &&Key| {
            let held = self.account_qty(key.0, key.1);
            let stated = self.stated_positions.rows.get(key);
            stated.is_some_and(|stated| is_smaller(stated.qty, held))
        };
        keys.iter().filter(is_smaller).copied().collect()
    }

    /// Whether it is still unknown if the venue made an outside trade to close a position.
    fn examines_trades(&self, id: InstrumentId) -> bool {
        self.stated_positions.untold.contains(&id) || self.awaits_forced_orders(id)
    }

    /// Whether own orders executed more than is booked, and the missing fills in flight explain the
    /// reported position.
    fn misses_own_fills(&self, (id, side): Key, qty: i64) -> bool {
        let difference = qty - self.account_qty(id, side);
        let of_position = self.orders.iter().filter(|order| {
            let terms = &order.terms;
            (terms.instrument, terms.position_side) == (id, side)
                && terms.side.sign() == difference.signum()
        });
        let missing = of_position.map(|order| (order.reported_qty - order.executed_qty).max(0));
        missing.sum::<i64>() >= difference.saturating_abs()
    }

    /// Drops events that a snapshot refutes: it agrees with the books and was requested so long
    /// after the event that it cannot be older.
    pub(super) fn refute_stated_positions(&mut self, asked: Time) {
        let rows = &mut self.stated_positions.rows;
        rows.retain(|_, stated| asked < stated.told.plus_ms(READ_LAG_MS));
        self.doubt_stated_positions();
    }

    /// Drops all reported positions. Either the books match a snapshot, or earlier events may be
    /// lost.
    pub(super) fn forget_stated_positions(&mut self) {
        self.stated_positions.rows.clear();
        self.doubt_stated_positions();
    }

    /// The venue's time of the first event that reports a position differently from the books.
    pub(super) fn stated_otherwise_since(&self, key: Key) -> Option<Time> {
        self.stated_positions
            .rows
            .get(&key)
            .map(|stated| stated.made)
    }

    /// Notes an outside trade that was read and that no order event reported.
    pub(super) fn note_untold_trade(&mut self, id: InstrumentId) {
        self.stated_positions.untold.insert(id);
    }

    /// Takes the instruments with such trades.
    pub(super) fn take_untold_trades(&mut self) -> BTreeSet<InstrumentId> {
        std::mem::take(&mut self.stated_positions.untold)
    }
}

/// Whether an account event of this kind may come from a fill.
const fn moves_positions(reason: AccountReason) -> bool {
    !matches!(reason, AccountReason::FundingFee | AccountReason::Other)
}

/// Whether the position `held` was closed at least in part, given the quantity `stated` by the
/// venue.
const fn is_smaller(stated: i64, held: i64) -> bool {
    held.signum() * stated.signum() < 0 || stated.saturating_abs() < held.saturating_abs()
}
