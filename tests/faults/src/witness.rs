//! What is seen of a life: every request and answer at both ends of the links, every user event,
//! the process and its states, the venue's truth and the runtime's own view at rest.
//!
//! It is append-only and of plain types: text, numbers and JSON. Entries come in the order in which
//! they happened; times are of the world's one true clock (nanoseconds, Unix), which the clocks of
//! the process and of the venue may differ from. Amounts, prices and quantities are decimal text,
//! as on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a life is held to: drawn by its seed, and all that a checker may know beforehand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The seed.
    pub seed: u64,
    /// Ids of the strategies, in their order: each client order id of ours begins with one.
    pub strategies: Vec<StrategyTerms>,
    /// Limits of the account as a whole.
    pub limits: LimitTerms,
    /// The loss of a day that halts the account.
    pub max_daily_loss: Option<String>,
    /// `surface:SYMBOL` of everything that is traded.
    pub instruments: Vec<String>,
    /// `countdownTime` of the dead man's switch, milliseconds.
    pub countdown_ms: u64,
    /// It is renewed this often, milliseconds.
    pub renew_ms: u64,
    /// State is compared with the venue this often, milliseconds.
    pub reconcile_ms: u64,
    /// `recvWindow`, milliseconds.
    pub recv_window_ms: u64,
    /// Requests carry the wallet signature (v3) rather than HMAC (v1).
    pub v3: bool,
    /// What happens to own open orders at a start: `adopt` or `cancel`.
    pub on_start: String,
    /// What happens to own open orders, and to positions, at an orderly stop: `cancel`, `keep` or `flatten`.
    pub on_stop: String,
    /// What follows a liquidation or an ADL: `halt`, `pause` or `continue`.
    pub on_liquidation: String,
    /// After the faults have ended, everything converges within this, nanoseconds.
    pub converge_ns: i64,
    /// User events come later than the 3 s within which a ready run sees on its stream what REST
    /// confirmed, so that a run that trades is right to be degraded again and again.
    pub is_stream_slow: bool,
    /// The signer leaves calls unanswered now and then: a heartbeat leaves with its next try.
    pub is_signer_silent: bool,
    /// The operator pauses the run before it is compared with the venue: while it trades, something that
    /// the venue states late is always missing.
    pub pauses_to_rest: bool,
    /// The venue rounds the entry prices that it states to the tick.
    pub entries_to_tick: bool,
    /// The venue rounds the commissions that it states to four decimals, and charges all of them.
    pub rounds_fees: bool,
    /// The run keeps to documents 1 to 3: it reads no account trades of futures.
    pub is_documented: bool,
    /// The account is in hedge mode, and is configured so.
    pub hedge: bool,
}

impl Terms {
    /// The state of a run in which nothing goes on any more.
    pub const fn state_at_rest(&self) -> &'static str {
        if self.pauses_to_rest {
            "paused"
        } else {
            "ready"
        }
    }

    /// Truth and view are witnessed so often, nanoseconds: every second where a loss must halt soon.
    pub const fn sample_ns(&self) -> i64 {
        if self.max_daily_loss.is_some() {
            1_000_000_000
        } else {
            60_000_000_000
        }
    }

    /// Whether a run is in the state in which nothing goes on any more.
    pub fn is_at_rest(&self, view: &View) -> bool {
        // Only an order shows that a block of trading is over, and a paused run sends none.
        let is_block = |doubt: &String| doubt.contains("cannot trade");
        // A paused strategy still closes, and each close is a change that a slow stream shows too late.
        let is_slow = |doubt: &String| {
            self.is_stream_slow && doubt.contains("user stream cannot be relied on")
        };
        let mut doubts = view.doubts.iter();
        let is_blocked =
            self.pauses_to_rest && doubts.all(|doubt| is_block(doubt) || is_slow(doubt));
        match view.state.as_str() {
            "degraded" => is_blocked,
            state => state == self.state_at_rest() && view.doubts.is_empty(),
        }
    }
}

/// A strategy as configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyTerms {
    /// Its id.
    pub id: String,
    /// Its module: `market_maker`, `ema_cross`, `greedy` or `quoter`.
    pub module: String,
    /// `surface:SYMBOL` of what it trades.
    pub instruments: Vec<String>,
    /// Its own limits.
    pub limits: LimitTerms,
    /// What follows its fault: `cancel` or `flatten`.
    pub on_fault: String,
}

