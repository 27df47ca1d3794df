//! Carries the engine's requests to the venue and their results back. A request consists of one or
//! more calls, which use the budget lane of the request. No call is sent twice.
//!
//! This module must never contain sockets, tasks, or decisions about orders. The engine decides.

mod account;
mod calls;
mod clocks;
mod engine_requests;
mod modes;
mod startup;
mod waits;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use windvane_client_core::Gateway;
use windvane_client_core::budget::Lane;
use windvane_client_core::gateway::Unsigned;
use windvane_client_core::outcome::NotDone;
use windvane_client_core::streams::feed::PollId;
use windvane_model::live::LiveInput;
use windvane_model::{ClientOrderId, InstrumentId, Reply, Request, Surface, Time};
use windvane_protocol::adapter::{EncodedCall, FuturesAccount, Names};
use windvane_protocol::route::Route;
use windvane_protocol::sign::Prepared;

pub use calls::{CallAnswer, CallId};
pub(crate) use clocks::ClockRead;
pub use clocks::{CLOCK_EVERY_MS, CLOCK_SAMPLES};
pub use engine_requests::lane;
pub use modes::MODES_AGE_MS;
pub use waits::stop_reason;

use crate::exchange::{Exchange, Query};
use crate::surface::venue_surface;

use account::Account;
use calls::{InFlight, PendingSignature, Waiting, Wanted};
use clocks::Clocks;
use engine_requests::{Elsewhere, PendingRequest};
use modes::Modes;
use waits::{Probes, Stops};

/// Configuration of the requests.
#[derive(Clone, Copy, Debug)]
pub struct RequestTerms {
    /// Response timeout of a request.
    pub request: Duration,
    /// Response timeout of a countdown.
    pub countdown: Duration,
}

/// A call that leaves now.
#[derive(Debug)]
pub struct Call {
    /// Its number, to match the response.
    pub id: CallId,
    /// The route.
    pub route: &'static Route,
    /// The signed bytes.
    pub prepared: Prepared,
    /// Whether it changes something at the venue.
    pub changes: bool,
    /// The call must not leave after this time: the process was suspended, and the dead man's
    /// switch of the order may have acted. The shell then reports [`CallAnswer::Late`].
    pub leave_by: Option<Time>,
    /// Arrival of the public frame that caused it, to measure order latency.
    pub since: Option<Time>,
}

/// By how much a call misses its [`Call::leave_by`]; `None` if it is not late.
pub fn late_by(leave_by: Option<Time>, now: Time) -> Option<Duration> {
    let late_ns = now.0.saturating_sub(leave_by?.0);
    (late_ns > 0).then(|| Duration::from_nanos(late_ns.unsigned_abs()))
}

/// The purpose of a call.
#[derive(Debug)]
enum Purpose {
    /// A part of a request of the engine.
    Part(u64),
    /// A depth snapshot.
    Depth(InstrumentId),
    /// A sample of the venue's clock.
    Clock(ClockRead),
    /// The response header, which shows the used weight.
    Probe,
    /// Creation of a listen key.
    CreateKey(Surface),
    /// Renewal of a listen key.
    RenewKey(Surface),
    /// A query of public data that is polled.
    Poll(Surface, PollId),
    /// A query of a start or of a watchdog, by its own number.
    Query(u64),
}

/// Results and work for the session.
#[derive(Debug)]
pub(crate) enum Done {
    /// A call must be signed elsewhere.
    Sign(CallId, Unsigned),
    /// A call leaves.
    Send(Call),
    /// A call is given up.
    Abandon(CallId),
    /// An input for the engine.
    Live(LiveInput),
    /// The replies to a request.
    Replies(Vec<Reply>),
    /// The response of GET depth; `None` if it must be requested again.
    Depth(InstrumentId, Option<String>),
    /// The result of creating a listen key.
    Key(Surface, Result<String, NotDone>),
    /// The result of renewing a listen key.
    Renewed(Surface, Result<String, NotDone>),
    /// The result of a poll of public data.
    Polled(Surface, PollId, Result<String, NotDone>),
    /// A call ended; for the metrics.
    Ended(CallEnded),
    /// How long a call waited for its budget, in nanoseconds, even if it gave up after that.
    Waited(Lane, i64),
    /// The result of a query by [`Requests::send_numbered_query`].
    QueryEnded(u64, Result<String, NotDone>),
}

/// How a call ended, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEnded {
    /// Its surface.
    pub surface: windvane_protocol::route::Surface,
    /// "done", "refused", "unknown" or "wait".
    pub outcome: &'static str,
    /// How long it took, in nanoseconds.
    pub took_ns: i64,
}

