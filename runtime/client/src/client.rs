//! The client: one request in, one outcome out. It holds connections, budget, clock and nonces.
//!
//! What may never enter here: sending a request again, and knowledge of orders and positions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::watch;
use windvane_venue::error::code::INVALID_TIMESTAMP;
use windvane_venue::error::{Judgement, Limit, Pause, judge};
use windvane_venue::route::{self, Listing, Route, Surface, Version};
use windvane_venue::sign::{Stamp, prepare};
use windvane_venue::wire::{self, Parameters, Request, Whole};

use crate::Asked;
use crate::bans::Bans;
use crate::budget::{Budget, Budgets, Cost, Denial, Denied, Departed, Lane, RateLimit, Used};
use crate::clock::{Clock, Offset, Sample, estimate};
use crate::gate::Gate;
use crate::nonce::Nonces;
use crate::outcome::{Doubt, NotDone, Outcome, Refusal, RequestError, Wait, WaitReason};
use crate::settings::Settings;
use crate::tls;
use crate::transport::{Failure, KnownUrls, RawAnswer, Ready, Transport, TransportError};

/// After a question without an answer, and after a connection that failed.
const BREATH: Duration = Duration::from_secs(1);

/// A typed client of the venue. Cloning is cheap; clones share connections, budget and clock.
///
/// ```no_run
/// use secrecy::SecretString;
/// use windvane_client::{Addresses, Client, Outcome, Settings};
/// use windvane_venue::Brand;
/// use windvane_venue::route::{self, Surface};
/// use windvane_venue::sign::{ApiKey, Credentials, Dialect, Network};
/// use windvane_venue::wire::Parameters;
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
///     Outcome::Unknown(doubt) => println!("perhaps: {doubt}"),
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

/// Who is told when a request leaves: signed, and its bytes handed to the HTTP connection.
#[derive(Clone)]
pub struct Departure(Arc<dyn Fn() + Send + Sync>);

impl Departure {
    /// Tells `listener`, which must not block.
    pub fn new(listener: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    pub(crate) fn tell(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Departure")
    }
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    tls: Arc<rustls::ClientConfig>,
    gate: Gate,
    clock: Clock,
    nonces: &'static Nonces,
    known_urls: KnownUrls,
    bans: Bans,
}

impl Client {
    /// A client; nothing is sent yet.
    pub fn new(settings: Settings) -> Result<Self, TransportError> {
        let tls = tls::config(&settings.tls_roots)?;
        let transport = Transport::new(&settings.timeouts, tls.clone())?;
        let shared = Shared {
            tls: Arc::new(tls),
            gate: Gate::new(Budgets::new(settings.shares)),
            clock: Clock::new(settings.local_time.clone()),
            nonces: Nonces::of_process(),
            known_urls: KnownUrls::default(),
            bans: Bans::default(),
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

    /// The same client, every request of which goes through `lane` of the budget rather than
    /// through that of its route ([`Lane::of`]).
    #[must_use]
    pub fn in_lane(&self, lane: Lane) -> Self {
        Self {
            lane: Some(lane),
            ..self.clone()
        }
    }

    /// The same client, which waits at most so long for the budget. Without it a request that
    /// does not fit is answered at once by [`Outcome::Wait`].
    #[must_use]
    pub fn with_patience(&self, patience: Duration) -> Self {
        Self {
            patience,
            ..self.clone()
        }
    }

    /// The same client, which waits for an answer no longer than this: for whoever has little time
    /// and rather asks again.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            transport: self.transport.with_timeout(timeout),
            ..self.clone()
        }
    }

    /// The same client with connections of its own. A connection lives on the async runtime that
    /// opened it: whoever has a runtime to itself has its requests written there.
    pub fn with_own_connections(&self) -> Result<Self, TransportError> {
        let tls = rustls::ClientConfig::clone(&self.shared.tls);
        Ok(Self {
            transport: Transport::new(&self.shared.settings.timeouts, tls)?,
            ..self.clone()
        })
    }

    /// The same client, which tells when its requests leave.
    #[must_use]
    pub fn telling(self, departure: Departure) -> Self {
        Self {
            departure: Some(departure),
            ..self
        }
    }

    /// What it was made of.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The venue's clock, as far as it is known.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Looks at, or changes, the budget of a surface; the second argument is its time.
    pub fn with_budget<T>(&self, surface: Surface, work: impl FnOnce(&mut Budget, u64) -> T) -> T {
        let work = |budgets: &mut Budgets, now_ms| work(budgets.of(surface), now_ms);
        self.shared.gate.with(work)
    }

