//! The only loop around the engine. It feeds an input to the engine, handles the effects and lends
//! the engine to the strategies. Live run, fault simulator, backtest and replay all run it, each
//! with its own [`EffectHandler`].

use windvane_engine::Engine;
use windvane_model::input::FaultKind;
use windvane_model::record::Block;
use windvane_model::{
    Effect, Event, EventKind, Input, Intent, Notice, Request, StrategyId, Surface, Time,
};

use crate::guests::{Guests, InitResult};

/// Handles the engine's effects. The calls come in the order of the effects, then in the order of
/// the notices.
pub trait EffectHandler {
    /// Calls a strategy with an event. Always returns the engine.
    fn deliver(
        &mut self,
        strategy: StrategyId,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>);

    /// Feeds the result of the call to the engine; see [`feed_answer`].
    fn settle(
        &mut self,
        now: Time,
        strategy: StrategyId,
        engine: &mut Engine,
        event: &Event,
        result: Result<(), FaultKind>,
    );

    /// Sends a request to the venue once the record with this sequence is durable.
    fn send(&mut self, now: Time, record: u64, request: Box<Request>);

    /// Reconnects the user stream of a surface.
    fn reconnect(&mut self, _: Surface) {}

    /// Sends a heartbeat to the watchdog process of spot orders.
    fn heartbeat(&mut self, _: u64) {}

    /// Shows a notice to people.
    fn notice(&mut self, engine: &Engine, notice: Notice);
}

/// Drops every effect and passes notices on, for callers that do not act on effects.
#[derive(Clone, Copy, Debug)]
pub struct NoticesOnly<F>(pub F);

impl<F: FnMut(&Engine, Notice)> EffectHandler for NoticesOnly<F> {
    fn deliver(
        &mut self,
        _: StrategyId,
        engine: Box<Engine>,
        _: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>) {
        (engine, Ok(()))
    }

    fn settle(
        &mut self,
        _: Time,
        _: StrategyId,
        _: &mut Engine,
        _: &Event,
        _: Result<(), FaultKind>,
    ) {
    }

    fn send(&mut self, _: Time, _: u64, _: Box<Request>) {}

    fn notice(&mut self, engine: &Engine, notice: Notice) {
        (self.0)(engine, notice);
    }
}

/// Why a strategy does not start.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// It cannot work with its parameters or instruments, for this reason.
    #[error("the strategy refused to start: {0}")]
    Refused(String),
    /// Its `start` failed.
    #[error("its `start` failed: {}", .0.as_str())]
    Fault(FaultKind),
    /// Its `load` failed.
    #[error("it could not load its saved state: {0}")]
    State(String),
}

impl BeginError {
    /// The fault kind of the quarantine that follows.
    pub const fn fault(&self) -> FaultKind {
        match self {
            Self::Refused(_) => FaultKind::Contract,
            Self::Fault(kind) => *kind,
            Self::State(_) => FaultKind::State,
        }
    }
}

/// Largest number of events that are kept for a strategy while it starts.
const KEPT_EVENTS_MAX: usize = 16_384;

/// The engine. It is absent only while a strategy is called with it.
#[derive(Debug)]
pub struct EngineLoop {
    engine: Option<Box<Engine>>,
    /// The strategies that start beside the run.
    starting: Vec<Starting>,
}

/// A strategy that starts beside the run, and its events since the begin.
#[derive(Debug)]
struct Starting {
    strategy: StrategyId,
    events: Vec<Event>,
    /// An event was dropped, because too many came.
    has_lost: bool,
}

impl EngineLoop {
    /// A loop around an engine.
    pub fn new(engine: Engine) -> Self {
        Self {
            engine: Some(Box::new(engine)),
            starting: Vec::new(),
        }
    }

    /// From here on a strategy is not called: it starts beside the run. Its events are kept, except
    /// public market data other than bars, and the run state.
    pub fn hold(&mut self, strategy: StrategyId) {
        self.starting.push(Starting {
            strategy,
            events: Vec::new(),
            has_lost: false,
        });
    }

    /// Whether a strategy starts beside the run.
    #[inline]
    pub fn is_held(&self, strategy: StrategyId) -> bool {
        self.starting.iter().any(|one| one.strategy == strategy)
    }

