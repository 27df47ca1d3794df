//! The start of a process, which is the same path as recovery: the venue's clocks and rules, asked
//! until it answers; the journal; an engine; strategies with what they saved; then the streams
//! (`node/src/live/begin`).

use std::time::Duration;

use windvane::assembly;
use windvane::config::Leave;
use windvane::live::guests::LiveGuests;
use windvane::live::{recover, start};
use windvane::strategies::Guest;
use windvane_client_core::budget::Lane;
use windvane_client_core::clock::{Sample, estimate};
use windvane_client_core::outcome::NotDone;
use windvane_client_core::streams::StreamSettings;
use windvane_engine::engine::Latch;
use windvane_engine::input::Command;
use windvane_engine::live::LiveInput;
use windvane_engine::{Input, Instrument, Surface, Time};
use windvane_session::head::head;
use windvane_session::{
    Account, Clock, Driver, Module, Parts, RequestTerms, Requests, Session, venue_surface,
};
use windvane_venue::Assets;
use windvane_venue::error::code;
use windvane_venue::route;
use windvane_venue::speak::FuturesAccount;
use windvane_venue::wire::Parameters;

use super::overheard::Overheard;
use super::shown::Shown;
use super::streams::Stream;
use super::{Given, MS, Out, Process, Purpose, StreamKey};
use crate::client::{Became, REQUEST_NS};

/// Pauses between questions while the venue is away.
const RETRY_NS: (i64, i64) = (1_000 * MS, 15_000 * MS);
/// Readings of a clock of which the best counts.
const CLOCK_SAMPLES: usize = 3;

/// A clock that is being read.
#[derive(Debug)]
pub struct Reading {
    surface: Surface,
    taken: Vec<Sample>,
    sent_us: i64,
}

/// A start under way.
pub struct Boot {
    given: Option<Given>,
    /// What is asked for next: surfaces' clocks, then their rules.
    step: usize,
    is_asking: bool,
    again_ns: i64,
    pause_ns: i64,
    texts: Vec<(Surface, String)>,
    /// Where the futures account is read, once the venue said so.
    account: Option<FuturesAccount>,
}

impl Boot {
    /// Nothing was asked for yet.
    pub fn new(given: Given, now_ns: i64) -> Self {
        Self {
            given: Some(given),
            step: 0,
            is_asking: false,
            again_ns: now_ns,
            pause_ns: RETRY_NS.0,
            texts: Vec::new(),
            account: None,
        }
    }

    /// When it asks again.
    pub const fn wake_ns(&self) -> i64 {
        if self.is_asking {
            i64::MAX
        } else {
            self.again_ns
        }
    }

    fn failed(&mut self, now_ns: i64) {
        self.is_asking = false;
        self.again_ns = now_ns + self.pause_ns;
        self.pause_ns = (self.pause_ns * 2).min(RETRY_NS.1);
    }

    fn done(&mut self, now_ns: i64) {
        self.is_asking = false;
        self.again_ns = now_ns;
        self.pause_ns = RETRY_NS.0;
        self.step += 1;
    }
}

impl Process {
    /// Takes the next step of a start, where one is due.
    pub(super) fn continue_boot(&mut self) {
        let now_ns = self.now_ns;
        let Some(boot) = &mut self.boot else { return };
        if boot.is_asking || boot.again_ns > now_ns {
            return;
        }
        let count = self.setup.surfaces.len();
        let step = boot.step;
        if step >= 2 * count {
            let reads_futures = self.setup.surfaces.contains(&Surface::Futures);
            if boot.account.is_some() || !reads_futures {
                return self.go();
            }
            boot.is_asking = true;
            return self.ask_for_account();
        }
        boot.is_asking = true;
        let surface = self.setup.surfaces[step % count];
        if step < count {
            self.read_clock(surface);
        } else if let Some(route) = route::named(&format!("{surface}.exchange_info")) {
            let purpose = Purpose::Info(surface);
            self.call(route, &Parameters::new(), Lane::Start, purpose);
        }
    }

    /// Asks whether the venue has the account route (`node/src/live/start`).
    fn ask_for_account(&mut self) {
        if let Some(route) = route::named("futures.account") {
            self.call(route, &Parameters::new(), Lane::Start, Purpose::Account);
        }
    }

