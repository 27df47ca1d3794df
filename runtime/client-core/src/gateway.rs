//! Every request of a process passes through the gateway. It holds the shares of the budget, the
//! venue's time, nonces and signing, and it decides what a response means. Every sender (tasks with
//! sockets, a session, a simulator) asks the gateway first and then reports the response to it.
//!
//! The gateway does not send, wait, or read a clock. Time is an argument.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use windvane_protocol::error::code::INVALID_TIMESTAMP;
use windvane_protocol::error::{Judgement, Limit, Pause, judge};
use windvane_protocol::planted;
use windvane_protocol::route::{Listing, Route, Scheme, Security, Surface, Version};
use windvane_protocol::sign::{Credentials, Dialect, PrepareError, Prepared, Stamp, prepare};
use windvane_protocol::wire::{Parameters, Whole};

use crate::budget::{
    BAN_MAX, Budgets, Cost, Denial, Denied, Departed, Lane, RateLimit, Shares, Used,
};
use crate::called_route::CalledRoute;
use crate::clock::Offset;
use crate::nonce::Nonces;
use crate::outcome::{Lost, NotDone, Refusal, RequestError, UnknownReason, Wait, WaitReason};
use crate::settings::{Api, default_version};
use crate::streams::millis;

/// Pause after a read without a response, and after a failed connection.
const BREATH: Duration = Duration::from_secs(1);
/// Pause in milliseconds before the next handshake after a firewall refused one without
/// `Retry-After`. It equals the length of the budget's stop.
const FORBIDDEN_PAUSE_MS: u64 = 60_000;

/// The identity and the settings with which requests are made.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Brand, network and `recvWindow`.
    pub dialect: Dialect,
    /// The keys.
    pub credentials: Credentials,
    /// How requests to spot are signed.
    pub spot_api: Api,
    /// How all other requests are signed.
    pub futures_api: Api,
    /// The host of each surface, in the order of [`Surface::ALL`]. A limit of the address applies
    /// to all surfaces of a host.
    pub hosts: [Option<String>; Surface::ALL.len()],
}

impl Identity {
    /// The version in which a route is called: see [`default_version`].
    pub fn version(&self, route: &Route) -> Option<Version> {
        let api = match route.surface {
            Surface::Spot => self.spot_api,
            Surface::Futures | Surface::Chain | Surface::Rpc => self.futures_api,
        };
        default_version(route, api)
    }
}

/// The time of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds on the clock of the budgets, which never goes back.
    pub ms: u64,
    /// The local clock, Unix microseconds.
    pub local_us: i64,
}

/// Why a request has no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The request could not be built.
    NotMade(RequestError),
    /// The connection could not be opened.
    NoConnection(String),
    /// It was sent, or may have been.
    Lost(Lost),
}

/// The parts of a response that are judged.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// HTTP status.
    pub status: u16,
    /// Names and values of the headers that are text.
    pub headers: &'a [(&'a str, &'a str)],
    /// Body.
    pub text: &'a str,
}

impl<'a> Answer<'a> {
    fn header(&self, name: &str) -> Option<&'a str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value)
    }
}

/// A request with its time and nonces, before it is signed. The signer may read all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsigned {
    /// The route, in its version.
    pub called_route: CalledRoute,
    /// Business parameters.
    pub parameters: Parameters,
    /// Time and nonces.
    pub stamp: Stamp,
}

impl Unsigned {
    /// Whether the request needs a key: for a signature, or as an API key in a header.
    pub fn needs_key(&self) -> bool {
        let CalledRoute { route, version } = self.called_route;
        let listing = route.listing(version);
        let is_signed = |row: &Listing| row.scheme != Scheme::Open || row.inner.is_some();
        route.security != Security::None || listing.is_some_and(is_signed)
    }
}

/// A change that other parts of the program may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The venue refused a request because of a limit.
    Limited,
    /// A host accepts nothing from this address for a time that it stated.
    Banned,
    /// A request of this surface was refused because of its timestamp (-1021).
    ClockRefused(Surface),
}

