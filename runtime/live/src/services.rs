//! The services around the engine's thread: client, watchdog, journal folder, admin server, log and
//! metrics. No function here blocks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::watch;
use windvane_admin::metrics::table;
use windvane_admin::view::{JournalLag, Status};
use windvane_admin::{Heartbeat, Published, Steer, SteerReceiver};
use windvane_client::Client;
use windvane_engine::Engine;
use windvane_journal::{Directory, Keep};
use windvane_model::invariant::BrokenInvariant;
use windvane_model::run_state::{KillSwitch, RunState};
use windvane_model::{Notice, Surface, Time};
use windvane_session::{Guests, Module, Session, venue_surface};

use super::guests::LiveGuests;
use super::heartbeats::Troubles;
use super::kill_switch_file::KillSwitchFile;
use super::mailbox::Mailbox;
use super::new_config::ReadConfig;
use super::not_sent::NotSent;
use super::unsettled::Unsettled;
use super::{closes, forced, notice_log, retention, show, terms, venue_wait};
use crate::signer::Reach;
use crate::watchdog::Keeper;
use windvane_config::{Config, Leave, Mode};
use windvane_report::utc::utc_text;

/// The state is published at most this often.
const PUBLISH_EVERY: Duration = Duration::from_millis(100);
/// How often the journal's size is measured.
const MEASURE_EVERY: Duration = Duration::from_secs(10);

/// The services that the engine's thread uses.
pub struct Services {
    pub handle: Handle,
    /// The client of the venue; `None` on recordings.
    pub client: Option<Client>,
    pub mode: Mode,
    pub surfaces: Vec<Surface>,
    pub mailbox: Mailbox,
    pub publish: watch::Sender<Arc<Published>>,
    pub commands: SteerReceiver,
    pub heartbeat: Heartbeat,
    pub directory: Arc<Directory>,
    /// Which segments of the journal are kept.
    pub keep: Keep,
    /// The configuration in force.
    pub config: Arc<Config>,
    /// Reads the configuration again.
    pub read_config: ReadConfig,
    /// Writes the kill switch file.
    pub kill_switch_file: KillSwitchFile,
    /// Orders that this program itself holds back.
    pub not_sent: NotSent,
    /// Why the run is not ready yet.
    pub unsettled: Unsettled,
    /// Forced closes that the metrics already count.
    pub counted: forced::Counted,
    /// Problems that last for some time, for the log.
    pub troubles: Troubles,
    pub publication: StatusPublication,
    /// The watchdog process, if spot orders need one.
    pub keeper: Option<Keeper>,
    /// Whether the signer process answers; `None` if this process signs.
    pub signer: Option<Reach>,
}

/// Published values that do not come from the engine.
pub struct StatusPublication {
    started: Instant,
    published: Option<Instant>,
    since_ms: i64,
    ready: bool,
    /// When the journal's size was measured last.
    measured: Option<Instant>,
    /// Public frames since the last publication, by surface.
    frames: [u64; 2],
}

impl StatusPublication {
    /// Nothing is published yet. The run entered its state at `since_ms`, and its process started
    /// at `started`.
    pub const fn new(started: Instant, since_ms: i64) -> Self {
        Self {
            started,
            published: None,
            since_ms,
            ready: false,
            measured: None,
            frames: [0; 2],
        }
    }

    /// When the run entered its state, Unix milliseconds.
    pub const fn since_ms(&self) -> i64 {
        self.since_ms
    }
}

impl Services {
    /// Saves a snapshot of the engine for a bug report.
    pub fn keep_report(&self, now: Time, broken: BrokenInvariant, snapshot: Vec<u8>) {
        let directory = Arc::clone(&self.directory);
        let name = format!("{:013}.snapshot", now.millis());
        self.handle
            .spawn_blocking(move || match directory.keep_report(&name, &snapshot) {
                Ok(path) => {
                    tracing::error!(
                        %broken,
                        path = %path.display(),
                        "saved the engine's state: attach this file to a bug report"
                    );
                }
                Err(error) => tracing::error!(
                    %error,
                    "could not save the engine's state for a bug report; check the data folder's \
                     disk"
                ),
            });
    }

    /// Sends the watchdog process a sign of health.
    pub fn heartbeat(&self, number: u64) {
        if let Some(keeper) = &self.keeper {
            keeper.heartbeat(number);
        }
    }

