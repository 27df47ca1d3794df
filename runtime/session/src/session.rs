//! The live run: what happened goes in, what is to be done comes out.
//!
//! The shell (sockets, disk, clock) calls [`Session::handle`] for each thing that happens, takes
//! [`Session::poll_output`] until nothing is left, and calls [`Input::Timeout`] at
//! [`Session::poll_timeout`]. Live runs, paper runs and the simulator of faults drive this one type.

use std::collections::VecDeque;

use windvane_engine::Input as EngineInput;
use windvane_engine::config::Reconfiguration;
use windvane_engine::forced::OnLiquidation;
use windvane_engine::input::Command;
use windvane_engine::live::{LiveInput, OnStop};
use windvane_engine::record::{Block, Chain};
use windvane_engine::{
    ClientOrderId, Engine, InstrumentId, MarketEvent, Notice, Reply, Request, StrategyId, Surface,
    Time, UserEvent,
};
use windvane_venue::sign::Prepared;
use windvane_venue::speak::{Note, Speaker};
use windvane_venue::user_stream;

use crate::account::Account;
use crate::clock::Clock;
use crate::driver::{Action, Driver, Renewed};
use crate::guests::Guests;
use crate::head::{Module, head};
use crate::market::Market;
use crate::requests::{Call, CallAnswer, CallEnded, CallId, Done, Requests};
use crate::stop::Stop;
use crate::writer::{Lag, Writer};

/// What a session is made of.
#[derive(Debug)]
pub struct Parts<G> {
    /// Engine and strategies, which have begun.
    pub driver: Driver<G>,
    /// The account.
    pub account: Account,
    /// The venue's language.
    pub speaker: Speaker,
    /// Requests to a venue, of its account or of its public data; none beside recordings.
    pub requests: Option<Requests>,
    /// The engine's clock.
    pub clock: Clock,
    /// The strategies' modules, in their order.
    pub modules: Vec<Module>,
    /// What is traded.
    pub surfaces: Vec<Surface>,
    /// `on_stop = "flatten"`.
    pub flattens: bool,
}

/// Something that happened.
#[derive(Debug)]
pub enum Input<'a> {
    /// [`Session::poll_timeout`] has come.
    Timeout,
    /// A public frame.
    Frame {
        /// Surface.
        surface: Surface,
        /// The frame.
        text: &'a str,
        /// When it was read from its socket.
        received: Time,
    },
    /// Public events of these symbols may have been missed.
    Interrupted {
        /// Surface.
        surface: Surface,
        /// Symbols, upper case.
        symbols: &'a [String],
    },
    /// A public event that was decoded before, as those of a recording are.
    Market {
        /// The instrument.
        instrument: InstrumentId,
        /// The event.
        event: MarketEvent<'a>,
    },
    /// A frame of a user stream.
    User {
        /// Surface.
        surface: Surface,
        /// The frame.
        text: &'a str,
    },
    /// What came back of a call.
    Answer(CallId, CallAnswer<'a>),
    /// What is to be trusted.
    Live(LiveInput),
    /// The journal says something.
    Journal(JournalEvent),
    /// The operator commands, for all or for one strategy.
    Command(Command, Option<StrategyId>),
    /// The run is to end. The second time it ends at once.
    Stop,
}

/// What the journal says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalEvent {
    /// Everything up to this record is durable.
    Durable(u64),
    /// A new segment was begun, after this record.
    Rolled(u64),
    /// It did not begin a new segment: it has no room, or the head is of another place.
    NotRolled,
    /// A write takes too long.
    Stalled,
    /// It does not any more.
    Healthy,
    /// The disk refused. Nothing is durable until a new segment is begun.
    Failed,
}

/// What is to be done, in this order.
#[derive(Debug)]
pub enum Output {
    /// Give a block to the journal.
    Append(Block),
    /// Begin a new segment with this head.
    Roll(Vec<u8>, Chain),
    /// Write a call to the venue once; what comes back is [`Input::Answer`].
    Send(Call),
    /// Nobody waits for the answer to this call any more.
    Abandon(CallId),
    /// A request of the engine was handed over: to its calls, or to the simulated account.
    Handed {
        /// The request.
        request: Request,
        /// When the public frame came that it follows from.
        since: Option<Time>,
    },
    /// The engine was told this reply to a request.
    Replied(Reply),
    /// A call ended, for the metrics.
    CallEnded(CallEnded),
    /// Connect a user stream anew.
    Reconnect(Surface),
    /// Give the watchdog process of spot orders a sign of health.
    Beat(u64),
    /// Tell people.
    Notice(Box<Notice>),
    /// The run is over: nothing follows.
    Ended(Ended),
}

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to, and `on_stop` is done.
    Stopped,
    /// It was asked to, and `on_stop` was not done in its time, or it was asked twice.
    Hurried,
    /// Another instance trades on the account, as this order shows: `on_stop` is not applied.
    AnotherInstance(ClientOrderId),
}

