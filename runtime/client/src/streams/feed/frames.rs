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
        event => symbol_of(&event),
    };
    let is_it = |at: &&usize| match (&symbol, carried) {
        // A spot book on the raw path names no symbol.
        (None, [_]) => true,
        (symbol, _) => topics[**at].symbol() == symbol.as_deref(),
    };
    let Some(at) = carried.iter().find(is_it) else {
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
