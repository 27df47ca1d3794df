//! Decoding of responses.

use windvane_model::protocol::{BalanceUpdate, OrderReport, Outcome, PositionUpdate, Refusal};
use windvane_model::state_report::{AccountSnapshot, StateReport, Subject, TradedOrder};
use windvane_model::{
    Amount, OrderStatus, OrderType, PositionSide, Qty, Reply, Request, Side, Surface, Time,
    TradeId, VenueOrderId,
};
use windvane_protocol::adapter::{Adapter, CallResult, DecodeError, Note, WithNotes};
use windvane_wire_examples as examples;

use super::fixture::{
    ADDRESS, BTC, FUTURES, SPOT, USDT, adapter, amount, body, documented, id, limit, order, place,
};

/// The only reply, and the notes.
fn only(decoded: WithNotes<Reply>) -> (Reply, Vec<Note>) {
    assert_eq!(decoded.items.len(), 1, "{decoded:?}");
    (decoded.items.into_iter().next().unwrap(), decoded.notes)
}

fn quiet(decoded: WithNotes<Reply>) -> Reply {
    let (reply, notes) = only(decoded);
    assert!(notes.is_empty(), "{notes:?}");
    reply
}

fn report(instrument: windvane_model::InstrumentId, order_id: i64) -> OrderReport {
    OrderReport {
        client_order_id: id("mm:1"),
        order_id: VenueOrderId(order_id),
        instrument,
        status: OrderStatus::New,
        orig_qty: Qty(1_000),
        executed_qty: Qty(0),
        cum_quote: Amount::ZERO,
        update_time: Time::from_millis(1_751_350_000_000),
    }
}

#[test]
fn an_order_that_was_placed_is_reported() {
    for (instrument, route, order_id) in [
        (FUTURES, "futures.new_order", 22_542_179),
        (SPOT, "spot.new_order", 38),
    ] {
        let request = place("mm:1", limit(instrument));
        let reply = quiet(adapter().decode_reply(&request, &[CallResult::Done(body(route))]));
        let expected = Reply::Placed {
            client_order_id: id("mm:1"),
            outcome: Outcome::Done(report(instrument, order_id)),
        };
        assert_eq!(reply, expected);
    }
}

#[test]
fn a_query_reports_the_filled_quantity() {
    let request = Request::Query {
        instrument: SPOT,
        client_order_id: id("mm:1"),
    };
    let answer = CallResult::Done(body("spot.query_order"));
    let Reply::Queried { outcome, .. } = quiet(adapter().decode_reply(&request, &[answer])) else {
        panic!("a query")
    };
    let expected = OrderReport {
        status: OrderStatus::PartiallyFilled,
        executed_qty: Qty(400),
        cum_quote: amount("240.0002"),
        update_time: Time::from_millis(1_751_350_000_500),
        ..report(SPOT, 38)
    };
    assert_eq!(outcome, Outcome::Done(expected));
}

#[test]
fn the_order_of_a_trade_is_returned_with_id_and_time() {
    for (instrument, route) in [(FUTURES, "futures.query_order"), (SPOT, "spot.query_order")] {
        let subject = Subject::TradedOrder {
            instrument,
            order_id: VenueOrderId(38),
        };
        let reply = quiet(
            adapter().decode_reply(&Request::Read(subject), &[CallResult::Done(body(route))]),
        );
        let outcome = Outcome::Done(StateReport::TradedOrder(TradedOrder {
            client_order_id: id("mm:1"),
            placed: Time::from_millis(1_751_350_000_000),
        }));
        assert_eq!(reply, Reply::Read { subject, outcome });
    }
}

#[test]
fn the_newest_orders_are_returned_with_id_and_time() {
    for (instrument, route, name) in [
        (FUTURES, "futures.all_orders", "adl_autoclose"),
        (SPOT, "spot.all_orders", "mm:1"),
    ] {
        let subject = Subject::NewestOrders { instrument };
        let reply = quiet(
            adapter().decode_reply(&Request::Read(subject), &[CallResult::Done(body(route))]),
        );
        let outcome = Outcome::Done(StateReport::NewestOrders(vec![TradedOrder {
            client_order_id: id(name),
            placed: Time::from_millis(1_751_350_000_000),
        }]));
        assert_eq!(reply, Reply::Read { subject, outcome });
    }
}

