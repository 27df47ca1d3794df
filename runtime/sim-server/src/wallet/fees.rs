//! The minimum fee of a withdrawal: gas of the target chain in units of the asset
//! (docs/interface/account.md#withdrawal-fee, docs/interface/chain.md#withdrawal-fee). The gas
//! figures are constant samples.

use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::json;
use windvane_model::{AssetId, Surface};

use super::builders::number;
use super::values;
use crate::request::{Answer, Body, Call, Params, Refusal, integer, invalid};
use crate::state::State;

/// A chain and its gas figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) id: i64,
    /// Its name in signed withdrawals (docs/interface/conventions.md#signing-withdrawals).
    pub(super) name: &'static str,
    gas_price_wei: i64,
    gas_limit: i64,
    /// Price of the chain's native token in USD.
    native_price: i64,
}

/// The chains of the documents.
pub(super) const CHAINS: [Chain; 3] = [
    Chain {
        id: 1,
        name: "ETH",
        gas_price_wei: 1_000_000_000,
        gas_limit: 100_000,
        native_price: 3_000,
    },
    Chain {
        id: 56,
        name: "BSC",
        gas_price_wei: 100_000_000,
        gas_limit: 100_000,
        native_price: 600,
    },
    Chain {
        id: 42_161,
        name: "Arbitrum",
        gas_price_wei: 100_000_000,
        gas_limit: 100_000,
        native_price: 3_000,
    },
];

/// The chain of `chainId`.
pub(super) fn chain_of(call: &Call<'_>) -> Result<Chain, Refusal> {
    chain_named(call.params)
}

/// The same, for a request whose signature is not verified yet.
pub(super) fn chain_named(params: &Params) -> Result<Chain, Refusal> {
    let id = integer("chainId", params.required("chainId")?)?;
    let found = CHAINS.into_iter().find(|chain| chain.id == id);
    found.ok_or_else(|| invalid("chainId"))
}

impl Chain {
    fn gas_usd(self) -> Decimal {
        // The product is below 2^63 wei. One native token has 1e18 wei.
        let native = Decimal::from_i128_with_scale(
            i128::from(self.gas_price_wei) * i128::from(self.gas_limit),
            18,
        );
        native * Decimal::from(self.native_price)
    }

    /// The minimum fee in units of the asset, rounded up to 8 decimals.
    pub(super) fn fee_min(self, state: &State, asset: AssetId) -> Decimal {
        let cost = self.gas_usd() / usd_price(state, asset);
        cost.round_dp_with_strategy(8, RoundingStrategy::AwayFromZero)
    }
}

/// The last price in a quote asset. A quote asset itself counts as one USD, and so does an asset
/// without a price.
pub(super) fn usd_price(state: &State, asset: AssetId) -> Decimal {
    let of = |symbol: &&windvane_sim_market::Symbol| symbol.instrument.base == asset;
    let symbol = state.board.of(Surface::Spot).find(of);
    let symbol = symbol.or_else(|| state.board.of(Surface::Futures).find(of));
    let price = symbol.map(|symbol| symbol.instrument.price(symbol.last_price()));
    price
        .filter(|price| *price > Decimal::ZERO)
        .unwrap_or(Decimal::ONE)
}

/// The response on spot: three numbers.
pub(super) fn spot(state: &State, call: &Call<'_>) -> Answer {
    let (chain, asset) = (chain_of(call)?, values::asset(state, call)?);
    Ok(Body::json(&json!({
        "tokenPrice": number(usd_price(state, asset)),
        "gasCost": number(chain.fee_min(state, asset)),
        "gasUsdValue": number(chain.gas_usd()),
    })))
}

/// The response of the chain API: as text, with the gas itself.
pub(super) fn chain(state: &State, call: &Call<'_>) -> Answer {
    let (chain, asset) = (chain_of(call)?, values::asset(state, call)?);
    let text = |value: Decimal| value.normalize().to_string();
    Ok(Body::json(&json!({
        "gasPrice": chain.gas_price_wei,
        "gasLimit": chain.gas_limit,
        "nativePrice": chain.native_price.to_string(),
        "tokenPrice": text(usd_price(state, asset)),
        "gasCost": text(chain.fee_min(state, asset)),
        "gasUsdValue": text(chain.gas_usd()),
    })))
}
