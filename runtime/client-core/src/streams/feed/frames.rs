//! Frames of a feed. This module finds the topic of a frame, gives frames of every path and source
//! the same shape, and drops trades that two sources both delivered.

use std::collections::BTreeMap;

use windvane_protocol::frame::FrameError;
use windvane_protocol::market_stream::polling::{Payload, payloads};
use windvane_protocol::market_stream::{
    CommandAnswer, Feed, MarketStreamEvent, MarketStreamFrame, Topic,
};
use windvane_protocol::route::Surface;
use windvane_protocol::user_stream;

/// The kind of a stream's frame.
#[derive(Debug)]
pub enum FrameClass {
    /// A frame of a topic.
    Topic {
        /// The index of the topic.
        at: usize,
        /// The frame in the shape of a combined stream, if it arrived in another shape.
        wrapped: Option<String>,
        /// The trade id, if it is a trade.
        trade_id: Option<i64>,
    },
    /// A frame without a topic, or one that cannot be read.
    Other,
    /// It names a topic that was not subscribed on this connection.
    Stray,
    /// The response to a command.
    Answer(CommandAnswer),
}

/// Classifies a frame with the content `decoded`. Its connection carries the topics at the indices
/// `carried`, which have one kind and are sorted. Only a frame that can be read counts for a topic;
/// any other frame would make a dead stream look alive.
pub fn classify(
    frame: &str,
    decoded: Option<&MarketStreamFrame<'_>>,
    carried: &[usize],
    topics: &[Topic],
    places: &BTreeMap<String, usize>,
) -> FrameClass {
    let Some(decoded) = decoded else {
        return FrameClass::Other;
    };
    let trade_id = match &decoded.event {
        MarketStreamEvent::Trade(trade) => Some(trade.id),
        MarketStreamEvent::TradePro(trade) => Some(trade.id),
        _ => None,
    };
    let is_bare = decoded.stream.is_none();
    let at = match (decoded.stream, &decoded.event) {
        (None, MarketStreamEvent::Answer(answer)) => return FrameClass::Answer(answer.clone()),
        (_, MarketStreamEvent::Answer(_) | MarketStreamEvent::Other(_)) => None,
        (Some(name), _) => match places.get(name) {
            Some(at) if carried.binary_search(at).is_err() => return FrameClass::Stray,
            at => at.copied(),
        },
        (None, event) => place_of(event, carried, topics),
    };
    match at {
        None => FrameClass::Other,
        Some(at) => FrameClass::Topic {
            at,
            wrapped: is_bare.then(|| wrapped(&topics[at], frame)),
            trade_id,
        },
    }
}

/// The index of a bare payload's topic.
fn place_of(event: &MarketStreamEvent<'_>, carried: &[usize], topics: &[Topic]) -> Option<usize> {
    // Not every payload has a symbol: a spot book has none.
    if let [only] = carried {
        return Some(*only);
    }
    let symbol = event.symbol()?.to_ascii_uppercase();
    let is_it = |at: &&usize| topics[**at].symbol() == Some(symbol.as_str());
    carried.iter().find(is_it).copied()
}

fn wrapped(topic: &Topic, payload: &str) -> String {
    format!("{{\"stream\":\"{topic}\",\"data\":{payload}}}")
}

/// The last known state of a topic.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The highest id of a trade, from any source.
    trade_id: Option<i64>,
    /// The highest id of a trade from polling.
    polled_trade_id: Option<i64>,
    /// The last state from polling.
    state: Option<String>,
}

/// The news in a polling response.
#[derive(Debug)]
pub struct Polled {
    /// The new frames, in the shape of a combined stream.
    pub frames: Vec<String>,
    /// Whether the market has moved since the last response. Always `false` for the first response.
    pub is_news: bool,
}

impl Memory {
    /// Whether polling has not delivered this frame before. After a time with both sources, the
    /// stream may repeat trades.
    pub fn is_fresh(&mut self, topic: &Topic, trade_id: Option<i64>) -> bool {
        let Topic::Of {
            feed: Feed::Trade | Feed::TradePro | Feed::AggTrade,
            ..
        } = topic
        else {
            return true;
        };
        let Some(id) = trade_id else { return true };
        self.trade_id = self.trade_id.max(Some(id));
        self.polled_trade_id.is_none_or(|polled| polled < id)
    }

