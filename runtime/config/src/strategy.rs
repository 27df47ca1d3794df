//! `[[strategy]]` and `[risk]`: the strategies, their instruments and their limits.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{Deserializer, Error};
pub use windvane_model::capability::Capability;
use windvane_model::config::Streams;
use windvane_model::decimal::Decimal;
use windvane_model::ids::StrategyName;
use windvane_session::InstrumentName;

use super::choice::choice;
use super::live::Leave;
use super::value::{fraction_option, positive_option};

/// One strategy.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strategy {
    /// 1 to 8 characters of `a-z`, `0-9` and `-`; part of every client order id.
    #[serde(deserialize_with = "strategy_name")]
    pub id: StrategyName,
    /// A folder with `Cargo.toml`, or a `.wasm` file.
    pub module: PathBuf,
    /// Instruments that it may trade and whose market events it receives.
    #[serde(deserialize_with = "instruments")]
    pub instruments: Vec<InstrumentName>,
    /// Kinds of market events that it receives.
    #[serde(default = "default_streams")]
    pub streams: Vec<Stream>,
    /// Import groups that it may use. `None`: those that its description asks for.
    #[serde(default)]
    pub capabilities: Option<Vec<Capability>>,
    /// Its own parameters. `start` receives them as JSON.
    #[serde(default = "empty_object", deserialize_with = "object")]
    pub params: serde_json::Value,
    /// Limits of this strategy alone.
    #[serde(default)]
    pub limits: Limits,
    /// Action for its orders and positions when it is put into quarantine.
    #[serde(default)]
    pub on_fault: Leave,
}

impl Strategy {
    /// Its streams in the engine's form, and the intervals of its bars.
    pub(crate) fn subscribed(&self) -> (Streams, Vec<i64>) {
        let (mut streams, mut bars_ms) = (Streams::default(), Vec::new());
        for stream in &self.streams {
            match *stream {
                Stream::Trade => streams.trades = true,
                Stream::Book => streams.book = true,
                Stream::Mark => streams.marks = true,
                Stream::Bar { interval_ms } if bars_ms.contains(&interval_ms) => {}
                Stream::Bar { interval_ms } => bars_ms.push(interval_ms),
            }
        }
        (streams, bars_ms)
    }
}

fn strategy_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StrategyName, D::Error> {
    let text = String::deserialize(deserializer)?;
    StrategyName::new(&text)
        .map_err(|_| D::Error::custom("must have 1 to 8 characters of a-z, 0-9 and -"))
}

fn instruments<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<InstrumentName>, D::Error> {
    let names = Vec::<InstrumentName>::deserialize(deserializer)?;
    let repeated = (1..names.len()).find(|&at| names[..at].contains(&names[at]));
    match repeated {
        Some(at) => Err(D::Error::custom(format!(
            "must not name {} twice",
            names[at]
        ))),
        None if names.is_empty() => Err(D::Error::custom(
            "must name at least one instrument, such as futures:BTCUSDT",
        )),
        None => Ok(names),
    }
}

fn default_streams() -> Vec<Stream> {
    vec![Stream::Trade, Stream::Book]
}

fn empty_object() -> serde_json::Value {
    serde_json::Value::Object(serde_json::Map::new())
}

fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<serde_json::Value, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(D::Error::custom("must be a table"))
    }
}

/// A kind of market event: `trade`, `book`, `mark` or `bar:<interval>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// Trades.
    Trade,
    /// Book tops and depth changes.
    Book,
    /// Mark prices and funding rates.
    Mark,
    /// Closed bars of this length.
    Bar {
        /// Length of a bar, milliseconds.
        interval_ms: i64,
    },
}

impl Stream {
    /// Parses text such as `trade` or `bar:5m`. The unit of an interval is `s`, `m`, `h` or `d`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "trade" => Some(Self::Trade),
            "book" => Some(Self::Book),
            "mark" => Some(Self::Mark),
            _ => {
                let interval = text.strip_prefix("bar:")?;
                let unit_at = interval.len().checked_sub(1)?;
                let unit_ms = match interval.as_bytes()[unit_at] {
                    b's' => 1000,
                    b'm' => 60_000,
                    b'h' => 3_600_000,
                    b'd' => 86_400_000,
                    _ => return None,
                };
                let count: u16 = interval[..unit_at]
                    .parse()
                    .ok()
                    .filter(|count| *count > 0)?;
                Some(Self::Bar {
                    interval_ms: i64::from(count) * unit_ms,
                })
            }
        }
    }
}

impl<'de> Deserialize<'de> for Stream {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).ok_or_else(|| {
            D::Error::custom("must be trade, book, mark or bar:<interval> such as bar:1s or bar:5m")
        })
    }
}

