//! The state that a running instance publishes: the JSON of `/api` and of the verbs' `--json`.
//!
//! Amounts, prices and quantities are decimal strings. Times are Unix milliseconds. Instruments are
//! written as in the configuration (`futures:BTCUSDT`). This file contains no types of the engine
//! and computes nothing.

use serde::{Deserialize, Serialize};

/// The state of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The journal is being restored. No order is sent.
    #[default]
    Booting,
    /// The state is being compared with the venue. No opening order is sent.
    Syncing,
    /// Trading.
    Ready,
    /// There is a degraded reason. No order that adds exposure is sent.
    Degraded,
    /// The operator paused the run. No order that adds exposure is sent.
    Paused,
    /// The run is halted: own orders are cancelled and no order is sent until it is resumed.
    Halted,
}

impl State {
    /// All states, in the order of a run.
    pub const ALL: [Self; 6] = [
        Self::Booting,
        Self::Syncing,
        Self::Ready,
        Self::Degraded,
        Self::Paused,
        Self::Halted,
    ];

    /// The value in JSON and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Booting => "booting",
            Self::Syncing => "syncing",
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Paused => "paused",
            Self::Halted => "halted",
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a run trades with real money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Real public data with simulated fills.
    #[default]
    Paper,
    /// The account of the configuration.
    Live,
}

impl Mode {
    /// The value in JSON and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Live => "live",
        }
    }
}

/// `GET /api/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// State.
    pub state: State,
    /// Why it is in this state, as text for people.
    pub reason: String,
    /// Mode.
    pub mode: Mode,
    /// When it entered the state, Unix milliseconds.
    pub since_ms: i64,
    /// When this state was published, Unix milliseconds.
    pub as_of_ms: i64,
    /// Version of the program.
    pub version: String,
    /// The epoch in the client order ids of this process.
    pub epoch: u64,
    /// Milliseconds since the process started.
    pub uptime_ms: u64,
    /// The degraded reasons, one sentence each; empty while the run is not degraded. In JSON they
    /// also have their old name, `doubts`, which is deprecated.
    #[serde(flatten, with = "degraded_reasons")]
    pub degraded_reasons: Vec<String>,
    /// Whether each account and instrument can trade, and why not.
    #[serde(default)]
    pub trading: Vec<Trading>,
    /// Orders that were not placed, twice or more in a row.
    #[serde(default)]
    pub refusals: Vec<Refusals>,
    /// Positions that the venue closed itself since the last `resume`, the oldest first.
    #[serde(default)]
    pub forced_closes: Vec<ForcedClose>,
    /// The trading conditions of every instrument: rules that the venue changed, leverage and
    /// margin type.
    #[serde(default)]
    pub terms: Vec<Terms>,
    /// Strategies by state.
    pub strategies: StrategyCounts,
    /// The processor time of each strategy that is called on the real clock; empty if a recording is
    /// played.
    #[serde(default)]
    pub cpu: Vec<CpuUse>,
    /// Own orders that may be open at the venue, including those of unknown outcome.
    pub open_orders: u64,
    /// How far the journal is behind.
    pub journal: JournalLag,
    /// Surfaces that accept no requests or no orders because a limit was exceeded.
    #[serde(default)]
    pub venue_waits: Vec<VenueWait>,
    /// Closes that were requested and are not finished.
    #[serde(default)]
    pub closes: Vec<Close>,
    /// Why the TCP address `admin.listen` is not in use, and what to do; absent without a problem. The
    /// admin server sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin_problem: Option<String>,
}

/// The degraded reasons in JSON: `degraded_reasons`, and the same list under `doubts`, the name in
/// earlier versions. A reader accepts either, because the instance may be older than its client.
mod degraded_reasons {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize)]
    struct Written<'a> {
        degraded_reasons: &'a [String],
        doubts: &'a [String],
    }

    #[derive(Deserialize)]
    struct Read {
        degraded_reasons: Option<Vec<String>>,
        doubts: Option<Vec<String>>,
    }

    pub(super) fn serialize<S: Serializer>(
        reasons: &[String],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let written = Written {
            degraded_reasons: reasons,
            doubts: reasons,
        };
        written.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<String>, D::Error> {
        let read = Read::deserialize(deserializer)?;
        let reasons = read.degraded_reasons.or(read.doubts);
        reasons.ok_or_else(|| D::Error::missing_field("degraded_reasons"))
    }
}

