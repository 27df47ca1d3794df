//! Balances that account events report and that the books do not have.
//!
//! The order event of a fill may be lost, and account snapshots may be behind, so that the books
//! keep a balance that the venue's own event contradicts. Each event reports the balance at its
//! moment. The books reach each of these balances as they book the fills. If they reach
//! none of them and no later one for `EXPLAINED_MS`, the run is degraded. This ends when the books
//! reach it, or when a snapshot that cannot be older agrees with the books.
//!
//! Commissions that are booked as estimates explain a difference of at most their size, for
//! [`ESTIMATED_MS`] at most. The balance stays remembered: either the books reach it with the true
//! commissions, or the run is degraded.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::ids::{AssetId, Time};
use windvane_model::order::Surface;
use windvane_model::protocol::AccountUpdate;

use crate::Evidence;
use crate::estimates::ESTIMATED_MS;
use crate::lag::READ_LAG_MS;

/// The fill of an account event arrives within this time, or the run is degraded.
const EXPLAINED_MS: i64 = 3_000;

/// At most this many reported balances are remembered per asset. If more arrive, the oldest keeps
/// its time.
const SUMS: usize = 64;

/// Balances that account events of the present user streams report and the books did not reach yet,
/// the oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct StatedBalances(BTreeMap<(Surface, AssetId), VecDeque<StatedBalance>>);

/// A balance as an event reported it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct StatedBalance {
    total: Amount,
    /// When the event arrived.
    reported_at: Time,
}

impl StatedBalances {
    /// Notes the balances of an account event. `newest` is the event without values that a newer
    /// event reported.
    pub fn note(&mut self, evidence: &Evidence<'_>, newest: &AccountUpdate) {
        let surface = newest.surface;
        for balance in &newest.balances {
            // A late event reports a balance that the books had a moment ago. It does not explain
            // the balances that wait.
            if evidence.had_recently(surface, balance.asset, balance.total) {
                continue;
            }
            let key = (surface, balance.asset);
            let sums = self.0.entry(key).or_default();
            if sums.len() == SUMS {
                sums.remove(1);
            }
            sums.push_back(StatedBalance {
                total: balance.total,
                reported_at: evidence.now,
            });
        }
    }

    /// Forgets balances that the books reached.
    pub fn review(&mut self, evidence: &Evidence<'_>, surface: Surface) {
        for (key, sums) in self.0.iter_mut().filter(|((of, _), _)| *of == surface) {
            // True commissions that replaced estimates have changed the remembered balances.
            let is_reached = |sum: &StatedBalance| {
                evidence.may_be_stated(key.0, key.1, sum.total)
                    || evidence.had_recently(key.0, key.1, sum.total)
            };
            if let Some(reached) = sums.iter().rposition(is_reached) {
                sums.drain(..=reached);
            }
        }
        self.0.retain(|_, sums| !sums.is_empty());
    }

    /// Whether the books did not reach a balance in time.
    pub fn is_overdue(&self, evidence: &Evidence<'_>, surface: Surface) -> bool {
        let now = evidence.now;
        self.0.iter().any(|((of, asset), sums)| {
            let is_estimated =
                |sum: &StatedBalance| evidence.estimates_explain(surface, *asset, sum.total);
            let is_late = |sum: &StatedBalance| now > sum.reported_at.plus_ms(EXPLAINED_MS);
            // By then the true commissions of that time are booked.
            let is_old = |sum: &StatedBalance| now > sum.reported_at.plus_ms(ESTIMATED_MS);
            *of == surface && sums.front().is_some_and(is_late) && {
                let estimated = sums.iter().rposition(is_estimated);
                let first = sums.get(estimated.map_or(0, |place| place + 1));
                first.is_some_and(is_late) || sums.front().is_some_and(is_old)
            }
        })
    }

    /// Drops events that a snapshot refutes: it agrees with the books and was requested so long
    /// after the event that it cannot be older.
    pub fn refute(&mut self, surface: Surface, asked: Time) {
        for (_, sums) in (self.0.iter_mut()).filter(|((of, _), _)| *of == surface) {
            sums.retain(|sum| asked < sum.reported_at.plus_ms(READ_LAG_MS));
        }
    }

    /// Drops all reported balances of a surface. Either the books match a snapshot, or earlier
    /// events may be lost.
    pub fn forget(&mut self, surface: Surface) {
        self.0.retain(|(of, _), _| *of != surface);
    }
}

impl Evidence<'_> {
    fn had_recently(&self, surface: Surface, asset: AssetId, total: Amount) -> bool {
        let connection = self.connection(surface);
        let is_same = |known| self.is_same(surface, asset, total, known);
        connection
            .is_some_and(|connection| connection.history.had_one_balance(self.now, asset, is_same))
    }

    /// Whether the books have the reported balance, apart from rounding and later commissions.
    fn may_be_stated(&self, surface: Surface, asset: AssetId, total: Amount) -> bool {
        let known = self.balance(surface, asset).total;
        self.is_same(surface, asset, total, known)
            || self.may_lack_fees(surface, asset, total - known)
    }
}
