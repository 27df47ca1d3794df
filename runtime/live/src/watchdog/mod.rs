//! The watchdog process of spot orders. Spot has no `countdownCancelAll`, so a run starts this
//! program a second time as a separate process. That process cancels the run's own spot orders when
//! the run dies or when its signs of health stop, and then ends
//! (`docs/promises.md#4-dead-mans-switch`).
//!
//! The two processes talk over stdin and stdout of the watchdog, one JSON message per line. The
//! arguments name the orders to watch. They contain no keys: the signer process signs, or the watchdog
//! reads the configuration itself.
//!
//! This module makes no decisions. They are in `windvane_session::watchdog`.

mod keeper;
mod process;
mod stderr_writer;

pub use keeper::{Keeper, ProcessArguments};
pub(crate) use process::ignore_signals;
pub use process::{WatchdogError, watch};
pub use stderr_writer::StderrWriter;
pub use windvane_session::watchdog::WatchdogPlan as Plan;

/// Longest message between the two processes, bytes. A longer one is cut, and then not valid.
const LINE_BYTES_MAX: usize = 4 << 20;
