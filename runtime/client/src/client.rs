//! The client: one request in, one outcome out. It owns connections, budget, clock and nonces.
//!
//! This module must never send a request again, and it must know nothing of orders and positions.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::{Notify, watch};
use windvane_client_core::bans::BansNow;
use windvane_client_core::gateway::{self, Answer, Change, Failure, Gateway, Now};
use windvane_protocol::route::{self, Route, Surface, Version};
use windvane_protocol::sign::{Prepared, Stamp};
use windvane_protocol::wire::{self, Parameters, Request, Whole};

use crate::CalledRoute;
use crate::budget::{Budget, Budgets, Cost, Denial, Departed, Lane};
use crate::clock::{Clock, Offset, Sample, estimate};
use crate::departure::Departure;
use crate::nonce::Nonces;
use crate::outcome::{NotDone, Outcome, Refusal, RequestError, UnknownReason, Wait, WaitReason};
use crate::rate_limiter::RateLimiter;
use crate::settings::Settings;
use crate::tls;
use crate::transport::{KnownUrls, RawAnswer, Ready, Transport, TransportError};

/// Pause after a read without a response, and after a failed connection.
const BREATH: Duration = Duration::from_secs(1);

/// A typed client of the venue. Cloning is cheap; clones share connections, budget and clock.
///
/// ```no_run
/// use secrecy::SecretString;
/// use windvane_client::{Addresses, Client, Outcome, Settings};
/// use windvane_protocol::Brand;
/// use windvane_protocol::route::{self, Surface};
/// use windvane_protocol::sign::{ApiKey, Credentials, Dialect, Network};
/// use windvane_protocol::wire::Parameters;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let addresses = Addresses::default().rest(Surface::Spot, "http://127.0.0.1:18080")?;
/// let dialect = Dialect {
///     brand: Brand::new("svc")?,
///     network: Network::Mainnet,
///     recv_window_ms: Some(5_000),
/// };
/// let credentials = Credentials {
///     api_key: Some(ApiKey::new("key", SecretString::from("secret"))),
///     ..Credentials::default()
/// };
/// let client = Client::new(Settings::new(addresses, dialect, credentials))?;
/// client.sync_clock(Surface::Spot, 5).await?;
///
/// let account = route::named("spot.account").ok_or("a route of the table")?;
/// match client.call(account, None, &Parameters::new()).await {
///     Outcome::Done(answer) => println!("{}", answer.text),
///     Outcome::Refused(refusal) => println!("no: {refusal}"),
///     Outcome::Unknown(reason) => println!("perhaps: {reason}"),
///     Outcome::Wait(wait) => println!("later: {wait}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
    transport: Transport,
    lane: Option<Lane>,
    patience: Duration,
    departure: Option<Departure>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    tls: Arc<rustls::ClientConfig>,
    gateway: Gateway,
    rate_limiter: RateLimiter,
    clock: Clock,
    known_urls: KnownUrls,
    banned: Arc<Notify>,
}

impl Client {
    /// Creates a client; it sends nothing yet.
    pub fn new(settings: Settings) -> Result<Self, TransportError> {
        let tls = tls::config(&settings.tls_roots)?;
        let transport = Transport::new(&settings.timeouts, tls.clone())?;
        let (refusals, banned, clock_refused) = (
            watch::Sender::new(0),
            Arc::new(Notify::new()),
            Arc::new([const { Notify::const_new() }; 4]),
        );
        let listener = {
            let (refusals, banned) = (refusals.clone(), Arc::clone(&banned));
            let clock_refused = Arc::clone(&clock_refused);
            move |change| match change {
                Change::Limited => refusals.send_modify(|count| *count += 1),
                Change::Banned => banned.notify_one(),
                Change::ClockRefused(surface) => clock_refused[surface as usize].notify_one(),
            }
        };
        let gateway = Gateway::with_listener(
            settings.identity(),
            settings.shares,
            Nonces::of_process(),
            listener,
        );
        let clock = Clock::new(settings.local_time.clone(), gateway.clone(), clock_refused);
        let shared = Shared {
            tls: Arc::new(tls),
            rate_limiter: RateLimiter::new(gateway.clone(), refusals),
            clock,
            gateway,
            known_urls: KnownUrls::default(),
            banned,
            settings,
        };
        Ok(Self {
            shared: Arc::new(shared),
            transport,
            lane: None,
            patience: Duration::ZERO,
            departure: None,
        })
    }

