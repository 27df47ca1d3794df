//! Decoding of public frames.

use proptest::prelude::*;
use windvane_model::{InstrumentId, Level, MarketEvent, Surface, Time};
use windvane_protocol::adapter::{MarketError, MarketReader, Missing};
use windvane_protocol::market_stream::{MarketStreamEvent, decode};
use windvane_protocol::{BookLevels, Frame};

use super::fixture::{FUTURES, SPOT, names};

/// A reader, and its events as text.
struct Collector {
    reader: MarketReader,
    levels: BookLevels,
    events: Vec<String>,
}

impl Collector {
    fn new() -> Self {
        Self {
            reader: MarketReader::new(names()),
            levels: BookLevels::default(),
            events: Vec::new(),
        }
    }

    fn receive(&mut self, surface: Surface, text: &str) -> Result<Missing, MarketError> {
        let event = decode(text, &mut self.levels).unwrap().event;
        let events = &mut self.events;
        self.reader
            .frame(surface, &event, &self.levels, &mut |id, event| {
                events.push(event_text(id, &event));
            })
    }

    fn snapshot(&mut self, id: InstrumentId, text: &str) -> Result<Missing, MarketError> {
        let decoded = windvane_protocol::decode(text.as_bytes(), &mut self.levels).unwrap();
        let Frame::Snapshot(snapshot) = decoded.frame else {
            panic!("{text}")
        };
        let events = &mut self.events;
        self.reader
            .snapshot(id, &snapshot, &self.levels, &mut |id, event| {
                events.push(event_text(id, &event));
            })
    }

    fn take_events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events)
    }
}

fn event_text(id: InstrumentId, event: &MarketEvent<'_>) -> String {
    let list = |levels: &[Level]| {
        let levels = levels
            .iter()
            .map(|level| format!("{}x{}", level.price, level.qty));
        levels.collect::<Vec<_>>().join(" ")
    };
    let event_text = match event {
        MarketEvent::Depth {
            update_id,
            snapshot,
            bids,
            asks,
        } => {
            let kind = if *snapshot { "book" } else { "diff" };
            format!("{kind} {update_id} [{}] [{}]", list(bids), list(asks))
        }
        other => format!("{other:?}"),
    };
    format!("{} {event_text}", id.0)
}

#[test]
fn trades_use_the_scales_of_the_instrument() {
    let mut collector = Collector::new();
    let trade =
        r#"{"e":"trade","E":2,"T":1,"s":"BTCUSDT","t":7,"p":"60000.1","q":"0.01","m":true}"#;
    assert_eq!(
        collector.receive(Surface::Spot, trade),
        Ok(Missing::Nothing)
    );
    let aggregate = r#"{"e":"aggTrade","E":2,"T":1,"s":"BTCUSDT","a":8,"f":1,"l":2,"p":"60000.10000000","q":"1","m":false}"#;
    collector.receive(Surface::Futures, aggregate).unwrap();
    let nothing = trade.replace("\"0.01\"", "\"0\"");
    collector.receive(Surface::Spot, &nothing).unwrap();
    collector
        .receive(Surface::Spot, &trade.replace("BTCUSDT", "XYZUSDT"))
        .unwrap();
    assert_eq!(
        collector.take_events(),
        [
            "1 Trade { price: 6000010, qty: 1000, trade_id: 7, buyer_is_maker: true }",
            "0 Trade { price: 6000010, qty: 100000, trade_id: 8, buyer_is_maker: false }",
        ]
    );
}

#[test]
fn tradepro_takes_its_side_from_the_quotes() {
    let mut collector = Collector::new();
    let top = r#"{"u":5,"s":"BTCUSDT","b":"59999.9","B":"1","a":"60000.1","A":"2"}"#;
    collector.receive(Surface::Spot, top).unwrap();
    for price in ["60000.1", "59999.9"] {
        let trade = format!(
            r#"{{"e":"tradepro","E":2,"T":1,"s":"BTCUSDT","t":7,"p":"{price}","q":"0.01","h":"0x1","m":["hidden","hidden"]}}"#
        );
        collector.receive(Surface::Spot, &trade).unwrap();
    }
    let events = collector.take_events();
    assert!(
        events[0].starts_with("1 Top { update_id: 5, bid: Level { price: 5999990, qty: 100000 }")
    );
    assert!(events[1].contains("buyer_is_maker: false"), "{events:?}");
    assert!(events[2].contains("buyer_is_maker: true"), "{events:?}");
}

