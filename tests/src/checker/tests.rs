//! Tests the checker with a run made by hand, and with one mistake at a time in that run.

use super::check;
use crate::results::Results;

/// A run as texts, so that a test can change single fields.
#[derive(Clone)]
struct Files {
    fills: String,
    orders: String,
    equity: String,
    summary: String,
}

/// Buys 0.2 at 100 as maker and sells 0.1 at 101 as taker. One order is cancelled, one is rejected
/// by a local rule, and one is rejected by the venue.
fn futures() -> Files {
    Files {
        fills: "time_ns,strategy,instrument,client_order_id,order_id,trade_id,side,position_side,\
price,qty,quote_qty,fee,fee_asset,maker,realized_pnl
1500000000,mm,futures:BTCUSDT,mm.7.1,11,1,BUY,BOTH,100,0.2,20,0.004,USDT,true,0
2500000000,mm,futures:BTCUSDT,mm.7.3,13,2,SELL,BOTH,101,0.1,10.1,0.00404,USDT,false,0.1
"
        .to_owned(),
        orders: "time_ns,strategy,instrument,client_order_id,order_id,side,type,time_in_force,\
price,stop_price,qty,executed_qty,avg_price,status,reject_rule
1000000000,mm,futures:BTCUSDT,mm.7.1,11,BUY,LIMIT,GTX,100,,0.2,0.2,100,FILLED,
1000000000,mm,futures:BTCUSDT,mm.7.2,12,SELL,LIMIT,GTC,110,,0.2,0,,CANCELED,
1000000000,mm,futures:BTCUSDT,,,SELL,LIMIT,GTC,1,,0.2,0,,REJECTED,PRICE_FILTER.minPrice
2400000000,mm,futures:BTCUSDT,mm.7.3,13,SELL,MARKET,,,,0.1,0.1,101,FILLED,
2400000000,mm,futures:BTCUSDT,mm.7.4,,SELL,MARKET,,,,9,0,,REJECTED,venue -2019
"
        .to_owned(),
        equity: "time_ns,equity,cash,unrealized_pnl,drawdown
1000000000,1000,1000,0,0
2000000000,999.996,999.996,0,0.000004
3000000000,1000.19196,1000.09196,0.1,0
3400000000,1000.29196,1000.09196,0.2,0
"
        .to_owned(),
        summary: r#"{
  "orders_submitted": 4, "orders_rejected": 2, "orders_canceled": 1, "fills": 2,
  "volume_quote": "30.1", "fees": "0.00804", "realized_pnl": "0.1", "unrealized_pnl": "0.2",
  "funding": "0", "start_equity": "1000", "final_equity": "1000.29196",
  "max_drawdown": "0.000004", "quote_asset": "USDT",
  "fingerprint": "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
  "instruments": [{"name": "futures:BTCUSDT", "final_position": "0.1", "final_mid": "102"}],
  "strategies": [{"id": "mm", "orders_submitted": 4, "orders_rejected": 2,
    "orders_canceled": 1, "fills": 2, "maker_fills": 1, "volume_quote": "30.1",
    "fees": "0.00804", "realized_pnl": "0.1"}],
  "rejections": [{"strategy": "mm", "rule": "PRICE_FILTER.minPrice", "code": -4013, "count": 1},
    {"strategy": "mm", "rule": "venue -2019", "code": -2019, "count": 1}],
  "data": {"marks": 0}
}"#
        .to_owned(),
    }
}

/// Holds 0.5 from the start, bought at 100, and sells 0.3 of it at 110.
fn spot() -> Files {
    let futures = futures();
    let header = |text: &str| text.lines().next().unwrap().to_owned() + "\n";
    Files {
        fills: header(&futures.fills)
            + "1500000000,mm,spot:BTCUSDT,mm.7.1,11,1,SELL,BOTH,110,0.3,33,0.033,USDT,true,3\n",
        orders: header(&futures.orders)
            + "1000000000,mm,spot:BTCUSDT,mm.7.1,11,SELL,LIMIT,GTC,110,,0.4,0.3,110,\
CANCEL_REQUESTED,\n",
        equity: header(&futures.equity)
            + "1000000000,1050,1000,0,0\n2000000000,1054.967,1032.967,2,0\n",
        summary: r#"{
  "orders_submitted": 1, "orders_rejected": 0, "orders_canceled": 0, "fills": 1,
  "volume_quote": "33", "fees": "0.033", "realized_pnl": "3", "unrealized_pnl": "2",
  "funding": "0", "start_equity": "1050", "final_equity": "1054.967",
  "max_drawdown": "0", "quote_asset": "USDT",
  "fingerprint": "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
  "instruments": [{"name": "spot:BTCUSDT", "final_position": "0.2", "final_mid": "110"}],
  "strategies": [{"id": "mm", "orders_submitted": 1, "orders_rejected": 0,
    "orders_canceled": 0, "fills": 1, "maker_fills": 1, "volume_quote": "33",
    "fees": "0.033", "realized_pnl": "33"}],
  "rejections": [], "data": {"marks": 0}
}"#
        .to_owned(),
    }
}

