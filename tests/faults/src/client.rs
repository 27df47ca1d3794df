//! The client's glue in virtual time: the budget, the stamp, the signature and the judgement are the
//! client's own; connections and waiting are this simulator's.
//!
//! Not simulated: connection pools, TLS, half-read bodies, and several requests that share one
//! connection.

use std::collections::BTreeMap;
use std::time::Duration;

use windvane_client::Api;
use windvane_client::budget::{Budgets, Cost, Denial, Departed, Lane, Shares, Used};
use windvane_client::clock::Offset;
use windvane_client::nonce::Nonces;
use windvane_client::settings::default_version;
use windvane_engine::live::{LiveInput, WaitKind};
use windvane_venue::error::{Judgement, Limit, Pause, judge};
use windvane_venue::route::{Listing, Route, Surface};
use windvane_venue::sign::{Credentials, Dialect, Prepared, Stamp, prepare};
use windvane_venue::wire::Parameters;

use crate::witness::{Answer, RequestId};

const MS: i64 = 1_000_000;
/// A request without an answer is given up (the client's own default).
const REQUEST: Duration = Duration::from_secs(10);
/// After a question without an answer (the client's own).
const BREATH_MS: u64 = 1_000;

/// What became of a call: the client's outcome, in the words that `Speaker::reply` hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Became {
    /// Carried out: the body.
    Done(String),
    /// Refused, with the code.
    Refused(Option<i64>),
    /// Perhaps carried out.
    Unknown,
    /// Not carried out; not to be sent again for so many milliseconds.
    Wait(u64),
    /// Not sent; not to be tried again for so many milliseconds.
    NotSent(u64),
}

/// A call to be made.
#[derive(Clone, Debug)]
pub struct Call<P> {
    /// The route.
    pub route: &'static Route,
    /// Its parameters.
    pub parameters: Parameters,
    /// The lane of the budget.
    pub lane: Lane,
    /// It waits so long for the budget, nanoseconds.
    pub patience_ns: i64,
    /// Its answer is waited for no longer than this; `None`: as long as any other's.
    pub within: Option<Duration>,
    /// What it is for.
    pub purpose: P,
}

/// A request on its way to the socket.
#[derive(Debug)]
pub struct Wire {
    /// Its id.
    pub id: RequestId,
    /// The route.
    pub route: &'static Route,
    /// The bytes.
    pub prepared: Prepared,
}

/// What trying to send came to.
pub enum Tried<P> {
    /// It leaves.
    Leaves(Wire),
    /// It waits for the budget.
    Waits,
    /// It ended at once.
    Ended(P, Became),
}

struct Flying<P> {
    route: &'static Route,
    cost: Cost,
    departed: Departed,
    by_ns: i64,
    purpose: P,
}

/// What a client is made of.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Brand, network, `recvWindow`.
    pub dialect: Dialect,
    /// Keys.
    pub credentials: Credentials,
    /// How requests are signed.
    pub api: Api,
}

/// A client of one process.
pub struct Client<P> {
    identity: Identity,
    started_ns: i64,
    budgets: Budgets,
    /// Refusals of the order limit that the engine has not been told of.
    order_refusals: u32,
    offsets: [Option<Offset>; 4],
    nonces: Nonces,
    waiting: Vec<(i64, i64, Call<P>)>,
    flying: BTreeMap<RequestId, Flying<P>>,
}

impl<P> Client<P> {
    /// A client of a process that starts now.
    pub fn new(identity: Identity, now_ns: i64) -> Self {
        Self {
            identity,
            started_ns: now_ns,
            budgets: Budgets::new(Shares::default()),
            order_refusals: 0,
            offsets: [None; 4],
            nonces: Nonces::new(),
            waiting: Vec::new(),
            flying: BTreeMap::new(),
        }
    }

    fn ms(&self, now_ns: i64) -> u64 {
        u64::try_from((now_ns - self.started_ns) / MS).unwrap_or(0)
    }

