//! Examples of orders, account, positions, agents and builders of the futures surface.

use rust_decimal::Decimal;
use windvane_model::{OrderType, PositionSide, Side, TimeInForce, WorkingType};

use crate::example::Example;
use windvane_protocol::wire::enums::{IncomeType, MarginType, ResponseType, TransferKind};
use windvane_protocol::wire::futures::{
    AllOrders, ApproveAgent, ApproveBuilder, BatchOrder, BatchOrders, CancelAllOrders,
    CancelBatchOrders, CancelOrder, ChangeLeverage, ChangeMarginType, ChangeMultiAssetsMode,
    ChangePositionMargin, ChangePositionMode, CloseListenKey, CountdownCancelAll, CreateListenKey,
    DeleteAgent, DeleteBuilder, ForceOrders, GetAccount, GetAdlQuantile, GetAgents, GetBalance,
    GetBuilders, GetCommissionRate, GetEarlierAccount, GetIncome, GetLeverageBracket,
    GetMultiAssetsMode, GetPositionMode, GetPositionRisk, GetRemainingOpenableNotional,
    KeepaliveListenKey, NewOrder, OpenOrder, OpenOrders, PositionMarginHistory, QueryOrder,
    UpdateAgent, UpdateBuilder, UserTrades, WalletTransfer,
};

const AGENT: &str = "0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0";
const BUILDER: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const SUCCESS: &str = r#"{"code":200,"msg":"success"}"#;

const PLACED: &str = r#"{"clientOrderId":"mm:1","cumQty":"0","cumQuote":"0","executedQty":"0",
"orderId":22542179,"avgPrice":"0.00000","origQty":"0.01","price":"60000.1","reduceOnly":false,
"side":"BUY","positionSide":"BOTH","status":"NEW","stopPrice":"0","closePosition":false,
"symbol":"BTCUSDT","timeInForce":"GTC","type":"LIMIT","origType":"LIMIT",
"updateTime":1751350000000,"workingType":"CONTRACT_PRICE","priceProtect":false}"#;

const TRAILING: &str = r#"{"clientOrderId":"ts:1","cumQty":"0","cumQuote":"0","executedQty":"0",
"orderId":22542180,"avgPrice":"0","origQty":"0.01","price":"0","reduceOnly":true,
"side":"SELL","positionSide":"BOTH","status":"NEW","stopPrice":"0","closePosition":false,
"symbol":"BTCUSDT","timeInForce":"GTC","type":"TRAILING_STOP_MARKET",
"origType":"TRAILING_STOP_MARKET","activatePrice":"61000","priceRate":"0.3",
"updateTime":1751350000000,"workingType":"MARK_PRICE","priceProtect":true}"#;

const CANCELED: &str = r#"{"clientOrderId":"mm:1","cumQty":"0","cumQuote":"0","executedQty":"0",
"orderId":22542179,"avgPrice":"0.00000","origQty":"0.01","price":"60000.1","reduceOnly":false,
"side":"BUY","positionSide":"BOTH","status":"CANCELED","stopPrice":"0","closePosition":false,
"symbol":"BTCUSDT","timeInForce":"GTC","type":"LIMIT","origType":"LIMIT",
"updateTime":1751350001000,"workingType":"CONTRACT_PRICE","priceProtect":false}"#;

const QUERIED: &str = r#"{"avgPrice":"0.00000","clientOrderId":"mm:1","cumQuote":"0",
"executedQty":"0","orderId":22542179,"origQty":"0.01","price":"60000.1","reduceOnly":false,
"side":"BUY","positionSide":"BOTH","status":"NEW","stopPrice":"0","closePosition":false,
"symbol":"BTCUSDT","time":1751350000000,"timeInForce":"GTC","type":"LIMIT",
"updateTime":1751350000000,"workingType":"CONTRACT_PRICE","priceProtect":false}"#;

