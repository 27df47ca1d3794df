//! The strategies of a live run as WebAssembly modules in the host.

use std::time::Instant;

use windvane_admin::metrics::{Histogram, table};
use windvane_engine::Engine;
use windvane_host::{Fault, FaultKind as HostFault};
use windvane_model::input::FaultKind;
use windvane_model::{Event, Intent, StrategyId, Time};
use windvane_session::{Guests, InitResult, Made, ReloadGuests};

use windvane_build::modules::{Guest, RecentLines, engine_fault};

/// All strategies of a run, in the order of the configuration.
pub struct LiveGuests(Vec<Place>);

/// One strategy with its saved state and its counters.
struct Place {
    guest: Guest,
    /// The state that it saved last, kept after a fault.
    saved: Option<Vec<u8>>,
    /// It runs with its own state, so its next save replaces `saved`.
    started: bool,
    /// Its last fault, as text.
    trouble: Option<String>,
    callbacks: Histogram,
    /// How many events it received.
    delivered: u64,
    lines: RecentLines,
}

impl LiveGuests {
    /// Strategies that are not started yet, with the states that an earlier process saved.
    pub fn new(guests: Vec<Guest>, states: &[Option<Vec<u8>>]) -> Self {
        let places = guests.into_iter().enumerate().map(|(at, guest)| Place {
            callbacks: table::CALLBACK_SECONDS.of([&guest.name]),
            guest,
            saved: states.get(at).cloned().flatten(),
            started: false,
            trouble: None,
            delivered: 0,
            lines: RecentLines::default(),
        });
        Self(places.collect())
    }

    /// The strategies, each with the number of events that it received and its last fault.
    pub fn into_parts(self) -> impl Iterator<Item = (Guest, u64, Option<String>)> {
        let parts = |place: Place| (place.guest, place.delivered, place.trouble);
        self.0.into_iter().map(parts)
    }

    /// The loaded strategy.
    pub fn guest(&self, strategy: StrategyId) -> &Guest {
        &self.0[usize::from(strategy.0)].guest
    }

    fn place(&mut self, strategy: StrategyId) -> &mut Place {
        &mut self.0[usize::from(strategy.0)]
    }
}

impl Place {
    fn fails(&mut self, what: &str, fault: &Fault) {
        tracing::error!(strategy = %self.guest.name, %fault, "{what} failed");
        self.started = false;
        self.trouble = Some(format!("{what}: {fault}"));
    }
}

impl Guests for LiveGuests {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn trouble(&self, strategy: StrategyId) -> Option<&str> {
        self.0.get(usize::from(strategy.0))?.trouble.as_deref()
    }

    fn saved(&self, strategy: StrategyId) -> Option<Vec<u8>> {
        self.0.get(usize::from(strategy.0))?.saved.clone()
    }

    fn renew(&mut self, strategy: StrategyId) -> Result<(), String> {
        let place = self.place(strategy);
        let renewed = place.guest.strategy.renew();
        renewed.map_err(|fault| {
            place.fails("a new instance", &fault);
            fault.to_string()
        })
    }

    fn init(&mut self, strategy: StrategyId, engine: Box<Engine>) -> (Box<Engine>, InitResult) {
        let place = self.place(strategy);
        let guest = &mut place.guest;
        let (params, instruments) = (&guest.params, &guest.instruments);
        let (engine, result) = guest.strategy.start(engine, strategy, params, instruments);
        let result = match result {
            Ok(()) => {
                place.started = true;
                InitResult::Ready
            }
            Err(fault) if fault.kind == HostFault::Refused => {
                place.trouble = Some(fault.detail.clone());
                InitResult::Refused(fault.detail)
            }
            Err(fault) => {
                place.fails("start", &fault);
                InitResult::Fault(engine_fault(fault.kind))
            }
        };
        (engine, result)
    }

    fn deliver(
        &mut self,
        strategy: StrategyId,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>) {
        let place = self.place(strategy);
        let begin = Instant::now();
        let (engine, result) = place.guest.strategy.deliver(engine, event);
        place.delivered += 1;
        place.callbacks.record(begin.elapsed().as_secs_f64());
        let result = result.map_err(|fault| {
            place.fails("a callback", &fault);
            engine_fault(fault.kind)
        });
        (engine, result)
    }

    fn intents(&self, strategy: StrategyId) -> &[Intent] {
        self.guest(strategy).strategy.intents()
    }

    fn save(&mut self, strategy: StrategyId) -> Result<Option<Vec<u8>>, FaultKind> {
        let place = self.place(strategy);
        if place.started {
            let state = place.guest.strategy.save().map_err(|fault| {
                place.fails("save", &fault);
                engine_fault(fault.kind)
            })?;
            place.saved = Some(state);
        }
        Ok(place.saved.clone())
    }

    fn fuel_of_save(&self, strategy: StrategyId) -> u64 {
        self.guest(strategy).strategy.fuel_of_save()
    }

    fn load(&mut self, strategy: StrategyId, state: &[u8]) -> Result<(), String> {
        let place = self.place(strategy);
        let loaded = place.guest.strategy.load(state);
        loaded.map_err(|fault| {
            place.fails("load", &fault);
            fault.to_string()
        })
    }

    fn show_output(&mut self, strategy: StrategyId, now: Time) {
        let place = self.place(strategy);
        let guest = &mut place.guest;
        if guest.strategy.has_output() {
            let output = guest.strategy.take_output();
            place.lines.show(&guest.name, now, &output.logs);
        }
    }

    fn made(&self) -> Vec<Made> {
        self.0.iter().map(|place| place.guest.made()).collect()
    }
}

impl ReloadGuests for LiveGuests {
    type Instance = Guest;

    fn instance(&self, strategy: StrategyId) -> &Guest {
        self.guest(strategy)
    }

    fn replace(&mut self, strategy: StrategyId, guest: Guest) -> Guest {
        std::mem::replace(&mut self.place(strategy).guest, guest)
    }

    fn runs_on(&mut self, strategy: StrategyId) {
        let place = self.place(strategy);
        (place.started, place.trouble) = (true, None);
    }

    fn module(guest: &Guest) -> [u8; 32] {
        guest.sha256
    }

    fn made_of(guest: &Guest) -> Made {
        guest.made()
    }

    fn take_instruments(guest: &mut Guest, of: &Guest) {
        guest.instruments.clone_from(&of.instruments);
    }
}
