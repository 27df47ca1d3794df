//! Spot account and order routes (docs/interface/orders.md#routes,
//! docs/interface/account.md#spot-account) as data.

use super::enums::{SIDE, TIME_IN_FORCE, TRANSFER_KIND};
use super::orders::SPOT_ORDER_TYPE;
use super::row::{at, by_symbol, limit, may, must, one_of, row};
use super::types::Counted::{Order, PerMinute};
use super::types::Kind::{Address, Decimal, Enum, List, Long, String};
use super::types::{InnerSignature, Param, Route, Source, Surface, Version, Weight::Fixed};

const SPOT: (Surface, Source) = (Surface::Spot, Source::Spec1);

/// The target chains of withdrawals: Ethereum, BSC, Arbitrum.
const CHAINS: &[i64] = &[1, 56, 42161];

const SYMBOL: Param = must("symbol", String);

/// Cancel order and Query order need one of the two ids.
const ONE_ORDER: &[Param] = &[
    SYMBOL,
    one_of("orderId", Long),
    one_of("origClientOrderId", String),
];

pub(super) const ROUTES: &[Route] = &[
    row!(SPOT "spot.new_order", Post "/api" [v1 v3] "/order", Trade, Fixed(1))
        .takes(&[
            SYMBOL,
            must("side", SIDE),
            must("type", SPOT_ORDER_TYPE),
            may("timeInForce", TIME_IN_FORCE),
            may("quantity", Decimal).not_negative(),
            may("quoteOrderQty", Decimal).not_negative(),
            may("price", Decimal).not_negative(),
            may("newClientOrderId", String).length(1, 36),
            may("stopPrice", Decimal).not_negative(),
        ])
        .answers("Order")
        .counts(Order)
        .changes(),
    row!(SPOT "spot.cancel_order", Delete "/api" [v1 v3] "/order", Trade, Fixed(1))
        .takes(ONE_ORDER)
        .answers("Order")
        .changes(),
    row!(SPOT "spot.query_order", Get "/api" [v1 v3] "/order", UserData, Fixed(1))
        .takes(ONE_ORDER)
        .answers("Order"),
    row!(SPOT "spot.open_orders", Get "/api" [v1 v3] "/openOrders", UserData, by_symbol(1, 40))
        .takes(&[may("symbol", String)])
        .answers("array of Order"),
    // Only public facts list this route (docs/interface/orders.md#query-an-open-order).
    row!(SPOT "spot.open_order", Get "/api" [v1 v3] "/openOrder", UserData, Fixed(1))
        .takes(ONE_ORDER)
        .answers("Order")
        .source(Source::PublicFacts),
    row!(SPOT "spot.cancel_all_orders", Delete "/api" [v1 v3] "/allOpenOrders", Trade, Fixed(1))
        .takes(&[
            SYMBOL,
            may("orderIdList", List),
            may("origClientOrderIdList", List),
        ])
        .answers("Cancel-all result {code, msg}")
        .changes(),
    row!(SPOT "spot.all_orders", Get "/api" [v1 v3] "/allOrders", UserData, Fixed(5))
        .takes(&[
            SYMBOL,
            may("orderId", Long),
            may("startTime", Long),
            may("endTime", Long),
            limit("500", "1000"),
        ])
        .answers("array of Order"),
    row!(SPOT "spot.wallet_transfer", Post "/api" [v1 v3] "/asset/wallet/transfer", Trade, Fixed(5))
        .takes(&[
            must("amount", Decimal).above_zero(),
            must("asset", String),
            must("clientTranId", String).length(1, 63),
            must("kindType", TRANSFER_KIND),
        ])
        .answers("Transfer result {tranId, status}")
        .changes(),
    row!(SPOT "spot.send_to_address", Post "/api" [v1] "/asset/sendToAddress", Trade, Fixed(5))
        .takes(&[
            must("amount", Decimal).above_zero(),
            must("asset", String),
            must("toAddress", Address),
            may("clientTranId", String).length(20, 63),
        ])
        .answers("Transfer result {tranId, status}")
        .changes(),
    row!(SPOT "spot.withdraw_fee",
        Get "/api" [v1 v3] "/{brand}/withdraw/estimateFee", None, Fixed(1))
    .takes(&[
        must("chainId", String).values(CHAINS),
        must("asset", String),
    ])
    .answers("Withdraw fee estimate {tokenPrice, gasCost, gasUsdValue}"),
    // v1 sends the withdrawal's nonce as `nonce`, v3 as `userNonce` next to the request's own nonce
    // (docs/interface/conventions.md#signing-withdrawals).
    row!(SPOT "spot.withdraw", Post [
            at!("/api" v1 "/{brand}/user-withdraw" UserData)
                .inner(InnerSignature::Withdrawal { nonce: "nonce" }),
            at!("/api" v3 "/{brand}/user-withdraw" UserData)
                .inner(InnerSignature::Withdrawal { nonce: "userNonce" }),
        ], UserData, Fixed(1))
        .takes(&[
            must("chainId", String).values(CHAINS),
            must("asset", String),
            must("amount", String).above_zero(),
            must("fee", String).not_negative(),
            must("receiver", Address),
            must("nonce", String).only(Version::V1),
            must("userNonce", String).only(Version::V3),
            must("userSignature", String),
        ])
        .answers("Withdraw result {withdrawId, hash}")
        .changes(),
    row!(SPOT "spot.get_nonce", Post "/api" [v1] "/getNonce", None, Fixed(1))
        .takes(&[
            must("address", String),
            must("userOperationType", Enum(&["CREATE_API_KEY"])),
            may("network", String),
        ])
        .answers("bare nonce number"),
    // The label is NONE, but the request has a timestamp (docs/interface/account.md#api-keys). It
    // is a parameter here because no authentication adds it.
    row!(SPOT "spot.create_api_key", Post [
            at!("/api" v1 "/createApiKey" None).inner(InnerSignature::Sentence),
        ], None, Fixed(1))
        .takes(&[
            must("address", String),
            must("userOperationType", Enum(&["CREATE_API_KEY"])),
            may("network", String),
            must("userSignature", String),
            may("apikeyIP", String),
            must("desc", String).length(1, 20),
            may("recvWindow", Long).range("0", "60000").default_value("5000"),
            must("timestamp", Long),
        ])
        .answers("API key pair {apiKey, apiSecret}")
        .counts(PerMinute(60))
        .changes(),
    row!(SPOT "spot.account", Get "/api" [v1 v3] "/account", UserData, Fixed(5))
        .answers("Account information"),
    row!(SPOT "spot.user_trades", Get "/api" [v1 v3] "/userTrades", UserData, Fixed(5))
        .takes(&[
            may("symbol", String),
            may("orderId", Long),
            may("startTime", Long),
            may("endTime", Long),
            may("fromId", Long),
            limit("500", "1000"),
        ])
        .answers("array of Account trade"),
    row!(SPOT "spot.create_listen_key", Post "/api" [v1 v3] "/listenKey", UserStream, Fixed(1))
        .answers("{listenKey}"),
    row!(SPOT "spot.keepalive_listen_key", Put "/api" [v1 v3] "/listenKey", UserStream, Fixed(1))
        .takes(&[must("listenKey", String)])
        .answers("{}"),
    row!(SPOT "spot.close_listen_key", Delete "/api" [v1 v3] "/listenKey", UserStream, Fixed(1))
        .takes(&[must("listenKey", String)])
        .answers("{}"),
];
