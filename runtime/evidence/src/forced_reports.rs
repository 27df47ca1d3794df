//! The reports of forced closes, shown until the operator resumes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::forced::{ForcedCloseReport, ForcedShare};
use windvane_model::ids::{InstrumentId, StrategyId, Time, VenueOrderId};

/// At most this many reports are kept.
const REPORTS_MAX: usize = 32;

/// Reports since the operator last resumed, the newest at the end: one for each order of the venue.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ForcedReports(VecDeque<(Time, ForcedCloseReport)>);

impl ForcedReports {
    /// The reports, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &(Time, ForcedCloseReport)> {
        self.0.iter()
    }

    /// The operator resumed.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a fill of an order to the report of that order. An event may report the order before it
    /// trades: the first fill replaces that report.
    pub fn add(&mut self, now: Time, report: &ForcedCloseReport) {
        let order = (report.instrument, report.order_id);
        let is_same = |known: &ForcedCloseReport| (known.instrument, known.order_id) == order;
        let mut report = report.clone();
        for (_, known) in &self.0 {
            report.kill_switch_changed |=
                known.qty == 0 && is_same(known) && known.kill_switch_changed;
        }
        self.0
            .retain(|(_, known)| known.qty != 0 || !is_same(known));
        let mut reports = self.0.iter_mut();
        if report.order_id.0 != 0
            && let Some((_, known)) = reports.find(|(_, known)| is_same(known))
        {
            known.add(&report);
            return;
        }
        if self.0.len() >= REPORTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((now, report));
    }

    /// Adds a commission that arrived later than its fill. Returns each strategy's share, in
    /// proportion to its part of the close.
    pub fn add_fee(
        &mut self,
        order: (InstrumentId, VenueOrderId),
        fee: Amount,
    ) -> Vec<(StrategyId, Amount)> {
        let mut reports = self.0.iter_mut().rev();
        let known =
            reports.find(|(_, known)| (known.instrument, known.order_id) == order && known.qty > 0);
        let Some((_, known)) = known else {
            return Vec::new();
        };
        known.fee += fee;
        let whole = known.qty;
        let shares = known.shares.iter();
        shares
            .map(|share| (share.strategy, fee.part(share.qty, whole)))
            .collect()
    }

    /// Moves a part of a close from unowned to a strategy.
    pub fn add_share(&mut self, report: &ForcedCloseReport, share: ForcedShare) {
        let mut reports = self.0.iter_mut().rev();
        let known = reports.find(|(_, known)| {
            (known.instrument, known.order_id) == (report.instrument, report.order_id)
                && known.unowned >= share.qty
        });
        if let Some((_, known)) = known {
            known.unowned -= share.qty;
            known.add_share(share);
        }
    }
}
