//! Commissions that only account events show are booked here; which these are is decided in
//! `windvane_evidence::stated_fees`.

use windvane_evidence::late_fees::{LateFee, SURFACE, shares_by_value};
use windvane_model::decimal::Amount;
use windvane_model::effect::Cause;
use windvane_model::ids::AssetId;
use windvane_model::order::Surface;
use windvane_model::protocol::BalanceUpdate;
use windvane_model::state_report::AccountSnapshot;

use super::Engine;

impl Engine {
    /// Books the commissions that an account event shows. Returns whether the books then match it,
    /// apart from rounding.
    pub(super) fn book_stated_fees(
        &mut self,
        surface: Surface,
        statement: &AccountSnapshot,
    ) -> bool {
        let Some(fees) = self.evidence().stated_fees(surface, statement) else {
            return false;
        };
        for (reported, fills) in &fees {
            self.book_stated_fee(reported, fills);
        }
        for (reported, fills) in &fees {
            self.forget_fills_with_fee(statement, reported.asset, fills);
        }
        true
    }

    fn book_stated_fee(&mut self, reported: &BalanceUpdate, fills: &[LateFee]) {
        let asset = reported.asset;
        let paid = self.balance(SURFACE, asset).total - reported.total;
        if fills
            .iter()
            .any(|late| self.evidence().quote_of(late) == asset)
        {
            self.charge_by_value(fills, paid);
        } else {
            let cost = self.cost_of_stated_fee(asset, paid, fills);
            self.charge_by_value(fills, cost);
            *self.other_fees.entry(asset).or_default() += paid;
            self.fee_costs.total += cost;
        }
        self.take_balance(SURFACE, reported, Cause::Commission);
        let values: Vec<Amount> = fills.iter().map(|late| late.value).collect();
        let shares = shares_by_value(&values, paid);
        let Some(connection) = self.connection_mut(SURFACE) else {
            return;
        };
        // A snapshot that is behind shows the balance after the commissions.
        for (late, share) in fills.iter().zip(shares) {
            connection.history.move_since(late.booked, asset, -share);
        }
    }

    /// The value of commissions in another asset.
    fn cost_of_stated_fee(&mut self, asset: AssetId, paid: Amount, fills: &[LateFee]) -> Amount {
        if !self.evidence().is_outside_equity(SURFACE, asset) {
            return Amount::ZERO;
        }
        let value = self.evidence().value_in_equity(asset, paid);
        value.unwrap_or_else(|| {
            self.notify_unpriced(asset);
            self.evidence().estimated_fees_of(fills.iter())
        })
    }

    /// Forgets fills whose commission is booked.
    fn forget_fills_with_fee(
        &mut self,
        statement: &AccountSnapshot,
        asset: AssetId,
        fills: &[LateFee],
    ) {
        let kept = self.evidence().fills_without_fee(statement, asset, fills);
        if let Some(kept) = kept {
            self.late_fees.keep(kept);
        }
    }

    /// Forgets older fills after an account event agreed with the books: fills from long before it
    /// had no commission.
    pub(super) fn forget_free_fills_by_event(
        &mut self,
        surface: Surface,
        statement: &AccountSnapshot,
    ) {
        let kept = self.evidence().fills_after_agreement(surface, statement);
        if let Some(kept) = kept {
            self.late_fees.keep(kept);
        }
    }

    /// Forgets the parts of the pending account event about positions that were closed since. If
    /// the venue lists the account's trades, nothing is forgotten here. The parts stay until the
    /// next account event: until then, the balance may be from before the close.
    pub(super) fn forget_older_lines(&mut self) {
        let Some(kept) = self.evidence().newer_lines() else {
            return;
        };
        let connection = self.connection_mut(SURFACE);
        if let Some((statement, _)) =
            connection.and_then(|connection| connection.pending_event.as_mut())
        {
            statement.positions = kept;
        }
    }
}
