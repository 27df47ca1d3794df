//! Examples of the spot surface.

use rust_decimal::Decimal;
use windvane_model::{OrderType, Side, TimeInForce};

use crate::example::Example;
use windvane_protocol::wire::enums::{Interval, TransferKind, UserOperation};
use windvane_protocol::wire::spot::{
    AllOrders, CancelAllOrders, CancelOrder, CloseListenKey, CreateApiKey, CreateListenKey,
    GetAccount, GetAggTrades, GetBookTicker, GetCommissionRate, GetDepth, GetExchangeInfo,
    GetHistoricalTrades, GetKlines, GetNonce, GetPrice, GetTicker24hr, GetTime, GetTrades,
    GetWithdrawFee, KeepaliveListenKey, NewOrder, Noop, OpenOrder, OpenOrders, Ping, QueryOrder,
    SendToAddress, UserTrades, WalletTransfer, Withdraw,
};

const PLACED: &str = r#"{"symbol":"BTCUSDT","orderId":38,"clientOrderId":"mm:1",
"updateTime":1751350000000,"price":"60000.1","avgPrice":"0","origQty":"0.01","cumQty":"0",
"executedQty":"0","cumQuote":"0","status":"NEW","timeInForce":"GTC","stopPrice":"0",
"origType":"LIMIT","type":"LIMIT","side":"BUY"}"#;

const CANCELED: &str = r#"{"symbol":"BTCUSDT","orderId":38,"clientOrderId":"mm:1",
"updateTime":1751350001000,"price":"60000.1","avgPrice":"0","origQty":"0.01","cumQty":"0",
"executedQty":"0","cumQuote":"0","status":"CANCELED","timeInForce":"GTC","stopPrice":"0",
"origType":"LIMIT","type":"LIMIT","side":"BUY"}"#;

const QUERIED: &str = r#"{"symbol":"BTCUSDT","orderId":38,"clientOrderId":"mm:1",
"price":"60000.1","avgPrice":"60000.05","origQty":"0.01","executedQty":"0.004",
"cumQuote":"240.0002","status":"PARTIALLY_FILLED","timeInForce":"GTC","type":"LIMIT",
"origType":"LIMIT","side":"BUY","stopPrice":"0","time":1751350000000,
"updateTime":1751350000500}"#;

const LISTED: &str = r#"[{"symbol":"BTCUSDT","orderId":38,"clientOrderId":"mm:1",
"price":"60000.1","avgPrice":"0","origQty":"0.01","executedQty":"0","cumQuote":"0",
"status":"NEW","timeInForce":"GTC","type":"LIMIT","origType":"LIMIT","side":"BUY",
"stopPrice":"0","time":1751350000000,"updateTime":1751350000000}]"#;

const EXCHANGE_INFO: &str = r#"{"timezone":"UTC","serverTime":1751350000000,"rateLimits":[
{"rateLimitType":"REQUEST_WEIGHT","interval":"MINUTE","intervalNum":1,"limit":6000},
{"rateLimitType":"ORDERS","interval":"MINUTE","intervalNum":1,"limit":6000},
{"rateLimitType":"ORDERS","interval":"SECOND","intervalNum":10,"limit":300}],
"exchangeFilters":[],"assets":[{"asset":"USDT"},{"asset":"BTC"}],"symbols":[{
"status":"TRADING","baseAsset":"BTC","quoteAsset":"USDT","pricePrecision":2,
"quantityPrecision":5,"baseAssetPrecision":8,"quotePrecision":8,"filters":[
{"filterType":"PRICE_FILTER","minPrice":"0.01","maxPrice":"1000000","tickSize":"0.01"},
{"filterType":"LOT_SIZE","minQty":"0.00001","maxQty":"9000","stepSize":"0.00001"},
{"filterType":"MARKET_LOT_SIZE","minQty":"0.00001","maxQty":"100","stepSize":"0.00001"},
{"filterType":"MAX_NUM_ORDERS","limit":200},
{"filterType":"MIN_NOTIONAL","minNotional":"5"},
{"filterType":"MAX_NOTIONAL","maxNotional":"9000000"},
{"filterType":"NOTIONAL","minNotional":"5","maxNotional":"9000000","avgPriceMins":5,
"applyMinToMarket":true,"applyMaxToMarket":false},
{"filterType":"PERCENT_PRICE","multiplierUp":"1.05","multiplierDown":"0.95",
"multiplierDecimal":"4"},
{"filterType":"PERCENT_PRICE_BY_SIDE","bidMultiplierUp":"1.2","askMultiplierUp":"5",
"bidMultiplierDown":"0.2","askMultiplierDown":"0.8","avgPriceMins":5,
"multiplierDecimal":"4"}],
"orderTypes":["LIMIT","MARKET","STOP","TAKE_PROFIT","STOP_MARKET","TAKE_PROFIT_MARKET"],
"timeInForce":["GTC","IOC","FOK","GTX","HIDDEN"],"symbol":"BTCUSDT","ocoAllowed":false}]}"#;