    /// The weight that a lane of a surface may still use now, as far as is known.
    pub fn weight_left(&self, surface: Surface, lane: Lane) -> u32 {
        self.with_budget(surface, |budget, now_ms| budget.weight_left(now_ms, lane))
    }

    /// The weight that a surface allows in the interval that allows least.
    pub fn weight_limit(&self, surface: Surface) -> u32 {
        self.with_budget(surface, |budget, now_ms| {
            let limits = budget.weights(now_ms).map(|(.., limit)| limit);
            limits.min().unwrap_or(u32::MAX)
        })
    }

    /// Takes how long requests to a surface waited for their share of the budget since the last
    /// time, for metrics; those that did not wait are left out.
    pub fn take_waits(&self, surface: Surface) -> Vec<(Lane, Duration)> {
        self.shared.gate.take_waits(surface)
    }

    /// How long nothing at all may be sent to a surface, after a 429, 418 or 403.
    pub fn stopped_for(&self, surface: Surface) -> Option<Duration> {
        let until_ms = self.with_budget(surface, |budget, now_ms| budget.stopped_until(now_ms));
        until_ms.map(|until_ms| self.shared.gate.time_to(until_ms))
    }

    /// How long no order may be sent to a surface, closes included, after a 429 of the order limit.
    pub fn orders_stopped_for(&self, surface: Surface) -> Option<Duration> {
        let until = |budget: &mut Budget, now_ms| budget.orders_stopped_until(now_ms);
        let until_ms = self.with_budget(surface, until);
        until_ms.map(|until_ms| self.shared.gate.time_to(until_ms))
    }

    /// Changes each time the venue refuses a request for a limit.
    pub fn refusals(&self) -> watch::Receiver<u64> {
        self.shared.gate.refusals()
    }

    /// Why a surface accepts no request now, and for how long.
    pub fn stop_of(&self, surface: Surface) -> Option<(Denial, Duration)> {
        let stop = self.with_budget(surface, |budget, now_ms| budget.stop(now_ms));
        stop.map(|(why, until_ms)| (why, self.shared.gate.time_to(until_ms)))
    }

    /// Hosts that take nothing from this address now, and for how long: after a 418, or a 429 or
    /// 403 that named its end. Whoever starts later must know of them too.
    pub fn bans(&self) -> Vec<(String, Duration)> {
        self.shared.bans.now()
    }

    /// Waits until a host tells of such a stop.
    pub async fn ban_told(&self) {
        self.shared.bans.told().await;
    }

    /// Sends nothing to a host, `name:port` where the port is not the usual one, for so long: it
    /// told an earlier process.
    pub fn heed_ban(&self, host: &str, length: Duration) {
        let length_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        for surface in Surface::ALL {
            if self.host(surface) == Some(host) {
                self.with_budget(surface, |budget, now_ms| budget.banned(now_ms, length_ms));
            }
        }
        self.shared.bans.tell(host, length);
    }

    fn host(&self, surface: Surface) -> Option<&str> {
        let addresses = &self.shared.settings.addresses;
        addresses.rest_of(surface).map(url::Url::authority)
    }

    /// Sends a typed request once, in the version that the settings choose for its route.
    pub async fn send<R: Request>(&self, request: &R) -> Outcome<R::Answer> {
        self.send_stamped(request, None).await
    }

