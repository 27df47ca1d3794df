//! A feed with venues whose streams fail in different ways: consumers get the same frames.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

#[expect(dead_code, reason = "its scripted server is for other tests")]
mod common;
#[path = "common/market.rs"]
mod market;

use std::collections::BTreeSet;
use std::time::Duration;

use common::settings;
use market::{Habits, Market};
use windvane_client::streams::{FeedItem, GapReason, MarketFeed, Source, StreamStartError, Why};
use windvane_client::{Client, MarketData};
use windvane_protocol::BookLevels;
use windvane_protocol::market_stream::{MarketStreamEvent, Topic};
use windvane_protocol::route::Surface;

const TOP: &str = "btcusdt@bookTicker";
const MARK: &str = "btcusdt@markPrice";
const TRADES: &str = "btcusdt@tradepro";
const BOOK: &str = "btcusdt@depth";
const LEVELS: &str = "btcusdt@depth5";

/// The longest time that a test waits for an item.
const PATIENCE: Duration = Duration::from_secs(30);

/// A feed of a venue.
struct Bench {
    market: Market,
    feed: MarketFeed,
}

impl Bench {
    async fn new(habits: Habits, mode: MarketData, topics: &[&str]) -> Self {
        let market = Market::start(habits).await;
        let mut settings = market.settings();
        settings.market_data = mode;
        let client = Client::new(settings).unwrap();
        let topics: Vec<Topic> = topics.iter().map(|topic| topic.parse().unwrap()).collect();
        let feed = client.market_feed(Surface::Futures, &topics).unwrap();
        Self { market, feed }
    }

