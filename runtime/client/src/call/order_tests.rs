//! Tests arguments of orders and of lists: mandatory fields, and lists entry by entry.

use super::tests::{ADDRESS, parse, refusal, settings};
use super::*;

#[test]
fn orders_refuse_negative_numbers_and_invalid_ids() {
    let order = |more: &str| {
        refusal(
            "futures.new_order",
            &["symbol=A", "side=BUY", "type=LIMIT", more],
        )
    };
    for name in ["quantity", "price", "stopPrice", "activationPrice"] {
        assert_eq!(
            order(&format!("{name}=-1")),
            format!("{name} = \"-1\" must be a decimal without exponent of 0 or more")
        );
    }
    let too_long = "x".repeat(37);
    for id in ["a b", "ä", "", &too_long] {
        assert_eq!(
            order(&format!("newClientOrderId={id}")),
            format!("newClientOrderId = {id:?} must be 1 to 36 letters, digits and . : / _ -")
        );
    }
    let parts = ["symbol=A", "countdownTime=-1"];
    assert_eq!(
        refusal("futures.countdown_cancel_all", &parts),
        "countdownTime = \"-1\" must be an integer of 0 or more"
    );
    assert!(
        parse(
            "futures.countdown_cancel_all",
            &["symbol=A", "countdownTime=0"]
        )
        .is_ok()
    );
}

