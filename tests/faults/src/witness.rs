//! Everything that is seen of a life: each request and response at both ends of the links, each
//! user event, the process and its states, the venue's true state, and the runtime's own view.
//!
//! The witness is append-only and has plain types: text, numbers and JSON. Entries come in the
//! order in which they happened. Times are those of the world's one true clock (nanoseconds since
//! 1970); the clocks of the process and of the venue may differ from it. Amounts, prices and
//! quantities are decimal text, as on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The drawn settings of a life: its strategies, limits and times. A checker may know nothing else
/// beforehand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The seed.
    pub seed: u64,
    /// The strategies, in their order; each own client order id begins with the id of one.
    pub strategies: Vec<StrategyTerms>,
    /// Limits of the account as a whole.
    pub limits: LimitTerms,
    /// The daily loss that halts the account.
    pub max_daily_loss: Option<String>,
    /// `surface:SYMBOL` of all traded instruments.
    pub instruments: Vec<String>,
    /// `countdownTime` of the dead man's switch, milliseconds.
    pub countdown_ms: u64,
    /// Renewal interval of the countdown, milliseconds.
    pub renew_ms: u64,
    /// Reconciliation interval, milliseconds.
    pub reconcile_ms: u64,
    /// `recvWindow`, milliseconds.
    pub recv_window_ms: u64,
    /// Requests carry the wallet signature (v3) instead of HMAC (v1).
    pub v3: bool,
    /// The treatment of own open orders at a start: `adopt` or `cancel`.
    pub on_start: String,
    /// The treatment of own open orders, and of positions, at an orderly stop: `cancel`, `keep` or
    /// `flatten`.
    pub on_stop: String,
    /// Reaction to a liquidation or an ADL: `halt`, `pause` or `continue`.
    pub on_liquidation: String,
    /// After the faults everything must converge within this time, nanoseconds.
    pub converge_ns: i64,
    /// User events may come later than the 3 s within which a ready run must see on its stream what
    /// REST confirmed. A run that trades is then rightly degraded again and again.
    pub is_stream_slow: bool,
    /// The signer does not answer some calls; a heartbeat then leaves with its next try.
    pub is_signer_silent: bool,
    /// The operator pauses the run before it is compared with the venue. While it trades, something
    /// that the venue reports late is always missing.
    pub pauses_to_rest: bool,
    /// The venue rounds the entry prices that it reports to the tick.
    pub entries_to_tick: bool,
    /// The venue rounds the commissions that it reports to four decimals, but charges the exact
    /// amounts.
    pub rounds_fees: bool,
    /// The run uses only the core interface: it does not read the list of the futures account's
    /// trades.
    pub is_documented: bool,
    /// The account is in hedge mode, and is configured as such.
    pub hedge: bool,
}

impl Terms {
    /// The state of a run at rest.
    pub const fn state_at_rest(&self) -> &'static str {
        if self.pauses_to_rest {
            "paused"
        } else {
            "ready"
        }
    }

    /// Interval of the samples of truth and view, nanoseconds: one second if a loss must halt the
    /// run soon.
    pub const fn sample_ns(&self) -> i64 {
        if self.max_daily_loss.is_some() {
            1_000_000_000
        } else {
            60_000_000_000
        }
    }

    /// Whether a run is at rest.
    pub fn is_at_rest(&self, view: &View) -> bool {
        // Only an order shows that a trading block is over, and a paused run sends no orders.
        let is_block = |reason: &String| reason.contains("cannot trade");
        // A paused strategy still closes positions. A slow stream shows each such change too late.
        let is_slow = |reason: &String| {
            self.is_stream_slow && reason.contains("user stream cannot be relied on")
        };
        let mut reasons = view.degraded_reasons.iter();
        let is_blocked =
            self.pauses_to_rest && reasons.all(|reason| is_block(reason) || is_slow(reason));
        match view.state.as_str() {
            "degraded" => is_blocked,
            state => state == self.state_at_rest() && view.degraded_reasons.is_empty(),
        }
    }
}