/// Limits; what is not set does not bind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitTerms {
    /// Decimal text.
    pub max_order_notional: Option<String>,
    /// Decimal text; the sum over instruments, open, in-flight and unknown orders at their worst.
    pub max_position_notional: Option<String>,
    /// Orders.
    pub max_open_orders: Option<u32>,
    /// Orders.
    pub max_orders_per_minute: Option<u32>,
}

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its place: 0, 1, 2, ...
    pub number: u64,
    /// When, true time in nanoseconds since 1970.
    pub at_ns: i64,
    /// What.
    pub seen: Seen,
}

/// An order as its strategy meant it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentTerms {
    /// `surface:SYMBOL`.
    pub instrument: String,
    /// `BUY` or `SELL`.
    pub side: String,
    /// Quantity.
    pub qty: Option<String>,
    /// Limit price; a market order has none.
    pub price: Option<String>,
    /// It may only reduce.
    pub reduce_only: bool,
    /// `BOTH`, `LONG` or `SHORT`.
    pub position_side: String,
}

/// Names one request through its life. A link that doubles a request makes it arrive twice under
/// one id.
pub type RequestId = u64;

/// What was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Seen {
    /// The runtime handed a request to its socket.
    Sent(Request),
    /// The request arrived at the venue, which is about to carry it out, or to refuse it.
    Arrived {
        /// Which.
        request: RequestId,
        /// 0 for the first arrival, 1 for the second of a doubled one.
        copy: u32,
        /// As it arrived: equal to what was sent.
        what: Request,
    },
    /// The venue's own answer, before any fault touched it.
    Answered {
        /// To which.
        request: RequestId,
        /// To which arrival.
        copy: u32,
        /// The answer.
        answer: Answer,
    },
    /// What the runtime got for an answer; after a fault not what the venue said.
    Heard {
        /// To which.
        request: RequestId,
        /// `None`: nothing will come, the connection was cut or the time is over.
        answer: Option<Answer>,
    },
    /// The venue emitted a user event.
    Emitted {
        /// Names it through its life.
        event: u64,
        /// `spot` or `futures`.
        surface: String,
        /// The connection that it was emitted on.
        stream: u64,
        /// The frame.
        text: String,
    },
    /// The venue executed an order of our account, whether a stream tells it or not: a checker's
    /// knowledge, not the runtime's.
    Executed {
        /// The order.
        client_order_id: String,
        /// What is executed of it now.
        executed_qty: String,
    },
    /// A user event reached the runtime; one that a link doubles does so twice.
    Delivered {
        /// Which.
        event: u64,
        /// The connection that it came on.
        stream: u64,
    },
    /// The answer to a PING on a user stream reached the runtime.
    Pong {
        /// The connection.
        stream: u64,
    },
    /// A connection of a stream came about, or ended, as the runtime sees it.
    Stream {
        /// Which.
        stream: u64,
        /// `spot` or `futures`.
        surface: String,
        /// The user stream; else public data.
        user: bool,
        /// It stands now.
        up: bool,
    },
    /// The public top of an instrument as the runtime got it: bid and ask.
    Top {
        /// `surface:SYMBOL`.
        instrument: String,
        /// Best bid.
        bid: String,
        /// Best ask.
        ask: String,
    },
    /// The runtime let an order leave: it is on its way to the connection.
    Released {
        /// Its id.
        client_order_id: String,
        /// When, true time in nanoseconds since 1970.
        at_ns: i64,
    },
    /// A strategy intended an order: its module's callback has returned with it. It is what the
    /// module answered, read before the engine takes it.
    Intended {
        /// Its life of the process.
        process: u32,
        /// The client order id that it will have.
        client_order_id: String,
        /// What is wanted.
        terms: IntentTerms,
    },
    /// What a strategy knew: as it intended an order, or as it saved something new. A state is told
    /// by its hash.
    Knew {
        /// Which.
        strategy: String,
        /// The client order id that the order will have.
        client_order_id: Option<String>,
        /// Its state.
        state: u64,
    },
    /// A strategy was given a state that it once saved.
    Given {
        /// Which.
        strategy: String,
        /// Its state.
        state: u64,
    },
    /// The runtime told people that it refused what a strategy intended.
    Refused {
        /// Whose it was.
        strategy: String,
        /// The rule that it broke.
        rule: String,
    },
    /// A command of the operator reached a process that runs.
    Commanded {
        /// For this strategy alone.
        strategy: Option<String>,
        /// `pause`, `resume`, `halt` or `flatten`.
        command: String,
    },
    /// The operator was answered that what all commands so far latched is durable.
    CommandsKept,
    /// What is latched, as the file beside the journal has it now: `none`, `paused` or `halted`.
    Latched {
        /// For the account.
        account: String,
        /// By strategy; what is left out is `none`.
        strategies: BTreeMap<String, String>,
    },
    /// The runtime told people that a loss limit of the account halted it. A sample follows.
    LossHalt,
    /// The runtime told people that a strategy is in quarantine.
    Quarantined {
        /// Its id.
        strategy: String,
    },
    /// The disk has made a block durable: nothing but a roll-back takes it away.
    Durable {
        /// The life of the process that wrote it.
        process: u32,
        /// Client order ids of the orders that were intended in it, read from its records.
        client_order_ids: Vec<String>,
    },
    /// The runtime told people of a fill that it booked for an own order.
    Booked {
        /// Its life of the process.
        process: u32,
        /// `surface:SYMBOL`.
        instrument: String,
        /// Its order.
        client_order_id: String,
        /// The trade; negative where it was made up from the order's totals.
        trade_id: i64,
        /// `BUY` or `SELL`.
        side: String,
        /// Its quantity.
        qty: String,
        /// Its price times its quantity.
        quote: String,
        /// Its fee.
        fee: String,
        /// The asset of the fee.
        fee_asset: String,
        /// What it realized for the account, before fees.
        realized: String,
    },
    /// The runtime told people that an account trade stated the commission of a fill that it had booked
    /// without one.
    LateFee {
        /// Its life of the process.
        process: u32,
        /// `surface:SYMBOL`.
        instrument: String,
        /// Its order's number at the venue.
        order_id: i64,
        /// The trade.
        trade_id: i64,
        /// Its fee.
        fee: String,
        /// The asset of the fee.
        fee_asset: String,
        /// The estimate that it replaces, in the quote asset.
        estimate: String,
        /// A reading of the account had it already: the balance did not move.
        in_balance: bool,
    },
    /// What one step of the engine, in which fills were booked or something was adjusted, made of a
    /// balance of its own. It comes after what was booked and adjusted.
    Balance {
        /// Its life of the process.
        process: u32,
        /// `surface:ASSET`.
        of: String,
        /// Before.
        from: String,
        /// After.
        to: String,
        /// Fills and adjustments alone moved it.
        by_fills: bool,
    },
    /// The journal told the process of itself: `stalled`, `flows`, `failed` or, after a failure,
    /// `rolled`.
    Journal(String),
    /// The runtime told people that it took the venue's word against its own.
    Adjusted {
        /// Its life of the process.
        process: u32,
        /// `position`, `balance`, `absent` or `alive`.
        kind: String,
        /// `surface:SYMBOL`, in hedge mode with `LONG` or `SHORT` after it; `surface:ASSET`; or the client order id.
        of: String,
        /// What it had; empty for an order.
        from: String,
        /// What it took; empty for an order.
        to: String,
    },
    /// The runtime told people that the venue denies an order that it had confirmed.
    Denied {
        /// The order.
        client_order_id: String,
    },
    /// The runtime told people that outside orders had closed a part of a strategy's position; or a kill
    /// took that back, because no durable record has it.
    ClosedOutside {
        /// Its life of the process.
        process: u32,
        /// The strategy.
        strategy: String,
        /// `surface:SYMBOL`; in hedge mode `surface:SYMBOL LONG` or the same with `SHORT`.
        instrument: String,
        /// What it held of it, negative where it was short.
        qty: String,
    },
    /// The runtime told people that the venue closed a position itself.
    ForcedClose {
        /// Its life of the process.
        process: u32,
        /// `surface:SYMBOL`.
        instrument: String,
        /// Quantity; 0 before the order trades.
        qty: String,
    },
    /// The process.
    Process(ProcessSeen),
    /// The state of the run changed.
    State {
        /// From `booting`, `syncing`, `ready`, `degraded`, `paused` or `halted`.
        from: String,
        /// To one of these.
        to: String,
        /// What is in doubt now, as people are told.
        doubts: Vec<String>,
    },
    /// Somebody else acted: the body of `POST /act` of the control port, with whether the venue
    /// took it. Orders so placed are not ours, even on our account.
    Act {
        /// What was asked.
        act: Value,
        /// Whether it was done.
        done: bool,
    },
    /// The venue's truth, `GET /state?account=0&brief=true`: open orders, positions, balances.
    Truth(Value),
    /// The runtime's own view at the same moment as the truth before it, as far as it runs.
    View(View),
    /// The venue's whole truth while the operator has everything closed and faults go on.
    Closing(Value),
    /// A market order of ours was carried out or refused.
    Market {
        /// As it was sent.
        what: Request,
        /// What the runtime believed as it sent it.
        view: Box<View>,
        /// The venue's truth before it.
        before: Value,
        /// The same after it.
        after: Value,
    },
    /// An orderly stop was asked of a process that runs.
    Stopping {
        /// Its life of the process.
        process: u32,
    },
    /// The process ended by itself after that: the venue's whole truth at that moment.
    Stopped {
        /// Its life of the process.
        process: u32,
        /// `stopped`, or `hurried` where `on_stop` was not done in its time or the stop was asked for twice.
        how: String,
        /// The truth.
        truth: Value,
    },
    /// The runtime opens a stream: its handshake leaves.
    Handshake {
        /// Its surface.
        surface: String,
    },
    /// What the file beside the journal says of limits as a process starts: it told one before that nothing may
    /// be sent until then.
    BanRemembered {
        /// True time, nanoseconds.
        until_ns: i64,
    },
    /// The runtime gives the watchdog process of spot orders a sign of health.
    Beat,
    /// The runtime found that its own books contradict each other, and left a report.
    InvariantBroken {
        /// What it found.
        words: String,
        /// Length of the report, bytes.
        report: usize,
    },
    /// What a process goes by from here on: at its start, and after a reload.
    Configured {
        /// `cancel`, `keep` or `flatten`.
        on_stop: String,
        /// Each strategy's limit of its open orders.
        max_open_orders: Vec<(String, Option<u32>)>,
    },
    /// A reload begins.
    Reloading {
        /// The strategies that get new instances.
        strategies: Vec<String>,
    },
    /// A strategy got a new instance.
    Renewed {
        /// Which.
        strategy: String,
    },
    /// The reload is over.
    Reloaded {
        /// Nothing was changed.
        refused: bool,
    },
    /// From here on there are no faults.
    FaultsEnded,
    /// After the faults the operator had everything closed, and the runtime says that it is: the
    /// venue's whole truth.
    Flattened(Value),
    /// A fault that happened, in words, for the context of a report alone.
    Fault(String),
}

