//! The watchdog process of spot orders. Spot has no `countdownCancelAll`, so a run starts this
//! program a second time beside itself: that process cancels the run's own spot orders once the run
//! dies or its signs of health stay away, and ends (promise 4).
//!
//! They talk over the pipes of stdin and stdout, one JSON word a line. What is watched is in the
//! arguments; keys are not: the process reads the configuration itself.
//!
//! What may never enter here: what the watchdog decides, which is `windvane_session::watchdog`.

mod aside;
mod keeper;
mod process;

pub use aside::Aside;
pub use keeper::{Begin, Keeper};
pub use process::{WatchdogError, watch};
pub use windvane_session::watchdog::WatchdogPlan as Plan;
