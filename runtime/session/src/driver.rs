//! Inputs in, actions out: the engine with its strategies.

use std::collections::VecDeque;

use windvane_engine::Engine;
use windvane_model::input::FaultKind;
use windvane_model::protocol::Refusal;
use windvane_model::record::Block;
use windvane_model::{
    ClientOrderId, Event, Input, Notice, Outcome, Reply, Request, StrategyId, Surface, Time,
};

use crate::engine_loop::{BeginError, EffectHandler, EngineLoop, feed_answer};
use crate::guests::Guests;
use crate::outbox::{Outbox, about};
use crate::saving::Saving;

/// What whoever drives has to do, in this order.
#[derive(Debug)]
pub enum Action {
    /// Make a block of records durable, then call [`Driver::durable`].
    Append(Block),
    /// Carry a request to the venue; its answer comes back as an input.
    Request(Request),
    /// Connect a user stream anew.
    Reconnect(Surface),
    /// Give the watchdog process of spot orders a sign of health.
    Beat(u64),
    /// Tell people.
    Notice(Box<Notice>),
}

/// The engine with its strategies and what waits for the journal.
///
/// After each call, drain [`Driver::poll`], then come back at [`Driver::next_timeout`].
#[derive(Debug)]
pub struct Driver<G> {
    core: EngineLoop,
    ends: Ends<G>,
}

/// What the engine's effects reach.
#[derive(Debug)]
struct Ends<G> {
    guests: G,
    outbox: Outbox,
    saving: Saving,
    actions: VecDeque<Action>,
    keeps_journal: bool,
}

/// How a new instance began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// With the state that there was.
    WithState,
    /// Without, for it could not use it: why.
    Fresh(String),
}

impl<G: Guests> Driver<G> {
    /// A driver whose strategies were not started. Without a journal, records count as durable at
    /// once.
    pub fn new(engine: Engine, guests: G, keeps_journal: bool) -> Self {
        let mut outbox = Outbox::default();
        if !keeps_journal {
            outbox.release(u64::MAX);
        }
        Self {
            core: EngineLoop::new(engine),
            ends: Ends {
                guests,
                outbox,
                saving: Saving::default(),
                actions: VecDeque::new(),
                keeps_journal,
            },
        }
    }

    /// Starts the strategies in their order, each with its saved state where there is one. One
    /// that fails, or cannot use its state, is not started blind: it is quarantined. One that is
    /// in quarantine is left there.
    ///
    /// # Errors
    /// The first strategy that refuses its parameters or instruments, with its reason.
    pub fn start(
        &mut self,
        now: Time,
        states: &[Option<Vec<u8>>],
    ) -> Result<(), (StrategyId, String)> {
        if self.ends.keeps_journal {
            self.ends.saving.begin(states);
        }
        self.core.start(now, states, &mut self.ends.guests)?;
        self.drain(now);
        Ok(())
    }

    /// Tries whether a strategy's module begins, with this state; nothing comes of it.
    ///
    /// # Errors
    /// Why it does not.
    pub fn rehearse(&mut self, strategy: StrategyId, state: Option<&[u8]>) -> Result<(), String> {
        let guests = &mut self.ends.guests;
        let tried = self.core.try_begin(strategy, state, guests);
        guests.show_output(strategy, self.core.engine().now());
        tried.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Begins a new instance of a strategy's module, out of quarantine or after a change of the
    /// module, with its state; where it cannot use that and may begin fresh, without.
    ///
    /// # Errors
    /// Why it does not begin; it is in quarantine then.
    pub fn renew(
        &mut self,
        now: Time,
        strategy: StrategyId,
        state: Option<&[u8]>,
        may_be_fresh: bool,
    ) -> Result<Renewed, String> {
        let (core, guests) = (&mut self.core, &mut self.ends.guests);
        guests.renew(strategy)?;
        core.handle(now, Input::Renew { strategy });
        let mut begun = core
            .begin(now, strategy, state, guests)
            .map(|()| Renewed::WithState);
        if let Err(BeginError::State(reason)) = &begun
            && may_be_fresh
        {
            let reason = reason.clone();
            begun = match guests.renew(strategy) {
                Ok(()) => core.begin(now, strategy, None, guests),
                Err(reason) => Err(BeginError::Refused(reason)),
            }
            .map(|()| Renewed::Fresh(reason));
        }
        if let Err(error) = &begun {
            core.quarantine(now, strategy, error);
        }
        self.drain(now);
        begun.map_err(|error| error.to_string())
    }

    /// Takes an input.
    #[inline]
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.core.handle(now, input);
        self.drain(now);
    }

    /// The journal is durable up to this record: orders that waited for it leave, but those whose
    /// cover ran out until `now`, before which the process may have stood still. Those that need not
    /// wait are not looked at, so that a simulated account stays a function of the journal.
    pub fn durable(&mut self, now: Time, record: u64) {
        let mut late = Vec::new();
        for request in self.ends.outbox.release(record) {
            if let Request::Place(order) = &request
                && let Some(why) = self.engine().kept_back(order, now)
            {
                late.push((order.client_order_id, why));
                continue;
            }
            let of_late = |id| late.iter().any(|(late, _)| late == id);
            if !about(&request).is_some_and(of_late) {
                self.ends.actions.push_back(Action::Request(request));
            }
        }
        for (client_order_id, why) in late {
            // Nobody else will ever say so; and what follows from it is in the journal then.
            let reply = Reply::Placed {
                client_order_id,
                outcome: Outcome::Refused(Refusal::not_sent(why.reason())),
            };
            self.handle(self.engine().now(), Input::Reply(&reply));
        }
    }