    /// Whether more events came for a starting strategy than are kept. Its start must fail then.
    pub fn has_lost_events(&self, strategy: StrategyId) -> bool {
        let mut starting = self.starting.iter();
        starting.any(|one| one.strategy == strategy && one.has_lost)
    }

    /// Ends a start without the kept events, which are dropped.
    pub fn drop_held(&mut self, strategy: StrategyId) {
        self.starting.retain(|one| one.strategy != strategy);
    }

    /// Ends a start: the new instance gets the kept events, in order. The run state of the moment
    /// follows as an effect of the engine.
    pub fn release<H: EffectHandler>(&mut self, now: Time, strategy: StrategyId, handler: &mut H) {
        let place = self
            .starting
            .iter()
            .position(|one| one.strategy == strategy);
        let Some(place) = place else {
            return;
        };
        for event in self.starting.swap_remove(place).events {
            self.deliver(now, strategy, &event, handler);
        }
    }

    /// Keeps an event of a starting strategy. Returns `false` if the strategy must be called.
    #[cold]
    fn keep(&mut self, strategy: StrategyId, event: &Event) -> bool {
        let mut starting = self.starting.iter_mut();
        let Some(starting) = starting.find(|one| one.strategy == strategy) else {
            return false;
        };
        // The next event shows the market as it is then. A bar would be missing for ever. The end of
        // the start reports the run state.
        let is_replaced = event.kind.is_of_market() && event.kind != EventKind::Bar;
        if is_replaced || event.kind == EventKind::RuntimeState {
            return true;
        }
        if starting.events.len() == KEPT_EVENTS_MAX {
            starting.has_lost = true;
        } else {
            starting.events.push(*event);
        }
        true
    }

    /// The engine.
    ///
    /// # Panics
    /// Never: the engine is absent only within a call.
    #[inline]
    pub fn engine(&self) -> &Engine {
        match &self.engine {
            Some(engine) => engine,
            None => unreachable!("the engine is absent only while a strategy is called"),
        }
    }

    /// The engine, mutable, for changes between inputs.
    ///
    /// # Panics
    /// Never: the engine is absent only within a call.
    #[inline]
    pub fn engine_mut(&mut self) -> &mut Engine {
        match &mut self.engine {
            Some(engine) => engine,
            None => unreachable!("the engine is absent only while a strategy is called"),
        }
    }

    /// The engine, at the end of the run.
    ///
    /// # Panics
    /// Never: the engine is absent only within a call.
    pub fn into_engine(self) -> Engine {
        match self.engine {
            Some(engine) => *engine,
            None => unreachable!("the engine is absent only while a strategy is called"),
        }
    }

    /// When [`Input::Timeout`] is due.
    #[inline]
    pub fn next_timeout(&self) -> Option<Time> {
        let (time, _) = self.engine().poll_timeout()?;
        Some(time)
    }