/// The requests of one process.
#[derive(Debug)]
pub struct Requests {
    exchange: Box<dyn Exchange>,
    terms: RequestTerms,
    /// When the clock of the gateway's budgets began, by the shell's clock.
    origin: Time,
    surfaces: Vec<Surface>,
    waiting: Vec<Waiting>,
    /// Calls that wait for their signature.
    signing: BTreeMap<CallId, PendingSignature>,
    in_flight: BTreeMap<CallId, InFlight>,
    next_call: u64,
    pending: BTreeMap<u64, PendingRequest>,
    next_pending: u64,
    /// Orders in flight, so that no cancel overtakes its order on another connection.
    placing: BTreeSet<ClientOrderId>,
    modes: Modes,
    account: Account,
    elsewhere: Elsewhere,
    probes: Probes,
    clocks: Clocks,
    stops: Stops,
    /// Depth snapshots that are requested again at this time.
    depths: Vec<(Time, InstrumentId)>,
    /// The last order, for rehearsals.
    last: Option<Request>,
    /// The run is stopping.
    is_hurried: bool,
    done: VecDeque<Done>,
}

impl Requests {
    /// Requests of a process that has sent nothing yet. `origin` is when the clock of the gateway's
    /// budgets began, by the shell's clock.
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
            in_flight: BTreeMap::new(),
            next_call: first_call,
            pending: BTreeMap::new(),
            next_pending: 0,
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

    /// The budgets, clocks and bans.
    pub fn gateway(&self) -> &Gateway {
        self.exchange.gateway()
    }

    /// The exchange.
    pub(crate) fn exchange(&self) -> &dyn Exchange {
        &*self.exchange
    }

    /// Ends the start: from here on, requests of the engine can be encoded.
    pub fn configure(&mut self, names: Names, futures_account: FuturesAccount) {
        self.exchange.configure(names, futures_account);
    }

    /// How long nothing may be sent to a surface, in milliseconds.
    pub(crate) fn stopped_ms(&self, now: Time, surface: Surface) -> Option<u64> {
        let surface = venue_surface(surface);
        self.gateway().stopped_ms(self.ms(now), surface)
    }

    /// How long a refused handshake delays the next one: see [`Gateway::heed_handshake`].
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

    /// Whether no request is in progress.
    pub fn is_idle(&self) -> bool {
        let is_waiting = !self.waiting.is_empty() || !self.signing.is_empty();
        !is_waiting && self.in_flight.is_empty() && self.pending.is_empty()
    }

    /// The account's modes changed and must be read again.
    pub(crate) fn forget_modes(&mut self) {
        self.modes.forget();
    }

    /// The run is stopping: requests get shorter timeouts from here on. Orders keep theirs, because
    /// an order whose response was given up is never sent again.
    pub(crate) const fn hurry(&mut self) {
        self.is_hurried = true;
    }

    /// Encodes and signs the last order once more. Orders are rare, and the code and data on their
    /// path would otherwise leave the processor caches. This does not use up budget or nonces.
    pub(crate) fn rehearse(&self) -> Option<(windvane_protocol::route::Surface, Prepared)> {
        let calls = self.exchange.encode_request(self.last.as_ref()?).ok()?;
        let call = calls.first()?;
        Some((call.route.surface, self.exchange.rehearse(call)?))
    }

