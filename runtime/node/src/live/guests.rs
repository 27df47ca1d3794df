//! The strategies of a live run as WebAssembly modules in the host.

use windvane_driver::{Guests, InitResult};
use windvane_engine::input::FaultKind;
use windvane_engine::{Engine, Event, Intent, StrategyId, Time};
use windvane_host::FaultKind as HostFault;

use crate::strategies::{Guest, Made, engine_fault, show_lines};

/// All strategies of a run, in the order of the configuration.
pub struct LiveGuests(Vec<Guest>);

impl LiveGuests {
    /// Strategies that have not begun.
    pub const fn new(guests: Vec<Guest>) -> Self {
        Self(guests)
    }

    /// What each instance is made of beside its module.
    pub fn made(&self) -> Vec<Made> {
        self.0.iter().map(Guest::made).collect()
    }

    fn guest(&mut self, strategy: StrategyId) -> &mut Guest {
        &mut self.0[usize::from(strategy.0)]
    }
}

impl Guests for LiveGuests {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn init(&mut self, strategy: StrategyId, engine: Box<Engine>) -> (Box<Engine>, InitResult) {
        let guest = self.guest(strategy);
        let (params, instruments) = (&guest.params, &guest.instruments);
        let (engine, result) = guest.strategy.init(engine, strategy, params, instruments);
        let result = match result {
            Ok(()) => InitResult::Ready,
            Err(fault) if fault.kind == HostFault::Refused => InitResult::Refused(fault.detail),
            Err(fault) => {
                tracing::error!(strategy = %guest.name, %fault, "init failed");
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
        let guest = self.guest(strategy);
        let (engine, result) = guest.strategy.deliver(engine, event);
        let result = result.map_err(|fault| {
            tracing::error!(strategy = %guest.name, time_ns = event.time.0, %fault, "callback failed");
            engine_fault(fault.kind)
        });
        (engine, result)
    }

    fn intents(&self, strategy: StrategyId) -> &[Intent] {
        self.0[usize::from(strategy.0)].strategy.intents()
    }

    fn save(&mut self, strategy: StrategyId) -> Option<Vec<u8>> {
        let guest = self.guest(strategy);
        let saved = guest.strategy.save();
        saved
            .inspect_err(|fault| tracing::warn!(strategy = %guest.name, %fault, "save failed"))
            .ok()
    }

    fn load(&mut self, strategy: StrategyId, state: &[u8]) -> Result<(), String> {
        let guest = self.guest(strategy);
        guest.strategy.load(state).map_err(|fault| {
            tracing::error!(strategy = %guest.name, %fault, "its saved state cannot be used");
            fault.to_string()
        })
    }

    fn show_output(&mut self, strategy: StrategyId, now: Time) {
        let guest = self.guest(strategy);
        if guest.strategy.has_output() {
            let output = guest.strategy.take_output();
            show_lines(&guest.name, now, &output.logs);
        }
    }
}
