//! Topics of the public market streams as types (docs/interface/market-data.md#public-streams).
//! Names only: client and server limit the number of topics of a connection.

use std::fmt;
use std::str::FromStr;

use crate::wire::enums::Interval;

/// A subscription of a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// `<symbol>@<feed>`.
    Of {
        /// The symbol in upper case, as in requests; the topic has it in lower case.
        symbol: String,
        /// The stream of the symbol.
        feed: Feed,
    },
    /// `!markPrice@arr[@1s]`: mark price and funding of all symbols.
    AllMarkPrices {
        /// Every second instead of every three seconds.
        every_second: bool,
    },
}

/// One stream of one symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feed {
    /// `aggTrade`: the fills of one taker order at one price, combined into one trade.
    AggTrade,
    /// `trade`.
    Trade,
    /// `tradepro`: trades with the addresses of taker and maker.
    TradePro,
    /// `markPrice[@1s]`.
    MarkPrice {
        /// Every second instead of every three seconds.
        every_second: bool,
    },
    /// `kline_<interval>`.
    Kline(Interval),
    /// `miniTicker`.
    MiniTicker,
    /// `ticker`.
    Ticker,
    /// `bookTicker`.
    BookTicker,
    /// `forceOrder`: liquidations.
    ForceOrder,
    /// `depth5`, `depth10` or `depth20`, `[@100ms]`: the first levels, complete in each frame.
    PartialDepth {
        /// The number of levels.
        levels: Levels,
        /// Every 100 ms.
        fast: bool,
    },
    /// `depth[@100ms]`: differences.
    Depth {
        /// Every 100 ms.
        fast: bool,
    },
}

impl Feed {
    /// Whether it is a book or a mark price. Strategies quote by these, and loss limits are computed
    /// with them.
    pub const fn is_quote(self) -> bool {
        match self {
            Self::BookTicker
            | Self::Depth { .. }
            | Self::PartialDepth { .. }
            | Self::MarkPrice { .. } => true,
            Self::AggTrade
            | Self::Trade
            | Self::TradePro
            | Self::Kline(_)
            | Self::MiniTicker
            | Self::Ticker
            | Self::ForceOrder => false,
        }
    }
}

/// The number of levels of a partial depth frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Levels {
    /// 5.
    Five = 5,
    /// 10.
    Ten = 10,
    /// 20.
    Twenty = 20,
}

/// The text is not a topic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// The text has no `@`.
    #[error("topic {0:?} is not <symbol>@<stream>, such as btcusdt@bookTicker")]
    Shape(String),
    /// Symbols in topics must be lower case.
    #[error("topic {topic:?}: symbols are lower case in topics; write {lower:?}")]
    UpperCase {
        /// The topic.
        topic: String,
        /// The symbol in lower case.
        lower: String,
    },
    /// The symbol has characters that no symbol may have.
    #[error("topic {0:?}: the symbol is empty or has a space, a slash or a quote")]
    Symbol(String),
    /// The stream is not documented.
    #[error(
        "topic {topic:?}: no stream {stream:?}; there are aggTrade, trade, tradepro, markPrice[@1s], \
         kline_<interval>, miniTicker, ticker, bookTicker, forceOrder, depth5|10|20[@100ms], \
         depth[@100ms] and !markPrice@arr"
    )]
    Stream {
        /// The topic.
        topic: String,
        /// The text after the first `@`.
        stream: String,
    },
}

impl Topic {
    /// A stream of a symbol; the symbol may be in any case.
    pub fn of(symbol: &str, feed: Feed) -> Self {
        Self::Of {
            symbol: symbol.to_ascii_uppercase(),
            feed,
        }
    }

    /// The symbol, if the topic belongs to one.
    pub fn symbol(&self) -> Option<&str> {
        match self {
            Self::Of { symbol, .. } => Some(symbol),
            Self::AllMarkPrices { .. } => None,
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of { symbol, feed } => write!(f, "{}@{feed}", symbol.to_ascii_lowercase()),
            Self::AllMarkPrices { every_second } => {
                write!(f, "!markPrice@arr{}", suffix(*every_second, "@1s"))
            }
        }
    }
}

impl fmt::Display for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::AggTrade => f.write_str("aggTrade"),
            Self::Trade => f.write_str("trade"),
            Self::TradePro => f.write_str("tradepro"),
            Self::MarkPrice { every_second } => {
                write!(f, "markPrice{}", suffix(every_second, "@1s"))
            }
            Self::Kline(interval) => write!(f, "kline_{interval}"),
            Self::MiniTicker => f.write_str("miniTicker"),
            Self::Ticker => f.write_str("ticker"),
            Self::BookTicker => f.write_str("bookTicker"),
            Self::ForceOrder => f.write_str("forceOrder"),
            Self::PartialDepth { levels, fast } => {
                write!(f, "depth{}{}", levels as u8, suffix(fast, "@100ms"))
            }
            Self::Depth { fast } => write!(f, "depth{}", suffix(fast, "@100ms")),
        }
    }
}

