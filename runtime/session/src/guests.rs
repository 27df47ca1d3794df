//! Strategies, as a driver calls them.

use windvane_engine::Engine;
use windvane_model::input::FaultKind;
use windvane_model::{Event, Intent, StrategyId, Time};

use crate::head::Made;

/// The strategies of a run, in the order of the configuration.
pub trait Guests {
    /// How many there are.
    fn count(&self) -> usize;

    /// Makes a new instance of a strategy's module, with which `start` begins again.
    ///
    /// # Errors
    /// Why there is none; the old one is gone.
    fn renew(&mut self, strategy: StrategyId) -> Result<(), String> {
        Err(format!(
            "strategy {} cannot be instantiated anew",
            strategy.0
        ))
    }

    /// Calls `start` of a strategy. The engine comes back, whatever happens.
    fn init(&mut self, strategy: StrategyId, engine: Box<Engine>) -> (Box<Engine>, InitResult);

    /// Delivers an event. The intents of a callback that succeeded can be read until the next
    /// one. The engine comes back, whatever happens.
    fn deliver(
        &mut self,
        strategy: StrategyId,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>);

    /// What the last callback of a strategy intended.
    fn intents(&self, strategy: StrategyId) -> &[Intent];

    /// The state to carry over a restart; `None` when it has none.
    ///
    /// # Errors
    /// The module failed: it may not be called any more.
    fn save(&mut self, strategy: StrategyId) -> Result<Option<Vec<u8>>, FaultKind>;

    /// What a strategy saved last, in this process or in an earlier one.
    fn saved(&self, _: StrategyId) -> Option<Vec<u8>> {
        None
    }

    /// The fuel that the last [`Guests::save`] of a strategy took.
    fn fuel_of_save(&self, _: StrategyId) -> u64 {
        0
    }

    /// Hands a saved state to a strategy that was initialised.
    ///
    /// # Errors
    /// Why it cannot use it.
    fn load(&mut self, strategy: StrategyId, state: &[u8]) -> Result<(), String>;

    /// Why the last call of a strategy failed, in words; `None` if it did not.
    fn trouble(&self, _: StrategyId) -> Option<&str> {
        None
    }

    /// Shows the log lines and points of a strategy since the last time.
    fn show_output(&mut self, strategy: StrategyId, now: Time);

    /// What each instance is made of beside its module, in their order.
    fn made(&self) -> Vec<Made> {
        vec![Made::default(); self.count()]
    }
}

/// Strategies whose instances a reload replaces.
pub trait ReloadGuests: Guests {
    /// A compiled module with its instance.
    type Instance;

    /// The instance in a strategy's place.
    fn instance(&self, strategy: StrategyId) -> &Self::Instance;

    /// Puts another instance in a strategy's place; answers the one before.
    fn replace(&mut self, strategy: StrategyId, instance: Self::Instance) -> Self::Instance;

    /// The instance in a strategy's place is the one that ran before, and runs on.
    fn runs_on(&mut self, strategy: StrategyId);

    /// The hash of an instance's module.
    fn module(instance: &Self::Instance) -> [u8; 32];

    /// What an instance is made of beside its module.
    fn made_of(instance: &Self::Instance) -> Made;

    /// An instance sees the instruments that another one sees.
    fn take_instruments(instance: &mut Self::Instance, of: &Self::Instance);
}

/// How `start` of a strategy went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitResult {
    /// It is ready.
    Ready,
    /// It cannot work with its parameters or instruments, for this reason.
    Refused(String),
    /// It failed.
    Fault(FaultKind),
}

/// No strategies: a replay takes their answers from the journal.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoGuests;

impl Guests for NoGuests {
    fn count(&self) -> usize {
        0
    }

    fn init(&mut self, _: StrategyId, engine: Box<Engine>) -> (Box<Engine>, InitResult) {
        (engine, InitResult::Ready)
    }

    fn deliver(
        &mut self,
        _: StrategyId,
        engine: Box<Engine>,
        _: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>) {
        (engine, Ok(()))
    }

    fn intents(&self, _: StrategyId) -> &[Intent] {
        &[]
    }

    fn save(&mut self, _: StrategyId) -> Result<Option<Vec<u8>>, FaultKind> {
        Ok(None)
    }

    fn load(&mut self, _: StrategyId, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn show_output(&mut self, _: StrategyId, _: Time) {}
}
