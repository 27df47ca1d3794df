//! Names and meanings of public streams (docs/interface/market-data.md#public-streams). Symbols are
//! lower case. The rest of a name must have the documented case.

use std::fmt;

use windvane_model::{InstrumentId, Surface};

use windvane_sim_market::Board;
use windvane_sim_market::book::Speed;
use windvane_sim_market::interval::Interval;

/// The kind of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// `aggTrade`.
    AggTrade,
    /// `trade`. It is listed for spot; recordings of such services also have it on futures.
    Trade,
    /// `tradepro`.
    TradePro,
    /// `kline_<interval>`.
    Kline(Interval),
    /// `miniTicker`.
    MiniTicker,
    /// `ticker`.
    Ticker,
    /// `bookTicker`.
    BookTicker,
    /// `depth5`, `depth10`, `depth20`.
    Partial(u8, Speed),
    /// `depth`.
    Depth(Speed),
    /// `markPrice`, every 3 seconds; futures.
    MarkPrice,
    /// `markPrice@1s`; futures.
    MarkPriceFast,
    /// `forceOrder`; futures.
    ForceOrder,
}

/// The names of [`Kind`], or their prefixes if more text follows.
const KINDS: &[&str] = &[
    "aggTrade",
    "trade",
    "tradepro",
    "kline_",
    "miniTicker",
    "ticker",
    "bookTicker",
    "depth",
    "markPrice@1s",
    "forceOrder",
];

/// A public stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// A stream of one symbol.
    Of(InstrumentId, Kind),
    /// `!markPrice@arr`, or every second with `@1s`; futures.
    AllMarks {
        /// Whether it is sent every second.
        fast: bool,
    },
}

impl Topic {
    /// The stream with this name; `None` if no stream has it.
    pub(crate) fn parse(name: &str, surface: Surface, board: &Board) -> Option<Self> {
        if name.starts_with('!') {
            let fast = match name {
                "!markPrice@arr" => false,
                "!markPrice@arr@1s" => true,
                _ => return None,
            };
            return (surface == Surface::Futures).then_some(Self::AllMarks { fast });
        }
        let (symbol, kind) = name.split_once('@')?;
        if symbol.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        let symbol = board.find(surface, &symbol.to_ascii_uppercase())?;
        Some(Self::Of(symbol.id, Kind::parse(kind, surface)?))
    }

    /// Whether a name, or a prefix and `*`, matches any stream of either surface.
    pub(crate) fn may_fit(pattern: &str, board: &Board) -> bool {
        let surfaces = [Surface::Spot, Surface::Futures];
        let Some(beginning) = pattern.strip_suffix('*') else {
            return surfaces
                .iter()
                .any(|surface| Self::parse(pattern, *surface, board).is_some());
        };
        let (symbol, kind) = beginning.split_once('@').unwrap_or((beginning, ""));
        if "!markPrice@arr@1s".starts_with(beginning) {
            return true;
        }
        let whole = beginning.contains('@');
        let fits = |name: &str| {
            let name = name.to_ascii_lowercase();
            name == symbol || !whole && name.starts_with(symbol)
        };
        let known = KINDS.iter().any(|name| name.starts_with(kind));
        let closer = kind.starts_with("depth") || kind.starts_with("kline_");
        let mut symbols = board.symbols().iter();
        (known || closer) && symbols.any(|symbol| fits(&symbol.instrument.symbol))
    }

    /// Its name.
    pub(crate) fn name(self, board: &Board) -> String {
        match self {
            Self::AllMarks { fast: false } => "!markPrice@arr".to_owned(),
            Self::AllMarks { fast: true } => "!markPrice@arr@1s".to_owned(),
            Self::Of(id, kind) => {
                let symbol = board.symbol(id);
                let symbol = symbol.map_or("", |symbol| &symbol.instrument.symbol);
                format!("{}@{kind}", symbol.to_ascii_lowercase())
            }
        }
    }

    /// Whether frames always have the form `{stream, data}`
    /// (docs/interface/market-data.md#tradepro).
    pub(crate) const fn is_always_wrapped(self) -> bool {
        matches!(self, Self::Of(_, Kind::TradePro))
    }
}

/// The speed of `depth` without a speed in its name.
const fn plain_speed(surface: Surface) -> Speed {
    match surface {
        Surface::Spot => Speed::Ms1000,
        Surface::Futures => Speed::Ms250,
    }
}