    /// Feeds an input to the engine. [`EngineLoop::drain`] handles the effects.
    #[inline]
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.engine_mut().handle(now, input);
    }

    /// Lends the engine to a call, which returns it.
    #[inline]
    pub fn lend<R>(&mut self, call: impl FnOnce(Box<Engine>) -> (Box<Engine>, R)) -> R {
        let Some(engine) = self.engine.take() else {
            unreachable!("the engine is absent only while a strategy is called");
        };
        let (engine, result) = call(engine);
        self.engine = Some(engine);
        result
    }

    /// Handles the engine's effects until it has no more, then its notices.
    #[inline]
    pub fn drain<H: EffectHandler>(&mut self, now: Time, handler: &mut H) {
        while let Some(effect) = self.engine_mut().poll_effect() {
            match effect {
                Effect::Deliver { strategy, event } => {
                    if self.starting.is_empty() || !self.keep(strategy, &event) {
                        self.deliver(now, strategy, &event, handler);
                    }
                }
                Effect::Send { record, request } => handler.send(now, record, request),
                Effect::Reconnect { surface } => handler.reconnect(surface),
                Effect::Heartbeat { number } => handler.heartbeat(number),
            }
        }
        let engine = self.engine_mut();
        while let Some(notice) = engine.poll_notice() {
            handler.notice(engine, notice);
        }
    }

    #[inline]
    fn deliver<H: EffectHandler>(
        &mut self,
        now: Time,
        strategy: StrategyId,
        event: &Event,
        handler: &mut H,
    ) {
        // The strategy failed at an earlier event.
        if self.engine().fault(strategy).is_some() {
            return;
        }
        let result = self.lend(|engine| handler.deliver(strategy, engine, event));
        handler.settle(now, strategy, self.engine_mut(), event, result);
    }

    /// Starts the strategies in order, each with its saved state if it has one. A strategy that
    /// fails, or cannot load its state, is quarantined; it never starts without its state. A
    /// strategy that is already in quarantine is not started.
    ///
    /// A strategy that refuses to start ends the start of the process, because its configuration is
    /// wrong. The strategies in `known` started before with the same module, parameters and instruments. They are
    /// quarantined instead, so that none of them can hold up the others at a restart.
    ///
    /// # Errors
    /// The first other strategy that refuses its parameters or instruments, with its reason.
    pub fn start<G: Guests>(
        &mut self,
        now: Time,
        states: &[Option<Vec<u8>>],
        known: &[StrategyId],
        guests: &mut G,
    ) -> Result<(), (StrategyId, String)> {
        for place in 0..guests.count() {
            let strategy = StrategyId(place as u16);
            if self.engine().fault(strategy).is_some() {
                continue;
            }
            let state = states.get(place).and_then(Option::as_deref);
            match self.begin(now, strategy, state, guests) {
                Err(BeginError::Refused(reason)) if !known.contains(&strategy) => {
                    return Err((strategy, reason));
                }
                Err(BeginError::Refused(reason)) => {
                    tracing::error!(
                        strategy = self.engine().strategy_name(strategy),
                        %reason,
                        "a strategy that started before with the same module and parameters \
                         refuses to start: it is quarantined, and the others start"
                    );
                    self.quarantine(now, strategy, &BeginError::Refused(reason));
                }
                Err(error) => self.quarantine(now, strategy, &error),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Calls `start`, then `load`. The intents of `start` take effect only if both succeed.
    ///
    /// # Errors
    /// The reason why it does not start.
    pub fn begin<G: Guests>(
        &mut self,
        now: Time,
        strategy: StrategyId,
        state: Option<&[u8]>,
        guests: &mut G,
    ) -> Result<(), BeginError> {
        let intents = self.try_begin(strategy, state, guests);
        guests.show_output(strategy, now);
        let intents = &intents?;
        self.handle(now, Input::Answer { strategy, intents });
        Ok(())
    }

    /// Calls `start`, then `load`. Returns the intents of `start`, which have no effect.
    ///
    /// # Errors
    /// The reason why it does not start.
    pub fn try_begin<G: Guests>(
        &mut self,
        strategy: StrategyId,
        state: Option<&[u8]>,
        guests: &mut G,
    ) -> Result<Vec<Intent>, BeginError> {
        match self.lend(|engine| guests.init(strategy, engine)) {
            InitResult::Ready => {}
            InitResult::Refused(reason) => return Err(BeginError::Refused(reason)),
            InitResult::Fault(kind) => return Err(BeginError::Fault(kind)),
        }
        // `load` starts a callback of its own, which clears the intents.
        let intents = guests.intents(strategy).to_vec();
        if let Some(state) = state {
            let loaded = guests.load(strategy, state);
            loaded.map_err(BeginError::State)?;
        }
        Ok(intents)
    }

    /// Reports to the engine that a strategy did not start.
    pub fn quarantine(&mut self, now: Time, strategy: StrategyId, error: &BeginError) {
        let kind = error.fault();
        self.handle(now, Input::Fault { strategy, kind });
    }

    /// Ends the open block.
    pub fn seal(&mut self) {
        self.engine_mut().seal();
    }

    /// The next block of records.
    #[inline]
    pub fn poll_block(&mut self) -> Option<Block> {
        self.engine_mut().poll_block()
    }
}

/// Feeds the engine the intents of a callback, or its failure.
#[inline]
pub fn feed_answer(
    now: Time,
    strategy: StrategyId,
    engine: &mut Engine,
    result: Result<&[Intent], FaultKind>,
) {
    match result {
        Ok([]) => {}
        Ok(intents) => engine.handle(now, Input::Answer { strategy, intents }),
        Err(kind) => engine.handle(now, Input::Fault { strategy, kind }),
    }
}
