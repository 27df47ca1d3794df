//! Requests as sent and responses as parsed: the points that break real clients
//! (docs/interface/README.md#what-trips-clients), and properties of the scalars.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::str::FromStr;

use proptest::prelude::*;
use rust_decimal::Decimal;
use serde_json::json;
use serde_json::value::RawValue;
use windvane_protocol::wire::enums::{
    Interval, OrderStatus, OrderType, PositionSide, RateLimitInterval, Side, TimeInForce,
};
use windvane_protocol::wire::exchange::ExchangeInfo;
use windvane_protocol::wire::{
    Empty, Exact, Flag, Json, OneOrMany, Parameters, Request, SimpleResult, Text, Whole, Word,
    answers, chain, futures, info, read, spot,
};
use windvane_wire_examples as examples;

fn decimal(text: &str) -> Decimal {
    Decimal::from_str_exact(text).unwrap()
}

fn exact(body: &str) -> Option<Decimal> {
    read::<Exact>(body).ok().map(|exact| exact.0)
}

fn pairs(parameters: &Parameters) -> Vec<(&str, &str)> {
    parameters.iter().collect()
}

/// The futures order of the examples, changed by `change`.
fn order(change: impl FnOnce(&mut serde_json::Value)) -> futures::Order {
    let examples = examples::all();
    let mut found = examples.iter().filter(|it| it.route == "futures.new_order");
    let mut body = serde_json::from_str(found.next().unwrap().answer).unwrap();
    change(&mut body);
    read(&body.to_string()).unwrap()
}

#[test]
fn point_7_precisions_are_not_tick_and_step() {
    let body = json!({"rateLimits": [], "symbols": [{
        "symbol": "BTCUSDT", "baseAsset": "BTC", "quoteAsset": "USDT",
        "contractType": "PERPETUAL", "pricePrecision": 2, "quantityPrecision": 3,
        "filters": [
            {"filterType": "PRICE_FILTER", "minPrice": "0", "maxPrice": "0", "tickSize": "0.5"},
            {"filterType": "LOT_SIZE", "minQty": "10", "maxQty": "1000", "stepSize": "10"},
        ],
    }]});
    let info: ExchangeInfo = read(&body.to_string()).unwrap();
    let symbol = &info.symbols[0];
    assert_eq!(symbol.price_precision, Some(Whole(2)));
    assert_eq!(symbol.filters[0].tick_size, Some(Exact(decimal("0.5"))));
    assert_eq!(symbol.quantity_precision, Some(Whole(3)));
    assert_eq!(symbol.filters[1].step_size, Some(Exact(decimal("10"))));
}

#[test]
fn point_7_decimals_are_sent_as_the_caller_wrote_them() {
    let sent = |value: &str| {
        let request = spot::NewOrder::new("BTCUSDT", Side::Buy, OrderType::Market);
        let request = request.quantity(decimal(value));
        request.parameters().get("quantity").map(str::to_owned)
    };
    for text in [
        "0.00000001",
        "1.10",
        "100",
        "79228162514264337593543950335",
        "0.0000000000000000000000000001",
    ] {
        assert_eq!(sent(text).as_deref(), Some(text));
    }
}

#[test]
fn point_9_batch_answers_hold_an_error_object_per_entry() {
    let placed = order(|_| {});
    let body = format!(
        r#"[{}, {{"code": "-2022", "msg": "ReduceOnly Order is rejected."}}, {{"code": -2011, "msg": "Unknown order sent."}}]"#,
        serde_json::to_string(&placed).unwrap()
    );
    let entries: Vec<futures::BatchEntry> = read(&body).unwrap();
    assert_eq!(entries[0].0.as_ref(), Ok(&placed));
    let codes: Vec<i64> = entries[1..]
        .iter()
        .map(|entry| entry.0.as_ref().unwrap_err().code)
        .collect();
    assert_eq!(codes, [-2022, -2011]);
}

