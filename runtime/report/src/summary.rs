//! `summary.json`: the results of one run.

use serde::{Serialize, Serializer};
use windvane_model::decimal::Amount;
use windvane_model::ids::Time;
use windvane_model::market::MarketEvent;

use super::curve::DRAWDOWN_SCALE;
use super::histogram::Quantiles;
use super::text::{amount_text, decimal_text};
pub use windvane_recording::RulesSource;

/// The results of one run. Amounts are in the account's quote asset and are written as decimal
/// strings. Two runs of the same inputs, modules and configuration differ only in `wall_seconds`,
/// `events_per_second` and `time_share`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Strategies that were put into quarantine. They were not called after that, so the figures do
    /// not show their full run. Left out if it is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<QuarantineSummary>,
    /// Market events that entered the engine.
    pub events: u64,
    /// Market events per second of wall time, including decoding.
    pub events_per_second: u64,
    /// Wall time from the first event to the last, seconds.
    #[serde(serialize_with = "three_digits")]
    pub wall_seconds: f64,
    /// Orders that strategies submitted and the local rules accepted.
    pub orders_submitted: u64,
    /// Orders that a local rule or the venue rejected.
    pub orders_rejected: u64,
    /// Orders that were cancelled.
    pub orders_canceled: u64,
    /// Fills of own orders.
    pub fills: u64,
    /// Sum of price times quantity of all fills.
    #[serde(serialize_with = "amount")]
    pub volume_quote: Amount,
    /// Fees, positive when paid.
    #[serde(serialize_with = "amount")]
    pub fees: Amount,
    /// Realized profit before fees.
    #[serde(serialize_with = "amount")]
    pub realized_pnl: Amount,
    /// Profit of the positions that are open at the end, at the mark price.
    #[serde(serialize_with = "amount")]
    pub unrealized_pnl: Amount,
    /// Funding, positive when received.
    #[serde(serialize_with = "amount")]
    pub funding: Amount,
    /// Equity at the start.
    #[serde(serialize_with = "amount")]
    pub start_equity: Amount,
    /// `start_equity + realized_pnl + unrealized_pnl - fees + funding`.
    #[serde(serialize_with = "amount")]
    pub final_equity: Amount,
    /// Largest fall of equity from its peak, as a fraction of the peak with 8 decimals.
    #[serde(serialize_with = "fraction")]
    pub max_drawdown: i128,
    /// Annualised Sharpe ratio of per-second returns (see [`EquityCurve::sharpe`]). Null if it is
    /// undefined.
    ///
    /// [`EquityCurve::sharpe`]: super::EquityCurve::sharpe
    pub sharpe: Option<f64>,
    /// Receive time of the first event, UTC.
    #[serde(serialize_with = "utc")]
    pub start_time: Time,
    /// Receive time of the last event, UTC.
    #[serde(serialize_with = "utc")]
    pub end_time: Time,
    /// SHA-256 of each strategy's module, by strategy id.
    pub module_sha256: std::collections::BTreeMap<String, String>,
    /// Versions that the result depends on.
    pub engine: EngineVersions,
    /// Hash over all inputs and effects, in order.
    pub fingerprint: String,
    /// `ready`, `paused`, or `halted` with its reason.
    pub state: String,
    /// Name of the configuration: the file name without folder and extension.
    pub config: String,
    /// The asset of all amounts here: the account's quote asset.
    pub quote_asset: String,
    /// Source of the instrument rules: the common source of all instruments, or `mixed`.
    pub rules: &'static str,
    /// One entry per instrument.
    pub instruments: Vec<InstrumentSummary>,
    /// One entry per strategy, in the order of the configuration.
    pub strategies: Vec<StrategySummary>,
    /// Rejections by strategy and rule.
    pub rejections: Vec<RejectionCount>,
    /// Simulated latencies.
    pub latency: LatencySummary,
    /// Results of resting orders.
    pub queue: QueueSummary,
    /// The data that was read, and its faults.
    pub data: DataSummary,
    /// Share of wall time per component. Null if it was not measured.
    pub time_share: Option<TimeShare>,
}

/// Versions that the result depends on.
#[derive(Clone, Debug, Serialize)]
pub struct EngineVersions {
    /// Version of this program.
    pub windvane: String,
    /// Version of the WebAssembly runtime. Fuel costs change between its major versions.
    pub wasmtime: String,
}

/// One instrument of a run.
#[derive(Clone, Debug, Serialize)]
pub struct InstrumentSummary {
    /// Name, such as `futures:BTCUSDT`.
    pub name: String,
    /// Base asset, the unit of its quantities.
    pub base: String,
    /// Quote asset, the unit of its prices.
    pub quote: String,
    /// Source of its rules.
    pub rules: RulesSource,
    /// Tick, as a decimal.
    pub tick: String,
    /// Step, as a decimal.
    pub step: String,
    /// Account position at the end, signed, as a decimal.
    pub final_position: String,
    /// Mid price at the end, as a decimal. Empty without a mid price.
    pub final_mid: String,
}

