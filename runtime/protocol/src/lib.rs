//! The venue's wire protocol as pure functions: bytes to engine inputs, and engine requests to
//! bytes.
//!
//! Both sides use it: `client-core`, `client` and `session` as the client, `sim-server` and
//! `sim-market` as the venue, and `recording` for recorded frames.
//!
//! This crate must never contain IO, a clock or async code. The venue's formats change often; the
//! order logic of the engine does not. So every spelling of the venue is known here and nowhere
//! else.

#![forbid(unsafe_code)]

pub mod adapter;
pub mod assets;
pub mod brand;
pub mod deposit;
pub mod error;
pub mod exchange_info;
pub mod frame;
pub mod join;
pub mod local_book;
pub mod market_stream;
pub mod number;
pub mod route;
pub mod sign;
pub mod surface;
pub mod symbol_rules;
pub mod user_stream;
pub mod wire;

mod decode;
mod json_fast_path;
mod json_slow_path;
mod keyed;
mod stream_name;
mod taker_side;

pub use assets::Assets;
pub use brand::Brand;
pub use decode::decode;
pub use frame::{
    BookLevels, BookTop, Decoded, DepthDiff, DepthSnapshot, DiffIds, FillIds, Frame, FrameError,
    MarkPrice, Trade, TradePro,
};
pub use join::{DiffStep, Joiner, Pending, SnapshotStep};
pub use number::{Number, NumberError};
pub use symbol_rules::SymbolRules;
pub use taker_side::TakerSide;
/// For crates that reach the engine only through this crate.
#[doc(hidden)]
pub use windvane_model::{constant, planted};