impl Seen {
    /// A close by others, taken back.
    #[must_use]
    pub fn undone(self) -> Self {
        match self {
            Self::ClosedOutside {
                process,
                strategy,
                instrument,
                qty,
            } => Self::ClosedOutside {
                process,
                strategy,
                instrument,
                qty: match qty.strip_prefix('-') {
                    Some(qty) => qty.to_owned(),
                    None => format!("-{qty}"),
                },
            },
            seen => seen,
        }
    }
}

/// A request of the runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its id.
    pub id: RequestId,
    /// Which life of the process sent it: 1, 2, ...
    pub process: u32,
    /// `spot`, `futures`, `chain` or `rpc`.
    pub surface: String,
    /// Name of the route, as `windvane routes` prints it: `futures.new_order`.
    pub route: String,
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub method: String,
    /// Path, with the version in it.
    pub path: String,
    /// Query and body parameters, decoded, in the order of the wire, with what authentication
    /// adds (`timestamp`, `nonce`, `signature`).
    pub params: Vec<(String, String)>,
}

impl Request {
    /// The first parameter of this name.
    pub fn param(&self, name: &str) -> Option<&str> {
        let found = self.params.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text; JSON unless a fault spoilt it.
    pub body: String,
}

impl Answer {
    /// The first header of this name, lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(&self.body).ok()
    }
}