    /// Ends the watchdog process, because the run ended normally.
    pub fn let_watchdog_go(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.end();
        }
    }

    /// Counts a public frame.
    pub const fn count_frame(&mut self, surface: Surface) {
        self.publication.frames[surface as usize] += 1;
    }

    /// Records how long blocks took to become durable.
    pub fn durable(took: Duration) {
        table::JOURNAL_DURABLE.of([]).record(took.as_secs_f64());
    }

    /// Deletes old segments and files that only they needed, on another thread.
    pub fn prune(&self, modules: &[Module]) {
        let (directory, keep) = (Arc::clone(&self.directory), self.keep);
        let running: Vec<_> = modules.iter().map(|(_, sha256)| *sha256).collect();
        self.handle
            .spawn_blocking(move || retention::prune(&directory, keep, &running));
    }

    /// Passes a notice to the log, the metrics and the published state.
    pub fn notice(&mut self, engine: &Engine, notice: &Notice) {
        if let Notice::ForcedClose { report, .. } = notice {
            self.counted.count(engine, report);
        }
        if let Notice::State { time, to, .. } = notice {
            self.publication.since_ms = time.millis();
            if *to == RunState::Ready && !std::mem::replace(&mut self.publication.ready, true) {
                let took = self.publication.started.elapsed();
                table::RECOVERY.of([]).set(took.as_secs_f64());
            }
        }
        self.not_sent.notice(engine, notice);
        self.troubles.log_notice(engine, notice);
        notice_log::log_notice(engine, notice);
    }

    /// The operator's next command, those that reduce risk first. Commands whose caller gave up are skipped, except those that
    /// reduce risk.
    pub fn next_command(&mut self) -> Option<Steer> {
        loop {
            let steer = self.commands.try_recv()?;
            if steer.is_wanted() {
                return Some(steer);
            }
        }
    }

    /// Publishes the current state, unless it was published a moment ago.
    pub fn publish(&mut self, session: &Session<LiveGuests>, journal: JournalLag, at_once: bool) {
        let now = Instant::now();
        self.heartbeat.mark_at(now);
        let lately = self
            .publication
            .published
            .is_some_and(|at| now < at + PUBLISH_EVERY);
        if lately && !at_once {
            return;
        }
        self.publication.published = Some(now);
        for (surface, frames) in Surface::ALL.iter().zip(&mut self.publication.frames) {
            let frames = std::mem::take(frames);
            if frames > 0 {
                let admin_channel = table::MARKET_EVENTS.of([surface.as_str()]);
                admin_channel.increment(frames);
            }
        }
        self.show_budget();
        self.measure_journal(now);
        let published = self.published(session, journal);
        self.publish.send_replace(Arc::new(published));
    }

    /// Measures the journal's size on another thread.
    fn measure_journal(&mut self, now: Instant) {
        let lately = |at| now < at + MEASURE_EVERY;
        if self.publication.measured.is_some_and(lately) {
            return;
        }
        self.publication.measured = Some(now);
        let directory = Arc::clone(&self.directory);
        self.handle.spawn_blocking(move || {
            // If a segment is deleted meanwhile, the next measurement counts the rest.
            if let Ok(bytes) = directory.journal_bytes() {
                table::JOURNAL_BYTES.of([]).set(bytes as f64);
            }
        });
    }

    fn show_budget(&self) {
        let Some(client) = &self.client else { return };
        for surface in &self.surfaces {
            let weights =
                |budget: &mut windvane_client::budget::Budget, now| budget.weights(now).next();
            let venue = venue_surface(*surface);
            if let Some((_, used, limit)) = client.with_budget(venue, weights) {
                let name = [surface.as_str()];
                table::WEIGHT_USED.of(name).set(f64::from(used));
                table::WEIGHT_LIMIT.of(name).set(f64::from(limit));
            }
            if let Some(offset) = client.clock().offset(venue) {
                let seconds = offset.offset_us as f64 / 1e6;
                table::CLOCK_OFFSET.of([surface.as_str()]).set(seconds);
            }
            for (lane, waited) in client.take_waits(venue) {
                let waited = waited.as_secs_f64();
                table::BUDGET_WAIT.of([lane.as_str()]).record(waited);
            }
            let bans = client.with_budget(venue, |budget, _| budget.bans());
            if bans > 0 {
                table::BANS.of([surface.as_str()]).absolute(bans.into());
            }
        }
    }

    fn published(&self, session: &Session<LiveGuests>, journal: JournalLag) -> Published {
        let (driver, engine) = (session.driver(), session.engine());
        let strategies = show::strategies(engine, session.modules(), session.kill_switch());
        let orders = show::orders(driver);
        let uptime = self.publication.started.elapsed().as_millis();
        let mut degraded_reasons = engine.describe_reasons(&engine.degraded_reasons());
        let silent = self.signer.as_ref().and_then(Reach::degraded_reason);
        let state = match engine.run_state() {
            // Nothing can be sent, although the engine knows its state.
            RunState::Ready if silent.is_some() => RunState::Degraded,
            state => state,
        };
        degraded_reasons.extend(silent);
        let status = Status {
            state: show::state(state),
            reason: self.reason(session),
            mode: show::mode(self.mode),
            since_ms: self.publication.since_ms,
            as_of_ms: engine.now().millis(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch: engine.epoch(),
            uptime_ms: u64::try_from(uptime).unwrap_or(u64::MAX),
            degraded_reasons,
            trading: show::trading(engine, &self.not_sent),
            refusals: show::refusals(engine),
            forced_closes: forced::rows(engine),
            terms: terms::rows(engine),
            strategies: show::counts(&strategies),
            cpu: driver.guests().cpu(),
            open_orders: show::own_orders(driver).count() as u64,
            journal,
            venue_waits: venue_wait::shown(engine),
            closes: closes::shown(engine),
            // The admin server fills it in.
            admin_problem: None,
        };
        Published {
            status,
            orders,
            positions: show::positions(engine),
            balances: show::balances(engine),
            strategies,
        }
    }

    /// Why the run is in its state, as one text for people.
    pub fn reason<G: Guests>(&self, session: &Session<G>) -> String {
        let engine = session.engine();
        if let Some(silent) = self.signer.as_ref().and_then(Reach::degraded_reason) {
            return match engine.run_state() {
                RunState::Ready => silent,
                _ => format!("{silent}; {}", self.reason_of_state(session)),
            };
        }
        let reason = self.reason_of_state(session);
        let waits = venue_wait::shown(engine);
        let waits = waits.iter().map(venue_wait::describe);
        let closes = closes::shown(engine);
        if engine.run_state() == RunState::Ready {
            let waits: Vec<_> = waits.chain(closes.iter().map(closes::describe)).collect();
            return if waits.is_empty() {
                reason
            } else {
                waits.join("; ")
            };
        }
        std::iter::once(reason)
            .chain(show::refused_cancels(session.driver()))
            .chain(waits)
            .chain(closes.iter().map(closes::describe))
            .collect::<Vec<_>>()
            .join("; ")
    }

    fn reason_of_state<G: Guests>(&self, session: &Session<G>) -> String {
        let engine = session.engine();
        match engine.run_state() {
            RunState::Ready => {
                let reasons = (session.kill_switch(), &self.not_sent);
                let mut hindrances = show::hindrances(engine, session.modules(), reasons);
                let last = self.signer.as_ref().and_then(Reach::hindrance);
                hindrances.extend(last.map(str::to_owned));
                if hindrances.is_empty() {
                    "no problem is known; orders are sent".to_owned()
                } else {
                    hindrances.join("; ")
                }
            }
            RunState::Degraded => engine
                .describe_reasons(&engine.degraded_reasons())
                .join("; "),
            RunState::Syncing => {
                if let Some(watch) = engine.instance_watch() {
                    return format!(
                        "found order {} of another instance, or of a data folder that was deleted. \
                         No order is sent until {}, while this run watches for new orders of \
                         another instance; if there are none, its orders that are still open are \
                         adopted",
                        watch.id,
                        utc_text(watch.until)
                    );
                }
                let compared = "comparing the account with the venue, no opening order is sent yet";
                let unsettled = self.unsettled.reason(engine);
                unsettled.map_or_else(|| compared.to_owned(), |why| format!("{compared}: {why}"))
            }
            RunState::Booting => {
                "restoring the state from the journal; no order is sent yet".to_owned()
            }
            RunState::Halted if engine.kill_switch() != KillSwitch::Halted => {
                let on_stop = match self.config.run.on_stop {
                    Leave::Cancel => "own orders are cancelled",
                    Leave::Keep => "own orders stay open, their countdowns are disarmed",
                    Leave::Flatten => "own orders are cancelled and positions closed",
                };
                format!("the run is stopping: {on_stop}. This does not halt the next start")
            }
            RunState::Halted | RunState::Paused => session.kill_switch().cause().to_owned(),
        }
    }
}