    /// Trades that were not delivered before. Trades before the first response are history, unless
    /// the stream delivered some before it broke off.
    fn trades(&mut self, payloads: Vec<Payload>) -> Vec<Payload> {
        let last = payloads.iter().filter_map(|payload| payload.trade_id).max();
        let known = self.trade_id.or(last);
        self.trade_id = self.trade_id.max(last);
        self.polled_trade_id = self.polled_trade_id.max(last);
        let is_new = |payload: &Payload| payload.trade_id > known;
        payloads.into_iter().filter(is_new).collect()
    }
}

/// Reads a polling response as frames of `topic`.
pub fn polled(
    topic: &Topic,
    surface: Surface,
    now_ms: i64,
    answer: &str,
    memory: &mut Memory,
) -> Result<Polled, FrameError> {
    let (symbol, feed) = match topic {
        Topic::Of { symbol, feed } => (symbol.as_str(), polled_as(*feed)),
        Topic::AllMarkPrices { every_second } => {
            let every_second = *every_second;
            ("", Feed::MarkPrice { every_second })
        }
    };
    let stream_surface = match surface {
        Surface::Spot => user_stream::Surface::Spot,
        _ => user_stream::Surface::Futures,
    };
    let mut payloads = payloads(feed, stream_surface, symbol, now_ms, answer)?;
    if let Topic::AllMarkPrices { .. } = topic {
        payloads = vec![joined(&payloads)];
    } else {
        payloads.retain(|payload| payload.symbol.eq_ignore_ascii_case(symbol));
    }
    let is_trade = matches!(feed, Feed::Trade | Feed::AggTrade);
    let (is_first, payloads) = if is_trade {
        (memory.trade_id.is_none(), memory.trades(payloads))
    } else {
        let state: String = payloads.iter().map(|one| one.state.as_str()).collect();
        let before = memory.state.replace(state);
        let has_changed = before != memory.state;
        (
            before.is_none(),
            if has_changed { payloads } else { Vec::new() },
        )
    };
    Ok(Polled {
        is_news: !is_first && !payloads.is_empty(),
        frames: payloads
            .iter()
            .map(|payload| wrapped(topic, &payload.text))
            .collect(),
    })
}

/// No route states taker and maker, so a polled `tradepro` becomes a `trade`.
const fn polled_as(feed: Feed) -> Feed {
    match feed {
        Feed::TradePro => Feed::Trade,
        other => other,
    }
}

fn joined(payloads: &[Payload]) -> Payload {
    let texts: Vec<&str> = payloads.iter().map(|one| one.text.as_str()).collect();
    let text = format!("[{}]", texts.join(","));
    Payload {
        symbol: String::new(),
        state: text.clone(),
        text,
        trade_id: None,
    }
}

#[cfg(test)]
mod tests {
    use windvane_protocol::frame::BookLevels;
    use windvane_protocol::market_stream;

    use super::*;

    const EVERY: &str = "btcusdt@tradepro";

    /// A topic of trades, and its empty memory.
    fn bench() -> (Topic, Memory) {
        (EVERY.parse().unwrap(), Memory::default())
    }

