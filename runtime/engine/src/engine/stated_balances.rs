//! Balances that account events state, and that the books do not have.
//!
//! The order event of a fill may be lost, and readings may be behind, so that the books keep a balance that
//! the venue's own event contradicts. Each event states what the balance was at its moment. The books reach
//! each of these sums as they book the fills. Where they do not reach one for [`EXPLAINED_MS`], nor a later
//! one, the run is degraded until they do, or until a reading that cannot be older agrees with the books.
//!
//! Commissions that are booked as estimates explain a sum that differs by no more, for [`ESTIMATED_MS`] at most.
//! It stays remembered: the books reach it with the true commissions, or the run is degraded.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::{AssetId, Time};
use crate::order::Surface;
use crate::protocol::AccountUpdate;

use super::Engine;
use super::doubt::Doubt;
use super::lag::READ_LAG_MS;
use super::late_fees::ESTIMATED_MS;

/// The fill of an account event comes within this, or the difference is a degraded reason.
const EXPLAINED_MS: i64 = 3_000;
/// So many sums are remembered for each balance. Where more come, the oldest keeps its time.
const SUMS: usize = 64;

/// Balances that account events of the present user streams state and the books did not reach yet, the oldest
/// first.
pub(super) type StatedBalances = BTreeMap<(Surface, AssetId), VecDeque<Sum>>;

/// A balance, as an event stated it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Sum {
    total: Amount,
    /// When the event came.
    told: Time,
}

impl Engine {
    /// Notes the balances of an account event. `newest` is what no newer event stated.
    pub(super) fn note_stated_balances(&mut self, newest: &AccountUpdate) {
        let surface = newest.surface;
        for balance in &newest.balances {
            // A late event states what the books had a moment ago, and explains nothing that waits.
            if self.had_lately(surface, balance.asset, balance.total) {
                continue;
            }
            let key = (surface, balance.asset);
            let sums = self.stated_balances.entry(key).or_default();
            if sums.len() == SUMS {
                sums.remove(1);
            }
            sums.push_back(Sum {
                total: balance.total,
                told: self.now,
            });
        }
        self.review_stated_balances(surface);
    }

    fn had_lately(&self, surface: Surface, asset: AssetId, total: Amount) -> bool {
        let line = self.live.as_ref().and_then(|live| live.lines.get(&surface));
        let is_same = |known| self.is_same(surface, asset, total, known);
        line.is_some_and(|line| line.past.had_one(self.now, asset, is_same))
    }

    /// Whether the books have what an event states, apart from rounding and later commissions.
    fn may_be_stated(&self, surface: Surface, asset: AssetId, total: Amount) -> bool {
        let known = self.balance(surface, asset).total;
        self.is_same(surface, asset, total, known)
            || self.may_lack_fees(surface, asset, total - known)
    }

    /// Forgets what the books reached, and sets and clears the degraded reason.
    pub(super) fn review_stated_balances(&mut self, surface: Surface) {
        let keys: Vec<_> = self.stated_balances.keys().copied().collect();
        for key in keys.into_iter().filter(|(of, _)| *of == surface) {
            let Some(sums) = self.stated_balances.get(&key) else {
                continue;
            };
            // True commissions that replaced estimates moved what the books had.
            let is_reached = |sum: &Sum| {
                self.may_be_stated(key.0, key.1, sum.total)
                    || self.had_lately(key.0, key.1, sum.total)
            };
            let reached = sums.iter().rposition(is_reached);
            if let (Some(reached), Some(sums)) = (reached, self.stated_balances.get_mut(&key)) {
                sums.drain(..=reached);
            }
        }
        self.stated_balances.retain(|_, sums| !sums.is_empty());
        self.doubt_stated_balances(surface);
    }

    fn doubt_stated_balances(&mut self, surface: Surface) {
        let now = self.now;
        let is_overdue = self.stated_balances.iter().any(|((of, asset), sums)| {
            let is_estimated = |sum: &Sum| self.estimates_explain(surface, *asset, sum.total);
            let is_late = |sum: &Sum| now > sum.told.plus_ms(EXPLAINED_MS);
            // The true commissions of its time are booked by then.
            let is_old = |sum: &Sum| now > sum.told.plus_ms(ESTIMATED_MS);
            *of == surface && sums.front().is_some_and(is_late) && {
                let estimated = sums.iter().rposition(is_estimated);
                let first = sums.get(estimated.map_or(0, |place| place + 1));
                first.is_some_and(is_late) || sums.front().is_some_and(is_old)
            }
        });
        let doubt = Doubt::StatedBalance(surface);
        let live = self.live.as_ref();
        if live.is_some_and(|live| live.doubts_any(&[doubt]) != is_overdue) {
            self.set_doubt(doubt, is_overdue);
            self.update_state();
        }
    }

    /// A reading that agrees with the books, and was asked for so long after an event that it cannot be
    /// behind it, refutes the event.
    pub(super) fn refute_stated_balances(&mut self, surface: Surface, asked: Time) {
        for (_, sums) in (self.stated_balances.iter_mut()).filter(|((of, _), _)| *of == surface) {
            sums.retain(|sum| asked < sum.told.plus_ms(READ_LAG_MS));
        }
        self.review_stated_balances(surface);
    }

    /// The books are as a reading says, or events of before may be lost.
    pub(super) fn forget_stated_balances(&mut self, surface: Surface) {
        self.stated_balances.retain(|(of, _), _| *of != surface);
        self.doubt_stated_balances(surface);
    }
}