#[test]
fn a_cancel_returns_the_terminal_state() {
    for (instrument, route, order_id) in [
        (FUTURES, "futures.cancel_order", 22_542_179),
        (SPOT, "spot.cancel_order", 38),
    ] {
        let request = Request::Cancel {
            instrument,
            client_order_id: id("mm:1"),
        };
        let reply = quiet(adapter().decode_reply(&request, &[CallResult::Done(body(route))]));
        let expected = OrderReport {
            status: OrderStatus::Canceled,
            update_time: Time::from_millis(1_751_350_001_000),
            ..report(instrument, order_id)
        };
        let outcome = Outcome::Done(expected);
        let client_order_id = id("mm:1");
        assert_eq!(
            reply,
            Reply::Canceled {
                client_order_id,
                outcome
            }
        );
    }
}

#[test]
fn simple_responses_count_as_done() {
    let all = Request::CancelAll {
        instrument: FUTURES,
    };
    let done = CallResult::Done(body("futures.cancel_all_orders"));
    let reply = quiet(adapter().decode_reply(&all, &[done]));
    assert!(matches!(
        reply,
        Reply::CanceledAll {
            outcome: Outcome::Done(()),
            ..
        }
    ));
    let countdown = Request::Countdown {
        instrument: FUTURES,
        countdown_ms: 30_000,
    };
    let done = CallResult::Done(body("futures.countdown_cancel_all"));
    let reply = quiet(adapter().decode_reply(&countdown, &[done]));
    assert!(matches!(
        reply,
        Reply::Countdown {
            outcome: Outcome::Done(30_000),
            ..
        }
    ));
    // With less in the response: the venue accepted the countdown that was sent.
    for answer in [
        r#"{"symbol":"BTCUSDT"}"#,
        r#"{"countdownTime":"30000"}"#,
        "{}",
    ] {
        let reply = quiet(adapter().decode_reply(&countdown, &[CallResult::Done(answer)]));
        let Reply::Countdown { outcome, .. } = reply else {
            panic!("{reply:?}");
        };
        assert_eq!(outcome, Outcome::Done(30_000), "{answer}");
    }
    let leverage = Request::SetLeverage {
        instrument: FUTURES,
        leverage: 21,
    };
    let done = CallResult::Done(body("futures.change_leverage"));
    let reply = quiet(adapter().decode_reply(&leverage, &[done]));
    assert!(matches!(
        reply,
        Reply::Leverage {
            outcome: Outcome::Done(21),
            ..
        }
    ));
    let mode = Request::SetPositionMode { hedge: true };
    let reply = quiet(adapter().decode_reply(&mode, &[CallResult::Done("")]));
    assert!(matches!(
        reply,
        Reply::PositionMode {
            outcome: Outcome::Done(())
        }
    ));
}

#[test]
fn refused_and_waiting_requests_count_as_refused() {
    let request = place("mm:1", limit(FUTURES));
    let code = |results| match quiet(adapter().decode_reply(&request, &[results])) {
        Reply::Placed {
            outcome: Outcome::Refused(Refusal { code, .. }),
            ..
        } => code,
        other => panic!("{other:?}"),
    };
    let refused = |code| CallResult::Refused { code, msg: "no" };
    assert_eq!(code(refused(Some(-2019))), -2019);
    assert_eq!(code(refused(None)), 0);
    assert_eq!(code(refused(Some(i64::MAX))), i32::MIN);
    let wait = |code| CallResult::Wait { code, msg: "429" };
    assert_eq!(code(wait(Some(-1015))), -1015);
    assert_eq!(code(wait(None)), -1003);
    assert_eq!(code(CallResult::NotSent { msg: "no" }), Refusal::NOT_SENT);
}

