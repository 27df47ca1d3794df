//! Everything that the engine wants done ([`Effect`]), and what it tells people ([`Notice`]).

use crate::decimal::Amount;
use crate::event::Event;
use crate::ids::{AssetId, InstrumentId, StrategyId, Time};
use crate::input::FaultKind;
use crate::order::{OrderTerms, PositionSide, Surface};
use crate::orders::Order;
use crate::protocol::{Fill, OrderUpdate, Request};
use crate::risk::LossLimit;
use crate::rules::Rejection;

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
        /// Sequence of the record that must be durable first.
        record: u64,
        /// The request; boxed, so that the far more frequent deliveries stay small.
        request: Box<Request>,
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
    /// The venue's word differed from ours and was taken (promise 3).
    Adjusted {
        /// When.
        time: Time,
        /// What, from what, to what.
        adjustment: Adjustment,
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
}

/// A correction by the venue's evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}
