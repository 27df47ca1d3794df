//! `[backtest]` and `[sim]`: the recordings to play, the simulated account and its fills.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use windvane_model::decimal::Decimal;
use windvane_model::order::Surface;
use windvane_sim::choices::Choices;

use super::choice::choice;
use super::value::{fee, millis_as_ns, not_negative, rate};

choice! {
    /// Handling of a damaged line of a recording.
    OnDamage {
        /// The line is reported and skipped.
        #[default]
        Skip,
        /// The run fails.
        Fail,
    }
}

/// `[backtest]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Backtest {
    /// Recordings. For each instrument, they are played in this order of files and merged by time.
    pub data: Vec<PathBuf>,
    /// Folder of decoded recordings. Without one, the cache is beside the recording.
    pub cache: Option<PathBuf>,
    /// Handling of damaged lines.
    pub on_damage: OnDamage,
}

choice! {
    /// How the simulated venue estimates a resting order's place in the queue.
    Queue {
        /// Only trades at the order's price, or a displayed quantity below the quantity ahead, move
        /// the order forward.
        #[default]
        RiskAverse,
        /// Quantity that leaves the order's price level is split between the queue ahead and behind
        /// by a power law.
        Probabilistic,
        /// No quantity is ahead: the order fills when the market touches its price.
        None,
    }
}

impl Queue {
    /// The value's name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RiskAverse => "risk-averse",
            Self::Probabilistic => "probabilistic",
            Self::None => "none",
        }
    }
}

/// How long messages take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// The same time for all messages.
    Constant {
        /// From the venue's event to the engine, nanoseconds.
        feed_ns: i64,
        /// From the engine's request to the venue, and again for the response, nanoseconds.
        order_ns: i64,
    },
    /// Drawn from the feed latency in the recording, with the seed.
    Recorded,
}

/// `[sim]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "SimTable")]
pub struct Sim {
    /// Balances of the account at the start.
    pub start_balance: BTreeMap<Holding, Decimal>,
    /// Initial leverage on futures.
    pub leverage: u32,
    /// Maintenance margin as a fraction of the position's notional.
    pub maintenance_rate: Decimal,
    /// How long messages take.
    pub latency: Latency,
    /// Queue model.
    pub queue: Queue,
    /// Fees.
    pub fees: Fees,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The behaviour of `windvane venue` where the exchange's documents permit more than one.
    pub choices: Choices,
}

/// Fees as fractions of the notional; negative is a rebate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fees {
    /// For fills of resting orders.
    #[serde(deserialize_with = "fee")]
    pub maker: Decimal,
    /// For fills of crossing orders.
    #[serde(deserialize_with = "fee")]
    pub taker: Decimal,
}

impl Default for Fees {
    fn default() -> Self {
        Self {
            maker: Decimal::new(2, 4),
            taker: Decimal::new(4, 4),
        }
    }
}

/// An asset on one surface: `spot:ASSET` or `futures:ASSET`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holding {
    /// Surface.
    pub surface: Surface,
    /// Asset.
    pub asset: String,
}

impl fmt::Display for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.surface, self.asset)
    }
}

impl<'de> Deserialize<'de> for Holding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parse = || {
            let (surface, asset) = text.split_once(':')?;
            let allowed = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
            let valid = (1..=32).contains(&asset.len()) && asset.bytes().all(allowed);
            valid.then_some(Self {
                surface: Surface::from_text(surface)?,
                asset: asset.to_owned(),
            })
        };
        parse().ok_or_else(|| {
            D::Error::custom("must be spot:ASSET or futures:ASSET, such as \"futures:USDT\"")
        })
    }
}

/// `[sim]` with the keys of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct SimTable {
    #[serde(deserialize_with = "balances")]
    start_balance: BTreeMap<Holding, Decimal>,
    #[serde(deserialize_with = "leverage")]
    leverage: u32,
    #[serde(deserialize_with = "rate")]
    maintenance_rate: Decimal,
    latency_ms: Option<LatencyTable>,
    latency: Option<LatencyWord>,
    queue: Queue,
    fees: Fees,
    seed: u64,
    #[serde(deserialize_with = "choices")]
    choices: Choices,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct LatencyTable {
    #[serde(deserialize_with = "millis_as_ns")]
    feed: i64,
    #[serde(deserialize_with = "millis_as_ns")]
    order: i64,
}

impl Default for LatencyTable {
    fn default() -> Self {
        Self {
            feed: 1_000_000,
            order: 5_000_000,
        }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LatencyWord {
    Recorded,
}

impl Default for SimTable {
    fn default() -> Self {
        let holding = Holding {
            surface: Surface::Futures,
            asset: "USDT".to_owned(),
        };
        Self {
            start_balance: BTreeMap::from([(holding, Decimal::from(10_000))]),
            leverage: 20,
            maintenance_rate: Decimal::new(5, 3),
            latency_ms: None,
            latency: None,
            queue: Queue::default(),
            fees: Fees::default(),
            seed: 1,
            choices: Choices::default(),
        }
    }
}

impl From<SimTable> for Sim {
    fn from(table: SimTable) -> Self {
        let latency = match (table.latency, table.latency_ms) {
            // With `latency = "recorded"`, the constants of `latency_ms` are not used.
            (Some(LatencyWord::Recorded), _) => Latency::Recorded,
            (None, constant) => {
                let LatencyTable { feed, order } = constant.unwrap_or_default();
                Latency::Constant {
                    feed_ns: feed,
                    order_ns: order,
                }
            }
        };
        Self {
            start_balance: table.start_balance,
            leverage: table.leverage,
            maintenance_rate: table.maintenance_rate,
            latency,
            queue: table.queue,
            fees: table.fees,
            seed: table.seed,
            choices: table.choices,
        }
    }
}

impl Default for Sim {
    fn default() -> Self {
        let SimTable {
            start_balance,
            leverage,
            maintenance_rate,
            queue,
            fees,
            seed,
            choices,
            ..
        } = SimTable::default();
        let LatencyTable { feed, order } = LatencyTable::default();
        Self {
            start_balance,
            leverage,
            maintenance_rate,
            latency: Latency::Constant {
                feed_ns: feed,
                order_ns: order,
            },
            queue,
            fees,
            seed,
            choices,
        }
    }
}

/// Reads `[sim.choices]`: names and values of `docs/open-points.md`.
fn choices<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Choices, D::Error> {
    let chosen = BTreeMap::<String, String>::deserialize(deserializer)?;
    let chosen = chosen
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    Choices::new(chosen).map_err(D::Error::custom)
}

fn balances<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<Holding, Decimal>, D::Error> {
    #[derive(Deserialize)]
    struct Quantity(#[serde(deserialize_with = "not_negative")] Decimal);
    let balances = BTreeMap::<Holding, Quantity>::deserialize(deserializer)?;
    Ok(balances
        .into_iter()
        .map(|(holding, Quantity(value))| (holding, value))
        .collect())
}

fn leverage<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let value = u32::deserialize(deserializer)?;
    if (1..=125).contains(&value) {
        Ok(value)
    } else {
        Err(D::Error::custom("must be a whole number from 1 to 125"))
    }
}
