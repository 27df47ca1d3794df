//! Requests and responses of the JSON-RPC info endpoint (docs/interface/chain.md#info-endpoint).
//! Parameters are positional and have the order below.

use std::fmt;

use serde::{Deserialize, Serialize};
use windvane_model::{OrderStatus, OrderType, PositionSide, Side};

use super::enums::AccountPrivacy;
use super::fields::{record, request};
use super::scalar::{Exact, Flag, Json, Text, Whole, Word};

/// The envelope of a response: `{result, id, jsonrpc}`, or `error` in place of `result`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Envelope<T> {
    /// `result`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<T>,
    /// `error`, as in JSON-RPC 2.0; the documents do not show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RpcError>,
    /// `id`: echoed as the same JSON value (docs/interface/chain.md#info-endpoint).
    pub id: Option<Json>,
    /// `jsonrpc`: `2.0`.
    pub jsonrpc: Option<Text>,
}

impl<T> Envelope<T> {
    /// The result, or the error in its place.
    pub fn into_result(self) -> Result<T, RpcError> {
        match (self.result, self.error) {
            (Some(result), None) => Ok(result),
            (_, Some(error)) => Err(error),
            (None, None) => Err(RpcError {
                code: Whole(0),
                message: "the answer has neither result nor error".to_owned(),
            }),
        }
    }
}

record! {
    /// JSON-RPC error object.
    RpcError {
        code: Whole = "code",
        message: String = "message",
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.0, self.message)
    }
}

impl std::error::Error for RpcError {}

record! {
    /// JSON-RPC balance result.
    Balance {
        address: String = "address",
        account_privacy: Word<AccountPrivacy> = "accountPrivacy",
        perp_assets: Vec<PerpAsset> = "perpAssets",
        positions: Vec<ProductPositions> = "positions",
    }
}

record! {
    /// Balance of one asset.
    PerpAsset {
        asset: String = "asset",
        wallet_balance: Exact = "walletBalance",
    }
}

record! {
    /// Positions of one product.
    ProductPositions {
        /// For example `perps`.
        trading_product: String = "tradingProduct",
        positions: Vec<Position> = "positions",
    }
}

record! {
    /// One position.
    Position {
        id: Text = "id",
        symbol: String = "symbol",
        collateral: String = "collateral",
        /// Negative when short.
        position_amount: Exact = "positionAmount",
        entry_price: Exact = "entryPrice",
        unrealized_profit: Exact = "unrealizedProfit",
        notional_value?: Exact = "notionalValue",
        mark_price?: Exact = "markPrice",
        leverage: Whole = "leverage",
        isolated: Flag = "isolated",
        isolated_wallet?: Exact = "isolatedWallet",
        adl?: Whole = "adl",
        position_side: Word<PositionSide> = "positionSide",
        margin_value?: Exact = "marginValue",
        ask_notional?: Exact = "askNotional",
        bid_notional?: Exact = "bidNotional",
    }
}

request! {
    /// Balances and positions of an address.
    GetBalance = "{rpc}getBalance" -> Envelope<Balance> {
        address: String = "address",
        /// `latest` for the most recent state.
        block_tag: String = "blockTag",
    }
}

record! {
    /// JSON-RPC open orders result.
    OpenOrders {
        address: String = "address",
        account_privacy: Word<AccountPrivacy> = "accountPrivacy",
        open_orders: Vec<OpenOrder> = "openOrders",
    }
}

record! {
    /// One open order.
    OpenOrder {
        order_id: Text = "orderId",
        symbol: String = "symbol",
        side: Word<Side> = "side",
        order_type: Word<OrderType> = "type",
        orig_qty: Exact = "origQty",
        /// Only in older answers of Aster; later ones have `price` instead (docs/venue-aster.md).
        status?: Word<OrderStatus> = "status",
        /// Only in later answers of Aster; the core interface does not name it.
        price?: Exact = "price",
    }
}

request! {
    /// Open orders of an address, at most 1000.
    GetOpenOrders = "{rpc}openOrders" -> Envelope<OpenOrders> {
        address: String = "address",
        /// All symbols if it is not given.
        symbol?: String = "symbol",
        /// `latest` for the most recent state.
        block_tag: String = "blockTag",
    }
}

record! {
    /// JSON-RPC fills result.
    Fills {
        address: String = "address",
        account_privacy: Word<AccountPrivacy> = "accountPrivacy",
        /// Begin of the search, milliseconds.
        start_time?: Whole = "startTime",
        /// End of the search, milliseconds.
        end_time?: Whole = "endTime",
        /// Newest first (docs/interface/chain.md#info-endpoint).
        fills: Vec<Fill> = "fills",
    }
}

record! {
    /// One fill.
    Fill {
        symbol: String = "symbol",
        side: Word<Side> = "side",
        price: Exact = "price",
        qty: Exact = "qty",
        /// Milliseconds.
        time: Whole = "time",
    }
}

request! {
    /// Fills of an address within at most 7 days, at most 1000.
    GetUserFills = "{rpc}userFills" -> Envelope<Fills> {
        address: String = "address",
        /// All symbols if it is not given.
        symbol?: String = "symbol",
        /// Milliseconds; default 7 days before `to`.
        from?: i64 = "from",
        /// Milliseconds; default 7 days after `from`, or now without `from`.
        to?: i64 = "to",
        /// `latest` for the most recent state.
        block_tag: String = "blockTag",
    }
}