/// Why the session wants to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A timer of the engine.
    Engine,
    /// The simulated account has something to say.
    Account,
    /// What was recorded is to become durable.
    Seal,
    /// A segment of the journal is old, or a new one is tried after a failure.
    Roll,
    /// The stop has lasted its time.
    Stop,
    /// A request is given up, asked again, or has its turn.
    Requests,
}

/// A live run. See the module's page.
#[derive(Debug)]
pub struct Session<G> {
    driver: Driver<G>,
    account: Account,
    speaker: Speaker,
    requests: Option<Requests>,
    clock: Clock,
    modules: Vec<Module>,
    surfaces: Vec<Surface>,
    flattens: bool,
    market: Market,
    writer: Writer,
    stop: Option<Stop>,
    /// What leaves, before anything else is done.
    leaving: VecDeque<Output>,
    outputs: VecDeque<Output>,
    /// A segment that begins once the journal has every block before it.
    head: Option<(Vec<u8>, Chain)>,
    ended: Option<Ended>,
    is_over: bool,
    /// When the public frame came that is being handled, or that led to what is released.
    since: Option<Time>,
}

impl<G: Guests> Session<G> {
    /// A session that begins `now`, with a segment of the journal that was begun.
    pub fn new(now: Time, parts: Parts<G>) -> Self {
        let Parts {
            driver,
            account,
            speaker,
            requests,
            clock,
            modules,
            surfaces,
            flattens,
        } = parts;
        let mut session = Self {
            market: Market::new(speaker.names.clone()),
            writer: Writer::new(now, clock.is_played()),
            driver,
            account,
            speaker,
            requests,
            clock,
            modules,
            surfaces,
            flattens,
            stop: None,
            leaving: VecDeque::new(),
            outputs: VecDeque::new(),
            head: None,
            ended: None,
            is_over: false,
            since: None,
        };
        if let Some(requests) = session.requests.as_mut()
            && session.account.is_of_venue()
        {
            requests.watch_clocks(now);
        }
        session.act(now);
        session.hear_requests(now);
        session
    }

