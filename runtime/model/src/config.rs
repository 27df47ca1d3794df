//! The configuration of an engine: instruments, strategies and limits. It does not change during
//! the life of an engine, and it is the first record of the journal.

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
    /// Names of assets. [`AssetId`] is an index into this list.
    pub assets: Vec<String>,
    /// Instruments. [`InstrumentId`] is an index into this list.
    pub instruments: Vec<Instrument>,
    /// Strategies. `StrategyId` is an index into this list.
    pub strategies: Vec<StrategyConfig>,
    /// Limits of the account.
    pub limits: RiskLimits,
    /// Hedge mode if true, one-way mode otherwise. The runtime never changes the mode.
    pub hedge_mode: bool,
    /// The epoch in client order ids. Each process uses a new one, so ids are never reused
    /// (docs/promises.md#1-order-ids).
    pub epoch: u64,
    /// The initial balances of the account.
    pub balances: Vec<(Surface, AssetId, Amount)>,
    /// Other settings that the run depends on (seed, fees, parameters of strategies), as text. They
    /// are recorded, and so part of the fingerprint, but the engine never reads them.
    pub circumstances: String,
    /// Settings of a run against a real clock. `None` in a backtest: the engine then assumes that
    /// the account is as configured, and requests may leave at once.
    pub live: Option<LiveConfig>,
    /// Whether finished (sealed) blocks of records are kept, for a driver that writes a journal.
    /// Otherwise they are hashed and dropped.
    pub keep_journal: bool,
}

/// Configuration of one strategy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StrategyConfig {
    /// Id of the strategy.
    pub name: StrategyName,
    /// The instruments that it may trade, with the events that it receives.
    pub subscriptions: Vec<Subscription>,
    /// Limits of this strategy.
    pub limits: RiskLimits,
    /// How the engine handles its orders and positions after a fault.
    pub on_fault: OnFault,
}

/// An instrument that a strategy may trade, with the streams that the strategy receives.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Subscription {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Market streams.
    pub streams: Streams,
    /// Intervals of the bars that it receives, in milliseconds.
    pub bars_ms: Vec<i64>,
}

/// Market streams of a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    /// Trades.
    pub trades: bool,
    /// Best bid and ask, and applied depth changes.
    pub book: bool,
    /// Mark prices.
    pub marks: bool,
}

/// How the engine handles the orders and positions of a strategy after a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFault {
    /// Cancel its orders.
    #[default]
    Cancel,
    /// Leave its orders open.
    Keep,
    /// Cancel its orders, then close its positions at market.
    Flatten,
}

/// The part of the configuration that may change while an engine runs. It is recorded, so that a
/// replay continues with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reconfiguration {
    /// Limits of the account.
    pub limits: RiskLimits,
    /// The strategies, in the order of the configuration.
    pub strategies: Vec<StrategyTerms>,
    /// How own orders and positions are handled at the stop.
    pub on_stop: OnStop,
    /// Other changes (modules, parameters), as text. They are recorded, but the engine never reads
    /// them.
    pub circumstances: String,
}

/// The part of a strategy's configuration that may change while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyTerms {
    /// Limits of this strategy.
    pub limits: RiskLimits,
    /// How the engine handles its orders and positions after a fault.
    pub on_fault: OnFault,
}
