//! The hands of the engine's thread: requests, streams, people. Nothing here waits for anything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, watch};
use windvane_admin::metrics::table;
use windvane_admin::view::{self, JournalLag, Status};
use windvane_admin::{Applied, Beat, Command as Word, Published, Refused, Steer};
use windvane_client::Client;
use windvane_engine::engine::Latch;
use windvane_engine::input::Command;
use windvane_engine::{Engine, Instrument, InstrumentId, Notice, Surface};
use windvane_journal::{Directory, Keep, Latch as Latched};

use super::latch::{Kept, LatchFile};
use super::mailbox::Mailbox;
use super::pulse::Module;
use super::{show, streams, tell};
use crate::config::Mode;
use crate::watchdog::Keeper;

/// People are shown a new state this often at most.
const PUBLISH_EVERY: Duration = Duration::from_millis(100);

/// What the thread reaches.
pub struct Outside {
    pub handle: Handle,
    /// The client of the venue; there is none beside recordings.
    pub client: Option<Client>,
    pub mode: Mode,
    pub surfaces: Vec<Surface>,
    pub mailbox: Mailbox,
    /// Asks the task of each user stream for a new connection.
    pub reconnects: BTreeMap<Surface, Arc<Notify>>,
    pub publish: watch::Sender<Arc<Published>>,
    pub steered: mpsc::Receiver<Steer>,
    pub beat: Beat,
    pub directory: Arc<Directory>,
    pub latch: LatchFile,
    pub modules: Vec<Module>,
    /// What the journal keeps.
    pub keep: Keep,
    pub showing: Showing,
    /// The watchdog process, where spot orders are to be watched.
    pub keeper: Option<Keeper>,
}

/// What is shown beside the engine's state.
pub struct Showing {
    started: Instant,
    published: Option<Instant>,
    since_ms: i64,
    state: view::State,
    /// Why it was halted or paused.
    cause: String,
    /// Public frames since the last time, by surface.
    frames: [u64; 2],
}

impl Showing {
    /// Nothing was shown yet; `latched` is what the file of the latch says.
    pub fn new(latched: &Latched) -> Self {
        let cause = match latched {
            Latched::Clear => String::new(),
            Latched::Paused { reason } | Latched::Halted { reason } => reason.clone(),
        };
        Self {
            started: Instant::now(),
            published: None,
            since_ms: 0,
            state: view::State::default(),
            cause,
            frames: [0; 2],
        }
    }
}

/// The mode in the words of the admin server.
pub const fn mode(mode: Mode) -> view::Mode {
    match mode {
        Mode::Live => view::Mode::Live,
        Mode::Paper => view::Mode::Paper,
    }
}

impl Outside {
    /// Gives the watchdog process a sign of health.
    pub fn beat(&self, number: u64) {
        if let Some(keeper) = &self.keeper {
            keeper.beat(number);
        }
    }

