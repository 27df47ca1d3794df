//! The journal: makes blocks of records durable, and returns them after any end of the process.
//!
//! A *segment* is one sled directory, `journal/<number>/`. It begins with a *checkpoint*:
//! everything that the caller needs to continue from there (snapshot, configuration, strategy
//! states). After the checkpoint come finished blocks of records, in order. The chain of hashes
//! continues across segments.
//!
//! A block is durable once it is in the write-ahead log (*WAL*), the small file `tail`; sled gets it
//! after that. sled survives kills, but not all damage, and it has faults of its own (see `store` and
//! `reading`). So each known fault has a guard. The content of sled is trusted only as far as our
//! own chain and the mark file confirm it.
//!
//! Beside the segments there are three small files: the mark (what was durable last), the epoch
//! (`docs/promises.md#1-order-ids`) and the kill switch file, `latch` (a halt in it survives a lost
//! journal).
//!
//! `live` uses it to write the journal, `replay` and `cli` use it to read the journal. This crate
//! must never contain the venue, strategies, the meaning of records, or decisions by the clock. The
//! caller supplies the time where it matters; only the duration of writes is measured here.

mod ban;
mod checksum;
mod directory;
mod epoch;
mod event;
mod export;
mod failure;
mod groups;
mod journal;
mod kill_switch;
mod layout;
mod ledger;
mod mark;
mod market;
mod options;
mod owner;
mod packed;
mod packing;
mod reading;
mod records;
mod recovery;
mod reports;
mod retention;
mod segment;
mod small_file;
mod store;
mod verify;
mod wal;
mod watch;

pub use ban::Ban;
pub use directory::{Directory, LockError, last_epoch, linked_journal};
pub use epoch::EpochError;
pub use event::{Event, Listener};
pub use export::{Export, ExportError, Exported, export, segment, segments};
pub use failure::Failure;
pub use journal::{AppendError, BeginError, Journal, RollError};
pub use ledger::{Ledger, LedgerEntry, LedgerError, ledger};
pub use mark::Mark;
pub use options::{Hooks, Options, SyncHook};
pub use packed::Blocks;
pub use reading::StoredSegment;
pub use recovery::{OpenError, Ready, Recovered, Repair, Verdict, open};
pub use retention::{Keep, Pruned};
pub use small_file::SmallFileError;
pub use verify::{Problem, Report, SegmentReport, SegmentState, verify};
