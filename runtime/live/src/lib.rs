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
mod blocking;
mod boot_commands;
mod call_watch;
mod cancels;
pub mod check;
pub(crate) mod clock;
mod closes;
pub mod confinement;
pub mod connection;
mod cores;
mod cpu_account;
mod cpu_latency;
mod environment;
mod error;
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
mod market;
pub mod memory;
mod new_config;
mod not_sent;
mod notice_log;
pub mod open_files;
mod outputs;
mod player;
mod playing;
mod recover;
mod reload;
mod results;
pub mod retention;
mod running;
mod services;
mod show;
pub mod signer;
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

use std::sync::{Arc, OnceLock};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use windvane_admin::{Command, Notifier, Steer, SteerSender};
use windvane_journal::Directory;

use windvane_config::Config;
use windvane_report::Summary;

use admin_bridge::AdminBridge;
pub use admin_bridge::TOKEN_FILE;
pub use error::LiveError;
pub use identity::AccountDigests;
pub use market::{Market, Playing};
pub use new_config::ReadConfig;
pub use player::Pace;
use running::Signals;

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
    let (admin_bridge, admin_channel) = AdminBridge::open(config, &directory).await?;
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
    let alive = admin_bridge.keep_alive();
    let began = tokio::select! {
        began = startup::start(config, market, parts) => Some(began?),
        () = signals.next() => None,
    };
    drop(alive);
    let ended = match began {
        Some(mut running) => tokio::select! {
            ended = running.wait(&mut signals) => ended,
            () = notifier.keep(admin_bridge.heartbeat.clone(), admin_bridge.published.clone()) => running.ended().await,
            () = reload_on_hangup(&mut hangups, &admin_bridge.steer, &notifier) => running.ended().await,
        },
        None => unreached(known.into_inner()),
    };
    notifier.stopping();
    admin_bridge.stop().await;
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
async fn reload_on_hangup(hangups: &mut Signal, commands: &SteerSender, notifier: &Notifier) {
    while hangups.recv().await.is_some() {
        notifier.reloading();
        let (answer, answered) = oneshot::channel();
        if commands
            .send(Steer::new(Command::Reload, answer))
            .await
            .is_ok()
        {
            // The engine's thread logs the result.
            let _ = answered.await;
        }
        notifier.ready();
    }
}
