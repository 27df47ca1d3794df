//! Errors that prevent or end a backtest. Each message is one sentence that says what to do next.

use std::path::PathBuf;

use windvane_model::rules::InstrumentError;
use windvane_sim::VenueConfigError;

use windvane_build::modules::ModuleError;
use windvane_recording::{RecordingError, ResolveError};
use windvane_report::ResultError;

/// Why a backtest did not finish.
#[derive(Debug, thiserror::Error)]
pub enum BacktestError {
    /// The configuration has no strategy.
    #[error("the configuration has no [[strategy]]; add one with id, module and instruments")]
    NoStrategy,
    /// The configuration names no recording.
    #[error(
        "there is no recording to play: set [backtest] data = [\"FILE\"] or pass --data FILE; \
         `windvane data generate --out FILE` makes one"
    )]
    NoData,
    /// A recording does not exist.
    #[error(
        "recording {} does not exist; record or download one, or generate one with \
         `windvane data generate --out {}`",
        .0.display(), .0.display()
    )]
    MissingData(PathBuf),
    /// The recordings contain no market event.
    #[error(
        "the recordings contain no market event: {0}; use another with --data FILE, or generate \
         one with `windvane data generate --out FILE`"
    )]
    EmptyData(String),
    /// A strategy's module cannot be built or loaded.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// A strategy's `start` returned an error.
    #[error("strategy {strategy} cannot start: {reason}; correct its params")]
    Refused {
        /// Id of the strategy.
        strategy: String,
        /// The strategy's reason.
        reason: String,
    },
    /// No rules were found for an instrument.
    #[error(transparent)]
    Rules(#[from] ResolveError),
    /// The rules of an instrument are invalid.
    #[error(transparent)]
    Instrument(#[from] InstrumentError),
    /// The simulated account cannot be created.
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
    /// Whether the cause is the user's configuration or files, and not the machine.
    pub const fn is_usage(&self) -> bool {
        match self {
            Self::Module(error) => error.is_usage(),
            error => !matches!(error, Self::Results(_)),
        }
    }
}
