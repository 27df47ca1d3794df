//! Frames of a feed: to which topic one belongs, the same shape from every path and source, and
//! no trade twice where two sources overlap. Pure.

use std::collections::BTreeMap;

use windvane_venue::frame::{BookLevels, FrameError};
use windvane_venue::market_stream::polling::{Payload, payloads};
use windvane_venue::market_stream::{self, CommandAnswer, Feed, MarketStreamEvent, Topic};
use windvane_venue::route::Surface;
use windvane_venue::user_stream;

use super::super::market::MarketFrame;

/// What a frame of a stream is.
#[derive(Debug)]
pub(super) enum Heard {
    /// A frame of the topic at this place, if it is known, in the shape of a combined stream.
    Frame(Option<usize>, MarketFrame),
    Answer(CommandAnswer),
}

/// Looks at a frame of a connection that carries the topics at `carried`, which are of one kind.
pub(super) fn hear(
    frame: MarketFrame,
    carried: &[usize],
    topics: &[Topic],
    places: &BTreeMap<String, usize>,
) -> Heard {
    // As every known venue writes it; any other spelling takes the long way.
    let name = frame.text().strip_prefix("{\"stream\":\"");
    if let Some((name, _)) = name.and_then(|rest| rest.split_once('"'))
        && let Some(at) = places.get(name)
    {
        return Heard::Frame(Some(*at), frame);
    }
    let mut levels = BookLevels::default();
    let Ok(decoded) = market_stream::decode(frame.text(), &mut levels) else {
        return Heard::Frame(None, frame);
    };
    if let Some(name) = decoded.stream {
        let at = places.get(name).copied();
        return Heard::Frame(at, frame);
    }
    let symbol = match decoded.event {
        MarketStreamEvent::Answer(answer) => return Heard::Answer(answer),
        MarketStreamEvent::Other(_) => return Heard::Frame(None, frame),
        event => symbol_of(&event),
    };
    let at = match carried {
        // Not every payload names its symbol: a spot book does not.
        [only] => Some(only),
        _ => carried
            .iter()
            .find(|at| symbol.is_some() && topics[**at].symbol() == symbol.as_deref()),
    };
    let Some(at) = at else {
        return Heard::Frame(None, frame);
    };
    Heard::Frame(Some(*at), wrapped(&topics[*at], frame.text()))
}

fn wrapped(topic: &Topic, payload: &str) -> MarketFrame {
    MarketFrame(format!("{{\"stream\":\"{topic}\",\"data\":{payload}}}").into())
}

/// The symbol of a bare payload; `None` where it names none, or many.
fn symbol_of(event: &MarketStreamEvent<'_>) -> Option<String> {
    let symbol = match event {
        MarketStreamEvent::Trade(trade) => trade.symbol,
        MarketStreamEvent::TradePro(trade) => trade.symbol,
        MarketStreamEvent::Top(top) => top.symbol,
        MarketStreamEvent::Depth(diff) => diff.symbol,
        MarketStreamEvent::Snapshot(snapshot) => snapshot.symbol?,
        MarketStreamEvent::Marks(marks) => match marks.as_slice() {
            [mark] => mark.symbol,
            _ => return None,
        },
        MarketStreamEvent::Kline(event) => &event.symbol,
        MarketStreamEvent::MiniTicker(ticker) => &ticker.symbol,
        MarketStreamEvent::Ticker(ticker) => &ticker.symbol,
        MarketStreamEvent::ForceOrder(event) => &event.order.symbol,
        MarketStreamEvent::Answer(_) | MarketStreamEvent::Other(_) => return None,
    };
    Some(symbol.to_ascii_uppercase())
}

/// What was last said of a topic.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// The highest id of a trade, whatever brought it.
    trade_id: Option<i64>,
    /// The highest id of a trade that polling brought.
    polled_trade_id: Option<i64>,
    /// What polling said last.
    state: Option<String>,
}

/// What an answer says that was not said before.
#[derive(Debug)]
pub(super) struct Polled {
    pub(super) frames: Vec<MarketFrame>,
    /// The market has moved since the last answer. A first answer says nothing of that.
    pub(super) is_news: bool,
}

impl Memory {
    /// A frame of the stream that polling has not brought before: after a time with both, the
    /// stream may repeat trades.
    pub(super) fn is_fresh(&mut self, topic: &Topic, frame: &MarketFrame) -> bool {
        let Topic::Of {
            feed: Feed::Trade | Feed::TradePro | Feed::AggTrade,
            ..
        } = topic
        else {
            return true;
        };
        let mut levels = BookLevels::default();
        let id = match frame.decode(&mut levels).map(|decoded| decoded.event) {
            Ok(MarketStreamEvent::Trade(trade)) => trade.id,
            Ok(MarketStreamEvent::TradePro(trade)) => trade.id,
            _ => return true,
        };
        self.trade_id = self.trade_id.max(Some(id));
        self.polled_trade_id.is_none_or(|polled| polled < id)
    }

    /// Trades that were not told before. What happened before the first answer is history, unless
    /// the stream broke off in it.
    fn trades(&mut self, payloads: Vec<Payload>) -> Vec<Payload> {
        let last = payloads.iter().filter_map(|payload| payload.trade_id).max();
        let known = self.trade_id.or(last);
        self.trade_id = self.trade_id.max(last);
        self.polled_trade_id = self.polled_trade_id.max(last);
        let is_new = |payload: &Payload| payload.trade_id > known;
        payloads.into_iter().filter(is_new).collect()
    }
}

