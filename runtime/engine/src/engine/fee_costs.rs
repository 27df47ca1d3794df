//! Commissions in another asset than the equity asset: the engine requests the prices of such assets
//! and counts the costs (`windvane_evidence::fee_costs`).

use windvane_model::decimal::Amount;
use windvane_model::effect::{Effect, Notice};
use windvane_model::ids::AssetId;
use windvane_model::order::Surface;
use windvane_model::planted;
use windvane_model::protocol::{Fill, Outcome, Request};
use windvane_model::state_report::{StateReport, Subject};

use super::Engine;

impl Engine {
    /// The cost of the commission of a fill, if equity does not contain the commission asset.
    pub(super) fn cost_of_fee(&mut self, surface: Surface, fill: &Fill) -> Amount {
        let outside =
            self.evidence().is_outside_equity(surface, fill.fee_asset) && !planted!(OtherFeesFree);
        if fill.fee == Amount::ZERO || !outside {
            return Amount::ZERO;
        }
        if let Some(value) = self.evidence().value_in_equity(fill.fee_asset, fill.fee) {
            return value;
        }
        self.notify_unpriced(fill.fee_asset);
        let live = self.live.as_ref();
        let fee_ppm = live.map_or(0, |live| live.config.fee_estimate_ppm);
        if fill.fee > Amount::ZERO {
            fill.quote_qty.part(fee_ppm, 1_000_000)
        } else {
            Amount::ZERO
        }
    }

    /// A balance outside equity fell without an event: events left out commissions.
    pub(super) fn count_lost_asset_as_fee(&mut self, asset: AssetId, lost: Amount) {
        let value = self.evidence().value_in_equity(asset, lost);
        if value.is_none() {
            self.notify_unpriced(asset);
        }
        self.fee_costs.total += value.unwrap_or_else(|| self.evidence().estimated_fees(lost));
    }

    /// Commission assets without a known price; an estimate counts for them.
    pub fn unpriced_fees(&self) -> impl Iterator<Item = AssetId> {
        let evidence = self.evidence();
        let assets = self.fee_costs.unpriced();
        assets.filter(move |asset| evidence.value_in_equity(*asset, Amount::ZERO).is_none())
    }

    pub(super) fn notify_unpriced(&mut self, asset: AssetId) {
        if self.fee_costs.note_unpriced(asset) {
            self.notices.push_back(Notice::FeeUnpriced {
                time: self.now,
                asset,
            });
        }
    }

    /// Requests the prices of commission assets that no configured instrument prices.
    pub(super) fn ask_for_asset_prices(&mut self) {
        let Some(quote) = self.equity_asset() else {
            return;
        };
        let now = self.now;
        for asset in self.fee_costs.unpriced().collect::<Vec<_>>() {
            let is_known = self
                .evidence()
                .value_by_instrument(asset, Amount::ZERO)
                .is_some();
            if is_known || !self.asset_prices.is_due(asset, now) {
                continue;
            }
            self.asset_prices.note_asked(asset, now);
            self.emit(Effect::Send {
                record: 0,
                request: Box::new(Request::Read(Subject::AssetPrice { asset, quote })),
            });
        }
    }

    pub(super) fn take_asset_price(&mut self, asset: AssetId, outcome: &Outcome<StateReport>) {
        self.asset_prices.take(asset, outcome, self.now);
    }
}
