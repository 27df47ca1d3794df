//! Commissions in another asset than the one that equity is counted in. They lower a balance that equity
//! does not have, so their value is subtracted: at the price of a configured instrument of both assets,
//! else as an estimate by the value of the fill. The log names an asset without a price once, and the
//! status names it as long as it has none.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::decimal::{Amount, MARK_SCALE, div_half_even, pow10};
use crate::effect::Notice;
use crate::ids::AssetId;
use crate::order::Surface;
use crate::planted;
use crate::protocol::Fill;

use super::Engine;
use super::snapshot::Names;

/// The value of such commissions.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct FeeCosts {
    pub(super) total: Amount,
    /// Assets without a price of which people were told.
    unpriced: BTreeSet<AssetId>,
}

impl Engine {
    /// The value of an amount of an asset that equity does not count, in the equity asset; `None` where no
    /// configured instrument has its price.
    pub(super) fn value_in_equity(&self, asset: AssetId, amount: Amount) -> Option<Amount> {
        let equity = self.equity_asset()?;
        let mut instruments = self.instruments.iter().enumerate();
        instruments.find_map(|(index, rules)| {
            if rules.base != asset || rules.quote != equity {
                return None;
            }
            let market = &self.markets[index];
            let last = market
                .last
                .map(|price| Amount::notional(price, rules.price_scale, 1, 0).0);
            let mark = market.mark(rules.price_scale).map(i128::from);
            let one = i128::from(pow10(MARK_SCALE));
            let price = mark.or(last)?;
            Some(Amount(div_half_even(amount.0.checked_mul(price)?, one)))
        })
    }

    /// Whether equity has no part for an asset of this surface.
    pub(super) fn is_outside_equity(&self, surface: Surface, asset: AssetId) -> bool {
        let equity = self.equity_asset();
        let counts = |surface: Surface| {
            let mut rules = self.instruments.iter();
            rules
                .any(|one| one.surface == surface && one.base == asset && Some(one.quote) == equity)
        };
        let in_equity = equity == Some(asset) || (surface == Surface::Spot && counts(surface));
        self.live.is_some() && !in_equity
    }

    /// The cost of the commission of a fill, where equity does not contain it.
    pub(super) fn cost_of_fee(&mut self, surface: Surface, fill: &Fill) -> Amount {
        let outside = self.is_outside_equity(surface, fill.fee_asset) && !planted!(OtherFeesFree);
        if fill.fee == Amount::ZERO || !outside {
            return Amount::ZERO;
        }
        if let Some(value) = self.value_in_equity(fill.fee_asset, fill.fee) {
            return value;
        }
        self.tell_unpriced(fill.fee_asset);
        let live = self.live.as_ref();
        let fee_ppm = live.map_or(0, |live| live.config.fee_estimate_ppm);
        if fill.fee > Amount::ZERO {
            fill.quote_qty.part(fee_ppm, 1_000_000)
        } else {
            Amount::ZERO
        }
    }

    /// A balance that equity does not have fell without an event: commissions that events left out.
    pub(super) fn lose_other_asset(&mut self, asset: AssetId, lost: Amount) {
        let value = self.value_in_equity(asset, lost);
        if value.is_none() {
            self.tell_unpriced(asset);
        }
        self.fee_costs.total += value.unwrap_or_else(|| self.estimated_fees(lost));
    }

    /// Assets that commissions were taken in and that have no price here: an estimate counts.
    pub fn unpriced_fees(&self) -> impl Iterator<Item = AssetId> {
        let assets = self.fee_costs.unpriced.iter().copied();
        assets.filter(|asset| self.value_in_equity(*asset, Amount::ZERO).is_none())
    }

    fn tell_unpriced(&mut self, asset: AssetId) {
        if self.fee_costs.unpriced.insert(asset) {
            self.notices.push_back(Notice::FeeUnpriced {
                time: self.now,
                asset,
            });
        }
    }

    /// Takes over what an earlier process counted.
    pub(super) fn inherit_fee_costs(&mut self, from: &Self, names: &Names) {
        self.fee_costs.total = from.fee_costs.total;
        let told = from.fee_costs.unpriced.iter();
        self.fee_costs.unpriced = told
            .filter_map(|asset| names.assets.get(asset).copied())
            .collect();
    }
}