impl Kind {
    fn parse(text: &str, surface: Surface) -> Option<Self> {
        let futures = surface == Surface::Futures;
        let only_futures = |kind: Self| futures.then_some(kind);
        match text {
            "aggTrade" => Some(Self::AggTrade),
            "trade" => Some(Self::Trade),
            "tradepro" => Some(Self::TradePro),
            "miniTicker" => Some(Self::MiniTicker),
            "ticker" => Some(Self::Ticker),
            "bookTicker" => Some(Self::BookTicker),
            "markPrice" => only_futures(Self::MarkPrice),
            "markPrice@1s" => only_futures(Self::MarkPriceFast),
            "forceOrder" => only_futures(Self::ForceOrder),
            _ => match text.strip_prefix("kline_") {
                Some(interval) => Interval::from_text(interval).map(Self::Kline),
                None => Self::parse_depth(text.strip_prefix("depth")?, surface),
            },
        }
    }

    fn parse_depth(text: &str, surface: Surface) -> Option<Self> {
        let (levels, speed) = match text.strip_suffix("@100ms") {
            Some(levels) => (levels, Speed::Ms100),
            None => (text, plain_speed(surface)),
        };
        match levels {
            "" => Some(Self::Depth(speed)),
            "5" => Some(Self::Partial(5, speed)),
            "10" => Some(Self::Partial(10, speed)),
            "20" => Some(Self::Partial(20, speed)),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let speed = |speed: Speed| match speed {
            Speed::Ms100 => "@100ms",
            Speed::Ms250 | Speed::Ms1000 => "",
        };
        match *self {
            Self::AggTrade => f.write_str("aggTrade"),
            Self::Trade => f.write_str("trade"),
            Self::TradePro => f.write_str("tradepro"),
            Self::Kline(interval) => write!(f, "kline_{}", interval.as_str()),
            Self::MiniTicker => f.write_str("miniTicker"),
            Self::Ticker => f.write_str("ticker"),
            Self::BookTicker => f.write_str("bookTicker"),
            Self::Partial(levels, at) => write!(f, "depth{levels}{}", speed(at)),
            Self::Depth(at) => write!(f, "depth{}", speed(at)),
            Self::MarkPrice => f.write_str("markPrice"),
            Self::MarkPriceFast => f.write_str("markPrice@1s"),
            Self::ForceOrder => f.write_str("forceOrder"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windvane_model::Time;
    use windvane_sim_market::Source;

    #[test]
    fn only_valid_names_are_parsed_and_they_round_trip() {
        let board = Board::new(Source::default(), 1, Time::from_millis(1_723_161_253_000));
        let common = [
            "aggTrade",
            "trade",
            "tradepro",
            "kline_1m",
            "kline_1M",
            "miniTicker",
            "ticker",
            "bookTicker",
            "depth",
            "depth@100ms",
            "depth5",
            "depth10@100ms",
            "depth20",
        ];
        let futures = ["markPrice", "markPrice@1s", "forceOrder"];
        for kind in common.iter().chain(&futures) {
            let name = format!("btcusdt@{kind}");
            let topic = Topic::parse(&name, Surface::Futures, &board).expect(kind);
            assert_eq!(topic.name(&board), name);
            let spot = Topic::parse(&name, Surface::Spot, &board);
            assert_eq!(spot.is_some(), common.contains(kind), "{kind}");
            assert_ne!(spot, Some(topic), "the surfaces have different symbols");
        }
        for name in ["!markPrice@arr", "!markPrice@arr@1s"] {
            let topic = Topic::parse(name, Surface::Futures, &board).unwrap();
            assert_eq!(topic.name(&board), name);
            assert_eq!(Topic::parse(name, Surface::Spot, &board), None);
        }
        let none = [
            "BTCUSDT@trade",
            "nopeusdt@trade",
            "btcusdt",
            "btcusdt@",
            "btcusdt@aggtrade",
            "btcusdt@kline_1s",
            "btcusdt@depth7",
            "btcusdt@depth@1ms",
            "btcusdt@trade@100ms",
            "!ticker",
        ];
        for name in none {
            assert_eq!(Topic::parse(name, Surface::Futures, &board), None, "{name}");
        }
    }
}
