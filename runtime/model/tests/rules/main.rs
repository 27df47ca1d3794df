//! Tests of the order rules: against a slow reference that shares no code with them, and by
//! examples.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod bands;
mod examples;
mod extremes;
mod generators;
mod parameters;
mod reference;
mod same_as_reference;
