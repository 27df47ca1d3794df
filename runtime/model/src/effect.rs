//! Everything that the engine wants done ([`Effect`]), and what it tells people ([`Notice`]).

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::doubt::Doubt;
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

/// Something that the driver must do, in the order in which it is polled. Every effect is
/// recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Hand an event to a strategy; its answer comes back as an input.
    Deliver {
        /// To whom.
        strategy: StrategyId,
        /// What.
        event: Event,
    },
    /// Send a request to the venue, once the record of its intent is durable.
    Send {
        /// Sequence of the record that must be durable first; 0 for what adds no exposure
        /// (cancels, questions, heartbeats) and never waits for a disk.
        record: u64,
        /// The request; boxed, so that the far more frequent deliveries stay small.
        request: Box<Request>,
    },
    /// Close the user stream of a surface and connect anew: it is not trusted any more.
    Reconnect {
        /// Surface.
        surface: Surface,
    },
    /// Give the watchdog process of spot orders a sign of health; it cancels them without.
    Beat {
        /// One more than the last.
        number: u64,
    },
}

/// What people are told: rows of results, log lines, metrics. Nothing here is read back by the
/// engine, and nothing in it may be missing from its state.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A fill of an own order was applied.
    Filled {
        /// When the engine learned of it.
        time: Time,
        /// When the venue executed it.
        executed: Time,
        /// Whose order.
        strategy: StrategyId,
        /// The order after it.
        order: Order,
        /// The fill.
        fill: Fill,
        /// Profit that it realized in the account's position, before fees.
        realized_pnl: Amount,
        /// Account position after it.
        position: i64,
    },
    /// An order ended.
    Ended {
        /// When.
        time: Time,
        /// The order in its last state.
        order: Order,
    },
    /// An intent broke a rule; nothing was sent.
    Rejected {
        /// When.
        time: Time,
        /// Whose.
        strategy: StrategyId,
        /// What was asked for.
        terms: OrderTerms,
        /// The rule that it broke.
        rejection: Rejection,
    },
    /// The venue rejected an order, or the order was not sent.
    NotPlaced {
        /// When.
        time: Time,
        /// The order before it ends.
        order: Order,
        /// Which of the two, and why.
        words: NotPlaced,
    },
    /// An order was accepted after others like it were not placed.
    RefusalsOver {
        /// When.
        time: Time,
        /// Whose.
        strategy: StrategyId,
        /// The instrument.
        instrument: InstrumentId,
        /// What is over.
        refusals: Refusals,
    },
    /// Opening orders of an account, an instrument or an asset are blocked from here on.
    Blocked {
        /// When.
        time: Time,
        /// What is blocked.
        block: TradingBlock,
        /// Its beginning.
        state: BlockState,
    },
    /// A block is over.
    Unblocked {
        /// When.
        time: Time,
        /// What was blocked.
        block: TradingBlock,
        /// Its end.
        state: BlockState,
    },
    /// A funding payment was received (or paid, when negative).
    Funding {
        /// When.
        time: Time,
        /// The amount.
        amount: Amount,
    },
    /// A strategy is quarantined.
    Quarantined {
        /// When.
        time: Time,
        /// Which.
        strategy: StrategyId,
        /// Why.
        kind: FaultKind,
    },
    /// The account is halted: no new order until it is resumed.
    Halted {
        /// When.
        time: Time,
        /// The loss limit that was breached; `None` when the operator asked.
        limit: Option<LossLimit>,
    },
    /// The engine's own books contradict each other: the account is halted.
    InvariantBroken {
        /// When.
        time: Time,
        /// The rule that is broken.
        broken: BrokenInvariant,
    },
    /// The venue's word differed from ours and was taken (promise 3).
    Adjusted {
        /// When.
        time: Time,
        /// What, from what, to what.
        adjustment: Adjustment,
        /// Why.
        cause: Cause,
    },
    /// A round of reconciliation ended, or gave up for now.
    Reconciled {
        /// When.
        time: Time,
        /// Surface.
        surface: Surface,
        /// It left nothing unexplained.
        clean: bool,
    },
    /// The outcome of an order request was lost: the order is asked for by its id.
    Unknown {
        /// When.
        time: Time,
        /// The order.
        order: Order,
    },
    /// The venue denies an order that it had confirmed: it stays counted and is asked for.
    Denied {
        /// When.
        time: Time,
        /// The order.
        order: Order,
    },
    /// The state of a live run changed.
    State {
        /// When.
        time: Time,
        /// The state that it left.
        from: RunState,
        /// The state that it entered.
        to: RunState,
        /// What is in doubt now.
        doubts: Vec<Doubt>,
    },
    /// The dead man's switch of a symbol was renewed, or is not as it should be.
    Heartbeat {
        /// When.
        time: Time,
        /// The instrument.
        instrument: InstrumentId,
        /// What happened.
        what: HeartbeatNotice,
    },
    /// The watchdog process of spot orders can do its work, or is gone.
    Watchdog {
        /// When.
        time: Time,
        /// It can.
        armed: bool,
    },
    /// A fill that the user stream missed was learned over REST.
    Recovered {
        /// When.
        time: Time,
        /// The order.
        order: OrderSeq,
        /// The fill.
        fill: Fill,
    },
    /// An own order that this process did not send was taken over.
    Adopted {
        /// When.
        time: Time,
        /// The order.
        order: Order,
    },
    /// A strategy is closed but for what no order can close: less than a step, or than the least
    /// that an order may be worth. It counts as flat.
    Dust {
        /// When.
        time: Time,
        /// Whose.
        strategy: StrategyId,
        /// The instrument.
        instrument: InstrumentId,
        /// What is left of the base asset, signed.
        left: Amount,
    },
    /// The venue refused many closing orders for a position. A live run goes on, a backtest gives up.
    Unclosed {
        /// When.
        time: Time,
        /// Whose.
        strategy: StrategyId,
        /// The instrument.
        instrument: InstrumentId,
        /// What is left, negative when short.
        qty: i64,
    },
    /// An own order of a strategy that is not configured any more rests, and is cancelled.
    Stray {
        /// When.
        time: Time,
        /// The order.
        report: OrderReport,
    },
    /// What a strategy held was closed by outside orders: there is nothing to close any more.
    ClosedOutside {
        /// When.
        time: Time,
        /// Whose sub-ledger held it.
        strategy: StrategyId,
        /// The instrument.
        instrument: InstrumentId,
        /// The quantity that was closed, negative when short.
        qty: i64,
        /// Profit that the strategy's position realized by it, before fees.
        realized_pnl: Amount,
    },
    /// A late own fill was what had looked like a close by others: a strategy that gave up a part of its
    /// position has it again.
    NotClosedOutside {
        /// When.
        time: Time,
        /// The strategy.
        strategy: StrategyId,
        /// The instrument.
        instrument: InstrumentId,
        /// The quantity that it has again, negative when short.
        qty: i64,
    },
    /// An order or a fill on the account that is not ours.
    External {
        /// When.
        time: Time,
        /// What the venue says.
        update: OrderUpdate,
        /// Profit that it realized in the account's position, before fees.
        realized_pnl: Amount,
    },
    /// Another instance trades on the account while this one runs.
    AnotherInstance {
        /// When it was seen.
        time: Time,
        /// Its order.
        id: ClientOrderId,
    },
    /// The venue lists neither account trades nor orders of a surface: another instance whose orders fill at
    /// once is not seen.
    InstancesUnseen {
        /// When it was seen.
        time: Time,
        /// The surface.
        surface: Surface,
    },
    /// A watch for another instance on the account began or ended.
    InstanceWatch {
        /// When.
        time: Time,
        /// The order that began it.
        id: ClientOrderId,
        /// When it ends; `None` where it ended.
        until: Option<Time>,
        /// How many of the orders still rested at its end and were adopted.
        adopted: usize,
    },
    /// The venue closed a position itself: liquidation or ADL.
    ForcedClose {
        /// When the engine learned of it.
        time: Time,
        /// What is known of it.
        report: Box<ForcedCloseReport>,
    },
    /// The venue changed the rules of an instrument; they hold from now on.
    RulesChanged {
        /// When the engine learned of it.
        time: Time,
        /// The instrument.
        instrument: InstrumentId,
        /// Its rules before.
        before: Box<Instrument>,
    },
    /// The venue changed the rules of an instrument, and this run cannot count in them: nothing
    /// opens there.
    RulesUnusable {
        /// When the engine learned of it.
        time: Time,
        /// The instrument.
        instrument: InstrumentId,
        /// Why.
        why: String,
    },
    /// Post-only orders of a strategy ended at once, again and again: the next ones wait for a pause.
    Crossed {
        /// When the engine learned of it.
        time: Time,
        /// The strategy.
        strategy: StrategyId,
        /// The instrument.
        instrument: InstrumentId,
        /// The side.
        side: Side,
    },
    /// Commissions are taken in an asset without a price: the loss limits count an estimate. Told once
    /// for each asset.
    FeeUnpriced {
        /// When the engine learned of it.
        time: Time,
        /// The asset.
        asset: AssetId,
    },
    /// An account trade stated the commission of a fill that was booked without one.
    LateFee {
        /// When the engine learned of it.
        time: Time,
        /// The owner of the fill; `None` for a fill of somebody else.
        strategy: Option<StrategyId>,
        /// The instrument.
        instrument: InstrumentId,
        /// The order at the venue.
        order_id: VenueOrderId,
        /// The trade.
        trade_id: TradeId,
        /// Commission; negative for a rebate.
        fee: Amount,
        /// Its asset.
        asset: AssetId,
        /// What was booked in its place until now, in the quote asset.
        estimate: Amount,
        /// A reading of the account had it already: the balance did not move.
        in_balance: bool,
    },
    /// A balance moved, and neither an event nor the venue's history explains it: a decrease counts as a loss,
    /// an increase as a deposit.
    Unexplained {
        /// When the engine learned of it.
        time: Time,
        /// Surface.
        surface: Surface,
        /// The asset.
        asset: AssetId,
        /// The change.
        amount: Amount,
    },
    /// The leverage or the margin type of a symbol was changed by others.
    MarginChanged {
        /// When the engine learned of it.
        time: Time,
        /// Before.
        before: MarginTerms,
        /// After.
        after: MarginTerms,
    },
}