    /// [`Self::send`] with a time and a nonce of the caller's.
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
            Outcome::Unknown(doubt) => return Outcome::Unknown(doubt),
            Outcome::Wait(wait) => return Outcome::Wait(wait),
        };
        match wire::read(&raw.text) {
            Ok(answer) => Outcome::Done(answer),
            Err(error) => unreadable(route, &error, &raw.text),
        }
    }

    /// Sends any route once with any parameters; `version` where the settings' choice is not
    /// wanted.
    pub async fn call(
        &self,
        route: &'static Route,
        version: Option<Version>,
        parameters: &Parameters,
    ) -> Outcome<RawAnswer> {
        self.call_stamped(route, version, parameters, None).await
    }

    /// [`Self::call`] with a time and a nonce of the caller's.
    pub async fn call_stamped(
        &self,
        route: &'static Route,
        version: Option<Version>,
        parameters: &Parameters,
        stamp: Option<Stamp>,
    ) -> Outcome<RawAnswer> {
        let gate = &self.shared.gate;
        let lane = self.lane.unwrap_or_else(|| Lane::of(route));
        let cost = Cost::of(route, parameters);
        let passed = gate.pass((route.surface, lane), &cost, self.patience).await;
        let departed = match passed {
            Ok(departed) => departed,
            Err(denied) => return Outcome::Wait(wait_for(gate, denied)),
        };
        // Signed after waiting: a timestamp must be fresh.
        let ready = match self.prepare(route, version, parameters, stamp) {
            Ok(ready) => ready,
            Err(error) => return error.into(),
        };
        let departure = self.departure.as_ref();
        let answer = self.transport.exchange(ready, departure).await;
        let version = version.or_else(|| self.shared.settings.version(route));
        self.outcome(Asked { route, version }, (&cost, departed), answer)
    }

    /// The exact bytes that [`Self::call`] would send now; nothing is sent. `stamp` where time
    /// and nonce are not to be the client's.
    pub fn prepare(
        &self,
        route: &'static Route,
        version: Option<Version>,
        parameters: &Parameters,
        stamp: Option<Stamp>,
    ) -> Result<Ready, RequestError> {
        let settings = &self.shared.settings;
        let base = settings.addresses.rest_of(route.surface);
        let base = base.ok_or(RequestError::NoAddress(route.surface))?;
        let version = version.or_else(|| settings.version(route));
        let listing = route.listing(version);
        let numbered = listing.is_some_and(Listing::takes_nonce);
        let stamp = stamp.unwrap_or_else(|| self.stamp_with(route.surface, numbered));
        let prepared = prepare(
            route,
            version,
            parameters,
            &settings.dialect,
            &settings.credentials,
            stamp,
        )?;
        Ready::new(base, prepared, &self.shared.known_urls)
    }

    /// The venue's time, and two nonces that were never used.
    pub fn stamp(&self, surface: Surface) -> Stamp {
        self.stamp_with(surface, true)
    }

    /// The venue's time; nonces only where they are sent: the request that reads the clock leaves
    /// before the venue's time is known, and nonces never come back.
    fn stamp_with(&self, surface: Surface, numbered: bool) -> Stamp {
        let venue_us = self.shared.clock.venue_us(surface);
        let nonce = || {
            let now_us = u64::try_from(venue_us).unwrap_or(0);
            if numbered {
                self.shared.nonces.next(now_us)
            } else {
                now_us
            }
        };
        // The inner signature is made first.
        let inner_nonce_us = nonce();
        Stamp {
            timestamp_ms: venue_us.div_euclid(1_000),
            nonce_us: nonce(),
            inner_nonce_us,
        }
    }

    /// Asks the time route of a surface `samples` times and keeps the offset of the shortest
    /// round trip. The first question also pays for the connection.
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
        let mut taken = Vec::new();
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
            taken.push(Sample {
                sent_us,
                received_us,
                server_ms: time.server_time.0,
            });
        }
        let offset = estimate(&taken).ok_or(NotDone::Wait(Wait {
            why: WaitReason::NoConnection("the local clock was set back meanwhile".to_owned()),
            after: BREATH,
        }))?;
        self.shared.clock.set(route.surface, offset);
        Ok(offset)
    }

    /// Waits until a request of a surface is refused for its time (-1021).
    pub async fn clock_refused(&self, surface: Surface) {
        self.shared.clock.refused(surface).await;
    }

    pub(crate) fn tls(&self) -> Arc<rustls::ClientConfig> {
        Arc::clone(&self.shared.tls)
    }

    fn outcome(
        &self,
        asked: Asked,
        (cost, departed): (&Cost, Departed),
        answer: Result<RawAnswer, Failure>,
    ) -> Outcome<RawAnswer> {
        let route = asked.route;
        let raw = match answer {
            Ok(raw) => raw,
            Err(failure) => return failed(route, failure),
        };
        self.count(route.surface, (cost, departed), &raw);
        let judgement = judge(raw.status, raw.header("retry-after"), &raw.text);
        match judgement {
            Judgement::Success => {
                if route.name.ends_with(".exchange_info") {
                    self.learn_limits(route.surface, &raw.text);
                }
                Outcome::Done(raw)
            }
            // Words that are not the venue's say nothing of what it did (spec 1, Errors).
            Judgement::Refused { complaint, .. } if route.changes && complaint.error.is_none() => {
                Outcome::Unknown(Doubt::Venue(complaint))
            }
            Judgement::Refused {
                complaint,
                is_fatal,
            } => {
                let code = complaint.error.as_ref().map(|error| error.code);
                if code == Some(INVALID_TIMESTAMP.code) {
                    self.shared.clock.refuse(route.surface);
                }
                Outcome::Refused(Refusal::Venue {
                    asked,
                    complaint,
                    is_fatal,
                })
            }
            Judgement::Unknown(complaint) if route.changes => {
                Outcome::Unknown(Doubt::Venue(complaint))
            }
            Judgement::Unknown(complaint) => Outcome::Wait(Wait {
                why: WaitReason::Busy(complaint),
                after: BREATH,
            }),
            Judgement::Wait(pause) => Outcome::Wait(self.stop(route.surface, cost, pause)),
        }
    }

    /// Corrects the budget by the headers of any answer.
    fn count(&self, surface: Surface, (cost, departed): (&Cost, Departed), raw: &RawAnswer) {
        let used = raw.headers.iter().filter_map(|(name, value)| {
            let value = value.to_str().ok()?;
            Used::from_header(name.as_str(), value)
        });
        let used: Vec<Used> = used.collect();
        self.shared.gate.with(|budgets, now_ms| {
            budgets.answered(now_ms, surface, cost, departed, &used);
        });
    }

    /// A surface refused something for a limit. The stop is of the address that sent (spec 1,
    /// Limits): it holds for all of the host. The orders of an account are of its surface.
    pub(crate) fn heed_refusal(&self, surface: Surface, limit: (Limit, Option<u64>), cost: &Cost) {
        let shares_host = |other: Surface| self.host(other) == self.host(surface);
        self.shared.gate.with(|budgets, now_ms| {
            budgets.refused(now_ms, surface, limit, cost, shares_host);
        });
        self.shared.gate.note_refusal();
    }

    fn stop(&self, surface: Surface, cost: &Cost, mut pause: Pause) -> Wait {
        // Told by an absent header alone: no order was placed, so everything must stop, as it does.
        if pause.limit == Limit::Orders && cost.orders == 0 {
            pause.limit = Limit::Weight;
        }
        let venue_ms = self.shared.clock.venue_us(surface).div_euclid(1_000);
        let is_compared = self.shared.clock.offset(surface).is_some();
        let length_ms = pause.length_ms(venue_ms, is_compared);
        let venue_ms = u64::try_from(venue_ms).ok().filter(|_| is_compared);
        self.with_budget(surface, |budget, now_ms| {
            budget.set_venue_time(now_ms, venue_ms);
        });
        self.heed_refusal(surface, (pause.limit, length_ms), cost);
        let has_end = length_ms.is_some() || pause.limit == Limit::Ban;
        if has_end && pause.limit != Limit::Orders {
            let stopped = self.host(surface).zip(self.stopped_for(surface));
            stopped.inspect(|(host, length)| self.shared.bans.tell(host, *length));
        }
        let lane = Lane::Cancel;
        // Asked of a copy: what it would count is not sent.
        let ask = |budget: &mut Budget, now_ms| budget.clone().acquire(now_ms, lane, cost).err();
        let denied = self.with_budget(surface, ask);
        let until_ms = denied.and_then(|denied| denied.until_ms);
        Wait {
            after: until_ms.map_or(BREATH, |until_ms| self.shared.gate.time_to(until_ms)),
            why: WaitReason::Venue(pause),
        }
    }

    /// Exchange information states the limits in force: whoever asks for it, the budget learns.
    fn learn_limits(&self, surface: Surface, text: &str) {
        let limits = stated_limits(text);
        if !limits.is_empty() {
            let gate = &self.shared.gate;
            gate.with(|budgets, _| budgets.set_limits(surface, &limits));
        }
    }
}

