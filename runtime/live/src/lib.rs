//! The shell of a live or paper run. One thread (`event_loop`) owns engine, strategies and journal.
//! Tasks around it carry requests, read streams and clocks, and serve the operator. Every event
//! reaches the thread through its mailbox, in order. [`check`] has the preflight checks.
//!
//! `cli` uses this crate for `run`, `check` and the watchdog process. The fault simulator uses its
//! functions that build the parts of a run. It must not contain decisions about orders: the engine
//! and the session make them.

mod admin_bridge;
mod applied;
pub mod bans;
pub mod check;
pub(crate) mod clock;
mod closes;
pub mod connection;
mod cores;
mod cpu_latency;
mod environment;
mod event_loop;
pub mod exchange;
mod forced;
pub mod guests;
mod heartbeats;
pub(crate) mod http;
mod identity;
mod kill_switch_file;
mod loop_state;
pub(crate) mod mailbox;
pub mod memory;
mod new_config;
mod not_sent;
mod notice_log;
mod outputs;
mod player;
mod playing;
mod recover;
mod reload;
mod results;
pub mod retention;
mod services;
mod show;
mod sockets;
mod startup;
pub mod startup_steps;
mod steering;
mod terms;
mod thread;
mod unowned_positions;
mod unsettled;
mod venue_wait;
pub mod watchdog;

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use windvane_admin::{Command, Notifier, Steer};
use windvane_journal::Directory;
use windvane_session::Ended;
use windvane_session::recovery::RecoverError;

use windvane_backtest::BacktestError;
use windvane_build::modules::ModuleError;
use windvane_config::Config;
use windvane_recording::RecordingError;
use windvane_report::{ResultError, Summary};

use admin_bridge::AdminBridge;
pub use admin_bridge::TOKEN_FILE;
use loop_state::Finish;
use mailbox::Mailbox;
pub use new_config::ReadConfig;
pub use player::Pace;
use windvane_session::{StartupError, weights};

/// How long the process may take to end after the second signal, even if something hangs.
const HURRY: Duration = Duration::from_secs(2);

