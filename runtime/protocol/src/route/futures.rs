//! Futures account, order, agent and builder routes (docs/interface/orders.md#routes,
//! docs/interface/futures.md#agent-and-builder-routes,
//! docs/interface/account.md#futures-account-routes) as data.

use super::enums::{POSITION_SIDE, SIDE, TIME_IN_FORCE, TRANSFER_KIND, WORKING_TYPE};
use super::orders::FUTURES_ORDER_TYPE;
use super::row::{at, by_symbol, limit, may, must, one_of, row};
use super::types::Counted::{BatchOrders, Order};
use super::types::Kind::{Address, Boolean, Decimal, Enum, Int, List, Long, String};
use super::types::{Param, Route, Scheme, Source, Surface, Version, Weight, Weight::Fixed};

const FUTURES: (Surface, Source) = (Surface::Futures, Source::Spec2);
const PUBLIC: (Surface, Source) = (Surface::Futures, Source::PublicFacts);

const SYMBOL: Param = must("symbol", String);
const MAYBE_SYMBOL: Param = may("symbol", String);
const START_TIME: Param = may("startTime", Long);
const END_TIME: Param = may("endTime", Long);

/// Query order, Cancel order and Query current open order need one of the two ids.
const ONE_ORDER: &[Param] = &[
    SYMBOL,
    one_of("orderId", Long),
    one_of("origClientOrderId", String),
];

