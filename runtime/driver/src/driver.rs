//! Inputs in, actions out: the engine with its strategies.

use std::collections::VecDeque;

use windvane_engine::input::FaultKind;
use windvane_engine::record::Block;
use windvane_engine::{Effect, Engine, Event, Input, Notice, Request, StrategyId, Surface, Time};

use crate::guests::{Guests, InitResult};
use crate::outbox::Outbox;

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
    actions: VecDeque<Action>,
    keeps_journal: bool,
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
            actions: VecDeque::new(),
            keeps_journal,
        }
    }

    /// Starts the strategies in their order, each with its saved state where there is one. One
    /// that fails, or cannot use its state, is not started blind: it is quarantined.
    ///
    /// # Errors
    /// The first strategy that refuses its parameters or instruments, with its reason.
    pub fn start(
        &mut self,
        now: Time,
        states: &[Option<Vec<u8>>],
    ) -> Result<(), (StrategyId, String)> {
        for place in 0..self.guests.count() {
            let strategy = StrategyId(place as u16);
            let Some(engine) = self.engine.take() else {
                break;
            };
            let (engine, result) = self.guests.init(strategy, engine);
            let engine = self.engine.insert(engine);
            match result {
                InitResult::Ready => {
                    let intents = self.guests.intents(strategy);
                    engine.handle(now, Input::Answer { strategy, intents });
                }
                InitResult::Refused(reason) => return Err((strategy, reason)),
                InitResult::Fault(kind) => engine.handle(now, Input::Fault { strategy, kind }),
            }
            if let Some(Some(state)) = states.get(place)
                && self.guests.load(strategy, state).is_err()
            {
                let kind = FaultKind::Contract;
                self.handle_quietly(now, Input::Fault { strategy, kind });
            }
            self.guests.show_output(strategy, now);
        }
        self.drain(now);
        Ok(())
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

    /// The journal is durable up to this record: orders that waited for it leave.
    pub fn durable(&mut self, record: u64) {
        for request in self.outbox.release(record) {
            self.actions.push_back(Action::Request(request));
        }
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

    /// Orders that wait for the journal.
    pub fn waiting(&self) -> usize {
        self.outbox.len()
    }

    /// The whole state: the engine's snapshot and each strategy's. To be asked for only when
    /// every action was taken.
    pub fn snapshot(&mut self) -> (Vec<u8>, Vec<Option<Vec<u8>>>) {
        let count = self.guests.count();
        let states = (0..count).map(|place| self.guests.save(StrategyId(place as u16)));
        let states = states.collect();
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
        let Some(engine) = self.engine.take() else {
            return;
        };
        let (engine, result) = self.guests.deliver(strategy, engine, event);
        let engine = self.engine.insert(engine);
        match result {
            Ok(()) => {
                let intents = self.guests.intents(strategy);
                if !intents.is_empty() {
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