const LISTED: &str = r#"[{"avgPrice":"60000.1","clientOrderId":"adl_autoclose","cumQuote":"600.001",
"executedQty":"0.01","orderId":22542179,"origQty":"0.01","price":"60000.1","reduceOnly":true,
"side":"SELL","positionSide":"LONG","status":"FILLED","stopPrice":"0","closePosition":false,
"symbol":"BTCUSDT","time":1751350000000,"timeInForce":"IOC","type":"LIMIT",
"updateTime":1751350000000,"workingType":"CONTRACT_PRICE","priceProtect":false}]"#;

const PLACED_BATCH: &str = r#"[{"clientOrderId":"mm:1","cumQty":"0","cumQuote":"0",
"executedQty":"0","orderId":22542179,"avgPrice":"0.00000","origQty":"0.2","price":"60000.1",
"reduceOnly":false,"side":"BUY","positionSide":"BOTH","status":"NEW","stopPrice":"0",
"symbol":"BTCUSDT","timeInForce":"GTC","type":"LIMIT","origType":"LIMIT",
"updateTime":1751350000000,"workingType":"CONTRACT_PRICE","priceProtect":false},
{"code":-2022,"msg":"ReduceOnly Order is rejected."}]"#;

const CANCELED_BATCH: &str = r#"[{"clientOrderId":"mm:1","cumQty":"0","cumQuote":"0",
"executedQty":"0","orderId":22542179,"origQty":"0.2","price":"60000.1","reduceOnly":false,
"side":"BUY","positionSide":"BOTH","status":"CANCELED","stopPrice":"0","closePosition":false,
"symbol":"BTCUSDT","timeInForce":"GTC","type":"LIMIT","origType":"LIMIT",
"updateTime":1751350000000,"workingType":"CONTRACT_PRICE","priceProtect":false},
{"code":-2011,"msg":"Unknown order sent."}]"#;

const ACCOUNT: &str = r#"{"feeTier":0,"canTrade":true,"canDeposit":true,"canWithdraw":true,
"updateTime":0,"totalInitialMargin":"30","totalMaintMargin":"3","totalWalletBalance":"10000",
"totalUnrealizedProfit":"1.5","totalMarginBalance":"10001.5",
"totalPositionInitialMargin":"30","totalOpenOrderInitialMargin":"0",
"totalCrossWalletBalance":"10000","totalCrossUnPnl":"1.5","availableBalance":"9971.5",
"maxWithdrawAmount":"9970","assets":[{"asset":"USDT","walletBalance":"10000",
"unrealizedProfit":"1.5","marginBalance":"10001.5","maintMargin":"3","initialMargin":"30",
"positionInitialMargin":"30","openOrderInitialMargin":"0","crossWalletBalance":"10000",
"crossUnPnl":"1.5","availableBalance":"9971.5","maxWithdrawAmount":"9970",
"marginAvailable":true,"updateTime":1751350000000}],"positions":[{"symbol":"BTCUSDT",
"positionSide":"BOTH","positionAmt":"0.01","entryPrice":"60000.1","leverage":"20",
"isolated":false,"unrealizedProfit":"1.5","initialMargin":"30","maintMargin":"3",
"updateTime":1751350000000}]}"#;

const RISK: &str = r#"[{"symbol":"BTCUSDT","positionSide":"BOTH","positionAmt":"-0.01",
"entryPrice":"60000.1","markPrice":"59850.1","unRealizedProfit":"1.5",
"liquidationPrice":"0","leverage":"20","maxNotionalValue":"250000","marginType":"cross",
"isolatedMargin":"0","isAutoAddMargin":"false","updateTime":1751350000000}]"#;

pub(crate) fn examples() -> Vec<Example> {
    let mut examples = modes();
    examples.extend(orders());
    examples.extend(account());
    examples.extend(positions());
    examples.extend(agents());
    examples
}