#[test]
fn an_order_needs_the_mandatory_fields_of_its_type() {
    let order = |route: &str, order_type: &str, more: &[&str]| {
        let order_type = format!("type={order_type}");
        let base = ["symbol=A", "side=BUY", &order_type];
        let arguments: Vec<_> = base.iter().chain(more).copied().collect();
        parse(route, &arguments)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let missing = |route: &str, order_type: &str, name: &str| {
        Err(format!(
            "{route} of type {order_type} requires {name}: give it"
        ))
    };
    let (quantity, price, stop) = ("quantity=1", "price=2", "stopPrice=3");
    for route in ["spot.new_order", "futures.new_order"] {
        for (kind, whole) in [
            ("LIMIT", &["timeInForce=GTC", quantity, price][..]),
            ("STOP", &[quantity, price, stop]),
            ("TAKE_PROFIT", &[quantity, price, stop]),
        ] {
            assert_eq!(order(route, kind, whole), Ok(()));
            for absent in whole {
                let rest: Vec<_> = whole.iter().filter(|one| *one != absent).copied().collect();
                let name = absent.split_once('=').unwrap().0;
                assert_eq!(order(route, kind, &rest), missing(route, kind, name));
            }
        }
    }
    let (spot, futures) = ("spot.new_order", "futures.new_order");
    let either = "quantity or quoteOrderQty";
    assert_eq!(order(spot, "MARKET", &[]), missing(spot, "MARKET", either));
    assert_eq!(order(spot, "MARKET", &["quoteOrderQty=5"]), Ok(()));
    assert_eq!(
        order(futures, "MARKET", &[]),
        missing(futures, "MARKET", "quantity")
    );
    for kind in ["STOP_MARKET", "TAKE_PROFIT_MARKET"] {
        assert_eq!(order(spot, kind, &[stop]), missing(spot, kind, "quantity"));
        // `closePosition` may replace the quantity.
        assert_eq!(order(futures, kind, &[stop]), Ok(()));
        assert_eq!(
            order(futures, kind, &[]),
            missing(futures, kind, "stopPrice")
        );
    }
    let trailing = "TRAILING_STOP_MARKET";
    let wanted = missing(futures, trailing, "callbackRate");
    assert_eq!(order(futures, trailing, &[quantity]), wanted);
}

#[test]
fn a_builder_and_its_fee_rate_go_together() {
    let builder = format!("builder={ADDRESS}");
    let options = Options {
        api: Some(Api::V3),
        ..Options::default()
    };
    let base = ["symbol=A", "side=BUY", "type=MARKET", "quantity=1"];
    let order = |more: &[&str]| {
        let arguments: Vec<_> = base.iter().chain(more).copied().collect();
        let call = Call::parse("futures.new_order", &arguments, &settings(), &options);
        call.map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(order(&[&builder, "feeRate=0.001"]), Ok(()));
    assert_eq!(
        order(&[&builder]),
        Err("builder is given without feeRate: give both or neither".to_owned())
    );
    assert_eq!(
        order(&["feeRate=0.001"]),
        Err("feeRate is given without builder: give both or neither".to_owned())
    );
}

#[test]
fn lists_are_checked_entry_by_entry() {
    let limit = r#"{"symbol":"A","side":"BUY","type":"LIMIT","timeInForce":"GTC","quantity":"1","price":2.50}"#;
    let batch = |list: &str| {
        let call = parse("futures.batch_orders", &[&format!("batchOrders={list}")]);
        call.map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(batch(&format!("[{limit}, {limit}]")), Ok(()));
    let six = [limit; 6].join(",");
    assert_eq!(
        batch(&format!("[{six}]")),
        Err("batchOrders has 6 entries: give 5 at most".to_owned())
    );
    assert_eq!(
        batch("[]"),
        Err(
            "batchOrders = \"[]\" must be a JSON list of at most 5 entries with at least one"
                .to_owned()
        )
    );
    let whole = r#"batchOrders[1] = "7" must be a JSON object of an order's parameters"#;
    assert_eq!(batch(&format!("[{limit},7]")), Err(whole.to_owned()));
    for (entry, text) in [
        (
            r#"{"symbol":"A","side":"BUY","type":"MARKET","quantity":"1e3"}"#,
            r#"batchOrders[1].quantity = "1e3" must be a decimal without exponent of 0 or more"#,
        ),
        (
            r#"{"symbol":"A","side":"BUY","type":"MARKET","quantity":1e3}"#,
            r#"batchOrders[1].quantity = "1e3" must be a decimal without exponent of 0 or more"#,
        ),
        (
            r#"{"symbol":7,"side":"BUY","type":"MARKET","quantity":1}"#,
            r#"batchOrders[1].symbol = "7" must be a text"#,
        ),
        (
            r#"{"symbol":"A","side":"buy","type":"MARKET","quantity":1}"#,
            r#"batchOrders[1].side = "buy" must be one of BUY, SELL"#,
        ),
        (
            r#"{"symbol":"A","side":"BUY","type":"MARKET"}"#,
            "batchOrders[1] requires quantity: give it (a decimal without exponent of 0 or more)",
        ),
        (
            r#"{"symbol":"A","side":"BUY","type":"LIMIT","quantity":"1","price":"2"}"#,
            "batchOrders[1] of type LIMIT requires timeInForce: give it",
        ),
        (
            r#"{"symbol":"A","side":"BUY","type":"STOP_MARKET","quantity":"1","stopPrise":"2"}"#,
            "batchOrders[1] has no parameter stopPrise; did you mean stopPrice?",
        ),
        (
            r#"{"symbol":"A","side":"BUY","side":"SELL","type":"MARKET","quantity":"1"}"#,
            "batchOrders[1].side is given twice: give it once",
        ),
        (
            r#"{"symbol":"A","side":"BUY","type":"TRAILING_STOP_MARKET","quantity":"1","callbackRate":"4.5"}"#,
            r#"batchOrders[1].callbackRate = "4.5" must be a decimal without exponent from 0.1 to 4"#,
        ),
        (
            r#"{"symbol":"A","side":"BUY","type":"MARKET","quantity":"1","newClientOrderId":"a b"}"#,
            r#"batchOrders[1].newClientOrderId = "a b" must be 1 to 36 letters, digits and . : / _ -"#,
        ),
    ] {
        assert_eq!(batch(&format!("[{limit},{entry}]")), Err(text.to_owned()));
    }
}

#[test]
fn lists_of_ids_hold_integers_or_texts() {
    let cancel = |route: &str, list: &str| {
        let call = parse(route, &["symbol=A", list]);
        call.map(|_| ()).map_err(|error| error.to_string())
    };
    for route in ["spot.cancel_all_orders", "futures.cancel_batch_orders"] {
        assert_eq!(cancel(route, "orderIdList=[1, 2]"), Ok(()));
        assert_eq!(cancel(route, r#"origClientOrderIdList=["a","b"]"#), Ok(()));
        assert_eq!(
            cancel(route, r#"orderIdList=[1,"2"]"#),
            Err(r#"orderIdList[1] = "\"2\"" must be an integer, not in quotes"#.to_owned())
        );
        assert_eq!(
            cancel(route, "origClientOrderIdList=[7]"),
            Err(r#"origClientOrderIdList[0] = "7" must be a text in double quotes"#.to_owned())
        );
        assert!(cancel(route, "orderIdList=[]").is_err());
        assert!(cancel(route, "orderIdList=1").is_err());
        assert!(cancel(route, r#"origClientOrderIdList=[""]"#).is_err());
    }
    let id = r#"origClientOrderIdList=["ok","a b"]"#;
    assert_eq!(
        cancel("futures.cancel_batch_orders", id),
        Err(
            r#"origClientOrderIdList[1] = "a b" must be 1 to 36 letters, digits and . : / _ -"#
                .to_owned()
        )
    );
    // For spot the documents state no set of characters and no maximum number of entries.
    assert_eq!(cancel("spot.cancel_all_orders", id), Ok(()));
    let eleven = format!("orderIdList=[{}]", ["7"; 11].join(","));
    assert_eq!(cancel("spot.cancel_all_orders", &eleven), Ok(()));
    assert_eq!(
        cancel("futures.cancel_batch_orders", &eleven),
        Err("orderIdList has 11 entries: give 10 at most".to_owned())
    );
}

#[test]
fn parameter_combinations_follow_the_documents() {
    let close_all = [
        "symbol=A",
        "side=SELL",
        "type=STOP_MARKET",
        "stopPrice=1",
        "closePosition=true",
    ];
    let order = |more: &'static str| {
        let arguments: Vec<_> = close_all.into_iter().chain([more]).collect();
        refusal("futures.new_order", &arguments)
    };
    assert!(parse("futures.new_order", &close_all).is_ok());
    assert_eq!(
        order("quantity=1"),
        "quantity is given with closePosition=true: leave one of them out"
    );
    assert!(order("reduceOnly=false").starts_with("reduceOnly is given with"));
    assert_eq!(
        refusal("spot.user_trades", &["orderId=5"]),
        "orderId is given without symbol: give symbol too"
    );
    assert!(parse("spot.user_trades", &["orderId=5", "symbol=A"]).is_ok());
    for route in ["spot.wallet_transfer", "futures.wallet_transfer"] {
        for amount in ["amount=0", "amount=-1"] {
            let transfer = [amount, "asset=A", "clientTranId=1", "kindType=SPOT_FUTURE"];
            assert!(refusal(route, &transfer).ends_with("greater than 0"));
        }
    }
}
