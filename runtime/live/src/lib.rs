//! A live run: one thread that owns engine, strategies and journal (`pulse`), and tasks around it
//! that carry requests, hear streams, read clocks and serve people. What happened reaches the
//! thread through its mailbox, in order.
//!
//! What may never enter here: decisions about orders. The engine makes them.

mod awake;
pub mod bans;
mod begin;
pub mod check;
pub(crate) mod clock;
mod closes;
pub mod connection;
mod cores;
mod desk;
pub mod exchange;
mod forced;
pub mod guests;
mod heartbeats;
pub(crate) mod http;
mod identity;
mod latch;
pub(crate) mod mailbox;
pub mod memory;
mod not_sent;
mod outside;
mod player;
mod playing;
mod pulse;
mod recover;
mod reload;
mod remains;
mod results;
pub mod retention;
mod show;
mod sockets;
mod stage;
pub mod start;
mod steering;
mod tell;
mod terms;
mod thread;
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

use desk::Desk;
pub use desk::TOKEN_FILE;
use mailbox::Mailbox;
pub use player::Pace;
use pulse::Finish;
pub use reload::Reread;
use windvane_session::{StartError, weights};

/// After the second signal the process ends within this, whatever hangs.
const HURRY: Duration = Duration::from_secs(2);

/// Why a run did not come about, or ended badly.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// Nothing is configured to run.
    #[error("no strategy is configured: add a [[strategy]]")]
    NoStrategy,
    /// A module cannot be had.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The data directory is somebody else's.
    #[error(transparent)]
    Lock(#[from] windvane_journal::LockError),
    /// The journal cannot be opened.
    #[error(transparent)]
    Open(#[from] windvane_journal::OpenError),
    /// No segment could be begun.
    #[error(transparent)]
    Begin(#[from] windvane_journal::BeginError),
    /// No epoch.
    #[error(transparent)]
    Epoch(#[from] windvane_journal::EpochError),
    /// The process does not begin.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The data folder is one of the other mode.
    #[error(transparent)]
    OtherMode(#[from] recover::OtherMode),
    /// The venue's words cannot be used.
    #[error(transparent)]
    Start(Box<StartError>),
    /// The venue's limits do not hold what is configured.
    #[error(transparent)]
    Overbooked(#[from] weights::Overbooked),
    /// The simulated account.
    #[error(transparent)]
    Paper(#[from] windvane_session::paper::PaperError),
    /// Recordings cannot be played.
    #[error(transparent)]
    Recordings(Box<BacktestError>),
    /// The results of a run on recordings cannot be written.
    #[error(transparent)]
    Results(#[from] ResultError),
    /// Everything was played before.
    #[error(
        "the account in {} has heard all of the recordings, up to {until}: name a later one with \
         --data, or begin anew with another run.data_dir",
        data_dir.display()
    )]
    Played {
        /// The last event that was heard.
        until: String,
        /// The folder.
        data_dir: PathBuf,
    },
    /// Latency is drawn from a recording's only in a backtest.
    #[error("sim.latency = \"recorded\" is for backtests: set sim.latency_ms for a paper run")]
    Latency,
    /// Nobody trades on recordings but a simulated account.
    #[error("recordings have no account: set run.mode = \"paper\"")]
    NoAccount,
    /// No client.
    #[error(transparent)]
    Client(#[from] windvane_client::TransportError),
    /// A stream cannot begin.
    #[error(transparent)]
    Stream(#[from] windvane_client::streams::StreamStartError),
    /// The admin server cannot start.
    #[error(transparent)]
    Admin(#[from] windvane_admin::StartError),
    /// No token for it.
    #[error(transparent)]
    Token(#[from] windvane_admin::TokenError),
    /// The secret of the token cannot be read.
    #[error("admin.token: {0}")]
    Secret(#[from] windvane_config::SecretError),
    /// Metrics.
    #[error(transparent)]
    Metrics(#[from] windvane_admin::metrics::AlreadyInstalled),
    /// The service manager cannot be told.
    #[error(transparent)]
    Notify(#[from] windvane_admin::service::NotifyError),
    /// The operating system refuses something.
    #[error("the operating system refuses: {0}")]
    System(#[from] std::io::Error),
    /// The engine's thread broke.
    #[error(
        "the engine's thread broke, which is a bug. Own orders may rest: the venue's countdown cancels \
         those on futures, the watchdog process those on spot. Start again, which adopts what is left"
    )]
    Broken,
    /// Another instance trades on the account.
    #[error(
        "another instance trades on this account: it placed order {order}, which this data folder \
         never gave out. This instance placed no order and ends. Stop the other one and start again, \
         or start with --take-over if its orders belong to this one"
    )]
    AnotherInstance {
        /// The order that it placed.
        order: String,
    },
    /// It did not end in order.
    #[error(
        "the stop was not finished: {left}. The venue's countdown cancels what rests on futures, the \
         watchdog process what rests on spot. Look at the account, or start again, which adopts what is \
         left{unknown}"
    )]
    Hurried {
        /// Own orders that may rest, in words.
        left: String,
        /// What is not known of the account, as a sentence; may be empty.
        unknown: String,
    },
    /// It was stopped before the account was reached, and the journal holds orders or positions.
    #[error(
        "stopped before the account was reached: nothing was cancelled or closed. The journal of the \
         process before holds {left}. On futures the venue's countdown cancels what rests, if one still \
         runs; spot has none. Start again, or cancel and close by hand at the venue"
    )]
    Unreached {
        /// What the journal holds, in words.
        left: String,
    },
    /// `on_stop = "flatten"` did not close everything.
    #[error(
        "on_stop = \"flatten\" did not close everything: {left}; {resting}. Close it by hand at the venue, or \
         start again and use `windvane flatten`{unknown}"
    )]
    NotFlat {
        /// What is left, in words.
        left: String,
        /// Own orders that may rest, in words.
        resting: String,
        /// What is not known of the account, as a sentence; may be empty.
        unknown: String,
    },
}

impl From<StartError> for LiveError {
    fn from(error: StartError) -> Self {
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

/// How recordings are played.
#[derive(Clone, Debug)]
pub struct Playing {
    /// How fast.
    pub pace: Pace,
    /// Folder of the result files.
    pub out: Option<PathBuf>,
}

/// What a run hears of the market from.
#[derive(Debug)]
pub enum Market {
    /// The venue, through a client of these settings.
    Venue(Box<windvane_client::Settings>),
    /// The recordings of `backtest.data`.
    Recordings(Playing),
}

impl LiveError {
    /// Whether the configuration is at fault.
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
                matches!(**error, StartError::NotListed(_) | StartError::NoAddress)
            }
            Self::Module(error) => error.is_usage(),
            _ => false,
        }
    }
}

/// Runs until it is asked to end, or until its recordings end: those have a summary. `watchdog`
/// says how the watchdog process of spot orders is started, `reread` reads the configuration again.
/// With `take_over` the orders of another instance are adopted without a watch.
///
/// # Errors
/// It did not come about, or did not end in order.
pub async fn run(
    config: &Config,
    market: Market,
    watchdog: watchdog::Begin,
    reread: Reread,
    take_over: bool,
) -> Result<Option<Summary>, LiveError> {
    if config.strategies.is_empty() {
        return Err(LiveError::NoStrategy);
    }
    let directory = Arc::new(Directory::lock(&config.run.data_dir)?);
    let mut signals = Signals::new()?;
    let mut hangups = signal(SignalKind::hangup())?;
    let notifier = Notifier::from_env()?;
    let (desk, counter) = Desk::open(config).await?;
    notifier.ready();
    let known = OnceLock::new();
    let start = begin::Start {
        directory,
        counter,
        watchdog,
        reread,
        take_over,
        known: &known,
    };
    let began = tokio::select! {
        began = begin::begin(config, market, start) => Some(began?),
        () = signals.next() => None,
        () = desk.keep_alive() => None,
    };
    let ended = match began {
        Some(mut running) => tokio::select! {
            ended = running.wait(&mut signals) => ended,
            () = notifier.keep(desk.beat.clone(), desk.published.clone()) => running.ended().await,
            () = reload_on_hangup(&mut hangups, &desk.steer, &notifier) => running.ended().await,
        },
        None => unreached(known.into_inner()),
    };
    notifier.stopping();
    desk.server.stop().await;
    ended
}

/// The end of a start that was stopped, by what the journal holds.
fn unreached(known: Option<String>) -> Result<Option<Summary>, LiveError> {
    match known.filter(|left| !left.is_empty()) {
        Some(left) => Err(LiveError::Unreached { left }),
        None => Ok(None),
    }
}

/// SIGHUP is `windvane reload`. Ends when no signal can come any more.
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
            // The engine's thread logs what became of it.
            let _ = answered.await;
        }
        notifier.ready();
    }
}

