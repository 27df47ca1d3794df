//! The interface to the strategies.

use windvane_engine::Engine;
use windvane_model::input::FaultKind;
use windvane_model::{Event, Intent, StrategyId, Time};

use crate::checkpoint::Made;
use crate::engine_loop::{BeginError, EngineLoop};

/// The strategies of a run, in the order of the configuration.
pub trait Guests {
    /// Number of strategies.
    fn count(&self) -> usize;

    /// Calls `start` of a strategy. Always returns the engine.
    fn init(&mut self, strategy: StrategyId, engine: Box<Engine>) -> (Box<Engine>, InitResult);

    /// Delivers an event. The intents of a successful callback can be read until the next callback.
    /// Always returns the engine.
    fn deliver(
        &mut self,
        strategy: StrategyId,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>);

    /// The intents of the last callback of a strategy.
    fn intents(&self, strategy: StrategyId) -> &[Intent];

    /// The state to keep across a restart; `None` if the strategy has none.
    ///
    /// # Errors
    /// The module failed, or its state has more than [`STATE_BYTES_MAX`](crate::STATE_BYTES_MAX). It
    /// must not be called again.
    fn save(&mut self, strategy: StrategyId) -> Result<Option<Vec<u8>>, FaultKind>;

    /// The last saved state of a strategy, of this process or an earlier one.
    fn saved(&self, _: StrategyId) -> Option<Vec<u8>> {
        None
    }

    /// The state that the last [`Guests::save`] of a strategy returned is compared and recorded.
    /// This work is the strategy's too.
    fn recorded(&mut self, _: StrategyId) {}

    /// The fuel that the last [`Guests::save`] of a strategy used.
    fn fuel_of_save(&self, _: StrategyId) -> u64 {
        0
    }

    /// Gives a saved state to a strategy that has started.
    ///
    /// # Errors
    /// The reason why the strategy cannot use it.
    fn load(&mut self, strategy: StrategyId, state: &[u8]) -> Result<(), String>;

    /// The instance in place was started beside the run: with this state, if it got one, or in vain,
    /// for this reason. In the latter case it must not be called.
    fn started(&mut self, _: StrategyId, _: Result<Option<&[u8]>, &str>) {}

    /// Why the last call of a strategy failed, for people; `None` if it succeeded.
    fn trouble(&self, _: StrategyId) -> Option<&str> {
        None
    }

    /// The runtime quarantines a strategy that did not fail itself, for this reason. Nothing of its
    /// last callback takes effect, so its state is not saved any more.
    fn quarantined(&mut self, _: StrategyId, _: &str) {}

    /// Shows the log lines and plot points of a strategy since the last call.
    fn show_output(&mut self, strategy: StrategyId, now: Time);

    /// The inputs from which each instance is made, apart from its module, in order.
    fn made(&self) -> Vec<Made> {
        vec![Made::default(); self.count()]
    }
}

/// Why a new instance did not start.
#[derive(Debug)]
pub struct StartFailure {
    /// The failure.
    pub error: BeginError,
    /// Its details, for people; empty if the error has them.
    pub details: String,
}

/// Strategies whose instances can be replaced, by a reload or after quarantine.
pub trait ReloadGuests: Guests {
    /// A compiled module with its instance.
    type Instance;

    /// The running instance of a strategy.
    fn instance(&self, strategy: StrategyId) -> &Self::Instance;

    /// Replaces the instance of a strategy and returns the old one.
    fn replace(&mut self, strategy: StrategyId, instance: Self::Instance) -> Self::Instance;

    /// The same compiled module with the same parameters, for [`ReloadGuests::start`]. Until then it
    /// must not be called.
    fn another(instance: &Self::Instance) -> Self::Instance;

    /// Drops an instance. That may take long, because its memory is returned to the system.
    fn retire(&self, instance: Self::Instance) {
        drop(instance);
    }

    /// Makes the instance new, then calls `start` and `load` on it, apart from the other strategies
    /// and possibly on another thread. `engine` is a copy that nothing else uses. Returns the
    /// intents of `start`, which have no effect yet.
    ///
    /// # Errors
    /// Why it does not start.
    fn start(
        instance: &mut Self::Instance,
        strategy: StrategyId,
        engine: &mut EngineLoop,
        state: Option<&[u8]>,
    ) -> Result<Vec<Intent>, StartFailure>;

    /// The hash of an instance's module.
    fn module(instance: &Self::Instance) -> [u8; 32];

    /// The inputs from which an instance is made, apart from its module.
    fn made_of(instance: &Self::Instance) -> Made;

    /// Gives an instance the same instruments as another one.
    fn take_instruments(instance: &mut Self::Instance, of: &Self::Instance);
}

/// Result of a strategy's `start`.
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