    /// The account route was answered, or was not.
    pub(super) fn account_came(&mut self, became: &Became) {
        let user = self.setup.identity.credentials.user;
        let Some(boot) = &mut self.boot else { return };
        let unsupported = code::UNSUPPORTED_OPERATION.code;
        let is_unserved = matches!(became, Err(NotDone::Refused(refusal))
            if refusal.code().is_none_or(|code| code == unsupported));
        let account = match (became, user) {
            (Err(NotDone::Refused(_)), Some(user)) if is_unserved => FuturesAccount::Info {
                address: user.to_string(),
            },
            (Err(NotDone::Refused(_)), _) => FuturesAccount::Routes,
            (Ok(text), _) if start::is_record(text) => FuturesAccount::Routes,
            _ => return boot.failed(self.now_ns),
        };
        boot.account = Some(account);
        boot.done(self.now_ns);
        self.continue_boot();
    }

    /// Begins to read a clock.
    pub(super) fn read_clock(&mut self, surface: Surface) {
        self.ask_clock(Reading {
            surface,
            taken: Vec::new(),
            sent_us: 0,
        });
    }

    fn ask_clock(&mut self, mut clock: Reading) {
        clock.sent_us = self.wall_us;
        if let Some(route) = route::named(&format!("{}.time", clock.surface)) {
            let purpose = Purpose::Clock(clock);
            self.call(route, &Parameters::new(), Lane::Heartbeat, purpose);
        }
    }

    /// A reading came, or did not.
    pub(super) fn clock_read(&mut self, mut clock: Reading, became: &Became) {
        let surface = clock.surface;
        let server_ms = match became {
            Ok(text) => server_time(text),
            Err(_) => None,
        };
        let Some(server_ms) = server_ms else {
            return self.clock_failed();
        };
        clock.taken.push(Sample {
            sent_us: clock.sent_us,
            received_us: self.wall_us,
            server_ms,
        });
        if clock.taken.len() < CLOCK_SAMPLES {
            return self.ask_clock(clock);
        }
        let Some(offset) = estimate(&clock.taken) else {
            return self.clock_failed();
        };
        let gateway = self.client.gateway();
        gateway.set_offset(venue_surface(surface), offset);
        if let Some(boot) = &mut self.boot {
            boot.done(self.now_ns);
            self.continue_boot();
        }
    }

    fn clock_failed(&mut self) {
        if let Some(boot) = &mut self.boot {
            boot.failed(self.now_ns);
        }
    }

    /// Exchange information came, or did not.
    pub(super) fn info_came(&mut self, surface: Surface, became: Became) {
        let Some(boot) = &mut self.boot else { return };
        match became {
            Ok(text) => {
                boot.texts.push((surface, text));
                boot.done(self.now_ns);
            }
            // The live run ends here, and whoever supervises it starts it again.
            Err(_) => boot.failed(self.now_ns),
        }
        self.continue_boot();
    }

    /// Everything was said: recovery, the strategies, the streams.
    fn go(&mut self) {
        let Some(mut boot) = self.boot.take() else {
            return;
        };
        let Some(given) = boot.given.take() else {
            return;
        };
        let mut assets = Assets::default();
        let mut instruments = Vec::new();
        for name in &self.setup.names {
            let text = boot
                .texts
                .iter()
                .find(|(surface, _)| *surface == name.surface);
            let text = text.map_or("", |(_, text)| text.as_str());
            let Ok(instrument) = start::instrument(name, text, &mut assets) else {
                // An answer that a fault spoilt: asked again.
                boot.given = Some(given);
                boot.step = self.setup.surfaces.len();
                boot.texts.clear();
                boot.failed(self.now_ns);
                self.boot = Some(boot);
                return;
            };
            instruments.push(instrument);
        }
        let account = boot.account.unwrap_or(FuturesAccount::Routes);
        if let Err(error) = self.recover(given, account, instruments, &assets) {
            self.broken = Some(error);
        }
    }

