//! Strategies of tests, which need no modules, and a session with them.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "shared by test files, each with its own part"
)]

use std::ops::{Deref, DerefMut};

use windvane_client_core::streams::StreamSettings;
use windvane_engine::Engine;
use windvane_model::input::FaultKind;
use windvane_model::kill_switch::StoredKillSwitches;
use windvane_model::{Event, Intent, StrategyId, Time};
use windvane_session::{
    Account, BLOCKS_UNDER_WAY, Clock, Driver, Guests, InitResult, KillSwitchState, Made, Parts,
    Session,
};

/// The time at which a session of a test begins.
pub const NOW: Time = Time(1_700_000_000_000_000_000);

/// What the strategies of a test do. Without its own functions, a script is one strategy that does
/// nothing and has no state.
pub trait Script {
    /// The number of strategies.
    const COUNT: usize = 1;

    /// A strategy receives an event.
    fn receive(&mut self, _: StrategyId, _: &Engine, _: &Event) {}

    /// The intents of the last callback.
    fn intents(&self) -> &[Intent] {
        &[]
    }

    /// As [`Guests::save`].
    fn save(&mut self, _: StrategyId) -> Result<Option<Vec<u8>>, FaultKind> {
        Ok(None)
    }

    /// As [`Guests::saved`].
    fn saved(&self) -> Option<Vec<u8>> {
        None
    }

    /// As [`Guests::recorded`].
    fn recorded(&mut self) {}

    /// As [`Guests::started`].
    fn started(&mut self, _: Result<Option<&[u8]>, &str>) {}

    /// As [`Guests::trouble`].
    fn trouble(&self) -> Option<&str> {
        None
    }

    /// As [`Guests::made`].
    fn made(&self) -> Vec<Made> {
        vec![Made::default(); Self::COUNT]
    }
}

/// Strategies that do what a script says. They always start, and they accept each saved state.
#[derive(Debug, Default)]
pub struct Scripted<S>(pub S);

impl<S> Deref for Scripted<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S> DerefMut for Scripted<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.0
    }
}

impl<S: Script> Guests for Scripted<S> {
    fn count(&self) -> usize {
        S::COUNT
    }

    fn init(&mut self, _: StrategyId, engine: Box<Engine>) -> (Box<Engine>, InitResult) {
        (engine, InitResult::Ready)
    }

    fn deliver(
        &mut self,
        strategy: StrategyId,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>) {
        self.0.receive(strategy, &engine, event);
        (engine, Ok(()))
    }

    fn intents(&self, _: StrategyId) -> &[Intent] {
        self.0.intents()
    }

    fn save(&mut self, strategy: StrategyId) -> Result<Option<Vec<u8>>, FaultKind> {
        self.0.save(strategy)
    }

    fn saved(&self, _: StrategyId) -> Option<Vec<u8>> {
        self.0.saved()
    }

    fn recorded(&mut self, _: StrategyId) {
        self.0.recorded();
    }

    fn load(&mut self, _: StrategyId, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn started(&mut self, _: StrategyId, result: Result<Option<&[u8]>, &str>) {
        self.0.started(result);
    }

    fn trouble(&self, _: StrategyId) -> Option<&str> {
        self.0.trouble()
    }

    fn show_output(&mut self, _: StrategyId, _: Time) {}

    fn made(&self) -> Vec<Made> {
        self.0.made()
    }
}

/// A session on the venue's account, without requests and streams. All strategies have the same module.
pub fn session<G: Guests>(driver: Driver<G>, names: &[&str], module: [u8; 32]) -> Session<G> {
    let names = || names.iter().map(|name| (*name).to_owned());
    let parts = Parts {
        driver,
        account: Account::Venue,
        requests: None,
        clock: Clock::counted(NOW, NOW),
        modules: names().map(|name| (name, module)).collect(),
        surfaces: Vec::new(),
        streams: StreamSettings::default(),
        public: None,
        kill_switch: KillSwitchState::new(StoredKillSwitches::default(), names()),
        flattens: false,
        blocks_under_way: BLOCKS_UNDER_WAY,
    };
    Session::new(NOW, parts)
}
