//! The loop of a backtest: market, venue, engine and strategies on one virtual clock.
//!
//! At every step the earliest thing happens. Ties go, in this order, to: the venue's timers,
//! requests that arrive, answers that arrive, the engine's timers, the sample of the second, the
//! market at the venue, the market at the engine. Nothing else decides, so that two runs are equal.

use std::time::{Duration, Instant};

use windvane_engine::event::Event;
use windvane_engine::input::FaultKind;
use windvane_engine::{Effect, Engine, Input, Request, StrategyId, Time};
use windvane_session::InitResult;
use windvane_session::transit::Transit;
use windvane_sim::{Latency, Venue, VenueMessage};

use super::feed::Feed;
use super::tally::Tally;
use crate::recording::RecordingError;

/// Strategies, as a run drives them.
pub trait Guests {
    /// Calls `start` of a strategy.
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
    fn intents(&self, strategy: StrategyId) -> &[windvane_engine::Intent];

    /// Hands over the log lines and points of a strategy since the last time.
    fn drain_output(&mut self, strategy: StrategyId, now: Time, tally: &mut Tally);
}

/// One run.
pub struct Session<G> {
    /// Empty only while a strategy is called with the engine.
    engine: Option<Box<Engine>>,
    venue: Venue,
    guests: G,
    latency: Latency,
    requests: Transit<Request>,
    messages: Transit<VenueMessage>,
    next_sample: Time,
    /// The earliest time of everything but the market.
    next_other: Time,
    tally: Tally,
    clock: Clock,
}

/// Wall time by part, measured on a sample of the events so that measuring does not slow the run.
#[derive(Debug, Default)]
pub struct Clock {
    events: u64,
    sampling: bool,
    /// Time in the venue.
    pub venue: Stopwatch,
    /// Time in the engine.
    pub engine: Stopwatch,
    /// Time in the strategies.
    pub guests: Stopwatch,
    /// Time with the rows and counts of the results.
    pub results: Stopwatch,
}

/// Progress is told once in this many events.
const PROGRESS_EVENTS: u64 = 1 << 16;
/// One event of this many is timed.
const SAMPLED: u64 = 512;

/// Sampled time of one part.
#[derive(Debug, Default)]
pub struct Stopwatch {
    total: Duration,
    readings: u32,
}

impl Stopwatch {
    #[inline]
    fn stop(&mut self, start: Option<Instant>) {
        if let Some(start) = start {
            self.total += start.elapsed();
            self.readings += 1;
        }
    }

    /// Time over all events, without what reading the clock itself took.
    pub fn estimate(&self, reading: Duration) -> Duration {
        let net = self.total.saturating_sub(reading * self.readings);
        net * SAMPLED as u32
    }
}

impl Clock {
    /// Whether any event was counted.
    pub const fn was_read(&self) -> bool {
        self.events > 0
    }

    #[inline]
    fn next_event(&mut self) {
        self.events += 1;
        self.sampling = self.events.is_multiple_of(SAMPLED);
    }

    #[inline]
    fn start(&self) -> Option<Instant> {
        if self.sampling {
            Some(Instant::now())
        } else {
            None
        }
    }

    /// What one reading of the clock takes here.
    pub fn reading() -> Duration {
        let began = Instant::now();
        for _ in 0..1000 {
            std::hint::black_box(Instant::now());
        }
        began.elapsed() / 1000
    }
}

/// What is left of a run.
pub struct Finished<G> {
    /// The engine in its last state.
    pub engine: Engine,
    /// The strategies.
    pub guests: G,
    /// Counts and rows.
    pub tally: Tally,
    /// Wall time by part.
    pub clock: Clock,
}

impl<G: Guests> Session<G> {
    /// A run that has not begun.
    pub fn new(engine: Engine, venue: Venue, guests: G, latency: Latency, tally: Tally) -> Self {
        Self {
            engine: Some(Box::new(engine)),
            venue,
            guests,
            latency,
            requests: Transit::default(),
            messages: Transit::default(),
            next_sample: Time::NEVER,
            next_other: Time::NEVER,
            tally,
            clock: Clock::default(),
        }
    }