    fn recover(
        &mut self,
        given: Given,
        account: FuturesAccount,
        instruments: Vec<Instrument>,
        assets: &Assets,
    ) -> Result<(), String> {
        let setup = std::sync::Arc::clone(&self.setup);
        let config = &setup.config;
        let speaker = start::speaker(config, account, &instruments, assets);
        let (mut guests, mut modules) = (Vec::new(), Vec::<Module>::new());
        for (strategy, (id, module)) in config.strategies.iter().zip(&setup.strategies) {
            let params = strategy.params.to_string().into_bytes();
            let guest = setup.modules.instance(module, id, params);
            let mut guest = guest.map_err(|error| error.to_string())?;
            guest.instruments =
                assembly::instruments_json(strategy, &setup.names, &instruments, assets.names());
            modules.push((guest.name.clone(), guest.sha256));
            guests.push(guest);
        }
        let engine = start::engine_config(config, &setup.names, instruments, assets, given.epoch);
        let mut left = recover::left_of(given.remembered);
        if let Some(flaw) = left.flaw.take() {
            return Err(format!("journal {}: {flaw}", given.verdict));
        }
        let last = left.head.take();
        let before = recover::Before {
            epoch: given.epoch_before,
            take_over: false,
        };
        let engine = left.succeed(engine, &before);
        let mut engine = engine.map_err(|error| format!("the engine cannot go on: {error}"))?;
        let state_of = |(name, _): &Module| last.as_ref()?.state_of(name);
        let states: Vec<_> = modules.iter().map(state_of).collect();
        let made = guests.iter().map(Guest::made).collect();
        let head = head(engine.snapshot(), states.clone(), &modules, made, None);
        self.outs
            .push_back(Out::Begin(head.to_bytes(), engine.chain()));
        let clock = Clock::counted(self.shell_time(), engine.now());
        let now = clock.at(self.shell_time());
        let mut driver = Driver::new(
            engine,
            Overheard::new(LiveGuests::new(guests, &states)),
            true,
        );
        let started = driver.start(now, &states);
        started.map_err(|(_, reason)| format!("a strategy refuses: {reason}"))?;
        if let Some(command) = to_latch(given.latch, driver.engine().latch()) {
            driver.handle(now, Input::Command(command));
        }
        driver.handle(now, Input::Live(&LiveInput::Begin));
        self.tell_running(given.epoch, given.verdict);
        let records = driver.engine().records();
        let shown = Shown::new(self.life, given.epoch, records, given.latch);
        let parts = Parts {
            driver,
            account: Account::Venue,
            speaker,
            requests: Some(self.requests()),
            clock,
            modules,
            surfaces: setup.surfaces.clone(),
            streams: StreamSettings {
                seed: setup.seed,
                ..StreamSettings::default()
            },
            flattens: config.run.on_stop == Leave::Flatten,
        };
        let session = Session::new(self.shell_time(), parts);
        self.run = Some((session, shown));
        self.perform();
        self.open_streams();
        Ok(())
    }

    fn open_streams(&mut self) {
        let setup = std::sync::Arc::clone(&self.setup);
        for surface in &setup.surfaces {
            let topics = start::topics(&setup.config, *surface);
            let mut topics: Vec<_> = topics.iter().map(ToString::to_string).collect();
            topics.sort();
            topics.dedup();
            let key = StreamKey {
                surface: *surface,
                user: false,
            };
            self.streams
                .push(Stream::new(key, &topics, setup.seed, self.now_ns));
            self.stream(key, windvane_client::streams::sans_io::Input::Tick);
        }
    }

    /// The session's requests, which leave through the gateway of the start.
    fn requests(&self) -> Requests {
        let terms = RequestTerms {
            request: Duration::from_nanos(REQUEST_NS.unsigned_abs()),
            countdown: self.setup.config.heartbeat.answer_within(),
        };
        let origin = Time(self.started_ns + self.counted_from_ns);
        let surfaces = self.setup.surfaces.clone();
        let first = (u64::from(self.life) << 32) + (1 << 31);
        let gateway = self.client.gateway().clone();
        Requests::new(gateway, terms, origin, surfaces, first)
    }
}

/// The stricter of what the file says and what the engine remembers holds.
fn to_latch(file: Latch, engine: Latch) -> Option<Command> {
    match (file, engine) {
        (Latch::Halted, Latch::None | Latch::Paused) => Some(Command::Halt),
        (Latch::Paused, Latch::None) => Some(Command::Pause),
        _ => None,
    }
}

fn server_time(text: &str) -> Option<i64> {
    let answer: serde_json::Value = serde_json::from_str(text).ok()?;
    answer.get("serverTime")?.as_i64()
}