fn findings(files: &Files) -> Vec<String> {
    let Files {
        fills,
        orders,
        equity,
        summary,
    } = files;
    let results = Results::parse(fills, orders, equity, summary).unwrap();
    check(&results).iter().map(ToString::to_string).collect()
}

#[test]
fn a_correct_run_has_no_findings() {
    assert_eq!(findings(&futures()), [""; 0]);
}

#[test]
fn a_start_holding_is_part_of_the_position() {
    // The strategy itself never bought: its own sub-position is short 0.3 and has realized nothing.
    let mut files = spot();
    files.summary = files
        .summary
        .replace(r#""realized_pnl": "33""#, r#""realized_pnl": "0""#);
    assert_eq!(findings(&files), [""; 0]);
}

#[test]
fn a_wrong_profit_of_a_strategy_is_found() {
    let found = findings(&spot());
    assert_eq!(found, ["summary.json strategy mm: realized_pnl: 33, not 0"]);
}

/// Replaces a text once and requires a finding that names the rule.
fn spoiled(file: fn(&mut Files) -> &mut String, from: &str, to: &str, rule: &str) {
    let mut files = futures();
    let text = file(&mut files);
    assert!(text.contains(from), "the file must contain {from}");
    *text = text.replacen(from, to, 1);
    let found = findings(&files);
    assert!(
        found.iter().any(|finding| finding.contains(rule)),
        "{from} -> {to} must break {rule:?}, found {found:#?}"
    );
}

#[test]
fn every_wrong_fill_is_found() {
    let cases = [
        ("0.2,20,", "0.2,20.1,", "quote_qty is price times qty"),
        ("true,0\n", "true,0.00000001\n", "realized_pnl follows"),
        ("false,0.1\n", "false,0.09999999\n", "realized_pnl follows"),
        ("0.004,USDT", "0.00400001,USDT", "fees"),
        (
            "0.004,USDT",
            "0.004,BTC",
            "fees are paid in the quote asset",
        ),
        (",13,2,SELL", ",13,1,SELL", "trade_id is unique"),
        (",13,2,SELL", ",14,2,SELL", "order_id are its order's"),
        ("mm.7.3", "mm.7.9", "every fill has its order"),
        ("mm.7.3", "mm.7.2", "executed_qty is the sum"),
        (
            "BUY,BOTH,100,0.2,20",
            "BUY,BOTH,100.1,0.2,20.02",
            "worse than the limit",
        ),
        (
            "BUY,BOTH,100,0.2,20",
            "BUY,BOTH,99.9,0.2,19.98",
            "maker fills at its own price",
        ),
        ("USDT,true", "USDT,false", "GTX never takes"),
        ("USDT,false", "USDT,true", "only orders that rest"),
        ("1500000000", "999999999", "no fill comes before its order"),
        (",SELL,BOTH", ",BUY,BOTH", "side and order_id"),
        ("0.2,20,", "0.3,30,", "executed_qty is the sum"),
    ];
    for (from, to, rule) in cases {
        spoiled(|files| &mut files.fills, from, to, rule);
    }
}

#[test]
fn a_missing_fill_is_found() {
    let mut files = futures();
    files.fills = files
        .fills
        .lines()
        .take(2)
        .fold(String::new(), |t, l| t + l + "\n");
    let found = findings(&files).join("\n");
    for rule in [
        "executed_qty is the sum",
        "start flat",
        "realized_pnl",
        "fees",
        "fills",
    ] {
        assert!(found.contains(rule), "{rule}: {found}");
    }
}

#[test]
fn every_wrong_order_is_found() {
    let cases = [
        ("FILLED,", "PARTIALLY_FILLED,", "status fits"),
        ("CANCELED,", "FILLED,", "status fits"),
        ("CANCELED,", "CANCELLED,", "status fits"),
        ("CANCELED,", "NEW,", "orders_canceled"),
        ("0.2,0.2,100,", "0.2,0.1,100,", "executed_qty is the sum"),
        ("0.2,0.2,100,", "0.2,0.2,100.00000001,", "avg_price"),
        (
            "REJECTED,PRICE",
            "CANCELED,PRICE",
            "who is refused names the rule",
        ),
        ("PRICE_FILTER.minPrice", "", "who is refused names the rule"),
        (
            "PRICE_FILTER.minPrice",
            "PRICE_FILTER.maxPrice",
            "rejections are those",
        ),
        ("mm.7.2", "mm.7.1", "client_order_id is unique"),
        ("mm.7.2", "mm.8.2", "a run has one epoch"),
        ("mm.7.2", "mm.7.5", "every accepted order has its row"),
        ("mm.7.2", "mm.7.02", "client_order_id is <strategy>"),
        ("mm.7.2", "mm.7.A", "client_order_id is <strategy>"),
        ("mm.7.2", "xx.7.2", "client_order_id is <strategy>"),
        ("mm.7.2", "mm.7", "client_order_id is <strategy>"),
        ("mm.7.2,12", "mm.7.2,11", "order_id is unique"),
        ("mm.7.2,12", ",12", "without an id never left"),
    ];
    for (from, to, rule) in cases {
        spoiled(|files| &mut files.orders, from, to, rule);
    }
}

#[test]
fn every_wrong_row_of_equity_is_found() {
    let cases = [
        ("3000000000", "3100000000", "one row per second"),
        ("3400000000", "4400000000", "one row per second"),
        ("3400000000", "3000000000", "one row per second"),
        (
            "2000000000,999.996,999.996",
            "2000000000,999.997,999.997",
            "follows from the fills",
        ),
        (
            "999.996,999.996,0,",
            "999.996,999.995,0.001,",
            "follows from the fills",
        ),
        ("1000,1000,0,0", "1000,999,1,0", "follows from the fills"),
        ("0,0.000004", "0,0.000005", "drawdown is the fall"),
        (
            "1000.29196,1000.09196,0.2",
            "1000.19196,1000.09196,0.1",
            "equity is final_equity",
        ),
        (
            "1000.29196,1000.09196,0.2",
            "1000.29196,1000.08196,0.21",
            "start_equity is cash",
        ),
    ];
    for (from, to, rule) in cases {
        spoiled(|files| &mut files.equity, from, to, rule);
    }
}

#[test]
fn every_wrong_figure_of_the_summary_is_found() {
    let cases = [
        (
            "\"orders_submitted\": 4",
            "\"orders_submitted\": 5",
            "orders_submitted",
        ),
        (
            "\"orders_rejected\": 2",
            "\"orders_rejected\": 1",
            "orders_rejected",
        ),
        (
            "\"orders_canceled\": 1",
            "\"orders_canceled\": 0",
            "orders_canceled",
        ),
        ("\"fills\": 2", "\"fills\": 3", "fills"),
        (
            "\"volume_quote\": \"30.1\"",
            "\"volume_quote\": \"30\"",
            "volume_quote",
        ),
        ("\"fees\": \"0.00804\"", "\"fees\": \"0.00803\"", "fees"),
        (
            "\"realized_pnl\": \"0.1\"",
            "\"realized_pnl\": \"0.2\"",
            "realized_pnl",
        ),
        (
            "\"unrealized_pnl\": \"0.2\"",
            "\"unrealized_pnl\": \"0.3\"",
            "value at the last mid",
        ),
        (
            "\"start_equity\": \"1000\"",
            "\"start_equity\": \"1001\"",
            "sum of its parts",
        ),
        (
            "\"final_equity\": \"1000.29196\"",
            "\"final_equity\": \"1000.3\"",
            "sum of its parts",
        ),
        (
            "\"funding\": \"0\"",
            "\"funding\": \"0.1\"",
            "sum of its parts",
        ),
        (
            "\"max_drawdown\": \"0.000004\"",
            "\"max_drawdown\": \"0\"",
            "max_drawdown",
        ),
        (
            "\"final_position\": \"0.1\"",
            "\"final_position\": \"0.2\"",
            "start flat",
        ),
        ("\"maker_fills\": 1", "\"maker_fills\": 2", "maker_fills"),
        ("\"count\": 1", "\"count\": 2", "rejections"),
        ("ddeeff\"", "ddeef\"", "fingerprint"),
    ];
    for (from, to, rule) in cases {
        spoiled(|files| &mut files.summary, from, to, rule);
    }
}
