//! What the requests of one process remember. The methods that make calls are in the modules that
//! use this one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use windvane_client_core::Gateway;
use windvane_client_core::gateway::Now;
use windvane_model::{ClientOrderId, InstrumentId, Request, Surface, Time};
use windvane_protocol::adapter::{FuturesAccount, Names};

use super::account::Account;
use super::call::CallId;
use super::clock_reads::Clocks;
use super::done::Done;
use super::modes::Modes;
use super::order_shares::OrderShares;
use super::pending::{Elsewhere, PendingRequest};
use super::stages::{InFlight, PendingSignature, Waiting};
use super::stops::{Probes, Stops};
use crate::exchange::Exchange;
use crate::surface::venue_surface;

/// Configuration of the requests.
#[derive(Clone, Copy, Debug)]
pub struct RequestTerms {
    /// Response timeout of a request.
    pub request: Duration,
    /// Response timeout of a countdown.
    pub countdown: Duration,
}

/// The requests of one process.
#[derive(Debug)]
pub struct Requests {
    pub(super) exchange: Box<dyn Exchange>,
    pub(super) terms: RequestTerms,
    /// When the clock of the gateway's budgets began, by the shell's clock.
    pub(super) origin: Time,
    pub(super) surfaces: Vec<Surface>,
    pub(super) waiting: Vec<Waiting>,
    /// Calls that wait for their signature.
    pub(super) signing: BTreeMap<CallId, PendingSignature>,
    pub(super) in_flight: BTreeMap<CallId, InFlight>,
    pub(super) next_call: u64,
    pub(super) pending: BTreeMap<u64, PendingRequest>,
    pub(super) next_pending: u64,
    /// Orders in flight, so that no cancel overtakes its order on another connection.
    pub(super) placing: BTreeSet<ClientOrderId>,
    pub(super) modes: Modes,
    pub(super) account: Account,
    pub(super) elsewhere: Elsewhere,
    pub(super) probes: Probes,
    pub(super) clocks: Clocks,
    pub(super) stops: Stops,
    pub(super) shares: OrderShares,
    /// Depth snapshots that are requested again at this time.
    pub(super) depths: Vec<(Time, InstrumentId)>,
    /// The last order, for rehearsals.
    pub(super) last: Option<Request>,
    /// The run is stopping.
    pub(super) is_hurried: bool,
    pub(super) done: VecDeque<Done>,
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
            shares: OrderShares::default(),
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

    /// The gateway's view of the present time.
    pub(super) fn gateway_now(&self, now: Time) -> Now {
        Now {
            ms: self.ms(now),
            local_us: now.0.div_euclid(1_000),
        }
    }

    pub(super) fn ms(&self, now: Time) -> u64 {
        u64::try_from(now.0.saturating_sub(self.origin.0) / 1_000_000).unwrap_or(0)
    }

    /// The end of a millisecond of the budget's clock. A wait until that millisecond ends there.
    pub(super) fn time_of(&self, ms: u64) -> Time {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX / 1_000_000 - 1);
        let ns = (ms + 1).saturating_mul(1_000_000);
        Time(self.origin.0.saturating_add(ns))
    }

    /// The venue's clock, in Unix milliseconds.
    pub(crate) fn venue_ms(&self, now: Time, surface: Surface) -> i64 {
        let local_us = now.0.div_euclid(1_000);
        let venue_us = self.gateway().venue_us(local_us, venue_surface(surface));
        venue_us.div_euclid(1_000)
    }

    /// The next result or work.
    pub(crate) fn poll(&mut self) -> Option<Done> {
        self.done.pop_front()
    }
}
