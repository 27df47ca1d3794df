//! The progress that a run reports.

use std::path::Path;

/// The current step of a run.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// Decoding a recording for the first time.
    Decoding {
        /// The recording.
        file: &'a Path,
        /// Bytes read.
        done: u64,
        /// Total bytes.
        of: u64,
    },
    /// Building a strategy from source.
    Building {
        /// The current build step.
        step: &'a str,
    },
    /// Playing the market.
    Running {
        /// Virtual time played so far, nanoseconds.
        done: u64,
        /// Total virtual time, nanoseconds.
        of: u64,
    },
    /// A message that the reader of the results needs.
    Notice(&'a str),
}