    /// Records what strategies know that were called since it was recorded last, before a block is
    /// ended by time.
    pub fn save(&mut self, now: Time) {
        for strategy in self.ends.saving.due(now) {
            if self.engine().fault(strategy).is_some() {
                continue;
            }
            let saved = self.ends.save(now, strategy, self.core.engine_mut());
            if let Err(kind) = saved {
                self.core.handle(now, Input::Fault { strategy, kind });
            }
        }
        self.drain(now);
    }

    /// Whether a strategy was called since what it knows was recorded.
    pub fn has_unsaved(&self) -> bool {
        self.ends.saving.is_behind()
    }

    /// Records what a strategy knows now, and answers it; what it saved before, where it is not
    /// running or cannot say it any more.
    pub fn state(&mut self, now: Time, strategy: StrategyId) -> Option<Vec<u8>> {
        if self.engine().fault(strategy).is_none() {
            match self.ends.save(now, strategy, self.core.engine_mut()) {
                Ok(()) if self.ends.keeps_journal => return self.ends.saving.last(strategy),
                Ok(()) => {}
                Err(kind) => self.core.handle(now, Input::Fault { strategy, kind }),
            }
        }
        // One that failed answers what it saved before.
        self.ends.guests.save(strategy).ok().flatten()
    }

    /// Ends the running block, so that what was recorded becomes durable soon.
    pub fn seal(&mut self) {
        self.core.seal();
        self.collect_blocks();
    }

    /// The next thing to do.
    #[inline]
    pub fn poll(&mut self) -> Option<Action> {
        self.ends.actions.pop_front()
    }

    /// When [`Input::Timeout`] is due.
    #[inline]
    pub fn next_timeout(&self) -> Option<Time> {
        self.core.next_timeout()
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        self.core.engine()
    }

    /// The strategies.
    pub const fn guests(&self) -> &G {
        &self.ends.guests
    }

    /// The strategies, to be changed between inputs.
    pub const fn guests_mut(&mut self) -> &mut G {
        &mut self.ends.guests
    }

    /// The engine and the strategies, at the end.
    pub fn into_parts(self) -> (Engine, G) {
        (self.core.into_engine(), self.ends.guests)
    }

    /// Orders that wait for the journal.
    pub fn waiting(&self) -> usize {
        self.ends.outbox.len()
    }

    /// Whether an order waits for the journal, so that the venue cannot have it.
    pub fn is_waiting(&self, id: &ClientOrderId) -> bool {
        self.ends.outbox.holds(id)
    }

    /// The whole state: the engine's snapshot and each strategy's. To be asked for only when
    /// every action was taken.
    pub fn snapshot(&mut self) -> (Vec<u8>, Vec<Option<Vec<u8>>>) {
        let now = self.engine().now();
        let count = self.ends.guests.count();
        let states = (0..count).map(|place| self.state(now, StrategyId(place as u16)));
        let states: Vec<_> = states.collect();
        self.drain(now);
        let engine = self.core.engine_mut().snapshot();
        self.collect_blocks();
        (engine, states)
    }

    /// Does what the engine wants done, until it wants nothing more.
    fn drain(&mut self, now: Time) {
        self.core.drain(now, &mut self.ends);
        self.collect_blocks();
    }

    /// Blocks go to the journal before the requests that wait for them can be released.
    fn collect_blocks(&mut self) {
        if !self.ends.keeps_journal {
            return;
        }
        while let Some(block) = self.core.poll_block() {
            self.ends.actions.push_back(Action::Append(block));
        }
    }
}

impl<G: Guests> Ends<G> {
    /// Records what a strategy knows now.
    fn save(
        &mut self,
        now: Time,
        strategy: StrategyId,
        engine: &mut Engine,
    ) -> Result<(), FaultKind> {
        let state = self.guests.save(strategy)?;
        let fuel = self.guests.fuel_of_save(strategy);
        let (handled, state) = self.saving.take(now, strategy, state, fuel);
        let input = Input::Saved {
            strategy,
            handled,
            state,
        };
        engine.handle(now, input);
        Ok(())
    }
}

impl<G: Guests> EffectHandler for Ends<G> {
    fn deliver(
        &mut self,
        strategy: StrategyId,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>) {
        self.guests.deliver(strategy, engine, event)
    }

    fn settle(
        &mut self,
        now: Time,
        strategy: StrategyId,
        engine: &mut Engine,
        event: &Event,
        result: Result<(), FaultKind>,
    ) {
        let intents = self.guests.intents(strategy);
        if result.is_ok() && self.saving.called(strategy, event, intents) {
            // `save` begins a callback of its own.
            let intents = intents.to_vec();
            // What it would not know any more after a restart, it does not do.
            let saved = self.save(now, strategy, engine);
            feed_answer(now, strategy, engine, saved.map(|()| intents.as_slice()));
        } else {
            feed_answer(now, strategy, engine, result.map(|()| intents));
        }
        self.guests.show_output(strategy, now);
    }

    fn send(&mut self, _: Time, record: u64, request: Box<Request>) {
        if let Some(request) = self.outbox.push(record, *request) {
            self.actions.push_back(Action::Request(request));
        }
    }

    fn reconnect(&mut self, surface: Surface) {
        self.actions.push_back(Action::Reconnect(surface));
    }

    fn beat(&mut self, number: u64) {
        self.actions.push_back(Action::Beat(number));
    }

    fn notice(&mut self, _: &Engine, notice: Notice) {
        self.actions.push_back(Action::Notice(Box::new(notice)));
    }
}
