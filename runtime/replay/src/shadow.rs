//! Runs a second module of a strategy beside the recorded one in a replay, and starts modules
//! there.

use std::collections::BTreeMap;
use std::sync::Arc;

use windvane_engine::Engine;
use windvane_host::FaultKind as HostFault;
use windvane_model::event::EventKind;
use windvane_model::input::FaultKind;
use windvane_model::{Event, Intent, StrategyId, Time};
use windvane_session::{EngineLoop, Guests, InitResult};

use windvane_build::modules::{Guest, engine_fault};

/// A module that runs beside the recorded one.
#[derive(Clone, Debug)]
pub struct NewModule {
    /// The strategy's id.
    pub id: String,
    /// The module.
    pub module: Arc<[u8]>,
}

/// A module that receives the same events as the recorded one.
pub(super) struct Shadow {
    pub(super) guest: Guest,
    /// Its timers by token. The replayed engine does not know them.
    pub(super) timers: BTreeMap<i64, Time>,
    /// Whether it failed. Then it receives nothing more.
    pub(super) failed: bool,
}

impl Shadow {
    /// Whether it receives this event. A timer event only goes to the module that set the timer.
    pub(super) fn receives(&self, event: &Event) -> bool {
        !self.failed
            && (event.kind != EventKind::Timer || self.timers.contains_key(&event.fields[0]))
    }

    pub(super) fn deliver(
        &mut self,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Vec<Intent>) {
        if event.kind == EventKind::Timer {
            self.timers.remove(&event.fields[0]);
        }
        let (engine, result) = self.guest.strategy.deliver(engine, event);
        drop(self.guest.strategy.take_output());
        if result.is_err() {
            self.failed = true;
            return (engine, Vec::new());
        }
        let intents = self.guest.strategy.intents().to_vec();
        self.keep_timers(&intents);
        (engine, intents)
    }

    pub(super) fn keep_timers(&mut self, intents: &[Intent]) {
        for intent in intents {
            match intent {
                Intent::SetTimer { time, token } => {
                    self.timers.insert(*token, *time);
                }
                Intent::CancelTimer { token } => {
                    self.timers.remove(token);
                }
                _ => {}
            }
        }
    }
}

/// Calls `start`, then `load`, and returns the intents of `start`.
pub(super) fn begin_guest(
    core: &mut EngineLoop,
    guest: &mut Guest,
    strategy: StrategyId,
    state: Option<&[u8]>,
) -> Result<Vec<Intent>, FaultKind> {
    let outcome = core.try_begin(strategy, state, &mut Silent(guest));
    drop(guest.strategy.take_output());
    outcome.map_err(|error| error.fault())
}

/// One strategy whose log output is dropped, because the recorded run showed it already.
struct Silent<'a>(&'a mut Guest);

impl Guests for Silent<'_> {
    fn count(&self) -> usize {
        1
    }

    fn init(&mut self, strategy: StrategyId, engine: Box<Engine>) -> (Box<Engine>, InitResult) {
        let guest = &mut *self.0;
        let (params, instruments) = (&guest.params, &guest.instruments);
        let (engine, result) = guest.strategy.start(engine, strategy, params, instruments);
        let result = match result {
            Ok(()) => InitResult::Ready,
            Err(fault) if fault.kind == HostFault::Refused => InitResult::Refused(fault.detail),
            Err(fault) => InitResult::Fault(engine_fault(fault.kind)),
        };
        (engine, result)
    }

    fn deliver(
        &mut self,
        _: StrategyId,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>) {
        let (engine, result) = self.0.strategy.deliver(engine, event);
        (engine, result.map_err(|fault| engine_fault(fault.kind)))
    }

    fn intents(&self, _: StrategyId) -> &[Intent] {
        self.0.strategy.intents()
    }

    fn save(&mut self, _: StrategyId) -> Result<Option<Vec<u8>>, FaultKind> {
        let saved = self.0.strategy.save();
        saved.map(Some).map_err(|fault| engine_fault(fault.kind))
    }

    fn load(&mut self, _: StrategyId, state: &[u8]) -> Result<(), String> {
        let loaded = self.0.strategy.load(state);
        loaded.map_err(|fault| fault.to_string())
    }

    fn show_output(&mut self, _: StrategyId, _: Time) {
        drop(self.0.strategy.take_output());
    }
}
