//! A feed in virtual time, without sockets: which connections it opens, which requests it sends,
//! and what it reports.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use windvane_client_core::outcome::{Lost, NotDone, UnknownReason};
use windvane_client_core::settings::MarketData;
use windvane_client_core::streams::feed::{
    FeedError, FeedInput, FeedItem, FeedMachine, FeedOutput, FeedTerms, PollId, Source, Verdict,
    connection_of,
};
use windvane_client_core::streams::machine::LinkId;
use windvane_client_core::streams::{MarketPath, StreamSettings};
use windvane_protocol::frame::BookLevels;
use windvane_protocol::market_stream::{self, Topic};
use windvane_protocol::route::Surface;

const TOP: &str = "btcusdt@bookTicker";
const MARK: &str = "btcusdt@markPrice";

/// A feed and the current time.
struct Run {
    feed: FeedMachine<String>,
    now_ms: u64,
}

impl Run {
    fn new(mode: MarketData, topics: &[&str]) -> Self {
        let feed = FeedMachine::new(0, terms(mode, topics)).unwrap();
        Self { feed, now_ms: 0 }
    }

    fn handle(&mut self, input: FeedInput<String>) -> Vec<FeedOutput<String>> {
        self.feed.handle(self.now_ms, input);
        self.outputs()
    }

    fn outputs(&mut self) -> Vec<FeedOutput<String>> {
        std::iter::from_fn(|| self.feed.poll()).collect()
    }

    /// Advances time from timer to timer until the feed has an action.
    fn wait(&mut self) -> Vec<FeedOutput<String>> {
        for _ in 0..100 {
            self.now_ms = self.feed.timeout_ms();
            let outputs = self.handle(FeedInput::Tick);
            if !outputs.is_empty() {
                return outputs;
            }
        }
        panic!("the feed has no action");
    }

    /// Opens a connection and answers its subscriptions.
    fn subscribe(&mut self, link: LinkId) -> Vec<FeedOutput<String>> {
        let sent = self.handle(FeedInput::Opened(link));
        let mut outputs = Vec::new();
        for id in 1..=sent.len() {
            let answer = format!("{{\"result\":null,\"id\":{id}}}");
            outputs.extend(self.handle(FeedInput::Text(link, answer)));
        }
        outputs
    }

    fn handle_frame(&mut self, link: LinkId, text: &str) -> Verdict {
        let mut levels = BookLevels::default();
        let decoded = market_stream::decode(text, &mut levels).ok();
        let frame = (text, decoded.as_ref());
        self.feed
            .frame_verdict(self.now_ms, connection_of(link), frame)
    }
}

fn terms(mode: MarketData, topics: &[&str]) -> FeedTerms {
    let topics = topics.iter().map(|topic| topic.parse().unwrap());
    FeedTerms {
        surface: Surface::Futures,
        topics: topics.collect(),
        mode,
        settings: StreamSettings::default(),
        polling_weight: 840,
    }
}

/// The connections that the feed wants to open.
fn opened(outputs: &[FeedOutput<String>]) -> Vec<LinkId> {
    let links = outputs.iter().filter_map(|output| match output {
        FeedOutput::Open(link, _) => Some(*link),
        _ => None,
    });
    links.collect()
}

fn closed(outputs: &[FeedOutput<String>]) -> Vec<LinkId> {
    let links = outputs.iter().filter_map(|output| match output {
        FeedOutput::Close(link) => Some(*link),
        _ => None,
    });
    links.collect()
}

fn polls(outputs: &[FeedOutput<String>]) -> Vec<(PollId, &'static str)> {
    let questions = outputs.iter().filter_map(|output| match output {
        FeedOutput::Poll(id, route, _) => Some((*id, route.name)),
        _ => None,
    });
    questions.collect()
}

fn is_connected(outputs: &[FeedOutput<String>]) -> bool {
    let is_it = |output: &FeedOutput<String>| {
        matches!(output, FeedOutput::Item(FeedItem::Connected { .. }))
    };
    outputs.iter().any(is_it)
}

#[test]
fn each_kind_of_topic_has_a_connection() {
    let mut run = Run::new(MarketData::Streams, &[TOP, MARK]);
    let links = opened(&run.outputs());
    assert_eq!(links.len(), 2);
    assert_ne!(connection_of(links[0]), connection_of(links[1]));
    assert!(links.iter().all(|link| connection_of(*link) > 0));
    assert!(is_connected(&run.subscribe(links[0])));
}