fn wait_for(gate: &Gate, denied: Denied) -> Wait {
    let after = denied.until_ms.map(|until_ms| gate.time_to(until_ms));
    Wait {
        why: WaitReason::Budget(denied),
        after: after.unwrap_or(Duration::MAX),
    }
}

fn failed<T>(route: &Route, failure: Failure) -> Outcome<T> {
    let why = match failure {
        Failure::NotMade(error) => return error.into(),
        Failure::NoConnection(error) => WaitReason::NoConnection(error),
        Failure::Lost(lost) if route.changes => return Outcome::Unknown(Doubt::NoAnswer(lost)),
        Failure::Lost(lost) => WaitReason::NoAnswer(lost),
    };
    Outcome::Wait(Wait { why, after: BREATH })
}

fn unreadable<T>(route: &Route, error: &serde_json::Error, text: &str) -> Outcome<T> {
    let (error, excerpt) = (error.to_string(), excerpt(text));
    if route.changes {
        Outcome::Unknown(Doubt::Unreadable { error, excerpt })
    } else {
        Outcome::Refused(Refusal::Unreadable { error, excerpt })
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(200).collect()
}

/// The entries of `rateLimits` that a budget can keep.
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
        RateLimit::from_words(kind, interval, entry.interval_num.0, entry.limit.0)
    });
    limits.collect()
}