#[test]
fn point_10_code_is_text_or_number() {
    for body in [
        r#"{"code":"200","msg":"done"}"#,
        r#"{"code":200,"msg":"done"}"#,
        r#"{"msg":"done","code":" 200"}"#,
    ] {
        let result: SimpleResult = read(body).unwrap();
        assert_eq!((result.code.0, result.msg.as_str()), (200, "done"));
    }
}

/// The same JSON with every number as text, every text that is a number as a number, and every
/// boolean as text.
fn in_other_clothes(json: &str) -> String {
    if json.starts_with('{') {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(json).unwrap();
        let fields = fields.iter().map(|(name, value)| {
            let name = serde_json::to_string(name).unwrap();
            format!("{name}:{}", in_other_clothes(value.get()))
        });
        return format!("{{{}}}", fields.collect::<Vec<_>>().join(","));
    }
    if json.starts_with('[') {
        let entries: Vec<&RawValue> = serde_json::from_str(json).unwrap();
        let entries = entries.iter().map(|entry| in_other_clothes(entry.get()));
        return format!("[{}]", entries.collect::<Vec<_>>().join(","));
    }
    match json.trim_matches('"') {
        inner if inner.len() == json.len() && inner != "null" => format!("\"{inner}\""),
        inner if serde_json::from_str::<serde_json::Number>(inner).is_ok() => inner.to_owned(),
        _ => json.to_owned(),
    }
}

#[test]
fn point_10_numbers_and_text_are_interchangeable_in_answers() {
    for example in examples::all().iter().filter(|it| !it.answer.is_empty()) {
        let changed = in_other_clothes(example.answer);
        let read = answers::check(example.route, &changed);
        assert!(read.is_ok(), "{}: {read:?} in {changed}", example.route);
    }
}

#[test]
fn point_10_leverage_is_text_or_number() {
    for leverage in [json!("20"), json!(20)] {
        let body = json!({"symbol": "BTCUSDT", "leverage": leverage, "maxNotionalValue": 1e6});
        let answer: futures::Leverage = read(&body.to_string()).unwrap();
        assert_eq!(answer.leverage, Whole(20));
        assert_eq!(answer.max_notional_value, Some(Exact(decimal("1000000"))));
    }
}

#[test]
fn point_10_false_as_text_is_false() {
    for (body, value) in [
        ("false", false),
        ("\"false\"", false),
        ("\"FALSE\"", false),
        ("true", true),
        ("\"True\"", true),
    ] {
        assert_eq!(read::<Flag>(body).unwrap(), Flag(value), "{body}");
    }
    for body in ["0", "\"\"", "null", "\"no\"", "[]"] {
        assert!(read::<Flag>(body).is_err(), "{body}");
    }
}

#[test]
fn point_10_numbers_beyond_double_precision_keep_every_digit() {
    let digits = "12345678901234.123456789012345";
    assert_eq!(exact(digits), Some(decimal(digits)));
    assert_eq!(exact(&format!("\"{digits}\"")), Some(decimal(digits)));
    assert_eq!(
        read::<Whole>("9007199254740993").unwrap(),
        Whole(9_007_199_254_740_993)
    );
    // One digit too many is an error; the value is not rounded.
    assert_eq!(exact("79228162514264337593543950336"), None);
    assert_eq!(exact("0.00000000000000000000000000001"), None);
    assert_eq!(exact("1.23456789012345678901234567891e3"), None);
    // Trailing zeros after the point do not count as digits.
    assert_eq!(
        exact("1.500000000000000000000000000000000000"),
        Some(decimal("1.5"))
    );
}

