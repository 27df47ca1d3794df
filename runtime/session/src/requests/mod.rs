//! The engine's requests on their way to the venue and back. Each is made of one or more calls, which
//! travel in the lane of the budget that belongs to it. Nothing is sent twice.
//!
//! What may never enter here: sockets, tasks, and decisions about orders. The engine makes them.

mod account;
mod calls;
mod clocks;
mod modes;
mod parts;
mod start;
mod waits;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use windvane_client_core::Gateway;
use windvane_client_core::budget::Lane;
use windvane_client_core::gateway::Unsigned;
use windvane_client_core::outcome::NotDone;
use windvane_client_core::streams::feed::QuestionId;
use windvane_model::live::LiveInput;
use windvane_model::{ClientOrderId, InstrumentId, Reply, Request, Surface, Time};
use windvane_protocol::route::Route;
use windvane_protocol::sign::Prepared;
use windvane_protocol::speak::{Asked, FuturesAccount, Names};

pub use calls::{CallAnswer, CallId};
pub(crate) use clocks::Reading;
pub use clocks::{CLOCK_EVERY_MS, CLOCK_SAMPLES};
pub use modes::MODES_AGE_MS;
pub use parts::lane;
pub use waits::stop_reason;

use crate::exchange::{Exchange, Question};

use account::Account;
use calls::{Flying, Signs, Waiting, Wanted};
use clocks::Clocks;
use modes::Modes;
use parts::{Carried, Elsewhere};
use waits::{Probes, Stops};

/// Levels of a depth snapshot (spec 4, section 5: the local book).
pub const DEPTH_LEVELS: &str = "1000";

/// What requests need to know of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct RequestTerms {
    /// A request without an answer is given up after this.
    pub request: Duration,
    /// A countdown without an answer is given up after this.
    pub countdown: Duration,
}

/// A call that leaves now.
#[derive(Debug)]
pub struct Call {
    /// Its number, for the answer.
    pub id: CallId,
    /// The route.
    pub route: &'static Route,
    /// The bytes, signed.
    pub prepared: Prepared,
    /// It changes something at the venue.
    pub changes: bool,
    /// It must not leave after this: the process was stopped, and the dead man's switch that covered
    /// it may have acted. It is answered with [`CallAnswer::Late`] then.
    pub leave_by: Option<Time>,
    /// When the public frame came that it follows from, for the latency of orders.
    pub since: Option<Time>,
}

/// How late a call is that must leave by a time ([`Call::leave_by`]), if it is late.
pub fn late_by(leave_by: Option<Time>, now: Time) -> Option<Duration> {
    let late_ns = now.0.saturating_sub(leave_by?.0);
    (late_ns > 0).then(|| Duration::from_nanos(late_ns.unsigned_abs()))
}

/// What a call was for.
#[derive(Debug)]
enum Purpose {
    /// A part of a request of the engine.
    Part(u64),
    /// A snapshot of depth.
    Depth(InstrumentId),
    /// A reading of the venue's clock.
    Clock(Reading),
    /// The header of the answer, which shows the weight that is used.
    Probe,
    /// A listen key.
    CreateKey(Surface),
    /// Its renewal.
    RenewKey(Surface),
    /// A question of public data, which is asked again and again.
    Poll(Surface, QuestionId),
    /// A question of a start, or of a watchdog, by its number there.
    Asked(u64),
}

/// What the session has to do.
#[derive(Debug)]
pub(crate) enum Done {
    /// A call is to be signed elsewhere.
    Sign(CallId, Unsigned),
    /// A call leaves.
    Send(Call),
    /// A call is given up.
    Abandon(CallId),
    /// The engine is told.
    Live(LiveInput),
    /// The replies to a request.
    Replies(Vec<Reply>),
    /// The answer of GET depth.
    Depth(InstrumentId, Option<String>),
    /// What became of the question for a listen key.
    Key(Surface, Result<String, NotDone>),
    /// What became of the renewal of a listen key.
    Renewed(Surface, Result<String, NotDone>),
    /// What became of a question of public data.
    Polled(Surface, QuestionId, Result<String, NotDone>),
    /// A call ended, for the metrics.
    Ended(CallEnded),
    /// A call waited so long for its share of the budget, nanoseconds, or gave up after that.
    Waited(Lane, i64),
    /// What became of a question of [`Requests::ask`].
    Asked(u64, Result<String, NotDone>),
}

/// How a call ended, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEnded {
    /// Its surface.
    pub surface: windvane_protocol::route::Surface,
    /// "done", "refused", "unknown" or "wait".
    pub outcome: &'static str,
    /// How long it took, nanoseconds.
    pub took_ns: i64,
}