    /// Takes in what happened. `now` is the shell's clock, which never runs backwards. After it,
    /// [`Self::poll_output`] has to be drained.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        if self.ended.is_some() {
            return;
        }
        match input {
            Input::Timeout => self.timeout(now),
            Input::Frame {
                surface,
                text,
                received,
            } => {
                self.since = Some(received);
                self.frame(now, surface, text);
                self.since = None;
            }
            Input::Interrupted { surface, symbols } => self.interrupted(now, surface, symbols),
            Input::Market { instrument, event } => {
                let time = self.clock.at(now);
                self.account.market(time, instrument, &event);
                self.engine_input(now, EngineInput::Market { instrument, event });
            }
            Input::User { surface, text } => self.user(now, surface, text),
            Input::Answer(id, answer) => {
                if let Some(requests) = &mut self.requests {
                    requests.answered(now, (id, answer), &self.speaker);
                }
            }
            Input::Live(input) => {
                self.live(now, input);
                if let Some(requests) = &mut self.requests {
                    requests.tell_stops(now);
                }
            }
            Input::Journal(event) => self.journal(now, event),
            Input::Command(command, None) => {
                self.engine_input(now, EngineInput::Command(command));
            }
            Input::Command(command, Some(strategy)) => {
                self.engine_input(now, EngineInput::Steer { strategy, command });
            }
            Input::Stop if self.stop.is_some() => self.end(now, Ended::Hurried),
            Input::Stop => {
                self.stop = Some(Stop::new(now));
                if let Some(requests) = &mut self.requests {
                    requests.hurry();
                }
                self.live(now, LiveInput::Stop);
            }
        }
        self.hear_requests(now);
        self.look_for_end(now);
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        // An order that waits for the disk goes first: it takes longest.
        if self.driver.waiting() > 0
            && let Some(block) = self.writer.next_block()
        {
            return Some(Output::Append(block));
        }
        let output = self.leaving.pop_front();
        if let Some(output) = output.or_else(|| self.outputs.pop_front()) {
            return Some(output);
        }
        if let Some(block) = self.writer.next_block() {
            return Some(Output::Append(block));
        }
        if let Some((head, at)) = self.head.take() {
            return Some(Output::Roll(head, at));
        }
        let ended = self.ended.filter(|_| !self.is_over)?;
        self.is_over = true;
        Some(Output::Ended(ended))
    }

    /// When [`Input::Timeout`] is due by the shell's clock, and why.
    pub fn poll_timeout(&self) -> Option<(Time, Reason)> {
        if self.ended.is_some() {
            return None;
        }
        let engine = self.driver.next_timeout();
        let engine = engine.and_then(|time| self.clock.shell_time(time));
        let account = match self.account.next() {
            Time::NEVER => None,
            time => self.clock.shell_time(time),
        };
        let seal = (self.has_unsealed() && !self.clock.is_played()).then(|| self.writer.seal_at());
        let roll = self.writer.roll_at();
        let stop = self.stop.as_ref().map(Stop::by);
        let requests = self.requests.as_ref().and_then(Requests::next);
        let all = [
            (engine, Reason::Engine),
            (account, Reason::Account),
            (seal, Reason::Seal),
            (roll, Reason::Roll),
            (stop, Reason::Stop),
            (requests, Reason::Requests),
        ];
        let due = all
            .into_iter()
            .filter_map(|(time, reason)| Some((time?, reason)));
        due.min()
    }

    /// Engine and strategies.
    pub const fn driver(&self) -> &Driver<G> {
        &self.driver
    }

    /// Engine and strategies, at the end.
    pub fn into_driver(self) -> Driver<G> {
        self.driver
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        self.driver.engine()
    }

    /// The venue's language.
    pub const fn speaker(&self) -> &Speaker {
        &self.speaker
    }

    /// Requests to the venue.
    pub const fn requests(&self) -> Option<&Requests> {
        self.requests.as_ref()
    }

    /// The account.
    pub const fn account(&self) -> &Account {
        &self.account
    }

    /// The strategies' modules, in their order.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The engine's clock while the shell's shows `now`.
    pub const fn time(&self, now: Time) -> Time {
        self.clock.at(now)
    }

    /// The bytes of the last order, stamped with no time: see [`Output::Send`] for those that leave.
    pub fn rehearse_order(&self) -> Option<(windvane_venue::route::Surface, Prepared)> {
        self.requests.as_ref()?.rehearse(&self.speaker)
    }

    /// How far the journal is behind.
    pub fn lag(&self, now: Time) -> Lag {
        self.writer.lag(now)
    }

    /// When a block was recorded last that is not durable yet.
    pub fn newest_block(&self) -> Option<Time> {
        self.writer.newest()
    }

    /// Whether the journal has no room for what was recorded.
    pub fn is_behind(&self) -> bool {
        self.writer.is_behind()
    }

    /// Whether the run was asked to end.
    pub const fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether no order can close a position, so that it counts as flat at the stop.
    pub fn is_dust(&self, strategy: StrategyId, instrument: InstrumentId) -> bool {
        let stop = self.stop.as_ref();
        stop.is_some_and(|stop| stop.is_dust(strategy, instrument))
    }

    fn engine_input(&mut self, now: Time, input: EngineInput<'_>) {
        self.driver.handle(self.clock.at(now), input);
        self.act(now);
    }

    fn live(&mut self, now: Time, input: LiveInput) {
        let input = self.clock.by_engine(input);
        self.engine_input(now, EngineInput::Live(&input));
    }
}

/// Changes of a running configuration. After each, [`Session::poll_output`] has to be drained.
impl<G: Guests> Session<G> {
    /// The strategies, to be changed between inputs.
    pub const fn guests_mut(&mut self) -> &mut G {
        self.driver.guests_mut()
    }

    /// What a strategy knows now; what it saved before, where it cannot say it any more.
    pub fn state(&mut self, now: Time, strategy: StrategyId) -> Option<Vec<u8>> {
        let state = self.driver.state(self.clock.at(now), strategy);
        self.act(now);
        self.hear_requests(now);
        state
    }

