//! Examples of market data of the futures surface.

use crate::example::Example;
use windvane_protocol::wire::enums::Interval;
use windvane_protocol::wire::futures::{
    GetAggTrades, GetBookTicker, GetDepth, GetExchangeInfo, GetFundingInfo, GetFundingRate,
    GetHistoricalTrades, GetIndexPriceKlines, GetKlines, GetMarkPriceKlines, GetPremiumIndex,
    GetPrice, GetTicker24hr, GetTime, GetTrades, Ping,
};

const TRADES: &str = r#"[{"id":657,"price":"60000.05","qty":"0.01","quoteQty":"600.0005",
"time":1751350000500,"isBuyerMaker":true}]"#;

const PRICE_KLINES: &str = r#"[[1751349960000,"60012","60100","59800","59999.5","0",
1751350019999,"0",60,"0","0","0"]]"#;

const EXCHANGE_INFO: &str = r#"{"exchangeFilters":[],"rateLimits":[
{"interval":"MINUTE","intervalNum":1,"limit":2400,"rateLimitType":"REQUEST_WEIGHT"},
{"interval":"MINUTE","intervalNum":1,"limit":1200,"rateLimitType":"ORDERS"}],
"serverTime":1751350000000,"assets":[
{"asset":"USDT","marginAvailable":true,"autoAssetExchange":0},
{"asset":"BTC","marginAvailable":false,"autoAssetExchange":null}],"symbols":[{
"symbol":"BTCUSDT","pair":"BTCUSDT","contractType":"PERPETUAL","deliveryDate":4133404800000,
"onboardDate":1598252400000,"status":"TRADING","maintMarginPercent":"2.5000",
"requiredMarginPercent":"5.0000","baseAsset":"BTC","quoteAsset":"USDT","marginAsset":"USDT",
"pricePrecision":2,"quantityPrecision":3,"baseAssetPrecision":8,"quotePrecision":8,
"underlyingType":"COIN","underlyingSubType":[],"settlePlan":0,
"triggerProtect":"0.15","filters":[
{"filterType":"PRICE_FILTER","maxPrice":"300","minPrice":"0.0001","tickSize":"0.0001"},
{"filterType":"LOT_SIZE","maxQty":"10000000","minQty":"1","stepSize":"1"},
{"filterType":"MARKET_LOT_SIZE","maxQty":"590119","minQty":"1","stepSize":"1"},
{"filterType":"MAX_NUM_ORDERS","limit":200},
{"filterType":"MAX_NUM_ALGO_ORDERS","limit":100},
{"filterType":"MIN_NOTIONAL","notional":"5.0"},
{"filterType":"PERCENT_PRICE","multiplierUp":"1.1500","multiplierDown":"0.8500",
"multiplierDecimal":"4"}],
"OrderType":["LIMIT","MARKET","STOP","STOP_MARKET","TAKE_PROFIT","TAKE_PROFIT_MARKET",
"TRAILING_STOP_MARKET"],"timeInForce":["GTC","IOC","FOK","GTX","HIDDEN"],
"liquidationFee":"0.010000","marketTakeBound":"0.30"}],"timezone":"UTC"}"#;

const TICKERS: &str = r#"[{"symbol":"BTCUSDT","priceChange":"-94.9","priceChangePercent":"-0.158",
"weightedAvgPrice":"60001.2","prevClosePrice":"60094.4","lastPrice":"59999.5","lastQty":"0.2",
"openPrice":"60094.4","highPrice":"60100","lowPrice":"59800","volume":"8913.3",
"quoteVolume":"534808695.96","openTime":1751263600000,"closeTime":1751350000000,
"firstId":28385,"lastId":28460,"count":76}]"#;

pub(crate) fn examples() -> Vec<Example> {
    vec![
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
            r#"[{"a":26129,"p":"60000.05","q":"0.01","f":657,"l":658,"T":1751350000500,
"m":true}]"#,
        ),
        Example::of(
            &GetKlines::new("BTCUSDT", Interval::Hour1).limit(5),
            r#"[[1751346000000,"60012","60100","59800","59999.5","12.5",1751349599999,
"749993.75",31,"6.1","366000.5","0"]]"#,
        ),
        Example::of(
            &GetIndexPriceKlines::new("BTCUSDT", Interval::Minute1).limit(5),
            PRICE_KLINES,
        ),
        Example::of(
            &GetMarkPriceKlines::new("BTCUSDT", Interval::Minute1).limit(5),
            PRICE_KLINES,
        ),
        Example::of(
            &GetPremiumIndex::new().symbol("BTCUSDT"),
            r#"{"symbol":"BTCUSDT","markPrice":"59850.1","indexPrice":"59849.5",
"estimatedSettlePrice":"59849.9","lastFundingRate":"0.0001","nextFundingTime":1751356800000,
"interestRate":"0.0001","time":1751350000000}"#,
        ),
        Example::of(
            &GetFundingRate::new().symbol("BTCUSDT").limit(5),
            r#"[{"symbol":"BTCUSDT","fundingRate":"-0.0375","fundingTime":1751328000000}]"#,
        ),
        Example::of(
            &GetFundingInfo::new(),
            r#"[{"symbol":"BTCUSDT","interestRate":"0.0001","time":1751328000000,
"fundingIntervalHours":8,"fundingFeeCap":0.03,"fundingFeeFloor":-0.03}]"#,
        ),
        Example::of(&GetTicker24hr::new(), TICKERS),
        Example::of(
            &GetPrice::new().symbol("BTCUSDT"),
            r#"{"symbol":"BTCUSDT","price":"59999.5","time":1751350000000}"#,
        ),
        Example::of(
            &GetBookTicker::new(),
            r#"[{"symbol":"BTCUSDT","bidPrice":"59999.4","bidQty":"1.5","askPrice":"59999.6",
"askQty":"0.7","time":1751350000000}]"#,
        ),
    ]
}
