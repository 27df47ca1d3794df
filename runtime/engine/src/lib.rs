//! The deterministic core of Windvane. Everything that happens to the account enters as a
//! timestamped [`Input`](windvane_model::Input). Everything that the runtime must do leaves as an
//! [`Effect`](windvane_model::Effect).
//!
//! `session` uses it in every mode. `backtest`, `replay`, `live` and the fault simulator make or
//! restore an engine, or read its state. `host` lends it to the imports of strategies. `cli` uses
//! only the version of its rules.
//!
//! This crate must never contain IO, a clock, async, threads, randomness, floating point, shared
//! ownership (`Rc`, `Arc`, `Mutex`) or a dependency on another crate of this workspace except
//! `model`, `evidence` and `supervision`. `evidence` judges what the venue stated, `supervision`
//! keeps a run from trading where it must not; this crate alone changes books and orders.
//!
//! Live trading, paper trading, backtests and replays differ only in their drivers, so all of them
//! run the same trading code. Errors mean bad input; a panic is a bug in this crate.

#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::float_cmp)]

/// Version of the engine's decisions. Raise it with every change that can make the same inputs lead
/// to other effects. A replay of an older journal then reports why its effects differ.
pub const ENGINE_RULES: u32 = 18;

pub mod callback;
pub mod engine;

pub use callback::Callback;
pub use engine::Engine;