    /// Tries whether a strategy's module begins, with this state, without effect.
    ///
    /// # Errors
    /// Why it does not.
    pub fn rehearse(&mut self, strategy: StrategyId, state: Option<&[u8]>) -> Result<(), String> {
        self.driver.rehearse(strategy, state)
    }

    /// Begins a new instance of a strategy's module, see [`Driver::renew`].
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
        let time = self.clock.at(now);
        let renewed = self.driver.renew(time, strategy, state, may_be_fresh);
        self.act(now);
        self.hear_requests(now);
        renewed
    }

    /// A strategy runs on another module from now on; the next segment says so.
    pub fn replace_module(&mut self, strategy: StrategyId, sha256: [u8; 32]) {
        if let Some(module) = self.modules.get_mut(usize::from(strategy.0)) {
            module.1 = sha256;
        }
    }

    /// Takes new limits and reactions. The next segment begins as soon as it can, with the modules
    /// of then and what they know.
    pub fn reconfigure(&mut self, now: Time, next: &Reconfiguration, reaction: OnLiquidation) {
        self.engine_input(now, EngineInput::Reconfigure(next));
        if self.engine().on_liquidation() != reaction {
            self.engine_input(now, EngineInput::OnLiquidation(reaction));
        }
        self.hear_requests(now);
        self.flattens = next.on_stop == OnStop::Flatten;
        self.writer.want_roll();
    }
}

/// Public data and user events.
impl<G: Guests> Session<G> {
    /// Has the market reader work, whose events go to the account and the engine in order.
    fn read_market(
        &mut self,
        now: Time,
        work: impl FnOnce(
            &mut Market,
            &mut dyn FnMut(InstrumentId, MarketEvent<'_>),
        ) -> Option<InstrumentId>,
    ) {
        let time = self.clock.at(now);
        let (driver, account) = (&mut self.driver, &mut self.account);
        let mut emit = |instrument: InstrumentId, event: MarketEvent<'_>| {
            account.market(time, instrument, &event);
            driver.handle(time, EngineInput::Market { instrument, event });
        };
        let fetch = work(&mut self.market, &mut emit);
        self.act(now);
        if let Some(id) = fetch {
            self.fetch_depth(now, id);
        }
    }

    /// Fetches the depth that the differences of an instrument wait for.
    fn fetch_depth(&mut self, now: Time, id: InstrumentId) {
        let Some(instrument) = self.driver.engine().instrument(id) else {
            return;
        };
        let of = (id, instrument.surface, instrument.symbol.as_str());
        if let Some(requests) = &mut self.requests {
            requests.fetch_depth(now, of, &self.speaker);
        }
    }

    fn frame(&mut self, now: Time, surface: Surface, text: &str) {
        self.read_market(now, |market, emit| market.frame(surface, text, emit));
    }

    fn depth(&mut self, now: Time, id: InstrumentId, text: Option<&str>) {
        let Some(instrument) = self.driver.engine().instrument(id).cloned() else {
            return;
        };
        self.read_market(now, |market, emit| {
            market.snapshot(id, &instrument, text, emit)
        });
    }

    fn interrupted(&mut self, now: Time, surface: Surface, symbols: &[String]) {
        self.read_market(now, |market, emit| {
            market.interrupted(surface, symbols, emit);
            None
        });
    }

    fn user(&mut self, now: Time, surface: Surface, text: &str) {
        let said = user_stream::decode(surface, text)
            .map_err(|error| error.to_string())
            .and_then(|event| {
                let said = self.speaker.user_event(&event);
                said.map_err(|error| error.to_string())
            });
        match said {
            Ok(said) => {
                for note in &said.notes {
                    log_note(note, "in a user event");
                }
                for event in &said.said {
                    let is_mode = matches!(
                        event,
                        UserEvent::PositionMode { .. } | UserEvent::AssetMode { .. }
                    );
                    if let Some(requests) = self.requests.as_mut().filter(|_| is_mode) {
                        requests.forget_modes();
                    }
                    self.engine_input(now, EngineInput::User(event));
                }
            }
            Err(error) => {
                // What it told is missed: the account is read again over REST.
                tracing::error!(%surface, error, text, "a user event cannot be used");
                self.live(now, LiveInput::StreamDown { surface });
                self.outputs.push_back(Output::Reconnect(surface));
            }
        }
    }
}