#[test]
fn marks_of_all_symbols_become_single_events() {
    let mut collector = Collector::new();
    let mark = |symbol: &str, next: i64| {
        format!(
            r#"{{"e":"markPriceUpdate","E":1,"s":"{symbol}","p":"60000.12345678","i":"","P":"","r":"-0.0001","T":{next}}}"#
        )
    };
    let marks = [mark("BTCUSDT", 9), mark("ETHUSDT", 9), mark("BTCUSDT", 0)].join(",");
    let bare = format!("[{marks}]");
    let combined = format!(r#"{{"stream":"!markPrice@arr","data":{bare}}}"#);
    collector.receive(Surface::Futures, &bare).unwrap();
    let events = collector.take_events();
    collector.receive(Surface::Futures, &combined).unwrap();
    assert_eq!(collector.take_events(), events);
    let next = Time::from_millis(9).0;
    let never = Time::NEVER.0;
    let expected = |next| {
        format!(
            "0 Mark {{ mark: 6000012345678, index: 0, funding_rate: -10000, next_funding: \
             Time({next}) }}"
        )
    };
    assert_eq!(events, [expected(next), expected(never)]);
}

fn diff(first: i64, last: i64, previous: i64, bids: &str) -> String {
    format!(
        r#"{{"e":"depthUpdate","E":1,"T":1,"s":"BTCUSDT","U":{first},"u":{last},"pu":{previous},"b":[{bids}],"a":[]}}"#
    )
}

#[test]
fn differences_wait_for_the_snapshot_and_stay_in_order() {
    let mut collector = Collector::new();
    let waits = Ok(Missing::Snapshot(FUTURES));
    assert_eq!(
        collector.receive(Surface::Futures, &diff(1, 3, 0, r#"["9","1"]"#)),
        waits
    );
    assert_eq!(
        collector.receive(Surface::Futures, &diff(4, 6, 3, r#"["9.5","1"]"#)),
        waits
    );
    assert_eq!(
        collector.receive(Surface::Futures, &diff(7, 9, 6, r#"["9.5","0"]"#)),
        waits
    );
    let book = r#"{"lastUpdateId":5,"E":1,"T":1,"bids":[["9.00","2.00000"]],"asks":[["10.00","1.00000"]]}"#;
    assert_eq!(collector.snapshot(FUTURES, book), Ok(Missing::Nothing));
    assert_eq!(
        collector.receive(Surface::Futures, &diff(10, 10, 9, "")),
        Ok(Missing::Nothing)
    );
    assert_eq!(
        collector.take_events(),
        [
            "0 book 5 [900x200000] [1000x100000]",
            "0 diff 6 [950x100000] []",
            "0 diff 9 [950x0] []",
            "0 diff 10 [] []",
        ]
    );
    // Frame 11 was lost.
    assert_eq!(
        collector.receive(Surface::Futures, &diff(12, 12, 11, "")),
        waits
    );
    assert_eq!(
        collector.receive(Surface::Futures, &diff(13, 13, 12, "")),
        waits
    );
    assert_eq!(collector.take_events(), ["0 Gap"]);
    assert_eq!(
        collector.snapshot(FUTURES, &book.replace(":5,", ":12,")),
        Ok(Missing::Nothing)
    );
    assert_eq!(collector.take_events().len(), 3);
    collector
        .reader
        .interrupted(FUTURES, &mut |_, event| assert_eq!(event, MarketEvent::Gap));
    assert_eq!(
        collector.receive(Surface::Futures, &diff(14, 14, 13, "")),
        waits
    );
}

#[test]
fn a_partial_book_counts_without_differences() {
    let mut collector = Collector::new();
    let partial = r#"{"stream":"btcusdt@depth5","data":{"lastUpdateId":7,"bids":[["9","1"]],"asks":[["10","1"]]}}"#;
    assert_eq!(
        collector.receive(Surface::Spot, partial),
        Ok(Missing::Nothing)
    );
    assert_eq!(
        collector.take_events(),
        ["1 book 7 [900x100000] [1000x100000]"]
    );
    let difference = r#"{"e":"depthUpdate","E":1,"s":"BTCUSDT","U":8,"u":8,"b":[],"a":[]}"#;
    assert_eq!(
        collector.receive(Surface::Spot, difference),
        Ok(Missing::Snapshot(SPOT))
    );
    collector.receive(Surface::Spot, partial).unwrap();
    assert_eq!(collector.take_events(), Vec::<String>::new());
}

#[test]
fn invalid_levels_invalidate_the_book() {
    let mut collector = Collector::new();
    let book = r#"{"lastUpdateId":5,"bids":[["9","2"]],"asks":[["10","1"]]}"#;
    collector.snapshot(FUTURES, book).unwrap();
    collector.take_events();
    let fine = collector.receive(Surface::Futures, &diff(5, 6, 5, r#"["9.001","1"]"#));
    assert!(matches!(fine, Err(MarketError::Figure { .. })), "{fine:?}");
    assert_eq!(collector.take_events(), ["0 Gap"]);
    assert_eq!(
        collector.receive(Surface::Futures, &diff(7, 7, 6, "")),
        Ok(Missing::Snapshot(FUTURES))
    );
    let top = r#"{"u":5,"s":"BTCUSDT","b":"59999.9","B":"-1","a":"60000.1","A":"2"}"#;
    let error = collector.receive(Surface::Spot, top).unwrap_err();
    assert!(error.to_string().contains("spot:BTCUSDT: B -1"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_048))]

    #[test]
    fn no_frame_causes_a_panic(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), "[-0-9e.\"]{0,30}"), 0..4),
    ) {
        let lines = include_str!("../frames.txt").lines();
        let frames: Vec<_> = lines.filter_map(|line| Some(line.split_once(' ')?.1)).collect();
        let mut text = (*which.get(&frames)).to_owned();
        for (at, edit) in edits {
            let at = at.index(text.len() + 1);
            let end = text.len().min(at + edit.len() / 2);
            if text.is_char_boundary(at) && text.is_char_boundary(end) {
                text.replace_range(at..end, &edit);
            }
        }
        let mut reader = MarketReader::new(names());
        let mut levels = BookLevels::default();
        let Ok(frame) = decode(&text, &mut levels) else { return Ok(()) };
        for surface in [Surface::Futures, Surface::Spot] {
            let _ = reader.frame(surface, &frame.event, &levels, &mut |_, _| {});
            if let MarketStreamEvent::Snapshot(snapshot) = &frame.event {
                let _ = reader.snapshot(FUTURES, snapshot, &levels, &mut |_, _| {});
            }
        }
    }
}
