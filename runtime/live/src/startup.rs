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
use windvane_journal::{BeginError, Directory, Event, Journal, Options, Ready};
use windvane_model::kill_switch::StoredKillSwitches;
use windvane_protocol::adapter::Names;
use windvane_session::recovery::{
    Before, FirstSegment, LaunchTerms, PreviousState, UnownedPosition,
};
use windvane_session::{
    Account, BLOCKS_UNDER_WAY, Foreign, JOURNAL_STALL_MS, Module, Parts, Session,
};

use super::admin_bridge::AdminChannel;
use super::blocking::blocking;
use super::cores;
use super::cpu_latency::CpuLatency;
use super::environment::{Discovered, Environment};
use super::error::LiveError;
use super::guests::LiveGuests;
use super::heartbeats::Troubles;
use super::http::{Http, RuntimeClient};
use super::identity::{self, Identity};
use super::kill_switch_file::KillSwitchFile;
use super::loop_state::EventLoop;
use super::mailbox::{self, Disk, LoopEvent, Mailbox};
use super::market::Market;
use super::new_config::ReadConfig;
use super::not_sent::NotSent;
use super::player::Player;
use super::recover;
use super::running::Running;
use super::services::{Services, StatusPublication};
use super::signer::SignerLink;
use super::sockets::Sockets;
use super::thread::EngineThread;
use super::unowned_positions;
use super::unsettled::Unsettled;
use super::{forced, notice_log, retention, startup_steps};
use crate::memory;
use crate::watchdog::{self, Keeper};
use windvane_build::modules::{self, Guest};
use windvane_config::assembly;
use windvane_config::{Config, InstrumentName, Leave, Mode};

/// The inputs of a start besides its configuration.
pub struct StartupParts<'a> {
    pub directory: Arc<Directory>,
    pub admin_channel: AdminChannel,
    pub watchdog: watchdog::ProcessArguments,
    pub read_config: ReadConfig,
    pub take_over: bool,
    /// The journal's orders and positions as text, set once the journal is read. If the start is
    /// stopped before it reaches the account, the error names them.
    pub known: &'a OnceLock<String>,
}

/// Starts a run.
pub async fn start(
    config: &Config,
    market: Market,
    parts: StartupParts<'_>,
) -> Result<Running, LiveError> {
    let StartupParts {
        directory,
        admin_channel,
        watchdog,
        read_config,
        take_over,
        known,
    } = parts;
    let progress = admin_channel.progress();
    let guests = blocking({
        let config = config.clone();
        move || modules::load_for_run(&config, &mut |step| tracing::info!(step, "building"))
    });
    let guests = guests.await??;
    progress.report("opening the journal");
    let (ready, recovered) = blocking({
        let directory = Arc::clone(&directory);
        move || windvane_journal::open(directory)
    })
    .await??;
    let left = blocking(move || recover::previous_state(recovered)).await?;
    recover::must_be_of(&left, config.run.mode)?;
    if config.run.mode == Mode::Live {
        let _ = known.set(left.summary());
    }
    let names = assembly::instrument_names(config);
    if matches!(market, Market::Recordings(_)) {
        progress.report("opening the recordings");
    }
    let by = (&directory, &progress);
    let (environment, found) = Environment::prepare(config, market, &names, by).await?;
    let prepared = Prepared {
        config,
        names,
        environment,
        found,
        directory,
        watchdog,
        read_config,
        take_over,
    };
    progress.report("restoring the state from the journal; no order is sent yet");
    prepared.launch(guests, ready, left, admin_channel)
}

/// The results of every step that depends on files and on the venue.
struct Prepared<'a> {
    config: &'a Config,
    names: Vec<InstrumentName>,
    environment: Environment,
    found: Discovered,
    directory: Arc<Directory>,
    watchdog: watchdog::ProcessArguments,
    read_config: ReadConfig,
    take_over: bool,
}