    /// A copy of this client, but all its requests use this `lane` of the budget instead of the
    /// lane of their route ([`Lane::of`]).
    #[must_use]
    pub fn in_lane(&self, lane: Lane) -> Self {
        Self {
            lane: Some(lane),
            ..self.clone()
        }
    }

    /// A copy of this client that waits at most this long for the budget. Without patience, a
    /// request that does not fit gives [`Outcome::Wait`] at once.
    #[must_use]
    pub fn with_patience(&self, patience: Duration) -> Self {
        Self {
            patience,
            ..self.clone()
        }
    }

    /// A copy of this client with a shorter response timeout, for a caller that has little time and
    /// prefers to ask again.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            transport: self.transport.with_timeout(timeout),
            ..self.clone()
        }
    }

    /// A copy of this client with its own connections. A connection runs on the async runtime that
    /// opened it. So a caller with its own runtime gets its requests written there.
    pub fn with_own_connections(&self) -> Result<Self, TransportError> {
        let tls = rustls::ClientConfig::clone(&self.shared.tls);
        Ok(Self {
            transport: Transport::new(&self.shared.settings.timeouts, tls)?,
            ..self.clone()
        })
    }

    /// A copy of this client with a callback that runs when its requests leave.
    #[must_use]
    pub fn with_departure(self, departure: Departure) -> Self {
        Self {
            departure: Some(departure),
            ..self
        }
    }

    /// The settings of the client.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The venue's clock, as far as it is known.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Reads or changes the budget of a surface. The second argument of `work` is the budget's
    /// time, in milliseconds.
    pub fn with_budget<T>(&self, surface: Surface, work: impl FnOnce(&mut Budget, u64) -> T) -> T {
        let work = |budgets: &mut Budgets, now_ms| work(budgets.of(surface), now_ms);
        self.shared.rate_limiter.with(work)
    }

    /// The weight that a lane of a surface may still use now, as far as it is known.
    pub fn weight_left(&self, surface: Surface, lane: Lane) -> u32 {
        self.with_budget(surface, |budget, now_ms| budget.weight_left(now_ms, lane))
    }

    /// The weight limit of a surface, in the interval with the smallest limit.
    pub fn weight_limit(&self, surface: Surface) -> u32 {
        self.with_budget(surface, |budget, now_ms| {
            let limits = budget.weights(now_ms).map(|(.., limit)| limit);
            limits.min().unwrap_or(u32::MAX)
        })
    }

    /// Returns how long requests to a surface waited for the budget since the last call, each with
    /// its lane (priority). Requests that did not wait are left out. For metrics.
    pub fn take_waits(&self, surface: Surface) -> Vec<(Lane, Duration)> {
        self.shared.rate_limiter.take_waits(surface)
    }

    /// How long nothing may be sent to a surface, after a 429, 418 or 403.
    pub fn stopped_for(&self, surface: Surface) -> Option<Duration> {
        let until_ms = self.with_budget(surface, |budget, now_ms| budget.stopped_until(now_ms));
        until_ms.map(|until_ms| self.shared.rate_limiter.time_to(until_ms))
    }

    /// Changes each time the venue refuses a request because of a limit.
    pub fn refusals(&self) -> watch::Receiver<u64> {
        self.shared.rate_limiter.refusals()
    }

    /// Why a surface accepts no request now, and for how long.
    pub fn stop_of(&self, surface: Surface) -> Option<(Denial, Duration)> {
        let stop = self.with_budget(surface, |budget, now_ms| budget.stop(now_ms));
        stop.map(|(why, until_ms)| (why, self.shared.rate_limiter.time_to(until_ms)))
    }

    /// The bans of this address at this wall-clock time (Unix milliseconds): after a 418, or after
    /// a 429 or 403 that stated its end. A later start of the program must respect them too.
    pub fn bans_at(&self, wall_ms: i64) -> BansNow<'_> {
        BansNow::new(
            &self.shared.gateway,
            self.shared.rate_limiter.now_ms(),
            wall_ms,
        )
    }

    /// Waits until a host reports such a ban.
    pub async fn ban_reported(&self) {
        self.shared.banned.notified().await;
    }

    /// The gateway that this client shares with callers of [`Self::exchange`].
    pub fn gateway(&self) -> &Gateway {
        &self.shared.gateway
    }

    /// Start time of the clock that the gateway's budgets use.
    pub fn began(&self) -> std::time::Instant {
        self.shared.rate_limiter.started().into_std()
    }

    /// The current times of the gateway's clocks.
    pub fn now(&self) -> Now {
        Now {
            ms: self.shared.rate_limiter.now_ms(),
            local_us: self.shared.clock.local_us(),
        }
    }

    /// Counts a request that leaves through [`Self::exchange`]. It waits for the budget as long as
    /// [`Self::with_patience`] allows.
    ///
    /// # Errors
    /// The budget did not allow the request in time.
    pub async fn pass(&self, route: &Route, cost: &Cost) -> Result<Departed, Wait> {
        let rate_limiter = &self.shared.rate_limiter;
        let lane = self.lane.unwrap_or_else(|| Lane::of(route));
        let passed = rate_limiter
            .pass((route.surface, lane), cost, self.patience)
            .await;
        passed.map_err(|denied| gateway::denied(rate_limiter.now_ms(), denied))
    }

    /// Writes a prepared request that the gateway has allowed, once, and reads the complete
    /// response. It does not classify the response.
    ///
    /// # Errors
    /// The request could not be built, had no connection, or lost its response.
    pub async fn exchange(
        &self,
        surface: Surface,
        prepared: Prepared,
    ) -> Result<RawAnswer, Failure> {
        let ready = self.ready(surface, prepared).map_err(Failure::NotMade)?;
        self.transport
            .exchange(ready, self.departure.as_ref())
            .await
    }

    /// Combines a prepared request with its address, ready to be written.
    ///
    /// # Errors
    /// The surface has no address, or the address would change the signed bytes.
    pub fn ready(&self, surface: Surface, prepared: Prepared) -> Result<Ready, RequestError> {
        let base = self.shared.settings.addresses.rest_of(surface);
        let base = base.ok_or(RequestError::NoAddress(surface))?;
        Ready::new(base, prepared, &self.shared.known_urls)
    }

    /// Sends a typed request once, in the version that the settings choose for its route.
    pub async fn send<R: Request>(&self, request: &R) -> Outcome<R::Answer> {
        self.send_stamped(request, None).await
    }

    /// [`Self::send`] with the caller's time and nonce.
    pub async fn send_stamped<R: Request>(
        &self,
        request: &R,
        stamp: Option<Stamp>,
    ) -> Outcome<R::Answer> {
        let Some(route) = route::named(R::ROUTE) else {
            return RequestError::NoRoute(R::ROUTE.to_owned()).into();
        };
        let parameters = request.parameters();
        let answer = self.call_stamped(route, None, &parameters, stamp).await;
        let raw = match answer {
            Outcome::Done(raw) => raw,
            Outcome::Refused(refusal) => return Outcome::Refused(refusal),
            Outcome::Unknown(reason) => return Outcome::Unknown(reason),
            Outcome::Wait(wait) => return Outcome::Wait(wait),
        };
        match wire::read(&raw.text) {
            Ok(answer) => Outcome::Done(answer),
            Err(error) => unreadable(route, &error, &raw.text),
        }
    }

    /// Sends any route once with any parameters. `version` overrides the choice of the settings.
    pub async fn call(
        &self,
        route: &'static Route,
        version: Option<Version>,
        parameters: &Parameters,
    ) -> Outcome<RawAnswer> {
        self.call_stamped(route, version, parameters, None).await
    }

    /// [`Self::call`] with the caller's time and nonce.
    pub async fn call_stamped(
        &self,
        route: &'static Route,
        version: Option<Version>,
        parameters: &Parameters,
        stamp: Option<Stamp>,
    ) -> Outcome<RawAnswer> {
        let cost = Cost::of(route, parameters);
        let departed = match self.pass(route, &cost).await {
            Ok(departed) => departed,
            Err(wait) => return Outcome::Wait(wait),
        };
        // Sign after the wait for the budget, because a timestamp must be fresh.
        let ready = match self.prepare(route, version, parameters, stamp) {
            Ok(ready) => ready,
            Err(error) => return error.into(),
        };
        let departure = self.departure.as_ref();
        let answer = self.transport.exchange(ready, departure).await;
        let version = version.or_else(|| self.shared.gateway.identity().version(route));
        self.outcome(CalledRoute { route, version }, (&cost, departed), answer)
    }

    /// The exact bytes that [`Self::call`] would send now; it sends nothing. `stamp` overrides the
    /// client's time and nonce.
    pub fn prepare(
        &self,
        route: &'static Route,
        version: Option<Version>,
        parameters: &Parameters,
        stamp: Option<Stamp>,
    ) -> Result<Ready, RequestError> {
        let base = self.shared.settings.addresses.rest_of(route.surface);
        base.ok_or(RequestError::NoAddress(route.surface))?;
        let local_us = self.shared.clock.local_us();
        let gateway = &self.shared.gateway;
        let prepared = gateway.prepare(local_us, (route, version), parameters, stamp)?;
        self.ready(route.surface, prepared)
    }

    /// The venue's time, and two nonces that were never used.
    pub fn stamp(&self, surface: Surface) -> Stamp {
        let local_us = self.shared.clock.local_us();
        self.shared.gateway.stamp(local_us, surface, true)
    }

    /// Calls the time route of a surface `samples` times and keeps the offset of the shortest round
    /// trip. The first call is slower because it also opens the connection.
    pub async fn sync_clock(&self, surface: Surface, samples: u8) -> Result<Offset, NotDone> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Time {
            server_time: Whole,
        }
        let name = match surface {
            Surface::Spot => "spot.time",
            Surface::Futures | Surface::Chain | Surface::Rpc => "futures.time",
        };
        let missing = || RequestError::NoRoute(name.to_owned());
        let route = route::named(name).ok_or_else(missing);
        let route = route.map_err(|error| NotDone::Refused(error.into()))?;
        let mut readings = Vec::new();
        for _ in 0..samples.max(1) {
            let sent_us = self.shared.clock.local_us();
            let raw = self.call(route, None, &Parameters::new()).await;
            let raw = raw.into_result()?;
            let received_us = self.shared.clock.local_us();
            let time: Time = serde_json::from_str(&raw.text).map_err(|error| {
                NotDone::Refused(Refusal::Unreadable {
                    error: error.to_string(),
                    excerpt: excerpt(&raw.text),
                })
            })?;
            readings.push(Sample {
                sent_us,
                received_us,
                server_ms: time.server_time.0,
            });
        }
        let offset = estimate(&readings).ok_or(NotDone::Wait(Wait {
            why: WaitReason::NoConnection("the local clock was set back meanwhile".to_owned()),
            after: BREATH,
        }))?;
        self.shared.gateway.set_offset(route.surface, offset);
        Ok(offset)
    }

    /// Waits until the venue refuses a request of a surface because of its time (-1021).
    pub async fn clock_refused(&self, surface: Surface) {
        self.shared.clock.refused(surface).await;
    }

    pub(crate) fn tls(&self) -> Arc<rustls::ClientConfig> {
        Arc::clone(&self.shared.tls)
    }

    fn outcome(
        &self,
        called_route: CalledRoute,
        sent: (&Cost, Departed),
        answer: Result<RawAnswer, Failure>,
    ) -> Outcome<RawAnswer> {
        let (now, gateway) = (self.now(), &self.shared.gateway);
        match answer {
            Ok(raw) => {
                let headers = raw.texts();
                let answer = Answer {
                    status: raw.status,
                    headers: &headers,
                    text: &raw.text,
                };
                match gateway.judge(now, called_route, sent, Ok(answer)) {
                    Ok(()) => Outcome::Done(raw),
                    Err(not_done) => not_done.into(),
                }
            }
            Err(failure) => match gateway.judge(now, called_route, sent, Err(failure)) {
                Ok(()) => unreachable!("without a response, the outcome cannot be done"),
                Err(not_done) => not_done.into(),
            },
        }
    }

    /// How long a refused handshake delays the next one, in milliseconds; see the gateway.
    pub(crate) fn heed_handshake(
        &self,
        surface: Surface,
        refused: (Option<u16>, Option<u64>),
    ) -> Option<u64> {
        let now_ms = self.shared.rate_limiter.now_ms();
        self.shared.gateway.heed_handshake(now_ms, surface, refused)
    }
}

fn unreadable<T>(route: &Route, error: &serde_json::Error, text: &str) -> Outcome<T> {
    let (error, excerpt) = (error.to_string(), excerpt(text));
    if route.changes {
        Outcome::Unknown(UnknownReason::Unreadable { error, excerpt })
    } else {
        Outcome::Refused(Refusal::Unreadable { error, excerpt })
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(200).collect()
}