/// A strategy whose positions are being closed, and the reasons why the close waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Close {
    /// The strategy.
    pub strategy: String,
    /// Open positions: signed quantity and instrument.
    pub open: Vec<String>,
    /// The reasons why the close waits or is not possible, one phrase each.
    pub waits_for: Vec<String>,
    /// The advice to the operator if the run cannot close it; `null` while the run continues.
    #[serde(default)]
    pub what_to_do: Option<String>,
    /// When the close was requested, Unix milliseconds.
    pub since_ms: i64,
    /// Seconds since the close was requested.
    pub waiting_s: u64,
}

/// A time in which the venue accepts no requests or no orders, and everything that stays open
/// because of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VenueWait {
    /// Surface.
    pub surface: String,
    /// The kind that is not sent: `requests` (after a 429, 418 or 403) or `orders` (after the order
    /// limit).
    pub what: String,
    /// Seconds until the wait is over, rounded up.
    pub left_s: u64,
    /// Requests that are sent first after the wait, one sentence each: cancels, closes, renewals.
    pub open: Vec<String>,
}

/// Whether opening orders can be placed. Closing orders and cancels are always sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trading {
    /// `futures account`, `futures:BTCUSDT`, `futures USDT` or `strategy maker in futures:BTCUSDT`.
    pub what: String,
    /// Which of the four it is.
    pub scope: Scope,
    /// Whether opening orders can be placed.
    pub open: bool,
    /// Why they cannot be placed; `null` if they can.
    pub reason: Option<String>,
    /// The advice to the operator, and the condition that ends the block.
    pub what_to_do: Option<String>,
    /// Start of the block, Unix milliseconds.
    pub since_ms: Option<i64>,
    /// End of the block if the venue states it, Unix milliseconds.
    pub until_ms: Option<i64>,
    /// When one order may test whether the block ended, Unix milliseconds.
    pub try_again_ms: Option<i64>,
    /// The venue's code.
    pub code: Option<i32>,
    /// Orders that the venue rejected because of it.
    pub rejected: u64,
    /// Orders that were not sent because of it.
    pub not_sent: u64,
}

/// The subject of a trading status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The account of a surface.
    #[default]
    Account,
    /// An instrument.
    Instrument,
    /// An asset whose balance is too small.
    Asset,
    /// A strategy in one instrument.
    Strategy,
}

/// Consecutive orders of a strategy, on one side of an instrument, that were not placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusals {
    /// Strategy.
    pub strategy: String,
    /// Instrument.
    pub instrument: String,
    /// `BUY` or `SELL`.
    pub side: String,
    /// The venue's last code; `null` for orders that were not sent.
    pub code: Option<i32>,
    /// The number of these orders.
    pub count: u32,
    /// Time of the first one, Unix milliseconds.
    pub since_ms: i64,
    /// No opening order is sent before this time, Unix milliseconds; `null` if one may be sent now.
    pub pause_until_ms: Option<i64>,
}

/// The present rules, leverage and margin type of an instrument.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Instrument.
    pub instrument: String,
    /// `TRADING`, or another status of the venue. With another status the venue accepts no order.
    pub status: String,
    /// `tickSize`.
    pub tick: String,
    /// `stepSize`.
    pub step: String,
    /// Minimum value of an order; 0 without a minimum.
    pub min_notional: String,
    /// Leverage; `null` until the venue reports it.
    pub leverage: Option<u32>,
    /// `isolated` or `crossed`; `null` until the venue reports it.
    pub margin_type: Option<String>,
    /// When leverage or margin type changed last, Unix milliseconds.
    pub margin_changed_ms: Option<i64>,
    /// Why the venue's new rules cannot be used. Then no opening order is sent for the instrument.
    pub unusable: Option<String>,
}

/// A liquidation or an ADL: one order of the venue, with the sum of its fills so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForcedClose {
    /// When the run learned about it, Unix milliseconds.
    pub time_ms: i64,
    /// `liquidation` or `ADL`.
    pub reason: String,
    /// Instrument.
    pub instrument: String,
    /// Side of the closing order: `SELL` closes a long position.
    pub side: String,
    /// Quantity that was closed; 0 if the venue reported only the order, or a payment of the
    /// insurance fund.
    pub qty: String,
    /// Average price of the close; `null` if nothing is closed yet, or the venue stated no price.
    pub price: Option<String>,
    /// Profit or loss before fees, negative for a loss. With a `note` it includes the fee.
    pub realized_pnl: String,
    /// Fee of the close; `null` if the venue did not state it.
    pub fee: Option<String>,
    /// A limitation of the figures.
    #[serde(default)]
    pub note: Option<String>,
    /// Strategies whose positions were closed, each with its quantity.
    pub strategies: Vec<ForcedShare>,
    /// The part of the quantity that belonged to no strategy.
    pub unowned: String,
    /// The account's position after the close.
    pub left: String,
}