const TICKER: &str = r#"{"symbol":"BTCUSDT","priceChange":"-12.5","priceChangePercent":"-0.021",
"weightedAvgPrice":"60001.2","prevClosePrice":"60012","lastPrice":"59999.5","lastQty":"0.002",
"bidPrice":"59999.4","bidQty":"1.5","askPrice":"59999.6","askQty":"0.7","openPrice":"60012",
"highPrice":"60100","lowPrice":"59800","volume":"1234.5","quoteVolume":"74071481.4",
"openTime":1751263600000,"closeTime":1751350000000,"firstId":1,"lastId":99,"count":99,
"baseAsset":"BTC","quoteAsset":"USDT"}"#;

pub(crate) fn examples() -> Vec<Example> {
    let mut examples = orders();
    examples.extend(account());
    examples.extend(market());
    examples
}

fn orders() -> Vec<Example> {
    let new_order = NewOrder::new("BTCUSDT", Side::Buy, OrderType::Limit)
        .time_in_force(TimeInForce::Gtc)
        .quantity(Decimal::new(1, 2))
        .price(Decimal::new(600_001, 1))
        .client_order_id("mm:1");
    vec![
        Example::of(&new_order, PLACED),
        Example::of(
            &NewOrder::new("BTCUSDT", Side::Buy, OrderType::Market).quote_order_qty(100),
            PLACED,
        ),
        Example::of(&CancelOrder::new("BTCUSDT").order_id(38), CANCELED),
        Example::of(&QueryOrder::new("BTCUSDT").client_order_id("mm:1"), QUERIED),
        Example::of(&OpenOrder::new("BTCUSDT").order_id(38), QUERIED),
        Example::of(&OpenOrders::new().symbol("BTCUSDT"), LISTED),
        Example::of(
            &CancelAllOrders::new("BTCUSDT").order_ids(vec![38, 39]),
            r#"{"code":200,"msg":"The operation of cancel all open order is done."}"#,
        ),
        Example::of(&AllOrders::new("BTCUSDT").limit(10), LISTED),
    ]
}

