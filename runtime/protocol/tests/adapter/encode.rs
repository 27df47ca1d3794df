//! Encoding of requests.

use std::fmt::Write;

use insta::assert_snapshot;
use windvane_model::protocol::{Outcome, Reply};
use windvane_model::state_report::Subject;
use windvane_model::{
    Amount, InstrumentId, OrderTerms, OrderType, PositionSide, Price, Qty, Request, Side, Surface,
    TimeInForce, TradeId, VenueOrderId, WorkingType,
};
use windvane_protocol::adapter::{Adapter, EncodeError};
use windvane_protocol::wire::answers;

use super::fixture::{BTC, FUTURES, SPOT, USDT, adapter, documented, id, limit, order, place};

/// Every call with its route and its parameters as sent, before encoding.
fn encoded_by(adapter: &Adapter, request: &Request) -> String {
    let mut text = String::new();
    for call in adapter.encode_request(request).unwrap() {
        let known = answers::parameter_names(call.route.name).unwrap();
        let mut line = format!("{}:", call.route.name);
        for (name, value) in call.parameters.iter() {
            assert!(known.contains(&name), "{name}");
            let sent = format!(" {name}={value}");
            if line.len() + sent.len() > 90 {
                writeln!(text, "{line}").unwrap();
                line = String::from(" ");
            }
            line += &sent;
        }
        writeln!(text, "{line}").unwrap();
    }
    text.trim_end().to_owned()
}

fn encoded(request: &Request) -> String {
    encoded_by(&adapter(), request)
}

