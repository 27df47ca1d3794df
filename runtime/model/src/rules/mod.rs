//! The rules that an order must keep before it may cost a request (promise 6): which rule an
//! order breaks, the values, and the venue's code for it.
//!
//! Pure functions of terms, instrument and a small context. What may not enter: the state of the
//! engine, and any limit of ours (their numbers stand in [`Rule`], their checks elsewhere).

mod check;
mod compiled;
mod filters;
mod parameters;
mod position;
mod ratio;
mod rejection;

pub use check::{OrderContext, check};
pub use compiled::{CompiledRules, InstrumentError};
pub use rejection::{Rejection, Rule};
