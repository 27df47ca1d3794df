use serde_json::Value;
use windvane_model::Time;

use super::*;
use crate::advance::advance;
use crate::request::{Family, Params};
use crate::settings::Settings;
use crate::state::State;

/// 2024-08-08 23:54:13 UTC.
const START: Time = Time(1_723_161_253_000_000_000);

struct Venue {
    state: State,
    now: Time,
}

fn venue() -> Venue {
    let (mut state, _) = State::new(Settings::default(), START).unwrap();
    let now = START.plus_ms(4_700);
    advance(&mut state, now);
    Venue { state, now }
}

impl Venue {
    fn answer(&mut self, name: &str, query: &str) -> Result<Value, i32> {
        let route = route::named(name).unwrap();
        let surface = route.surface;
        let params = Params::parse(surface, query, "").unwrap();
        let call = Call {
            route,
            listing: &route.listings[0],
            params: &params,
            body: b"",
            now: self.now,
            now_ms: self.now.millis(),
            account: None,
        };
        let answer = handle(&self.state.board, &self.state.limits, &call);
        let body = answer.map_err(|refusal| refusal.code)?;
        Ok(serde_json::from_str(&body.0).unwrap())
    }

    fn done(&mut self, name: &str, query: &str) -> Value {
        self.answer(name, query).unwrap()
    }

