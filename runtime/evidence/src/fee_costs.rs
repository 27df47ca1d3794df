//! Commissions in another asset than the equity asset. They lower a balance that is not part of
//! equity, so the engine subtracts their value from equity. It uses the price of a configured
//! instrument of both assets, or else the price that it requests from the venue every minute. Until
//! the venue answers, and if it lists no such symbol, an estimate by the value of the fill counts.
//! The log names an asset without a price once; the status names it as long as it has no price.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_model::decimal::{AMOUNT_SCALE, Amount, MARK_SCALE, div_half_even, pow10};
use windvane_model::ids::{AssetId, Time};
use windvane_model::names::Names;
use windvane_model::order::Surface;
use windvane_model::protocol::Outcome;
use windvane_model::state_report::StateReport;

use crate::Evidence;

/// How often the price of an asset is requested.
const PRICE_MS: i64 = 60_000;

/// How often the price is requested after the venue reported that it has no such symbol.
const NO_PRICE_MS: i64 = 3_600_000;

/// The venue's responses about prices of assets that no configured instrument prices.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct AssetPrices {
    /// Price of one unit in the equity asset.
    known: BTreeMap<AssetId, Amount>,
    /// When the price of each asset is requested next.
    next: BTreeMap<AssetId, Time>,
}

/// The value of such commissions.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct FeeCosts {
    /// Their sum.
    pub total: Amount,
    /// Assets without a price that were reported to people.
    unpriced: BTreeSet<AssetId>,
}

impl AssetPrices {
    /// Whether the price of an asset may be requested now.
    pub fn is_due(&self, asset: AssetId, now: Time) -> bool {
        self.next.get(&asset).is_none_or(|at| now >= *at)
    }

    /// Notes that the price of an asset is requested.
    pub fn note_asked(&mut self, asset: AssetId, now: Time) {
        self.next.insert(asset, now.plus_ms(PRICE_MS));
    }

    /// Takes a response about the price of an asset.
    pub fn take(&mut self, asset: AssetId, outcome: &Outcome<StateReport>, now: Time) {
        match outcome {
            Outcome::Done(StateReport::AssetPrice(price)) if *price > Amount::ZERO => {
                self.known.insert(asset, *price);
            }
            Outcome::Refused(_) => {
                self.next.insert(asset, now.plus_ms(NO_PRICE_MS));
            }
            _ => {}
        }
    }

    /// Takes over the prices that an earlier process knew.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        let known = old.known.iter();
        self.known = known
            .filter_map(|(asset, price)| Some((*names.assets.get(asset)?, *price)))
            .collect();
    }
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
            let price = self.asset_prices.known.get(&asset)?;
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