/// Why an order was not placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotPlaced {
    /// The venue rejected it; else it never left the process.
    pub sent: bool,
    /// The venue's code; 0 without one.
    pub code: i32,
    /// The venue's words, or our reason.
    pub reason: String,
    /// How many of its strategy's orders for this side of the instrument were not placed in a row.
    pub count: u32,
}

/// What became of a dead man's switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeartbeatNotice {
    /// The venue confirmed it.
    Renewed,
    /// The venue did not confirm it.
    Failed,
    /// It is not renewed while the runtime is not healthy.
    Withheld,
    /// It was not renewed in time: the symbol's orders are unknown until they were asked for.
    Lapsed,
}

/// A correction by the venue's evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Adjustment {
    /// A balance.
    Balance {
        /// Surface.
        surface: Surface,
        /// Asset.
        asset: AssetId,
        /// What we had.
        from: Amount,
        /// What the venue says.
        to: Amount,
    },
    /// A position quantity.
    Position {
        /// The instrument.
        instrument: InstrumentId,
        /// Position side.
        side: PositionSide,
        /// What we had.
        from: i64,
        /// What the venue says.
        to: i64,
    },
    /// The venue knows no such order, and it can no longer arrive, or was denied for long.
    Absent {
        /// The order.
        order: OrderSeq,
    },
    /// An order that had ended here is open at the venue: it is taken up again.
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
        /// How much.
        qty: i64,
        /// Quantity times mark price.
        quote: Amount,
    },
}

/// Why the venue's word was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// An account event said so.
    Event,
    /// An account event differs by what the venue rounds: at most a millionth of the last fill.
    Rounding,
    /// Two reads agreed, with no user event from the first question to the last answer.
    Reconciliation,
    /// The venue did not know the order when it could no longer arrive (promise 2).
    Absence,
    /// The venue had confirmed the order, and denied it again and again for ten minutes.
    Denial,
    /// Positions were to be closed.
    Flatten,
    /// An account event shows commissions of fills that their order events left out.
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