/// Requests of one process.
#[derive(Debug)]
pub struct Requests {
    exchange: Box<dyn Exchange>,
    terms: RequestTerms,
    /// When the clock of the gateway's budgets began, by the shell's clock.
    origin: Time,
    surfaces: Vec<Surface>,
    waiting: Vec<Waiting>,
    /// Calls whose signature is waited for.
    signing: BTreeMap<CallId, Signs>,
    flying: BTreeMap<CallId, Flying>,
    next_call: u64,
    carried: BTreeMap<u64, Carried>,
    next_carried: u64,
    /// Orders on their way, so that no cancel overtakes one on another connection.
    placing: BTreeSet<ClientOrderId>,
    modes: Modes,
    account: Account,
    elsewhere: Elsewhere,
    probes: Probes,
    clocks: Clocks,
    stops: Stops,
    /// Snapshots of depth that are asked for again then.
    depths: Vec<(Time, InstrumentId)>,
    /// The last order that was carried, for rehearsals.
    last: Option<Request>,
    /// The run is ending.
    is_hurried: bool,
    done: VecDeque<Done>,
}

impl Requests {
    /// Nothing was sent yet. `origin` is when the clock of the gateway's budgets began, by the shell's
    /// clock.
    pub fn new(
        exchange: Box<dyn Exchange>,
        terms: RequestTerms,
        origin: Time,
        surfaces: Vec<Surface>,
        first_call: u64,
    ) -> Self {
        Self {
            exchange,
            terms,
            origin,
            waiting: Vec::new(),
            signing: BTreeMap::new(),
            flying: BTreeMap::new(),
            next_call: first_call,
            carried: BTreeMap::new(),
            next_carried: 0,
            placing: BTreeSet::new(),
            modes: Modes::default(),
            account: Account::default(),
            elsewhere: Elsewhere::default(),
            probes: Probes::default(),
            clocks: Clocks::default(),
            stops: Stops::default(),
            depths: Vec::new(),
            last: None,
            is_hurried: false,
            done: VecDeque::new(),
            surfaces,
        }
    }

    /// The budget of the requests, the clocks and the bans.
    pub fn gateway(&self) -> &Gateway {
        self.exchange.gateway()
    }

    /// The exchange.
    pub(crate) fn exchange(&self) -> &dyn Exchange {
        &*self.exchange
    }

    /// The start is over: requests of the engine can be encoded from here on.
    pub fn know(&mut self, names: Names, futures_account: FuturesAccount) {
        self.exchange.know(names, futures_account);
    }

    /// How long nothing at all may be sent to a surface, milliseconds.
    pub(crate) fn stopped_ms(&self, now: Time, surface: Surface) -> Option<u64> {
        let surface = venue_surface(surface);
        self.gateway().stopped_ms(self.ms(now), surface)
    }

    /// How long a refused handshake holds back the next one: see [`Gateway::heed_handshake`].
    pub(crate) fn heed_handshake(
        &self,
        now: Time,
        surface: Surface,
        refused: (Option<u16>, Option<u64>),
    ) -> Option<u64> {
        let surface = venue_surface(surface);
        self.gateway()
            .heed_handshake(self.ms(now), surface, refused)
    }

    /// Whether no request is under way.
    pub fn is_idle(&self) -> bool {
        let is_waiting = !self.waiting.is_empty() || !self.signing.is_empty();
        !is_waiting && self.flying.is_empty() && self.carried.is_empty()
    }

    /// The account's modes changed: they are asked for anew.
    pub(crate) fn forget_modes(&mut self) {
        self.modes.forget();
    }

    /// The run is ending: what is asked from here on has little time. Orders keep theirs, for one
    /// whose answer was given up is never sent again.
    pub(crate) const fn hurry(&mut self) {
        self.is_hurried = true;
    }

    /// Encodes and signs the last order once more: an order is rare, and what it needs on its way would
    /// have left the processor's caches until the next one. Neither budget nor nonces are touched.
    pub(crate) fn rehearse(&self) -> Option<(windvane_protocol::route::Surface, Prepared)> {
        let calls = self.exchange.encode(self.last.as_ref()?).ok()?;
        let call = calls.first()?;
        Some((call.route.surface, self.exchange.rehearse(call)?))
    }