/// What became of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessSeen {
    /// It began to start.
    Started {
        /// Its life: 1, 2, ...
        process: u32,
    },
    /// It recovered and runs.
    Running {
        /// Its life.
        process: u32,
        /// The epoch of its client order ids.
        epoch: u64,
        /// What its journal was found to be: `fresh`, `clean`, `torn`, `rolled back`, `damaged`.
        journal: String,
    },
    /// It was killed, or it ended.
    Crashed {
        /// Its life.
        process: u32,
    },
    /// It was stopped like by SIGSTOP: the venue and the links go on.
    Paused {
        /// Its life.
        process: u32,
    },
    /// It goes on.
    Resumed {
        /// Its life.
        process: u32,
    },
}

/// What the runtime believes, in plain words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// `booting`, `syncing`, `ready`, `degraded`, `paused` or `halted`.
    pub state: String,
    /// What is in doubt.
    pub doubts: Vec<String>,
    /// The epoch of client order ids.
    pub epoch: u64,
    /// Own orders that may be live, unknown ones included.
    pub orders: Vec<OrderView>,
    /// The account's positions that are not flat.
    pub positions: Vec<PositionView>,
    /// Positions of the account on symbols that are not configured.
    pub elsewhere: Vec<ElsewhereView>,
    /// Balances of the account.
    pub balances: Vec<BalanceView>,
    /// Each strategy's own part.
    pub strategies: Vec<StrategyView>,
    /// The mark price of each instrument that has one, `surface:SYMBOL`.
    pub marks: BTreeMap<String, String>,
    /// `tickSize` of each `surface:SYMBOL`, by the rules that are used.
    pub ticks: std::collections::BTreeMap<String, String>,
}

