//! The live run without IO: everything that it decides and that is not the engine's.
//!
//! The live shell (`runtime/node/src/live`) and the simulator of faults (`tests/faults`) drive the
//! same [`Session`]; backtest and replay run its [`EngineLoop`]. It decodes what streams say, lends the engine
//! to the strategies, lets an order leave once its record is durable, decides when segments of the
//! journal end, and how a run stops.
//!
//! What may never enter this crate: IO, a clock, threads, async, and the WebAssembly host, which
//! is behind [`Guests`]. The shell brings the time and does what [`Output`] says.

#![forbid(unsafe_code)]

mod account;
mod begin;
mod clock;
mod driver;
mod engine_loop;
mod exchange;
pub mod forced;
mod guests;
pub mod head;
mod latches;
mod outbox;
pub mod paper;
mod public_streams;
mod quiet;
pub mod recovery;
mod requests;
mod saving;
mod session;
mod start;
mod stop;
pub mod transit;
mod user_streams;
pub mod watchdog;
pub mod weights;
mod writer;

pub use account::{Account, AccountKind};
pub use begin::Foreign;
pub use clock::Clock;
pub use driver::{Action, Driver, Renewed};
pub use engine_loop::{BeginError, EffectHandler, EngineLoop, NoticesOnly, feed_answer};
pub use exchange::{
    Capabilities, Documented, DocumentedFeed, EmitMarket, Exchange, PublicFeed, Question, Received,
    Recurring, Signing,
};
pub use guests::{Guests, InitResult, NoGuests, ReloadGuests};
pub use head::{Head, Made, Module, SavedStrategy, instances};
pub use latches::{Kept, LatchState, OPERATOR};
pub use outbox::Outbox;
pub use paper::Paper;
pub use public_streams::{PublicStreams, is_public};
pub use quiet::Quiet;
pub use requests::{
    CLOCK_EVERY_MS, CLOCK_SAMPLES, Call, CallAnswer, CallEnded, CallId, DEPTH_LEVELS, MODES_AGE_MS,
    RequestTerms, Requests, lane, late_by, stop_reason, venue_surface,
};
pub use saving::{Cost, is_saved_at_once};
pub use session::{
    Ended, Freed, Input, JournalEvent, NotReloaded, Output, Parts, Reason, Reload, Reloaded,
    Session, log_note,
};
pub use start::{
    FindAccount, InstrumentName, Known, Start, StartError, StartInput, StartOutput, StartTerms,
    surfaces,
};
pub use stop::{STOP_WAITS_MS, STOP_WITHIN_MS};
pub use user_streams::{SocketAction, SocketEvent};
pub use writer::{
    BLOCKS_UNDER_WAY, JOURNAL_STALL_MS, Lag, ROLL_AGAIN_MS, SEAL_EVERY_MS, SEGMENT_AGE_MS,
    SEGMENT_BLOCKS, SEGMENT_BYTES,
};