    /// Starts the strategies, in their order, at the time of the first event.
    ///
    /// # Errors
    /// The first strategy that refuses, with its reason. One that fails is quarantined.
    pub fn start(&mut self, now: Time) -> Result<(), (StrategyId, String)> {
        self.tally.start(now);
        self.next_sample = next_second(now);
        for index in 0..self.tally.strategies.len() {
            let strategy = StrategyId(index as u16);
            let Some(engine) = self.engine.take() else {
                break;
            };
            let (mut engine, result) = self.guests.init(strategy, engine);
            match result {
                InitResult::Ready => {
                    let intents = self.guests.intents(strategy);
                    engine.handle(now, Input::Answer { strategy, intents });
                }
                InitResult::Refused(reason) => return Err((strategy, reason)),
                InitResult::Fault(kind) => engine.handle(now, Input::Fault { strategy, kind }),
            }
            self.engine = Some(engine);
            self.guests.drain_output(strategy, now, &mut self.tally);
        }
        self.drain(now);
        Ok(())
    }

    /// Runs the market to its end. What the venue did by then is learned; nothing new is sent.
    ///
    /// # Errors
    /// The recording could not be read on.
    pub fn run(
        mut self,
        feed: &mut Feed,
        progress: &mut dyn FnMut(Time),
    ) -> Result<Finished<G>, RecordingError> {
        loop {
            let (venue_at, engine_at) = (feed.venue_time(), feed.engine_time());
            let market_at = venue_at.min(engine_at);
            if market_at < self.next_other {
                if venue_at <= engine_at {
                    self.venue_market(feed, venue_at);
                    feed.advance_venue()?;
                } else {
                    self.engine_market(feed, engine_at);
                    feed.advance_engine();
                    if self.clock.events.is_multiple_of(PROGRESS_EVENTS) {
                        progress(engine_at);
                    }
                }
            } else if market_at == Time::NEVER {
                break;
            } else {
                self.other();
            }
        }
        Ok(self.finish())
    }

    #[inline]
    fn venue_market(&mut self, feed: &Feed, now: Time) {
        let (chunk, event) = feed.venue_event();
        let latency_ns = feed.latency_ns();
        self.latency.observe(latency_ns);
        self.tally.feed_latency(latency_ns);
        let timer = self.clock.start();
        let market = event.market(&chunk.levels);
        self.venue.market(now, event.instrument, &market);
        self.clock.venue.stop(timer);
        self.collect_messages(now);
    }

    #[inline]
    fn engine_market(&mut self, feed: &Feed, now: Time) {
        let (chunk, event) = feed.engine_event();
        self.clock.next_event();
        let input = Input::Market {
            instrument: event.instrument,
            event: event.market(&chunk.levels),
        };
        self.tally.event(&input);
        self.feed_engine(now, input);
    }

    /// Everything but the market: the earliest, in the order of the module's page.
    fn other(&mut self) {
        let now = self.next_other;
        if self.venue.next_timeout() <= now {
            self.venue.timeout(now);
            self.collect_messages(now);
        } else if self.requests.next_arrival() <= now {
            if let Some((_, request)) = self.requests.receive() {
                let timer = self.clock.start();
                self.venue.request(now, &request);
                self.clock.venue.stop(timer);
                self.note_queue(&request);
                self.collect_messages(now);
            }
        } else if self.messages.next_arrival() <= now {
            if let Some((_, message)) = self.messages.receive() {
                self.take_message(now, &message);
            }
        } else if self.next_sample <= now {
            self.sample(now);
            self.next_sample = now.plus_ns(SECOND_NS);
            self.refresh();
        } else {
            self.feed_engine(now, Input::Timeout);
        }
    }

    /// Takes note of how much stands before an order that came to rest as the best of its side.
    fn note_queue(&mut self, request: &Request) {
        let Request::Place(order) = request else {
            return;
        };
        let (instrument, side) = (order.terms.instrument, order.terms.side);
        if let Some((price, Some(ahead))) = self.venue.queue_ahead(instrument, side)
            && order.terms.price.is_some_and(|own| own.0 == price)
        {
            self.tally.queue_ahead(instrument, ahead);
        }
    }

    fn take_message(&mut self, now: Time, message: &VenueMessage) {
        match message {
            VenueMessage::Reply(reply) => self.feed_engine(now, Input::Reply(reply)),
            VenueMessage::User(event) => self.feed_engine(now, Input::User(event)),
        }
    }