/// An own order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderView {
    /// `surface:SYMBOL`.
    pub instrument: String,
    /// The strategy's id.
    pub strategy: String,
    /// Its client order id.
    pub client_order_id: String,
    /// The venue's id, where it is known.
    pub order_id: Option<i64>,
    /// `BUY` or `SELL`.
    pub side: String,
    /// `BOTH`, `LONG` or `SHORT`.
    pub position_side: String,
    /// Limit price.
    pub price: Option<String>,
    /// Quantity.
    pub qty: Option<String>,
    /// Executed quantity.
    pub executed_qty: String,
    /// The engine's own word for its state: `UNKNOWN` where the outcome is unknown.
    pub state: String,
    /// It was not sent yet.
    pub held: bool,
}

/// A position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PositionView {
    /// `surface:SYMBOL`.
    pub instrument: String,
    /// `BOTH`, `LONG` or `SHORT`.
    pub position_side: String,
    /// Signed quantity, in whole steps.
    pub qty: String,
    /// What is held beside that: on spot a commission in the base asset leaves less than a step.
    pub dust: String,
    /// Signed cost.
    pub cost: String,
}

/// A position on a symbol that is not configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElsewhereView {
    /// The symbol.
    pub symbol: String,
    /// `BOTH`, `LONG` or `SHORT`.
    pub position_side: String,
    /// Signed quantity.
    pub qty: String,
    /// The unrealized profit that the venue stated last.
    pub unrealized: String,
}

/// A balance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalanceView {
    /// `spot` or `futures`.
    pub surface: String,
    /// The asset.
    pub asset: String,
    /// Wallet balance on futures, free plus locked on spot.
    pub total: String,
}

/// A strategy's part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyView {
    /// Its id.
    pub id: String,
    /// Why it is quarantined, if it is.
    pub fault: Option<String>,
    /// Its positions that are not flat.
    pub positions: Vec<PositionView>,
    /// What its fills realized in all, before fees.
    pub realized: String,
    /// What its fills cost in fees, in all.
    pub fees: String,
}

/// Truth and view at rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest {
    /// True time, nanoseconds.
    pub at_ns: i64,
    /// The venue's whole truth of our account, `GET /state?account=0`: finished orders, trades and
    /// accepted ids included.
    pub truth: Value,
    /// The runtime's view at the same moment.
    pub view: View,
}
