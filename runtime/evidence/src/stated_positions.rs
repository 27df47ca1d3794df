//! Positions that account events report and that the books do not have.
//!
//! The venue may report a close only by its account event. While strategies keep trading, no two
//! account snapshots agree, so that snapshots do not show the close for a long time. But each
//! account event of a fill reports the position. If the books do not have a reported position and
//! did not have it before, and no fill explains it for `EXPLAINED_MS`, the run is degraded.
//! Strategies then open nothing until a fill or a snapshot explains the position. Snapshots agree
//! in that state, and show what happened.
//!
//! An event may arrive after own fills that are newer than it. The engine then compares it with the
//! books at the time when the venue made it. The fills may have reversed the position, so that the
//! close would look like an opening beside the present books.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_model::holding::Ledger;
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::order::Surface;
use windvane_model::protocol::{AccountReason, AccountUpdate};

use crate::lag::READ_LAG_MS;
use crate::{Evidence, PositionKey};

/// The fill of an account event arrives within this time, or the run is degraded.
const EXPLAINED_MS: i64 = 3_000;

/// An own fill is booked at most this long after the venue made it, if no event is lost.
const BOOKED_MS: i64 = 1_000;

/// Positions that account events of the present user stream report and the books do not have.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct StatedPositions {
    rows: BTreeMap<PositionKey, ContradictingPosition>,
    /// Instruments with outside trades that no order event reported, for which the engine has not
    /// asked yet whether the venue closed a position.
    unreported_trades: BTreeSet<InstrumentId>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ContradictingPosition {
    qty: i64,
    /// A later event left out the position: it may be flat now.
    left_out: bool,
    /// When the newest event that reports it arrived.
    reported_at: Time,
    /// Since when the books differ from every such event.
    since: Time,
    /// The venue's time of the first of these events.
    made: Time,
}

impl StatedPositions {
    /// Compares the positions of an account event with the books. `newest` is the event without
    /// values that a newer event reported. Returns the positions that were closed before own fills.
    pub fn note(
        &mut self,
        evidence: &Evidence<'_>,
        update: &AccountUpdate,
        newest: &AccountUpdate,
    ) -> Vec<PositionKey> {
        if moves_positions(update.reason) {
            let listed = |key: &PositionKey| {
                let mut positions = update.positions.iter();
                positions.any(|reported| (reported.instrument, reported.position_side) == *key)
            };
            for (key, stated) in &mut self.rows {
                stated.left_out |= !listed(key);
            }
        }
        let now = evidence.now;
        let mut closed = Vec::new();
        for reported in &newest.positions {
            let key @ (id, side) = (reported.instrument, reported.position_side);
            if usize::from(id.0) >= evidence.instruments.len() {
                continue;
            }
            let known = self.rows.get(&key).copied();
            let held = evidence.account_qty(id, side);
            // An event may be late: it reports a position that the books had a moment ago.
            if known.is_none()
                && (held == reported.qty.0 || evidence.held_recently(key, reported.qty.0))
            {
                continue;
            }
            let stated = ContradictingPosition {
                qty: reported.qty.0,
                left_out: false,
                reported_at: now,
                since: known.map_or(now, |known| known.since),
                made: known.map_or(update.event_time, |known| known.made),
            };
            self.rows.insert(key, stated);
            if evidence.was_closed_before_fills(update.event_time, key, reported.qty.0) {
                closed.push(key);
            }
        }
        closed
    }

    /// Forgets positions that the books have by now.
    pub fn review(&mut self, account: &Ledger) {
        self.rows.retain(|(id, side), stated| {
            let held = account.at(*id, *side).position.qty;
            held != stated.qty && !(stated.left_out && held == 0)
        });
    }