/// The part of a forced close that one strategy lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForcedShare {
    /// The strategy.
    pub strategy: String,
    /// Quantity that was closed.
    pub qty: String,
    /// Profit or loss before fees.
    pub realized_pnl: String,
    /// The strategy's position after the close.
    pub left: String,
}

/// The processor time of one strategy, beside what `limits.cpu_percent` allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuUse {
    /// The strategy.
    pub strategy: String,
    /// Use over the last 10 to 20 seconds, percent of one processor, rounded up.
    pub used_percent: u64,
    /// The share that it may use over time, percent of one processor.
    pub limit_percent: u64,
    /// Processor time that it may use at once now, milliseconds. Below 0 it is quarantined.
    pub left_ms: i64,
}

/// The number of strategies in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyCounts {
    /// Running.
    pub running: u64,
    /// Paused individually.
    pub paused: u64,
    /// Halted individually.
    pub halted: u64,
    /// Quarantined.
    pub quarantined: u64,
}

/// How far the journal on disk is behind the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalLag {
    /// Records that the engine wrote.
    pub written: u64,
    /// Records that survive a loss of power.
    pub durable: u64,
    /// Age of the oldest record that is not durable, milliseconds; 0 if all are durable.
    pub behind_ms: u64,
}

/// One entry of `GET /api/orders`: an order that may be open at the venue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Instrument.
    pub instrument: String,
    /// Its strategy; `null` for an order from outside this run.
    pub strategy: Option<String>,
    /// Its id, chosen by this program.
    pub client_order_id: String,
    /// `orderId` of the venue, once known.
    pub order_id: Option<u64>,
    /// `BUY` or `SELL`.
    pub side: String,
    /// Limit price; `null` for orders without one.
    pub price: Option<String>,
    /// Quantity; `null` for orders without one.
    pub qty: Option<String>,
    /// Quantity that was executed.
    pub executed_qty: String,
    /// The venue's status, or `UNKNOWN`.
    pub status: String,
}

/// One entry of `GET /api/positions`. Flat positions are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Instrument.
    pub instrument: String,
    /// The strategy that holds this part; `null` for the account's position, which is the sum of
    /// all.
    pub strategy: Option<String>,
    /// `BOTH`, `LONG` or `SHORT`.
    pub position_side: String,
    /// Quantity, negative when short.
    pub qty: String,
    /// Average price; `null` while it is not known.
    pub entry_price: Option<String>,
}

/// One entry of `GET /api/balances`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// `spot` or `futures`.
    pub surface: String,
    /// Asset.
    pub asset: String,
    /// Wallet balance.
    pub total: String,
    /// The part that is free for new orders.
    pub available: String,
}

/// One entry of `GET /api/strategies`. Amounts are in the quote asset of the first instrument.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strategy {
    /// Its id in the configuration.
    pub id: String,
    /// SHA-256 of its module, hex.
    pub module_sha256: String,
    /// State.
    pub state: StrategyState,
    /// The kind of fault that caused its quarantine; `null` if it is not quarantined.
    pub fault: Option<String>,
    /// Why it is not running, one sentence for people; `null` if it is running.
    pub reason: Option<String>,
    /// Start of the quarantine, Unix milliseconds; `null` if it is not quarantined.
    #[serde(default)]
    pub quarantined_since_ms: Option<i64>,
    /// Orders that may be open at the venue.
    pub open_orders: u64,
    /// Realized profit before fees.
    pub realized_pnl: String,
    /// Unrealized profit; `null` while an open position has no price.
    pub unrealized_pnl: Option<String>,
    /// Fees, positive when paid.
    pub fees: String,
    /// Funding, positive when received.
    pub funding: String,
}

/// Whether a strategy is called and may trade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StrategyState {
    /// It is called and may trade.
    #[default]
    Running,
    /// It is called, but adds no exposure until it is resumed.
    Paused,
    /// It is called. Its orders are cancelled, and it sends no order until it is resumed.
    Halted,
    /// It is not called, because it failed.
    Quarantined,
}

impl StrategyState {
    /// The value in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Halted => "halted",
            Self::Quarantined => "quarantined",
        }
    }
}

/// Everything that is shown, at one moment. The engine's side publishes again before it answers a
/// command, so a query after the answer shows the effect of the command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// Status.
    pub status: Status,
    /// Orders, oldest first.
    pub orders: Vec<Order>,
    /// Positions.
    pub positions: Vec<Position>,
    /// Balances.
    pub balances: Vec<Balance>,
    /// Strategies, in the order of the configuration.
    pub strategies: Vec<Strategy>,
}
