//! Outputs of the engine: actions for the driver ([`Effect`]) and information for people
//! ([`Notice`]).

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::degraded_reason::DegradedReason;
use crate::event::Event;
use crate::forced::ForcedCloseReport;
use crate::ids::{
    AssetId, ClientOrderId, InstrumentId, OrderSeq, StrategyId, Time, TradeId, VenueOrderId,
};
use crate::input::FaultKind;
use crate::instrument::Instrument;
use crate::invariant::BrokenInvariant;
use crate::order::{OrderTerms, PositionSide, Side, Surface};
use crate::orders::Order;
use crate::protocol::{Fill, MarginTerms, OrderReport, OrderUpdate, Request};
use crate::risk::LossLimit;
use crate::rules::Rejection;
use crate::run_state::RunState;
use crate::trading::{BlockState, Refusals, TradingBlock};

/// An action for the driver. The driver performs effects in the order in which it polls them. Every
/// effect is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Deliver an event to a strategy. The strategy's intents return as an input.
    Deliver {
        /// The strategy that receives it.
        strategy: StrategyId,
        /// What.
        event: Event,
    },
    /// Send a request to the venue as soon as the record of its intent is durable.
    Send {
        /// Sequence of the record that must be durable first. It is 0 for requests that add no
        /// exposure (cancels, queries, countdowns): they never wait for a disk.
        record: u64,
        /// The request. It is boxed to keep the far more frequent deliveries small.
        request: Box<Request>,
    },
    /// Close the user stream of a surface and connect again, because the engine no longer trusts
    /// it.
    Reconnect {
        /// Surface.
        surface: Surface,
    },
    /// Send a heartbeat to the watchdog process of spot orders. Without heartbeats, the watchdog
    /// cancels them.
    Heartbeat {
        /// Number of the heartbeat: the previous number plus one.
        number: u64,
    },
}

