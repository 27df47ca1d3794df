//! The start of a live run, which is the same path as recovery: what the journal gives back, an
//! epoch, an engine, a new segment, the strategies with what they saved; then the streams.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::channel;

use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use windvane_client::Client;
use windvane_client::budget::Lane;
use windvane_driver::Driver;
use windvane_engine::engine::Latch;
use windvane_engine::input::Command;
use windvane_engine::live::LiveInput;
use windvane_engine::{Engine, Input, Surface};
use windvane_journal::{Directory, Journal, Latch as Latched, Options, Ready, Recovered};
use windvane_venue::Assets;
use windvane_venue::speak::{MarketReader, Speaker};

use super::carrier::{Carrier, venue_surface};
use super::desk::Counter;
use super::guests::LiveGuests;
use super::mailbox::{self, Happened, Inbox, Mailbox};
use super::outside::{Outside, Showing};
use super::pulse::{self, Clock, Module, Pulse};
use super::recover::{self, Restored};
use super::{LiveError, Running, plan, start, streams};
use crate::assembly;
use crate::config::{Config, InstrumentName};
use crate::strategies::{self, Guest};
use crate::watchdog::{self, Keeper, Plan};

/// Begins a run.
pub async fn begin(
    config: &Config,
    settings: windvane_client::Settings,
    directory: Arc<Directory>,
    counter: Counter,
    watchdog: watchdog::Begin,
) -> Result<Running, LiveError> {
    let guests = blocking({
        let config = config.clone();
        move || strategies::load(&config, &mut |step| tracing::info!(step, "building"))
    });
    let guests = guests.await??;
    let (ready, recovered) = blocking({
        let directory = Arc::clone(&directory);
        move || windvane_journal::open(directory)
    })
    .await??;
    let client = Client::new(settings)?;
    let names = assembly::instrument_names(config);
    // A start must not wait for what the process before used up.
    let urgent = client.in_lane(Lane::Heartbeat);
    for surface in start::surfaces(&names) {
        start::clock(surface, &urgent).await;
    }
    let mut assets = Assets::default();
    let instruments = start::instruments(&urgent, &names, &mut assets).await?;
    keep_plans(config, &names, &client)?;
    let speaker = start::speaker(config, &instruments, &assets);
    let prepared = Prepared {
        config,
        names,
        client,
        speaker,
        assets,
        directory,
        watchdog,
    };
    prepared.go(guests, ready, recovered, counter)
}

/// Gives the budget of each surface the shares that its plan needs; exchange information has told
/// the limits.
fn keep_plans(config: &Config, names: &[InstrumentName], client: &Client) -> Result<(), LiveError> {
    for surface in start::surfaces(names) {
        let venue = venue_surface(surface);
        let limits = client.with_budget(venue, |budget, _| budget.limits());
        let plans = plan::Wants::of(config, surface).plans(&limits);
        for plan in &plans {
            plan.check()?;
            let (weight, limit, polling) = (plan.sum(), plan.limit, plan.polling.to_string());
            tracing::info!(%surface, weight, limit, polling, "the plan of weights");
        }
        if let Ok(shares) = plan::shares(&plans) {
            client.with_budget(venue, |budget, _| budget.set_shares(shares));
        }
    }
    Ok(())
}

/// Runs what waits for disks and compilers beside the runtime.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LiveError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| LiveError::Broken)
}

/// Everything that the outside had to say first.
struct Prepared<'a> {
    config: &'a Config,
    names: Vec<InstrumentName>,
    client: Client,
    speaker: Speaker,
    assets: Assets,
    directory: Arc<Directory>,
    watchdog: watchdog::Begin,
}

