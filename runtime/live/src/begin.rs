//! The start of a live run. A restart after a crash takes the same path: restore the journal's
//! state, reserve an epoch, make the engine, start the strategies with their saved state, open the
//! streams, then start a new segment.
//!
//! No request leaves before the segment exists, and the configuration is checked completely before
//! that. So a start that fails leaves the journal unchanged.

use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use windvane_client::streams::StreamSettings;
use windvane_engine::latches::Latches;
use windvane_journal::{BeginError, Directory, Event, Journal, Options, Ready};
use windvane_protocol::adapter::Names;
use windvane_session::recovery::{
    Before, FirstSegment, LaunchTerms, PreviousState, UnownedPosition,
};
use windvane_session::{
    Account, BLOCKS_UNDER_WAY, Foreign, JOURNAL_STALL_MS, Module, Parts, Session,
};

use super::awake::Awake;
use super::cores;
use super::desk::Counter;
use super::guests::LiveGuests;
use super::heartbeats::Troubles;
use super::http::{Http, Way};
use super::identity::{self, Identity};
use super::latch::LatchFile;
use super::mailbox::{self, Disk, Happened, Mailbox};
use super::not_sent::NotSent;
use super::outside::{Outside, Showing};
use super::player::Player;
use super::pulse::Pulse;
use super::recover;
use super::reload::Reread;
use super::remains;
use super::sockets::Sockets;
use super::stage::{Found, Stage};
use super::thread::EngineThread;
use super::unsettled::Unsettled;
use super::{LiveError, Market, Running, forced, retention, start, tell};
use crate::memory;
use crate::watchdog::{self, Keeper};
use windvane_build::modules::{self, Guest};
use windvane_config::assembly;
use windvane_config::{Config, InstrumentName, Leave, Mode};

/// The inputs of a start besides its configuration.
pub struct Start<'a> {
    pub directory: Arc<Directory>,
    pub counter: Counter,
    pub watchdog: watchdog::Begin,
    pub reread: Reread,
    pub take_over: bool,
    /// The journal's orders and positions as text, set once the journal is read. If the start is
    /// stopped before it reaches the account, the error names them.
    pub known: &'a OnceLock<String>,
}

/// Starts a run.
pub async fn begin(
    config: &Config,
    market: Market,
    start: Start<'_>,
) -> Result<Running, LiveError> {
    let Start {
        directory,
        counter,
        watchdog,
        reread,
        take_over,
        known,
    } = start;
    let guests = blocking({
        let config = config.clone();
        move || modules::load(&config, &mut |step| tracing::info!(step, "building"))
    });
    let guests = guests.await??;
    counter.say("opening the journal");
    let (ready, recovered) = blocking({
        let directory = Arc::clone(&directory);
        move || windvane_journal::open(directory)
    })
    .await??;
    let left = blocking(move || recover::left(recovered)).await?;
    recover::must_be_of(&left, config.run.mode)?;
    if config.run.mode == Mode::Live {
        let _ = known.set(left.in_words());
    }
    let names = assembly::instrument_names(config);
    if matches!(market, Market::Recordings(_)) {
        counter.say("opening the recordings");
    }
    let by = (&directory, &counter);
    let (stage, found) = Stage::set(config, market, &names, by).await?;
    let prepared = Prepared {
        config,
        names,
        stage,
        found,
        directory,
        watchdog,
        reread,
        take_over,
    };
    counter.say("restoring the state from the journal; no order is sent yet");
    prepared.go(guests, ready, left, counter)
}

/// Runs blocking work (disk access, compilers) outside the async runtime.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LiveError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| LiveError::Broken)
}

/// The results of every step that depends on files and on the venue.
struct Prepared<'a> {
    config: &'a Config,
    names: Vec<InstrumentName>,
    stage: Stage,
    found: Found,
    directory: Arc<Directory>,
    watchdog: watchdog::Begin,
    reread: Reread,
    take_over: bool,
}