/// A run that began.
struct Running {
    stop: Sender<()>,
    mailbox: Mailbox,
    ended: oneshot::Receiver<Finish>,
}

impl Running {
    /// Waits for its end; the first signal asks for it, the second forces it.
    async fn wait(&mut self, signals: &mut Signals) -> Result<Option<Summary>, LiveError> {
        let asked = tokio::select! {
            ended = self.ended() => return ended,
            () = signals.next() => self.ask_to_stop(),
        };
        tracing::info!(asked, "stopping; a second signal ends at once");
        tokio::select! {
            ended = self.ended() => return ended,
            () = signals.next() => self.ask_to_stop(),
        };
        // A disk that hangs must not hold the end up.
        let ended = tokio::time::timeout(HURRY, self.ended()).await;
        ended.unwrap_or_else(|_| {
            let left =
                "a second signal came, and the engine's thread did not end in time".to_owned();
            let unknown = String::new();
            Err(LiveError::Hurried { left, unknown })
        })
    }

    fn ask_to_stop(&self) -> bool {
        let asked = self.stop.send(()).is_ok();
        self.mailbox.nudge();
        asked
    }

    async fn ended(&mut self) -> Result<Option<Summary>, LiveError> {
        let finish = (&mut self.ended).await.map_err(|_| LiveError::Broken)?;
        let unknown = match finish.unknown.as_str() {
            "" => String::new(),
            unknown => format!(". Not everything of the account was read: {unknown}"),
        };
        if !finish.remains.is_empty() {
            let left: Vec<_> = finish.remains.iter().map(ToString::to_string).collect();
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

/// The signals that ask for the end.
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