/// One strategy of a run.
#[derive(Clone, Debug, Serialize)]
pub struct StrategySummary {
    /// Id of the strategy.
    pub id: String,
    /// Name and version that the module states.
    pub module: String,
    /// `running`, or `quarantined: ` and the kind of fault.
    pub state: String,
    /// Details of the fault. For a panic: its message, file and line. Empty without a fault.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fault: String,
    /// Events that were delivered to it.
    pub events: u64,
    /// Accepted orders.
    pub orders_submitted: u64,
    /// Rejected orders, by local rules or the venue.
    pub orders_rejected: u64,
    /// Cancelled orders.
    pub orders_canceled: u64,
    /// Fills.
    pub fills: u64,
    /// Fills as maker.
    pub maker_fills: u64,
    /// Sum of price times quantity of its fills.
    #[serde(serialize_with = "amount")]
    pub volume_quote: Amount,
    /// Fees, positive when paid.
    #[serde(serialize_with = "amount")]
    pub fees: Amount,
    /// Realized profit before fees.
    #[serde(serialize_with = "amount")]
    pub realized_pnl: Amount,
    /// Profit of its open position, at the mark price.
    #[serde(serialize_with = "amount")]
    pub unrealized_pnl: Amount,
    /// Its share of the funding, positive when received.
    #[serde(serialize_with = "amount")]
    pub funding: Amount,
    /// Fuel that it used. Null if it was not counted.
    pub fuel_used: Option<u64>,
}

impl StrategySummary {
    /// State and fault in one line.
    pub fn state_text(&self) -> String {
        match self.fault.as_str() {
            "" => self.state.clone(),
            fault => format!("{}: {fault}", self.state),
        }
    }

    /// `realized_pnl + unrealized_pnl - fees + funding`.
    pub fn net_pnl(&self) -> Amount {
        self.realized_pnl + self.unrealized_pnl - self.fees + self.funding
    }
}

/// A strategy that was put into quarantine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QuarantineSummary {
    /// Id of the strategy.
    pub strategy: String,
    /// The kind of fault.
    pub fault: String,
    /// Time of the fault, UTC.
    pub time: String,
}

impl std::fmt::Display for QuarantineSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "strategy {} was put into quarantine ({}) at {} UTC and was not called after that",
            self.strategy, self.fault, self.time
        )
    }
}

/// How often one rule refused the orders of one strategy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RejectionCount {
    /// Id of the strategy.
    pub strategy: String,
    /// The name of the rule, or `venue` and the venue's error code.
    pub rule: String,
    /// The venue's error code for the rule, or 0.
    pub code: i32,
    /// Number of rejections.
    pub count: u64,
}

/// Simulated latencies, nanoseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LatencySummary {
    /// `constant` or `recorded`.
    pub model: String,
    /// From the venue's event to the engine.
    pub feed_ns: Option<Quantiles>,
    /// From the engine's request to the venue.
    pub order_ns: Option<Quantiles>,
}

/// Results of resting orders.
#[derive(Clone, Debug, Default, Serialize)]
pub struct QueueSummary {
    /// `risk-averse`, `probabilistic` or `none`.
    pub model: String,
    /// Orders that rested in the book.
    pub rested: u64,
    /// Orders that rested and were then filled, at least in part.
    pub filled: u64,
    /// Fills as maker.
    pub maker_fills: u64,
    /// Fills as taker.
    pub taker_fills: u64,
    /// From the submission of an order to its first fill as maker, nanoseconds of virtual time.
    pub time_to_fill_ns: Option<Quantiles>,
    /// Quantity ahead when the order starts to rest, in units of `ahead_unit`.
    pub ahead: Option<Quantiles>,
    /// The unit of `ahead`, such as `0.001 BTC`.
    pub ahead_unit: String,
}

/// The data that was read, and its faults.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DataSummary {
    /// The files, as configured.
    pub files: Vec<String>,
    /// Lines or records read.
    pub records: u64,
    /// Market events that entered the engine.
    #[serde(flatten)]
    pub events: EventCounts,
    /// Lines that could not be read and were skipped.
    pub damaged_lines: u64,
    /// Whether a file ended in the middle of a record.
    pub cut: bool,
    /// Whether the data came from the decoded cache.
    pub from_cache: bool,
}

/// Market events by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EventCounts {
    /// Trades.
    pub trades: u64,
    /// Book tops.
    pub tops: u64,
    /// Depth frames.
    pub depths: u64,
    /// Mark prices.
    pub marks: u64,
    /// Gaps in the depth sequence. The book is rebuilt after each of them.
    pub gaps: u64,
}

impl EventCounts {
    /// Counts an event.
    #[inline]
    pub const fn count(&mut self, event: &MarketEvent<'_>) {
        match event {
            MarketEvent::Trade { .. } => self.trades += 1,
            MarketEvent::Top { .. } => self.tops += 1,
            MarketEvent::Depth { .. } => self.depths += 1,
            MarketEvent::Mark { .. } => self.marks += 1,
            MarketEvent::Gap => self.gaps += 1,
        }
    }

    /// The sum over all kinds.
    pub const fn total(&self) -> u64 {
        let Self {
            trades,
            tops,
            depths,
            marks,
            gaps,
        } = *self;
        trades + tops + depths + marks + gaps
    }
}

/// Share of wall time per component, in percent. The sum is at most 100.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct TimeShare {
    /// Reading and decoding records.
    #[serde(serialize_with = "three_digits")]
    pub decode: f64,
    /// The engine, including its order books.
    #[serde(serialize_with = "three_digits")]
    pub engine: f64,
    /// The simulated venue, including its order books.
    #[serde(serialize_with = "three_digits")]
    pub venue: f64,
    /// The strategies, including calls into WebAssembly.
    #[serde(serialize_with = "three_digits")]
    pub guest: f64,
    /// Result rows, samples and counts.
    #[serde(serialize_with = "three_digits")]
    pub results: f64,
}

impl Summary {
    /// The summary as JSON, with a line per field.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}

fn amount<S: Serializer>(value: &Amount, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&amount_text(*value))
}

fn fraction<S: Serializer>(value: &i128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&decimal_text(*value, DRAWDOWN_SCALE))
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn three_digits<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1000.0).round() / 1000.0)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn utc<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&super::utc::utc_text(*time))
}