impl Prepared<'_> {
    fn go(
        mut self,
        mut guests: Vec<Guest>,
        ready: Ready,
        mut left: PreviousState,
        counter: Counter,
    ) -> Result<Running, LiveError> {
        let (config, instruments) = (self.config, self.found.instruments.clone());
        let clock = self.found.clock;
        let player = self
            .stage
            .player(config, &instruments, left.paper.as_ref())?;
        let paper = left.paper.take();
        let paper = self
            .stage
            .account(config, &instruments, &mut self.found.assets, paper)?;
        for (guest, strategy) in guests.iter_mut().zip(&config.strategies) {
            let assets = self.found.assets.names();
            guest.instruments =
                assembly::instruments_json(strategy, &self.names, &instruments, assets);
        }
        if let Err(error) = modules::keep(&guests, self.directory.path()) {
            tracing::warn!(%error, "could not archive the modules: a replay of this run will use \
                                    their recorded outputs. Trading is not affected");
        }
        let modules: Vec<Module> = guests
            .iter()
            .map(|guest| (guest.name.clone(), guest.sha256))
            .collect();
        let first = player.as_ref().map_or_else(|| clock.now(), Player::time);
        let seconds = first.millis().div_euclid(1_000).max(1);
        let before = Before {
            epoch: self.directory.last_epoch(),
            take_over: self.take_over,
        };
        let epoch = self.directory.reserve_epoch(seconds.unsigned_abs())?;
        let spoken = Names::new(&instruments, self.found.assets.names());
        let engine =
            start::engine_config(config, &self.names, instruments, &self.found.assets, epoch);
        let (mailbox, inbox) = mailbox::mailbox();
        let thread = EngineThread::start()?;
        let ways = self.ways(&thread)?;
        let account = match paper {
            Some(paper) => Account::Paper(paper),
            None if ways.is_some() => Account::Venue,
            None => return Err(LiveError::NoAccount),
        };
        let mut requests = self.found.requests.take();
        if let Some(requests) = &mut requests {
            requests.configure(spoken.clone(), self.found.futures_account.clone());
        }
        let http = ways
            .clone()
            .map(|ways| Http::new(ways, mailbox.clone(), clock));
        let sockets = ways
            .as_ref()
            .map(|(own, _)| Sockets::new(own.clone(), mailbox.clone()));
        let remains = left.remains(&remains::configured(config));
        let foreign = self.foreign(&left);
        if let Some(words) = &foreign {
            tracing::error!(
                "{words}: the run starts paused, because the saved state may belong to another \
                 account. Check positions and orders at the venue before windvane resume"
            );
        }
        let file = self.directory.latches();
        let latch_file = LatchFile::start(Arc::clone(&self.directory), mailbox.clone())?;
        let surfaces = start::surfaces(&self.names);
        let now = clock.now();
        let terms = LaunchTerms {
            now,
            played_from: player.as_ref().map(Player::time),
            engine,
            before,
            modules: &modules,
            account,
            latches: file,
            foreign: foreign.as_deref().map(|difference| Foreign {
                difference,
                what_to_do: identity::WHAT_TO_DO,
            }),
            is_unwaited: config.run.unwaited,
            on_liquidation: assembly::on_liquidation(&config.risk),
            surfaces: &surfaces,
            is_streamed: self.stage.client().is_some(),
        };
        let begun = left.begin(terms, |states| LiveGuests::new(guests, states))?;
        let results = self.stage.results(config, begun.clock.at(now))?;
        let public = self
            .stage
            .public_streams(config, &self.names, (&spoken, clock.now()))?;
        self.stage.watch_stops(config, &self.names);
        let journal = begin_journal(&begun.first, ready, &mailbox)?;
        self.make_own(foreign.and(Some(begun.latches.said())));
        left_to_nobody(config.run.mode, &remains);
        let outside = self.outside(counter, mailbox.clone(), latch_file);
        let keeper = self.watchdog(epoch, &mailbox)?;
        let outside = Outside { keeper, ..outside };
        cores::warn(config.run.busy_poll);
        let (stop, stopped) = channel();
        let parts = Parts {
            driver: begun.driver,
            account: begun.account,
            requests,
            clock: begun.clock,
            modules,
            surfaces,
            streams: self
                .stage
                .client()
                .map_or_else(StreamSettings::default, |client| {
                    client.settings().streams.clone()
                }),
            public,
            latches: begun.latches,
            blocks_under_way: BLOCKS_UNDER_WAY,
            flattens: config.run.on_stop == Leave::Flatten,
        };
        let pulse = Pulse {
            session: Session::new(clock.now(), parts),
            clock,
            journal,
            http,
            sockets,
            player,
            results,
            outside,
            inbox,
            busy_poll: config.run.busy_poll,
            _awake: Awake::wanted(config.run.keep_awake),
            stop: stopped,
        };
        Ok(Running {
            stop,
            mailbox,
            ended: thread.run(pulse),
        })
    }

    /// The venue and the account of a live run. A simulated account has no identity.
    fn identity(&self) -> Option<Identity> {
        let client = self.stage.client();
        let client = client.filter(|_| self.config.run.mode == Mode::Live)?;
        let surfaces = start::surfaces(&self.names);
        Some(Identity::of(client.settings(), &surfaces))
    }

    /// A sentence about the difference if the saved state belongs to another account or venue.
    fn foreign(&self, left: &PreviousState) -> Option<String> {
        left.head.as_ref()?;
        self.identity()?.difference(self.directory.path())
    }

    /// Marks the folder as this account's. Pending latches are written first: after this, the next
    /// start finds no difference, so their reason must already be on disk.
    fn make_own(&self, latches: Option<&Latches>) {
        let Some(identity) = self.identity() else {
            return;
        };
        let latched = latches.map_or(Ok(()), |latches| self.directory.set_latches(latches));
        let latched = latched.map_err(std::io::Error::other);
        if let Err(error) = latched.and_then(|()| identity.write(self.directory.path())) {
            tracing::error!(
                %error,
                "could not save to which account the data folder belongs: the next start compares \
                 with the earlier account and starts paused again. Check the data folder's disk"
            );
        }
    }

    /// The two clients of the venue: one for the engine's thread, one for the other threads.
    fn ways(&self, thread: &EngineThread) -> Result<Option<(Way, Way)>, LiveError> {
        let Some(client) = self.stage.client() else {
            return Ok(None);
        };
        let own = Way {
            handle: thread.handle().clone(),
            client: client.with_own_connections()?,
        };
        let beside = Way {
            handle: Handle::current(),
            client,
        };
        Ok(Some((own, beside)))
    }

    /// Starts the watchdog process if the run has spot orders to protect.
    fn watchdog(&self, epoch: u64, mailbox: &Mailbox) -> Result<Option<Keeper>, LiveError> {
        let client = self.stage.client();
        let watched = start::is_watched(self.config, &self.names);
        let Some(client) = client.filter(|_| watched) else {
            return Ok(None);
        };
        let plan = start::watchdog_plan(self.config, &self.names, epoch);
        let mailbox = mailbox.clone();
        let tell = move |input| mailbox.tell_blocking(Happened::Live(input));
        let begin = self.watchdog.clone();
        Ok(Some(Keeper::start(begin, plan, client, tell)?))
    }

    fn outside(&self, counter: Counter, mailbox: Mailbox, latches: LatchFile) -> Outside {
        Outside {
            handle: Handle::current(),
            client: self.stage.client(),
            mode: self.config.run.mode,
            surfaces: start::surfaces(&self.names),
            mailbox,
            publish: counter.publish,
            steered: counter.steered,
            beat: counter.beat,
            directory: Arc::clone(&self.directory),
            keep: retention::keep(&self.config.journal),
            config: Arc::new(self.config.clone()),
            reread: Arc::clone(&self.reread),
            latches,
            not_sent: NotSent::default(),
            counted: forced::Counted::default(),
            troubles: Troubles::new(self.found.clock),
            unsettled: Unsettled::default(),
            showing: Showing::new(counter.started, counter.since_ms),
            keeper: None,
        }
    }
}

/// Logs positions that belong to no strategy after this start.
fn left_to_nobody(mode: Mode, remains: &[UnownedPosition]) {
    let what_to_do = match mode {
        Mode::Live => {
            "close it by hand at the venue; adding the strategy or instrument again does not \
             restore its position"
        }
        Mode::Paper => {
            "a simulated position cannot be closed by hand: start a new account with another \
             run.data_dir"
        }
    };
    let what = "a position belongs to no strategy any more, because its strategy or instrument is \
                not configured: nothing manages it";
    tell::remains(remains, what, what_to_do);
}

/// Starts the segment of this start, after every check has passed.
fn begin_journal(
    first: &FirstSegment,
    ready: Ready,
    mailbox: &Mailbox,
) -> Result<Journal, BeginError> {
    let mailbox = mailbox.clone();
    let listener = Arc::new(move |event| {
        if let Event::Packed { .. } = event {
            memory::give_back();
        }
        mailbox.disk(Disk::Journal(event));
    });
    let options = Options {
        stall_after: Duration::from_millis(JOURNAL_STALL_MS.unsigned_abs()),
        ..Options::default()
    };
    ready.begin(&first.head, first.at, &options, listener)
}