fn modes() -> Vec<Example> {
    vec![
        Example::of(&ChangePositionMode::new(true), SUCCESS),
        Example::of(&GetPositionMode::new(), r#"{"dualSidePosition":true}"#),
        Example::of(&ChangeMultiAssetsMode::new(false), SUCCESS),
        Example::of(&GetMultiAssetsMode::new(), r#"{"multiAssetsMargin":false}"#),
        Example::of(
            &WalletTransfer::new(10, "USDT", "transfer-2", TransferKind::FutureToSpot),
            r#"{"tranId":21841,"status":"SUCCESS"}"#,
        ),
        Example::of(
            &CreateListenKey::new(),
            r#"{"listenKey":"pqia91ma19a5s61cv6a81va65sd"}"#,
        ),
        Example::of(&KeepaliveListenKey::new(), "{}"),
        Example::of(&CloseListenKey::new(), "{}"),
    ]
}

fn orders() -> Vec<Example> {
    let limit = NewOrder::new("BTCUSDT", Side::Buy, OrderType::Limit)
        .time_in_force(TimeInForce::Gtc)
        .quantity(Decimal::new(1, 2))
        .price(Decimal::new(600_001, 1))
        .client_order_id("mm:1");
    let trailing = NewOrder::new("BTCUSDT", Side::Sell, OrderType::TrailingStopMarket)
        .quantity(Decimal::new(1, 2))
        .reduce_only(true)
        .activation_price(61_000)
        .callback_rate(Decimal::new(3, 1))
        .working_type(WorkingType::MarkPrice)
        .price_protect(true)
        .response_type(ResponseType::Result);
    let mut with_builder = Example::of(
        &limit,
        r#"{"code":200,"msg":"success","data":{"orderId":22542179,"status":"NEW"}}"#,
    );
    with_builder.parameters.push("builder", BUILDER);
    with_builder.parameters.push("feeRate", "0.00001");
    let first = BatchOrder::new("BTCUSDT", Side::Buy, OrderType::Limit, Decimal::new(2, 1))
        .time_in_force(TimeInForce::Gtc)
        .price(Decimal::new(600_001, 1))
        .client_order_id("mm:1");
    let second = BatchOrder::new("BTCUSDT", Side::Sell, OrderType::Market, Decimal::new(2, 1))
        .reduce_only(true);
    vec![
        Example::of(&limit, PLACED),
        Example::of(&trailing, TRAILING),
        with_builder,
        Example::of(&BatchOrders::new(vec![first, second]), PLACED_BATCH),
        Example::of(&QueryOrder::new("BTCUSDT").client_order_id("mm:1"), QUERIED),
        Example::of(&CancelOrder::new("BTCUSDT").order_id(22_542_179), CANCELED),
        Example::of(
            &CancelAllOrders::new("BTCUSDT"),
            r#"{"code":"200","msg":"The operation of cancel all open order is done."}"#,
        ),
        Example::of(
            &CancelBatchOrders::new("BTCUSDT")
                .client_order_ids(vec!["mm:1".to_owned(), "mm:2".to_owned()]),
            CANCELED_BATCH,
        ),
        Example::of(
            &CountdownCancelAll::new("BTCUSDT", 30_000),
            r#"{"symbol":"BTCUSDT","countdownTime":30000}"#,
        ),
        Example::of(&OpenOrder::new("BTCUSDT").client_order_id("mm:1"), QUERIED),
        Example::of(&OpenOrders::new(), LISTED),
        Example::of(&AllOrders::new("BTCUSDT").limit(10), LISTED),
        Example::of(&ForceOrders::new().symbol("BTCUSDT"), LISTED),
    ]
}

fn account() -> Vec<Example> {
    vec![
        Example::of(
            &GetBalance::new(),
            r#"[{"accountAlias":"SgsR","asset":"USDT","balance":"10000",
"crossWalletBalance":"10000","crossUnPnl":"1.5","availableBalance":"9971.5",
"maxWithdrawAmount":"9970","marginAvailable":true,"updateTime":1751350000000}]"#,
        ),
        Example::of(&GetAccount::new(), ACCOUNT),
        Example::of(&GetEarlierAccount::new(), ACCOUNT),
        Example::of(
            &UserTrades::new("BTCUSDT").limit(10),
            r#"[{"buyer":false,"commission":"-0.07819010","commissionAsset":"USDT","id":698759,
"maker":false,"orderId":22542179,"price":"60000.1","qty":"0.002","quoteQty":"120.0002",
"realizedPnl":"-0.91539999","side":"SELL","positionSide":"SHORT","symbol":"BTCUSDT",
"time":1751350000000}]"#,
        ),
        Example::of(
            &GetIncome::new()
                .income_type(IncomeType::FundingFee)
                .limit(10),
            r#"[{"symbol":"BTCUSDT","incomeType":"FUNDING_FEE","income":"-0.375","asset":"USDT",
"info":"FUNDING_FEE","time":1751350000000,"tranId":9689322392,"tradeId":""}]"#,
        ),
        Example::of(
            &GetCommissionRate::new("BTCUSDT"),
            r#"{"symbol":"BTCUSDT","makerCommissionRate":"0.0002",
"takerCommissionRate":"0.0004"}"#,
        ),
    ]
}

