//! Events that a strategy receives ([`Event`]) and the intents that it returns ([`Intent`]), as in
//! `sdk/wit`.

use crate::ids::{InstrumentId, OrderSeq, Time};
use crate::order::{OrderTerms, words};
use crate::rules::Rejection;

words! {
    /// Kind of an event. Numbers and words are those of `sdk/wit/strategy.wit`.
    EventKind {
        /// A public trade.
        Trade = 1, "trade";
        /// Best bid and ask.
        BookTop = 2, "book-top";
        /// A depth change was applied to the book.
        BookChange = 3, "book-change";
        /// A closed bar.
        Bar = 4, "bar";
        /// Mark price.
        MarkPrice = 5, "mark-price";
        /// A funding payment.
        Funding = 6, "funding";
        /// An own order changed its state.
        OrderUpdate = 7, "order-update";
        /// A fill of an own order.
        Fill = 8, "fill";
        /// The strategy's position changed.
        Position = 9, "position";
        /// A balance of the account changed.
        Balance = 10, "balance";
        /// A timer of the strategy.
        Timer = 11, "timer";
        /// The state of the runtime changed.
        RuntimeState = 12, "runtime-state";
        /// The venue changed the rules of an instrument. Contract 0.1 does not have this event.
        Rules = 13, "rules";
        /// The venue closed a part of the strategy's position. Contract 0.1 does not have this
        /// event.
        ForcedClose = 14, "forced-close";
    }
}

impl EventKind {
    /// Whether it is public market data. Its deliveries are in the market part of a block.
    #[inline]
    pub const fn is_of_market(self) -> bool {
        match self {
            Self::Trade | Self::BookTop | Self::BookChange | Self::Bar | Self::MarkPrice => true,
            Self::Funding
            | Self::OrderUpdate
            | Self::Fill
            | Self::Position
            | Self::Balance
            | Self::Timer
            | Self::RuntimeState
            | Self::Rules
            | Self::ForcedClose => false,
        }
    }
}

/// One event for one strategy. `sdk/wit/strategy.wit` defines the fields a to f, their scales and
/// the flags of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time when it reached the engine.
    pub time: Time,
    /// Sequence number. It increases by one with each event of the engine.
    pub sequence: i64,
    /// Kind.
    pub kind: EventKind,
    /// The instrument; 0 for events that have none.
    pub instrument: InstrumentId,
    /// Flags. Their meaning depends on the kind.
    pub flags: u32,
    /// The fields a to f.
    pub fields: [i64; 6],
    /// Trade, order or update id.
    pub id: i64,
}

/// One accepted or rejected call of a strategy. Intents keep the order in which the strategy made
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// An accepted order with its final number.
    Submit {
        /// Its number.
        order: OrderSeq,
        /// Its terms.
        terms: OrderTerms,
    },
    /// An order that broke a rule. It is not sent.
    Rejected {
        /// Its terms.
        terms: OrderTerms,
        /// The broken rule, with the value and its bound.
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
    /// Set a timer.
    SetTimer {
        /// Time when it fires.
        time: Time,
        /// The strategy's own token.
        token: i64,
    },
    /// Cancel a timer.
    CancelTimer {
        /// Its token.
        token: i64,
    },
}