    fn ns(&self, ms: u64) -> i64 {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX / MS);
        // Rounded up: a millisecond of the budget is over when all of it is.
        self.started_ns.saturating_add((ms + 1).saturating_mul(MS))
    }

    /// Takes over what a clock route said.
    pub fn set_offset(&mut self, surface: Surface, offset: Offset) {
        self.offsets[surface as usize] = Some(offset);
    }

    /// How long nothing may be sent to a surface, milliseconds.
    pub fn stopped_ms(&mut self, surface: Surface, now_ns: i64) -> Option<u64> {
        let now_ms = self.ms(now_ns);
        let until = self.budgets.of(surface).stopped_until(now_ms)?;
        Some(until.saturating_sub(now_ms))
    }

    /// Makes a call: it leaves, waits for the budget, or ends at once. `wall_us` is the local clock.
    pub fn call(&mut self, call: Call<P>, id: RequestId, now_ns: i64, wall_us: i64) -> Tried<P> {
        let give_up = now_ns.saturating_add(call.patience_ns);
        self.attempt(call, give_up, id, now_ns, wall_us)
    }

    fn attempt(
        &mut self,
        call: Call<P>,
        give_up_ns: i64,
        id: RequestId,
        now_ns: i64,
        wall_us: i64,
    ) -> Tried<P> {
        let surface = call.route.surface;
        let cost = Cost::of(call.route, &call.parameters);
        let now_ms = self.ms(now_ns);
        let acquired = self.budgets.acquire(now_ms, surface, call.lane, &cost);
        if let Err(denied) = acquired {
            let after_ms = denied.until_ms.map(|until| until.saturating_sub(now_ms));
            return match denied.until_ms.map(|until_ms| self.ns(until_ms)) {
                Some(at_ns) if at_ns <= give_up_ns => {
                    self.waiting.push((at_ns, give_up_ns, call));
                    Tried::Waits
                }
                _ => Tried::Ended(call.purpose, Became::NotSent(after_ms.unwrap_or(u64::MAX))),
            };
        }
        let departed = acquired.unwrap_or_default();
        let venue_us = wall_us + self.offset_us(surface);
        let version = default_version(call.route, self.identity.api);
        let listing = call.route.listing(version);
        let numbered = listing.is_some_and(Listing::takes_nonce);
        let nonce = || match u64::try_from(venue_us).unwrap_or(0) {
            now_us if numbered => self.nonces.next(now_us),
            now_us => now_us,
        };
        let inner_nonce_us = nonce();
        let stamp = Stamp {
            timestamp_ms: venue_us.div_euclid(1_000),
            nonce_us: nonce(),
            inner_nonce_us,
        };
        let Identity {
            dialect,
            credentials,
            ..
        } = &self.identity;
        match prepare(
            call.route,
            version,
            &call.parameters,
            dialect,
            credentials,
            stamp,
        ) {
            Ok(prepared) => {
                let within = call.within.map_or(REQUEST, |within| within.min(REQUEST));
                let flying = Flying {
                    route: call.route,
                    cost,
                    departed,
                    by_ns: now_ns + i64::try_from(within.as_nanos()).unwrap_or(i64::MAX / 2),
                    purpose: call.purpose,
                };
                self.flying.insert(id, flying);
                Tried::Leaves(Wire {
                    id,
                    route: call.route,
                    prepared,
                })
            }
            Err(_) => Tried::Ended(call.purpose, Became::Refused(None)),
        }
    }

    fn offset_us(&self, surface: Surface) -> i64 {
        let [spot, futures, ..] = self.offsets;
        let offset = match surface {
            Surface::Spot => spot,
            Surface::Futures => futures,
            Surface::Chain | Surface::Rpc => futures.or(spot),
        };
        offset.map_or(0, |offset| offset.offset_us)
    }

    /// A call whose turn has come: to be given to [`Self::again`].
    pub fn due(&mut self, now_ns: i64) -> Option<(i64, Call<P>)> {
        let at = self.waiting.iter().position(|(at, ..)| *at <= now_ns)?;
        let (_, give_up, call) = self.waiting.remove(at);
        Some((give_up, call))
    }

    /// Tries a call again that waited.
    pub fn again(
        &mut self,
        (give_up_ns, call): (i64, Call<P>),
        id: RequestId,
        now_ns: i64,
        wall_us: i64,
    ) -> Tried<P> {
        self.attempt(call, give_up_ns, id, now_ns, wall_us)
    }

    /// A request whose time is over.
    pub fn late(&self, now_ns: i64) -> Option<RequestId> {
        let mut flying = self.flying.iter();
        let late = flying.find(|(_, flying)| flying.by_ns <= now_ns);
        late.map(|(id, _)| *id)
    }

    /// When [`Self::due`] or [`Self::late`] have something.
    pub fn wake_ns(&self) -> i64 {
        let waiting = self.waiting.iter().map(|(at, ..)| *at);
        let flying = self.flying.values().map(|flying| flying.by_ns);
        waiting.chain(flying).min().unwrap_or(i64::MAX)
    }

    /// Whether nothing waits and nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.flying.is_empty()
    }

    /// An answer came, or none will: what the call became. `None` if it was given up before.
    pub fn heard(
        &mut self,
        id: RequestId,
        answer: Option<Answer>,
        now_ns: i64,
        wall_us: i64,
    ) -> Option<(P, Became)> {
        let flying = self.flying.remove(&id)?;
        let route = flying.route;
        let lost = || {
            if route.changes {
                Became::Unknown
            } else {
                Became::Wait(BREATH_MS)
            }
        };
        let Some(answer) = answer else {
            return Some((flying.purpose, lost()));
        };
        self.count(
            route.surface,
            (&flying.cost, flying.departed),
            &answer,
            now_ns,
        );
        let became = match judge(answer.status, answer.header("retry-after"), &answer.body) {
            Judgement::Success => Became::Done(answer.body),
            Judgement::Refused { complaint, .. } if route.changes && complaint.error.is_none() => {
                lost()
            }
            Judgement::Refused { complaint, .. } => {
                Became::Refused(complaint.error.map(|error| error.code))
            }
            Judgement::Unknown(_) => lost(),
            Judgement::Wait(pause) => {
                let surface = route.surface;
                Became::Wait(self.stop(surface, &flying.cost, &pause, now_ns, wall_us))
            }
        };
        Some((flying.purpose, became))
    }

    /// Corrects the budget by the headers of any answer.
    fn count(
        &mut self,
        surface: Surface,
        (cost, departed): (&Cost, Departed),
        answer: &Answer,
        now_ns: i64,
    ) {
        let now_ms = self.ms(now_ns);
        let headers = answer.headers.iter();
        let used = headers.filter_map(|(name, value)| Used::from_header(name, value));
        let used: Vec<_> = used.collect();
        self.budgets
            .answered(now_ms, surface, cost, departed, &used);
    }

    /// The weight that a lane may still use.
    pub fn weight_left(&mut self, surface: Surface, lane: Lane, now_ns: i64) -> u32 {
        let now_ms = self.ms(now_ns);
        self.budgets.of(surface).weight_left(now_ms, lane)
    }

    /// What the engine is to know of waits after a refusal (`node/src/live/venue_wait`).
    pub fn waits(&mut self, surface: windvane_engine::Surface, now_ns: i64) -> Vec<LiveInput> {
        const MARGIN_MS: u64 = 5;
        let venue = crate::process::venue_surface(surface);
        let now_ms = self.ms(now_ns);
        let by_venue = std::mem::take(&mut self.order_refusals) > 0;
        let budget = self.budgets.of(venue);
        let all = budget.stopped_until(now_ms).map(|at| (WaitKind::All, at));
        let orders = budget.orders_stopped_until(now_ms);
        let orders = orders.map(|at| (WaitKind::Orders, at));
        let orders = orders.filter(|_| by_venue);
        let input = |(kind, until_ms): (WaitKind, u64)| LiveInput::VenueWait {
            surface,
            kind,
            wait_ms: i64::try_from(until_ms - now_ms + MARGIN_MS).unwrap_or(i64::MAX),
        };
        all.into_iter().chain(orders).map(input).collect()
    }

    /// Why nothing may be sent on a surface, and for how many milliseconds.
    pub fn stop_of(&self, surface: Surface, now_ns: i64) -> Option<(Denial, u64)> {
        let now_ms = self.ms(now_ns);
        let stop = self.budgets.get(surface).stop(now_ms);
        stop.map(|(why, until_ms)| (why, until_ms - now_ms))
    }

    /// A limit was broken: a stop of the address holds on every surface, for they share a host.
    fn stop(
        &mut self,
        surface: Surface,
        cost: &Cost,
        pause: &Pause,
        now_ns: i64,
        wall_us: i64,
    ) -> u64 {
        let mut limit = pause.limit;
        if limit == Limit::Orders && cost.orders == 0 {
            limit = Limit::Weight;
        }
        let venue_ms = (wall_us + self.offset_us(surface)).div_euclid(1_000);
        let is_compared = self.offsets[surface as usize].is_some();
        let now_ms = self.ms(now_ns);
        let refusal = (limit, pause.length_ms(venue_ms, is_compared));
        let venue_time = u64::try_from(venue_ms).ok().filter(|_| is_compared);
        let budget = self.budgets.of(surface);
        budget.set_venue_time(now_ms, venue_time);
        self.budgets
            .refused(now_ms, surface, refusal, cost, |_| true);
        self.order_refusals += u32::from(limit == Limit::Orders);
        let mut copy = self.budgets.of(surface).clone();
        let denied = copy.acquire(now_ms, Lane::Cancel, cost).err();
        let until_ms = denied.and_then(|denied| denied.until_ms);
        until_ms.map_or(BREATH_MS, |until| until.saturating_sub(now_ms))
    }

    /// A handshake was refused: what that stops, as the streams' driver has it; the pause that the
    /// stream is told, milliseconds.
    pub fn heed(
        &mut self,
        surface: Surface,
        status: u16,
        pause_ms: Option<u64>,
        now_ns: i64,
    ) -> Option<u64> {
        let limit = match status {
            429 => Limit::Weight,
            418 => Limit::Ban,
            403 => return Some(pause_ms.unwrap_or(60_000)),
            _ => return None,
        };
        let now_ms = self.ms(now_ns);
        let refusal = (limit, pause_ms);
        self.budgets
            .refused(now_ms, surface, refusal, &Cost::default(), |_| true);
        self.stopped_ms(surface, now_ns)
    }
}