fn account() -> Vec<Example> {
    let address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
    let withdraw = Withdraw::new("56", "USDT", Decimal::from(31), Decimal::new(3, 1), address);
    let create_key = CreateApiKey::new(address, UserOperation::CreateApiKey, "desk");
    vec![
        Example::of(
            &WalletTransfer::new(10, "USDT", "transfer-1", TransferKind::SpotToFuture),
            r#"{"tranId":21841,"status":"SUCCESS"}"#,
        ),
        Example::of(
            &SendToAddress::new(1, "USDT", "0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0")
                .client_tran_id("send-000000000000000001"),
            r#"{"tranId":21842,"status":"SUCCESS"}"#,
        ),
        Example::of(
            &GetWithdrawFee::new("56", "USDT"),
            r#"{"tokenPrice":1.00019,"gasCost":0.5,"gasUsdValue":0.500095}"#,
        ),
        Example::of(
            &withdraw,
            r#"{"withdrawId":"1014729574755487744","hash":"0xa6d1"}"#,
        ),
        Example::of(
            &GetNonce::new(address, UserOperation::CreateApiKey),
            "111111",
        ),
        Example::of(
            &create_key,
            r#"{"apiKey":"bb3b24d0","apiSecret":"worthless"}"#,
        ),
        Example::of(
            &GetAccount::new(),
            r#"{"feeTier":0,"canTrade":true,"canDeposit":true,"canWithdraw":true,
"canBurnAsset":true,"updateTime":1751350000000,
"balances":[{"asset":"USDT","free":"9760.25","locked":"600.001"}]}"#,
        ),
        Example::of(
            &UserTrades::new().symbol("BTCUSDT").limit(10),
            r#"[{"symbol":"BTCUSDT","id":1002,"orderId":38,"side":"BUY","price":"60000.05",
"qty":"0.004","quoteQty":"240.0002","commission":"0.096","commissionAsset":"USDT",
"time":1751350000500,"counterpartyId":19,"createUpdateId":null,"maker":false,"buyer":true}]"#,
        ),
        Example::of(
            &CreateListenKey::new(),
            r#"{"listenKey":"pqia91ma19a5s61cv6a81va65sd"}"#,
        ),
        Example::of(
            &KeepaliveListenKey::new("pqia91ma19a5s61cv6a81va65sd"),
            "{}",
        ),
        Example::of(&CloseListenKey::new("pqia91ma19a5s61cv6a81va65sd"), "{}"),
        Example::of(
            &GetCommissionRate::new("BTCUSDT"),
            r#"{"symbol":"BTCUSDT","makerCommissionRate":"0.0002",
"takerCommissionRate":"0.0004"}"#,
        ),
    ]
}

fn market() -> Vec<Example> {
    const TRADES: &str = r#"[{"id":657,"price":"60000.05","qty":"0.01","baseQty":"600.0005",
"time":1751350000500,"isBuyerMaker":false}]"#;
    vec![
        Example::of(
            &Noop::new().nonce(1_748_310_859_508_867_i64),
            r#"{"code":200,"msg":"success"}"#,
        ),
        Example::of(&Ping::new(), "{}"),
        Example::of(&GetTime::new(), r#"{"serverTime":1751350000000}"#),
        Example::of(&GetExchangeInfo::new(), EXCHANGE_INFO),
        Example::of(
            &GetDepth::new("BTCUSDT").limit(5),
            r#"{"lastUpdateId":1027024,"E":1751350000000,"T":1751349999990,
"bids":[["59999.4","1.5"]],"asks":[["59999.6","0.7"]]}"#,
        ),
        Example::of(&GetTrades::new("BTCUSDT").limit(5), TRADES),
        Example::of(&GetHistoricalTrades::new("BTCUSDT").limit(5), TRADES),
        Example::of(
            &GetAggTrades::new("BTCUSDT").limit(5),
            r#"[{"a":26129,"p":"60000.05","q":"0.01","f":657,"l":657,"T":1751350000500,
"m":false}]"#,
        ),
        Example::of(
            &GetKlines::new("BTCUSDT", Interval::Minute1).limit(5),
            r#"[[1751349960000,"60012","60100","59800","59999.5","12.5",1751350019999,
"749993.75",31,"6.1","366000.5","0"]]"#,
        ),
        Example::of(&GetTicker24hr::new().symbol("BTCUSDT"), TICKER),
        Example::of(
            &GetPrice::new(),
            r#"[{"symbol":"BTCUSDT","price":"59999.5","time":1751350000000}]"#,
        ),
        Example::of(
            &GetBookTicker::new().symbol("BTCUSDT"),
            r#"{"symbol":"BTCUSDT","bidPrice":"59999.4","bidQty":"1.5","askPrice":"59999.6",
"askQty":"0.7","time":1751350000000}"#,
        ),
    ]
}