/// The settings of a strategy, from the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyTerms {
    /// Its id.
    pub id: String,
    /// Its module: `market_maker`, `ema_cross`, `greedy` or `quoter`.
    pub module: String,
    /// `surface:SYMBOL` of the instruments that it trades.
    pub instruments: Vec<String>,
    /// Its own limits.
    pub limits: LimitTerms,
    /// Reaction to its fault: `cancel` or `flatten`.
    pub on_fault: String,
}

/// Limits; `None` means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitTerms {
    /// Largest price times quantity of one order, as decimal text.
    pub max_order_notional: Option<String>,
    /// Largest position notional, as decimal text: the sum over instruments, with open, in-flight
    /// and unknown orders at their worst case.
    pub max_position_notional: Option<String>,
    /// Largest number of open orders.
    pub max_open_orders: Option<u32>,
    /// Largest number of new orders in any minute.
    pub max_orders_per_minute: Option<u32>,
}

/// One entry of the witness.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number: 0, 1, 2, ...
    pub number: u64,
    /// Its true time, nanoseconds since 1970.
    pub at_ns: i64,
    /// What was seen.
    pub seen: WitnessEvent,
}

/// An order as its strategy intended it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentTerms {
    /// `surface:SYMBOL`.
    pub instrument: String,
    /// `BUY` or `SELL`.
    pub side: String,
    /// Quantity.
    pub qty: Option<String>,
    /// Limit price; `None` for a market order.
    pub price: Option<String>,
    /// The order may only reduce a position.
    pub reduce_only: bool,
    /// `BOTH`, `LONG` or `SHORT`.
    pub position_side: String,
}

/// Identifies one request through its life. If a link doubles a request, both arrivals have the
/// same id.
pub type RequestId = u64;