/// The journal and the time.
impl<G: Guests> Session<G> {
    fn journal(&mut self, now: Time, event: JournalEvent) {
        let healthy = |healthy| LiveInput::Journal { healthy };
        match event {
            JournalEvent::Durable(record) => {
                self.since = self.writer.settle(record);
                self.release(now, record);
                self.since = None;
            }
            JournalEvent::Rolled(record) => {
                let had_failed = self.writer.rolled(now);
                self.writer.settle(record);
                self.release(now, record);
                if had_failed {
                    self.live(now, healthy(true));
                }
            }
            JournalEvent::NotRolled => self.writer.not_rolled(now),
            JournalEvent::Stalled => self.live(now, healthy(false)),
            JournalEvent::Healthy => self.live(now, healthy(!self.writer.has_failed())),
            JournalEvent::Failed => {
                self.head = None;
                self.writer.fail(now);
                self.live(now, healthy(false));
            }
        }
    }

    fn release(&mut self, now: Time, record: u64) {
        self.driver.durable(self.clock.at(now), record);
        self.act(now);
    }

    /// What the simulated account has to say, the engine's timers, and what the journal is due.
    fn timeout(&mut self, now: Time) {
        if let Some(requests) = &mut self.requests {
            requests.timeout(now, &self.speaker);
        }
        if !self.clock.is_played() {
            while self.hear_account(now) {}
            self.engine_timeout(now);
        }
        if self.writer.seal_at() <= now {
            self.writer.seal(now);
            // A recording's blocks end by its own time.
            if !self.clock.is_played() {
                self.save(now);
            }
        }
        if self.writer.is_roll_due(now) {
            self.roll(now);
        }
    }

    /// The next word of the simulated account, if it is due.
    fn hear_account(&mut self, now: Time) -> bool {
        let Some(word) = self.account.poll(self.clock.at(now)) else {
            return false;
        };
        self.engine_input(now, word.as_input());
        true
    }

    fn engine_timeout(&mut self, now: Time) -> bool {
        let time = self.clock.at(now);
        let is_due = self.driver.next_timeout().is_some_and(|at| at <= time);
        if is_due {
            self.engine_input(now, EngineInput::Timeout);
        }
        is_due
    }

    /// Records what strategies know, and ends the running block.
    fn save(&mut self, now: Time) {
        self.driver.save(self.clock.at(now));
        self.driver.seal();
        self.act(now);
    }

    fn has_unsealed(&self) -> bool {
        let engine = self.driver.engine();
        engine.records() > engine.chain().last_record || self.driver.has_unsaved()
    }

    /// Begins a new segment with everything that the run goes on from.
    fn roll(&mut self, now: Time) {
        let (engine, states) = self.driver.snapshot();
        self.act(now);
        if !self.writer.may_roll() {
            return self.writer.not_rolled(now);
        }
        self.writer.roll(now);
        let made = self.driver.guests().made();
        let paper = self.account.to_bytes();
        let head = head(engine, states, &self.modules, made, paper);
        self.head = Some((head.to_bytes(), self.driver.engine().chain()));
    }

    /// Does what follows from the last input.
    fn act(&mut self, now: Time) {
        while let Some(action) = self.driver.poll() {
            match action {
                Action::Append(block) => self.writer.push(now, block, self.since),
                Action::Request(request) => self.request(now, request),
                Action::Reconnect(surface) => {
                    if !self.account.reconnect(surface) {
                        self.outputs.push_back(Output::Reconnect(surface));
                    }
                }
                Action::Beat(number) => self.outputs.push_back(Output::Beat(number)),
                Action::Notice(notice) => {
                    if let (
                        Some(stop),
                        Notice::Dust {
                            strategy,
                            instrument,
                            ..
                        },
                    ) = (&mut self.stop, &*notice)
                    {
                        stop.note_dust(self.driver.engine(), *strategy, *instrument);
                    }
                    self.outputs.push_back(Output::Notice(notice));
                }
            }
        }
    }

