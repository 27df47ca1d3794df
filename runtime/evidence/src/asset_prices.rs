//! The venue's prices of assets in which commissions are charged, in the equity asset.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::ids::{AssetId, Time};
use windvane_model::names::Names;
use windvane_model::protocol::Outcome;
use windvane_model::state_report::StateReport;

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

impl AssetPrices {
    /// The price of one unit in the equity asset; `None` if it is not known.
    pub(crate) fn price(&self, asset: AssetId) -> Option<Amount> {
        self.known.get(&asset).copied()
    }

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