/// The kinds of entries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum WitnessEvent {
    /// The runtime handed a request to its socket.
    Sent(Request),
    /// The request arrived at the venue, which is about to execute or refuse it.
    Arrived {
        /// The request.
        request: RequestId,
        /// 0 for the first arrival, 1 for the second arrival of a doubled request.
        copy: u32,
        /// The request as it arrived, equal to what was sent.
        what: Request,
    },
    /// The venue's own response, before any fault changed it.
    Answered {
        /// The request that it answers.
        request: RequestId,
        /// The arrival that it answers.
        copy: u32,
        /// The response.
        answer: Answer,
    },
    /// The response that the runtime received; a fault may have changed it.
    #[serde(rename = "Heard")]
    AnswerReceived {
        /// The request that it answers.
        request: RequestId,
        /// `None`: no response will come, because the connection was cut or the request timed out.
        answer: Option<Answer>,
    },
    /// The venue emitted a user event.
    Emitted {
        /// Identifies the event through its life.
        event: u64,
        /// `spot` or `futures`.
        surface: String,
        /// The connection on which it was emitted.
        stream: u64,
        /// The frame.
        text: String,
    },
    /// The venue executed an own order, whether a stream reports it or not. Only checkers know
    /// this, not the runtime.
    Executed {
        /// The order.
        client_order_id: String,
        /// The order's executed quantity so far, this execution included.
        executed_qty: String,
    },
    /// A user event reached the runtime; one that a link doubles arrives twice.
    Delivered {
        /// The event.
        event: u64,
        /// The connection on which it came.
        stream: u64,
    },
    /// The PONG for a PING on a user stream reached the runtime.
    Pong {
        /// The connection.
        stream: u64,
    },
    /// A stream connected or disconnected, as the runtime sees it.
    Stream {
        /// The connection.
        stream: u64,
        /// `spot` or `futures`.
        surface: String,
        /// True for the user stream, false for public data.
        user: bool,
        /// It is connected now.
        up: bool,
    },
    /// The public top of the book of an instrument as the runtime has it: bid and ask.
    Top {
        /// `surface:SYMBOL`.
        instrument: String,
        /// Best bid.
        bid: String,
        /// Best ask.
        ask: String,
    },
    /// The runtime released an order: it is on its way to the connection.
    Released {
        /// Its id.
        client_order_id: String,
        /// The true time, nanoseconds since 1970.
        at_ns: i64,
    },
    /// A strategy intended an order: the callback of its module returned with it. The entry has the
    /// output of the module, read before the engine processes it.
    Intended {
        /// The life of the process.
        process: u32,
        /// The client order id that it will have.
        client_order_id: String,
        /// The intended order.
        terms: IntentTerms,
    },
    /// The state of a strategy when it intended an order or saved something new. The state is
    /// represented by its hash.
    Knew {
        /// The strategy.
        strategy: String,
        /// The client order id that the order will have; `None` for a save.
        client_order_id: Option<String>,
        /// The hash of its state.
        state: u64,
    },
    /// A strategy was given a state that it saved earlier.
    Given {
        /// The strategy.
        strategy: String,
        /// The hash of the state.
        state: u64,
    },
    /// The runtime reported that it rejected an intent of a strategy.
    Refused {
        /// The strategy.
        strategy: String,
        /// The rule that the intent broke.
        rule: String,
    },
    /// A command of the operator reached a running process.
    Commanded {
        /// The strategy that it is for; `None` for the whole run.
        strategy: Option<String>,
        /// `pause`, `resume`, `halt` or `flatten`.
        command: String,
    },
    /// The operator was notified that the kill switches of all commands so far are durable.
    CommandsKept,
    /// The kill switches in the file beside the journal now: `none`, `paused` or `halted`.
    #[serde(rename = "Latched")]
    KillSwitchesStored {
        /// The kill switch of the account.
        account: String,
        /// The kill switches by strategy; missing strategies have `none`.
        strategies: BTreeMap<String, String>,
    },
    /// The runtime reported that a loss limit of the account halted it. A sample follows.
    LossHalt,
    /// The runtime reported that a strategy is in quarantine.
    Quarantined {
        /// Its id.
        strategy: String,
    },
    /// The disk made a block durable; only a roll-back can remove it.
    Durable {
        /// The life of the process that wrote it.
        process: u32,
        /// Client order ids of the orders that strategies intended in this block, read from its
        /// records.
        client_order_ids: Vec<String>,
    },
    /// The runtime reported that it booked a fill of an own order.
    Booked {
        /// The life of the process.
        process: u32,
        /// `surface:SYMBOL`.
        instrument: String,
        /// The client order id of its order.
        client_order_id: String,
        /// The trade id; negative if the fill was derived from the order's totals.
        trade_id: i64,
        /// `BUY` or `SELL`.
        side: String,
        /// Its quantity.
        qty: String,
        /// Price times quantity.
        quote: String,
        /// Its fee.
        fee: String,
        /// The asset of the fee.
        fee_asset: String,
        /// The profit that it realized for the account, before fees.
        realized: String,
    },
    /// The runtime reported that an account trade gave the commission of a fill that was booked
    /// without one.
    LateFee {
        /// The life of the process.
        process: u32,
        /// `surface:SYMBOL`.
        instrument: String,
        /// The venue's id of its order.
        order_id: i64,
        /// The trade id.
        trade_id: i64,
        /// Its fee.
        fee: String,
        /// The asset of the fee.
        fee_asset: String,
        /// The estimate that it replaces, in the quote asset.
        estimate: String,
        /// An account snapshot already included it: the balance did not change.
        in_balance: bool,
    },
    /// The change of an own balance by one step of the engine that booked fills or adjusted
    /// something. The entry comes after these fills and adjustments.
    Balance {
        /// The life of the process.
        process: u32,
        /// `surface:ASSET`.
        of: String,
        /// The balance before the step.
        from: String,
        /// The balance after the step.
        to: String,
        /// Only fills and adjustments changed it.
        by_fills: bool,
    },
    /// The journal notified the process: `stalled`, `flows`, `failed` or, after a failure,
    /// `rolled`.
    Journal(String),
    /// The runtime reported that it overwrote its own state with the venue's value.
    Adjusted {
        /// The life of the process.
        process: u32,
        /// `position`, `balance`, `absent` or `alive`.
        kind: String,
        /// `surface:SYMBOL`, in hedge mode with `LONG` or `SHORT` after it; `surface:ASSET`; or the
        /// client order id.
        of: String,
        /// The own value; empty for an order.
        from: String,
        /// The venue's value; empty for an order.
        to: String,
    },
    /// The runtime reported that the venue denies an order that it had confirmed.
    Denied {
        /// The client order id.
        client_order_id: String,
    },
    /// The runtime reported that outside orders closed a part of a strategy's position. Also used
    /// to undo this after a kill, if no durable record has it.
    ClosedOutside {
        /// The life of the process.
        process: u32,
        /// The strategy.
        strategy: String,
        /// `surface:SYMBOL`; in hedge mode `surface:SYMBOL LONG` or the same with `SHORT`.
        instrument: String,
        /// The closed part of its position; negative if it was short.
        qty: String,
    },
    /// The runtime reported that the venue closed a position itself.
    ForcedClose {
        /// The life of the process.
        process: u32,
        /// `surface:SYMBOL`.
        instrument: String,
        /// Quantity; 0 before the closing order trades.
        qty: String,
    },
    /// The process changed.
    Process(ProcessEvent),
    /// The state of the run changed.
    State {
        /// The old state: `booting`, `syncing`, `ready`, `degraded`, `paused` or `halted`.
        from: String,
        /// The new state, one of the words of `from`.
        to: String,
        /// The degraded reasons now, as shown to the operator.
        degraded_reasons: Vec<String>,
    },
    /// Somebody else acted: the body of `POST /act` of the control port, and whether the venue did
    /// it. Orders placed in this way are not own orders, even on our account.
    Act {
        /// The requested act.
        act: Value,
        /// Whether the venue did it.
        done: bool,
    },
    /// The venue's true state, `GET /state?account=0&brief=true`: open orders, positions, balances.
    Truth(Value),
    /// The runtime's own view at the moment of the truth entry before it, if the process runs.
    View(View),
    /// The venue's full true state while the operator flattens and faults go on.
    Closing(Value),
    /// The venue executed or refused an own market order.
    Market {
        /// The request as it was sent.
        what: Request,
        /// The runtime's view when it sent the request.
        view: Box<View>,
        /// The venue's true state before it.
        before: Value,
        /// The venue's true state after it.
        after: Value,
    },
    /// A running process was asked for an orderly stop.
    Stopping {
        /// The life of the process.
        process: u32,
    },
    /// The process ended by itself after that, with the venue's full true state at that moment.
    Stopped {
        /// The life of the process.
        process: u32,
        /// `stopped`, or `hurried` if `on_stop` did not complete in time or a second stop was
        /// requested.
        how: String,
        /// The true state.
        truth: Value,
    },
    /// The runtime opens a stream: it sends the handshake.
    Handshake {
        /// The surface of the stream.
        surface: String,
    },
    /// At the start of a process, the file of bans says that nothing may be sent until this time.
    /// An earlier process was notified of that ban.
    BanRemembered {
        /// True time, nanoseconds.
        until_ns: i64,
    },
    /// The runtime sends a sign of health to the watchdog process of spot orders.
    #[serde(rename = "Beat")]
    Heartbeat,
    /// The runtime found a contradiction in its own books and wrote a report.
    InvariantBroken {
        /// The text of the contradiction.
        #[serde(rename = "words")]
        text: String,
        /// Size of the report in bytes.
        report: usize,
    },
    /// The configuration of a process from here on: at its start, and after a reload.
    Configured {
        /// `cancel`, `keep` or `flatten`.
        on_stop: String,
        /// For each strategy, the limit of its open orders.
        max_open_orders: Vec<(String, Option<u32>)>,
    },
    /// A reload begins.
    Reloading {
        /// The strategies that must get new instances.
        strategies: Vec<String>,
    },
    /// A strategy got a new instance.
    Renewed {
        /// The strategy.
        strategy: String,
    },
    /// The reload is complete.
    Reloaded {
        /// The reload was refused: nothing changed.
        refused: bool,
    },
    /// There are no faults from here on.
    FaultsEnded,
    /// After the faults, the operator flattened, and the runtime reports that everything is closed.
    /// The entry has the venue's full true state.
    Flattened(Value),
    /// A fault as text, only for the context of a report.
    Fault(String),
}

