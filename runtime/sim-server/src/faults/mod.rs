//! Fault switches and their effects on requests, user events and public frames. The control port
//! sets them.

mod active;
mod fields;
mod gaps;
mod plan;
mod switch;

pub(crate) use active::{Faults, SWITCHES_MAX, Seen};
pub(crate) use fields::{FieldError, Fields, required};
pub(crate) use gaps::Gaps;
pub(crate) use plan::{Ended, Ending, Plan, ended};
pub(crate) use switch::{Fault, SURFACES, Switch, Target, names};