/// Information for people: rows of results, log lines, metrics. The engine never reads a notice
/// back, and its state contains everything that a notice reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A fill of an own order was booked.
    Filled {
        /// Time when the engine received it.
        time: Time,
        /// Time when the venue executed it.
        executed: Time,
        /// The strategy that owns the order.
        strategy: StrategyId,
        /// The order after the fill.
        order: Order,
        /// The fill.
        fill: Fill,
        /// Profit that it realized in the account's position, before fees.
        realized_pnl: Amount,
        /// The account's position after the fill.
        position: i64,
    },
    /// An order reached a terminal state.
    Ended {
        /// Time of the notice.
        time: Time,
        /// The order in its terminal state.
        order: Order,
    },
    /// An intent broke a rule, so nothing was sent.
    Rejected {
        /// Time of the notice.
        time: Time,
        /// The strategy.
        strategy: StrategyId,
        /// The terms of the rejected order.
        terms: OrderTerms,
        /// The rule that it broke.
        rejection: Rejection,
    },
    /// The venue rejected an order, or the order was never sent.
    NotPlaced {
        /// Time of the notice.
        time: Time,
        /// The order, before it moves to a terminal state.
        order: Order,
        /// Which of the two happened, and why.
        words: NotPlaced,
    },
    /// An order was accepted after similar orders were not placed.
    RefusalsOver {
        /// Time of the notice.
        time: Time,
        /// The strategy.
        strategy: StrategyId,
        /// The instrument.
        instrument: InstrumentId,
        /// The rejections that are over.
        refusals: Refusals,
    },
    /// Opening orders of the account, an instrument or an asset are blocked from now on.
    Blocked {
        /// Time of the notice.
        time: Time,
        /// The block.
        block: TradingBlock,
        /// State of the block at its beginning.
        state: BlockState,
    },
    /// A block ended.
    Unblocked {
        /// Time of the notice.
        time: Time,
        /// The block.
        block: TradingBlock,
        /// State of the block at its end.
        state: BlockState,
    },
    /// The account received a funding payment (or paid one, if negative).
    Funding {
        /// Time of the notice.
        time: Time,
        /// The amount.
        amount: Amount,
    },
    /// The engine put a strategy into quarantine.
    Quarantined {
        /// Time of the notice.
        time: Time,
        /// The strategy.
        strategy: StrategyId,
        /// The reason.
        kind: FaultKind,
    },
    /// The account is halted. No new order is sent until the operator resumes it.
    Halted {
        /// Time of the notice.
        time: Time,
        /// The breached loss limit; `None` if the operator halted the account.
        limit: Option<LossLimit>,
    },
    /// The engine's own ledgers contradict each other, so the account is halted.
    InvariantBroken {
        /// Time of the notice.
        time: Time,
        /// The broken invariant.
        broken: BrokenInvariant,
    },
    /// The venue reported another value than the engine had, and the engine adopted the venue's
    /// value (`docs/promises.md#3-the-venue-is-the-authority`).
    Adjusted {
        /// Time of the notice.
        time: Time,
        /// The correction, with the old and the new value.
        adjustment: Adjustment,
        /// The reason.
        cause: Cause,
    },
    /// A round of reconciliation ended, or stopped without a result.
    Reconciled {
        /// Time of the notice.
        time: Time,
        /// Surface.
        surface: Surface,
        /// Whether no difference remained unexplained.
        clean: bool,
    },
    /// The outcome of an order request was lost. The engine queries the order by its id.
    Unknown {
        /// Time of the notice.
        time: Time,
        /// The order.
        order: Order,
    },
    /// The venue reports that it does not know an order that it had confirmed. The order still
    /// counts as open, and the engine queries it again.
    Denied {
        /// Time of the notice.
        time: Time,
        /// The order.
        order: Order,
    },
    /// The state of a live run changed.
    State {
        /// Time of the notice.
        time: Time,
        /// The state before the change.
        from: RunState,
        /// The state after the change.
        to: RunState,
        /// The degraded reasons that hold now.
        reasons: Vec<DegradedReason>,
    },
    /// The dead man's switch of a symbol was renewed, or has a problem.
    Heartbeat {
        /// Time of the notice.
        time: Time,
        /// The instrument.
        instrument: InstrumentId,
        /// The result of the renewal.
        what: HeartbeatNotice,
    },
    /// The watchdog process of spot orders became ready, or is gone.
    Watchdog {
        /// Time of the notice.
        time: Time,
        /// Whether it is ready.
        armed: bool,
    },
    /// REST reported a fill that the user stream had missed.
    Recovered {
        /// Time of the notice.
        time: Time,
        /// The order.
        order: OrderSeq,
        /// The fill.
        fill: Fill,
    },
    /// The engine adopted an own order that another process had sent.
    Adopted {
        /// Time of the notice.
        time: Time,
        /// The order.
        order: Order,
    },
    /// A strategy is closed, except for a remainder that no order can close: it is less than one
    /// step, or less than the minimum notional. The strategy counts as flat.
    Dust {
        /// Time of the notice.
        time: Time,
        /// The strategy.
        strategy: StrategyId,
        /// The instrument.
        instrument: InstrumentId,
        /// The signed remainder of the base asset.
        left: Amount,
    },
    /// The venue rejected many orders that should close a position. A live run tries again; a
    /// backtest leaves the position open.
    Unclosed {
        /// Time of the notice.
        time: Time,
        /// The strategy.
        strategy: StrategyId,
        /// The instrument.
        instrument: InstrumentId,
        /// The quantity still open, negative when short.
        qty: i64,
    },
    /// An open order belongs to a strategy that the configuration does not contain any more. The
    /// engine cancels it.
    Stray {
        /// Time of the notice.
        time: Time,
        /// The order.
        report: OrderReport,
    },
    /// Outside orders closed a strategy's position, so the strategy has nothing left to close.
    ClosedOutside {
        /// Time of the notice.
        time: Time,
        /// The strategy that held the position.
        strategy: StrategyId,
        /// The instrument.
        instrument: InstrumentId,
        /// The closed quantity, negative when short.
        qty: i64,
        /// Profit that the strategy's position realized by the close, before fees.
        realized_pnl: Amount,
    },
    /// A late own fill explains a change that had looked like a close by outside orders. The
    /// strategy gets back the part of the position that the engine had removed.
    NotClosedOutside {
        /// Time of the notice.
        time: Time,
        /// The strategy.
        strategy: StrategyId,
        /// The instrument.
        instrument: InstrumentId,
        /// The restored quantity, negative when short.
        qty: i64,
    },
    /// The account had an order or a fill that is not ours.
    External {
        /// Time of the notice.
        time: Time,
        /// The venue's event.
        update: OrderUpdate,
        /// Profit that it realized in the account's position, before fees.
        realized_pnl: Amount,
    },
    /// Another instance trades on the account at the same time.
    AnotherInstance {
        /// Time when the engine noticed it.
        time: Time,
        /// The order of the other instance.
        id: ClientOrderId,
    },
    /// For a surface the venue lists neither the account's trades nor its orders. So the engine
    /// cannot see another instance whose orders fill at once.
    InstancesUnseen {
        /// Time when the engine noticed it.
        time: Time,
        /// The surface.
        surface: Surface,
    },
    /// The engine began or ended to watch for another instance on the account.
    InstanceWatch {
        /// Time of the notice.
        time: Time,
        /// The order that started the watch.
        id: ClientOrderId,
        /// Time when the watch will end; `None` if it ended.
        until: Option<Time>,
        /// The number of orders that were still open at the end and were adopted.
        adopted: usize,
    },
    /// The venue closed a position by liquidation or ADL.
    ForcedClose {
        /// Time when the engine received it.
        time: Time,
        /// The details known so far.
        report: Box<ForcedCloseReport>,
    },
    /// The venue changed the rules of an instrument. The new rules apply from now on.
    RulesChanged {
        /// Time when the engine received it.
        time: Time,
        /// The instrument.
        instrument: InstrumentId,
        /// The previous rules.
        before: Box<Instrument>,
    },
    /// The venue changed the rules of an instrument in a way that this run cannot represent.
    /// Opening orders for the instrument are rejected.
    RulesUnusable {
        /// Time when the engine received it.
        time: Time,
        /// The instrument.
        instrument: InstrumentId,
        /// The reason.
        why: String,
    },
    /// Several post-only orders of a strategy ended immediately, one after the other. The next ones
    /// wait.
    Crossed {
        /// Time when the engine received it.
        time: Time,
        /// The strategy.
        strategy: StrategyId,
        /// The instrument.
        instrument: InstrumentId,
        /// The side.
        side: Side,
    },
    /// The venue takes commissions in an asset without a known price, so the loss limits use an
    /// estimate. Reported once for each asset.
    FeeUnpriced {
        /// Time when the engine received it.
        time: Time,
        /// The asset.
        asset: AssetId,
    },
    /// The list of the account's trades states the commission of a fill that was booked without
    /// one.
    LateFee {
        /// Time when the engine received it.
        time: Time,
        /// The owner of the fill; `None` for an outside fill.
        strategy: Option<StrategyId>,
        /// The instrument.
        instrument: InstrumentId,
        /// The venue's id of the order.
        order_id: VenueOrderId,
        /// The venue's id of the trade.
        trade_id: TradeId,
        /// Commission; negative for a rebate.
        fee: Amount,
        /// Its asset.
        asset: AssetId,
        /// The estimate that was booked in its place, in the quote asset.
        estimate: Amount,
        /// Whether an account snapshot already contained it. The balance then did not change.
        in_balance: bool,
    },
    /// A balance changed, and no event and no entry of the venue's history explains it. A decrease
    /// counts as a loss, an increase as a deposit.
    Unexplained {
        /// Time when the engine received it.
        time: Time,
        /// Surface.
        surface: Surface,
        /// The asset.
        asset: AssetId,
        /// The change.
        amount: Amount,
    },
    /// Someone else changed the leverage or the margin type of a symbol.
    MarginChanged {
        /// Time when the engine received it.
        time: Time,
        /// The previous settings.
        before: MarginTerms,
        /// The new settings.
        after: MarginTerms,
    },
}

