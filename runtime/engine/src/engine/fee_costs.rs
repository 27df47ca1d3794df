//! Commissions in another asset than the equity asset. They lower a balance that is not part of
//! equity, so the engine subtracts their value from equity. It uses the price of a configured
//! instrument of both assets, or else the price that it requests from the venue every minute. Until
//! the venue answers, and if it lists no such symbol, an estimate by the value of the fill counts.
//! The log names an asset without a price once; the status names it as long as it has no price.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_model::decimal::{AMOUNT_SCALE, Amount, MARK_SCALE, div_half_even, pow10};
use windvane_model::effect::{Effect, Notice};
use windvane_model::ids::{AssetId, Time};
use windvane_model::order::Surface;
use windvane_model::planted;
use windvane_model::protocol::{Fill, Outcome, Request};
use windvane_model::truth::{Subject, Truth};

use super::Engine;
use super::snapshot::Names;

/// How often the price of an asset is requested.
const PRICE_MS: i64 = 60_000;
/// The same interval after the venue reported that it has no such symbol.
const NO_PRICE_MS: i64 = 3_600_000;

/// The venue's responses about prices of assets that no configured instrument prices.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct AssetPrices {
    /// Price of one unit in the equity asset.
    known: BTreeMap<AssetId, Amount>,
    /// When the price of each asset is requested next.
    next: BTreeMap<AssetId, Time>,
}

/// The value of such commissions.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct FeeCosts {
    pub(super) total: Amount,
    /// Assets without a price that were reported to people.
    unpriced: BTreeSet<AssetId>,
}

impl Engine {
    /// The value of an amount of an asset outside equity, in the equity asset; `None` if its price
    /// is not known.
    pub(super) fn value_in_equity(&self, asset: AssetId, amount: Amount) -> Option<Amount> {
        let configured = self.value_by_instrument(asset, amount);
        configured.or_else(|| {
            let price = self.asset_prices.known.get(&asset)?;
            let one = i128::from(pow10(AMOUNT_SCALE));
            Some(Amount(div_half_even(amount.0.checked_mul(price.0)?, one)))
        })
    }

    /// Like [`Engine::value_in_equity`], at the price of a configured instrument.
    fn value_by_instrument(&self, asset: AssetId, amount: Amount) -> Option<Amount> {
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

    /// The cost of the commission of a fill, if equity does not contain the commission asset.
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

    /// A balance outside equity fell without an event: events left out commissions.
    pub(super) fn lose_other_asset(&mut self, asset: AssetId, lost: Amount) {
        let value = self.value_in_equity(asset, lost);
        if value.is_none() {
            self.tell_unpriced(asset);
        }
        self.fee_costs.total += value.unwrap_or_else(|| self.estimated_fees(lost));
    }

    /// Commission assets without a known price; an estimate counts for them.
    pub fn unpriced_fees(&self) -> impl Iterator<Item = AssetId> {
        let assets = self.fee_costs.unpriced.iter().copied();
        assets.filter(|asset| self.value_in_equity(*asset, Amount::ZERO).is_none())
    }

    pub(super) fn tell_unpriced(&mut self, asset: AssetId) {
        if self.fee_costs.unpriced.insert(asset) {
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
        for asset in self.fee_costs.unpriced.clone() {
            let next = self.asset_prices.next.get(&asset);
            let is_due = next.is_none_or(|at| now >= *at);
            if !is_due || self.value_by_instrument(asset, Amount::ZERO).is_some() {
                continue;
            }
            let next = now.plus_ms(PRICE_MS);
            self.asset_prices.next.insert(asset, next);
            self.emit(Effect::Send {
                record: 0,
                request: Box::new(Request::Read(Subject::AssetPrice { asset, quote })),
            });
        }
    }

    pub(super) fn take_asset_price(&mut self, asset: AssetId, outcome: &Outcome<Truth>) {
        match outcome {
            Outcome::Done(Truth::AssetPrice(price)) if *price > Amount::ZERO => {
                self.asset_prices.known.insert(asset, *price);
            }
            Outcome::Refused(_) => {
                let next = self.now.plus_ms(NO_PRICE_MS);
                self.asset_prices.next.insert(asset, next);
            }
            _ => {}
        }
    }

    /// Takes over the costs that an earlier process counted.
    pub(super) fn inherit_fee_costs(&mut self, from: &Self, names: &Names) {
        self.fee_costs.total = from.fee_costs.total;
        let told = from.fee_costs.unpriced.iter();
        self.fee_costs.unpriced = told
            .filter_map(|asset| names.assets.get(asset).copied())
            .collect();
        let known = from.asset_prices.known.iter();
        self.asset_prices.known = known
            .filter_map(|(asset, price)| Some((*names.assets.get(asset)?, *price)))
            .collect();
    }
}
