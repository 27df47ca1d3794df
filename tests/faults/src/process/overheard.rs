//! Strategies that are overheard: each order that a callback answers is kept for the witness before
//! the engine takes it.
//!
//! What may never enter here: what the engine makes of an answer.

use windvane::live::guests::LiveGuests;
use windvane_driver::{Guests, InitResult};
use windvane_engine::input::FaultKind;
use windvane_engine::order::OrderTerms;
use windvane_engine::{Engine, Event, Intent, OrderSeq, StrategyId, Time};

/// An order that a strategy answered: whose, its number, and what it wants.
pub type Heard = (StrategyId, OrderSeq, OrderTerms);

/// The strategies of a run.
pub struct Overheard {
    guests: LiveGuests,
    heard: Vec<Heard>,
}

impl Overheard {
    /// Listens to these.
    pub const fn new(guests: LiveGuests) -> Self {
        Self {
            guests,
            heard: Vec::new(),
        }
    }

    /// What was heard since the last time.
    pub fn take(&mut self) -> Vec<Heard> {
        std::mem::take(&mut self.heard)
    }

    fn listen(&mut self, strategy: StrategyId) {
        for intent in self.guests.intents(strategy) {
            if let Intent::Submit { order, terms } = intent {
                self.heard.push((strategy, *order, *terms));
            }
        }
    }
}

impl Guests for Overheard {
    fn count(&self) -> usize {
        self.guests.count()
    }

    fn renew(&mut self, strategy: StrategyId) -> Result<(), String> {
        self.guests.renew(strategy)
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
        self.guests.intents(strategy)
    }

    fn save(&mut self, strategy: StrategyId) -> Option<Vec<u8>> {
        self.guests.save(strategy)
    }

    fn load(&mut self, strategy: StrategyId, state: &[u8]) -> Result<(), String> {
        self.guests.load(strategy, state)
    }

    fn show_output(&mut self, strategy: StrategyId, now: Time) {
        self.guests.show_output(strategy, now);
    }
}