impl Prepared<'_> {
    fn go(
        self,
        mut guests: Vec<Guest>,
        ready: Ready,
        recovered: Recovered,
        counter: Counter,
    ) -> Result<Running, LiveError> {
        let instruments: Vec<_> = (0..=u16::MAX)
            .map_while(|id| self.speaker.names.rules(windvane_engine::InstrumentId(id)))
            .cloned()
            .collect();
        for (guest, strategy) in guests.iter_mut().zip(&self.config.strategies) {
            let assets = self.assets.names();
            guest.instruments =
                assembly::instruments_json(strategy, &self.names, &instruments, assets);
        }
        let modules: Vec<Module> = guests
            .iter()
            .map(|guest| (guest.name.clone(), guest.sha256))
            .collect();
        let seconds = Clock::starting_after(windvane_engine::Time(0))
            .now()
            .millis()
            / 1_000;
        let epoch = self.directory.reserve_epoch(seconds.unsigned_abs())?;
        let engine =
            start::engine_config(self.config, &self.names, instruments, &self.assets, epoch);
        let restored = recover::restore(recovered, engine)?;
        let (mailbox, inbox) = mailbox::mailbox();
        let (journal, engine, states) = begin_segment(restored, ready, &modules, &mailbox)?;
        let clock = Clock::starting_after(engine.now());
        let mut driver = Driver::new(engine, LiveGuests::new(guests), true);
        let started = driver.start(clock.now(), &states);
        started.map_err(|(strategy, reason)| LiveError::Refused {
            strategy: modules[usize::from(strategy.0)].0.clone(),
            reason,
        })?;
        let latched = self.directory.latch();
        if let Some(command) = to_latch(&latched, driver.engine().latch()) {
            driver.handle(clock.now(), Input::Command(command));
        }
        driver.handle(clock.now(), Input::Live(&LiveInput::Begin));
        let reconnects = self.open_streams(&mailbox)?;
        let keeper = self.watchdog(epoch, &mailbox)?;
        let outside = self.outside(counter, reconnects, mailbox.clone(), modules, &latched);
        let outside = Outside { keeper, ..outside };
        self.run_pulse(clock, driver, journal, outside, inbox, mailbox)
    }

    /// Begins the streams and the clocks, each on a task of its own.
    fn open_streams(&self, mailbox: &Mailbox) -> Result<BTreeMap<Surface, Arc<Notify>>, LiveError> {
        let mut reconnects = BTreeMap::new();
        for surface in start::surfaces(&self.names) {
            let venue = venue_surface(surface);
            let reconnect = Arc::new(Notify::new());
            reconnects.insert(surface, Arc::clone(&reconnect));
            let user = self.client.user_stream(venue)?;
            tokio::spawn(streams::user(surface, user, reconnect, mailbox.clone()));
            let topics = start::topics(self.config, surface);
            let feed = self.client.market_feed(venue, &topics)?;
            tokio::spawn(streams::market(surface, feed, mailbox.clone()));
            let client = self.client.clone();
            tokio::spawn(streams::clock(surface, client, mailbox.clone()));
        }
        Ok(reconnects)
    }

    /// Starts the watchdog process where spot orders are to be watched.
    fn watchdog(&self, epoch: u64, mailbox: &Mailbox) -> Result<Option<Keeper>, LiveError> {
        if !start::is_watched(self.config, &self.names) {
            return Ok(None);
        }
        let spot = self
            .names
            .iter()
            .filter(|name| name.surface == Surface::Spot);
        let strategies = self.config.strategies.iter();
        let plan = Plan {
            strategies: strategies
                .map(|strategy| strategy.id.as_str().to_owned())
                .collect(),
            symbols: spot.map(|name| name.symbol.clone()).collect(),
            epoch,
            countdown_ms: self.config.heartbeat.countdown_ms,
            absence_ms: start::absence_ms(self.config).unsigned_abs(),
            orders_may_rest: false,
        };
        let mailbox = mailbox.clone();
        let tell = move |input| mailbox.tell(Happened::Live(input));
        let begin = self.watchdog.clone();
        Ok(Some(Keeper::start(begin, plan, self.client.clone(), tell)?))
    }

    fn outside(
        &self,
        counter: Counter,
        reconnects: BTreeMap<Surface, Arc<Notify>>,
        mailbox: Mailbox,
        modules: Vec<Module>,
        latched: &Latched,
    ) -> Outside {
        let (handle, client) = (Handle::current(), self.client.clone());
        let carrier = Carrier::new(
            handle.clone(),
            client.clone(),
            self.speaker.clone(),
            mailbox.clone(),
        );
        Outside {
            handle,
            client,
            carrier,
            mailbox,
            reconnects,
            publish: counter.publish,
            steered: counter.steered,
            beat: counter.beat,
            directory: Arc::clone(&self.directory),
            modules,
            keep: self.config.journal.keep(),
            showing: Showing::new(latched),
            keeper: None,
        }
    }

    fn run_pulse(
        self,
        clock: Clock,
        driver: Driver<LiveGuests>,
        journal: Journal,
        outside: Outside,
        inbox: Inbox,
        mailbox: Mailbox,
    ) -> Result<Running, LiveError> {
        let (stop, stopped) = channel();
        let (tell_end, ended) = oneshot::channel();
        let pulse = Pulse {
            clock,
            driver,
            journal,
            reader: MarketReader::new(self.speaker.names.clone()),
            speaker: self.speaker,
            outside,
            inbox,
            stop: stopped,
        };
        let thread = std::thread::Builder::new().name("engine".to_owned());
        // Nobody waits for the thread itself: a panic drops the sender, which is told.
        thread.spawn(move || {
            let _ = tell_end.send(pulse.run());
        })?;
        Ok(Running {
            stop,
            mailbox,
            ended,
        })
    }
}

/// What each strategy saved.
type States = Vec<Option<Vec<u8>>>;

/// Begins the segment of this start: its head is the engine before anything of it was recorded,
/// and what the strategies saved last.
fn begin_segment(
    restored: Restored,
    ready: Ready,
    modules: &[Module],
    mailbox: &Mailbox,
) -> Result<(Journal, Engine, States), LiveError> {
    let Restored { mut engine, head } = restored;
    let state_of = |(name, _): &Module| head.as_ref()?.state_of(name);
    let states: Vec<_> = modules.iter().map(state_of).collect();
    let snapshot = engine.snapshot();
    let bytes = pulse::head(snapshot, states.clone(), modules).to_bytes();
    let mailbox = mailbox.clone();
    let listener = Arc::new(move |event| mailbox.journal(event));
    let journal = ready.begin(&bytes, engine.chain(), &Options::default(), listener)?;
    Ok((journal, engine, states))
}

/// The stricter of what the file says and what the engine remembers holds.
const fn to_latch(file: &Latched, engine: Latch) -> Option<Command> {
    match (file, engine) {
        (Latched::Halted { .. }, Latch::None | Latch::Paused) => Some(Command::Halt),
        (Latched::Paused { .. }, Latch::None) => Some(Command::Pause),
        _ => None,
    }
}
