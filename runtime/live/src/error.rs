//! Why a run could not start, or ended with an error.

use std::path::PathBuf;

use windvane_session::recovery::RecoverError;
use windvane_session::{StartupError, weights};

use super::recover::OtherMode;
use windvane_backtest::BacktestError;
use windvane_build::modules::ModuleError;
use windvane_recording::RecordingError;
use windvane_report::ResultError;

/// Why a run could not start, or ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// No strategy is configured.
    #[error("no strategy is configured: add a [[strategy]] to the configuration")]
    NoStrategy,
    /// A module cannot be loaded.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// Another process uses the data folder, or the folder cannot be created or locked.
    #[error(transparent)]
    Lock(#[from] windvane_journal::LockError),
    /// The journal cannot be opened.
    #[error(transparent)]
    Open(#[from] windvane_journal::OpenError),
    /// No segment could be started.
    #[error(transparent)]
    Begin(#[from] windvane_journal::BeginError),
    /// No epoch could be reserved.
    #[error(transparent)]
    Epoch(#[from] windvane_journal::EpochError),
    /// The state of the earlier process cannot be restored, or a strategy refuses to start.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The data folder was used in the other mode (paper, live).
    #[error(transparent)]
    OtherMode(#[from] OtherMode),
    /// The venue's responses at the start cannot be used.
    #[error(transparent)]
    Start(Box<StartupError>),
    /// The configuration needs more request weight than the venue allows.
    #[error(transparent)]
    Overbooked(#[from] weights::Overbooked),
    /// The simulated account cannot be made.
    #[error(transparent)]
    Paper(#[from] windvane_session::paper::PaperError),
    /// Recordings cannot be played.
    #[error(transparent)]
    Recordings(Box<BacktestError>),
    /// The results of a run on recordings cannot be written.
    #[error(transparent)]
    Results(#[from] ResultError),
    /// The simulated account has received every event of the recordings.
    #[error(
        "the simulated account in {} has received all events of the recordings, up to {until}. \
         Nothing was started. Name a later recording with --data, or start a new account with \
         another run.data_dir",
        data_dir.display()
    )]
    Played {
        /// The time of the last event that the account received.
        until: String,
        /// The folder.
        data_dir: PathBuf,
    },
    /// `sim.latency = "recorded"` works in a backtest only.
    #[error(
        "sim.latency = \"recorded\" works in backtests only: set sim.latency_ms for a paper run"
    )]
    Latency,
    /// Recordings need a simulated account.
    #[error(
        "a live run cannot trade on recordings, they have no account: set run.mode = \"paper\""
    )]
    NoAccount,
    /// The client cannot be made.
    #[error(transparent)]
    Client(#[from] windvane_client::TransportError),
    /// A stream cannot start.
    #[error(transparent)]
    Stream(#[from] windvane_client::streams::StreamStartError),
    /// The admin server cannot start.
    #[error(transparent)]
    Admin(#[from] windvane_admin::StartError),
    /// The token of the admin server cannot be made or read.
    #[error(transparent)]
    Token(#[from] windvane_admin::TokenError),
    /// The secret of the token cannot be read.
    #[error("admin.token: {0}")]
    Secret(#[from] windvane_config::SecretError),
    /// The metrics recorder cannot be installed.
    #[error(transparent)]
    Metrics(#[from] windvane_admin::metrics::AlreadyInstalled),
    /// The service manager cannot be notified.
    #[error(transparent)]
    Notify(#[from] windvane_admin::service::NotifyError),
    /// The operating system refuses a resource.
    #[error("the operating system refused a resource: {0}")]
    System(#[from] std::io::Error),
    /// The engine's thread ended with a panic.
    #[error(
        "the engine's thread failed, which is a bug. Own orders may still be open: the venue's \
         countdown cancels those on futures, the watchdog process those on spot. Start again, \
         which adopts the rest"
    )]
    Broken,
    /// Another instance trades on the account.
    #[error(
        "another instance trades on this account: it placed order {order}, which this data folder \
         did not create. This instance placed no order and ends. Stop the other one and start \
         again, or start with --take-over if its orders belong to this one"
    )]
    AnotherInstance {
        /// The order that it placed.
        order: String,
    },
    /// The stop was not completed.
    #[error(
        "the stop was not finished: {left}. The venue's countdown cancels open orders on futures, \
         the watchdog process those on spot. Check the account at the venue, or start again, which \
         adopts the rest{unknown}"
    )]
    Hurried {
        /// Own orders that may be open, as a sentence.
        left: String,
        /// A sentence about what the run does not know of the account; may be empty.
        unknown: String,
    },
    /// The run was stopped before it reached the account, and the journal contains orders or
    /// positions.
    #[error(
        "stopped before the account was reached: nothing was cancelled or closed. The journal of \
         the earlier process contains {left}. On futures the venue's countdown cancels open \
         orders, if one still runs; spot has none. Start again, or cancel and close by hand at the \
         venue"
    )]
    Unreached {
        /// The orders and positions in the journal, as text.
        left: String,
    },
    /// `on_stop = "flatten"` did not close everything.
    #[error(
        "on_stop = \"flatten\" did not close everything: {left}; {resting}. Close it by hand at \
         the venue, or start again and run `windvane flatten`{unknown}"
    )]
    NotFlat {
        /// The positions that are left, as text.
        left: String,
        /// Own orders that may be open, as a sentence.
        resting: String,
        /// A sentence about what the run does not know of the account; may be empty.
        unknown: String,
    },
}

impl From<StartupError> for LiveError {
    fn from(error: StartupError) -> Self {
        Self::Start(Box::new(error))
    }
}

impl From<BacktestError> for LiveError {
    fn from(error: BacktestError) -> Self {
        Self::Recordings(Box::new(error))
    }
}

impl From<RecordingError> for LiveError {
    fn from(error: RecordingError) -> Self {
        BacktestError::from(error).into()
    }
}

impl LiveError {
    /// Whether the configuration or the operator's request is the cause.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NoStrategy
            | Self::Recover(RecoverError::Refused { .. })
            | Self::Stream(_)
            | Self::Secret(_)
            | Self::Token(windvane_admin::TokenError::Text { .. })
            | Self::Admin(
                windvane_admin::StartError::NotLoopback(_)
                | windvane_admin::StartError::Bind { .. },
            )
            | Self::Played { .. }
            | Self::Paper(_)
            | Self::Latency
            | Self::NoAccount
            | Self::Lock(
                windvane_journal::LockError::NotPrivate { .. }
                | windvane_journal::LockError::NotAJournal { .. },
            )
            | Self::AnotherInstance { .. }
            | Self::OtherMode(_)
            | Self::Overbooked(_) => true,
            Self::Recordings(error) => error.is_usage(),
            Self::Start(error) => {
                matches!(
                    **error,
                    StartupError::NotListed(_) | StartupError::NoAddress
                )
            }
            Self::Module(error) => error.is_usage(),
            _ => false,
        }
    }
}