/// `[risk]`: limits of the whole account. The same keys limit one strategy in its `limits`. A
/// missing limit does not apply. Notionals are in the quote asset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Risk {
    /// Largest price times quantity of one order.
    #[serde(deserialize_with = "positive_option")]
    pub max_order_notional: Option<Decimal>,
    /// Largest worst-case position: the sum over all instruments, as if open orders were filled.
    #[serde(deserialize_with = "positive_option")]
    pub max_position_notional: Option<Decimal>,
    /// Largest number of open orders.
    pub max_open_orders: Option<u32>,
    /// Largest number of new orders in any minute.
    pub max_orders_per_minute: Option<u32>,
    /// Largest distance of an order's price from mid, as a fraction.
    #[serde(deserialize_with = "fraction_option")]
    pub price_collar: Option<Decimal>,
    /// Largest loss since midnight UTC.
    #[serde(deserialize_with = "positive_option")]
    pub max_daily_loss: Option<Decimal>,
    /// Largest fall of equity from its peak, as a fraction.
    #[serde(deserialize_with = "fraction_option")]
    pub max_drawdown: Option<Decimal>,
    /// Action after a liquidation or auto-deleveraging (ADL). It applies only to the whole
    /// account.
    pub on_liquidation: OnLiquidation,
}

choice! {
    /// The runtime's action after the venue itself closed a position of the account.
    OnLiquidation {
        /// Cancel own orders, and send none until `resume`.
        #[default]
        Halt,
        /// Add no exposure until `resume`.
        Pause,
        /// Go on trading.
        Continue,
    }
}

/// `limits` of a strategy: resources of its module, and the keys of `[risk]` for this strategy.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Fuel for one callback; one unit is about one WebAssembly instruction.
    #[serde(deserialize_with = "fuel")]
    pub fuel_per_event: u64,
    /// Linear memory, MiB.
    #[serde(deserialize_with = "memory")]
    pub memory_mb: u32,
    /// Processor time of one callback in live and paper runs, ms.
    #[serde(deserialize_with = "callback")]
    pub callback_ms: u32,
    /// Share of one processor over time in live and paper runs, percent.
    #[serde(deserialize_with = "percent")]
    pub cpu_percent: u32,
    /// See [`Risk::max_order_notional`].
    #[serde(deserialize_with = "positive_option")]
    pub max_order_notional: Option<Decimal>,
    /// See [`Risk::max_position_notional`].
    #[serde(deserialize_with = "positive_option")]
    pub max_position_notional: Option<Decimal>,
    /// See [`Risk::max_open_orders`].
    pub max_open_orders: Option<u32>,
    /// See [`Risk::max_orders_per_minute`].
    pub max_orders_per_minute: Option<u32>,
    /// See [`Risk::price_collar`].
    #[serde(deserialize_with = "fraction_option")]
    pub price_collar: Option<Decimal>,
    /// See [`Risk::max_daily_loss`].
    #[serde(deserialize_with = "positive_option")]
    pub max_daily_loss: Option<Decimal>,
    /// See [`Risk::max_drawdown`].
    #[serde(deserialize_with = "fraction_option")]
    pub max_drawdown: Option<Decimal>,
}

fn fuel<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = u64::deserialize(deserializer)?;
    if value > 0 {
        Ok(value)
    } else {
        Err(D::Error::custom(
            "must be over 0: without fuel no callback runs",
        ))
    }
}

fn memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let value = u32::deserialize(deserializer)?;
    if (1..=4095).contains(&value) {
        Ok(value)
    } else {
        Err(D::Error::custom("must be mebibytes from 1 to 4095"))
    }
}

fn callback<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let value = u32::deserialize(deserializer)?;
    if (1..=10_000).contains(&value) {
        Ok(value)
    } else {
        Err(D::Error::custom("must be milliseconds from 1 to 10000"))
    }
}

fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let value = u32::deserialize(deserializer)?;
    if (1..=100).contains(&value) {
        Ok(value)
    } else {
        Err(D::Error::custom("must be percent from 1 to 100"))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel_per_event: 2_000_000,
            memory_mb: 64,
            callback_ms: 50,
            cpu_percent: 25,
            max_order_notional: None,
            max_position_notional: None,
            max_open_orders: None,
            max_orders_per_minute: None,
            price_collar: None,
            max_daily_loss: None,
            max_drawdown: None,
        }
    }
}

impl Limits {
    /// The risk limits of the strategy.
    pub fn risk(&self) -> Risk {
        Risk {
            max_order_notional: self.max_order_notional,
            max_position_notional: self.max_position_notional,
            max_open_orders: self.max_open_orders,
            max_orders_per_minute: self.max_orders_per_minute,
            price_collar: self.price_collar,
            max_daily_loss: self.max_daily_loss,
            max_drawdown: self.max_drawdown,
            ..Risk::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_words_or_bars() {
        assert_eq!(Stream::parse("trade"), Some(Stream::Trade));
        assert_eq!(
            Stream::parse("bar:5m"),
            Some(Stream::Bar {
                interval_ms: 300_000
            })
        );
        for bad in [
            "bars",
            "bar:",
            "bar:0s",
            "bar:m",
            "bar:5",
            "bar:5é",
            "bar:70000s",
            "Trade",
        ] {
            assert_eq!(Stream::parse(bad), None, "{bad}");
        }
    }
}
