//! Commissions in another asset than the equity asset. They lower a balance that is not part of
//! equity, so the engine subtracts their value from equity. It uses the price of a configured
//! instrument of both assets, or else the price that it requests from the venue every minute. Until
//! the venue answers, and if it lists no such symbol, an estimate by the value of the fill counts.
//! The log names an asset without a price once; the status names it as long as it has no price.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::{AMOUNT_SCALE, Amount, MARK_SCALE, div_half_even, pow10};
use windvane_model::ids::AssetId;
use windvane_model::names::Names;
use windvane_model::order::Surface;

use crate::Evidence;

/// The value of such commissions.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct FeeCosts {
    /// Their sum.
    pub total: Amount,
    /// Assets without a price that were reported to people.
    unpriced: BTreeSet<AssetId>,
}

impl FeeCosts {
    /// Assets without a price that were reported to people.
    pub fn unpriced(&self) -> impl Iterator<Item = AssetId> {
        self.unpriced.iter().copied()
    }

    /// Notes an asset without a price. Returns whether it is new.
    pub fn note_unpriced(&mut self, asset: AssetId) -> bool {
        self.unpriced.insert(asset)
    }

    /// Takes over the costs that an earlier process counted.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        self.total = old.total;
        self.unpriced = old
            .unpriced()
            .filter_map(|asset| names.assets.get(&asset).copied())
            .collect();
    }
}

impl Evidence<'_> {
    /// The value of an amount of an asset outside equity, in the equity asset; `None` if its price
    /// is not known.
    pub fn value_in_equity(&self, asset: AssetId, amount: Amount) -> Option<Amount> {
        let configured = self.value_by_instrument(asset, amount);
        configured.or_else(|| {
            let price = self.asset_prices.price(asset)?;
            let one = i128::from(pow10(AMOUNT_SCALE));
            Some(Amount(div_half_even(amount.0.checked_mul(price.0)?, one)))
        })
    }

    /// Like [`Self::value_in_equity`], at the price of a configured instrument.
    pub fn value_by_instrument(&self, asset: AssetId, amount: Amount) -> Option<Amount> {
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

    /// Whether equity does not contain an asset of this surface.
    pub fn is_outside_equity(&self, surface: Surface, asset: AssetId) -> bool {
        let equity = self.equity_asset();
        let counts = |surface: Surface| {
            let mut rules = self.instruments.iter();
            rules
                .any(|one| one.surface == surface && one.base == asset && Some(one.quote) == equity)
        };
        let in_equity = equity == Some(asset) || (surface == Surface::Spot && counts(surface));
        self.live.is_some() && !in_equity
    }
}
