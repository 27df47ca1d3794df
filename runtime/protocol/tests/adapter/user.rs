//! Decoding of user events.

use proptest::prelude::*;
use windvane_model::protocol::{AccountReason, Fill, OrderUpdate};
use windvane_model::{
    Amount, ExecutionType, OrderStatus, OrderType, PositionSide, Price, Qty, Side, Surface, Time,
    TimeInForce, TradeId, UserEvent, VenueOrderId,
};
use windvane_protocol::adapter::{DecodeError, Note, WithNotes};
use windvane_protocol::user_stream::decode;

use super::fixture::{BTC, FUTURES, SPOT, USDT, adapter, amount, id};

fn frames() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("../user_frames.txt").lines();
    lines.filter_map(|line| line.split_once(' '))
}

/// The recorded frame of this name.
fn frame(name: &str) -> &'static str {
    frames().find(|(known, _)| *known == name).unwrap().1
}

fn decode_event(surface: Surface, text: &str) -> Result<WithNotes<UserEvent>, DecodeError> {
    adapter().user_event(&decode(surface, text).unwrap())
}

fn reported(surface: Surface, text: &str) -> Vec<UserEvent> {
    let decoded = decode_event(surface, text).unwrap();
    assert!(decoded.notes.is_empty(), "{:?}", decoded.notes);
    decoded.items
}

