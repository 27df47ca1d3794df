//! The public market: symbols, books, trades, klines, tickers, marks and funding, and where they
//! come from. Sans-IO: time is an argument, everything is integers, and every list is bounded.
//!
//! Orders of the accounts are not in the public book and their fills print no public trade: each
//! account's `sim::Venue` matches against the public market as if it were alone with it.

mod board;
pub(crate) mod book;
pub(crate) mod fixed;
pub(crate) mod funding;
pub(crate) mod interval;
pub(crate) mod kline;
mod listing;
mod past;
mod random;
mod recorded;
mod seeded;
mod sink;
pub(crate) mod symbol;
pub(crate) mod ticker;
pub(crate) mod trades;

pub(crate) use board::Board;
pub use board::Source;
pub use recorded::{Recorded, RecordedEvent, RecordedEvents, Recording};
pub(crate) use sink::{Sink, Update};
pub(crate) use symbol::Symbol;
