//! The engine with its strategies: inputs go in, actions come out.

use std::collections::VecDeque;

use windvane_engine::Engine;
use windvane_model::input::{FaultKind, StartPhase};
use windvane_model::protocol::Refusal;
use windvane_model::record::Block;
use windvane_model::{
    ClientOrderId, Event, Input, Intent, Notice, Outcome, Reply, Request, StrategyId, Surface, Time,
};

use crate::answer_limits::{AnswerLimit, AnswerLimits};
use crate::engine_loop::{EffectHandler, EngineLoop, feed_answer};
use crate::guests::Guests;
use crate::outbox::{Outbox, about};
use crate::saving::{SaveTime, Saving};

/// An action for the caller. All actions must be carried out, in order.
#[derive(Debug)]
pub enum Action {
    /// Make this block of records durable, then call [`Driver::durable`].
    Append(Block),
    /// Send this request to the venue; the response comes back as an input.
    Request(Request),
    /// Reconnect the user stream of this surface.
    Reconnect(Surface),
    /// Send a heartbeat to the watchdog process of spot orders.
    Heartbeat(u64),
    /// Show this notice to people.
    Notice(Box<Notice>),
}

/// The engine with its strategies, and the requests that wait for the journal.
///
/// After each call, drain [`Driver::poll`]. Call again at [`Driver::next_timeout`].
#[derive(Debug)]
pub struct Driver<G> {
    core: EngineLoop,
    ends: Ends<G>,
}

/// The parts that handle the engine's effects.
#[derive(Debug)]
struct Ends<G> {
    guests: G,
    outbox: Outbox,
    saving: Saving,
    answer_limits: AnswerLimits,
    actions: VecDeque<Action>,
    keeps_journal: bool,
}