fn positions() -> Vec<Example> {
    let change_margin =
        ChangePositionMargin::new("BTCUSDT", 100, 1).position_side(PositionSide::Both);
    vec![
        Example::of(
            &ChangeLeverage::new("BTCUSDT", 21),
            r#"{"leverage":21,"maxNotionalValue":"1000000","symbol":"BTCUSDT"}"#,
        ),
        Example::of(
            &ChangeMarginType::new("BTCUSDT", MarginType::Isolated),
            SUCCESS,
        ),
        Example::of(
            &change_margin,
            r#"{"amount":100,"code":200,"msg":"Successfully modify position margin.","type":1}"#,
        ),
        Example::of(
            &PositionMarginHistory::new("BTCUSDT").change(1).limit(10),
            r#"[{"amount":"23.36332311","asset":"USDT","symbol":"BTCUSDT",
"time":1751350000000,"type":1,"positionSide":"BOTH"}]"#,
        ),
        Example::of(&GetPositionRisk::new().symbol("BTCUSDT"), RISK),
        Example::of(
            &GetLeverageBracket::new().symbol("BTCUSDT"),
            r#"{"symbol":"BTCUSDT","brackets":[{"bracket":1,"initialLeverage":75,
"notionalCap":10000,"notionalFloor":0,"maintMarginRatio":0.0065,"cum":0}]}"#,
        ),
        Example::of(
            &GetAdlQuantile::new(),
            r#"[{"symbol":"ETHUSDT","adlQuantile":{"LONG":3,"SHORT":3,"HEDGE":0}},
{"symbol":"BTCUSDT","adlQuantile":{"LONG":1,"SHORT":2,"BOTH":0}}]"#,
        ),
        Example::of(
            &GetRemainingOpenableNotional::new("BTCUSDT", 20),
            r#"{"remainingOpenableNotionalValue":"199430.0"}"#,
        ),
    ]
}

fn agents() -> Vec<Example> {
    let approve = ApproveAgent::new("bot1", AGENT, 1_967_945_395_040_i64, true, true, false)
        .ip_whitelist("")
        .builder(BUILDER)
        .max_fee_rate(Decimal::new(1, 5))
        .builder_name("desk");
    vec![
        Example::of(&approve, SUCCESS),
        Example::of(
            &UpdateAgent::new(AGENT, true, true, false).ip_whitelist(""),
            SUCCESS,
        ),
        Example::of(&DeleteAgent::new(AGENT), SUCCESS),
        Example::of(
            &GetAgents::new(),
            r#"[{"agentAddress":"0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0",
"agentName":"bot1","ipWhitelist":"","expired":1967945395040,"source":"api","canRead":true,
"canSpotTrade":true,"canPerpTrade":true,"canWithdraw":false}]"#,
        ),
        Example::of(
            &ApproveBuilder::new(BUILDER, Decimal::new(1, 5)).builder_name("desk"),
            "",
        ),
        Example::of(&UpdateBuilder::new(BUILDER, Decimal::new(2, 5)), SUCCESS),
        Example::of(&DeleteBuilder::new(BUILDER), SUCCESS),
        Example::of(
            &GetBuilders::new(),
            r#"[{"userAddress":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
"builderAddress":"0x70997970C51812dc3A010C7d01b50e0d17dc79C8","maxFeeRate":0.00001,
"builderName":"desk"}]"#,
        ),
    ]
}
