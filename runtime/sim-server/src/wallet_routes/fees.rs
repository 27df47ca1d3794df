//! The minimum fee of a withdrawal (docs/interface/account.md#withdrawal-fee,
//! docs/interface/chain.md#withdrawal-fee).

use rust_decimal::Decimal;
use serde_json::json;
use windvane_protocol::Assets;
use windvane_sim_market::Board;

use super::values::{self, number};
use crate::request::{Answer, Body, Call};
use crate::wallet::{chain_of, usd_price};

/// The response on spot: three numbers.
pub(super) fn spot(board: &Board, assets: &Assets, call: &Call<'_>) -> Answer {
    let (chain, asset) = (chain_of(call.params)?, values::asset(assets, call)?);
    Ok(Body::json(&json!({
        "tokenPrice": number(usd_price(board, asset)),
        "gasCost": number(chain.fee_min(board, asset)),
        "gasUsdValue": number(chain.gas_usd()),
    })))
}

/// The response of the chain API: as text, with the gas itself.
pub(super) fn chain(board: &Board, assets: &Assets, call: &Call<'_>) -> Answer {
    let (chain, asset) = (chain_of(call.params)?, values::asset(assets, call)?);
    let text = |value: Decimal| value.normalize().to_string();
    Ok(Body::json(&json!({
        "gasPrice": chain.gas_price_wei,
        "gasLimit": chain.gas_limit,
        "nativePrice": chain.native_price.to_string(),
        "tokenPrice": text(usd_price(board, asset)),
        "gasCost": text(chain.fee_min(board, asset)),
        "gasUsdValue": text(chain.gas_usd()),
    })))
}
