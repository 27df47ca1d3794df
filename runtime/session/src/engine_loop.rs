//! The one loop around the engine: it takes an input, does what the engine asks for, and lends the
//! engine to the strategies. Live run, simulator, backtest and replay run it, each with its own
//! [`EffectHandler`].

use windvane_engine::Engine;
use windvane_model::input::FaultKind;
use windvane_model::record::Block;
use windvane_model::{Effect, Event, Input, Intent, Notice, Request, StrategyId, Surface, Time};

use crate::guests::{Guests, InitResult};

/// Does what the engine asks for. The calls come in the order of the engine's effects, then in that
/// of its notices.
pub trait EffectHandler {
    /// Calls a strategy with an event. The engine comes back, whatever happens.
    fn deliver(
        &mut self,
        strategy: StrategyId,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>);

    /// Feeds the engine what followed from the call; see [`feed_answer`].
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

    /// Connects the user stream of a surface anew.
    fn reconnect(&mut self, _: Surface) {}

    /// Gives the watchdog process of spot orders a sign of health.
    fn beat(&mut self, _: u64) {}

    /// Tells people.
    fn notice(&mut self, engine: &Engine, notice: Notice);
}

/// Drops every effect and hands notices on: nobody acts on what the engine wants.
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

/// Why a strategy does not begin.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// It cannot work with its parameters or instruments.
    #[error("it refuses: {0}")]
    Refused(String),
    /// Its `start` failed.
    #[error("its start failed: {}", .0.as_str())]
    Fault(FaultKind),
    /// Its `load` failed.
    #[error("it cannot use its saved state: {0}")]
    State(String),
}

impl BeginError {
    /// The fault with which the strategy is quarantined.
    pub const fn fault(&self) -> FaultKind {
        match self {
            Self::Refused(_) => FaultKind::Contract,
            Self::Fault(kind) => *kind,
            Self::State(_) => FaultKind::State,
        }
    }
}

/// The engine, which is away only while a strategy is called with it.
#[derive(Debug)]
pub struct EngineLoop(Option<Box<Engine>>);

impl EngineLoop {
    /// A loop around an engine.
    pub fn new(engine: Engine) -> Self {
        Self(Some(Box::new(engine)))
    }

    /// The engine.
    ///
    /// # Panics
    /// Never: it is away only within a call.
    #[inline]
    pub fn engine(&self) -> &Engine {
        match &self.0 {
            Some(engine) => engine,
            None => unreachable!("the engine is away only while a strategy is called"),
        }
    }

    /// The engine, to be changed between inputs.
    ///
    /// # Panics
    /// Never: it is away only within a call.
    #[inline]
    pub fn engine_mut(&mut self) -> &mut Engine {
        match &mut self.0 {
            Some(engine) => engine,
            None => unreachable!("the engine is away only while a strategy is called"),
        }
    }

    /// The engine, at the end.
    ///
    /// # Panics
    /// Never: it is away only within a call.
    pub fn into_engine(self) -> Engine {
        match self.0 {
            Some(engine) => *engine,
            None => unreachable!("the engine is away only while a strategy is called"),
        }
    }

    /// When [`Input::Timeout`] is due.
    #[inline]
    pub fn next_timeout(&self) -> Option<Time> {
        let (time, _) = self.engine().poll_timeout()?;
        Some(time)
    }

    /// Takes an input. What follows from it is done by [`EngineLoop::drain`].
    #[inline]
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.engine_mut().handle(now, input);
    }

    /// Lends the engine to a call that gives it back.
    #[inline]
    pub fn lend<R>(&mut self, call: impl FnOnce(Box<Engine>) -> (Box<Engine>, R)) -> R {
        let Some(engine) = self.0.take() else {
            unreachable!("the engine is away only while a strategy is called");
        };
        let (engine, result) = call(engine);
        self.0 = Some(engine);
        result
    }

    /// Does what the engine wants done, until it wants nothing more.
    #[inline]
    pub fn drain<H: EffectHandler>(&mut self, now: Time, handler: &mut H) {
        while let Some(effect) = self.engine_mut().poll_effect() {
            match effect {
                Effect::Deliver { strategy, event } => {
                    self.deliver(now, strategy, &event, handler);
                }
                Effect::Send { record, request } => handler.send(now, record, request),
                Effect::Reconnect { surface } => handler.reconnect(surface),
                Effect::Beat { number } => handler.beat(number),
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
        // It failed at an event before this one.
        if self.engine().fault(strategy).is_some() {
            return;
        }
        let result = self.lend(|engine| handler.deliver(strategy, engine, event));
        handler.settle(now, strategy, self.engine_mut(), event, result);
    }

    /// Starts the strategies in their order, each with its saved state where there is one. One
    /// that fails, or cannot use its state, is not started blind: it is quarantined. One that is
    /// in quarantine is left there.
    ///
    /// # Errors
    /// The first strategy that refuses its parameters or instruments, with its reason.
    pub fn start<G: Guests>(
        &mut self,
        now: Time,
        states: &[Option<Vec<u8>>],
        guests: &mut G,
    ) -> Result<(), (StrategyId, String)> {
        for place in 0..guests.count() {
            let strategy = StrategyId(place as u16);
            if self.engine().fault(strategy).is_some() {
                continue;
            }
            let state = states.get(place).and_then(Option::as_deref);
            match self.begin(now, strategy, state, guests) {
                Err(BeginError::Refused(reason)) => return Err((strategy, reason)),
                Err(error) => self.quarantine(now, strategy, &error),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// `start`, then `load`; what `start` intends counts once both succeeded.
    ///
    /// # Errors
    /// Why it does not begin.
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

    /// `start`, then `load`; answers what `start` intends, of which nothing comes.
    ///
    /// # Errors
    /// Why it does not begin.
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
        // `load` begins a callback of its own.
        let intents = guests.intents(strategy).to_vec();
        if let Some(state) = state {
            let loaded = guests.load(strategy, state);
            loaded.map_err(BeginError::State)?;
        }
        Ok(intents)
    }

    /// Tells the engine that a strategy did not begin.
    pub fn quarantine(&mut self, now: Time, strategy: StrategyId, error: &BeginError) {
        let kind = error.fault();
        self.handle(now, Input::Fault { strategy, kind });
    }

    /// Ends the running block.
    pub fn seal(&mut self) {
        self.engine_mut().seal();
    }

    /// The next block of records.
    #[inline]
    pub fn poll_block(&mut self) -> Option<Block> {
        self.engine_mut().poll_block()
    }
}

/// Feeds the engine what a callback intended, or that it failed.
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