    #[inline]
    fn collect_messages(&mut self, now: Time) {
        let mut any = false;
        while let Some(message) = self.venue.poll() {
            let latency_ns = self.latency.order();
            self.messages.send(now, latency_ns, message);
            any = true;
        }
        if any || self.venue.next_timeout() <= self.next_other {
            self.refresh();
        } else {
            self.next_other = self.next_other.min(self.venue.next_timeout());
        }
    }

    #[inline]
    fn feed_engine(&mut self, now: Time, input: Input<'_>) {
        let timer = self.clock.start();
        if let Some(engine) = &mut self.engine {
            engine.handle(now, input);
        }
        self.clock.engine.stop(timer);
        self.drain(now);
    }

    /// Does what the engine wants done, until it wants nothing more.
    #[inline]
    fn drain(&mut self, now: Time) {
        while let Some(effect) = self.engine.as_mut().and_then(|engine| engine.poll_effect()) {
            match effect {
                Effect::Deliver { strategy, event } => self.deliver(now, strategy, &event),
                Effect::Send { request, .. } => {
                    // A backtest keeps no journal: its records are durable at once.
                    let latency_ns = self.latency.order();
                    self.tally.request_latency(latency_ns);
                    self.requests.send(now, latency_ns, *request);
                }
                // A backtest has no streams.
                Effect::Reconnect { .. } | Effect::Beat { .. } => {}
            }
        }
        if let Some(engine) = &mut self.engine {
            while let Some(notice) = engine.poll_notice() {
                let timer = self.clock.start();
                self.tally.notice(engine, &notice);
                self.clock.results.stop(timer);
            }
        }
        self.refresh();
    }

    #[inline]
    fn deliver(&mut self, now: Time, strategy: StrategyId, event: &Event) {
        let Some(engine) = self.engine.take() else {
            return;
        };
        let timer = self.clock.start();
        let (engine, result) = self.guests.deliver(strategy, engine, event);
        self.clock.guests.stop(timer);
        let engine = self.engine.insert(engine);
        self.tally.delivered(strategy);
        let timer = self.clock.start();
        match result {
            Ok(()) => {
                let intents = self.guests.intents(strategy);
                if !intents.is_empty() {
                    engine.handle(now, Input::Answer { strategy, intents });
                }
            }
            Err(kind) => engine.handle(now, Input::Fault { strategy, kind }),
        }
        self.clock.engine.stop(timer);
        self.guests.drain_output(strategy, now, &mut self.tally);
    }

    #[inline]
    fn refresh(&mut self) {
        let timer = match &self.engine {
            Some(engine) => engine.poll_timeout().map_or(Time::NEVER, |(time, _)| time),
            None => Time::NEVER,
        };
        self.next_other = timer
            .min(self.venue.next_timeout())
            .min(self.requests.next_arrival())
            .min(self.messages.next_arrival())
            .min(self.next_sample);
    }

    fn sample(&mut self, now: Time) {
        let timer = self.clock.start();
        if let Some(engine) = &self.engine {
            self.tally.sample(engine, now);
        }
        self.clock.results.stop(timer);
    }

    fn finish(mut self) -> Finished<G> {
        let mut engine = match self.engine.take() {
            Some(engine) => *engine,
            None => unreachable!("the engine is away only while a strategy is called"),
        };
        // What happened at the venue is learned, but nobody acts on it any more.
        while let Some((at, message)) = self.messages.receive() {
            match &message {
                VenueMessage::Reply(reply) => engine.handle(at, Input::Reply(reply)),
                VenueMessage::User(event) => engine.handle(at, Input::User(event)),
            }
            while engine.poll_effect().is_some() {}
            while let Some(notice) = engine.poll_notice() {
                self.tally.notice(&engine, &notice);
            }
        }
        self.tally.end(&engine);
        Finished {
            engine,
            guests: self.guests,
            tally: self.tally,
            clock: self.clock,
        }
    }
}

const SECOND_NS: i64 = 1_000_000_000;

/// The first whole second after a time.
const fn next_second(time: Time) -> Time {
    Time((time.0.div_euclid(SECOND_NS) + 1) * SECOND_NS)
}
