//! What an engine is made of: instruments, strategies, limits. Fixed for its life, and the first
//! thing that its record covers.

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::{AssetId, InstrumentId, StrategyName};
use crate::instrument::Instrument;
use crate::live::{LiveConfig, OnStop};
use crate::order::Surface;
use crate::risk::RiskLimits;

/// Configuration of an engine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EngineConfig {
    /// Names of assets; [`AssetId`] is an index into it.
    pub assets: Vec<String>,
    /// Instruments; [`InstrumentId`] is an index into it.
    pub instruments: Vec<Instrument>,
    /// Strategies; `StrategyId` is an index into it.
    pub strategies: Vec<StrategyConfig>,
    /// Limits of the account.
    pub limits: RiskLimits,
    /// Hedge mode; one-way otherwise. Never changed by the runtime.
    pub hedge_mode: bool,
    /// Epoch of client order ids (promise 1).
    pub epoch: u64,
    /// Balances that the account starts with.
    pub balances: Vec<(Surface, AssetId, Amount)>,
    /// What else the run depends on (seed, fees, parameters of strategies), in words: recorded, and
    /// so part of the fingerprint, but never read.
    pub circumstances: String,
    /// A run against a real clock; without it, the account is taken to be as configured and
    /// every request may leave at once.
    pub live: Option<LiveConfig>,
    /// Whether sealed blocks of records are kept for a journal.
    pub keep_journal: bool,
}

/// One strategy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StrategyConfig {
    /// Its id.
    pub name: StrategyName,
    /// What it may trade and is told of.
    pub subscriptions: Vec<Subscription>,
    /// Its own limits.
    pub limits: RiskLimits,
    /// What happens to its orders and positions when it fails.
    pub on_fault: OnFault,
}

/// An instrument that is granted to a strategy, with the streams that it is told of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Subscription {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Market streams.
    pub streams: Streams,
    /// Intervals of bars, in milliseconds.
    pub bars_ms: Vec<i64>,
}

/// Market streams of a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    /// Trades.
    pub trades: bool,
    /// Book tops and applied depth.
    pub book: bool,
    /// Mark prices.
    pub marks: bool,
}

/// What happens to the orders and positions of a strategy that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFault {
    /// Cancel its orders.
    #[default]
    Cancel,
    /// Leave its orders.
    Keep,
    /// Cancel its orders, then close its positions at market.
    Flatten,
}

/// What of a configuration may change while an engine lives; everything else is fixed. Recorded,
/// so that a replay goes on with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reconfiguration {
    /// Limits of the account.
    pub limits: RiskLimits,
    /// The strategies, in the order of the configuration.
    pub strategies: Vec<StrategyTerms>,
    /// What happens to own orders and positions at the stop.
    pub on_stop: OnStop,
    /// What else changed (modules, parameters), in words: recorded, but never read.
    pub circumstances: String,
}

/// What of a strategy's configuration may change while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyTerms {
    /// Its own limits.
    pub limits: RiskLimits,
    /// What happens to its orders and positions when it fails.
    pub on_fault: OnFault,
}