    fn streamed(id: i64) -> String {
        let payload = format!(
            r#"{{"e":"tradepro","E":1,"T":1,"s":"BTCUSDT","t":{id},"p":"1","q":"1","m":["hidden","hidden"]}}"#
        );
        format!(r#"{{"stream":"{EVERY}","data":{payload}}}"#)
    }

    /// The trade ids that reach the consumer from a response with these trades, and whether the
    /// response is news.
    fn answered(topic: &Topic, memory: &mut Memory, ids: &[i64]) -> (Vec<i64>, bool) {
        let trades: Vec<String> = ids
            .iter()
            .map(|id| {
                format!(r#"{{"id":{id},"price":"1","qty":"1","time":1,"isBuyerMaker":true}}"#)
            })
            .collect();
        let answer = format!("[{}]", trades.join(","));
        let polled = polled(topic, Surface::Spot, 0, &answer, memory).unwrap();
        let id = |frame: &String| {
            let mut levels = BookLevels::default();
            match market_stream::decode(frame, &mut levels).unwrap().event {
                MarketStreamEvent::Trade(trade) => trade.id,
                other => panic!("{other:?}"),
            }
        };
        (polled.frames.iter().map(id).collect(), polled.is_news)
    }

    #[test]
    fn polled_trades_begin_after_the_first_response() {
        let (topic, mut memory) = bench();
        assert_eq!(answered(&topic, &mut memory, &[7, 8]), (vec![], false));
        assert_eq!(answered(&topic, &mut memory, &[8, 9]), (vec![9], true));
        assert_eq!(answered(&topic, &mut memory, &[8, 9]), (vec![], false));
    }

    #[test]
    fn each_trade_is_delivered_once_when_sources_switch() {
        let (topic, mut memory) = bench();
        for id in [5, 7, 6] {
            // A stream that is the only source is passed on unchanged.
            assert!(memory.is_fresh(&topic, Some(id)), "{id}");
        }
        // The stream breaks off, and polling continues where it ended.
        let news = (vec![8, 9], true);
        assert_eq!(answered(&topic, &mut memory, &[6, 7, 8, 9]), news);
        // The stream returns and repeats a trade that was polled before.
        assert!(!memory.is_fresh(&topic, Some(9)));
        assert!(memory.is_fresh(&topic, Some(10)));
        assert_eq!(answered(&topic, &mut memory, &[9, 10]), (vec![], false));
    }

    /// Classifies a frame of the connection that carries the topics at `carried`.
    fn classified(text: &str, carried: &[usize], topics: &[&str]) -> FrameClass {
        let topics: Vec<Topic> = topics.iter().map(|topic| topic.parse().unwrap()).collect();
        let places = topics.iter().map(Topic::to_string).zip(0..).collect();
        let mut levels = BookLevels::default();
        let decoded = market_stream::decode(text, &mut levels).ok();
        classify(text, decoded.as_ref(), carried, &topics, &places)
    }

    #[test]
    fn bare_payloads_get_the_name_of_their_topic() {
        let topics = ["ausdt@depth5", "busdt@depth5"];
        let futures =
            r#"{"e":"depthUpdate","E":1,"T":1,"s":"BUSDT","U":1,"u":1,"pu":1,"b":[],"a":[]}"#;
        let found = classified(futures, &[0, 1], &topics);
        let FrameClass::Topic { at: 1, wrapped, .. } = found else {
            panic!("not found")
        };
        let wanted = format!(r#"{{"stream":"busdt@depth5","data":{futures}}}"#);
        assert_eq!(wrapped, Some(wanted));
        // A spot book has no symbol. The connection identifies the topic if it carries only one.
        let spot = r#"{"lastUpdateId":1,"bids":[],"asks":[]}"#;
        let found = classified(spot, &[0], &topics);
        assert!(
            matches!(found, FrameClass::Topic { at: 0, .. }),
            "{found:?}"
        );
        let found = classified(spot, &[0, 1], &topics);
        assert!(matches!(found, FrameClass::Other), "{found:?}");
        let found = classified(r#"{"e":"serverShutdown"}"#, &[0], &topics);
        assert!(matches!(found, FrameClass::Other), "{found:?}");
    }

    #[test]
    fn names_are_found_in_any_spelling() {
        for text in [
            streamed(1),
            streamed(1).replace(':', ": ").replace('{', "{ "),
        ] {
            let found = classified(&text, &[0], &[EVERY]);
            let is_it = matches!(
                found,
                FrameClass::Topic {
                    at: 0,
                    wrapped: None,
                    trade_id: Some(1),
                }
            );
            assert!(is_it, "{found:?}");
        }
        let answer = classified(r#"{"result":null,"id":1}"#, &[0], &[EVERY]);
        assert!(matches!(answer, FrameClass::Answer(_)), "{answer:?}");
    }

    #[test]
    fn unreadable_frames_belong_to_no_topic() {
        for data in [
            "null",
            "{}",
            "1",
            r#"{"e":"tradepro"}"#,
            r#"{"id":1,"result":null}"#,
        ] {
            let text = format!(r#"{{"stream":"{EVERY}","data":{data}}}"#);
            let found = classified(&text, &[0], &[EVERY]);
            assert!(matches!(found, FrameClass::Other), "{found:?}");
        }
    }

    #[test]
    fn a_topic_of_another_connection_is_ignored() {
        let found = classified(&streamed(1), &[1], &[EVERY, "btcusdt@bookTicker"]);
        assert!(matches!(found, FrameClass::Stray), "{found:?}");
    }
}
