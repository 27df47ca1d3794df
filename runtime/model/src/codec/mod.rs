//! The encodings of records, and the decoder. [`encode`](crate::encode) writes records,
//! [`record`](crate::record) puts them into blocks.
//!
//! Decoded records own their data and are complete. If a new engine with the same configuration
//! gets the inputs of a journal, it produces the same effects, with or without the strategy
//! modules. Any change of the bytes needs a new [`Format`](crate::record::Format).

mod cursor;
mod form;
mod market;
mod read;
mod recorded;

pub use cursor::DecodeError;
pub(crate) use form::{Form, Out};
pub(crate) use market::{MarketWriter, fixed_kind, put_fixed};
pub use read::Records;
pub use recorded::{Record, RecordBody, RecordedEffect, RecordedInput, RecordedNotice};

/// A flag in the reason byte of an account event. It means that the transaction time follows,
/// because it differs from the event time. Account events of earlier versions of this program have
/// no transaction time.
pub(crate) const HAS_TRANSACTION_TIME: u8 = 0x80;

/// Kinds of records. Inputs are below 64, effects start at 64, notices at 96.
pub mod kind {
    #![allow(
        missing_docs,
        reason = "each is named after the input or effect that it records"
    )]
    pub const TRADE: u8 = 1;
    pub const TOP: u8 = 2;
    pub const DEPTH: u8 = 3;
    pub const GAP: u8 = 4;
    pub const MARK: u8 = 5;
    pub const ANSWER: u8 = 6;
    pub const REPLY: u8 = 7;
    pub const USER: u8 = 8;
    pub const TIMEOUT: u8 = 9;
    pub const FAULT: u8 = 10;
    pub const COMMAND: u8 = 11;
    pub const SYMBOL_STATUS: u8 = 12;
    pub const CONFIG: u8 = 13;
    pub const LIVE: u8 = 14;
    pub const STEER: u8 = 15;
    pub const RENEW: u8 = 16;
    pub const RECONFIGURE: u8 = 17;
    pub const SAVED: u8 = 18;
    pub const ON_LIQUIDATION: u8 = 19;
    pub const START: u8 = 20;
    pub const DELIVER: u8 = 64;
    pub const SEND: u8 = 65;
    pub const RECONNECT: u8 = 66;
    pub const BEAT: u8 = 67;
    pub const STATE: u8 = 96;
    pub const ADJUSTED: u8 = 97;
    pub const FORCED_CLOSE: u8 = 98;
}
