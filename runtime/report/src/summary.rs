//! `summary.json`: the figures of one run.

use serde::{Serialize, Serializer};
use windvane_model::decimal::Amount;
use windvane_model::ids::Time;

use super::curve::DRAWDOWN_SCALE;
use super::histogram::Quantiles;
use super::text::{amount_text, decimal_text};
pub use windvane_recording::RulesSource;

/// The figures of one run. Amounts are in the account's quote asset and written as decimal
/// strings. Two runs of the same inputs, modules and configuration agree in everything but
/// `wall_seconds`, `events_per_second` and `time_share`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Strategies that were put into quarantine: after that they were not called, and the figures
    /// are not theirs. Left out where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<QuarantineSummary>,
    /// Market events that entered the engine.
    pub events: u64,
    /// Market events per second of wall clock, decoding included.
    pub events_per_second: u64,
    /// Seconds of wall clock from the first event to the last.
    #[serde(serialize_with = "three_digits")]
    pub wall_seconds: f64,
    /// Orders that strategies submitted and the local rules accepted.
    pub orders_submitted: u64,
    /// Orders that a local rule or the venue rejected.
    pub orders_rejected: u64,
    /// Orders that ended cancelled.
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
    /// Profit of the positions that are open at the end, at mark.
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
    /// Largest fall of equity from its peak, a fraction of the peak at 8 decimals.
    #[serde(serialize_with = "fraction")]
    pub max_drawdown: i128,
    /// Annualised Sharpe ratio of per-second returns (see [`EquityCurve::sharpe`]); null when it
    /// is not defined.
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
    /// Hash over every input and every effect, in order.
    pub fingerprint: String,
    /// `ready`, or that and why the account was halted.
    pub state: String,
    /// Name of the configuration: its file without folder and extension.
    pub config: String,
    /// Asset of every amount here: the quote asset of the account.
    pub quote_asset: String,
    /// Where the instrument rules came from: the word of all instruments, or `mixed`.
    pub rules: &'static str,
    /// Per instrument.
    pub instruments: Vec<InstrumentSummary>,
    /// Per strategy, in the order of the configuration.
    pub strategies: Vec<StrategySummary>,
    /// Rejections by strategy and rule.
    pub rejections: Vec<RejectionCount>,
    /// Latencies that the run simulated.
    pub latency: LatencySummary,
    /// How resting orders fared.
    pub queue: QueueSummary,
    /// What was read, and what was wrong with it.
    pub data: DataSummary,
    /// Share of wall-clock time by part; null when it was not measured.
    pub time_share: Option<TimeShare>,
}

/// Versions that the result depends on.
#[derive(Clone, Debug, Serialize)]
pub struct EngineVersions {
    /// This program.
    pub windvane: String,
    /// The WebAssembly runtime: fuel costs change between its majors.
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
    /// Where its rules came from.
    pub rules: RulesSource,
    /// Tick, as a decimal.
    pub tick: String,
    /// Step, as a decimal.
    pub step: String,
    /// Account position at the end, signed, as a decimal.
    pub final_position: String,
    /// Mid price at the end, as a decimal; empty when there was none.
    pub final_mid: String,
}

/// One strategy of a run.
#[derive(Clone, Debug, Serialize)]
pub struct StrategySummary {
    /// Its id.
    pub id: String,
    /// Name and version as the module describes itself.
    pub module: String,
    /// `running`, or the kind of fault for which it is in quarantine.
    pub state: String,
    /// What the fault was: of a panic its message, file and line. Empty without one.
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
    /// Fills in which its order rested.
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
    /// Profit of its open position at mark.
    #[serde(serialize_with = "amount")]
    pub unrealized_pnl: Amount,
    /// Its share of the funding, positive when received.
    #[serde(serialize_with = "amount")]
    pub funding: Amount,
    /// Fuel that it used; null when it was not counted.
    pub fuel_used: Option<u64>,
}

impl StrategySummary {
    /// State and fault on one line.
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
    /// The fault in one word.
    pub fault: String,
    /// When, UTC.
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
    /// The rule, or the venue's message.
    pub rule: String,
    /// The venue's code for it; 0 where it has none.
    pub code: i32,
    /// How often.
    pub count: u64,
}

/// Latencies that the run simulated, nanoseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LatencySummary {
    /// `constant` or `recorded`.
    pub model: String,
    /// From the venue's event to the engine.
    pub feed_ns: Option<Quantiles>,
    /// From the engine's request to the venue.
    pub order_ns: Option<Quantiles>,
}

/// How resting orders fared.
#[derive(Clone, Debug, Default, Serialize)]
pub struct QueueSummary {
    /// `risk-averse`, `probabilistic` or `none`.
    pub model: String,
    /// Orders that rested in the book.
    pub rested: u64,
    /// Those of them that were filled, at least in part.
    pub filled: u64,
    /// Fills as maker.
    pub maker_fills: u64,
    /// Fills as taker.
    pub taker_fills: u64,
    /// From entering the book to the first fill, nanoseconds of virtual time.
    pub time_to_fill_ns: Option<Quantiles>,
    /// Quantity ahead when entering the book, in units of `ahead_unit`.
    pub ahead: Option<Quantiles>,
    /// The unit of `ahead`, such as `0.001 BTC`.
    pub ahead_unit: String,
}

/// What was read, and what was wrong with it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DataSummary {
    /// The files, as configured.
    pub files: Vec<String>,
    /// Lines or records read.
    pub records: u64,
    /// Trades.
    pub trades: u64,
    /// Tops of book.
    pub tops: u64,
    /// Depth frames.
    pub depths: u64,
    /// Mark prices.
    pub marks: u64,
    /// Breaks of the depth sequence, each followed by a rebuilt book.
    pub gaps: u64,
    /// Lines that could not be read and were skipped.
    pub damaged_lines: u64,
    /// A file ended in the middle of a record.
    pub cut: bool,
    /// The data came from the decoded cache.
    pub from_cache: bool,
}

/// Share of wall-clock time by part, in percent; they add up to at most 100.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct TimeShare {
    /// Reading and decoding records.
    #[serde(serialize_with = "three_digits")]
    pub decode: f64,
    /// The engine, its books included.
    #[serde(serialize_with = "three_digits")]
    pub engine: f64,
    /// The simulated venue, its books included.
    #[serde(serialize_with = "three_digits")]
    pub venue: f64,
    /// The strategies, the way into WebAssembly included.
    #[serde(serialize_with = "three_digits")]
    pub guest: f64,
    /// Rows, samples and counts of the results.
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