    /// Positions that nothing explained in time.
    pub fn overdue(&self, evidence: &Evidence<'_>) -> Vec<PositionKey> {
        let overdue = self.rows.iter().filter(|(key, stated)| {
            evidence.now > stated.since.plus_ms(EXPLAINED_MS)
                && !evidence.misses_own_fills(**key, stated.qty)
        });
        overdue.map(|(key, _)| *key).collect()
    }

    /// Selects positions that events report as smaller than the books, or on the other side:
    /// something closed them. In the other positions, outside parties opened more.
    pub fn smaller(&self, evidence: &Evidence<'_>, keys: &[PositionKey]) -> Vec<PositionKey> {
        let is_smaller = |key: &&PositionKey| {
            let held = evidence.account_qty(key.0, key.1);
            let stated = self.rows.get(key);
            stated.is_some_and(|stated| is_smaller(stated.qty, held))
        };
        keys.iter().filter(is_smaller).copied().collect()
    }

    /// Drops events that a snapshot refutes: it agrees with the books and was requested so long
    /// after the event that it cannot be older.
    pub fn refute(&mut self, asked: Time) {
        self.rows
            .retain(|_, stated| asked < stated.reported_at.plus_ms(READ_LAG_MS));
    }

    /// Drops all reported positions.
    pub fn forget(&mut self) {
        self.rows.clear();
    }

    /// The venue's time of the first event that reports a position differently from the books.
    pub fn stated_otherwise_since(&self, key: PositionKey) -> Option<Time> {
        self.rows.get(&key).map(|stated| stated.made)
    }

    /// Whether outside trades of an instrument were read that no order event reported, and it is
    /// not known yet whether the venue closed a position.
    pub fn has_unreported_trade(&self, id: InstrumentId) -> bool {
        self.unreported_trades.contains(&id)
    }

    /// Notes an outside trade that was read and that no order event reported.
    pub fn note_unreported_trade(&mut self, id: InstrumentId) {
        self.unreported_trades.insert(id);
    }

    /// Takes the instruments with such trades.
    pub fn take_unreported_trades(&mut self) -> BTreeSet<InstrumentId> {
        std::mem::take(&mut self.unreported_trades)
    }
}

impl Evidence<'_> {
    /// Whether an event from before own fills reports a position that is smaller than in the books
    /// of that time, or on the other side, and no open own order may have closed it.
    fn was_closed_before_fills(&self, made: Time, key: PositionKey, stated: i64) -> bool {
        let connection = self.connection(Surface::Futures);
        let (Some(connection), Some(offset_ns)) =
            (connection, self.clock_offset_ns(Surface::Futures))
        else {
            return false;
        };
        let made = Time(made.0.saturating_sub(offset_ns));
        let booked = made.plus_ms(BOOKED_MS);
        let held = self.account_qty(key.0, key.1);
        let held_at = |at| connection.history.qty_at(self.now, at, key, held);
        // Own fills of that moment may have been booked a little later.
        let (Some(before), Some(after)) = (held_at(made), held_at(booked)) else {
            return false;
        };
        // If own fills changed nothing between that moment and now, the present books show what the
        // event reports.
        before != held
            && is_smaller(stated, before)
            && is_smaller(stated, after)
            && !self.may_have_closed(key, before, booked)
    }

    fn held_recently(&self, key: PositionKey, qty: i64) -> bool {
        let connection = self.connection(Surface::Futures);
        connection.is_some_and(|connection| connection.history.had_position(self.now, key, qty))
    }

    /// Whether own orders executed more than is booked, and the missing fills in flight explain the
    /// reported position.
    fn misses_own_fills(&self, (id, side): PositionKey, qty: i64) -> bool {
        let difference = qty - self.account_qty(id, side);
        let of_position = self.orders.iter().filter(|order| {
            let terms = &order.terms;
            (terms.instrument, terms.position_side) == (id, side)
                && terms.side.sign() == difference.signum()
        });
        let missing = of_position.map(|order| (order.reported_qty - order.executed_qty).max(0));
        missing.sum::<i64>() >= difference.saturating_abs()
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
