//! The order rules against a slow reference that shares no code with them, example by example,
//! and as the table that strategy authors read.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod bands;
mod examples;
mod extremes;
mod generators;
mod parameters;
mod reference;
mod same_as_reference;
mod table;
