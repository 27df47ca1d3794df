//! What a strategy is told ([`Event`]) and what it answers ([`Intent`]), as in `sdk/wit`.

use crate::ids::{InstrumentId, OrderSeq, Time};
use crate::order::OrderTerms;
use crate::rules::Rejection;

/// Kind of an event; the numbers are those of `sdk/wit/strategy.wit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum EventKind {
    /// A trade between others.
    Trade = 1,
    /// Best bid and ask.
    BookTop = 2,
    /// A depth frame, applied.
    BookChange = 3,
    /// A closed bar.
    Bar = 4,
    /// Mark price.
    MarkPrice = 5,
    /// A funding payment.
    Funding = 6,
    /// An own order changed its state.
    OrderUpdate = 7,
    /// A fill of an own order.
    Fill = 8,
    /// The own position changed.
    Position = 9,
    /// A balance of the account changed.
    Balance = 10,
    /// A timer of the strategy.
    Timer = 11,
    /// The state of the runtime changed.
    RuntimeState = 12,
    /// The venue changed the rules of an instrument. Not in contract 0.1.
    Rules = 13,
    /// The venue closed a part of the own position. Not in contract 0.1.
    ForcedClose = 14,
}

/// One event for one strategy. Fields a to f, their scales and the flags per kind stand in
/// `sdk/wit/strategy.wit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it reached the engine.
    pub time: Time,
    /// Rises by one with each event of the engine.
    pub sequence: i64,
    /// Kind.
    pub kind: EventKind,
    /// The instrument; 0 for events without one.
    pub instrument: InstrumentId,
    /// Flags.
    pub flags: u32,
    /// The fields a to f.
    pub fields: [i64; 6],
    /// Trade, order or update id.
    pub id: i64,
}

/// One accepted or refused wish of a strategy, in the order in which it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// An accepted order with its final number.
    Submit {
        /// Its number.
        order: OrderSeq,
        /// Its terms.
        terms: OrderTerms,
    },
    /// An order that broke a rule; nothing is sent.
    Rejected {
        /// Its terms.
        terms: OrderTerms,
        /// The rule and the values.
        rejection: Rejection,
    },
    /// Cancel one own order.
    Cancel {
        /// Its number.
        order: OrderSeq,
    },
    /// Cancel all own orders, of one instrument or of all.
    CancelAll {
        /// The instrument.
        instrument: Option<InstrumentId>,
    },
    /// Ask for a timer event.
    SetTimer {
        /// When.
        time: Time,
        /// The strategy's own token.
        token: i64,
    },
    /// Forget a timer.
    CancelTimer {
        /// Its token.
        token: i64,
    },
}