/// Why a run could not start, or ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// No strategy is configured.
    #[error("no strategy is configured: add a [[strategy]] to the configuration")]
    NoStrategy,
    /// A module cannot be loaded.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// Another process uses the data folder.
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
    OtherMode(#[from] recover::OtherMode),
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

/// How recordings are played back.
#[derive(Clone, Debug)]
pub struct Playing {
    /// The speed.
    pub pace: Pace,
    /// The folder for the result files.
    pub out: Option<PathBuf>,
}

/// The source of a run's market data.
#[derive(Debug)]
pub enum Market {
    /// The venue, through a client of these settings.
    Venue(Box<windvane_client::Settings>),
    /// The recordings of `backtest.data`.
    Recordings(Playing),
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
            | Self::Played { .. }
            | Self::Paper(_)
            | Self::Latency
            | Self::NoAccount
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

/// Runs until a signal or an error ends it, or until its recordings end; a run on recordings
/// returns a summary. `watchdog` is how to start the watchdog process of spot orders. `read_config`
/// reads the configuration again. With `take_over`, orders of another instance are adopted without
/// a watch.
///
/// # Errors
/// The run could not start, or did not end normally.
pub async fn run(
    config: &Config,
    market: Market,
    watchdog: watchdog::ProcessArguments,
    read_config: ReadConfig,
    take_over: bool,
) -> Result<Option<Summary>, LiveError> {
    if config.strategies.is_empty() {
        return Err(LiveError::NoStrategy);
    }
    let directory = Arc::new(Directory::lock(&config.run.data_dir)?);
    let mut signals = Signals::new()?;
    let mut hangups = signal(SignalKind::hangup())?;
    let notifier = Notifier::from_env()?;
    let (admin_bridge, admin_channel) = AdminBridge::open(config).await?;
    notifier.ready();
    let known = OnceLock::new();
    let parts = startup::StartupParts {
        directory,
        admin_channel,
        watchdog,
        read_config,
        take_over,
        known: &known,
    };
    let began = tokio::select! {
        began = startup::start(config, market, parts) => Some(began?),
        () = signals.next() => None,
        () = admin_bridge.keep_alive() => None,
    };
    let ended = match began {
        Some(mut running) => tokio::select! {
            ended = running.wait(&mut signals) => ended,
            () = notifier.keep(admin_bridge.heartbeat.clone(), admin_bridge.published.clone()) => running.ended().await,
            () = reload_on_hangup(&mut hangups, &admin_bridge.steer, &notifier) => running.ended().await,
        },
        None => unreached(known.into_inner()),
    };
    notifier.stopping();
    admin_bridge.server.stop().await;
    ended
}

/// The result of a start that was stopped early. `known` describes the journal's orders and
/// positions.
fn unreached(known: Option<String>) -> Result<Option<Summary>, LiveError> {
    match known.filter(|left| !left.is_empty()) {
        Some(left) => Err(LiveError::Unreached { left }),
        None => Ok(None),
    }
}

/// Handles SIGHUP like `windvane reload`. Returns when no signal can come any more.
async fn reload_on_hangup(
    hangups: &mut Signal,
    commands: &mpsc::Sender<Steer>,
    notifier: &Notifier,
) {
    while hangups.recv().await.is_some() {
        notifier.reloading();
        let (answer, answered) = oneshot::channel();
        let steer = Steer {
            command: Command::Reload,
            strategy: None,
            config: None,
            answer,
        };
        if commands.send(steer).await.is_ok() {
            // The engine's thread logs the result.
            let _ = answered.await;
        }
        notifier.ready();
    }
}

/// A run that has started.
struct Running {
    stop: Sender<()>,
    mailbox: Mailbox,
    ended: oneshot::Receiver<Finish>,
}

impl Running {
    /// Waits for the end of the run. The first signal requests it, the second forces it.
    async fn wait(&mut self, signals: &mut Signals) -> Result<Option<Summary>, LiveError> {
        let is_requested = tokio::select! {
            ended = self.ended() => return ended,
            () = signals.next() => self.request_stop(),
        };
        tracing::info!(
            is_requested,
            "stopping as run.on_stop says; a second signal ends the process at once and may leave \
             orders open"
        );
        tokio::select! {
            ended = self.ended() => return ended,
            () = signals.next() => self.request_stop(),
        };
        // A disk that hangs must not delay the end.
        let ended = tokio::time::timeout(HURRY, self.ended()).await;
        ended.unwrap_or_else(|_| {
            let left =
                "a second signal came, and the engine's thread did not end within 2 s".to_owned();
            let unknown = String::new();
            Err(LiveError::Hurried { left, unknown })
        })
    }

    fn request_stop(&self) -> bool {
        let is_requested = self.stop.send(()).is_ok();
        self.mailbox.nudge();
        is_requested
    }

    async fn ended(&mut self) -> Result<Option<Summary>, LiveError> {
        let finish = (&mut self.ended).await.map_err(|_| LiveError::Broken)?;
        let unknown = match finish.unknown.as_str() {
            "" => String::new(),
            unknown => format!(". The account was not read completely: {unknown}"),
        };
        if !finish.unclosed.is_empty() {
            let left: Vec<_> = finish.unclosed.iter().map(ToString::to_string).collect();
            return Err(LiveError::NotFlat {
                left: left.join(", "),
                resting: finish.resting,
                unknown,
            });
        }
        match finish.ended {
            Ended::Stopped => Ok(finish.results.transpose()?),
            Ended::Hurried => Err(LiveError::Hurried {
                left: finish.resting,
                unknown,
            }),
            Ended::AnotherInstance(order) => Err(LiveError::AnotherInstance {
                order: order.as_str().to_owned(),
            }),
        }
    }
}

/// The signals that request the end of the run.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
