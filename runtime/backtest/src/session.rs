//! The loop of a backtest. Market, venue, engine and strategies share one virtual clock.
//!
//! Each step processes the earliest event. Events at the same time are processed in this order, so
//! that two runs are equal:
//!
//! 1. timers of the venue
//! 2. requests that arrive at the venue
//! 3. messages that arrive at the engine
//! 4. the sample of the second
//! 5. timers of the engine
//! 6. the market at the venue
//! 7. the market at the engine

use std::time::{Duration, Instant};

use windvane_engine::Engine;
use windvane_model::event::Event;
use windvane_model::input::FaultKind;
use windvane_model::{Input, Notice, Request, StrategyId, Time};
use windvane_session::transit::Transit;
use windvane_session::{EffectHandler, EngineLoop, Guests as _, NoticesOnly, feed_answer};
use windvane_sim::{Latency, Venue, VenueMessage};

use super::feed::Feed;
use super::guests::HostedGuests;
use super::tally::Tally;
use windvane_recording::RecordingError;

/// One run.
pub struct Session {
    core: EngineLoop,
    world: World,
    next_sample: Time,
    /// The earliest time of any event except market events.
    next_other: Time,
}

/// The parts that the engine's effects act on.
struct World {
    venue: Venue,
    guests: HostedGuests,
    latency: Latency,
    requests: Transit<Request>,
    messages: Transit<VenueMessage>,
    tally: Tally,
    clock: Clock,
}

/// Wall time per part. Only a sample of the events is timed, so that measuring does not slow the
/// run.
#[derive(Debug, Default)]
pub struct Clock {
    events: u64,
    sampling: bool,
    /// Time spent in the venue.
    pub venue: Stopwatch,
    /// Time spent in the engine.
    pub engine: Stopwatch,
    /// Time spent in the strategies.
    pub guests: Stopwatch,
    /// Time spent on result rows and counts.
    pub results: Stopwatch,
}

/// Progress is reported once per this many events.
const PROGRESS_EVENTS: u64 = 1 << 16;
/// One of this many events is timed.
const SAMPLED: u64 = 512;

/// Wall time of one part, over the sampled events.
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

    /// Estimates the time over all events. It subtracts the cost of reading the clock.
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

    /// Measures the cost of one clock reading on this machine.
    pub fn reading() -> Duration {
        let began = Instant::now();
        for _ in 0..1000 {
            std::hint::black_box(Instant::now());
        }
        began.elapsed() / 1000
    }
}

/// The parts of a run after its end.
pub struct Finished {
    /// The engine in its final state.
    pub engine: Engine,
    /// The strategies.
    pub guests: HostedGuests,
    /// Counts and rows.
    pub tally: Tally,
    /// Wall time per part.
    pub clock: Clock,
}

impl Session {
    /// A run that has not started.
    pub fn new(
        engine: Engine,
        venue: Venue,
        guests: HostedGuests,
        latency: Latency,
        tally: Tally,
    ) -> Self {
        Self {
            core: EngineLoop::new(engine),
            world: World {
                venue,
                guests,
                latency,
                requests: Transit::default(),
                messages: Transit::default(),
                tally,
                clock: Clock::default(),
            },
            next_sample: Time::NEVER,
            next_other: Time::NEVER,
        }
    }

    /// Starts the strategies in their order, at the time of the first event.
    ///
    /// # Errors
    /// The first strategy that refuses to start, with its reason. A strategy that fails is
    /// quarantined.
    pub fn start(&mut self, now: Time) -> Result<(), (StrategyId, String)> {
        self.world.tally.start(now);
        self.next_sample = next_second(now);
        self.core.start(now, &[], &[], &mut self.world.guests)?;
        self.world.take_points();
        self.drain(now);
        Ok(())
    }

