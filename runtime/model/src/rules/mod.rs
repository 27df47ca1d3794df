//! The rules that an order must satisfy before it may cost a request
//! (`docs/promises.md#6-checked-before-sending`). A rejection names the broken rule, the values and
//! the venue's code for it.
//!
//! These are pure functions of terms, instrument and a small context. They must not use the state
//! of the engine or check our own limits. The numbers of our own limits are defined in [`Rule`];
//! other modules check them.

mod check;
mod compiled;
mod context;
mod filters;
mod parameters;
mod position;
mod ratio;
mod rejection;

pub use check::check;
pub use compiled::{CompiledRules, InstrumentError};
pub use context::OrderContext;
pub use rejection::{Rejection, Rule};