fn order(surface: Surface, text: &str) -> OrderUpdate {
    match reported(surface, text)[..] {
        [UserEvent::Order(update)] => update,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn an_execution_report_is_an_order_update_with_its_fill() {
    let expected = OrderUpdate {
        client_order_id: id("mm-btc.k2x.1a"),
        order_id: VenueOrderId(8_886_774),
        instrument: SPOT,
        side: Side::Buy,
        position_side: PositionSide::Both,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::Gtc,
        orig_qty: Qty(50_000),
        price: Price(6_183_800),
        stop_price: Price(0),
        reduce_only: false,
        execution: ExecutionType::Trade,
        status: OrderStatus::PartiallyFilled,
        executed_qty: Qty(2_000),
        transaction_time: Time::from_millis(1_723_161_256_329),
        event_time: Time::from_millis(1_723_161_256_330),
        fill: Some(Fill {
            trade_id: TradeId(91),
            price: Price(6_183_763),
            qty: Qty(2_000),
            quote_qty: amount("1236.7526"),
            fee: amount("0.24735052"),
            fee_asset: USDT,
            maker: true,
            realized_pnl: None,
        }),
    };
    assert_eq!(order(Surface::Spot, frame("spot_fill")), expected);
}

#[test]
fn a_futures_fill_has_its_rebate_and_realized_profit() {
    let update = order(Surface::Futures, frame("futures_fill"));
    let fill = update.fill.unwrap();
    assert_eq!(fill.fee, amount("-0.0185"));
    assert_eq!(fill.quote_qty, amount("370.8018"));
    assert!(fill.realized_pnl.is_some());
    assert_eq!(
        (update.status, update.time_in_force),
        (OrderStatus::Filled, TimeInForce::Gtx)
    );
}

#[test]
fn the_stop_price_of_a_trailing_stop_is_ignored() {
    let update = order(Surface::Futures, frame("futures_trailing"));
    assert_eq!(update.order_type, OrderType::TrailingStopMarket);
    assert_eq!((update.stop_price, update.fill), (Price(0), None));
}

#[test]
fn a_fee_in_an_unknown_asset_counts_as_zero_with_a_note() {
    let without = frame("futures_fill").replace(r#""N":"USDT","n":"-0.0185","#, "");
    assert_ne!(without, frame("futures_fill"));
    let fill = order(Surface::Futures, &without).fill.unwrap();
    assert_eq!((fill.fee, fill.fee_asset), (Amount::ZERO, USDT));
    let in_base = frame("spot_fill").replace("\"N\":\"USDT\"", "\"N\":\"BTC\"");
    assert_eq!(order(Surface::Spot, &in_base).fill.unwrap().fee_asset, BTC);
    let token = frame("spot_fill").replace("\"N\":\"USDT\"", "\"N\":\"SVC\"");
    let decoded = decode_event(Surface::Spot, &token).unwrap();
    assert!(matches!(&decoded.notes[..], [Note::Asset { asset, what: "fee" }] if asset == "SVC"));
    assert!(matches!(decoded.items[..], [UserEvent::Order(update)]
        if update.fill.unwrap().fee == Amount::ZERO));
}

#[test]
fn forced_closes_and_invalid_ids_are_unowned_orders() {
    let own = "mm-btc.k2x.1b";
    let with = |name: &str| frame("futures_fill").replace(own, name);
    let liquidation =
        with("autoclose-1234567890").replace("\"x\":\"TRADE\"", "\"x\":\"CALCULATED\"");
    let liquidation = liquidation.replace("\"X\":\"FILLED\"", "\"X\":\"NEW_INSURANCE\"");
    let update = order(Surface::Futures, &liquidation);
    assert_eq!(update.order_type, OrderType::Liquidation);
    assert_eq!(update.execution, ExecutionType::Calculated);
    assert_eq!(update.status, OrderStatus::NewInsurance);
    assert!(update.fill.is_some());
    let nameless = liquidation.replace("\"t\":", "\"no_trade\":");
    let fill = order(Surface::Futures, &nameless).fill.unwrap();
    assert_eq!(
        fill.trade_id,
        windvane_model::TradeId(0),
        "the order's total identifies the fill"
    );
    let adl = with("adl_autoclose").replace("\"X\":\"FILLED\"", "\"X\":\"NEW_ADL\"");
    let update = order(Surface::Futures, &adl);
    assert_eq!(update.client_order_id, id("adl_autoclose"));
    assert_eq!(update.status, OrderStatus::NewAdl);
    let update = order(
        Surface::Futures,
        &with("web ü 0123456789 0123456789 0123456789"),
    );
    assert_eq!(update.client_order_id.parse_own(), None);
}

#[test]
fn unknown_order_types_keep_their_fill() {
    let strange = frame("futures_fill").replace("\"LIMIT\"", "\"TWAP\"");
    let strange = strange.replace("\"GTX\"", "\"GTE_GTC\"");
    let update = order(Surface::Futures, &strange);
    assert_eq!(
        (update.order_type, update.time_in_force),
        (OrderType::Limit, TimeInForce::Gtc)
    );
    let status = frame("futures_fill").replace("\"X\":\"FILLED\"", "\"X\":\"HALF\"");
    let error = decode_event(Surface::Futures, &status).unwrap_err();
    assert!(matches!(error, DecodeError::Word { field: "X", .. }));
}

#[test]
fn a_value_that_does_not_fit_is_an_error_with_its_field() {
    let with = |from: &str, to: &str| {
        let changed = frame("spot_fill").replace(from, to);
        assert_ne!(changed, frame("spot_fill"), "{from}");
        decode_event(Surface::Spot, &changed).unwrap_err()
    };
    let fine = with(r#""l":"0.02000""#, r#""l":"0.0200001""#);
    assert!(
        matches!(fine, DecodeError::Figure { field: "l", .. }),
        "{fine}"
    );
    let large = with(r#""z":"0.02000""#, r#""z":"922337203685477580.8""#);
    assert!(
        matches!(large, DecodeError::Figure { field: "z", .. }),
        "{large}"
    );
    let nameless = with(r#""t":91"#, r#""t":-1"#);
    assert!(matches!(nameless, DecodeError::Missing(_)), "{nameless}");
    let negative = with(r#""q":"0.50000""#, r#""q":"-0.5""#);
    assert!(
        matches!(negative, DecodeError::Negative { field: "q", .. }),
        "{negative}"
    );
    let late = with("1723161256329", "9223372036854775807");
    assert!(matches!(late, DecodeError::Time { .. }), "{late}");
}

#[test]
fn a_fill_price_finer_than_a_tick_keeps_its_quote_quantity() {
    let fine = frame("futures_fill").replace(r#""L":"61800.30""#, r#""L":"61800.3055""#);
    let fill = order(Surface::Futures, &fine).fill.unwrap();
    assert_eq!(
        (fill.price, fill.quote_qty),
        (Price(6_180_031), amount("370.801833"))
    );
}

#[test]
fn balances_of_both_surfaces_are_reported() {
    let [UserEvent::Account(spot)] = &reported(Surface::Spot, frame("spot_balances"))[..] else {
        panic!("an account update")
    };
    assert_eq!(
        (spot.surface, spot.reason),
        (Surface::Spot, AccountReason::Other)
    );
    assert_eq!(spot.balances[1].total, amount("128445.4874"));
    assert_eq!(spot.balances[1].locked, amount("29682.24"));
    let events = reported(Surface::Futures, frame("futures_account"));
    let [UserEvent::Account(futures)] = &events[..] else {
        panic!("an account update")
    };
    assert_eq!(futures.reason, AccountReason::Order);
    assert_eq!(futures.balances[0].change, amount("50.12345678"));
    let short = futures.positions[1];
    assert_eq!(
        (short.position_side, short.qty),
        (PositionSide::Short, Qty(-2_000_000))
    );
    assert_eq!(short.cost, amount("-131273.3"));
    assert_eq!(futures.positions[0].qty, Qty(0));
}

#[test]
fn a_funding_update_leaves_positions_unchanged() {
    let events = reported(Surface::Futures, frame("futures_funding"));
    let [UserEvent::Account(update)] = &events[..] else {
        panic!("an account update")
    };
    assert_eq!(update.reason, AccountReason::FundingFee);
    assert_eq!(update.balances[0].change, amount("-0.5"));
    assert!(update.positions.is_empty());
    let times = [update.transaction_time, update.event_time];
    let stated = [1_564_745_798_938, 1_564_745_798_939].map(Time::from_millis);
    assert_eq!(times, stated);
}

#[test]
fn margin_calls_leverage_and_modes_are_decoded() {
    let call = reported(Surface::Futures, frame("futures_margin_call"));
    assert_eq!(call, [UserEvent::MarginCall]);
    let leverage = reported(Surface::Futures, frame("futures_leverage"));
    assert_eq!(
        leverage,
        [UserEvent::Leverage {
            instrument: FUTURES,
            leverage: 25
        }]
    );
    let modes = reported(Surface::Futures, frame("futures_modes"));
    let hedge = UserEvent::PositionMode { hedge: true };
    let assets = UserEvent::AssetMode { multi_assets: true };
    assert_eq!(modes, [hedge.clone(), assets]);
    let one = frame("futures_modes").replace(r#""j":true,"#, "");
    assert_eq!(reported(Surface::Futures, &one), [hedge]);
}

#[test]
fn unconfigured_symbols_and_assets_are_ignored_with_a_note() {
    let other = frame("futures_fill").replace("BTCUSDT", "XYZUSDT");
    let decoded = decode_event(Surface::Futures, &other).unwrap();
    assert!(decoded.items.is_empty());
    assert!(matches!(&decoded.notes[..], [Note::Symbol { symbol, .. }] if symbol == "XYZUSDT"));
    let asset = frame("futures_account").replace("USDT\",\"wb", "FDUSD\",\"wb");
    let decoded = decode_event(Surface::Futures, &asset).unwrap();
    let [UserEvent::Account(update)] = &decoded.items[..] else {
        panic!("an account update")
    };
    assert!(update.balances.is_empty());
    assert_eq!((update.positions.len(), decoded.notes.len()), (2, 1));
    let expired = r#"{"e":"listenKeyExpired","E":1}"#;
    for text in [expired, r#"{"e":"SOMETHING","E":1}"#, "{}"] {
        let decoded = decode_event(Surface::Futures, text).unwrap();
        assert!(decoded.items.is_empty());
        assert!(matches!(decoded.notes[..], [Note::Event(_)]), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_048))]

    #[test]
    fn no_frame_causes_a_panic(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), "[-0-9e.\"]{0,30}"), 0..4),
    ) {
        let frames: Vec<_> = frames().collect();
        let (name, frame) = which.get(&frames);
        let mut text = (*frame).to_owned();
        for (at, edit) in edits {
            let at = at.index(text.len() + 1);
            let end = text.len().min(at + edit.len() / 2);
            text.replace_range(at..end, &edit);
        }
        let surface = if name.starts_with("spot") { Surface::Spot } else { Surface::Futures };
        if let Ok(event) = decode(surface, &text) {
            let _ = adapter().user_event(&event);
        }
    }
}

#[test]
fn only_transfers_leave_profit_unchanged() {
    let funding = frame("futures_funding");
    let reason_of = |word: &str| {
        let frame = funding.replace("FUNDING_FEE", word);
        let [UserEvent::Account(update)] = &reported(Surface::Futures, &frame)[..] else {
            panic!("an account update")
        };
        update.reason
    };
    for word in [
        "DEPOSIT",
        "WITHDRAW_REJECT",
        "ADMIN_WITHDRAW",
        "ASSET_TRANSFER",
    ] {
        assert_eq!(reason_of(word), AccountReason::Other, "{word}");
    }
    assert_eq!(reason_of("INSURANCE_CLEAR"), AccountReason::InsuranceClear);
    for word in ["ADJUSTMENT", "OPTIONS_PREMIUM_FEE", "A_NEW_WORD"] {
        assert_eq!(reason_of(word), AccountReason::Charge, "{word}");
    }
}