    /// The next thing to do.
    pub(crate) fn poll(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// An answer came, or none will.
    pub(crate) fn answered(&mut self, now: Time, (id, answer): (CallId, CallAnswer<'_>)) {
        if let CallAnswer::Late(waited) = answer
            && let Some(number) = self.part(id)
            && self.is_order(number)
        {
            self.flying.remove(&id);
            self.not_sent_in_time((number, waited));
        } else if let Some((purpose, became)) = self.hear(now, id, answer) {
            self.became(now, purpose, became);
        }
    }

    /// What became of a call.
    fn became(&mut self, now: Time, purpose: Purpose, became: Result<String, NotDone>) {
        self.clocks.hear(now, &became, &purpose, &*self.exchange);
        match purpose {
            Purpose::Part(number) => self.part_became(now, number, became),
            Purpose::Clock(reading) => self.clock_read(now, reading, became),
            Purpose::Depth(id) => self.depth_came(now, id, became),
            Purpose::Probe => {}
            Purpose::CreateKey(surface) => self.done.push_back(Done::Key(surface, became)),
            Purpose::RenewKey(surface) => self.done.push_back(Done::Renewed(surface, became)),
            Purpose::Poll(surface, question) => {
                self.done.push_back(Done::Polled(surface, question, became));
            }
            Purpose::Asked(number) => self.done.push_back(Done::Asked(number, became)),
        }
        self.tell_stops(now);
    }

    /// Everything whose time has come.
    pub(crate) fn timeout(&mut self, now: Time) {
        let mut given_up = self.give_up_signing(now);
        while let Some(id) = self.give_up(now) {
            self.done.push_back(Done::Abandon(id));
            given_up = true;
        }
        // What became of them comes first: a cancel may wait for an order that did not leave.
        if given_up {
            return;
        }
        while let Some(waiting) = self.turn(now) {
            self.attempt(now, waiting);
        }
        self.follow_overdue(now);
        while let Some(at) = self.depths.iter().position(|(at, _)| *at <= now) {
            let (_, id) = self.depths.remove(at);
            self.done.push_back(Done::Depth(id, None));
        }
        while let Some(surface) = self.clocks.due(now) {
            self.read_clock(now, surface);
        }
        self.tell_stops(now);
    }

    /// When [`Self::timeout`] is due.
    pub(crate) fn next(&self) -> Option<Time> {
        let signing = self.signing.values().map(Signs::by);
        let flying = self.flying.values().filter_map(|flying| flying.by);
        let waiting = self.waiting.iter().map(|waiting| waiting.at);
        let follows = self.carried.values().filter_map(|one| one.follow_by);
        let depths = self.depths.iter().map(|(at, _)| *at);
        let others = [self.clocks.next(), self.stops.next()];
        flying
            .chain(signing)
            .chain(waiting)
            .chain(follows)
            .chain(depths)
            .chain(others.into_iter().flatten())
            .min()
    }

    /// Fetches the depth that the differences of an instrument wait for.
    pub(crate) fn fetch_depth(
        &mut self,
        now: Time,
        (id, surface, symbol): (InstrumentId, Surface, &str),
    ) {
        let question = Question::Depth(surface, symbol);
        self.question(now, question, (Lane::Query, Purpose::Depth(id)));
    }

    /// Asks for a listen key; the venue gives the living one and prolongs it, or a new one.
    pub(crate) fn create_key(&mut self, now: Time, surface: Surface) {
        let with = (Lane::Heartbeat, Purpose::CreateKey(surface));
        self.question(now, Question::CreateKey(surface), with);
    }

    /// Renews a listen key.
    pub(crate) fn renew_key(&mut self, now: Time, (surface, key): (Surface, &str)) {
        let with = (Lane::Heartbeat, Purpose::RenewKey(surface));
        self.question(now, Question::RenewKey(surface, key), with);
    }

    /// Asks a question for a start or a watchdog, which waits so many milliseconds for its share of the
    /// budget. Its answer comes with this number. Answers whether the exchange has a call for it.
    pub(crate) fn ask(
        &mut self,
        now: Time,
        question: Question<'_>,
        (lane, patience_ms): (Lane, i64),
        number: u64,
    ) -> bool {
        let Some(asked) = self.exchange.ask(question) else {
            return false;
        };
        let call = Wanted {
            patience_ns: patience_ms * 1_000_000,
            ..self.plain_call(asked, lane, Purpose::Asked(number))
        };
        self.call(now, call);
        true
    }

    /// Asks a question of the session, and answers whether the exchange has a call for it.
    fn question(
        &mut self,
        now: Time,
        question: Question<'_>,
        (lane, purpose): (Lane, Purpose),
    ) -> bool {
        let Some(asked) = self.exchange.ask(question) else {
            return false;
        };
        let call = self.plain_call(asked, lane, purpose);
        self.call(now, call);
        true
    }

    /// Asks a question of public data.
    pub(crate) fn ask_for_public(
        &mut self,
        now: Time,
        (surface, question): (Surface, QuestionId),
        asked: Asked,
    ) {
        let purpose = Purpose::Poll(surface, question);
        let call = self.plain_call(asked, Lane::Query, purpose);
        self.call(now, call);
    }

    /// The venue's clock, Unix milliseconds.
    pub(crate) fn venue_ms(&self, now: Time, surface: Surface) -> i64 {
        let local_us = now.0.div_euclid(1_000);
        let venue_us = self.gateway().venue_us(local_us, venue_surface(surface));
        venue_us.div_euclid(1_000)
    }

    fn depth_came(&mut self, now: Time, id: InstrumentId, became: Result<String, NotDone>) {
        match became {
            Ok(text) => self.done.push_back(Done::Depth(id, Some(text))),
            Err(not_done) => {
                tracing::warn!(%not_done, "no depth");
                self.depths.push((now.plus_ns(calls::AGAIN_NS), id));
            }
        }
    }
}

/// The venue's word for a surface of the engine.
pub const fn venue_surface(surface: Surface) -> windvane_protocol::route::Surface {
    match surface {
        Surface::Spot => windvane_protocol::route::Surface::Spot,
        Surface::Futures => windvane_protocol::route::Surface::Futures,
    }
}

/// The engine's word for a surface of the venue.
const fn engine_surface(surface: windvane_protocol::route::Surface) -> Surface {
    match surface {
        windvane_protocol::route::Surface::Spot => Surface::Spot,
        _ => Surface::Futures,
    }
}
