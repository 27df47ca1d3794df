//! Frames of both surfaces. The scanner and the general parser give the same result, whatever the
//! order of the keys, the white space and the type of the numbers.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use proptest::prelude::*;
use windvane_model::{Level, Surface};
use windvane_protocol::{BookLevels, Frame, FrameError, Number, decode};

/// The recorded frame of this name.
fn recorded(name: &str) -> &'static str {
    let mut lines = include_str!("frames.txt")
        .lines()
        .filter_map(|line| line.split_once(' '));
    lines
        .find(|&(known, _)| known == name)
        .map(|(_, frame)| frame)
        .unwrap()
}

fn decoded(text: &str) -> (Option<Surface>, String, BookLevels) {
    let mut levels = BookLevels::default();
    let frame =
        decode(text.as_bytes(), &mut levels).unwrap_or_else(|error| panic!("{text}: {error}"));
    (frame.surface, format!("{:?}", frame.frame), levels)
}

/// A spelling that the scanner does not support: white space after the brace, and an unknown key.
fn otherwise(text: &str) -> String {
    text.replacen('{', "{ \"zz\" : [1, {}], ", 1)
}

#[test]
fn both_json_paths_agree_on_every_recorded_shape() {
    let all = [
        (recorded("futures_top"), Some(Surface::Futures)),
        (recorded("spot_top"), Some(Surface::Spot)),
        (recorded("futures_trade"), Some(Surface::Futures)),
        (recorded("spot_trade"), Some(Surface::Spot)),
        (recorded("aggregate"), None),
        (recorded("tradepro"), None),
        (recorded("futures_depth"), Some(Surface::Futures)),
        (recorded("spot_depth"), Some(Surface::Spot)),
    ];
    for (text, surface) in all {
        assert_eq!(decoded(text), decoded(&otherwise(text)), "{text}");
        assert_eq!(decoded(text).0, surface, "{text}");
    }
}

#[test]
fn a_futures_top_has_all_its_fields() {
    let mut levels = BookLevels::default();
    let frame = decode(recorded("futures_top").as_bytes(), &mut levels).unwrap();
    assert_eq!(frame.stream, Some("btcusdt@bookTicker"));
    let Frame::Top(top) = frame.frame else {
        panic!("{frame:?}")
    };
    assert_eq!((top.symbol, top.update_id), ("BTCUSDT", 5_123_107_839_020));
    assert_eq!(
        (top.transaction_ms, top.event_ms),
        (1_723_161_256_313, 1_723_161_256_314)
    );
    let number = |mantissa, scale| Number { mantissa, scale };
    assert_eq!(
        (top.bid_price, top.bid_qty),
        (number(6_180_020, 2), number(2507, 3))
    );
    assert_eq!(
        (top.ask_price, top.ask_qty),
        (number(6_180_030, 2), number(2510, 3))
    );
}

#[test]
fn levels_of_mixed_scales_get_the_finest_scale() {
    let (_, _, levels) = decoded(recorded("futures_depth"));
    assert_eq!((levels.price_scale(), levels.qty_scale()), (2, 3));
    let level = |price, qty| Level { price, qty };
    assert_eq!(levels.bids(), [level(5_871_020, 14), level(6_151_090, 0)]);
    assert_eq!(levels.asks(), [level(6_180_100, 1500)]);
    let finer = recorded("futures_depth").replace("61801.00", "61801.005");
    let (_, _, levels) = decoded(&finer);
    assert_eq!(levels.bids()[0], level(58_710_200, 14));
    assert_eq!(decoded(&finer), decoded(&otherwise(&finer)));
}