impl WitnessEvent {
    /// The reverse of a close by others.
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
    /// The id of the request.
    pub id: RequestId,
    /// The life of the process that sent it: 1, 2, ...
    pub process: u32,
    /// `spot`, `futures`, `chain` or `rpc`.
    pub surface: String,
    /// Name of the route, as `windvane routes` prints it: `futures.new_order`.
    pub route: String,
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub method: String,
    /// Path, including the version.
    pub path: String,
    /// Query and body parameters, decoded, in the order of the wire, including those that
    /// authentication adds (`timestamp`, `nonce`, `signature`).
    pub params: Vec<(String, String)>,
}

impl Request {
    /// The first parameter of this name.
    pub fn param(&self, name: &str) -> Option<&str> {
        let found = self.params.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text; JSON unless a fault changed it.
    pub body: String,
}

impl Answer {
    /// The first header of this name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(&self.body).ok()
    }
}

/// Changes of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessEvent {
    /// It began to start.
    Started {
        /// The life of the process: 1, 2, ...
        process: u32,
    },
    /// It has recovered and runs.
    Running {
        /// The life of the process.
        process: u32,
        /// The epoch of its client order ids.
        epoch: u64,
        /// The verdict on its journal: `fresh`, `clean`, `torn`, `rolled back`, `damaged`.
        journal: String,
    },
    /// It was killed, or it ended.
    Crashed {
        /// The life of the process.
        process: u32,
    },
    /// It was stopped as by SIGSTOP: the venue and the links go on.
    Paused {
        /// The life of the process.
        process: u32,
    },
    /// It continues after a stop.
    Resumed {
        /// The life of the process.
        process: u32,
    },
}

