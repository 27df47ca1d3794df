//! Strategies that the simulator overhears. For each order that a callback returns, the witness
//! gets the order and the strategy's state before the engine processes it. The witness also gets
//! the states that strategies are given back.
//!
//! This file must not read what the engine does with an output.

use std::hash::{DefaultHasher, Hasher};

use windvane_build::modules::Guest;
use windvane_engine::Engine;
use windvane_live::guests::LiveGuests;
use windvane_model::input::FaultKind;
use windvane_model::order::OrderTerms;
use windvane_model::{Event, Intent, OrderSeq, StrategyId, Time};
use windvane_session::{EngineLoop, Guests, InitResult, Made, ReloadGuests, StartFailure};

/// An overheard act of a strategy. A state is represented by its hash.
#[derive(Clone, Copy, Debug)]
pub enum AnswerReceived {
    /// The strategy returned an order: the number and the terms of the order, and the strategy's
    /// state at that moment.
    Order(StrategyId, OrderSeq, OrderTerms, u64),
    /// The strategy saved something new.
    Saved(StrategyId, u64),
    /// The strategy was given a state that it saved earlier.
    Given(StrategyId, u64),
    /// The strategy got a new instance.
    Renewed(StrategyId),
}

/// The strategies of a run.
pub struct ObservedGuests {
    guests: LiveGuests,
    /// The intents of the last callback of each strategy. They are copied, because `save` begins
    /// another callback, which clears them.
    intents: Vec<Vec<Intent>>,
    /// The hash of the last saved state of each strategy.
    saved: Vec<Option<u64>>,
    observed: Vec<AnswerReceived>,
}

impl ObservedGuests {
    /// Overhears these strategies.
    pub fn new(guests: LiveGuests) -> Self {
        let count = guests.count();
        Self {
            guests,
            intents: vec![Vec::new(); count],
            saved: vec![None; count],
            observed: Vec::new(),
        }
    }

    /// The acts since the last call.
    pub fn take(&mut self) -> Vec<AnswerReceived> {
        std::mem::take(&mut self.observed)
    }

    fn listen(&mut self, strategy: StrategyId) {
        let place = usize::from(strategy.0);
        self.intents[place].clear();
        let intents = self.guests.intents(strategy);
        if intents.is_empty() {
            return;
        }
        self.intents[place].extend_from_slice(intents);
        let state = self.guests.save(strategy).ok().flatten();
        let knows = state.map_or(0, |state| hash(&state));
        for intent in &self.intents[place] {
            if let Intent::Submit { order, terms } = intent {
                let order = AnswerReceived::Order(strategy, *order, *terms, knows);
                self.observed.push(order);
            }
        }
    }
}

fn hash(state: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(state);
    hasher.finish()
}

impl Guests for ObservedGuests {
    fn count(&self) -> usize {
        self.guests.count()
    }

    fn trouble(&self, strategy: StrategyId) -> Option<&str> {
        self.guests.trouble(strategy)
    }

    fn saved(&self, strategy: StrategyId) -> Option<Vec<u8>> {
        self.guests.saved(strategy)
    }

    fn started(&mut self, strategy: StrategyId, result: Result<Option<&[u8]>, &str>) {
        self.observed.push(AnswerReceived::Renewed(strategy));
        if let Ok(Some(state)) = result {
            self.observed
                .push(AnswerReceived::Given(strategy, hash(state)));
        }
        self.intents[usize::from(strategy.0)].clear();
        self.guests.started(strategy, result);
    }

    fn init(&mut self, strategy: StrategyId, engine: Box<Engine>) -> (Box<Engine>, InitResult) {
        let (engine, result) = self.guests.init(strategy, engine);
        if result == InitResult::Ready {
            self.listen(strategy);
        }
        (engine, result)
    }

    fn deliver(
        &mut self,
        strategy: StrategyId,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>) {
        let (engine, result) = self.guests.deliver(strategy, engine, event);
        if result.is_ok() {
            self.listen(strategy);
        }
        (engine, result)
    }

    fn intents(&self, strategy: StrategyId) -> &[Intent] {
        &self.intents[usize::from(strategy.0)]
    }

    fn save(&mut self, strategy: StrategyId) -> Result<Option<Vec<u8>>, FaultKind> {
        let state = self.guests.save(strategy)?;
        let knows = state.as_deref().map(hash);
        let last = &mut self.saved[usize::from(strategy.0)];
        if let Some(knows) = knows
            && knows != last.unwrap_or_default()
        {
            self.observed.push(AnswerReceived::Saved(strategy, knows));
        }
        *last = knows;
        Ok(state)
    }

    fn load(&mut self, strategy: StrategyId, state: &[u8]) -> Result<(), String> {
        self.observed
            .push(AnswerReceived::Given(strategy, hash(state)));
        self.guests.load(strategy, state)
    }

    fn quarantined(&mut self, strategy: StrategyId, why: &str) {
        self.guests.quarantined(strategy, why);
    }

    fn show_output(&mut self, strategy: StrategyId, now: Time) {
        self.guests.show_output(strategy, now);
    }

    fn made(&self) -> Vec<Made> {
        self.guests.made()
    }
}

impl ReloadGuests for ObservedGuests {
    type Instance = Guest;

    fn instance(&self, strategy: StrategyId) -> &Guest {
        self.guests.instance(strategy)
    }

    fn replace(&mut self, strategy: StrategyId, guest: Guest) -> Guest {
        self.guests.replace(strategy, guest)
    }

    fn another(guest: &Guest) -> Guest {
        LiveGuests::another(guest)
    }

    fn start(
        guest: &mut Guest,
        strategy: StrategyId,
        engine: &mut EngineLoop,
        state: Option<&[u8]>,
    ) -> Result<Vec<Intent>, StartFailure> {
        LiveGuests::start(guest, strategy, engine, state)
    }

    fn module(guest: &Guest) -> [u8; 32] {
        LiveGuests::module(guest)
    }

    fn made_of(guest: &Guest) -> Made {
        LiveGuests::made_of(guest)
    }

    fn take_instruments(guest: &mut Guest, of: &Guest) {
        LiveGuests::take_instruments(guest, of);
    }
}