    /// Lets the watchdog process end: the run ended in order.
    pub fn let_watchdog_go(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.end();
        }
    }

    /// Connects a user stream anew.
    pub fn reconnect(&self, surface: Surface) {
        if let Some(reconnect) = self.reconnects.get(&surface) {
            reconnect.notify_one();
        }
    }

    /// Fetches the depth that the differences of an instrument wait for.
    pub fn fetch_depth(&self, id: InstrumentId, instrument: &Instrument) {
        if let Some(client) = &self.client {
            streams::fetch_depth(&self.handle, client, id, instrument, &self.mailbox);
        }
    }

    /// Counts a public frame.
    pub const fn count_frame(&mut self, surface: Surface) {
        self.showing.frames[surface as usize] += 1;
    }

    /// Blocks became durable.
    pub fn durable(took: Duration) {
        table::JOURNAL_DURABLE.of([]).record(took.as_secs_f64());
    }

    /// Drops old segments, beside the engine's thread.
    pub fn prune(&self) {
        let (directory, keep) = (Arc::clone(&self.directory), self.keep);
        self.handle
            .spawn_blocking(move || match directory.prune(keep, SystemTime::now()) {
                Ok(pruned) if pruned.segments.is_empty() => {}
                Ok(pruned) => {
                    let segments = pruned.segments.len();
                    tracing::info!(segments, bytes = pruned.bytes, "old segments were dropped");
                }
                Err(error) => tracing::warn!(%error, "old segments cannot be dropped"),
            });
    }

    /// Tells people.
    pub fn notice(&mut self, engine: &Engine, notice: &Notice) {
        if let Notice::Halted { limit, .. } = notice {
            self.showing.cause = match limit {
                Some(limit) => format!("{} was breached", limit.key()),
                None => "the operator asked for it".to_owned(),
            };
        }
        if let Notice::State { time, .. } = notice {
            self.showing.since_ms = time.millis();
        }
        tell::tell(engine, notice);
    }

    /// The next command of the operator that is still wanted.
    pub fn next_command(&mut self) -> Option<Steer> {
        loop {
            let steer = self.steered.try_recv().ok()?;
            if steer.is_wanted() {
                return Some(steer);
            }
        }
    }

    /// Has the latch written down where it changed.
    pub fn keep_latch(&mut self, engine: &Engine) {
        self.latch.keep(engine.latch(), &self.showing.cause);
    }

    /// Shows people what is now, unless they were shown a moment ago.
    pub fn publish(&mut self, engine: &Engine, journal: JournalLag, at_once: bool) {
        let now = Instant::now();
        self.beat.mark_at(now);
        let lately = self
            .showing
            .published
            .is_some_and(|at| now < at + PUBLISH_EVERY);
        if lately && !at_once {
            return;
        }
        self.showing.published = Some(now);
        for (surface, frames) in Surface::ALL.iter().zip(&mut self.showing.frames) {
            let frames = std::mem::take(frames);
            if frames > 0 {
                let counter = table::MARKET_EVENTS.of([surface.as_str()]);
                counter.increment(frames);
            }
        }
        self.show_budget();
        let published = self.published(engine, journal);
        self.publish.send_replace(Arc::new(published));
    }

    fn show_budget(&self) {
        let Some(client) = &self.client else { return };
        for surface in &self.surfaces {
            let weights =
                |budget: &mut windvane_client::budget::Budget, now| budget.weights(now).next();
            let venue = super::carrier::venue_surface(*surface);
            if let Some((_, used, limit)) = client.with_budget(venue, weights) {
                let name = [surface.as_str()];
                table::WEIGHT_USED.of(name).set(f64::from(used));
                table::WEIGHT_LIMIT.of(name).set(f64::from(limit));
            }
        }
    }

    fn published(&mut self, engine: &Engine, journal: JournalLag) -> Published {
        let strategies = show::strategies(engine, &self.modules);
        let orders = show::orders(engine);
        let state = show::state(engine.run_state());
        let as_of_ms = engine.now().millis();
        if state != self.showing.state || self.showing.since_ms == 0 {
            self.showing.state = state;
            self.showing.since_ms = self.showing.since_ms.max(as_of_ms);
        }
        let uptime = self.showing.started.elapsed().as_millis();
        let status = Status {
            state,
            reason: self.reason(engine),
            mode: mode(self.mode),
            since_ms: self.showing.since_ms,
            as_of_ms,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch: engine.epoch(),
            uptime_ms: u64::try_from(uptime).unwrap_or(u64::MAX),
            doubts: engine.doubts().iter().map(ToString::to_string).collect(),
            strategies: show::counts(&strategies),
            open_orders: orders.len() as u64,
            journal,
        };
        Published {
            status,
            orders,
            positions: show::positions(engine),
            balances: show::balances(engine),
            strategies,
        }
    }

    fn reason(&self, engine: &Engine) -> String {
        use windvane_engine::engine::RunState;
        match engine.run_state() {
            RunState::Ready => "nothing is in doubt".to_owned(),
            RunState::Degraded => {
                let doubts: Vec<_> = engine.doubts().iter().map(ToString::to_string).collect();
                doubts.join("; ")
            }
            RunState::Syncing => "the account is compared with the venue".to_owned(),
            RunState::Booting => "the journal is restored".to_owned(),
            RunState::Halted if engine.latch() != Latch::Halted => "it is stopping".to_owned(),
            RunState::Halted | RunState::Paused => self.showing.cause.clone(),
        }
    }

    /// What to do for a command, or why not.
    pub fn understood(steer: &Steer) -> Result<Command, Refused> {
        if steer.strategy.is_some() {
            return Err(Refused {
                error: "one strategy alone cannot be commanded".to_owned(),
                what_to_do: "leave the strategy out to command all".to_owned(),
            });
        }
        Ok(match steer.command {
            Word::Pause => Command::Pause,
            Word::Resume => Command::Resume,
            Word::Halt => Command::Halt,
            Word::Flatten => Command::Flatten,
            Word::Reload => {
                return Err(Refused {
                    error: "a running instance cannot load modules anew".to_owned(),
                    what_to_do: "stop it and start it again".to_owned(),
                });
            }
        })
    }

    /// The operator asked for it: the reason of what follows.
    pub fn commanded(&mut self, command: Command) {
        self.showing.cause = match command {
            Command::Resume => String::new(),
            _ => "the operator asked for it".to_owned(),
        };
    }

    /// What a command led to.
    pub fn applied(&self, engine: &Engine) -> Applied {
        let open = engine.orders().len();
        let pending = match self.latch.kept() {
            Kept::Failed(error) => format!("the latch is not durable: {error}"),
            Kept::Writing => "the latch is not durable yet: the disk is slow".to_owned(),
            Kept::Durable if engine.latch() == Latch::Halted && open > 0 => {
                format!("{open} orders are being cancelled")
            }
            Kept::Durable => String::new(),
        };
        Applied {
            state: show::state(engine.run_state()),
            reason: self.reason(engine),
            since_ms: self.showing.since_ms,
            pending,
        }
    }
}