/// See the module documentation. Clones share all state.
#[derive(Clone)]
pub struct Gateway {
    identity: Arc<Identity>,
    nonces: Arc<Nonces>,
    state: Arc<Mutex<State>>,
    listener: Arc<dyn Fn(Change) + Send + Sync>,
}

#[derive(Debug)]
struct State {
    budgets: Budgets,
    offsets: [Option<Offset>; Surface::ALL.len()],
    /// End of each host's ban, milliseconds on the clock of the budgets.
    bans: BTreeMap<String, u64>,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl Gateway {
    /// A gateway that has not sent anything yet. One source of nonces must serve every signer of
    /// the same user.
    pub fn new(identity: Identity, shares: Shares, nonces: Arc<Nonces>) -> Self {
        Self::with_listener(identity, shares, nonces, |_| {})
    }

    /// [`Self::new`], which also reports changes to `listener`. The listener must not block.
    pub fn with_listener(
        identity: Identity,
        shares: Shares,
        nonces: Arc<Nonces>,
        listener: impl Fn(Change) + Send + Sync + 'static,
    ) -> Self {
        Self {
            identity: Arc::new(identity),
            nonces,
            state: Arc::new(Mutex::new(State {
                budgets: Budgets::new(shares),
                offsets: [None; Surface::ALL.len()],
                bans: BTreeMap::new(),
            })),
            listener: Arc::new(listener),
        }
    }

    /// The identity and the settings with which requests are made.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // If a panic interrupted a count, the count is too high by at most one request.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or changes the budgets.
    pub fn with_budgets<T>(&self, work: impl FnOnce(&mut Budgets) -> T) -> T {
        work(&mut self.lock().budgets)
    }

    /// The weight that a lane of a surface may still use.
    pub fn weight_left(&self, now_ms: u64, surface: Surface, lane: Lane) -> u32 {
        self.with_budgets(|budgets| budgets.of(surface).weight_left(now_ms, lane))
    }

    /// The lowest weight limit among a surface's intervals.
    pub fn weight_limit(&self, now_ms: u64, surface: Surface) -> u32 {
        self.with_budgets(|budgets| {
            let limits = budgets.of(surface).weights(now_ms).map(|(.., limit)| limit);
            limits.min().unwrap_or(u32::MAX)
        })
    }

    /// Remaining time, in milliseconds, in which no request at all may be sent to a surface, after
    /// a 429, 418 or 403.
    pub fn stopped_ms(&self, now_ms: u64, surface: Surface) -> Option<u64> {
        let until_ms = self.with_budgets(|budgets| budgets.get(surface).stopped_until(now_ms));
        until_ms.map(|until_ms| until_ms.saturating_sub(now_ms))
    }

    /// Remaining time, in milliseconds, in which no order may be sent to a surface, closes
    /// included, after a 429 of the order limit.
    pub fn orders_stopped_ms(&self, now_ms: u64, surface: Surface) -> Option<u64> {
        let until = |budgets: &mut Budgets| budgets.get(surface).orders_stopped_until(now_ms);
        self.with_budgets(until)
            .map(|until_ms| until_ms.saturating_sub(now_ms))
    }

    /// Why no request may be sent to a surface now, and for how many milliseconds.
    pub fn stop_of(&self, now_ms: u64, surface: Surface) -> Option<(Denial, u64)> {
        let stop = self.with_budgets(|budgets| budgets.get(surface).stop(now_ms));
        stop.map(|(why, until_ms)| (why, until_ms.saturating_sub(now_ms)))
    }

    /// The last measured offset of a surface's clock. Chain API and JSON-RPC have no time route, so
    /// they use the offset of futures, or else that of spot.
    pub fn offset(&self, surface: Surface) -> Option<Offset> {
        let [spot, futures, ..] = self.lock().offsets;
        match surface {
            Surface::Spot => spot,
            Surface::Futures => futures,
            Surface::Chain | Surface::Rpc => futures.or(spot),
        }
    }

    /// Sets the offset that was measured with a time route.
    pub fn set_offset(&self, surface: Surface, offset: Offset) {
        self.lock().offsets[surface as usize] = Some(offset);
    }

    /// The venue's time, Unix microseconds; local time if no offset is known.
    pub fn venue_us(&self, local_us: i64, surface: Surface) -> i64 {
        let offset = self.offset(surface).map_or(0, |offset| offset.offset_us);
        local_us.saturating_add(offset)
    }

    /// The venue's time, and new nonces if `is_numbered`. The request that reads the clock is sent
    /// before the venue's time is known, so it must not draw nonces: they could only grow from
    /// there.
    pub fn stamp(&self, local_us: i64, surface: Surface, is_numbered: bool) -> Stamp {
        let venue_us = self.venue_us(local_us, surface);
        let nonce = || match u64::try_from(venue_us).unwrap_or(0) {
            now_us if is_numbered => self.nonces.next(now_us),
            now_us => now_us,
        };
        // The inner signature is made first.
        let inner_nonce_us = nonce();
        Stamp {
            timestamp_ms: venue_us.div_euclid(1_000),
            nonce_us: nonce(),
            inner_nonce_us,
        }
    }

    /// Counts a request that is about to be sent, or returns when it may be sent.
    ///
    /// # Errors
    /// Why the request must wait.
    pub fn acquire(
        &self,
        now_ms: u64,
        (surface, lane): (Surface, Lane),
        cost: &Cost,
    ) -> Result<Departed, Denied> {
        self.with_budgets(|budgets| budgets.acquire(now_ms, surface, lane, cost))
    }

    /// A request with its time and nonces, before it is signed. `version` and `stamp` override the
    /// gateway's own values.
    pub fn unsigned(
        &self,
        local_us: i64,
        (route, version): (&'static Route, Option<Version>),
        parameters: &Parameters,
        stamp: Option<Stamp>,
    ) -> Unsigned {
        let version = version.or_else(|| self.identity.version(route));
        let is_numbered = route.listing(version).is_some_and(Listing::takes_nonce);
        let stamp = stamp.unwrap_or_else(|| self.stamp(local_us, route.surface, is_numbered));
        Unsigned {
            called_route: CalledRoute { route, version },
            parameters: parameters.clone(),
            stamp,
        }
    }

    /// The bytes of a request, signed with this gateway's keys.
    ///
    /// # Errors
    /// The request cannot be built from these parameters.
    pub fn sign(&self, unsigned: &Unsigned) -> Result<Prepared, PrepareError> {
        let CalledRoute { route, version } = unsigned.called_route;
        let Identity {
            dialect,
            credentials,
            ..
        } = &*self.identity;
        let (parameters, stamp) = (&unsigned.parameters, unsigned.stamp);
        prepare(route, version, parameters, dialect, credentials, stamp)
    }

    /// [`Self::sign`] of [`Self::unsigned`].
    ///
    /// # Errors
    /// The request cannot be built from these parameters.
    pub fn prepare(
        &self,
        local_us: i64,
        route: (&'static Route, Option<Version>),
        parameters: &Parameters,
        stamp: Option<Stamp>,
    ) -> Result<Prepared, PrepareError> {
        self.sign(&self.unsigned(local_us, route, parameters, stamp))
    }

    /// Decides from the response what happened to a request that was sent. The response's headers
    /// correct the budget, and the limits that it states apply from now on.
    ///
    /// # Errors
    /// The request was not carried out, or it is unknown whether it was.
    pub fn judge(
        &self,
        now: Now,
        called_route: CalledRoute,
        (cost, departed): (&Cost, Departed),
        answer: Result<Answer<'_>, Failure>,
    ) -> Result<(), NotDone> {
        let route = called_route.route;
        let answer = answer.map_err(|failure| failed(route, failure))?;
        self.count(now, route.surface, (cost, departed), &answer);
        match judge(answer.status, answer.header("retry-after"), answer.text) {
            Judgement::Success => {
                if route.name.ends_with(".exchange_info") {
                    self.learn_limits(route.surface, answer.text);
                }
                Ok(())
            }
            // A response without an error code may not come from the venue, so it does not show
            // what the venue did (docs/interface/errors.md#how-the-client-reads-a-response).
            Judgement::Refused { complaint, .. } if route.changes && complaint.error.is_none() => {
                Err(NotDone::Unknown(UnknownReason::Venue(complaint)))
            }
            Judgement::Refused {
                complaint,
                is_fatal,
            } => {
                let code = complaint.error.as_ref().map(|error| error.code);
                if code == Some(INVALID_TIMESTAMP.code) {
                    (self.listener)(Change::ClockRefused(route.surface));
                }
                Err(NotDone::Refused(Refusal::Venue {
                    called_route,
                    complaint,
                    is_fatal,
                }))
            }
            Judgement::Unknown(complaint) if route.changes => {
                Err(NotDone::Unknown(UnknownReason::Venue(complaint)))
            }
            Judgement::Unknown(complaint) => Err(NotDone::Wait(Wait {
                why: WaitReason::Busy(complaint),
                after: BREATH,
            })),
            Judgement::Wait(pause) => Err(NotDone::Wait(self.stop(now, route, cost, pause))),
        }
    }

    /// A surface refused a request because of a limit; `limit` has the wait in milliseconds that it
    /// stated. The limit belongs to the address that sent (docs/interface/limits.md#counters), so
    /// the stop applies to the whole host. The order limit applies to its surface only.
    pub fn heed_refusal(
        &self,
        now_ms: u64,
        surface: Surface,
        limit: (Limit, Option<u64>),
        cost: &Cost,
    ) {
        let host = |surface: Surface| self.identity.hosts[surface as usize].as_deref();
        self.with_budgets(|budgets| {
            budgets.refused(now_ms, surface, limit, cost, |other| {
                host(other) == host(surface)
            });
        });
        (self.listener)(Change::Limited);
    }

    /// How long a refused handshake delays the next one, in milliseconds. 429 and 418 apply to the
    /// address (docs/interface/limits.md#429-418-and-bans), so requests stop as well. A firewall's
    /// 403 applies only to what it refused: requests may still pass, and cancels and renewals must
    /// not wait for a stream.
    pub fn heed_handshake(
        &self,
        now_ms: u64,
        surface: Surface,
        (status, pause_ms): (Option<u16>, Option<u64>),
    ) -> Option<u64> {
        let limit = match status? {
            429 => Limit::Weight,
            418 => Limit::Ban,
            403 => return Some(pause_ms.unwrap_or(FORBIDDEN_PAUSE_MS)),
            _ => return None,
        };
        self.heed_refusal(now_ms, surface, (limit, pause_ms), &Cost::default());
        self.stopped_ms(now_ms, surface)
    }

    /// Hosts that accept nothing from this address now, with the remaining milliseconds: after a
    /// 418, or after a 429 or 403 that stated its end. A process that starts later must know these
    /// too.
    pub fn bans(&self, now_ms: u64) -> Vec<(String, u64)> {
        let state = self.lock();
        let left = state
            .bans
            .iter()
            .map(|(host, until)| (host.clone(), until.saturating_sub(now_ms)));
        left.filter(|(_, left)| *left > 0).collect()
    }

    /// Blocks requests to a host for this time, because it banned an earlier process. The host is
    /// `name:port` if the port is not the default port of the scheme. [`BAN_MAX`] limits the wait,
    /// because the wall clock may have been set back.
    pub fn heed_ban(&self, now_ms: u64, host: &str, length_ms: u64) {
        if planted!(BanForgotten) {
            return;
        }
        let length_ms = length_ms.min(millis(BAN_MAX));
        for surface in Surface::ALL {
            if self.identity.hosts[surface as usize].as_deref() == Some(host) {
                self.with_budgets(|budgets| budgets.of(surface).banned(now_ms, length_ms));
            }
        }
        self.note_ban(now_ms, host, length_ms);
    }

    /// A later ban never shortens an earlier one.
    fn note_ban(&self, now_ms: u64, host: &str, length_ms: u64) {
        let until = now_ms.saturating_add(length_ms);
        let mut state = self.lock();
        if state.bans.get(host).is_some_and(|before| *before >= until) {
            return;
        }
        state.bans.insert(host.to_owned(), until);
        drop(state);
        (self.listener)(Change::Banned);
    }

    /// Corrects the budget by the headers of any response.
    fn count(
        &self,
        now: Now,
        surface: Surface,
        (cost, departed): (&Cost, Departed),
        answer: &Answer<'_>,
    ) {
        let headers = answer.headers.iter();
        let used = headers.filter_map(|(name, value)| Used::from_header(name, value));
        let used: Vec<Used> = used.collect();
        self.with_budgets(|budgets| budgets.answered(now.ms, surface, cost, departed, &used));
    }

    /// The venue stopped a request because of a limit.
    fn stop(&self, now: Now, route: &Route, cost: &Cost, mut pause: Pause) -> Wait {
        let surface = route.surface;
        // Only an absent header marks the order limit. This request placed no order, so everything
        // must stop.
        if pause.limit == Limit::Orders && cost.orders == 0 {
            pause.limit = Limit::Weight;
        }
        let venue_ms = self.venue_us(now.local_us, surface).div_euclid(1_000);
        let is_compared = self.offset(surface).is_some();
        let length_ms = pause.length_ms(venue_ms, is_compared);
        let venue_ms = u64::try_from(venue_ms).ok().filter(|_| is_compared);
        self.with_budgets(|budgets| budgets.of(surface).set_venue_time(now.ms, venue_ms));
        self.heed_refusal(now.ms, surface, (pause.limit, length_ms), cost);
        let has_end = length_ms.is_some() || pause.limit == Limit::Ban;
        if has_end && pause.limit != Limit::Orders {
            let host = self.identity.hosts[surface as usize].as_deref();
            if let Some((host, length_ms)) = host.zip(self.stopped_ms(now.ms, surface)) {
                self.note_ban(now.ms, host, length_ms);
            }
        }
        // Ask a copy, because nothing is sent and nothing must be counted.
        let denied = self.with_budgets(|budgets| {
            let mut copy = budgets.of(surface).clone();
            copy.acquire(now.ms, Lane::Cancel, cost).err()
        });
        let until_ms = denied.and_then(|denied| denied.until_ms);
        Wait {
            after: until_ms.map_or(BREATH, |until_ms| {
                Duration::from_millis(until_ms.saturating_sub(now.ms))
            }),
            why: WaitReason::Venue(pause),
        }
    }

    /// Exchange information states the limits in force, so every request for it updates the budget.
    fn learn_limits(&self, surface: Surface, text: &str) {
        let limits = stated_limits(text);
        if !limits.is_empty() {
            self.with_budgets(|budgets| budgets.set_limits(surface, &limits));
        }
    }
}

/// The outcome of a request that the budget delays.
pub fn denied(now_ms: u64, denied: Denied) -> Wait {
    let after = denied
        .until_ms
        .map(|until_ms| Duration::from_millis(until_ms.saturating_sub(now_ms)));
    Wait {
        why: WaitReason::Budget(denied),
        after: after.unwrap_or(Duration::MAX),
    }
}

fn failed(route: &Route, failure: Failure) -> NotDone {
    let why = match failure {
        Failure::NotMade(error) => return NotDone::Refused(error.into()),
        Failure::NoConnection(error) => WaitReason::NoConnection(error),
        Failure::Lost(lost) if route.changes => {
            return NotDone::Unknown(UnknownReason::NoAnswer(lost));
        }
        Failure::Lost(lost) => WaitReason::NoAnswer(lost),
    };
    NotDone::Wait(Wait { why, after: BREATH })
}

/// The entries of `rateLimits` that a budget can apply.
fn stated_limits(exchange_info: &str) -> Vec<RateLimit> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Info {
        rate_limits: Vec<Entry>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        rate_limit_type: String,
        interval: String,
        interval_num: Whole,
        limit: Whole,
    }
    let info: Option<Info> = serde_json::from_str(exchange_info).ok();
    let entries = info.map(|info| info.rate_limits).unwrap_or_default();
    let limits = entries.iter().filter_map(|entry| {
        let (kind, interval) = (&entry.rate_limit_type, &entry.interval);
        RateLimit::from_fields(kind, interval, entry.interval_num.0, entry.limit.0)
    });
    limits.collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use windvane_protocol::Brand;
    use windvane_protocol::route;
    use windvane_protocol::sign::Network;

    use super::*;

    /// A gateway to three surfaces, the first two of which are on host `one`.
    pub(crate) fn gateway() -> Gateway {
        let identity = Identity {
            dialect: Dialect {
                brand: Brand::new("svc").unwrap(),
                network: Network::Mainnet,
                recv_window_ms: None,
            },
            credentials: Credentials::default(),
            spot_api: Api::V1,
            futures_api: Api::V1,
            hosts: [Some("one"), Some("one"), Some("two"), None]
                .map(|host| host.map(str::to_owned)),
        };
        Gateway::new(identity, Shares::default(), Arc::new(Nonces::new()))
    }

    const NOW: Now = Now {
        ms: 1_000,
        local_us: 5_000_000,
    };

    fn judged(
        gateway: &Gateway,
        name: &str,
        status: u16,
        headers: &[(&str, &str)],
        text: &str,
    ) -> Result<(), NotDone> {
        let called_route = CalledRoute {
            route: route::named(name).unwrap(),
            version: None,
        };
        let answer = Answer {
            status,
            headers,
            text,
        };
        let sent = (&Cost::weight(1), Departed::default());
        gateway.judge(NOW, called_route, sent, Ok(answer))
    }

    #[test]
    fn surfaces_without_a_time_route_use_the_offset_of_another_one() {
        let gateway = gateway();
        let offset = Offset {
            offset_us: 50,
            error_us: 1,
            round_trip_us: 2,
        };
        gateway.set_offset(Surface::Spot, offset);
        assert_eq!(gateway.venue_us(1_000, Surface::Chain), 1_050);
        assert_eq!(gateway.venue_us(1_000, Surface::Futures), 1_000);
    }

    #[test]
    fn a_ban_applies_to_every_surface_of_its_host_and_is_kept() {
        let gateway = gateway();
        let headers = [("Retry-After", "30")];
        let banned = judged(&gateway, "spot.depth", 418, &headers, "");
        assert!(matches!(banned, Err(NotDone::Wait(_))), "{banned:?}");
        assert_eq!(gateway.stopped_ms(NOW.ms, Surface::Futures), Some(30_000));
        assert_eq!(gateway.stopped_ms(NOW.ms, Surface::Chain), None);
        assert_eq!(gateway.bans(NOW.ms), [("one".to_owned(), 30_000)]);
        assert_eq!(gateway.bans(NOW.ms + 30_000), []);
    }

    #[test]
    fn a_ban_of_an_earlier_process_lasts_three_days_at_most() {
        let gateway = gateway();
        let year_ms = 365 * 24 * 3_600_000;
        gateway.heed_ban(NOW.ms, "one", year_ms);
        let three_days_ms = 3 * 24 * 3_600_000;
        assert_eq!(
            gateway.stopped_ms(NOW.ms, Surface::Spot),
            Some(three_days_ms)
        );
        assert_eq!(gateway.bans(NOW.ms), [("one".to_owned(), three_days_ms)]);
    }

    #[test]
    fn a_response_without_a_venue_code_leaves_a_change_unknown() {
        let gateway = gateway();
        let page = judged(&gateway, "futures.new_order", 400, &[], "<html>");
        assert!(matches!(page, Err(NotDone::Unknown(_))), "{page:?}");
        let page = judged(&gateway, "futures.depth", 400, &[], "<html>");
        assert!(matches!(page, Err(NotDone::Refused(_))), "{page:?}");
    }

    #[test]
    fn a_lost_response_makes_changes_unknown_but_not_reads() {
        let gateway = gateway();
        let lost = |name| {
            let called_route = CalledRoute {
                route: route::named(name).unwrap(),
                version: None,
            };
            let failure = Failure::Lost(Lost::Cut("cut".to_owned()));
            let sent = (&Cost::weight(1), Departed::default());
            gateway.judge(NOW, called_route, sent, Err(failure))
        };
        assert!(matches!(
            lost("futures.new_order"),
            Err(NotDone::Unknown(_))
        ));
        assert!(matches!(lost("futures.depth"), Err(NotDone::Wait(_))));
    }
}
