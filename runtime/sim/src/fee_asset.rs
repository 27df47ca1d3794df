//! The asset of futures commissions, which the documents leave open ([`OpenTerms`]).

use windvane_model::{Amount, AssetId};

use crate::config::Rate;
use crate::open_terms::OpenTerms;
use crate::venue::Venue;

/// The price of one unit of commission in the other asset.
const OTHER_ASSET_RATE: Rate = Rate(2_000);
/// The start balance of the other asset.
const OTHER_ASSET_START: Amount = Amount(windvane_model::decimal::AMOUNT_ONE);

impl Venue {
    /// Sets the choices. An account whose commissions are taken in another asset gets a balance of
    /// it.
    pub fn set_open_terms(&mut self, terms: OpenTerms) {
        if let Some(asset) = terms.futures_fee_asset {
            self.account.admit(asset);
            let wallet = self.account.wallet_mut(asset);
            if *wallet == Amount::ZERO {
                *wallet = OTHER_ASSET_START;
            }
        }
        self.open_terms = terms;
    }

    /// A futures commission and its asset.
    pub(crate) fn charged(&self, quote: AssetId, fee: Amount) -> (AssetId, Amount) {
        match self.open_terms.futures_fee_asset {
            Some(asset) => (asset, OTHER_ASSET_RATE.of(fee)),
            None => (quote, fee),
        }
    }
}