#[test]
fn snapshots_partial_depth_and_marks_are_distinguished() {
    let mut levels = BookLevels::default();
    let rest = br#"{"lastUpdateId":5,"E":2,"T":1,"bids":[["1.5","2"]],"asks":[[1.6, 3]]}"#;
    let Frame::Snapshot(snapshot) = decode(rest, &mut levels).unwrap().frame else {
        panic!()
    };
    assert_eq!(
        (snapshot.symbol, snapshot.last_update_id, snapshot.partial),
        (None, 5, false)
    );
    assert_eq!((levels.bids().len(), levels.asks()[0].price), (1, 16));

    let spot = br#"{"stream":"btcusdt@depth5","data":{"lastUpdateId":5,"bids":[],"asks":[]}}"#;
    let Frame::Snapshot(snapshot) = decode(spot, &mut levels).unwrap().frame else {
        panic!()
    };
    assert_eq!((snapshot.symbol, snapshot.partial), (Some("btcusdt"), true));

    let futures = recorded("futures_depth").replace("@depth@0ms", "@depth20@100ms");
    let Frame::Snapshot(snapshot) = decode(futures.as_bytes(), &mut levels).unwrap().frame else {
        panic!()
    };
    assert!(snapshot.partial && snapshot.last_update_id == 5_123_107_837_557);

    let mark = r#"{"e":"markPriceUpdate","E":1,"s":"BTCUSDT","p":"61800.1","i":"61799.12345678",
        "r":"-0.0001","T":9}"#;
    for text in [
        mark.to_owned(),
        format!("[{mark}]"),
        format!(r#"{{"stream":"!markPrice@arr","data":[{mark}]}}"#),
    ] {
        let decoded = decode(text.as_bytes(), &mut levels).unwrap();
        assert_eq!(decoded.surface, Some(Surface::Futures));
        let Frame::Marks(marks) = decoded.frame else {
            panic!("{text}")
        };
        assert_eq!(marks[0].funding_rate.unwrap().at(8), Ok(-10_000));
        assert_eq!((marks[0].next_funding_ms, marks.len()), (9, 1));
    }
    for other in [
        r#"{"result":null,"id":1}"#,
        r#"{"e":"kline","E":1,"s":"A","k":{}}"#,
    ] {
        assert_eq!(
            decode(other.as_bytes(), &mut levels).unwrap().frame,
            Frame::Other
        );
    }
}

#[test]
fn an_invalid_frame_gives_an_error_with_the_reason() {
    let mut levels = BookLevels::default();
    let mut error = |text: &str| decode(text.as_bytes(), &mut levels).unwrap_err();
    assert!(matches!(error("{\"e\":\"trade\","), FrameError::Json(_)));
    assert!(matches!(error("nonsense"), FrameError::Json(_)));
    let missing = recorded("futures_trade").replace("\"q\":\"0.006\",", "");
    assert_eq!(error(&missing).to_string(), "trade without its field \"q\"");
    let exponent = recorded("futures_trade").replace("0.006", "6e-3");
    assert!(
        error(&exponent)
            .to_string()
            .contains("field \"q\": \"6e-3\" is not a plain decimal")
    );
    // A frame that is cut at any position must not be accepted as a complete one.
    for text in [
        recorded("futures_top"),
        recorded("spot_top"),
        recorded("spot_trade"),
        recorded("futures_depth"),
        recorded("aggregate"),
        recorded("tradepro"),
    ] {
        for end in 0..text.len() {
            assert!(
                decode(&text.as_bytes()[..end], &mut levels).is_err(),
                "{}",
                &text[..end]
            );
        }
    }
}

/// The members of a flat object in a different order, with other white space, and with numbers
/// without quotes.
fn reordered(text: &str, shift: usize, unquote: bool) -> String {
    let Ok(serde_json::Value::Object(object)) = serde_json::from_str(text) else {
        panic!()
    };
    let mut members: Vec<String> = object
        .into_iter()
        .map(|(key, value)| {
            let text = value.to_string();
            let digits = text.trim_matches('"');
            let is_number =
                !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            let text = if unquote && is_number {
                digits.to_owned()
            } else {
                text
            };
            format!("{key:?} : {text}")
        })
        .collect();
    let shift = shift % members.len();
    members.rotate_left(shift);
    format!("{{{}}}", members.join(" ,\n"))
}