    /// Hands a request over: to its calls, or to the simulated account.
    fn request(&mut self, now: Time, request: Request) {
        let engine = self.driver.engine();
        let (since, purpose) = (self.since, engine.purpose(&request));
        let awaits_modes = engine.awaits_modes();
        if tells_of_orders(&request) {
            let request = request.clone();
            self.leaving.push_back(Output::Handed { request, since });
        }
        if let Account::Paper(paper) = &mut self.account {
            return paper.request(engine.now(), request);
        }
        if let Some(requests) = &mut self.requests {
            let with = (&self.speaker, awaits_modes);
            requests.carry(now, (request, purpose), since, with);
        }
    }

    /// Does what the requests want done, until they want nothing more.
    fn hear_requests(&mut self, now: Time) {
        while let Some(done) = self.requests.as_mut().and_then(Requests::poll) {
            match done {
                Done::Send(call) => self.leaving.push_back(Output::Send(call)),
                Done::Abandon(id) => self.outputs.push_back(Output::Abandon(id)),
                Done::Ended(ended) => self.outputs.push_back(Output::CallEnded(ended)),
                Done::Live(input) => self.live(now, input),
                Done::Depth(id, text) => self.depth(now, id, text.as_deref()),
                // The start is over.
                Done::Start(_) => {}
                Done::Replies(replies) => {
                    for reply in replies {
                        self.outputs.push_back(Output::Replied(reply.clone()));
                        self.engine_input(now, EngineInput::Reply(&reply));
                    }
                }
            }
        }
    }
}

/// Whether a request is about orders of ours, so that people are told of it.
const fn tells_of_orders(request: &Request) -> bool {
    matches!(
        request,
        Request::Place(_)
            | Request::PlaceBatch(_)
            | Request::Cancel { .. }
            | Request::CancelBatch { .. }
            | Request::CancelAll { .. }
    )
}

/// The end.
impl<G: Guests> Session<G> {
    fn look_for_end(&mut self, now: Time) {
        if self.ended.is_some() {
            return;
        }
        if let Some(order) = self.driver.engine().other_instance() {
            return self.end(now, Ended::AnotherInstance(order));
        }
        let Some(stop) = &mut self.stop else { return };
        let engine = self.driver.engine();
        if engine.has_stopped() {
            return self.end(now, Ended::Stopped);
        }
        stop.sit_out(now, engine, (&self.surfaces, self.flattens));
        if stop.by() <= now {
            self.end(now, Ended::Hurried);
        }
    }

    /// Ends the last block. An orderly end begins a segment that holds nothing but what strategies
    /// save: the next start gives it back to them.
    fn end(&mut self, now: Time, ended: Ended) {
        self.ended = Some(ended);
        self.driver.seal();
        self.act(now);
        if ended == Ended::Hurried {
            return;
        }
        if self.writer.has_failed() || self.writer.is_behind() {
            tracing::warn!("the journal has no room: strategies go on from what they saved before");
            return;
        }
        self.roll(now);
    }
}

/// A recording that is played: whatever is due first in its time happens first.
impl<G: Guests> Session<G> {
    /// When the simulated account or the engine has something to do, by the engine's clock.
    pub fn next_played(&self) -> Time {
        let timer = self.driver.next_timeout().unwrap_or(Time::NEVER);
        timer.min(self.account.next())
    }

    /// The recording's time goes on to `time`, and the one thing happens that comes first then: a word
    /// of the simulated account, or a timer of the engine. Answers whether there was one.
    pub fn play(&mut self, now: Time, time: Time) -> bool {
        self.clock.pass(time);
        let has_happened = self.hear_account(now) || self.engine_timeout(now);
        self.hear_requests(now);
        self.look_for_end(now);
        has_happened
    }

    /// A second of the recording is over: what was recorded of it becomes durable, by the recording's
    /// time, so that the same run makes the same blocks.
    pub fn end_second(&mut self, now: Time) {
        self.save(now);
    }
}

/// Logs what a message had that is not used. What is of no configured instrument is usual on an
/// account; the rest is not.
pub fn log_note(note: &Note, place: &str) {
    match note {
        Note::Symbol { .. } | Note::Asset { .. } | Note::Event(_) => {
            tracing::debug!(%note, "{place}");
        }
        Note::Elsewhere { .. }
        | Note::Foreign { .. }
        | Note::Unlisted { .. }
        | Note::Unreadable { .. }
        | Note::Unanswered { .. }
        | Note::Part { .. } => {
            tracing::warn!(%note, "{place}");
        }
    }
}
