//! The public market: symbols, books, trades, klines, tickers, marks and funding, and where they
//! come from. There is one market for all: the source's and that of the accounts. `shared_market`
//! says how they meet.
//!
//! `sim-server` uses this crate. It must not contain IO, a clock, floats, keys, or the state of an
//! account: time is an argument, everything is integers, and every list is bounded.

mod board;
pub mod book;
pub mod fixed;
pub mod funding;
pub mod interval;
pub mod kline;
pub mod listing;
mod past;
mod publish;
mod recorded;
mod seeded;
mod shared_market;
mod sink;
mod source_book;
pub mod symbol;
pub mod ticker;
pub mod trades;

pub use board::Board;
pub use board::Source;
pub use recorded::{Recorded, RecordedEvents, Recording};
pub use sink::{Deed, Filled, Sink, Update};
pub use symbol::Symbol;