pub(super) const ROUTES: &[Route] = &[
    row!(FUTURES "futures.change_position_mode",
        Post "/fapi" [v1 v3] "/positionSide/dual", Trade, Fixed(1))
    .takes(&[must("dualSidePosition", Boolean)])
    .answers("Simple result {code, msg}")
    .changes(),
    row!(FUTURES "futures.position_mode",
        Get "/fapi" [v1 v3] "/positionSide/dual", UserData, Fixed(30))
    .answers("{dualSidePosition}"),
    row!(FUTURES "futures.change_multi_assets_mode",
        Post "/fapi" [v1 v3] "/multiAssetsMargin", Trade, Fixed(1))
    .takes(&[must("multiAssetsMargin", Boolean)])
    .answers("Simple result {code, msg}")
    .changes(),
    row!(FUTURES "futures.multi_assets_mode",
        Get "/fapi" [v1 v3] "/multiAssetsMargin", UserData, Fixed(30))
    .answers("{multiAssetsMargin}"),
    // With `builder` and `feeRate` this is the order with builder code. Its response is
    // {code, msg, data: {orderId, status}} (docs/interface/futures.md#orders-with-a-builder-code).
    row!(FUTURES "futures.new_order", Post "/fapi" [v1 v3] "/order", Trade, Fixed(1))
        .takes(&[
            SYMBOL,
            must("side", SIDE),
            may("positionSide", POSITION_SIDE),
            must("type", FUTURES_ORDER_TYPE),
            may("timeInForce", TIME_IN_FORCE),
            may("quantity", Decimal).not_negative(),
            may("reduceOnly", Boolean).default_value("false"),
            may("price", Decimal).not_negative(),
            may("newClientOrderId", String).client_order_id(),
            may("stopPrice", Decimal).not_negative(),
            may("closePosition", Boolean),
            may("activationPrice", Decimal).not_negative(),
            may("callbackRate", Decimal).range("0.1", "5"),
            may("workingType", WORKING_TYPE).default_value("CONTRACT_PRICE"),
            may("priceProtect", Boolean).default_value("FALSE"),
            may("newOrderRespType", Enum(&["ACK", "RESULT"])).default_value("ACK"),
            may("builder", Address).only(Version::V3),
            may("feeRate", String).not_negative().only(Version::V3),
        ])
        .answers("futures order; with builder {code, msg, data}")
        .counts(Order)
        .changes(),
    row!(FUTURES "futures.batch_orders", Post "/fapi" [v1 v3] "/batchOrders", Trade, Fixed(5))
        .takes(&[must("batchOrders", List).entries(5)])
        .answers("array of futures order or {code, msg}")
        .counts(BatchOrders)
        .changes(),
    row!(FUTURES "futures.wallet_transfer",
        Post "/fapi" [v1 v3] "/asset/wallet/transfer", Transfer, Fixed(5))
    .takes(&[
        must("amount", Decimal).above_zero(),
        must("asset", String),
        must("clientTranId", String).length(1, 63),
        must("kindType", TRANSFER_KIND),
    ])
    .answers("Transfer result {tranId, status}")
    .changes(),
    row!(FUTURES "futures.query_order", Get "/fapi" [v1 v3] "/order", UserData, Fixed(1))
        .takes(ONE_ORDER)
        .answers("futures order"),
    row!(FUTURES "futures.cancel_order", Delete "/fapi" [v1 v3] "/order", Trade, Fixed(1))
        .takes(ONE_ORDER)
        .answers("futures order")
        .changes(),
    row!(FUTURES "futures.cancel_all_orders",
        Delete "/fapi" [v1 v3] "/allOpenOrders", Trade, Fixed(1))
    .takes(&[SYMBOL])
    .answers("{code, msg}, code as text")
    .changes(),
    row!(FUTURES "futures.cancel_batch_orders",
        Delete "/fapi" [v1 v3] "/batchOrders", Trade, Fixed(1))
    .takes(&[
        SYMBOL,
        one_of("orderIdList", List).entries(10),
        one_of("origClientOrderIdList", List).entries(10),
    ])
    .answers("array of futures order or {code, msg}")
    .changes(),
    row!(FUTURES "futures.countdown_cancel_all",
        Post "/fapi" [v1 v3] "/countdownCancelAll", Trade, Fixed(10))
    .takes(&[SYMBOL, must("countdownTime", Long).not_negative()])
    .answers("{symbol, countdownTime}")
    .changes(),
    row!(FUTURES "futures.open_order", Get "/fapi" [v1 v3] "/openOrder", UserData, Fixed(1))
        .takes(ONE_ORDER)
        .answers("futures order"),
    row!(FUTURES "futures.open_orders",
        Get "/fapi" [v1 v3] "/openOrders", UserData, by_symbol(1, 40))
    .takes(&[MAYBE_SYMBOL])
    .answers("array of futures order"),
    row!(PUBLIC "futures.all_orders", Get "/fapi" [v1 v3] "/allOrders", UserData, Fixed(5))
        .takes(&[
            SYMBOL,
            may("orderId", Long),
            START_TIME,
            END_TIME,
            limit("500", "1000"),
        ])
        .answers("array of futures order"),
    row!(PUBLIC "futures.balance", Get "/fapi" [v2 v3] "/balance", UserData, Fixed(5))
        .answers("array of {accountAlias, asset, balance, ...}"),
    row!(PUBLIC "futures.account", Get [
            at!("/fapi" v3 "/accountWithJoinMargin" UserData),
            at!("/fapi" v4 "/account" UserData),
        ], UserData, Fixed(5))
    .answers("{feeTier, canTrade, ..., assets, positions}"),
    // The earlier name of the v3 account route.
    row!(PUBLIC "futures.earlier_account", Get "/fapi" [v3] "/account", UserData, Fixed(5))
        .answers("{feeTier, canTrade, ..., assets, positions}"),
    row!(PUBLIC "futures.change_leverage", Post "/fapi" [v1 v3] "/leverage", Trade, Fixed(1))
        .takes(&[SYMBOL, must("leverage", Int).range("1", "125")])
        .answers("{leverage, maxNotionalValue, symbol}")
        .changes(),
    row!(PUBLIC "futures.change_margin_type", Post "/fapi" [v1 v3] "/marginType", Trade, Fixed(1))
        .takes(&[SYMBOL, must("marginType", Enum(&["ISOLATED", "CROSSED"]))])
        .answers("Simple result {code, msg}")
        .changes(),
    row!(PUBLIC "futures.change_position_margin",
        Post "/fapi" [v1 v3] "/positionMargin", Trade, Fixed(1))
    .takes(&[
        SYMBOL,
        may("positionSide", POSITION_SIDE),
        must("amount", Decimal),
        must("type", Int).values(&[1, 2]),
    ])
    .answers("{amount, code, msg, type}")
    .changes(),
    row!(PUBLIC "futures.position_margin_history",
        Get "/fapi" [v1 v3] "/positionMargin/history", UserData, Fixed(1))
    .takes(&[
        SYMBOL,
        may("type", Int).values(&[1, 2]),
        START_TIME,
        END_TIME,
        may("limit", Int),
    ])
    .answers("array of {amount, asset, symbol, time, type, positionSide}"),
    row!(PUBLIC "futures.position_risk", Get "/fapi" [v2 v3] "/positionRisk", UserData, Fixed(5))
        .takes(&[MAYBE_SYMBOL])
        .answers("array of {symbol, positionSide, positionAmt, ...}"),
    row!(PUBLIC "futures.user_trades", Get "/fapi" [v1 v3] "/userTrades", UserData, Fixed(5))
        .takes(&[
            SYMBOL,
            START_TIME,
            END_TIME,
            may("fromId", Long),
            limit("500", "1000"),
        ])
        .answers("array of {buyer, commission, ..., time}"),
    // The documents' list of income types is open, so any text is allowed.
    row!(PUBLIC "futures.income", Get "/fapi" [v1 v3] "/income", UserData, Fixed(30))
        .takes(&[
            MAYBE_SYMBOL,
            may("incomeType", String),
            START_TIME,
            END_TIME,
            limit("100", "1000"),
        ])
        .answers("array of {symbol, incomeType, income, ..., tradeId}"),
    row!(PUBLIC "futures.leverage_bracket",
        Get "/fapi" [v1 v3] "/leverageBracket", UserData, Fixed(1))
    .takes(&[MAYBE_SYMBOL])
    .answers("{symbol, brackets}, or array"),
    row!(PUBLIC "futures.adl_quantile", Get "/fapi" [v1 v3] "/adlQuantile", UserData, Fixed(5))
        .takes(&[MAYBE_SYMBOL])
        .answers("array of {symbol, adlQuantile}"),
    row!(PUBLIC "futures.force_orders",
        Get "/fapi" [v1 v3] "/forceOrders", UserData, by_symbol(20, 50))
    .takes(&[
        MAYBE_SYMBOL,
        may("autoCloseType", Enum(&["LIQUIDATION", "ADL"])),
        START_TIME,
        END_TIME,
        limit("50", "100"),
    ])
    .answers("array of futures order"),
    row!(PUBLIC "futures.commission_rate",
        Get "/fapi" [v1 v3] "/commissionRate", UserData, Fixed(20))
    .takes(&[SYMBOL])
    .answers("{symbol, makerCommissionRate, takerCommissionRate}"),
    // The core interface only names the route
    // (docs/interface/futures.md#remaining-openable-notional).
    row!(PUBLIC "futures.remaining_openable_notional",
        Get "/fapi" [v1] "/remainingOpenableNotionalValue", UserData, Fixed(20))
    .takes(&[SYMBOL, must("leverage", Int)])
    .answers("{remainingOpenableNotionalValue}"),
    row!(FUTURES "futures.create_listen_key",
        Post "/fapi" [v1 v3] "/listenKey", UserStream, Fixed(1))
    .answers("{listenKey}"),
    row!(FUTURES "futures.keepalive_listen_key",
        Put "/fapi" [v1 v3] "/listenKey", UserStream, Fixed(1))
    .answers("{}"),
    row!(FUTURES "futures.close_listen_key",
        Delete "/fapi" [v1 v3] "/listenKey", UserStream, Fixed(1))
    .answers("{}"),
    row!(FUTURES "futures.approve_agent", Post [
            at!("/fapi" v3 "/approveAgent" Trade).scheme(Scheme::Typed("ApproveAgent")),
        ], Trade, Weight::NotShown)
    .takes(&[
        must("agentName", String),
        must("agentAddress", Address),
        may("ipWhitelist", String),
        must("expired", Long),
        must("canSpotTrade", Boolean),
        must("canPerpTrade", Boolean),
        must("canWithdraw", Boolean),
        may("builder", Address),
        may("maxFeeRate", String).not_negative(),
        may("builderName", String),
    ])
    .answers("Simple result {code, msg}")
    .changes(),
    row!(FUTURES "futures.update_agent", Post [
            at!("/fapi" v3 "/updateAgent" Trade).scheme(Scheme::Typed("UpdateAgent")),
        ], Trade, Weight::NotShown)
    .takes(&[
        must("agentAddress", Address),
        may("ipWhitelist", String),
        must("canSpotTrade", Boolean),
        must("canPerpTrade", Boolean),
        must("canWithdraw", Boolean),
    ])
    .answers("Simple result {code, msg}")
    .changes(),
    row!(FUTURES "futures.delete_agent", Delete [
            at!("/fapi" v3 "/agent" Trade).scheme(Scheme::Typed("DelAgent")),
        ], Trade, Weight::NotShown)
    .takes(&[must("agentAddress", Address)])
    .answers("Simple result {code, msg}")
    .changes(),
    row!(FUTURES "futures.agents", Get "/fapi" [v3] "/agent", UserData, Weight::NotShown)
        .answers("array of Agent"),
    // One description requires builderName, another does not have it, so it is optional.
    row!(FUTURES "futures.approve_builder", Post [
            at!("/fapi" v3 "/approveBuilder" Trade).scheme(Scheme::Typed("ApproveBuilder")),
        ], Trade, Weight::NotShown)
    .takes(&[
        must("builder", Address),
        must("maxFeeRate", String).not_negative(),
        may("builderName", String),
    ])
    .answers("Simple result {code, msg}")
    .changes(),
    row!(FUTURES "futures.update_builder", Post [
            at!("/fapi" v3 "/updateBuilder" Trade).scheme(Scheme::Typed("UpdateBuilder")),
        ], Trade, Weight::NotShown)
    .takes(&[
        must("builder", Address),
        must("maxFeeRate", String).not_negative(),
    ])
    .answers("Simple result {code, msg}")
    .changes(),
    row!(FUTURES "futures.delete_builder", Delete [
            at!("/fapi" v3 "/builder" Trade).scheme(Scheme::Typed("DelBuilder")),
        ], Trade, Weight::NotShown)
    .takes(&[must("builder", Address)])
    .answers("Simple result {code, msg}")
    .changes(),
    row!(FUTURES "futures.builders", Get "/fapi" [v3] "/builder", UserData, Weight::NotShown)
        .answers("array of Builder approval"),
];