    fn code(&mut self, name: &str, query: &str) -> i32 {
        self.answer(name, query).unwrap_err()
    }
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

fn array(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

#[test]
fn every_route_without_an_account_is_answered() {
    let mut venue = venue();
    let query = "symbol=BTCUSDT&pair=BTCUSDT&interval=1h";
    for route in route::all().filter(|route| Family::of(route.name) == Family::Market) {
        assert!(venue.answer(route.name, query).is_ok(), "{}", route.name);
    }
    assert_eq!(
        route::all()
            .filter(|route| Family::of(route.name) == Family::Market)
            .count(),
        11 + 16
    );
}

#[test]
fn depth_has_the_documented_shape_and_limits() {
    let mut venue = venue();
    for (name, default) in [("spot.depth", 100), ("futures.depth", 250)] {
        let depth = venue.done(name, "symbol=BTCUSDT");
        assert_eq!(keys(&depth), ["E", "T", "asks", "bids", "lastUpdateId"]);
        assert_eq!(array(&depth["bids"]).len(), default, "{name}");
        assert!(depth["bids"][0][0].is_string() && depth["bids"][0][1].is_string());
        assert!(depth["lastUpdateId"].is_i64());
        assert_eq!(
            array(&venue.done(name, "symbol=BTCUSDT&limit=5")["asks"]).len(),
            5
        );
        for limit in ["0", "6", "1001", "-5"] {
            assert_eq!(
                venue.code(name, &format!("symbol=BTCUSDT&limit={limit}")),
                -4021
            );
        }
        assert_eq!(venue.code(name, "symbol=NOPE"), -1121);
        assert_eq!(venue.code(name, ""), -1102);
    }
}

#[test]
fn trades_are_ascending_and_bounded() {
    let mut venue = venue();
    let spot = venue.done("spot.trades", "symbol=ETHUSDT&limit=3");
    assert_eq!(array(&spot).len(), 3);
    let expected = ["baseQty", "id", "isBuyerMaker", "price", "qty", "time"];
    assert_eq!(keys(&spot[0]), expected);
    let futures = venue.done("futures.trades", "symbol=ETHUSDT");
    assert_eq!(array(&futures).len(), 500);
    let expected = ["id", "isBuyerMaker", "price", "qty", "quoteQty", "time"];
    assert_eq!(keys(&futures[0]), expected);
    let ids: Vec<_> = array(&futures)
        .iter()
        .map(|t| t["id"].as_i64().unwrap())
        .collect();
    assert!(ids.windows(2).all(|pair| pair[1] == pair[0] + 1));
    let from = venue.done(
        "futures.historical_trades",
        &format!("symbol=ETHUSDT&fromId={}", ids[7]),
    );
    assert_eq!(from[0]["id"].as_i64(), Some(ids[7]));
    for limit in ["0", "1001", "-1"] {
        assert_eq!(
            venue.code("spot.trades", &format!("symbol=ETHUSDT&limit={limit}")),
            -1130
        );
    }
    assert_eq!(venue.code("spot.trades", "symbol=ETHUSDT&limit=x"), -1100);
}

#[test]
fn aggregate_trades_follow_their_time_rules() {
    let mut venue = venue();
    let all = venue.done("spot.agg_trades", "symbol=BTCUSDT");
    assert_eq!(keys(&all[0]), ["T", "a", "f", "l", "m", "p", "q"]);
    let first = &array(&all)[10];
    let (id, time) = (first["a"].as_i64().unwrap(), first["T"].as_i64().unwrap());
    let from = venue.done(
        "spot.agg_trades",
        &format!("symbol=BTCUSDT&fromId={id}&limit=2"),
    );
    assert_eq!(array(&from).len(), 2);
    assert_eq!(from[0], *first);
    let within = format!(
        "symbol=BTCUSDT&startTime={time}&endTime={}",
        time + 3_599_999
    );
    assert_eq!(venue.done("spot.agg_trades", &within)[0], *first);
    let long = format!(
        "symbol=BTCUSDT&startTime={time}&endTime={}",
        time + 3_600_000
    );
    assert_eq!(venue.code("futures.agg_trades", &long), -1127);
    let reversed = format!("symbol=BTCUSDT&startTime={time}&endTime={}", time - 1);
    assert_eq!(venue.code("futures.agg_trades", &reversed), -1023);
}

#[test]
fn klines_have_eleven_items_on_spot_and_twelve_on_futures() {
    let mut venue = venue();
    let spot = venue.done("spot.klines", "symbol=BTCUSDT&interval=1m");
    assert_eq!((array(&spot).len(), array(&spot[0]).len()), (500, 11));
    let futures = venue.done("futures.klines", "symbol=BTCUSDT&interval=1m&limit=1500");
    assert_eq!(
        (array(&futures).len(), array(&futures[0]).len()),
        (1500, 12)
    );
    let marks = venue.done(
        "futures.mark_price_klines",
        "symbol=BTCUSDT&interval=1h&limit=2",
    );
    assert_eq!((array(&marks).len(), array(&marks[0]).len()), (2, 12));
    assert!(marks[0][8].as_i64().unwrap() > 0, "data points");
    let start = futures[100][0].as_i64().unwrap();
    let later = format!("symbol=BTCUSDT&interval=1m&startTime={start}&limit=1");
    assert_eq!(
        venue.done("futures.klines", &later)[0][0].as_i64(),
        Some(start)
    );
    assert_eq!(
        venue.code("spot.klines", "symbol=BTCUSDT&interval=1s"),
        -1120
    );
    assert_eq!(venue.code("spot.klines", "symbol=BTCUSDT"), -1102);
    assert_eq!(
        venue.code("spot.klines", "symbol=BTCUSDT&interval=1m&limit=1501"),
        -1130
    );
    assert_eq!(
        venue.code("futures.index_price_klines", "symbol=BTCUSDT&interval=1m"),
        -1102
    );
    assert_eq!(
        venue.code("futures.index_price_klines", "pair=X&interval=1m"),
        -1121
    );
}

#[test]
fn tickers_are_objects_with_a_symbol_and_lists_without() {
    let mut venue = venue();
    for name in ["ticker_24hr", "ticker_price", "book_ticker"] {
        for surface in ["spot", "futures"] {
            let name = format!("{surface}.{name}");
            let one = venue.done(&name, "symbol=DOGEUSDT");
            assert_eq!(one["symbol"], "DOGEUSDT");
            assert_eq!(array(&venue.done(&name, "")).len(), 3, "{name}");
            assert_eq!(venue.code(&name, "symbol=dogeusdt"), -1121);
        }
    }
    let spot = venue.done("spot.ticker_24hr", "symbol=BTCUSDT");
    assert_eq!(keys(&spot).len(), 23);
    assert_eq!(
        (&spot["baseAsset"], &spot["quoteAsset"]),
        (&"BTC".into(), &"USDT".into())
    );
    let futures = venue.done("futures.ticker_24hr", "symbol=BTCUSDT");
    assert_eq!(keys(&futures).len(), 17);
    assert!(futures["count"].is_i64() && futures["volume"].is_string());
}

#[test]
fn marks_and_fundings_have_their_shapes_and_bounds() {
    let mut venue = venue();
    let mark = venue.done("futures.premium_index", "symbol=BTCUSDT");
    let expected = [
        "estimatedSettlePrice",
        "indexPrice",
        "interestRate",
        "lastFundingRate",
        "markPrice",
        "nextFundingTime",
        "symbol",
        "time",
    ];
    assert_eq!(keys(&mark), expected);
    assert_eq!(mark["nextFundingTime"].as_i64(), Some(1_723_161_600_000));
    assert_eq!(array(&venue.done("futures.premium_index", "")).len(), 3);
    let rates = venue.done("futures.funding_rate", "symbol=BTCUSDT");
    assert_eq!(array(&rates).len(), 100);
    assert_eq!(keys(&rates[0]), ["fundingRate", "fundingTime", "symbol"]);
    let start = rates[3]["fundingTime"].as_i64().unwrap();
    let from = venue.done(
        "futures.funding_rate",
        &format!("startTime={start}&limit=4"),
    );
    let symbols: Vec<_> = array(&from)
        .iter()
        .map(|f| f["symbol"].as_str().unwrap())
        .collect();
    assert_eq!(symbols, ["BTCUSDT", "ETHUSDT", "DOGEUSDT", "BTCUSDT"]);
    assert_eq!(from[0]["fundingTime"].as_i64(), Some(start));
    let info = venue.done("futures.funding_info", "symbol=ETHUSDT");
    assert!(info[0]["fundingFeeCap"].is_number() && info[0]["fundingIntervalHours"] == 8);
}

#[test]
fn exchange_information_decodes_to_the_instruments() {
    let mut venue = venue();
    for (name, surface) in [("spot", Surface::Spot), ("futures", Surface::Futures)] {
        let info = venue.done(&format!("{name}.exchange_info"), "").to_string();
        let entries = windvane_protocol::exchange_info::entries(&info).unwrap();
        let mut assets = venue.state.board.assets();
        for (symbol, entry) in entries {
            let rules = windvane_protocol::exchange_info::symbol_rules(entry).unwrap();
            let mut read = rules.instrument(&mut assets).unwrap();
            let mut own = venue
                .state
                .board
                .find(surface, &symbol)
                .unwrap()
                .instrument
                .clone();
            // Scales may differ by trailing zeros, but the prices must be equal.
            let prices = |of: &mut windvane_model::Instrument| {
                let filter = of.filters.price.take().unwrap();
                let bounds = [filter.min_price, filter.max_price, filter.tick_size];
                let prices = bounds.map(|mantissa| of.price(mantissa));
                of.price_scale = 0;
                prices
            };
            assert_eq!(prices(&mut read), prices(&mut own));
            assert_eq!(read, own);
        }
    }
}