    /// Runs the market to its end. After that, the engine still receives messages that are under
    /// way, but sends nothing.
    ///
    /// # Errors
    /// The rest of the recording cannot be read.
    pub fn run(
        mut self,
        feed: &mut Feed,
        progress: &mut dyn FnMut(Time),
    ) -> Result<Finished, RecordingError> {
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
                    if self.world.clock.events.is_multiple_of(PROGRESS_EVENTS) {
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
        self.world.latency.observe(latency_ns);
        self.world.tally.feed_latency(latency_ns);
        let timer = self.world.clock.start();
        let market = event.market(&chunk.levels);
        self.world.venue.market(now, event.instrument, &market);
        self.world.clock.venue.stop(timer);
        self.collect_messages(now);
    }

    #[inline]
    fn engine_market(&mut self, feed: &Feed, now: Time) {
        let (chunk, event) = feed.engine_event();
        self.world.clock.next_event();
        let input = Input::Market {
            instrument: event.instrument,
            event: event.market(&chunk.levels),
        };
        self.world.tally.event(&input);
        self.feed_engine(now, input);
    }

    /// Processes the earliest event except market events, in the order that the module
    /// documentation states.
    fn other(&mut self) {
        let now = self.next_other;
        if self.world.venue.next_timeout() <= now {
            self.world.venue.timeout(now);
            self.collect_messages(now);
        } else if self.world.requests.next_arrival() <= now {
            if let Some((_, request)) = self.world.requests.receive() {
                let timer = self.world.clock.start();
                self.world.venue.request(now, &request);
                self.world.clock.venue.stop(timer);
                self.note_queue(&request);
                self.collect_messages(now);
            }
        } else if self.world.messages.next_arrival() <= now {
            if let Some((_, message)) = self.world.messages.receive() {
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

    /// Records the quantity ahead of an order that now rests at the best price of its side.
    fn note_queue(&mut self, request: &Request) {
        let Request::Place(order) = request else {
            return;
        };
        let (instrument, side) = (order.terms.instrument, order.terms.side);
        if let Some((price, Some(ahead))) = self.world.venue.queue_ahead(instrument, side)
            && order.terms.price.is_some_and(|own| own.0 == price)
        {
            self.world.tally.queue_ahead(instrument, ahead);
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
        while let Some(message) = self.world.venue.poll() {
            let latency_ns = self.world.latency.order();
            self.world.messages.send(now, latency_ns, message);
            any = true;
        }
        if any || self.world.venue.next_timeout() <= self.next_other {
            self.refresh();
        } else {
            self.next_other = self.next_other.min(self.world.venue.next_timeout());
        }
    }

    #[inline]
    fn feed_engine(&mut self, now: Time, input: Input<'_>) {
        let timer = self.world.clock.start();
        self.core.handle(now, input);
        self.world.clock.engine.stop(timer);
        self.drain(now);
    }

    #[inline]
    fn drain(&mut self, now: Time) {
        self.core.drain(now, &mut self.world);
        self.refresh();
    }

    #[inline]
    fn refresh(&mut self) {
        let timer = self.core.next_timeout().unwrap_or(Time::NEVER);
        self.next_other = timer
            .min(self.world.venue.next_timeout())
            .min(self.world.requests.next_arrival())
            .min(self.world.messages.next_arrival())
            .min(self.next_sample);
    }

    fn sample(&mut self, now: Time) {
        let timer = self.world.clock.start();
        self.world.tally.sample(self.core.engine(), now);
        self.world.clock.results.stop(timer);
    }

    fn finish(self) -> Finished {
        let (mut core, mut world) = (self.core, self.world);
        // The engine still receives what happened at the venue, but no strategy reacts to it.
        while let Some((at, message)) = world.messages.receive() {
            match &message {
                VenueMessage::Reply(reply) => core.handle(at, Input::Reply(reply)),
                VenueMessage::User(event) => core.handle(at, Input::User(event)),
            }
            let tally = &mut world.tally;
            let mut counted = NoticesOnly(|engine: &Engine, notice| tally.notice(engine, &notice));
            core.drain(at, &mut counted);
        }
        let engine = core.into_engine();
        world.tally.end(&engine);
        world.guests.end(engine.now());
        Finished {
            engine,
            guests: world.guests,
            tally: world.tally,
            clock: world.clock,
        }
    }
}

impl World {
    #[cold]
    fn take_points(&mut self) {
        for (strategy, now, point) in self.guests.take_points() {
            self.tally
                .plot(now, strategy, &point.series, point.value, point.scale);
        }
    }
}

impl EffectHandler for World {
    #[inline]
    fn deliver(
        &mut self,
        strategy: StrategyId,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>) {
        let timer = self.clock.start();
        let called = self.guests.deliver(strategy, engine, event);
        self.clock.guests.stop(timer);
        self.tally.delivered(strategy);
        called
    }

    #[inline]
    fn settle(
        &mut self,
        now: Time,
        strategy: StrategyId,
        engine: &mut Engine,
        _: &Event,
        result: Result<(), FaultKind>,
    ) {
        let timer = self.clock.start();
        let result = result.map(|()| self.guests.intents(strategy));
        feed_answer(now, strategy, engine, result);
        self.clock.engine.stop(timer);
        self.guests.show_output(strategy, now);
        if self.guests.has_points() {
            self.take_points();
        }
    }

    /// A backtest has no journal, so its records count as durable at once.
    #[inline]
    fn send(&mut self, now: Time, _: u64, request: Box<Request>) {
        let latency_ns = self.latency.order();
        self.tally.request_latency(latency_ns);
        self.requests.send(now, latency_ns, *request);
    }

    #[inline]
    fn notice(&mut self, engine: &Engine, notice: Notice) {
        let timer = self.clock.start();
        self.tally.notice(engine, &notice);
        self.clock.results.stop(timer);
    }
}

const SECOND_NS: i64 = 1_000_000_000;

/// The first whole second after `time`.
const fn next_second(time: Time) -> Time {
    Time((time.0.div_euclid(SECOND_NS) + 1) * SECOND_NS)
}
