//! The journal: makes blocks of records durable, and gives them back after any end of the process.
//!
//! A *segment* is one sled directory, `journal/<number>/`, which begins with a *head* (what the
//! caller needs to go on from there: snapshot, configuration, strategy states) and holds sealed
//! blocks in order. The chain of hashes runs on through segments. A block is durable once it stands
//! in a small file of the segment, its tail; sled has it after that. sled survives kills but neither
//! all damage nor itself (see `store` and `reading`), so each fault that is known has its guard,
//! and what it gives back is believed only as far as our own chain and the mark beside it agree.
//!
//! Beside the segments stand three small files: the mark (what was durable last), the epoch
//! (promise 1) and the latch (a halt that outlives a lost journal).
//!
//! What may not enter: the venue, strategies, the meaning of records, and decisions by the clock.
//! Time is told where it matters; only the length of a write is measured here.

mod ban;
mod directory;
mod epoch;
mod export;
mod failure;
mod groups;
mod journal;
mod latch;
mod ledger;
mod mark;
mod market;
mod owner;
mod packed;
mod packing;
mod reading;
mod recovery;
mod reports;
mod retention;
mod segment;
mod small_file;
mod store;
mod tail;
mod verify;
mod watch;

pub use ban::Ban;
pub use directory::{Directory, LockError, last_epoch};
pub use epoch::EpochError;
pub use export::{Export, ExportError, Exported, export, segment, segments};
pub use failure::Failure;
pub use journal::{AppendError, BeginError, Journal, RollError};
pub use ledger::{Ledger, LedgerEntry, LedgerError, ledger};
pub use mark::Mark;
pub use owner::{Event, Hooks, Listener, Options, SyncHook};
pub use packed::Blocks;
pub use reading::StoredSegment;
pub use recovery::{OpenError, Ready, Recovered, Repair, Verdict, open};
pub use retention::{Keep, Pruned};
pub use small_file::SmallFileError;
pub use verify::{Problem, Report, SegmentReport, SegmentState, verify};