#[test]
fn an_unreadable_response_is_unknown_with_a_note() {
    let request = place("mm:1", limit(FUTURES));
    let of = |body: &str| {
        let (reply, notes) = only(adapter().decode_reply(&request, &[CallResult::Done(body)]));
        let unknown = Outcome::Unknown;
        let client_order_id = id("mm:1");
        assert_eq!(
            reply,
            Reply::Placed {
                client_order_id,
                outcome: unknown
            },
            "{body}"
        );
        match notes.as_slice() {
            [Note::Unreadable { error, .. }] => error.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert!(matches!(of(""), DecodeError::Record(_)));
    assert!(matches!(of("<html>"), DecodeError::Record(_)));
    let other_order = body("futures.new_order").replace("mm:1", "mm:2");
    assert!(matches!(of(&other_order), DecodeError::Other { .. }));
    let other_symbol = body("futures.new_order").replace("BTCUSDT", "ETHUSDT");
    assert!(matches!(of(&other_symbol), DecodeError::Other { .. }));
    let other_word = body("futures.new_order").replace("\"NEW\"", "\"HELD\"");
    assert!(matches!(
        of(&other_word),
        DecodeError::Word {
            field: "status",
            ..
        }
    ));
    let too_fine = body("futures.new_order").replace("\"0.01\"", "\"0.0100001\"");
    assert!(matches!(
        of(&too_fine),
        DecodeError::Figure {
            field: "origQty",
            ..
        }
    ));
    let below = body("futures.new_order").replace("\"0.01\"", "\"-0.01\"");
    assert!(matches!(
        of(&below),
        DecodeError::Negative {
            field: "origQty",
            ..
        }
    ));
    let endless = body("futures.new_order").replace("1751350000000", "9223372036854775807");
    assert!(matches!(of(&endless), DecodeError::Time { .. }));

    let (reply, notes) = only(adapter().decode_reply(&request, &[]));
    assert!(matches!(
        reply,
        Reply::Placed {
            outcome: Outcome::Unknown,
            ..
        }
    ));
    assert!(matches!(notes[..], [Note::Unanswered { .. }]));
    let reply = quiet(adapter().decode_reply(&request, &[CallResult::Unknown]));
    assert!(matches!(
        reply,
        Reply::Placed {
            outcome: Outcome::Unknown,
            ..
        }
    ));
}

/// The outcomes of a batch of these orders.
fn batch(names: &[&str], body: &str) -> Vec<Outcome<OrderReport>> {
    let orders = names.iter().map(|name| order(name, limit(FUTURES)));
    let request = Request::PlaceBatch(orders.collect());
    let decoded = adapter()
        .decode_reply(&request, &[CallResult::Done(body)])
        .items;
    let outcomes = decoded
        .into_iter()
        .zip(names)
        .map(|(reply, name)| match reply {
            Reply::Placed {
                client_order_id,
                outcome,
            } => {
                assert_eq!(client_order_id, id(name));
                outcome
            }
            other => panic!("{other:?}"),
        });
    outcomes.collect()
}

#[test]
fn a_batch_has_one_outcome_per_entry() {
    let answer = body("futures.batch_orders");
    let outcomes = batch(&["mm:1", "mm:2"], answer);
    assert!(matches!(&outcomes[0], Outcome::Done(report) if report.orig_qty == Qty(20_000)));
    assert!(matches!(&outcomes[1], Outcome::Refused(refusal) if refusal.code == -2022));
    // The error is at the position of the first order, and the first order is at the second
    // position.
    let outcomes = batch(&["mm:2", "mm:1"], answer);
    assert_eq!(outcomes[0], Outcome::Unknown);
    assert!(matches!(&outcomes[1], Outcome::Done(_)));
    // With fewer entries than orders, an error cannot be matched to an order.
    let outcomes = batch(&["mm:1", "mm:2", "mm:3"], answer);
    assert_eq!(outcomes[1..], [Outcome::Unknown, Outcome::Unknown]);
    let unknown = answer.replace("-2022", "-1007");
    assert_eq!(batch(&["mm:1", "mm:2"], &unknown)[1], Outcome::Unknown);
    assert_eq!(batch(&["mm:1", "mm:2"], "[]"), vec![Outcome::Unknown; 2]);
}

#[test]
fn a_batch_of_several_calls_takes_the_outcome_of_each() {
    let names: Vec<_> = (0..7).map(|n| format!("o{n}")).collect();
    let ids: Vec<_> = names.iter().map(|name| id(name)).collect();
    let orders = names.iter().map(|name| order(name, limit(FUTURES)));
    let placed = Request::PlaceBatch(orders.collect());
    let refused = CallResult::Refused {
        code: Some(-1015),
        msg: "",
    };
    let outcome_letters = |request: &Request, results: &[CallResult<'_>]| {
        let decoded = adapter().decode_reply(request, results).items;
        let outcome_letters = decoded.iter().map(|reply| match reply {
            Reply::Placed { outcome, .. } | Reply::Canceled { outcome, .. } => match outcome {
                Outcome::Done(_) => 'd',
                Outcome::Refused(_) => 'r',
                Outcome::Unknown => 'u',
            },
            other => panic!("{other:?}"),
        });
        outcome_letters.collect::<String>()
    };
    assert_eq!(
        outcome_letters(&placed, &[refused, CallResult::Unknown]),
        "rrrrruu"
    );
    assert_eq!(outcome_letters(&placed, &[refused]), "rrrrruu");
    let spot = Request::CancelBatch {
        instrument: SPOT,
        client_order_ids: ids,
    };
    assert_eq!(
        outcome_letters(&spot, &[refused, CallResult::Unknown, refused]),
        "ruruuuu"
    );
    let canceled = Request::CancelBatch {
        instrument: FUTURES,
        client_order_ids: vec![id("mm:1"), id("mm:2")],
    };
    let answer = CallResult::Done(body("futures.cancel_batch_orders"));
    assert_eq!(outcome_letters(&canceled, &[answer]), "dr");
}

fn read_by(
    adapter: &Adapter,
    subject: Subject,
    results: &[CallResult<'_>],
) -> (Outcome<StateReport>, Vec<Note>) {
    let mut decoded = adapter.decode_reply(&Request::Read(subject), results);
    decoded
        .items
        .retain(|reply| !matches!(reply, Reply::Margins(_) | Reply::Stated(_)));
    let (reply, notes) = only(decoded);
    let Reply::Read {
        subject: about,
        outcome,
    } = reply
    else {
        panic!("a read")
    };
    assert_eq!(about, subject);
    (outcome, notes)
}

fn account(
    adapter: &Adapter,
    surface: Surface,
    results: &[CallResult<'_>],
) -> (AccountSnapshot, Vec<Note>) {
    match read_by(adapter, Subject::Account { surface }, results) {
        (Outcome::Done(StateReport::Account(account)), notes) => (account, notes),
        other => panic!("{other:?}"),
    }
}

const HEDGE: CallResult<'_> = CallResult::Done(r#"{"dualSidePosition":"true"}"#);
const SINGLE: CallResult<'_> = CallResult::Done(r#"{"multiAssetsMargin":false}"#);

#[test]
fn a_read_of_the_account_has_leverage_and_margin_types() {
    let request = Request::Read(Subject::Account {
        surface: Surface::Futures,
    });
    let margins = |results: &[CallResult<'_>]| {
        let decoded = adapter().decode_reply(&request, results).items.into_iter();
        let reported = decoded.filter_map(|reply| match reply {
            Reply::Margins(margins) => Some(margins),
            _ => None,
        });
        reported.flatten().collect::<Vec<_>>()
    };
    let answer = body("futures.account");
    let reported = margins(&[CallResult::Done(answer), HEDGE, SINGLE]);
    assert!(!reported.is_empty(), "{answer}");
    assert!(
        reported.iter().all(|one| one.leverage.is_some()),
        "{reported:?}"
    );
    assert_eq!(margins(&[CallResult::Unknown, HEDGE, SINGLE]), []);
}

#[test]
fn the_price_of_an_asset_is_read_from_an_object_or_a_list() {
    let (asset, quote) = (BTC, USDT);
    let read = |text| {
        let subject = Subject::AssetPrice { asset, quote };
        read_by(&adapter(), subject, &[CallResult::Done(text)]).0
    };
    let price = Outcome::Done(StateReport::AssetPrice(Amount(60_050_000_000)));
    assert_eq!(read(r#"{"symbol":"BTCUSDT","price":"600.5"}"#), price);
    assert_eq!(read(r#"[{"symbol":"BTCUSDT","price":"600.5"}]"#), price);
    for unreadable in ["[]", "{}", r#"{"symbol":"BTCUSDT","price":"x"}"#] {
        assert_eq!(read(unreadable), Outcome::Unknown, "{unreadable}");
    }
}

#[test]
fn exchange_information_that_is_read_again_keeps_the_scales() {
    let surface = Surface::Futures;
    let subject = Subject::Rules { surface };
    let answer = body("futures.exchange_info");
    let listed = |text: &str| match read_by(&adapter(), subject, &[CallResult::Done(text)]).0 {
        Outcome::Done(StateReport::Rules(listed)) => listed,
        other => panic!("{other:?}"),
    };
    let all = listed(answer);
    let first = all.first().unwrap();
    let known = adapter().names.rules(first.instrument).unwrap().clone();
    if let Ok(rules) = &first.rules {
        assert_eq!(rules.price_scale, known.price_scale);
        assert_eq!(rules.qty_scale, known.qty_scale);
    }
    let (outcome, notes) = read_by(&adapter(), subject, &[CallResult::Done("{\"symbols\":[]}")]);
    assert_eq!(outcome, Outcome::Done(StateReport::Rules(Vec::new())));
    assert!(
        matches!(&notes[..], [Note::Unlisted { .. }, ..]),
        "{notes:?}"
    );
    let (outcome, _) = read_by(&adapter(), subject, &[CallResult::Done("{\"symbols\":[{")]);
    assert_eq!(outcome, Outcome::Unknown);
}

#[test]
fn an_own_order_on_an_unconfigured_symbol_gives_a_note() {
    let own = body("futures.open_order").replace("mm:1", "grid.5.1");
    let listed = own.replace("BTCUSDT", "XYZUSDT");
    let surface = Surface::Futures;
    let list = format!("[{listed}]");
    let subject = Subject::OpenOrders { surface };
    let (outcome, notes) = read_by(&adapter(), subject, &[CallResult::Done(&list)]);
    assert_eq!(outcome, Outcome::Done(StateReport::OpenOrders(Vec::new())));
    let [Note::Elsewhere { symbol, order, .. }] = &notes[..] else {
        panic!("{notes:?}")
    };
    assert_eq!((symbol.as_str(), order.as_str()), ("XYZUSDT", "grid.5.1"));
}

#[test]
fn the_futures_account_is_read_with_its_modes() {
    let answer = CallResult::Done(body("futures.account"));
    let (account, notes) = account(&adapter(), Surface::Futures, &[answer, HEDGE, SINGLE]);
    assert!(notes.is_empty());
    let expected = AccountSnapshot {
        can_trade: Some(true),
        hedge_mode: Some(true),
        multi_assets: Some(false),
        balances: vec![BalanceUpdate {
            asset: USDT,
            total: amount("10000"),
            locked: amount("28.5"),
            change: Amount::ZERO,
        }],
        positions: vec![PositionUpdate {
            instrument: FUTURES,
            position_side: PositionSide::Both,
            qty: Qty(1_000),
            cost: amount("600.001"),
        }],
        lags: false,
        updated: Some(Time::from_millis(1_751_350_000_000)),
    };
    assert_eq!(account, expected);
}

#[test]
fn an_unlisted_position_is_not_reported() {
    let mut text: serde_json::Value = serde_json::from_str(body("futures.account")).unwrap();
    text["positions"] = serde_json::json!([]);
    let text = text.to_string();
    let results = [CallResult::Done(&text), HEDGE, SINGLE];
    let (account, _) = account(&adapter(), Surface::Futures, &results);
    assert_eq!(account.positions, []);
}

#[test]
fn a_mode_without_a_response_stays_unknown() {
    let answer = CallResult::Done(body("futures.account"));
    let (account, notes) = account(&adapter(), Surface::Futures, &[answer, CallResult::Unknown]);
    assert_eq!((account.hedge_mode, account.multi_assets), (None, None));
    assert_eq!(account.can_trade, Some(true));
    assert_eq!(notes.len(), 3, "{notes:?}");
}

#[test]
fn the_info_endpoint_lags_and_hides_a_private_account() {
    let answer = body("{rpc}getBalance");
    let results = [CallResult::Done(answer), HEDGE, SINGLE];
    let (account, notes) = account(&documented(), Surface::Futures, &results);
    assert!(account.lags && notes.is_empty());
    assert_eq!(account.can_trade, None);
    assert_eq!(account.balances[0].total, amount("10000.00000001"));
    assert_eq!(account.positions[0].cost, amount("600.001"));
    let subject = Subject::Account {
        surface: Surface::Futures,
    };
    let hidden = answer.replace("disabled", "enabled");
    let error = answer.replace("\"result\"", "\"nothing\"");
    let other = answer.replace(ADDRESS, "0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0");
    for body in [hidden, error, other] {
        let results = [CallResult::Done(&body), HEDGE, SINGLE];
        let (outcome, notes) = read_by(&documented(), subject, &results);
        assert_eq!(outcome, Outcome::Unknown, "{notes:?}");
        assert_eq!(notes.len(), 1, "{notes:?}");
    }
}

#[test]
fn a_spot_account_without_can_trade_is_decoded() {
    let mut text: serde_json::Value = serde_json::from_str(body("spot.account")).unwrap();
    text.as_object_mut().unwrap().remove("canTrade");
    let text = text.to_string();
    let (account, _) = account(&adapter(), Surface::Spot, &[CallResult::Done(&text)]);
    assert_eq!(account.can_trade, None);
    assert!(!account.balances.is_empty());
}

#[test]
fn a_spot_balance_is_the_free_plus_the_locked_part() {
    let answer = body("spot.account").replace(
        "\"balances\":[",
        r#""balances":[
        {"asset":"DOGE","free":"5","locked":"0"},{"asset":"SHIB","free":"0","locked":"0"},
        {"asset":"BTC","free":"0","locked":"0"},"#,
    );
    let (account, notes) = account(&adapter(), Surface::Spot, &[CallResult::Done(&answer)]);
    let balance = |asset, total, locked| BalanceUpdate {
        asset,
        total: amount(total),
        locked: amount(locked),
        change: Amount::ZERO,
    };
    let expected = [
        balance(BTC, "0", "0"),
        balance(USDT, "10360.251", "600.001"),
    ];
    assert_eq!(account.balances, expected);
    assert_eq!(account.can_trade, Some(true));
    assert!(matches!(&notes[..], [Note::Asset { asset, .. }] if asset == "DOGE"));
}

#[test]
fn open_orders_include_terms_and_unowned_orders() {
    let trailing = examples::all();
    let mut trailing = trailing.iter().filter(|it| it.route == "futures.new_order");
    let trailing = trailing.nth(1).unwrap().answer;
    let listed =
        body("futures.open_order").replace("mm:1", "an id of someone else, and far too long");
    let foreign = body("futures.open_order").replace("BTCUSDT", "XYZUSDT");
    let list = format!("[{listed},{trailing},{foreign}]");
    let surface = Surface::Futures;
    let subject = Subject::OpenOrders { surface };
    let (outcome, notes) = read_by(&adapter(), subject, &[CallResult::Done(&list)]);
    let Outcome::Done(StateReport::OpenOrders(open)) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(matches!(&notes[..], [Note::Symbol { symbol, .. }] if symbol == "XYZUSDT"));
    assert_eq!(open.len(), 2);
    let [first, second] = [open[0], open[1]];
    assert!(first.report.client_order_id.parse_own().is_none());
    assert_eq!(first.terms.price, limit(FUTURES).price);
    assert_eq!(first.terms.qty, Some(Qty(1_000)));
    assert_eq!(first.terms.stop_price, None);
    assert_eq!(
        (second.terms.order_type, second.terms.side),
        (OrderType::TrailingStopMarket, Side::Sell)
    );
    assert_eq!(second.terms.callback_ppm, Some(3_000));
    assert_eq!(second.terms.activation_price.unwrap().0, 6_100_000);
    assert_eq!((second.terms.price, second.terms.stop_price), (None, None));
    assert!(second.terms.reduce_only && second.terms.price_protect);
}

#[test]
fn an_unreadable_unowned_order_does_not_hide_others() {
    let ours = body("futures.open_order");
    let fine = |id: &str| {
        let order: serde_json::Value = serde_json::from_str(ours).unwrap();
        let mut order = order;
        order["origQty"] = "0.00012345".into();
        order["clientOrderId"] = id.into();
        order.to_string()
    };
    let subject = Subject::OpenOrders {
        surface: Surface::Futures,
    };
    let list = format!("[{ours},{}]", fine("web_1"));
    let (outcome, notes) = read_by(&adapter(), subject, &[CallResult::Done(&list)]);
    let Outcome::Done(StateReport::OpenOrders(open)) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(open.len(), 1);
    assert!(matches!(&notes[..], [Note::Foreign { .. }]), "{notes:?}");
    let list = format!("[{ours},{}]", fine("mm.7.1"));
    let (outcome, _) = read_by(&adapter(), subject, &[CallResult::Done(&list)]);
    assert_eq!(outcome, Outcome::Unknown, "own orders are requested again");
}

#[test]
fn account_trades_are_fills_oldest_first() {
    let subject = Subject::Trades {
        instrument: FUTURES,
        from: Some(TradeId(5)),
    };
    let trade = body("futures.user_trades").trim_matches(['[', ']']);
    let page = format!("[{trade},{}]", trade.replace("698759", "698757"));
    let (outcome, _) = read_by(&adapter(), subject, &[CallResult::Done(&page)]);
    let Outcome::Done(StateReport::Trades { trades, more }) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(!more);
    let ids: Vec<_> = trades.iter().map(|trade| trade.fill.trade_id.0).collect();
    assert_eq!(ids, [698_757, 698_759]);
    let trade = trades[1];
    assert_eq!(
        (trade.side, trade.position_side),
        (Side::Sell, PositionSide::Short)
    );
    assert_eq!(trade.fill.fee, amount("-0.0781901"));
    assert_eq!(trade.fill.realized_pnl, Some(amount("-0.91539999")));
    assert_eq!(trade.fill.quote_qty, amount("120.0002"));

    let subject = Subject::Trades {
        instrument: SPOT,
        from: None,
    };
    let row = body("spot.user_trades").trim_matches(['[', ']']);
    let full = format!("[{}]", vec![row; 1_000].join(","));
    let (outcome, _) = read_by(&adapter(), subject, &[CallResult::Done(&full)]);
    let Outcome::Done(StateReport::Trades { trades, more }) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(more, "a full page means that there are more");
    assert_eq!(trades[0].fill.realized_pnl, None);
    assert_eq!(trades[0].fill.fee, amount("0.096"));
}

#[test]
fn a_read_that_must_wait_is_unknown_not_refused() {
    let subject = Subject::Trades {
        instrument: FUTURES,
        from: None,
    };
    let wait = CallResult::Wait {
        code: None,
        msg: "",
    };
    let refused = |code| CallResult::Refused { code, msg: "" };
    for results in [
        wait,
        refused(Some(-1021)),
        refused(Some(-4225)),
        CallResult::Unknown,
    ] {
        let (outcome, _) = read_by(&adapter(), subject, &[results]);
        assert_eq!(outcome, Outcome::Unknown, "{results:?}");
    }
    for results in [refused(None), refused(Some(-1020))] {
        let (outcome, _) = read_by(&adapter(), subject, &[results]);
        assert!(matches!(outcome, Outcome::Refused(_)), "{results:?}");
    }
}