impl<G: Guests> Driver<G> {
    /// A driver whose strategies have not started. Without a journal, records count as durable at
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
                answer_limits: AnswerLimits::default(),
                actions: VecDeque::new(),
                keeps_journal,
            },
        }
    }

    /// Starts the strategies in order, see [`EngineLoop::start`].
    ///
    /// # Errors
    /// The first strategy that refuses its parameters or instruments, with its reason, and is not
    /// in `known`.
    pub fn start(
        &mut self,
        now: Time,
        states: &[Option<Vec<u8>>],
        known: &[StrategyId],
    ) -> Result<(), (StrategyId, String)> {
        if self.ends.keeps_journal {
            self.ends.saving.begin(states);
        }
        self.core.start(now, states, known, &mut self.ends.guests)?;
        self.drain(now);
        Ok(())
    }

    /// Records that a new instance of a strategy starts beside the run. The strategy is not called
    /// until [`Driver::end_start`]. Returns the engine with which the instance starts, see
    /// [`Engine::restore_for_start`].
    pub fn begin_start(&mut self, now: Time, strategy: StrategyId) -> Vec<u8> {
        let phase = StartPhase::Begins;
        self.core.handle(now, Input::Start { strategy, phase });
        let engine = self.core.engine().report();
        self.core.hold(strategy);
        self.drain(now);
        engine
    }

    /// Ends a start with the intents of `start`, or with the fault that quarantines the strategy.
    /// The new instance, which is in place, gets the events since the begin. It gets nothing if the
    /// engine put the strategy into quarantine meanwhile.
    pub fn end_start(
        &mut self,
        now: Time,
        strategy: StrategyId,
        result: Result<&[Intent], FaultKind>,
    ) {
        let (core, ends) = (&mut self.core, &mut self.ends);
        ends.guests.show_output(strategy, now);
        match result {
            Ok(intents) => {
                let phase = StartPhase::Ends;
                core.handle(now, Input::Start { strategy, phase });
                if core.engine().fault(strategy).is_none() {
                    core.handle(now, Input::Answer { strategy, intents });
                }
                core.release(now, strategy, ends);
            }
            Err(kind) => {
                core.drop_held(strategy);
                core.handle(now, Input::Fault { strategy, kind });
            }
        }
        self.drain(now);
    }

    /// Whether more events came for a starting strategy than are kept.
    pub fn has_lost_events(&self, strategy: StrategyId) -> bool {
        self.core.has_lost_events(strategy)
    }

    /// Handles one input.
    #[inline]
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.core.handle(now, input);
        self.drain(now);
    }

    /// The journal is durable up to this record: the orders that waited for it leave. An order is
    /// refused instead if it must not leave any more at `now`, because the process may have been
    /// suspended while the order waited. Examples: the dead man's countdown of its symbol ran out,
    /// or the order was cancelled.
    ///
    /// Orders that need not wait are not checked, so that a simulated account stays a function of
    /// the journal.
    pub fn durable(&mut self, now: Time, record: u64) {
        let mut late = Vec::new();
        for request in self.ends.outbox.release(record) {
            if let Request::Place(order) = &request
                && let Some(why) = self.engine().withheld_reason(order, now)
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
            // The refusal must be an input: nobody else reports it, and its consequences must be in
            // the journal.
            let reply = Reply::Placed {
                client_order_id,
                outcome: Outcome::Refused(Refusal::not_sent(why.reason())),
            };
            self.handle(self.engine().now(), Input::Reply(&reply));
        }
    }

    /// Records the state of each strategy that was called since its last record. To be called
    /// before a block ends because of its age.
    pub fn save(&mut self, now: Time) {
        let runs =
            |strategy| self.engine().fault(strategy).is_none() && !self.core.is_held(strategy);
        for strategy in self.ends.saving.due(now, runs) {
            let saved = self.ends.save(now, strategy, self.core.engine_mut());
            if let Err(kind) = saved {
                self.core.handle(now, Input::Fault { strategy, kind });
            }
        }
        self.drain(now);
    }

    /// Whether a strategy was called since its state was recorded last.
    pub fn has_unsaved(&self) -> bool {
        self.ends.saving.is_behind()
    }

    /// Records the present state of a strategy and returns it. If the strategy is not running or
    /// cannot save, returns the last saved state.
    pub fn state(&mut self, now: Time, strategy: StrategyId) -> Option<Vec<u8>> {
        if self.engine().fault(strategy).is_none() && !self.core.is_held(strategy) {
            match self.ends.save(now, strategy, self.core.engine_mut()) {
                Ok(()) if self.ends.keeps_journal => return self.ends.saving.last(strategy),
                Ok(()) => {}
                Err(kind) => self.core.handle(now, Input::Fault { strategy, kind }),
            }
        }
        // A strategy that failed, or that starts, returns its last saved state.
        self.ends.guests.save(strategy).ok().flatten()
    }

    /// Ends the open block, so that its records become durable soon.
    pub fn seal(&mut self) {
        self.core.seal();
        self.collect_blocks();
    }

    /// The next action.
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

    /// The strategies, mutable, for changes between inputs.
    pub const fn guests_mut(&mut self) -> &mut G {
        &mut self.ends.guests
    }

    /// The engine and the strategies, at the end of the run.
    pub fn into_parts(self) -> (Engine, G) {
        (self.core.into_engine(), self.ends.guests)
    }

    /// Number of requests that wait for the journal.
    pub fn waiting(&self) -> usize {
        self.ends.outbox.len()
    }

    /// Whether an order waits for the journal, so that the venue cannot have it yet.
    pub fn is_waiting(&self, id: &ClientOrderId) -> bool {
        self.ends.outbox.holds(id)
    }

    /// The whole state: the engine's snapshot and the state of each strategy. Call this only after
    /// every action was carried out.
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

    /// Handles the engine's effects until it has no more.
    fn drain(&mut self, now: Time) {
        self.core.drain(now, &mut self.ends);
        self.collect_blocks();
    }

    /// Passes the finished blocks to the journal. This must come before the requests that wait for
    /// them can be released.
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
    /// Records the present state of a strategy.
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
        self.guests.recorded(strategy);
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
        let limit = if result.is_ok() && self.keeps_journal {
            self.answer_limits.take(now, strategy, intents).err()
        } else {
            None
        };
        if let Some(limit) = limit {
            log_quarantine(engine.strategy_name(strategy).unwrap_or_default(), limit);
            self.guests.quarantined(strategy, limit.reason());
            feed_answer(now, strategy, engine, Err(FaultKind::Intents));
            return self.guests.show_output(strategy, now);
        }
        let save_time = if result.is_ok() {
            self.saving.called(strategy, event, intents)
        } else {
            SaveTime::Later
        };
        if let SaveTime::Slowed(Some(repeated)) = save_time {
            let name = engine.strategy_name(strategy).unwrap_or_default();
            tracing::warn!(
                strategy = name,
                repeated,
                "the state of the strategy is recorded less often, because it fills the journal"
            );
        }
        if save_time == SaveTime::AtOnce {
            // `save` starts a callback of its own, which clears the intents.
            let intents = intents.to_vec();
            // If the state cannot be saved, the intents are dropped: the strategy would not know of
            // these orders after a restart.
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

    fn heartbeat(&mut self, number: u64) {
        self.actions.push_back(Action::Heartbeat(number));
    }

    fn notice(&mut self, _: &Engine, notice: Notice) {
        self.actions.push_back(Action::Notice(Box::new(notice)));
    }
}

fn log_quarantine(strategy: &str, limit: AnswerLimit) {
    match limit {
        AnswerLimit::Bytes => tracing::error!(
            strategy,
            "the strategy is quarantined, because its orders, refused orders and timers fill the journal"
        ),
        AnswerLimit::Orders => tracing::error!(
            strategy,
            "the strategy is quarantined, because it placed too many orders"
        ),
    }
}