    /// The first item for which `pick` returns a value.
    async fn first<T>(&mut self, mut pick: impl FnMut(FeedItem) -> Option<T>) -> T {
        let found = async {
            loop {
                if let Some(found) = pick(self.feed.next().await) {
                    return found;
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.expect("the item arrives in time")
    }

    /// Waits until the topic is served from this source; returns the reason.
    async fn served(&mut self, wanted: &str, from: Source) -> Why {
        let wanted: Topic = wanted.parse().unwrap();
        let is_it = |item| match item {
            FeedItem::Source { topic, source, why } => {
                ((topic, source) == (wanted.clone(), from)).then_some(why)
            }
            _ => None,
        };
        self.first(is_it).await
    }

    /// Waits for a frame of each of these topics, and calls `check` for each of them.
    async fn frames(&mut self, wanted: &[&str], check: impl Fn(&MarketStreamEvent<'_>)) {
        let mut left: BTreeSet<&str> = wanted.iter().copied().collect();
        let is_last = |item| {
            if let FeedItem::Frame(frame) = item {
                let mut levels = BookLevels::default();
                let Ok(decoded) = frame.decode(&mut levels) else {
                    return None;
                };
                if let MarketStreamEvent::Other(_) = decoded.event {
                    return None;
                }
                if left.remove(decoded.stream.unwrap()) {
                    check(&decoded.event);
                }
            }
            left.is_empty().then_some(())
        };
        self.first(is_last).await;
    }

    fn source(&self, topic: &str) -> Source {
        self.feed.source(&topic.parse().unwrap()).unwrap()
    }
}

#[tokio::test]
async fn a_refused_topic_is_polled_and_the_others_stay_streams() {
    let habits = Habits {
        refuses: Some("bookTicker"),
        ..Habits::default()
    };
    let mut bench = Bench::new(habits, MarketData::Auto, &[TOP, MARK, TRADES]).await;
    let why = bench.served(TOP, Source::Polling).await;
    assert!(
        matches!(&why, Why::Refused(words) if words.contains("No such stream")),
        "{why}"
    );
    bench.frames(&[TOP, MARK, TRADES], |_| {}).await;
    assert_eq!(bench.source(MARK), Source::Stream);
    assert_eq!(bench.source(TRADES), Source::Stream);
    let requests = bench.market.received().requests;
    let is_of_tops = |path: &String| path == "/fapi/v1/ticker/bookTicker?symbol=BTCUSDT";
    assert!(requests.iter().all(is_of_tops), "{requests:?}");
}

#[tokio::test]
async fn a_refused_symbol_does_not_affect_other_symbols() {
    let habits = Habits {
        refuses: Some("nosuch"),
        ..Habits::default()
    };
    let topics = [TOP, "nosuch@bookTicker"];
    let mut bench = Bench::new(habits, MarketData::Auto, &topics).await;
    // Polling cannot provide it either.
    let why = bench.served("nosuch@bookTicker", Source::None).await;
    assert!(
        matches!(&why, Why::NotAnswered(words) if words.contains("-1121")),
        "{why}"
    );
    bench.frames(&[TOP], |_| {}).await;
    assert_eq!(bench.source(TOP), Source::Stream);
}

#[tokio::test]
async fn a_topic_that_closes_the_connection_is_given_up() {
    let habits = Habits {
        closes: Some("markPrice"),
        ..Habits::default()
    };
    let mut bench = Bench::new(habits, MarketData::Auto, &[MARK, TOP]).await;
    assert_eq!(
        bench.served(MARK, Source::Polling).await,
        Why::Unsubscribable
    );
    bench.frames(&[MARK], |_| {}).await;
    bench.frames(&[MARK, TOP], |_| {}).await;
    assert_eq!(bench.source(TOP), Source::Stream);
    let sockets = bench.market.received().sockets;
    // Three on each path, and one for the other topic.
    assert_eq!(sockets.len(), 7, "{sockets:?}");
}

#[tokio::test]
async fn a_symbol_that_closes_the_connection_does_not_affect_others() {
    let habits = Habits {
        closes: Some("nosuch"),
        ..Habits::default()
    };
    let nosuch = "nosuch@bookTicker";
    let others = [TOP, "ethusdt@bookTicker", "solusdt@bookTicker"];
    for mode in [MarketData::Auto, MarketData::Streams] {
        let topics = [&others[..], &[nosuch]].concat();
        let mut bench = Bench::new(habits, mode, &topics).await;
        if mode == MarketData::Auto {
            bench.served(nosuch, Source::None).await;
        }
        bench.frames(&others, |_| {}).await;
        for topic in others {
            assert_eq!(bench.source(topic), Source::Stream, "{mode:?}: {topic}");
        }
    }
}

#[tokio::test]
async fn a_kind_that_closes_the_connection_is_not_tried_per_symbol() {
    let habits = Habits {
        closes: Some("markPrice"),
        ..Habits::default()
    };
    let topics: Vec<String> = (0..64).map(|at| format!("a{at}usdt@markPrice")).collect();
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    let mut bench = Bench::new(habits, MarketData::Auto, &topics).await;
    let mut left: BTreeSet<&str> = topics.iter().copied().collect();
    let is_last = |item| {
        if let FeedItem::Source { topic, source, .. } = item
            && source == Source::Polling
        {
            left.remove(topic.to_string().as_str());
        }
        left.is_empty().then_some(())
    };
    bench.first(is_last).await;
    // Seven groups, with three connections for each of them on each path.
    let sockets = bench.market.received().sockets.len();
    assert!(sockets <= 42, "{sockets}");
}

#[tokio::test]
async fn a_silent_topic_is_polled_and_given_up_once_the_market_moves() {
    let habits = Habits {
        silent: Some("bookTicker"),
        ..Habits::default()
    };
    let mut bench = Bench::new(habits, MarketData::Auto, &[TOP, MARK]).await;
    assert_eq!(bench.served(TOP, Source::Both).await, Why::Silent);
    assert_eq!(bench.served(TOP, Source::Polling).await, Why::Dead);
    bench.frames(&[TOP, MARK], |_| {}).await;
    assert_eq!(bench.source(MARK), Source::Stream);
}

#[tokio::test]
async fn a_stray_frame_does_not_end_polling() {
    let stray = r#"{"stream":"btcusdt@bookTicker","data":null}"#;
    let read = r#"{"stream":"btcusdt@bookTicker","data":{"e":"bookTicker","u":1,"E":1,"T":1,"s":"BTCUSDT","b":"1","B":"1","a":"2","A":"1"}}"#;
    for stray in [stray, read] {
        let habits = Habits {
            stray: Some(stray),
            ..Habits::default()
        };
        let mut bench = Bench::new(habits, MarketData::Documented, &[TOP, TRADES]).await;
        let tops = async {
            let mut received = 0;
            while received < 3 {
                bench.frames(&[TRADES], |_| {}).await;
                let requests = bench.market.received().requests;
                received = requests.len();
                assert_eq!(bench.source(TOP), Source::Polling);
            }
        };
        tokio::time::timeout(PATIENCE, tops).await.unwrap();
    }
}

#[tokio::test]
async fn an_unreadable_frame_does_not_keep_a_stream_alive() {
    let habits = Habits {
        silent: Some("bookTicker"),
        stray: Some(r#"{"stream":"btcusdt@bookTicker","data":null}"#),
        ..Habits::default()
    };
    let mut bench = Bench::new(habits, MarketData::Auto, &[TOP]).await;
    assert_eq!(bench.served(TOP, Source::Both).await, Why::Silent);
    assert_eq!(bench.served(TOP, Source::Polling).await, Why::Dead);
}

#[tokio::test]
async fn a_quiet_market_does_not_end_its_stream() {
    let habits = Habits {
        silent: Some("bookTicker"),
        is_quiet: true,
        ..Habits::default()
    };
    let mut bench = Bench::new(habits, MarketData::Auto, &[TOP]).await;
    assert_eq!(bench.served(TOP, Source::Both).await, Why::Silent);
    bench.frames(&[TOP], |_| {}).await;
    while bench.market.received().requests.len() < 4 {
        // The same response again is not news: it gives no frame and no evidence.
        let next = tokio::time::timeout(Duration::from_millis(20), bench.feed.next()).await;
        assert!(next.is_err(), "{next:?}");
    }
    assert_eq!(bench.source(TOP), Source::Both);
}

#[tokio::test]
async fn the_raw_path_is_used_if_there_is_no_combined_path() {
    let habits = Habits {
        unknown_paths: &["/stream"],
        ..Habits::default()
    };
    for mode in [MarketData::Auto, MarketData::Streams] {
        let mut bench = Bench::new(habits, mode, &[TOP, LEVELS]).await;
        bench
            .frames(&[TOP, LEVELS], |event| match event {
                MarketStreamEvent::Top(_) => {}
                // The bare payload would be decoded as a difference.
                MarketStreamEvent::Snapshot(snapshot) => assert!(snapshot.partial),
                other => panic!("{other:?}"),
            })
            .await;
        let sockets = bench.market.received().sockets;
        let of = |path: &str| sockets.iter().filter(|received| *received == path).count();
        assert_eq!((of("/stream"), of("/ws")), (2, 2), "{sockets:?}");
        assert_eq!(bench.source(LEVELS), Source::Stream);
    }
}

#[tokio::test]
async fn a_venue_without_stream_paths_is_polled() {
    let habits = Habits {
        unknown_paths: &["/stream", "/ws"],
        ..Habits::default()
    };
    let topics = [TOP, MARK, TRADES, BOOK];
    let mut bench = Bench::new(habits, MarketData::Auto, &topics).await;
    assert_eq!(bench.served(BOOK, Source::Polling).await, Why::NoPath(404));
    bench
        .frames(&topics, |event| match event {
            MarketStreamEvent::Top(_)
            | MarketStreamEvent::Marks(_)
            | MarketStreamEvent::Trade(_) => {}
            // Instead of differences: whole books, each of which replaces the previous one.
            MarketStreamEvent::Snapshot(snapshot) => assert!(!snapshot.partial),
            other => panic!("{other:?}"),
        })
        .await;
}

#[tokio::test]
async fn a_firewall_for_streams_does_not_stop_polling() {
    let habits = Habits {
        forbids: Some((&["/ws"], "")),
        ..Habits::default()
    };
    let mut bench = Bench::new(habits, MarketData::Documented, &[TOP, TRADES]).await;
    assert_eq!(bench.served(TRADES, Source::Both).await, Why::Silent);
    for _ in 0..2 {
        bench.frames(&[TOP, TRADES], |_| {}).await;
    }
    // The firewall does not get one handshake after another either.
    assert_eq!(bench.market.received().sockets, ["/ws"]);
}

#[tokio::test]
async fn a_forbidden_path_is_replaced_by_the_other() {
    let habits = Habits {
        forbids: Some((&["/stream"], "Retry-After: 0\r\n")),
        ..Habits::default()
    };
    let mut bench = Bench::new(habits, MarketData::Streams, &[TOP]).await;
    bench.frames(&[TOP], |_| {}).await;
    let sockets = bench.market.received().sockets;
    assert_eq!(sockets, ["/stream", "/stream", "/stream", "/ws"]);
}

#[tokio::test]
async fn documented_mode_uses_only_documents_1_to_3() {
    let topics = [TOP, MARK, TRADES, BOOK, LEVELS];
    let mut bench = Bench::new(Habits::default(), MarketData::Documented, &topics).await;
    assert_eq!(bench.served(TOP, Source::Polling).await, Why::Documents);
    bench.frames(&topics, |_| {}).await;
    assert_eq!(bench.source(TRADES), Source::Stream);
    let received = bench.market.received();
    assert_eq!(received.sockets, ["/ws"]);
    assert_eq!(received.topics, [TRADES]);
    let documented = [
        "/fapi/v1/ticker/bookTicker?symbol=BTCUSDT",
        "/fapi/v1/premiumIndex?symbol=BTCUSDT",
        "/fapi/v1/depth?symbol=BTCUSDT&limit=50",
        "/fapi/v1/depth?symbol=BTCUSDT&limit=5",
    ];
    for path in &received.requests {
        assert!(documented.contains(&path.as_str()), "{path}");
    }
}

#[tokio::test]
async fn documented_trades_are_polled_if_the_stream_is_refused() {
    let habits = Habits {
        refuses: Some("tradepro"),
        ..Habits::default()
    };
    let mut bench = Bench::new(habits, MarketData::Documented, &[TRADES]).await;
    bench.served(TRADES, Source::Polling).await;
    bench
        .frames(&[TRADES], |event| {
            assert!(matches!(event, MarketStreamEvent::Trade(_)), "{event:?}");
        })
        .await;
    let received = bench.market.received();
    assert_eq!(received.sockets, ["/ws"]);
    let wanted = "/fapi/v1/trades?symbol=BTCUSDT&limit=1000";
    assert!(received.requests.iter().all(|path| path == wanted));
}

#[tokio::test]
async fn an_undocumented_topic_cannot_be_fed() {
    let mut settings = settings("127.0.0.1:9".parse().unwrap());
    settings.market_data = MarketData::Documented;
    let client = Client::new(settings).unwrap();
    let forced = ["btcusdt@forceOrder".parse().unwrap()];
    let refused = client.market_feed(Surface::Futures, &forced).unwrap_err();
    assert!(matches!(refused, StreamStartError::Polling(_)), "{refused}");
    let trades = [TRADES.parse().unwrap()];
    let refused = client.market_feed(Surface::Spot, &trades).unwrap_err();
    assert_eq!(refused, StreamStartError::NoAddress(Surface::Spot));
    let refused = client.market_feed(Surface::Spot, &[]).unwrap_err();
    assert_eq!(refused, StreamStartError::NoTopics);
}

#[tokio::test]
async fn streams_mode_never_polls() {
    let habits = Habits {
        refuses: Some("bookTicker"),
        silent: Some("markPrice"),
        ..Habits::default()
    };
    let mut bench = Bench::new(habits, MarketData::Streams, &[TOP, MARK, TRADES]).await;
    let why = bench.served(TOP, Source::None).await;
    assert!(matches!(why, Why::Refused(_)), "{why}");
    for _ in 0..30 {
        bench.frames(&[TRADES], |_| {}).await;
    }
    assert_eq!(bench.source(MARK), Source::Stream);
    assert_eq!(bench.market.received().requests, [""; 0]);
}

#[tokio::test]
async fn a_limit_stops_polling() {
    let habits = Habits {
        rest_status: Some(429),
        ..Habits::default()
    };
    let mut bench = Bench::new(habits, MarketData::Documented, &[TOP, MARK]).await;
    let is_reported = |item| match item {
        FeedItem::NotPolled { topics, .. } => Some(topics.len()),
        _ => None,
    };
    for _ in 0..2 {
        assert_eq!(bench.first(is_reported).await, 1);
    }
    // Both topics were reported, and the second one was not even requested.
    assert_eq!(bench.market.received().requests.len(), 1);
    let next = tokio::time::timeout(Duration::from_millis(600), bench.feed.next()).await;
    assert!(next.is_err(), "{next:?}");
    assert_eq!(bench.market.received().requests.len(), 1);
}

#[tokio::test]
async fn a_refusal_without_venue_code_is_not_final() {
    let habits = Habits {
        rest_status: Some(404),
        ..Habits::default()
    };
    let mut bench = Bench::new(habits, MarketData::Documented, &[TOP]).await;
    let why = bench.first(|item| match item {
        FeedItem::NotPolled { why, .. } => Some(why),
        _ => None,
    });
    let why = why.await;
    assert!(why.contains("404"), "{why}");
    assert_eq!(bench.source(TOP), Source::Polling);
}

#[tokio::test]
async fn a_temporary_refusal_is_not_final() {
    for (topic, code) in [(BOOK, -1112), (TOP, -4022)] {
        let habits = Habits {
            refuses_once: Some(code),
            ..Habits::default()
        };
        let mut bench = Bench::new(habits, MarketData::Documented, &[topic]).await;
        let why = bench.first(|item| match item {
            FeedItem::NotPolled { why, .. } => Some(why),
            _ => None,
        });
        let why = why.await;
        assert!(why.contains(&code.to_string()), "{why}");
        bench.frames(&[topic], |_| {}).await;
        assert_eq!(bench.source(topic), Source::Polling);
    }
}

#[tokio::test]
async fn a_lost_connection_is_reported_with_its_topics() {
    let mut bench = Bench::new(Habits::default(), MarketData::Auto, &[TOP, MARK]).await;
    bench.frames(&[TOP, MARK], |_| {}).await;
    bench.market.cut();
    let gap = bench.first(|item| match item {
        FeedItem::Gap { topics, reason } => Some((topics.len(), reason)),
        _ => None,
    });
    assert_eq!(gap.await, (1, GapReason::Closed));
    let connected = bench.first(|item| match item {
        FeedItem::Connected { topics } => Some(topics.len()),
        _ => None,
    });
    assert_eq!(connected.await, 1);
}

#[tokio::test]
async fn an_unanswered_poll_is_reported_once() {
    let habits = Habits {
        rest_status: Some(502),
        ..Habits::default()
    };
    let mut bench = Bench::new(habits, MarketData::Documented, &[TOP]).await;
    let mut reports = 0;
    while bench.market.received().requests.len() < 3 {
        let next = tokio::time::timeout(Duration::from_millis(20), bench.feed.next()).await;
        reports += u32::from(matches!(next, Ok(FeedItem::NotPolled { .. })));
    }
    assert_eq!(reports, 1);
}