/// The state that the runtime believes, in plain types.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// `booting`, `syncing`, `ready`, `degraded`, `paused` or `halted`.
    pub state: String,
    /// The degraded reasons.
    pub degraded_reasons: Vec<String>,
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
    /// The sub-positions and sums of each strategy.
    pub strategies: Vec<StrategyView>,
    /// The mark price of each instrument that has one, by `surface:SYMBOL`.
    pub marks: BTreeMap<String, String>,
    /// `tickSize` by `surface:SYMBOL`, from the rules in use.
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
    /// The venue's order id, if known.
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
    /// The engine's name of its state; `UNKNOWN` if the outcome is unknown.
    pub state: String,
    /// It has not been sent yet.
    pub held: bool,
}

/// A position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PositionView {
    /// `surface:SYMBOL`.
    pub instrument: String,
    /// `BOTH`, `LONG` or `SHORT`.
    pub position_side: String,
    /// Signed quantity in whole steps.
    pub qty: String,
    /// The rest below one step: on spot a commission in the base asset leaves such a rest.
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
    /// The unrealized profit that the venue reported last.
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

/// The state of a strategy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyView {
    /// Its id.
    pub id: String,
    /// The reason of its quarantine, if any.
    pub fault: Option<String>,
    /// Its sub-positions that are not flat.
    pub positions: Vec<PositionView>,
    /// Total realized profit of its fills, before fees.
    pub realized: String,
    /// Total fees of its fills.
    pub fees: String,
}

/// Truth and view at rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest {
    /// True time, nanoseconds.
    pub at_ns: i64,
    /// The venue's full true state of our account, `GET /state?account=0`, including finished
    /// orders, trades and accepted ids.
    pub truth: Value,
    /// The runtime's view at the same moment.
    pub view: View,
}