#[test]
fn exponents_are_parsed_and_other_texts_are_refused() {
    assert_eq!(exact("1e-8"), Some(decimal("0.00000001")));
    assert_eq!(exact("-1.25E+3"), Some(decimal("-1250")));
    assert_eq!(exact("\"1.2e2\""), Some(decimal("120")));
    assert_eq!(exact("0e99"), Some(decimal("0")));
    assert_eq!(exact("1e29"), None);
    assert_eq!(exact("1e-29"), None);
    assert_eq!(exact("1e99999999999"), None);
    assert_eq!(exact("\"\""), Some(decimal("0")));
    for body in [
        "\"1_000\"",
        "\"abc\"",
        "\"1.2.3\"",
        "\"0x10\"",
        "\"1e\"",
        "\"-\"",
        "true",
        "null",
        "{}",
    ] {
        assert_eq!(exact(body), None, "{body}");
    }
}

#[test]
fn point_11_an_empty_body_is_a_success_for_simple_results() {
    for route in [
        "futures.approve_builder",
        "futures.update_builder",
        "futures.delete_builder",
        "futures.approve_agent",
        "spot.keepalive_listen_key",
        "spot.ping",
    ] {
        for body in ["", " \r\n", "{}"] {
            answers::check(route, body).unwrap();
        }
    }
    let result: SimpleResult = read("").unwrap();
    assert_eq!((result.code.0, result.msg.as_str()), (200, ""));
    assert_eq!(read::<Empty>("").unwrap(), Empty {});
    // Routes whose response needs content refuse an empty body.
    for route in [
        "futures.new_order",
        "spot.account",
        "futures.open_orders",
        "spot.get_nonce",
    ] {
        assert!(answers::check(route, "").is_err(), "{route}");
    }
}

#[test]
fn point_11_html_is_an_error_on_every_route() {
    let page = "<html><body><h1>403 Forbidden</h1></body></html>";
    for route in windvane_protocol::route::all() {
        assert!(answers::check(route.name, page).is_err(), "{}", route.name);
    }
}

#[test]
fn point_12_hedge_mode_never_sends_reduce_only() {
    let order = futures::NewOrder::new("BTCUSDT", Side::Sell, OrderType::Market)
        .position_side(PositionSide::Long)
        .quantity(1);
    let parameters = order.parameters();
    assert_eq!(
        pairs(&parameters),
        [
            ("symbol", "BTCUSDT"),
            ("side", "SELL"),
            ("positionSide", "LONG"),
            ("type", "MARKET"),
            ("quantity", "1"),
        ]
    );
    let batch = futures::BatchOrder::new("BTCUSDT", Side::Sell, OrderType::Market, 1)
        .position_side(PositionSide::Long);
    let batch = futures::BatchOrders::new(vec![batch]).parameters();
    assert!(!batch.get("batchOrders").unwrap().contains("reduceOnly"));
}

