//! Carries the engine's requests to the venue and their results back. A request consists of one or
//! more calls, which use the budget lane of the request. No call is sent twice.
//!
//! This module must never contain sockets, tasks, or decisions about orders. The engine decides.

mod account;
mod call;
mod calls;
mod clock_reads;
mod clocks;
mod done;
mod engine_requests;
mod modes;
mod order_shares;
mod pending;
mod stages;
mod startup;
mod state;
mod stops;
mod waits;

use windvane_client_core::budget::Lane;
use windvane_client_core::outcome::NotDone;
use windvane_model::{InstrumentId, Surface, Time};
use windvane_protocol::sign::Prepared;

pub use call::{Call, CallAnswer, CallEnded, CallId, late_by};
pub(crate) use clock_reads::ClockRead;
pub use clock_reads::{CLOCK_EVERY_MS, CLOCK_SAMPLES};
pub(crate) use done::Done;
pub use engine_requests::lane;
pub use modes::MODES_AGE_MS;
pub use state::{RequestTerms, Requests};
pub use stops::stop_reason;

use crate::exchange::Query;

use call::Purpose;
use stages::PendingSignature;

impl Requests {
    /// Encodes and signs the last order once more. Orders are rare, and the code and data on their
    /// path would otherwise leave the processor caches. This does not use up budget or nonces.
    pub(crate) fn rehearse(&self) -> Option<(windvane_protocol::route::Surface, Prepared)> {
        let calls = self.exchange.encode_request(self.last.as_ref()?).ok()?;
        let call = calls.first()?;
        Some((call.route.surface, self.exchange.rehearse(call)?))
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
        let is_clock_read = matches!(purpose, Purpose::Clock(_));
        self.clocks
            .note_result(now, &result, is_clock_read, &*self.exchange);
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
