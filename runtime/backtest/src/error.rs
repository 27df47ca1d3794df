//! Why a backtest did not happen, in one sentence each that says what to do next.

use std::path::PathBuf;

use windvane_model::rules::InstrumentError;
use windvane_sim::VenueConfigError;

use windvane_build::modules::ModuleError;
use windvane_recording::{RecordingError, ResolveError};
use windvane_report::ResultError;

/// Why a run did not happen.
#[derive(Debug, thiserror::Error)]
pub enum BacktestError {
    /// No strategy.
    #[error("the configuration has no [[strategy]]; add one with id, module and instruments")]
    NoStrategy,
    /// No data.
    #[error(
        "no recording to play: set [backtest] data = [\"FILE\"] or pass --data FILE; \
         `windvane data generate --out FILE` makes one"
    )]
    NoData,
    /// A recording that is not there.
    #[error(
        "recording {} does not exist; record or download one, or make one with \
         `windvane data generate --out {}`",
        .0.display(), .0.display()
    )]
    MissingData(PathBuf),
    /// Recordings without any event.
    #[error(
        "the recordings hold no market event: {0}; name another with --data FILE, or make one with \
         `windvane data generate --out FILE`"
    )]
    EmptyData(String),
    /// A strategy's module cannot be had.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// `start` refused.
    #[error("strategy {strategy} cannot start: {reason}; mend its params")]
    Refused {
        /// Its id.
        strategy: String,
        /// Its reason.
        reason: String,
    },
    /// The rules of an instrument cannot be had.
    #[error(transparent)]
    Rules(#[from] ResolveError),
    /// The rules of an instrument cannot be used.
    #[error(transparent)]
    Instrument(#[from] InstrumentError),
    /// The simulated account cannot be.
    #[error("[sim]: {0}")]
    Venue(#[from] VenueConfigError),
    /// The recording could not be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The results could not be written.
    #[error(transparent)]
    Results(#[from] ResultError),
}

impl BacktestError {
    /// Whether the user's configuration or files are at fault, and not the machine.
    pub const fn is_usage(&self) -> bool {
        match self {
            Self::Module(error) => error.is_usage(),
            error => !matches!(error, Self::Results(_)),
        }
    }
}