#[test]
fn the_nonce_for_api_keys_is_a_bare_number() {
    assert_eq!(read::<Whole>("111111").unwrap(), Whole(111_111));
    assert_eq!(read::<Whole>("\"111111\"\n").unwrap(), Whole(111_111));
    assert!(answers::check("spot.get_nonce", r#"{"nonce":111111}"#).is_err());
}

#[test]
fn tickers_are_an_object_for_one_symbol_and_an_array_for_all() {
    type Answer = <futures::GetPrice as Request>::Answer;
    let one = r#" {"symbol":"BTCUSDT","price":"59999.5","time":1751350000000}"#;
    let single: Answer = read(one).unwrap();
    assert!(matches!(&single, OneOrMany::One(ticker) if ticker.symbol == "BTCUSDT"));
    let all: Answer = read(&format!("[{one},{one}]")).unwrap();
    assert!(matches!(&all, OneOrMany::Many(tickers) if tickers.len() == 2));
    assert_eq!(single.into_vec()[0], all.into_vec()[1]);
    assert_eq!(read::<Answer>("[]").unwrap(), OneOrMany::Many(Vec::new()));
}

#[test]
fn klines_are_arrays_of_eleven_entries_or_more() {
    type PriceKlines = <futures::GetMarkPriceKlines as Request>::Answer;
    type Klines = <spot::GetKlines as Request>::Answer;
    let eleven = r#"[[1,"2","3","1","2.5","9",59999,"20",7,"4","8"]]"#;
    let klines: Klines = read(eleven).unwrap();
    assert_eq!(
        (klines[0].open_time, klines[0].close_time, klines[0].trades),
        (1, 59_999, 7)
    );
    assert_eq!(*klines[0].taker_buy_quote_volume, decimal("8"));
    let longer = r#"[["1",2,3,1,2.5,9,"59999",20,"7",4,8,{"ignored":[null]},"more"]]"#;
    assert_eq!(read::<Klines>(longer).unwrap(), klines);
    assert!(read::<Klines>(r#"[[1,"2","3","1","2.5","9",59999,"20",7,"4"]]"#).is_err());

    let body = r#"[[1,"2","3","1","2.5",null,59999,[],60,"x",{},"y"]]"#;
    let klines: PriceKlines = read(body).unwrap();
    assert_eq!((klines[0].close_time, klines[0].points), (59_999, 60));
}

#[test]
fn json_rpc_envelopes_keep_any_id() {
    type Answer = <info::GetOpenOrders as Request>::Answer;
    let result = r#""result":{"address":"0x0","accountPrivacy":"disabled","openOrders":[]}"#;
    for id in ["1", "\"a\"", "null", "[1e400]", "{\"x\":1}"] {
        let body = format!(r#"{{{result},"id":{id},"jsonrpc":"2.0"}}"#);
        let answer: Answer = read(&body).unwrap();
        let echoed = (id != "null").then(|| Json(id.to_owned()));
        assert_eq!(answer.id, echoed);
        assert!(answer.into_result().unwrap().open_orders.is_empty());
    }
    let refused = r#"{"error":{"code":-32602,"message":"Invalid params"},"id":1,"jsonrpc":"2.0"}"#;
    let answer: Answer = read(refused).unwrap();
    assert_eq!(answer.into_result().unwrap_err().code, Whole(-32_602));
    let neither: Answer = read(r#"{"id":1,"jsonrpc":"2.0"}"#).unwrap();
    assert!(neither.into_result().is_err());
}

#[test]
fn an_open_order_of_the_info_endpoint_has_a_status_or_a_price() {
    type Answer = <info::GetOpenOrders as Request>::Answer;
    let order = |last: &str| {
        let order = format!(
            r#"{{"orderId":"web_1","symbol":"BTCUSDT","side":"BUY","type":"LIMIT","origQty":"0.01"{last}}}"#
        );
        let body = format!(
            r#"{{"result":{{"address":"0x0","accountPrivacy":"disabled","openOrders":[{order}]}},"id":1,"jsonrpc":"2.0"}}"#
        );
        let orders = read::<Answer>(&body).unwrap().into_result().unwrap();
        orders.open_orders[0].clone()
    };
    let with_status = order(r#","status":"NEW""#);
    assert_eq!(with_status.status, Some(Word::Known(OrderStatus::New)));
    assert_eq!(with_status.price, None);
    let with_price = order(r#","price":"59000.1""#);
    assert_eq!(with_price.status, None);
    assert_eq!(with_price.price, Some(Exact(decimal("59000.1"))));
    assert_eq!(order("").price, None);
}

#[test]
fn unknown_values_are_kept_and_serialized_again() {
    let order = order(|body| {
        body["status"] = json!("NEW_WORD");
        body["timeInForce"] = json!("GTD");
        body["type"] = json!("LIQUIDATION");
    });
    assert_eq!(order.status, Word::Other("NEW_WORD".to_owned()));
    assert_eq!(order.status.known(), None);
    assert_eq!(order.time_in_force.to_string(), "GTD");
    assert_eq!(order.order_type, Word::Known(OrderType::Liquidation));
    assert_eq!(
        serde_json::to_value(&order).unwrap()["status"],
        json!("NEW_WORD")
    );
}

#[test]
fn unknown_fields_are_ignored_and_null_means_absent() {
    let order = order(|body| {
        body["goodTillDate"] = json!(0);
        body["nested"] = json!({"a": [1, {"b": null}]});
        body["avgPrice"] = json!(null);
        body["closePosition"] = json!(null);
    });
    assert_eq!((order.avg_price, order.close_position), (None, None));
    // A required field of every order must not be null.
    let mut body = serde_json::to_value(&order).unwrap();
    body["orderId"] = json!(null);
    assert!(read::<futures::Order>(&body.to_string()).is_err());
}

#[test]
fn ids_that_are_text_or_number_or_empty_are_kept_as_text() {
    for (body, text) in [
        ("9689322392", "9689322392"),
        ("\"\"", ""),
        (r#""a\"b""#, "a\"b"),
    ] {
        assert_eq!(read::<Text>(body).unwrap(), Text(text.to_owned()));
    }
    assert!(read::<Text>("true").is_err() && read::<Text>("[]").is_err());
}

#[test]
fn a_builder_order_response_is_parsed_on_the_same_route() {
    let body = r#"{"code":200,"msg":"success","data":{"orderId":"7","status":{"x":1}}}"#;
    answers::check("futures.new_order", body).unwrap();
    assert!(answers::check("spot.new_order", body).is_err());
}

#[test]
fn rate_limits_have_intervals_in_milliseconds() {
    let example = examples::all();
    let example = example.iter().find(|it| it.route == "spot.exchange_info");
    let info: ExchangeInfo = read(example.unwrap().answer).unwrap();
    let seconds = &info.rate_limits[2];
    assert_eq!(seconds.interval, Word::Known(RateLimitInterval::Second));
    assert_eq!(seconds.interval_ms(), Some(10_000));
    assert_eq!(info.rate_limits[0].interval_ms(), Some(60_000));
}

#[test]
fn secrets_do_not_print() {
    let pair: spot::ApiKeyPair = read(r#"{"apiKey":"k","apiSecret":"hush"}"#).unwrap();
    assert!(!format!("{pair:?}").contains("hush"));
}

#[test]
fn lists_are_compact_json_with_double_quotes() {
    let cancel = futures::CancelBatchOrders::new("BTCUSDT")
        .order_ids(vec![1, 2])
        .client_order_ids(vec!["a\"b".to_owned(), "c/d".to_owned()]);
    assert_eq!(
        pairs(&cancel.parameters()),
        [
            ("symbol", "BTCUSDT"),
            ("orderIdList", "[1,2]"),
            ("origClientOrderIdList", r#"["a\"b","c/d"]"#),
        ]
    );
    let order = futures::BatchOrder::new("BTCUSDT", Side::Buy, OrderType::Stop, decimal("0.10"))
        .time_in_force(TimeInForce::Gtc)
        .reduce_only(false)
        .price(1)
        .stop_price(2)
        .price_protect(true);
    assert_eq!(
        pairs(&futures::BatchOrders::new(vec![order.clone(), order]).parameters()),
        [(
            "batchOrders",
            concat!(
                r#"[{"symbol":"BTCUSDT","side":"BUY","type":"STOP","timeInForce":"GTC","#,
                r#""quantity":"0.10","reduceOnly":"false","price":"1","stopPrice":"2","#,
                r#""priceProtect":"TRUE"},{"symbol":"BTCUSDT","side":"BUY","type":"STOP","#,
                r#""timeInForce":"GTC","quantity":"0.10","reduceOnly":"false","price":"1","#,
                r#""stopPrice":"2","priceProtect":"TRUE"}]"#
            )
        )]
    );
}

#[test]
fn what_every_route_sends() {
    let mut lines = String::new();
    for example in examples::all() {
        lines.push_str(example.route);
        for (name, value) in example.parameters.iter() {
            write!(lines, "\n  {name}={value}").unwrap();
        }
        lines.push('\n');
    }
    insta::assert_snapshot!(lines);
}

#[test]
fn an_order_and_withdraw_info_are_parsed() {
    let order = order(|_| {});
    assert_eq!(order.status, Word::Known(OrderStatus::New));
    assert_eq!(*order.price, decimal("60000.1"));
    let examples = examples::all();
    let example = examples.iter().find(|it| it.route == "chain.withdraw_info");
    let withdraw: chain::WithdrawInfo = read(example.unwrap().answer).unwrap();
    let chain = &withdraw.balances["USDT"].chain_balances["56"];
    assert_eq!(*chain.withdraw_fee, decimal("0.3"));
}

proptest! {
    #[test]
    fn decimals_survive_text_number_and_exponent(mantissa in any::<i128>(), scale in 0_u32..=28) {
        let value = Decimal::try_from_i128_with_scale(mantissa >> 32, scale).unwrap();
        let text = value.to_string();
        prop_assert_eq!(exact(&text), Some(value));
        prop_assert_eq!(exact(&format!("\"{text}\"")), Some(value));
        let shifted = format!("{}e-{scale}", value.mantissa());
        prop_assert_eq!(exact(&shifted), Some(value));
        prop_assert_eq!(exact(&serde_json::to_string(&Exact(value)).unwrap()), Some(value));
    }

    #[test]
    fn whole_numbers_survive_text_and_number(value in any::<i64>()) {
        prop_assert_eq!(read::<Whole>(&value.to_string()).unwrap().0, value);
        prop_assert_eq!(read::<Whole>(&format!("\"{value}\"")).unwrap().0, value);
    }

    #[test]
    fn every_text_is_kept(text in ".*") {
        let body = serde_json::to_string(&text).unwrap();
        let word: Word<Interval> = read(&body).unwrap();
        prop_assert_eq!(word.to_string(), text.clone());
        prop_assert_eq!(word.known().copied(), Interval::from_str(&text).ok());
        prop_assert_eq!(serde_json::to_string(&word).unwrap(), body);
    }

    #[test]
    fn no_body_of_any_route_panics(body in ".{0,200}", index in 0_usize..200) {
        let examples = examples::all();
        let example = &examples[index % examples.len()];
        let _ = answers::check(example.route, &body);
        // Cut the body at any position and add any text after the cut.
        let cuts = example.answer.char_indices().map(|(at, _)| at);
        let cut = cuts.take(index * 3 + 1).last().unwrap_or(0);
        let _ = answers::check(example.route, &format!("{}{body}", &example.answer[..cut]));
    }

    #[test]
    fn a_wrong_type_anywhere_never_panics(
        index in 0_usize..200, at in 0_usize..200, with in prop::sample::select(vec![
            "null", "[]", "{}", "true", "\"\"", "-1", "1e400", "\"é\"", "[[[]]]",
        ]),
    ) {
        let examples = examples::all();
        let example = &examples[index % examples.len()];
        let colons: Vec<usize> = example.answer.match_indices(':').map(|(at, _)| at).collect();
        if let Some(&colon) = colons.get(at % colons.len().max(1)) {
            let rest = &example.answer[colon + 1..];
            let end = rest.find([',', '}', ']']).unwrap_or(rest.len());
            let body = format!("{}:{with}{}", &example.answer[..colon], &rest[end..]);
            let _ = answers::check(example.route, &body);
        }
    }
}

#[test]
fn a_notional_without_limit_is_parsed() {
    let risk = r#"{"symbol":"A","positionSide":"BOTH","positionAmt":"0","entryPrice":"0",
        "maxNotionalValue":"INF"}"#;
    let risk: windvane_protocol::wire::futures::PositionRisk = read(risk).unwrap();
    assert_eq!(risk.max_notional_value, Some(Text("INF".to_owned())));
}
