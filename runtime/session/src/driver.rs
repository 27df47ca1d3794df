//! Inputs in, actions out: the engine with its strategies.

use std::collections::VecDeque;

use windvane_engine::input::FaultKind;
use windvane_engine::protocol::Refusal;
use windvane_engine::record::Block;
use windvane_engine::{
    ClientOrderId, Effect, Engine, Event, Input, Intent, Notice, Outcome, Reply, Request,
    StrategyId, Surface, Time,
};

use crate::guests::{Guests, InitResult};
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
    /// Away only while a strategy is called with it.
    engine: Option<Box<Engine>>,
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

/// Why a strategy does not begin.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("it refuses: {0}")]
    Refused(String),
    #[error("its start failed: {}", .0.as_str())]
    Fault(FaultKind),
    #[error("it cannot use its saved state: {0}")]
    State(String),
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
            engine: Some(Box::new(engine)),
            guests,
            outbox,
            saving: Saving::default(),
            actions: VecDeque::new(),
            keeps_journal,
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
        if self.keeps_journal {
            self.saving.begin(states);
        }
        for place in 0..self.guests.count() {
            let strategy = StrategyId(place as u16);
            if self.engine().fault(strategy).is_some() {
                continue;
            }
            let state = states.get(place).and_then(Option::as_deref);
            match self.begin(now, strategy, state) {
                Err(Trouble::Refused(reason)) => return Err((strategy, reason)),
                Err(trouble) => self.quarantine(now, strategy, &trouble),
                Ok(()) => {}
            }
        }
        self.drain(now);
        Ok(())
    }

    /// Tries whether a strategy's module begins, with this state; nothing comes of it.
    ///
    /// # Errors
    /// Why it does not.
    pub fn rehearse(&mut self, strategy: StrategyId, state: Option<&[u8]>) -> Result<(), String> {
        let tried = self.try_begin(strategy, state);
        self.guests.show_output(strategy, self.engine().now());
        tried.map(|_| ()).map_err(|trouble| trouble.to_string())
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
        self.guests.renew(strategy)?;
        self.handle_quietly(now, Input::Renew { strategy });
        let mut begun = self
            .begin(now, strategy, state)
            .map(|()| Renewed::WithState);
        if let Err(Trouble::State(reason)) = &begun
            && may_be_fresh
        {
            let reason = reason.clone();
            begun = match self.guests.renew(strategy) {
                Ok(()) => self.begin(now, strategy, None),
                Err(reason) => Err(Trouble::Refused(reason)),
            }
            .map(|()| Renewed::Fresh(reason));
        }
        if let Err(trouble) = &begun {
            self.quarantine(now, strategy, trouble);
        }
        self.drain(now);
        begun.map_err(|trouble| trouble.to_string())
    }

    /// `start`, then `load`; what `start` intends counts once both succeeded.
    fn begin(
        &mut self,
        now: Time,
        strategy: StrategyId,
        state: Option<&[u8]>,
    ) -> Result<(), Trouble> {
        let intents = self.try_begin(strategy, state);
        self.guests.show_output(strategy, now);
        let intents = &intents?;
        self.handle_quietly(now, Input::Answer { strategy, intents });
        Ok(())
    }

    fn try_begin(
        &mut self,
        strategy: StrategyId,
        state: Option<&[u8]>,
    ) -> Result<Vec<Intent>, Trouble> {
        let Some(engine) = self.engine.take() else {
            return Ok(Vec::new());
        };
        let (engine, result) = self.guests.init(strategy, engine);
        self.engine = Some(engine);
        match result {
            InitResult::Ready => {}
            InitResult::Refused(reason) => return Err(Trouble::Refused(reason)),
            InitResult::Fault(kind) => return Err(Trouble::Fault(kind)),
        }
        // `load` begins a callback of its own.
        let intents = self.guests.intents(strategy).to_vec();
        if let Some(state) = state {
            let loaded = self.guests.load(strategy, state);
            loaded.map_err(Trouble::State)?;
        }
        Ok(intents)
    }

    fn quarantine(&mut self, now: Time, strategy: StrategyId, trouble: &Trouble) {
        let kind = match trouble {
            Trouble::Refused(_) => FaultKind::Contract,
            Trouble::Fault(kind) => *kind,
            Trouble::State(_) => FaultKind::State,
        };
        self.handle_quietly(now, Input::Fault { strategy, kind });
    }

    /// Takes an input.
    #[inline]
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.handle_quietly(now, input);
        self.drain(now);
    }

    fn handle_quietly(&mut self, now: Time, input: Input<'_>) {
        if let Some(engine) = &mut self.engine {
            engine.handle(now, input);
        }
    }

    /// The journal is durable up to this record: orders that waited for it leave, but those whose
    /// cover ran out until `now`, before which the process may have stood still. Those that need not
    /// wait are not looked at, so that a simulated account stays a function of the journal.
    pub fn durable(&mut self, now: Time, record: u64) {
        let mut late = Vec::new();
        for request in self.outbox.release(record) {
            if let Request::Place(order) = &request
                && let Some(why) = self.engine().kept_back(order, now)
            {
                late.push((order.client_order_id, why));
                continue;
            }
            let of_late = |id| late.iter().any(|(late, _)| late == id);
            if !about(&request).is_some_and(of_late) {
                self.actions.push_back(Action::Request(request));
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
        for strategy in self.saving.due(now) {
            if self.engine().fault(strategy).is_some() {
                continue;
            }
            if let Err(kind) = self.save_one(now, strategy) {
                self.handle_quietly(now, Input::Fault { strategy, kind });
            }
        }
        self.drain(now);
    }

    /// Whether a strategy was called since what it knows was recorded.
    pub fn has_unsaved(&self) -> bool {
        self.saving.is_behind()
    }

    /// Records what a strategy knows now, and answers it; what it saved before, where it is not
    /// running or cannot say it any more.
    pub fn state(&mut self, now: Time, strategy: StrategyId) -> Option<Vec<u8>> {
        if self.engine().fault(strategy).is_none() {
            match self.save_one(now, strategy) {
                Ok(()) if self.keeps_journal => return self.saving.last(strategy),
                Ok(()) => {}
                Err(kind) => self.handle_quietly(now, Input::Fault { strategy, kind }),
            }
        }
        // One that failed answers what it saved before.
        self.guests.save(strategy).ok().flatten()
    }

    fn save_one(&mut self, now: Time, strategy: StrategyId) -> Result<(), FaultKind> {
        let state = self.guests.save(strategy)?;
        let fuel = self.guests.fuel_of_save(strategy);
        let (handled, state) = self.saving.take(now, strategy, state, fuel);
        if let Some(engine) = &mut self.engine {
            let input = Input::Saved {
                strategy,
                handled,
                state,
            };
            engine.handle(now, input);
        }
        Ok(())
    }

    /// Ends the running block, so that what was recorded becomes durable soon.
    pub fn seal(&mut self) {
        if let Some(engine) = &mut self.engine {
            engine.seal();
        }
        self.collect_blocks();
    }

    /// The next thing to do.
    #[inline]
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Input::Timeout`] is due.
    #[inline]
    pub fn next_timeout(&self) -> Option<Time> {
        let (time, _) = self.engine.as_ref()?.poll_timeout()?;
        Some(time)
    }

    /// The engine.
    ///
    /// # Panics
    /// Never: it is away only within a call.
    pub fn engine(&self) -> &Engine {
        match &self.engine {
            Some(engine) => engine,
            None => unreachable!("the engine is away only while a strategy is called"),
        }
    }

    /// The strategies.
    pub const fn guests(&self) -> &G {
        &self.guests
    }

    /// The strategies, to be changed between inputs.
    pub const fn guests_mut(&mut self) -> &mut G {
        &mut self.guests
    }

    /// The engine and the strategies, at the end.
    pub fn into_parts(self) -> (Option<Engine>, G) {
        (self.engine.map(|engine| *engine), self.guests)
    }

    /// Orders that wait for the journal.
    pub fn waiting(&self) -> usize {
        self.outbox.len()
    }

    /// Whether an order waits for the journal, so that the venue cannot have it.
    pub fn is_waiting(&self, id: &ClientOrderId) -> bool {
        self.outbox.holds(id)
    }

    /// The whole state: the engine's snapshot and each strategy's. To be asked for only when
    /// every action was taken.
    pub fn snapshot(&mut self) -> (Vec<u8>, Vec<Option<Vec<u8>>>) {
        let now = self.engine().now();
        let count = self.guests.count();
        let states = (0..count).map(|place| self.state(now, StrategyId(place as u16)));
        let states: Vec<_> = states.collect();
        self.drain(now);
        let engine = self.engine.as_mut().map(|engine| engine.snapshot());
        self.collect_blocks();
        (engine.unwrap_or_default(), states)
    }

    /// Does what the engine wants done, until it wants nothing more.
    fn drain(&mut self, now: Time) {
        while let Some(effect) = self.engine.as_mut().and_then(|engine| engine.poll_effect()) {
            match effect {
                Effect::Deliver { strategy, event } => self.deliver(now, strategy, &event),
                Effect::Send { record, request } => {
                    if let Some(request) = self.outbox.push(record, *request) {
                        self.actions.push_back(Action::Request(request));
                    }
                }
                Effect::Reconnect { surface } => {
                    self.actions.push_back(Action::Reconnect(surface));
                }
                Effect::Beat { number } => self.actions.push_back(Action::Beat(number)),
            }
        }
        while let Some(notice) = self.engine.as_mut().and_then(|engine| engine.poll_notice()) {
            self.actions.push_back(Action::Notice(Box::new(notice)));
        }
        self.collect_blocks();
    }

    fn deliver(&mut self, now: Time, strategy: StrategyId, event: &Event) {
        // It failed at an event before this one.
        if self.engine().fault(strategy).is_some() {
            return;
        }
        let Some(engine) = self.engine.take() else {
            return;
        };
        let (engine, result) = self.guests.deliver(strategy, engine, event);
        let engine = self.engine.insert(engine);
        match result {
            Ok(()) => {
                let intents = self.guests.intents(strategy);
                if self.saving.called(strategy, event, intents) {
                    // `save` begins a callback of its own.
                    let intents = &intents.to_vec();
                    // What it would not know any more after a restart, it does not do.
                    let input = match self.save_one(now, strategy) {
                        Ok(()) => Input::Answer { strategy, intents },
                        Err(kind) => Input::Fault { strategy, kind },
                    };
                    self.handle_quietly(now, input);
                } else if !intents.is_empty() {
                    engine.handle(now, Input::Answer { strategy, intents });
                }
            }
            Err(kind) => engine.handle(now, Input::Fault { strategy, kind }),
        }
        self.guests.show_output(strategy, now);
    }

    /// Blocks go to the journal before the requests that wait for them can be released.
    fn collect_blocks(&mut self) {
        if !self.keeps_journal {
            return;
        }
        while let Some(block) = self.engine.as_mut().and_then(|engine| engine.poll_block()) {
            self.actions.push_back(Action::Append(block));
        }
    }
}