/// Why an order was not placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotPlaced {
    /// True if the venue rejected it; false if it never left the process.
    pub sent: bool,
    /// The venue's error code; 0 without one.
    pub code: i32,
    /// The venue's message, or our reason.
    pub reason: String,
    /// The number of consecutive orders of its strategy, for this side of the instrument, that were
    /// not placed.
    pub count: u32,
}

/// The state of a dead man's switch after a renewal was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeartbeatNotice {
    /// The venue confirmed the countdown.
    Renewed,
    /// The venue did not confirm the countdown.
    Failed,
    /// The engine does not renew it while the runtime is not healthy.
    Withheld,
    /// It was not renewed in time. Until the engine queries the symbol's orders, their state is
    /// unknown.
    Lapsed,
}

/// A correction of the engine's state by a value from the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Adjustment {
    /// A balance.
    Balance {
        /// Surface.
        surface: Surface,
        /// Asset.
        asset: AssetId,
        /// The engine's value.
        from: Amount,
        /// The venue's value.
        to: Amount,
    },
    /// A position quantity.
    Position {
        /// The instrument.
        instrument: InstrumentId,
        /// Position side.
        side: PositionSide,
        /// The engine's value.
        from: i64,
        /// The venue's value.
        to: i64,
    },
    /// The venue does not know the order. The order can no longer arrive, or the venue has denied
    /// it for a long time.
    Absent {
        /// The order.
        order: OrderSeq,
    },
    /// An order that had ended in the engine is open at the venue. The engine tracks it again.
    Alive {
        /// The order.
        order: OrderSeq,
    },
    /// Opposite positions of two strategies that are being closed were settled against each other,
    /// without an order.
    Settled {
        /// The instrument.
        instrument: InstrumentId,
        /// Position side.
        side: PositionSide,
        /// The strategy that was long.
        sold: StrategyId,
        /// The strategy that was short.
        bought: StrategyId,
        /// The settled quantity.
        qty: i64,
        /// Quantity times mark price.
        quote: Amount,
    },
}

/// Why the engine adopted the venue's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// An account event reported the value.
    Event,
    /// An account event differs by the venue's rounding: at most a millionth of the last fill.
    Rounding,
    /// Two account snapshots agreed, with no user event between the first query and the last
    /// response.
    Reconciliation,
    /// The venue did not know the order at a time when it could no longer arrive
    /// (`docs/promises.md#2-unknown-is-a-state`).
    Absence,
    /// The venue had confirmed the order, and then denied it repeatedly for ten minutes.
    Denial,
    /// Positions had to be closed.
    Flatten,
    /// An account event shows commissions of fills whose order events lacked them.
    Commission,
}

impl Cause {
    /// One word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Rounding => "rounding",
            Self::Reconciliation => "reconciliation",
            Self::Absence => "absence",
            Self::Denial => "denial",
            Self::Flatten => "flatten",
            Self::Commission => "commission",
        }
    }
}