#[test]
fn a_frame_passes_where_its_topic_is_carried() {
    let mut run = Run::new(MarketData::Streams, &[TOP, MARK]);
    let mut links = opened(&run.outputs());
    let subscribes_top = |outputs: &[FeedOutput<String>]| {
        let is_it = |output: &FeedOutput<String>| matches!(output, FeedOutput::Send(_, text) if text.contains(TOP));
        outputs.iter().any(is_it)
    };
    if !subscribes_top(&run.handle(FeedInput::Opened(links[0]))) {
        links.reverse();
    }
    let top = r#"{"u":1,"s":"BTCUSDT","b":"1","B":"1","a":"2","A":"1"}"#;
    let wrapped = format!(r#"{{"stream":"{TOP}","data":{top}}}"#);
    assert_eq!(run.handle_frame(links[0], &wrapped), Verdict::Pass);
    assert_eq!(
        run.handle_frame(links[0], top),
        Verdict::PassAs(wrapped.clone())
    );
    assert_eq!(run.handle_frame(links[1], &wrapped), Verdict::Drop);
    assert_eq!(run.handle_frame(links[0], "<html>"), Verdict::Pass);
    assert_eq!(run.handle_frame(999 << 32, &wrapped), Verdict::Drop);
}

#[test]
fn no_connection_is_opened_while_the_venue_accepts_no_requests() {
    let mut run = Run::new(MarketData::Streams, &[TOP]);
    let link = opened(&run.outputs())[0];
    assert!(run.handle(FeedInput::Held(link, 90_000)).is_empty());
    let next = opened(&run.wait());
    assert_eq!(next.len(), 1);
    assert!(run.now_ms >= 90_000, "{}", run.now_ms);
}

#[test]
fn a_refused_topic_is_polled_and_its_connection_closed() {
    let mut run = Run::new(MarketData::Auto, &[TOP]);
    let link = opened(&run.outputs())[0];
    run.handle(FeedInput::Opened(link));
    let refusal = r#"{"id":1,"error":{"code":2,"msg":"no such stream"}}"#;
    let outputs = run.handle(FeedInput::Text(link, refusal.to_owned()));
    assert_eq!(closed(&outputs), [link]);
    assert!(!is_connected(&outputs));
    let topic: Topic = TOP.parse().unwrap();
    assert_eq!(run.feed.source(&topic), Some(Source::Polling));

    let questions = polls(&run.wait());
    let [(poll, "futures.book_ticker")] = questions[..] else {
        panic!("{questions:?}");
    };
    // A request is not repeated while its response is pending. It is repeated at once after a lost
    // response.
    run.now_ms += 60_000;
    assert!(polls(&run.handle(FeedInput::Tick)).is_empty());
    let unknown = NotDone::Unknown(UnknownReason::NoAnswer(Lost::Cut("cut".to_owned())));
    let answered = |result| FeedInput::Answered {
        poll,
        result,
        venue_ms: 1,
    };
    let outputs = run.handle(answered(Err(unknown)));
    let is_trouble = |output: &FeedOutput<String>| {
        matches!(output, FeedOutput::Item(FeedItem::NotPolled { .. }))
    };
    assert!(outputs.iter().any(is_trouble));
    assert_eq!(polls(&run.wait()).len(), 1);
    let top = r#"{"symbol":"BTCUSDT","bidPrice":"1","bidQty":"1","askPrice":"2","askQty":"1",
        "time":1,"lastUpdateId":1}"#;
    let frames = run.handle(answered(Ok(top.to_owned())));
    assert!(
        matches!(&frames[..], [FeedOutput::Item(FeedItem::Frame(text))] if text.contains(TOP)),
        "{frames:?}"
    );
}

#[test]
fn a_missing_path_is_replaced_by_the_other_path() {
    let mut run = Run::new(MarketData::Streams, &[TOP]);
    let link = opened(&run.outputs())[0];
    let outputs = run.handle(FeedInput::NotOpened {
        link,
        status: Some(404),
        why: "not found".to_owned(),
        pause_ms: None,
    });
    let next = outputs.iter().find_map(|output| match output {
        FeedOutput::Open(next, path) => Some((*next, *path)),
        _ => None,
    });
    let (next, path) = next.unwrap();
    assert_eq!(path, MarketPath::Raw);
    assert_ne!(connection_of(next), connection_of(link));
    // Events of the old connection are ignored.
    assert!(run.handle(FeedInput::Opened(link)).is_empty());
}

#[test]
fn a_feed_needs_topics_and_a_source_for_each() {
    let refused = FeedMachine::<String>::new(0, terms(MarketData::Auto, &[])).unwrap_err();
    assert_eq!(refused, FeedError::NoTopics);
    let forced = terms(MarketData::Documented, &["btcusdt@forceOrder"]);
    let refused = FeedMachine::<String>::new(0, forced).unwrap_err();
    assert!(matches!(refused, FeedError::Polling(_)), "{refused}");
}
