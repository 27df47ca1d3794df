//! The deterministic core of Windvane: everything that happens to the account enters as a
//! timestamped [`Input`](windvane_model::Input), everything that the runtime wants done leaves as an
//! [`Effect`](windvane_model::Effect).
//!
//! What may never enter this crate: IO, a clock, async, threads, randomness, floating point,
//! shared ownership (`Rc`, `Arc`, `Mutex`) and any other crate of this workspace but the model,
//! evidence and supervision. Live trading, paper trading, backtests and replays differ in their
//! drivers only, so that all of them trust the same code. Errors are bad input; a panic is a bug of
//! ours.

#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::float_cmp)]

/// Version of the decisions that the engine makes. Raise it with every change after which the same
/// inputs can lead to other effects: a replay of an older journal then says why it differs.
pub const ENGINE_RULES: u32 = 16;

pub mod callback;
pub mod engine;

pub use callback::Callback;
pub use engine::Engine;