    /// The next result or work.
    pub(crate) fn poll(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// The result of a call.
    pub(crate) fn handle_answer(&mut self, now: Time, (id, answer): (CallId, CallAnswer<'_>)) {
        if let CallAnswer::Late(waited) = answer
            && let Some(number) = self.part(id)
            && self.is_order(number)
        {
            self.in_flight.remove(&id);
            self.not_sent_in_time((number, waited));
        } else if let Some((purpose, result)) = self.classify_answer(now, id, answer) {
            self.call_ended(now, purpose, result);
        }
    }

    /// Handles the result of a call by its purpose.
    fn call_ended(&mut self, now: Time, purpose: Purpose, result: Result<String, NotDone>) {
        self.clocks
            .note_result(now, &result, &purpose, &*self.exchange);
        match purpose {
            Purpose::Part(number) => self.part_ended(now, number, result),
            Purpose::Clock(reading) => self.clock_read(now, reading, result),
            Purpose::Depth(id) => self.depth_received(now, id, result),
            Purpose::Probe => {}
            Purpose::CreateKey(surface) => self.done.push_back(Done::Key(surface, result)),
            Purpose::RenewKey(surface) => self.done.push_back(Done::Renewed(surface, result)),
            Purpose::Poll(surface, query) => {
                self.done.push_back(Done::Polled(surface, query, result));
            }
            Purpose::Query(number) => self.done.push_back(Done::QueryEnded(number, result)),
        }
        self.report_stops(now);
    }

    /// Handles everything that is due.
    pub(crate) fn timeout(&mut self, now: Time) {
        let mut given_up = self.give_up_signing(now);
        while let Some(id) = self.give_up(now) {
            self.done.push_back(Done::Abandon(id));
            given_up = true;
        }
        // The results of these calls come first: a cancel may wait for an order that did not leave.
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
        self.report_stops(now);
    }

    /// When [`Self::timeout`] is due.
    pub(crate) fn next(&self) -> Option<Time> {
        let signing = self.signing.values().map(PendingSignature::by);
        let in_flight = self.in_flight.values().filter_map(|in_flight| in_flight.by);
        let waiting = self.waiting.iter().map(|waiting| waiting.at);
        let follows = self.pending.values().filter_map(|one| one.follow_by);
        let depths = self.depths.iter().map(|(at, _)| *at);
        let others = [self.clocks.next(), self.stops.next()];
        in_flight
            .chain(signing)
            .chain(waiting)
            .chain(follows)
            .chain(depths)
            .chain(others.into_iter().flatten())
            .min()
    }

    /// Requests the depth snapshot that the depth updates of an instrument wait for.
    pub(crate) fn fetch_depth(
        &mut self,
        now: Time,
        (id, surface, symbol): (InstrumentId, Surface, &str),
    ) {
        let query = Query::Depth(surface, symbol);
        self.send_query(now, query, (Lane::Query, Purpose::Depth(id)));
    }

    /// Requests a listen key. The venue returns the existing key and prolongs it, or a new one.
    pub(crate) fn create_key(&mut self, now: Time, surface: Surface) {
        let with = (Lane::Heartbeat, Purpose::CreateKey(surface));
        self.send_query(now, Query::CreateKey(surface), with);
    }

    /// Renews a listen key.
    pub(crate) fn renew_key(&mut self, now: Time, (surface, key): (Surface, &str)) {
        let with = (Lane::Heartbeat, Purpose::RenewKey(surface));
        self.send_query(now, Query::RenewKey(surface, key), with);
    }

    /// Sends a query for a start or a watchdog, which waits at most `patience_ms` for its budget.
    /// The result carries `number`. Returns whether the exchange has a call for it.
    pub(crate) fn send_numbered_query(
        &mut self,
        now: Time,
        query: Query<'_>,
        (lane, patience_ms): (Lane, i64),
        number: u64,
    ) -> bool {
        let Some(call) = self.exchange.encode_query(query) else {
            return false;
        };
        let call = Wanted {
            patience_ns: patience_ms * 1_000_000,
            ..self.plain_call(call, lane, Purpose::Query(number))
        };
        self.call(now, call);
        true
    }

    /// Sends a query of the session. Returns whether the exchange has a call for it.
    fn send_query(
        &mut self,
        now: Time,
        query: Query<'_>,
        (lane, purpose): (Lane, Purpose),
    ) -> bool {
        let Some(call) = self.exchange.encode_query(query) else {
            return false;
        };
        let call = self.plain_call(call, lane, purpose);
        self.call(now, call);
        true
    }

    /// Sends a poll of public data.
    pub(crate) fn send_poll(
        &mut self,
        now: Time,
        (surface, query): (Surface, PollId),
        call: EncodedCall,
    ) {
        let purpose = Purpose::Poll(surface, query);
        let call = self.plain_call(call, Lane::Query, purpose);
        self.call(now, call);
    }

    /// The venue's clock, in Unix milliseconds.
    pub(crate) fn venue_ms(&self, now: Time, surface: Surface) -> i64 {
        let local_us = now.0.div_euclid(1_000);
        let venue_us = self.gateway().venue_us(local_us, venue_surface(surface));
        venue_us.div_euclid(1_000)
    }

    fn depth_received(&mut self, now: Time, id: InstrumentId, result: Result<String, NotDone>) {
        match result {
            Ok(text) => self.done.push_back(Done::Depth(id, Some(text))),
            Err(not_done) => {
                tracing::warn!(%not_done, "the depth snapshot could not be read; it is requested again");
                self.depths.push((now.plus_ns(calls::AGAIN_NS), id));
            }
        }
    }
}