impl Prepared<'_> {
    fn launch(
        mut self,
        mut guests: Vec<Guest>,
        ready: Ready,
        mut left: PreviousState,
        admin_channel: AdminChannel,
    ) -> Result<Running, LiveError> {
        let (config, instruments) = (self.config, self.found.instruments.clone());
        let clock = self.found.clock;
        let player = self
            .environment
            .player(config, &instruments, left.paper.as_ref())?;
        let paper = left.paper.take();
        let paper =
            self.environment
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
        let adapter_names = Names::new(&instruments, self.found.assets.names());
        let engine = startup_steps::engine_config(
            config,
            &self.names,
            instruments,
            &self.found.assets,
            epoch,
        );
        let (mailbox, inbox) = mailbox::mailbox();
        let thread = EngineThread::start()?;
        let clients = self.clients(&thread)?;
        let account = match paper {
            Some(paper) => Account::Paper(paper),
            None if clients.is_some() => Account::Venue,
            None => return Err(LiveError::NoAccount),
        };
        let mut requests = self.found.requests.take();
        if let Some(requests) = &mut requests {
            requests.configure(adapter_names.clone(), self.found.futures_account.clone());
        }
        let http = clients
            .clone()
            .map(|clients| Http::new(clients, mailbox.clone(), clock));
        let signer = self.environment.signer().map(|signer| SignerLink {
            client: signer.client(thread.handle(), &mailbox),
            process: Arc::clone(signer),
        });
        let sockets = clients
            .as_ref()
            .map(|(own, _)| Sockets::new(own.clone(), mailbox.clone()));
        let unowned_positions = left.unowned_positions(&unowned_positions::configured(config));
        let foreign = self.foreign(&left);
        if let Some(text) = &foreign {
            tracing::error!(
                "{text}: the run starts paused, because the saved state may belong to another \
                 account. Check positions and orders at the venue before windvane resume"
            );
        }
        let file = self.directory.kill_switch();
        let kill_switch_file = KillSwitchFile::start(Arc::clone(&self.directory), mailbox.clone())?;
        let surfaces = startup_steps::surfaces(&self.names);
        let now = clock.now();
        let terms = LaunchTerms {
            now,
            played_from: player.as_ref().map(Player::time),
            engine,
            before,
            modules: &modules,
            account,
            kill_switch: file,
            foreign: foreign.as_deref().map(|difference| Foreign {
                difference,
                what_to_do: identity::WHAT_TO_DO,
            }),
            is_unwaited: config.run.unwaited,
            on_liquidation: assembly::on_liquidation(&config.risk),
            surfaces: &surfaces,
            is_streamed: self.environment.client().is_some(),
        };
        let mut limited = Ok(());
        let launched = left.launch(terms, |states| {
            let mut guests = LiveGuests::new(guests, states);
            // A run on recordings must give the same result on any machine.
            if player.is_none() {
                limited = guests.limit_time();
            }
            guests
        })?;
        limited?;
        let results = self.environment.results(config, launched.clock.at(now))?;
        let public =
            self.environment
                .public_streams(config, &self.names, (&adapter_names, clock.now()))?;
        self.environment.watch_stops(config, &self.names);
        let journal = begin_journal(&launched.first, ready, &mailbox)?;
        self.make_own(foreign.and(Some(launched.kill_switch.file_content())));
        log_unowned(config.run.mode, &unowned_positions);
        let services = self.services(admin_channel, mailbox.clone(), kill_switch_file)?;
        let keeper = self.watchdog(epoch, &mailbox)?;
        let services = Services { keeper, ..services };
        cores::warn(config.run.busy_poll);
        let (stop, stopped) = channel();
        let parts = Parts {
            driver: launched.driver,
            account: launched.account,
            requests,
            clock: launched.clock,
            modules,
            surfaces,
            streams: self
                .environment
                .client()
                .map_or_else(StreamSettings::default, |client| {
                    client.settings().streams.clone()
                }),
            public,
            kill_switch: launched.kill_switch,
            blocks_under_way: BLOCKS_UNDER_WAY,
            flattens: config.run.on_stop == Leave::Flatten,
        };
        let event_loop = EventLoop {
            session: Session::new(clock.now(), parts),
            clock,
            journal,
            http,
            signer,
            sockets,
            player,
            results,
            services,
            inbox,
            busy_poll: config.run.busy_poll,
            _cpu_latency: CpuLatency::wanted(config.run.keep_awake),
            stop: stopped,
        };
        Ok(Running {
            stop,
            mailbox,
            ended: thread.run(event_loop),
        })
    }

    /// The venue and the account of a live run. A simulated account has no identity.
    fn identity(&self) -> Option<Identity> {
        let client = self.environment.client();
        let client = client.filter(|_| self.config.run.mode == Mode::Live)?;
        let surfaces = startup_steps::surfaces(&self.names);
        let identity = Identity::of(client.settings(), &surfaces);
        Some(match self.environment.signer() {
            Some(signer) => identity.with_account(&signer.facts().account),
            None => identity,
        })
    }

    /// A sentence about the difference if the saved state belongs to another account or venue.
    fn foreign(&self, left: &PreviousState) -> Option<String> {
        left.checkpoint.as_ref()?;
        self.identity()?.difference(self.directory.path())
    }

    /// Marks the folder as this account's. Pending kill switches are written first: after this, the
    /// next start finds no difference, so their reason must already be on disk.
    fn make_own(&self, kill_switches: Option<&StoredKillSwitches>) {
        let Some(identity) = self.identity() else {
            return;
        };
        let written = kill_switches.map_or(Ok(()), |kill_switches| {
            self.directory.set_kill_switch(kill_switches)
        });
        let written = written.map_err(std::io::Error::other);
        if let Err(error) = written.and_then(|()| identity.write(self.directory.path())) {
            tracing::error!(
                %error,
                "could not save to which account the data folder belongs: the next start compares \
                 with the earlier account and starts paused again. Check the data folder's disk"
            );
        }
    }

    /// The two clients of the venue: one for the engine's thread, one for the other threads.
    fn clients(
        &self,
        thread: &EngineThread,
    ) -> Result<Option<(RuntimeClient, RuntimeClient)>, LiveError> {
        let Some(client) = self.environment.client() else {
            return Ok(None);
        };
        let own = RuntimeClient {
            handle: thread.handle().clone(),
            client: client.with_own_connections()?,
        };
        let shared = RuntimeClient {
            handle: Handle::current(),
            client,
        };
        Ok(Some((own, shared)))
    }

    /// Starts the watchdog process if the run has spot orders to protect.
    fn watchdog(&self, epoch: u64, mailbox: &Mailbox) -> Result<Option<Keeper>, LiveError> {
        let client = self.environment.client();
        let watched = startup_steps::is_watched(self.config, &self.names);
        let Some(client) = client.filter(|_| watched) else {
            return Ok(None);
        };
        let plan = startup_steps::watchdog_plan(self.config, &self.names, epoch);
        let mailbox = mailbox.clone();
        let report = move |input| mailbox.post_blocking(LoopEvent::Live(input));
        let mut arguments = self.watchdog.clone();
        if let Some(signer) = self.environment.signer() {
            let socket = ["--signer".into(), signer.socket().into()];
            arguments.arguments.extend(socket);
        }
        Ok(Some(Keeper::start(arguments, plan, client, report)?))
    }

    fn services(
        &self,
        admin_channel: AdminChannel,
        mailbox: Mailbox,
        kill_switch_file: KillSwitchFile,
    ) -> Result<Services, LiveError> {
        let commands = admin_channel.commands.end().ok_or(LiveError::Broken)?;
        let wakes = mailbox.clone();
        commands.wake_by(move || wakes.nudge());
        // Commands that came during the start wait.
        mailbox.nudge();
        Ok(Services {
            handle: Handle::current(),
            client: self.environment.client(),
            mode: self.config.run.mode,
            surfaces: startup_steps::surfaces(&self.names),
            mailbox,
            publish: admin_channel.publish,
            commands,
            heartbeat: admin_channel.heartbeat,
            directory: Arc::clone(&self.directory),
            keep: retention::keep(&self.config.journal),
            config: Arc::new(self.config.clone()),
            read_config: Arc::clone(&self.read_config),
            kill_switch_file,
            not_sent: NotSent::default(),
            counted: forced::Counted::default(),
            troubles: Troubles::new(self.found.clock),
            unsettled: Unsettled::default(),
            publication: StatusPublication::new(admin_channel.started, admin_channel.since_ms),
            keeper: None,
            signer: self
                .environment
                .signer()
                .map(|signer| signer.reach().clone()),
        })
    }
}

/// Logs positions that belong to no strategy after this start.
fn log_unowned(mode: Mode, unowned_positions: &[UnownedPosition]) {
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
    notice_log::unowned_positions(unowned_positions, what, what_to_do);
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
    ready.begin(&first.checkpoint, first.at, &options, listener)
}