fn decimal() -> impl Strategy<Value = String> {
    (0_u32..10_000_000, 0_usize..=8, 0_u32..100_000_000).prop_map(|(whole, places, fraction)| {
        let fraction = format!("{fraction:08}");
        if places == 0 {
            whole.to_string()
        } else {
            format!("{whole}.{}", &fraction[..places])
        }
    })
}

proptest! {
    #[test]
    fn trades_are_the_same_in_any_spelling(
        id in 0_i64..i64::MAX, price in decimal(), qty in decimal(), maker: bool, futures: bool,
        shift: usize, unquote: bool,
    ) {
        let order = format!(r#""s":"BTCUSDT","t":{id},"p":"{price}","q":"{qty}""#);
        let text = if futures {
            format!(r#"{{"e":"trade","E":7,"T":8,{order},"X":"MARKET","m":{maker}}}"#)
        } else {
            format!(r#"{{"e":"trade","E":7,{order},"T":8,"m":{maker},"M":true}}"#)
        };
        prop_assert_eq!(decoded(&text), decoded(&reordered(&text, shift, unquote)));
    }

    #[test]
    fn tops_are_the_same_in_any_spelling(
        id in 0_i64..i64::MAX, numbers in prop::array::uniform4(decimal()), futures: bool,
        shift: usize, unquote: bool,
    ) {
        let [b, bq, a, aq] = numbers;
        let quotes = format!(r#""u":{id},"s":"ETHUSDT","b":"{b}","B":"{bq}","a":"{a}","A":"{aq}""#);
        let text = if futures {
            format!(r#"{{"e":"bookTicker",{quotes},"T":3,"E":4}}"#)
        } else {
            format!("{{{quotes}}}")
        };
        prop_assert_eq!(decoded(&text), decoded(&reordered(&text, shift, unquote)));
    }

    #[test]
    fn depth_is_the_same_in_any_spelling(
        bids in prop::collection::vec((decimal(), decimal()), 0..6),
        asks in prop::collection::vec((decimal(), decimal()), 0..6), futures: bool, shift: usize,
    ) {
        let list = |levels: &[(String, String)]| {
            let level = |(p, q): &(String, String)| format!(r#"["{p}","{q}"]"#);
            let levels: Vec<String> = levels.iter().map(level).collect();
            format!("[{}]", levels.join(","))
        };
        let (time, link) = if futures { (r#","T":2"#, r#","pu":4"#) } else { ("", "") };
        let text = format!(
            r#"{{"e":"depthUpdate","E":1{time},"s":"BTCUSDT","U":5,"u":9{link},"b":{},"a":{}}}"#,
            list(&bids), list(&asks),
        );
        prop_assert_eq!(decoded(&text), decoded(&reordered(&text, shift, false)));
    }

    /// One byte is changed. If the scanner accepts the frame, its result equals that of the general
    /// parser.
    #[test]
    fn both_parsers_agree_on_a_damaged_frame(
        which in 0_usize..8, at: prop::sample::Index, byte in 0x20_u8..0x7f,
    ) {
        let line = include_str!("frames.txt").lines().nth(which).unwrap();
        let frame = line.split_once(' ').unwrap().1;
        let mut text = frame.as_bytes().to_vec();
        let at = at.index(text.len());
        text[at] = byte;
        let text = String::from_utf8(text).unwrap();
        let mut levels = BookLevels::default();
        let spaced = format!(" {text}");
        let mut general = BookLevels::default();
        let fast = decode(text.as_bytes(), &mut levels).map(|frame| format!("{frame:?}"));
        let slow = decode(spaced.as_bytes(), &mut general).map(|frame| format!("{frame:?}"));
        match (fast, slow) {
            (Ok(fast), Ok(slow)) => prop_assert_eq!((fast, levels), (slow, general)),
            (Err(_), Err(_)) => {}
            (fast, slow) => prop_assert!(false, "{text}: {fast:?} {slow:?}"),
        }
    }
}
