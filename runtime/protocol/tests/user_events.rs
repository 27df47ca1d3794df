//! Events of the user streams, in the shapes of docs/interface/user-stream.md#user-stream and in
//! those that break clients.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use proptest::prelude::*;
use windvane_model::{ExecutionType, OrderStatus, OrderType, PositionSide, Side, Surface};
use windvane_protocol::user_stream::{
    AccountUpdate, ExecutionReport, ForcedClose, MarginType, OrderTradeUpdate, StreamError,
    UpdateReason, UserStreamEvent, decode,
};
use windvane_protocol::wire::{Exact, Word};

/// The recorded frame of this name.
fn sample(name: &str) -> &'static str {
    let mut lines = include_str!("user_frames.txt")
        .lines()
        .filter_map(|line| line.split_once(' '));
    lines
        .find(|&(known, _)| known == name)
        .map(|(_, frame)| frame)
        .unwrap()
}

fn spot(text: &str) -> UserStreamEvent {
    decode(Surface::Spot, text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn futures(text: &str) -> UserStreamEvent {
    decode(Surface::Futures, text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn report(text: &str) -> Box<ExecutionReport> {
    match spot(text) {
        UserStreamEvent::ExecutionReport(report) => report,
        other => panic!("{other:?}"),
    }
}

fn order(text: &str) -> Box<OrderTradeUpdate> {
    match futures(text) {
        UserStreamEvent::OrderTradeUpdate(update) => update,
        other => panic!("{other:?}"),
    }
}

fn account(text: &str) -> AccountUpdate {
    match futures(text) {
        UserStreamEvent::AccountUpdate(update) => update,
        other => panic!("{other:?}"),
    }
}

fn exact(text: &str) -> Exact {
    Exact(text.parse().unwrap())
}

#[test]
fn an_execution_report_has_all_its_fields() {
    let report = report(sample("spot_fill"));
    assert_eq!(report.event_ms.0, 1_723_161_256_330);
    assert_eq!(
        (report.symbol.as_str(), report.client_order_id.as_str()),
        ("BTCUSDT", "mm-btc.k2x.1a")
    );
    assert_eq!(report.side, Word::Known(Side::Buy));
    assert_eq!(report.order_type, Word::Known(OrderType::Limit));
    assert_eq!(report.execution_type, Word::Known(ExecutionType::Trade));
    assert_eq!(report.status, Word::Known(OrderStatus::PartiallyFilled));
    assert_eq!(
        (report.order_id.0, report.trade_id.unwrap().0),
        (8_886_774, 91)
    );
    assert_eq!(
        (report.qty, report.cum_qty),
        (exact("0.50000"), exact("0.02000"))
    );
    assert_eq!(report.last_price, exact("61837.63"));
    assert_eq!(report.stop_price, Some(exact("0")));
    assert_eq!(
        (report.commission, report.commission_asset.as_deref()),
        (Some(exact("0.24735052")), Some("USDT"))
    );
    assert_eq!(report.created_ms.unwrap().0, 1_723_161_255_001);
    assert_eq!(report.last_quote, Some(exact("1236.7526")));
    assert!(report.is_fill() && report.is_maker.unwrap().0);
}

#[test]
fn keys_that_differ_only_in_case_are_different_keys() {
    let report = report(sample("spot_fill"));
    // That frame has all of these pairs: e/E, p/P, x/X, l/L, n/N, t/T, z/Z, q/Q, o/O.
    assert_eq!(
        (report.price, report.stop_price),
        (Some(exact("61838")), Some(exact("0")))
    );
    assert_eq!(
        (report.last_qty, report.last_price),
        (exact("0.02"), exact("61837.63"))
    );
    assert_eq!(
        (report.cum_qty, report.cum_quote),
        (exact("0.02"), Some(exact("1236.7526")))
    );
    assert_eq!(
        (report.qty, report.quote_order_qty),
        (exact("0.5"), Some(exact("0")))
    );
}

#[test]
fn spot_balances_are_those_that_changed() {
    let UserStreamEvent::OutboundAccountPosition(event) = spot(sample("spot_balances")) else {
        panic!()
    };
    assert_eq!(event.update_ms.unwrap().0, 1_723_161_256_329);
    assert_eq!(event.reason.as_deref(), Some("WITHDRAW"));
    assert_eq!(event.balances.len(), 2);
    assert_eq!(event.balances[1].free, exact("98763.2474"));
    assert_eq!(event.balances[1].locked, exact("29682.24"));
}

#[test]
fn an_order_update_has_all_its_fields() {
    let update = order(sample("futures_trailing"));
    assert_eq!(
        (update.event_ms.0, update.transaction_ms.0),
        (1_568_879_465_651, 1_568_879_465_650)
    );
    let order = update.order;
    assert_eq!(order.order_type, Word::Known(OrderType::TrailingStopMarket));
    assert_eq!(order.position_side, Some(Word::Known(PositionSide::Long)));
    assert_eq!(
        (order.activation_price, order.callback_rate),
        (Some(exact("7476.89")), Some(exact("5.0")))
    );
    assert_eq!((order.commission, order.commission_asset), (None, None));
    assert!(!order.close_all.unwrap().0 && !order.reduce_only.unwrap().0);
    assert!(order.realized_profit.unwrap().is_zero());

    let fill = self::order(sample("futures_fill")).order;
    assert!(fill.is_fill());
    assert_eq!(
        (fill.trade_id.unwrap().0, fill.commission),
        (5_266_583_935, Some(exact("-0.0185")))
    );
}

#[test]
fn client_order_ids_mark_liquidations_and_adl() {
    let fill = sample("futures_fill");
    let id = "mm-btc.k2x.1b";
    let forced = |id_now: &str| order(&fill.replace(id, id_now)).order.forced_close();
    assert_eq!(
        forced("autoclose-1568879465651"),
        Some(ForcedClose::Liquidation)
    );
    assert_eq!(forced("adl_autoclose"), Some(ForcedClose::AutoDeleveraging));
    assert_eq!(forced(id), None);
    let liquidated = fill
        .replace("\"x\":\"TRADE\"", "\"x\":\"CALCULATED\"")
        .replace("\"X\":\"FILLED\"", "\"X\":\"NEW_ADL\"")
        .replace("\"o\":\"LIMIT\"", "\"o\":\"LIQUIDATION\"");
    let liquidated = order(&liquidated).order;
    assert!(liquidated.is_fill());
    assert_eq!(liquidated.status, Word::Known(OrderStatus::NewAdl));
    assert_eq!(liquidated.order_type, Word::Known(OrderType::Liquidation));
}

#[test]
fn an_account_update_has_balances_and_positions() {
    let update = account(sample("futures_account"));
    assert_eq!(update.change.reason, Word::Known(UpdateReason::Order));
    assert_eq!(
        update.change.balances[0].cross_wallet,
        exact("100.12345678")
    );
    assert_eq!(update.change.balances[0].change, Some(exact("50.12345678")));
    let position = &update.change.positions[1];
    assert_eq!(
        (position.amount, position.entry_price),
        (exact("-20"), exact("6563.66500"))
    );
    assert_eq!(
        position.margin_type,
        Some(Word::Known(MarginType::Isolated))
    );
    assert_eq!(position.side, Word::Known(PositionSide::Short));
}

/// docs/interface/README.md#14-partial-account-events
#[test]
fn a_funding_update_has_no_positions() {
    for text in [
        sample("futures_funding").to_owned(),
        sample("futures_funding").replace("}]}}", "}],\"P\":[]}}"),
        sample("futures_funding").replace("}]}}", "}],\"P\":null}}"),
    ] {
        let change = account(&text).change;
        assert_eq!(change.reason, Word::Known(UpdateReason::FundingFee));
        assert_eq!((change.balances.len(), change.positions.len()), (1, 0));
    }
}

#[test]
fn margin_calls_and_configuration_are_parsed() {
    let UserStreamEvent::MarginCall(call) = futures(sample("futures_margin_call")) else {
        panic!()
    };
    assert_eq!(call.cross_wallet, Some(exact("3.16812045")));
    assert_eq!(
        call.positions[0].margin_type,
        Word::Known(MarginType::Cross)
    );
    assert_eq!(call.positions[0].maintenance_margin, exact("1.614445"));

    let UserStreamEvent::AccountConfigUpdate(leverage) = futures(sample("futures_leverage")) else {
        panic!()
    };
    assert_eq!(leverage.leverage.unwrap().leverage.0, 25);
    assert_eq!(leverage.modes, None);
    let UserStreamEvent::AccountConfigUpdate(modes) = futures(sample("futures_modes")) else {
        panic!()
    };
    let modes = modes.modes.unwrap();
    assert!(modes.multi_assets.unwrap().0 && modes.hedge.unwrap().0);
    assert_eq!(modes.fee_token, None);
}

#[test]
fn an_expired_listen_key_is_an_event_of_both_surfaces() {
    for surface in [Surface::Spot, Surface::Futures] {
        let event = decode(surface, r#"{"e":"listenKeyExpired","E":"1576653824250"}"#).unwrap();
        assert!(matches!(event, UserStreamEvent::ListenKeyExpired(_)));
        assert_eq!(event.event_ms(), Some(1_576_653_824_250));
    }
}

#[test]
fn an_envelope_changes_nothing() {
    for line in include_str!("user_frames.txt").lines() {
        let (name, text) = line.split_once(' ').unwrap();
        let surface = if name.starts_with("spot") {
            Surface::Spot
        } else {
            Surface::Futures
        };
        let bare = decode(surface, text).unwrap();
        assert!(!matches!(bare, UserStreamEvent::Other(_)), "{name}");
        // The event in the envelope of a combined stream, also with another key order and spaces.
        // `k` stands for a listen key.
        for wrapped in [
            format!(r#"{{"stream":"listen-key","data":{text}}}"#),
            format!("{{ \"data\" : {text},\n\"stream\" : \"k\" }}"),
        ] {
            assert_eq!(decode(surface, &wrapped).unwrap(), bare, "{name}");
        }
    }
}

/// docs/interface/README.md#10-numbers-and-flags-as-text
#[test]
fn numbers_and_flags_are_read_as_text_and_as_numbers() {
    let text = sample("futures_fill");
    let other = text
        .replace("\"E\":1568879465652", "\"E\":\"1568879465652\"")
        .replace("\"p\":\"61800.30\"", "\"p\":61800.30")
        .replace("\"m\":false", "\"m\":\"false\"")
        .replace("\"i\":8886775", "\"i\":\"8886775\"");
    assert_ne!(text, other);
    assert_eq!(futures(text), futures(&other));
    // Digits beyond the precision of a double are kept.
    let exact_text = text.replace("61800.30", "9007199254740993.000000001");
    assert_eq!(
        order(&exact_text).order.price,
        Some(exact("9007199254740993.000000001"))
    );
}

#[test]
fn unknown_values_and_events_are_kept() {
    let text = sample("futures_fill")
        .replace("\"X\":\"FILLED\"", "\"X\":\"PENDING_NEW\"")
        .replace("\"x\":\"TRADE\"", "\"x\":\"AMENDMENT\"");
    let unknown = order(&text).order;
    assert_eq!(unknown.status, Word::Other("PENDING_NEW".to_owned()));
    assert_eq!(unknown.execution_type.to_string(), "AMENDMENT");

    for (text, name, event_ms) in [
        (
            r#"{"e":"STRATEGY_UPDATE","E":7,"T":6}"#,
            Some("STRATEGY_UPDATE"),
            Some(7),
        ),
        (r#"{"E":"7","e":"a\"b"}"#, Some("a\"b"), Some(7)),
        (r#"{"result":null,"id":1}"#, None, None),
        (r#"{"e":5,"E":"x"}"#, None, None),
        (r#"{"stream":"x","data":null}"#, None, None),
    ] {
        let UserStreamEvent::Other(other) = futures(text) else {
            panic!("{text}")
        };
        assert_eq!((other.event.as_deref(), other.event_ms), (name, event_ms));
        assert_eq!(other.text, text);
    }
    // A futures event on a spot stream is not a spot event.
    assert!(matches!(
        spot(sample("futures_fill")),
        UserStreamEvent::Other(_)
    ));
}

#[test]
fn an_absent_or_null_commission_is_none() {
    let text = sample("spot_fill")
        .replace("\"n\":\"0.24735052\"", "\"n\":null")
        .replace("\"N\":\"USDT\"", "\"N\":null");
    let report = report(&text);
    assert_eq!((report.commission, report.commission_asset), (None, None));
}

#[test]
fn an_invalid_event_gives_an_error_with_the_reason() {
    let error = |text: &str| decode(Surface::Futures, text).unwrap_err();
    assert!(matches!(error(""), StreamError::Json(_)));
    assert!(matches!(error("<html>"), StreamError::Json(_)));
    assert!(matches!(error("[1]"), StreamError::Json(_)));
    let missing = sample("futures_fill").replace("\"i\":8886775,", "");
    assert!(
        error(&missing)
            .to_string()
            .starts_with("user event ORDER_TRADE_UPDATE: missing field `i`")
    );
    let wrong = sample("futures_fill").replace("\"q\":\"0.006\"", "\"q\":\"much\"");
    assert!(error(&wrong).to_string().contains("\"much\" is no decimal"));
    // A frame that is cut at any position must not be accepted as a complete one.
    let text = sample("futures_account");
    for end in 0..text.len() {
        assert!(decode(Surface::Futures, &text[..end]).is_err());
    }
}

proptest! {
    /// No text makes the decoder panic, and a damaged event never becomes a different event.
    #[test]
    fn damage_is_an_error_or_the_same_event(
        which in 0_usize..9, at: prop::sample::Index, byte in 0x20_u8..0x7f,
    ) {
        let line = include_str!("user_frames.txt").lines().nth(which).unwrap();
        let (name, text) = line.split_once(' ').unwrap();
        let surface = if name.starts_with("spot") { Surface::Spot } else { Surface::Futures };
        let whole = std::mem::discriminant(&decode(surface, text).unwrap());
        let mut damaged = text.as_bytes().to_vec();
        let at = at.index(damaged.len());
        damaged[at] = byte;
        match decode(surface, &String::from_utf8(damaged).unwrap()) {
            Err(_) | Ok(UserStreamEvent::Other(_)) => {}
            Ok(event) => prop_assert_eq!(std::mem::discriminant(&event), whole),
        }
    }
}