const fn suffix(is_sent: bool, text: &'static str) -> &'static str {
    if is_sent { text } else { "" }
}

impl FromStr for Topic {
    type Err = TopicError;

    fn from_str(text: &str) -> Result<Self, TopicError> {
        match text {
            "!markPrice@arr" => {
                return Ok(Self::AllMarkPrices {
                    every_second: false,
                });
            }
            "!markPrice@arr@1s" => return Ok(Self::AllMarkPrices { every_second: true }),
            _ => {}
        }
        let topic = || text.to_owned();
        let (symbol, stream) = text
            .split_once('@')
            .ok_or_else(|| TopicError::Shape(topic()))?;
        let is_foreign = |c: char| c.is_whitespace() || c.is_control() || "/\"\\'!".contains(c);
        if symbol.is_empty() || symbol.contains(is_foreign) {
            return Err(TopicError::Symbol(topic()));
        }
        let lower = symbol.to_ascii_lowercase();
        if lower != symbol {
            return Err(TopicError::UpperCase {
                topic: topic(),
                lower,
            });
        }
        let feed = feed(stream).ok_or_else(|| TopicError::Stream {
            topic: topic(),
            stream: stream.to_owned(),
        })?;
        Ok(Self::of(symbol, feed))
    }
}

fn feed(stream: &str) -> Option<Feed> {
    Some(match stream {
        "aggTrade" => Feed::AggTrade,
        "trade" => Feed::Trade,
        "tradepro" => Feed::TradePro,
        "markPrice" => Feed::MarkPrice {
            every_second: false,
        },
        "markPrice@1s" => Feed::MarkPrice { every_second: true },
        "miniTicker" => Feed::MiniTicker,
        "ticker" => Feed::Ticker,
        "bookTicker" => Feed::BookTicker,
        "forceOrder" => Feed::ForceOrder,
        _ => {
            if let Some(interval) = stream.strip_prefix("kline_") {
                return interval.parse().ok().map(Feed::Kline);
            }
            return depth(stream.strip_prefix("depth")?);
        }
    })
}

fn depth(rest: &str) -> Option<Feed> {
    let (levels, fast) = match rest.strip_suffix("@100ms") {
        Some(levels) => (levels, true),
        None => (rest, false),
    };
    let levels = match levels {
        "" => return Some(Feed::Depth { fast }),
        "5" => Levels::Five,
        "10" => Levels::Ten,
        "20" => Levels::Twenty,
        _ => return None,
    };
    Some(Feed::PartialDepth { levels, fast })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_topic_round_trips() {
        let mut topics: Vec<String> = [
            "aggTrade",
            "trade",
            "tradepro",
            "markPrice",
            "markPrice@1s",
            "miniTicker",
            "ticker",
            "bookTicker",
            "forceOrder",
            "depth5",
            "depth10",
            "depth20",
            "depth5@100ms",
            "depth10@100ms",
            "depth20@100ms",
            "depth",
            "depth@100ms",
        ]
        .iter()
        .map(|stream| format!("btcusdt@{stream}"))
        .collect();
        topics.extend(
            Interval::ALL
                .iter()
                .map(|interval| format!("1000xyz@kline_{interval}")),
        );
        topics.extend(["!markPrice@arr".to_owned(), "!markPrice@arr@1s".to_owned()]);
        for text in topics {
            let topic: Topic = text.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(topic.to_string(), text);
        }
        let minute: Topic = "btcusdt@kline_1m".parse().unwrap();
        let month: Topic = "btcusdt@kline_1M".parse().unwrap();
        assert_ne!(minute, month);
        assert_eq!(minute, Topic::of("btcUSDT", Feed::Kline(Interval::Minute1)));
        assert_eq!(minute.symbol(), Some("BTCUSDT"));
    }

    #[test]
    fn an_invalid_topic_is_refused_with_the_reason() {
        let error = |text: &str| text.parse::<Topic>().unwrap_err().to_string();
        assert!(error("btcusdt").contains("is not <symbol>@<stream>"));
        assert!(error("BTCUSDT@trade").contains("write \"btcusdt\""));
        assert!(error("@trade").contains("symbol is empty"));
        assert!(error("a/b@trade").contains("a slash"));
        for text in [
            "x@",
            "x@Trade",
            "x@depth7",
            "x@depth@250ms",
            "x@kline_2m",
            "x@markPrice@2s",
        ] {
            assert!(error(text).contains("no stream"), "{text}");
        }
    }
}
