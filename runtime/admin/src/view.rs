//! What a running instance shows of itself: the JSON of `/api` and of the verbs' `--json`.
//!
//! Amounts, prices and quantities are decimal strings, times Unix milliseconds, instruments as the
//! configuration spells them (`futures:BTCUSDT`). No type of the engine, and no computing.

use serde::{Deserialize, Serialize};

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The journal is restored: no order.
    #[default]
    Booting,
    /// The state is compared with the venue: no order.
    Syncing,
    /// Trading.
    Ready,
    /// Something is in doubt: nothing that adds exposure.
    Degraded,
    /// Paused by the operator: nothing that adds exposure.
    Paused,
    /// Halted: own orders are cancelled, no new ones, until resumed.
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

    /// The word in JSON and metrics.
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

/// With whose money a run trades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Real public data, simulated fills.
    #[default]
    Paper,
    /// The account of the configuration.
    Live,
}

impl Mode {
    /// The word in JSON and metrics.
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
    /// Why it is in this state, one sentence for people.
    pub reason: String,
    /// Mode.
    pub mode: Mode,
    /// When it entered the state, Unix milliseconds.
    pub since_ms: i64,
    /// When this was written down, Unix milliseconds.
    pub as_of_ms: i64,
    /// Version of the program.
    pub version: String,
    /// The epoch in the client order ids of this process.
    pub epoch: u64,
    /// Milliseconds since the process started.
    pub uptime_ms: u64,
    /// What is in doubt, one sentence each; empty while nothing is.
    pub doubts: Vec<String>,
    /// Whether each account and instrument can trade, and why not.
    #[serde(default)]
    pub trading: Vec<Trading>,
    /// Orders that were not placed, twice or more in a row.
    #[serde(default)]
    pub refusals: Vec<Refusals>,
    /// Positions that the venue closed itself since the last `resume`, the oldest first.
    #[serde(default)]
    pub forced_closes: Vec<ForcedClose>,
    /// The terms of every instrument.
    #[serde(default)]
    pub terms: Vec<Terms>,
    /// Strategies by state.
    pub strategies: StrategyCounts,
    /// Own orders that may be live at the venue, those of unknown outcome included.
    pub open_orders: u64,
    /// How far the journal is.
    pub journal: JournalLag,
    /// Surfaces that take no requests, or no orders, after a refusal for a limit; empty while none.
    #[serde(default)]
    pub venue_waits: Vec<VenueWait>,
    /// Closes that were asked for and are not done; empty while none.
    #[serde(default)]
    pub closes: Vec<Close>,
}

/// A strategy whose positions are being closed, and what that waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Close {
    /// The strategy.
    pub strategy: String,
    /// What is still open: signed quantity and instrument.
    pub open: Vec<String>,
    /// What the next step waits for, or why there is none, one phrase each.
    pub waits_for: Vec<String>,
    /// What a person should do where the run cannot close it; `null` while it goes on.
    #[serde(default)]
    pub what_to_do: Option<String>,
    /// When the close was asked for, Unix milliseconds.
    pub since_ms: i64,
    /// For how many seconds.
    pub waiting_s: u64,
}

/// How long the venue takes nothing of a kind, and what is still open because of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VenueWait {
    /// Surface.
    pub surface: String,
    /// What is not sent: `requests` (after a 429, 418 or 403) or `orders` (after the order limit).
    pub what: String,
    /// Seconds until the wait is over, rounded up.
    pub left_s: u64,
    /// What leaves first once it is over, one sentence each: cancels, closes, renewals.
    pub open: Vec<String>,
}

/// Whether orders that open a position can be placed. Closing orders and cancels always pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trading {
    /// `futures account`, `futures:BTCUSDT`, `futures USDT` or `strategy maker in futures:BTCUSDT`.
    pub what: String,
    /// Which of the four.
    pub scope: Scope,
    /// They can be placed.
    pub open: bool,
    /// Why not; `null` while they can.
    pub reason: Option<String>,
    /// What a person should do, and what ends the block.
    pub what_to_do: Option<String>,
    /// Since when not, Unix milliseconds.
    pub since_ms: Option<i64>,
    /// Until when not, where the venue says so, Unix milliseconds.
    pub until_ms: Option<i64>,
    /// When one order may try again, Unix milliseconds.
    pub try_again_ms: Option<i64>,
    /// The venue's code.
    pub code: Option<i32>,
    /// Orders that the venue rejected for it.
    pub rejected: u64,
    /// Orders that were not sent because of it.
    pub not_sent: u64,
}

/// What a trading status is about.
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

/// Orders of a strategy for one side of an instrument that were not placed, one after another.
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
    /// How many.
    pub count: u32,
    /// Since when, Unix milliseconds.
    pub since_ms: i64,
    /// No opening order is sent before, Unix milliseconds; `null` where one may be.
    pub pause_until_ms: Option<i64>,
}