#[test]
fn a_limit_order_is_placed_on_either_surface() {
    assert_snapshot!(encoded(&place("mm.k2x.1a", limit(FUTURES))), @r#"
    futures.new_order: symbol=BTCUSDT side=BUY type=LIMIT timeInForce=GTC quantity=0.01
      price=60000.1 newClientOrderId=mm.k2x.1a newOrderRespType=RESULT
    "#);
    assert_snapshot!(encoded(&place("mm.k2x.1b", limit(SPOT))), @r#"
    spot.new_order: symbol=BTCUSDT side=BUY type=LIMIT timeInForce=GTC quantity=0.01
      price=60000.1 newClientOrderId=mm.k2x.1b
    "#);
}

#[test]
fn numbers_have_no_exponent_and_no_trailing_zeros() {
    let mut terms = limit(FUTURES);
    terms.price = Some(Price(6_000_000));
    terms.qty = Some(Qty(1));
    assert_snapshot!(encoded(&place("a", terms)), @r#"
    futures.new_order: symbol=BTCUSDT side=BUY type=LIMIT timeInForce=GTC quantity=0.00001
      price=60000 newClientOrderId=a newOrderRespType=RESULT
    "#);
    terms.price = Some(Price(i64::MAX));
    terms.qty = Some(Qty(100_000));
    assert_snapshot!(encoded(&place("a", terms)), @r#"
    futures.new_order: symbol=BTCUSDT side=BUY type=LIMIT timeInForce=GTC quantity=1
      price=92233720368547758.07 newClientOrderId=a newOrderRespType=RESULT
    "#);
}

#[test]
fn a_spot_market_buy_sends_its_quote_quantity() {
    let mut terms = OrderTerms::new(SPOT, Side::Buy, OrderType::Market);
    terms.quote_qty = Some(Amount(12_345_600_000));
    assert_snapshot!(encoded(&place("a", terms)), @r#"
    spot.new_order: symbol=BTCUSDT side=BUY type=MARKET quoteOrderQty=123.456
      newClientOrderId=a
    "#);
}

#[test]
fn conditional_orders_carry_their_conditions() {
    let mut stop = limit(FUTURES);
    stop.order_type = OrderType::Stop;
    stop.stop_price = Some(Price(6_100_000));
    stop.working_type = Some(WorkingType::MarkPrice);
    stop.price_protect = true;
    stop.reduce_only = true;
    assert_snapshot!(encoded(&place("a", stop)), @r#"
    futures.new_order: symbol=BTCUSDT side=BUY type=STOP timeInForce=GTC quantity=0.01
      reduceOnly=true price=60000.1 newClientOrderId=a stopPrice=61000 workingType=MARK_PRICE
      priceProtect=TRUE newOrderRespType=RESULT
    "#);
    let mut close = OrderTerms::new(FUTURES, Side::Sell, OrderType::StopMarket);
    close.stop_price = Some(Price(5_900_000));
    close.close_position = true;
    assert_snapshot!(encoded(&place("a", close)), @r#"
    futures.new_order: symbol=BTCUSDT side=SELL type=STOP_MARKET newClientOrderId=a
      stopPrice=59000 closePosition=true newOrderRespType=RESULT
    "#);
    let mut trailing = OrderTerms::new(FUTURES, Side::Sell, OrderType::TrailingStopMarket);
    trailing.qty = Some(Qty(1_000));
    trailing.activation_price = Some(Price(6_100_050));
    trailing.callback_ppm = Some(1_500);
    assert_snapshot!(encoded(&place("a", trailing)), @r#"
    futures.new_order: symbol=BTCUSDT side=SELL type=TRAILING_STOP_MARKET quantity=0.01
      newClientOrderId=a activationPrice=61000.5 callbackRate=0.15 newOrderRespType=RESULT
    "#);
    let mut spot = limit(SPOT);
    spot.order_type = OrderType::TakeProfit;
    spot.stop_price = Some(Price(6_100_000));
    assert_snapshot!(encoded(&place("a", spot)), @r#"
    spot.new_order: symbol=BTCUSDT side=BUY type=TAKE_PROFIT timeInForce=GTC quantity=0.01
      price=60000.1 newClientOrderId=a stopPrice=61000
    "#);
}

#[test]
fn hedge_mode_sends_the_position_side_but_not_reduce_only() {
    let mut terms = limit(FUTURES);
    terms.position_side = PositionSide::Long;
    assert_snapshot!(encoded(&place("a", terms)), @r#"
    futures.new_order: symbol=BTCUSDT side=BUY positionSide=LONG type=LIMIT timeInForce=GTC
      quantity=0.01 price=60000.1 newClientOrderId=a newOrderRespType=RESULT
    "#);
    terms.reduce_only = true;
    let request = place("a", terms);
    let error = adapter().encode_request(&request).unwrap_err();
    assert_eq!(error, EncodeError::ReduceOnlyInHedgeMode);
    let [Reply::Placed { outcome, .. }] = &adapter().refuse(&request, &error)[..] else {
        panic!("one reply")
    };
    assert!(matches!(outcome, Outcome::Refused(refusal) if refusal.is_not_sent()));
}

#[test]
fn a_batch_is_a_compact_list_of_texts() {
    let orders = vec![order("a", limit(FUTURES)), order("b", limit(FUTURES))];
    let text = encoded(&Request::PlaceBatch(orders)).replace("},", "},\n");
    assert_snapshot!(text.replace(",\"price", ",\n\"price"), @r#"
    futures.batch_orders:
      batchOrders=[{"symbol":"BTCUSDT","side":"BUY","type":"LIMIT","timeInForce":"GTC","quantity":"0.01",
    "price":"60000.1","newClientOrderId":"a","newOrderRespType":"RESULT"},
    {"symbol":"BTCUSDT","side":"BUY","type":"LIMIT","timeInForce":"GTC","quantity":"0.01",
    "price":"60000.1","newClientOrderId":"b","newOrderRespType":"RESULT"}]
    "#);
}

#[test]
fn a_futures_batch_is_split_by_the_limits_of_one_call() {
    let mut close = OrderTerms::new(FUTURES, Side::Sell, OrderType::StopMarket);
    close.stop_price = Some(Price(5_900_000));
    close.close_position = true;
    let mut terms = vec![limit(FUTURES); 8];
    terms[1] = close;
    let orders = terms.iter().enumerate();
    let orders = orders.map(|(n, terms)| order(&format!("o{n}"), *terms));
    let calls = encoded(&Request::PlaceBatch(orders.collect()));
    let counts = calls.split("futures.").skip(1).map(|call| {
        let (route, _) = call.split_once(':').unwrap();
        (route, call.matches("newClientOrderId").count())
    });
    let single = ("new_order", 1);
    let expected = [single, single, ("batch_orders", 5), single];
    assert_eq!(counts.collect::<Vec<_>>(), expected);
}

#[test]
fn spot_batches_become_single_calls() {
    let orders = vec![order("a", limit(SPOT)), order("b", limit(SPOT))];
    assert_snapshot!(encoded(&Request::PlaceBatch(orders)), @r#"
    spot.new_order: symbol=BTCUSDT side=BUY type=LIMIT timeInForce=GTC quantity=0.01
      price=60000.1 newClientOrderId=a
    spot.new_order: symbol=BTCUSDT side=BUY type=LIMIT timeInForce=GTC quantity=0.01
      price=60000.1 newClientOrderId=b
    "#);
    let request = Request::CancelBatch {
        instrument: SPOT,
        client_order_ids: vec![id("a"), id("b")],
    };
    assert_snapshot!(encoded(&request), @r#"
    spot.cancel_order: symbol=BTCUSDT origClientOrderId=a
    spot.cancel_order: symbol=BTCUSDT origClientOrderId=b
    "#);
    assert_eq!(
        adapter().encode_request(&Request::PlaceBatch(Vec::new())),
        Ok(vec![])
    );
}

#[test]
fn cancels_and_queries_name_the_order_by_its_client_order_id() {
    for (instrument, word) in [(FUTURES, "futures"), (SPOT, "spot")] {
        let client_order_id = id("mm.k2x.1a");
        let cancel = encoded(&Request::Cancel {
            instrument,
            client_order_id,
        });
        let query = encoded(&Request::Query {
            instrument,
            client_order_id,
        });
        let named = "symbol=BTCUSDT origClientOrderId=mm.k2x.1a";
        assert_eq!(cancel, format!("{word}.cancel_order: {named}"));
        assert_eq!(query, format!("{word}.query_order: {named}"));
        let all = encoded(&Request::CancelAll { instrument });
        assert_eq!(all, format!("{word}.cancel_all_orders: symbol=BTCUSDT"));
    }
    let ids = (0..11).map(|n| id(&format!("o{n}"))).collect();
    let request = Request::CancelBatch {
        instrument: FUTURES,
        client_order_ids: ids,
    };
    assert_snapshot!(encoded(&request), @r#"
    futures.cancel_batch_orders: symbol=BTCUSDT
      origClientOrderIdList=["o0","o1","o2","o3","o4","o5","o6","o7","o8","o9"]
    futures.cancel_order: symbol=BTCUSDT origClientOrderId=o10
    "#);
}

#[test]
fn settings_and_the_countdown_exist_only_on_futures() {
    let countdown = |instrument| Request::Countdown {
        instrument,
        countdown_ms: 30_000,
    };
    assert_snapshot!(encoded(&countdown(FUTURES)), @"futures.countdown_cancel_all: symbol=BTCUSDT countdownTime=30000");
    let leverage = |instrument| Request::SetLeverage {
        instrument,
        leverage: 21,
    };
    assert_snapshot!(encoded(&leverage(FUTURES)), @"futures.change_leverage: symbol=BTCUSDT leverage=21");
    assert_snapshot!(encoded(&Request::SetPositionMode { hedge: true }), @"futures.change_position_mode: dualSidePosition=true");
    for request in [countdown(SPOT), leverage(SPOT)] {
        let error = adapter().encode_request(&request).unwrap_err();
        assert!(
            error.to_string().contains("does not exist on spot"),
            "{error}"
        );
    }
}

#[test]
fn reads_of_the_account_are_encoded() {
    let read = |subject| encoded(&Request::Read(subject));
    for surface in [Surface::Futures, Surface::Spot] {
        let open = read(Subject::OpenOrders { surface });
        assert_eq!(open, format!("{surface}.open_orders:"));
    }
    let surface = Surface::Spot;
    assert_snapshot!(read(Subject::Account { surface }), @"spot.account:");
    let surface = Surface::Futures;
    assert_snapshot!(read(Subject::Account { surface }), @r#"
    futures.account:
    futures.position_mode:
    futures.multi_assets_mode:
    "#);
    let trades = |instrument, from: Option<i64>| Subject::Trades {
        instrument,
        from: from.map(TradeId),
    };
    assert_snapshot!(read(trades(FUTURES, Some(7))), @"futures.user_trades: symbol=BTCUSDT fromId=7 limit=1000");
    assert_snapshot!(read(trades(SPOT, None)), @"spot.user_trades: symbol=BTCUSDT limit=1000");
    let outside = Subject::OutsideOrder {
        instrument: FUTURES,
        order_id: VenueOrderId(17),
    };
    assert_snapshot!(read(outside), @"futures.query_order: symbol=BTCUSDT orderId=17");
    let traded = |instrument| Subject::TradedOrder {
        instrument,
        order_id: VenueOrderId(17),
    };
    assert_snapshot!(read(traded(FUTURES)), @"futures.query_order: symbol=BTCUSDT orderId=17");
    assert_snapshot!(read(traded(SPOT)), @"spot.query_order: symbol=BTCUSDT orderId=17");
    let newest = |instrument| Subject::NewestOrders { instrument };
    assert_snapshot!(read(newest(FUTURES)), @"futures.all_orders: symbol=BTCUSDT limit=100");
    assert_snapshot!(read(newest(SPOT)), @"spot.all_orders: symbol=BTCUSDT limit=100");
    let (asset, quote) = (BTC, USDT);
    assert_snapshot!(read(Subject::AssetPrice { asset, quote }), @"futures.ticker_price: symbol=BTCUSDT");
}

#[test]
fn documented_mode_uses_only_documented_routes() {
    let adapter = documented();
    let account = Request::Read(Subject::Account {
        surface: Surface::Futures,
    });
    assert_snapshot!(encoded_by(&adapter, &account), @r#"
    {rpc}getBalance: address=0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 blockTag=latest
    futures.position_mode:
    futures.multi_assets_mode:
    "#);
    let trades = Request::Read(Subject::Trades {
        instrument: FUTURES,
        from: None,
    });
    let leverage = Request::SetLeverage {
        instrument: FUTURES,
        leverage: 5,
    };
    for request in [trades, leverage] {
        let error = adapter.encode_request(&request).unwrap_err();
        assert!(matches!(error, EncodeError::Undocumented(_)), "{error}");
        let replies = adapter.refuse(&request, &error);
        assert!(format!("{replies:?}").contains("code: 0"), "{replies:?}");
    }
    let routes = Adapter {
        futures_account: super::fixture::adapter().futures_account,
        ..adapter
    };
    assert!(routes.encode_request(&account).is_err());
}

#[test]
fn a_futures_parameter_on_spot_is_an_error_with_its_name() {
    type Change = (&'static str, fn(&mut OrderTerms));
    let changes: [Change; 6] = [
        ("positionSide", |terms| {
            terms.position_side = PositionSide::Long;
        }),
        ("reduceOnly", |terms| terms.reduce_only = true),
        ("closePosition", |terms| terms.close_position = true),
        ("callbackRate", |terms| terms.callback_ppm = Some(1_000)),
        ("workingType", |terms| {
            terms.working_type = Some(WorkingType::MarkPrice);
        }),
        ("priceProtect", |terms| terms.price_protect = true),
    ];
    for (name, change) in changes {
        let mut terms = limit(SPOT);
        terms.time_in_force = Some(TimeInForce::Gtx);
        change(&mut terms);
        let error = adapter().encode_request(&place("a", terms)).unwrap_err();
        assert!(error.to_string().starts_with(name), "{error}");
    }
    let unknown = adapter().encode_request(&place("a", limit(InstrumentId(9))));
    assert_eq!(unknown, Err(EncodeError::Instrument(InstrumentId(9))));
    let mut endless = OrderTerms::new(SPOT, Side::Buy, OrderType::Market);
    endless.quote_qty = Some(Amount(i128::MAX));
    assert!(adapter().encode_request(&place("a", endless)).is_err());
}
