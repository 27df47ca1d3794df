//! The chains of withdrawals, and the minimum fee on each: gas of the chain in units of the asset
//! (docs/interface/account.md#withdrawal-fee, docs/interface/chain.md#withdrawal-fee). The gas
//! figures are constant samples.

use rust_decimal::{Decimal, RoundingStrategy};
use windvane_model::{AssetId, Surface};
use windvane_sim_market::{Board, Symbol};

use crate::request::{Params, Refusal, integer, invalid};

/// A chain and its gas figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) id: i64,
    /// Its name in signed withdrawals (docs/interface/conventions.md#signing-withdrawals).
    pub(crate) name: &'static str,
    pub(crate) gas_price_wei: i64,
    pub(crate) gas_limit: i64,
    /// Price of the chain's native token in USD.
    pub(crate) native_price: i64,
}

/// The chains of the documents.
pub(crate) const CHAINS: [Chain; 3] = [
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
pub(crate) fn chain_of(params: &Params) -> Result<Chain, Refusal> {
    let id = integer("chainId", params.required("chainId")?)?;
    let found = CHAINS.into_iter().find(|chain| chain.id == id);
    found.ok_or_else(|| invalid("chainId"))
}

impl Chain {
    /// The price of a withdrawal in USD.
    pub(crate) fn gas_usd(self) -> Decimal {
        // The product is below 2^63 wei. One native token has 1e18 wei.
        let native = Decimal::from_i128_with_scale(
            i128::from(self.gas_price_wei) * i128::from(self.gas_limit),
            18,
        );
        native * Decimal::from(self.native_price)
    }

    /// The minimum fee in units of the asset, rounded up to 8 decimals.
    pub(crate) fn fee_min(self, board: &Board, asset: AssetId) -> Decimal {
        let cost = self.gas_usd() / usd_price(board, asset);
        cost.round_dp_with_strategy(8, RoundingStrategy::AwayFromZero)
    }
}

/// The last price in a quote asset. A quote asset itself counts as one USD, and so does an asset
/// without a price.
pub(crate) fn usd_price(board: &Board, asset: AssetId) -> Decimal {
    let of = |symbol: &&Symbol| symbol.instrument.base == asset;
    let symbol = board.of(Surface::Spot).find(of);
    let symbol = symbol.or_else(|| board.of(Surface::Futures).find(of));
    let price = symbol.map(|symbol| symbol.instrument.price(symbol.last_price()));
    price
        .filter(|price| *price > Decimal::ZERO)
        .unwrap_or(Decimal::ONE)
}
