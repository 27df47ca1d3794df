//! The decision logic of a live run, without IO. The engine decides about orders; this crate
//! decides everything else.
//!
//! The shell is the code that does the IO. There are two shells: the live process (`live`) and the
//! fault simulator (`tests/faults`). Both use the same [`Session`]. `backtest` and `replay` run its
//! inner loop, [`EngineLoop`]. `config`, `build` and `cli` use its types.
//!
//! A session decodes the messages of the streams and lends the engine to the strategies while it
//! calls them. It holds back each order until its record is durable. It decides when a segment of
//! the journal ends, and it controls the stop of a run.
//!
//! This crate must never contain IO, a clock, threads, async code or the WebAssembly host (the host
//! is behind [`Guests`]). The shell supplies the time and carries out each [`Output`].

#![forbid(unsafe_code)]

mod account;
mod activation;
mod answer_limits;
pub mod checkpoint;
mod clock;
mod driver;
mod engine_loop;
mod exchange;
pub mod forced;
mod guests;
mod instrument_name;
mod kill_switch;
mod log_note;
mod log_throttle;
mod outbox;
pub mod paper;
mod public_streams;
mod rate;
pub mod recovery;
mod requests;
mod saving;
mod session;
mod startup;
mod startup_error;
mod stop;
mod stream_sockets;
mod surface;
#[cfg(test)]
mod testing;
pub mod transit;
mod user_streams;
pub mod watchdog;
pub mod weights;
mod writer;

pub use account::{Account, AccountKind};
pub use activation::Foreign;
pub use checkpoint::{Checkpoint, Made, Module, SavedStrategy, instances};
pub use clock::Clock;
pub use driver::{Action, Driver};
pub use engine_loop::{BeginError, EffectHandler, EngineLoop, NoticesOnly, feed_answer};
pub use exchange::{
    Capabilities, DEPTH_LEVELS, Documented, DocumentedFeed, EmitMarket, Exchange, PublicFeed,
    Query, Received, Recurring, Signing,
};
pub use guests::{Guests, InitResult, NoGuests, ReloadGuests, StartFailure};
pub use instrument_name::{InstrumentName, surfaces};
pub use kill_switch::{KillSwitchState, OPERATOR, SaveState};
pub use log_note::log_note;
pub use log_throttle::LogThrottle;
pub use outbox::Outbox;
pub use paper::Paper;
pub use public_streams::{PublicStreams, is_public};
pub use rate::{Budget, Rate};
pub use requests::{
    CLOCK_EVERY_MS, CLOCK_SAMPLES, Call, CallAnswer, CallEnded, CallId, MODES_AGE_MS, RequestTerms,
    Requests, lane, late_by, stop_reason,
};
pub use saving::{Cost, STATE_BYTES_MAX, is_saved_at_once};
pub use session::{
    Ended, Input, JournalEvent, NotReloaded, Output, Parts, Reason, Reload, ReloadStarts,
    ReloadTrial, Renewed, START_MAX_MS, Session, StartCause, StartJob, Started,
};
pub use startup::{FindAccount, Startup, StartupInput, StartupOutput, StartupResult, StartupTerms};
pub use startup_error::StartupError;
pub use stop::{STOP_WAITS_MS, STOP_WITHIN_MS};
pub use stream_sockets::{SocketAction, SocketEvent};
pub use surface::venue_surface;
pub use writer::{
    BLOCKS_UNDER_WAY, DurabilityLag, JOURNAL_STALL_MS, ROLL_AGAIN_MS, SEAL_EVERY_MS,
    SEGMENT_AGE_MS, SEGMENT_BLOCKS, SEGMENT_BYTES,
};