/// Reads an answer as frames of `topic`.
pub(super) fn polled(
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
    let said_by = match surface {
        Surface::Spot => user_stream::Surface::Spot,
        _ => user_stream::Surface::Futures,
    };
    let mut payloads = payloads(feed, said_by, symbol, now_ms, answer)?;
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

/// No route tells taker and maker: polled, a `tradepro` is a `trade`.
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
    use super::*;

    const EVERY: &str = "btcusdt@tradepro";

    /// A topic of trades, and what is known of it.
    fn bench() -> (Topic, Memory) {
        (EVERY.parse().unwrap(), Memory::default())
    }

    fn streamed(id: i64) -> MarketFrame {
        let payload = format!(
            r#"{{"e":"tradepro","E":1,"T":1,"s":"BTCUSDT","t":{id},"p":"1","q":"1","m":["hidden","hidden"]}}"#
        );
        MarketFrame(format!(r#"{{"stream":"{EVERY}","data":{payload}}}"#).into())
    }

    /// Ids that an answer with these trades brings to the consumer, and whether it is news.
    fn answered(topic: &Topic, memory: &mut Memory, ids: &[i64]) -> (Vec<i64>, bool) {
        let trades: Vec<String> = ids
            .iter()
            .map(|id| {
                format!(r#"{{"id":{id},"price":"1","qty":"1","time":1,"isBuyerMaker":true}}"#)
            })
            .collect();
        let answer = format!("[{}]", trades.join(","));
        let polled = polled(topic, Surface::Spot, 0, &answer, memory).unwrap();
        let id = |frame: &MarketFrame| {
            let mut levels = BookLevels::default();
            match frame.decode(&mut levels).unwrap().event {
                MarketStreamEvent::Trade(trade) => trade.id,
                other => panic!("{other:?}"),
            }
        };
        (polled.frames.iter().map(id).collect(), polled.is_news)
    }

    #[test]
    fn polled_trades_begin_with_what_happens_after_the_first_answer() {
        let (topic, mut memory) = bench();
        assert_eq!(answered(&topic, &mut memory, &[7, 8]), (vec![], false));
        assert_eq!(answered(&topic, &mut memory, &[8, 9]), (vec![9], true));
        assert_eq!(answered(&topic, &mut memory, &[8, 9]), (vec![], false));
    }

    #[test]
    fn no_trade_is_lost_or_told_twice_where_stream_and_polling_meet() {
        let (topic, mut memory) = bench();
        for id in [5, 7, 6] {
            // A stream alone is believed as it is.
            assert!(memory.is_fresh(&topic, &streamed(id)), "{id}");
        }
        // The stream breaks off, polling goes on where it ended.
        let news = (vec![8, 9], true);
        assert_eq!(answered(&topic, &mut memory, &[6, 7, 8, 9]), news);
        // The stream comes back and brings what was polled before.
        assert!(!memory.is_fresh(&topic, &streamed(9)));
        assert!(memory.is_fresh(&topic, &streamed(10)));
        assert_eq!(answered(&topic, &mut memory, &[9, 10]), (vec![], false));
    }

    #[test]
    fn bare_payloads_get_the_name_of_their_topic() {
        let topics: Vec<Topic> = ["ausdt@depth5", "busdt@depth5"]
            .map(|topic| topic.parse().unwrap())
            .into();
        let places = topics.iter().map(Topic::to_string).zip(0..).collect();
        let futures =
            r#"{"e":"depthUpdate","E":1,"T":1,"s":"BUSDT","U":1,"u":1,"pu":1,"b":[],"a":[]}"#;
        let frame = MarketFrame(futures.into());
        let Heard::Frame(Some(1), frame) = hear(frame, &[0, 1], &topics, &places) else {
            panic!("not found")
        };
        let wanted = format!(r#"{{"stream":"busdt@depth5","data":{futures}}}"#);
        assert_eq!(frame.text(), wanted);
        // A spot book names no symbol: its connection tells it, if that carries one topic.
        let spot = MarketFrame(r#"{"lastUpdateId":1,"bids":[],"asks":[]}"#.into());
        let heard = hear(spot.clone(), &[0], &topics, &places);
        assert!(matches!(heard, Heard::Frame(Some(0), _)), "{heard:?}");
        let heard = hear(spot, &[0, 1], &topics, &places);
        assert!(matches!(heard, Heard::Frame(None, _)), "{heard:?}");
        let foreign = MarketFrame(r#"{"e":"serverShutdown"}"#.into());
        let heard = hear(foreign, &[0], &topics, &places);
        assert!(matches!(heard, Heard::Frame(None, _)), "{heard:?}");
    }

    #[test]
    fn names_are_found_in_any_spelling() {
        let topics: Vec<Topic> = vec![EVERY.parse().unwrap()];
        let places = topics.iter().map(Topic::to_string).zip(0..).collect();
        for text in [
            streamed(1).text().to_owned(),
            streamed(1).text().replace(':', ": ").replace('{', "{ "),
        ] {
            let frame = MarketFrame(text.into());
            let heard = hear(frame, &[0], &topics, &places);
            assert!(matches!(heard, Heard::Frame(Some(0), _)), "{heard:?}");
        }
        let answer = MarketFrame(r#"{"result":null,"id":1}"#.into());
        let heard = hear(answer, &[0], &topics, &places);
        assert!(matches!(heard, Heard::Answer(_)), "{heard:?}");
    }
}