/// Rules, leverage and margin type of an instrument as they are now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Instrument.
    pub instrument: String,
    /// `TRADING`, or another word of the venue: then it takes no order.
    pub status: String,
    /// `tickSize`.
    pub tick: String,
    /// `stepSize`.
    pub step: String,
    /// Least value of an order; 0 for none.
    pub min_notional: String,
    /// Leverage; `null` while it was not told.
    pub leverage: Option<u32>,
    /// `isolated` or `crossed`; `null` while it was not told.
    pub margin_type: Option<String>,
    /// When somebody changed leverage or margin type last, Unix milliseconds.
    pub margin_changed_ms: Option<i64>,
    /// Why the venue's new rules cannot be used; nothing opens then.
    pub unusable: Option<String>,
}

/// A liquidation or an ADL: one order of the venue, with the sum of its fills so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForcedClose {
    /// When the run learned of it, Unix milliseconds.
    pub time_ms: i64,
    /// `liquidation` or `ADL`.
    pub reason: String,
    /// Instrument.
    pub instrument: String,
    /// Side of the closing order: `SELL` closes a long position.
    pub side: String,
    /// Quantity that was closed; 0 where only the order, or a payment of the insurance fund, was told.
    pub qty: String,
    /// Average price of the close; `null` where nothing was closed yet, or the venue stated no price.
    pub price: Option<String>,
    /// Profit or loss before fees, negative when lost. With a `note` it contains the fee.
    pub realized_pnl: String,
    /// Fee of the close; `null` where the venue stated none.
    pub fee: Option<String>,
    /// What the figures lack.
    #[serde(default)]
    pub note: Option<String>,
    /// Strategies whose positions were closed, each with its quantity.
    pub strategies: Vec<ForcedShare>,
    /// What of the quantity belonged to no strategy.
    pub unowned: String,
    /// The account's position after it.
    pub left: String,
}

/// What a forced close took from one strategy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForcedShare {
    /// The strategy.
    pub strategy: String,
    /// Quantity that was closed.
    pub qty: String,
    /// Profit or loss before fees.
    pub realized_pnl: String,
    /// The strategy's position after it.
    pub left: String,
}

/// How many strategies are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyCounts {
    /// Running.
    pub running: u64,
    /// Paused, each for itself.
    pub paused: u64,
    /// Halted, each for itself.
    pub halted: u64,
    /// Quarantined.
    pub quarantined: u64,
}

/// How far the journal on disk is behind the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalLag {
    /// Records written by the engine.
    pub written: u64,
    /// Records that survive a loss of power.
    pub durable: u64,
    /// Age of the oldest record that is not durable, milliseconds; 0 when all are.
    pub behind_ms: u64,
}

/// One of `GET /api/orders`: an order that may be live at the venue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Instrument.
    pub instrument: String,
    /// Whose it is; `null` for an order of others on the account.
    pub strategy: Option<String>,
    /// Its id as we chose it.
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
    /// Status in the venue's words, or `UNKNOWN`.
    pub status: String,
}

/// One of `GET /api/positions`; flat ones are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Instrument.
    pub instrument: String,
    /// Whose part of it; `null` for the account's own, which is the sum of all.
    pub strategy: Option<String>,
    /// `BOTH`, `LONG` or `SHORT`.
    pub position_side: String,
    /// Quantity, negative when short.
    pub qty: String,
    /// Average price; `null` while it is not known.
    pub entry_price: Option<String>,
}

/// One of `GET /api/balances`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// `spot` or `futures`.
    pub surface: String,
    /// Asset.
    pub asset: String,
    /// Wallet balance.
    pub total: String,
    /// What of it is free for new orders.
    pub available: String,
}

/// One of `GET /api/strategies`. Amounts are in the quote asset of the first instrument.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strategy {
    /// Its id as configured.
    pub id: String,
    /// SHA-256 of its module, hex.
    pub module_sha256: String,
    /// State.
    pub state: StrategyState,
    /// The fault that it is quarantined for, in one word; `null` while it is not.
    pub fault: Option<String>,
    /// Why it is not running, one sentence for people; `null` while it is.
    pub reason: Option<String>,
    /// Since when it is in quarantine, Unix milliseconds; `null` while it is not.
    #[serde(default)]
    pub quarantined_since_ms: Option<i64>,
    /// Orders that may be live at the venue.
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

/// Whether a strategy is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StrategyState {
    /// It is called.
    #[default]
    Running,
    /// It is called, and adds no exposure until it is resumed.
    Paused,
    /// It is called; its orders are cancelled, and it sends none until it is resumed.
    Halted,
    /// It is not called, since its fault.
    Quarantined,
}

impl StrategyState {
    /// The word in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Halted => "halted",
            Self::Quarantined => "quarantined",
        }
    }
}

/// All that is shown, of one moment. Whoever steers publishes anew before it answers a command,
/// so that a question after the answer shows what the command did.
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
    /// Strategies, as configured.
    pub strategies: Vec<Strategy>,
}
