//! What may be sent now: weights and order counts, planned before sending and corrected by what
//! the venue answers (spec 1, Limits). Pure: time is an argument, in milliseconds of any clock
//! that does not go back.
//!
//! What may never enter here: IO, waiting, and a decision to send something again.

mod lane;
mod limit;
pub mod polling;
mod sharing;
mod window;

#[cfg(test)]
mod tests;

use std::time::Duration;

use windvane_protocol::error::Limit;
use windvane_protocol::planted;
use windvane_protocol::route::{Counted, Route};
use windvane_protocol::wire::Parameters;

pub use lane::{Lane, Shares, SharesError};
pub use limit::{LimitKind, RateLimit, Used, documented};
pub use sharing::{Budgets, Departed};
pub use window::Window;

/// Stop after a 418 without `Retry-After`: the shortest ban (spec 1, Limits, rule 6).
const BAN_MIN_MS: u64 = 2 * 60_000;
/// The longest ban that the venue imposes (spec 1, Limits): a length that is read from a file, by a
/// clock that may have been set back, is never taken for more.
pub const BAN_MAX: Duration = Duration::from_hours(3 * 24);
const BAN_MAX_MS: u64 = BAN_MAX.as_secs() * 1_000;
/// Stop where the venue does not say how long: the interval of the documents' limits.
const STOP_MS: u64 = 60_000;
/// The venue's clock is known with an error: an interval ends so much later.
const CLOCK_MARGIN_MS: u64 = 500;

/// What one request uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Weight.
    pub weight: u32,
    /// Orders of the account's ORDERS limits.
    pub orders: u32,
    /// A limit of the route's own: its name, and requests per minute.
    pub own: Option<(&'static str, u32)>,
}

/// Why a request may not be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The lane's part of the weight is used up.
    Weight,
    /// The orders of an interval are used up.
    Orders,
    /// The route's own limit is used up.
    Own,
    /// The venue said stop, and why (429, 403, or it is shutting down).
    Stopped(Limit),
    /// The address is banned (418); whatever is sent prolongs it.
    Banned,
}

/// How the text of [`Denial::Orders`] begins.
pub const ORDERS_USED_UP: &str = "the order limit of this interval is used up";

/// A request that may not be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Denied {
    /// Why.
    pub why: Denial,
    /// When it may be tried again, on the clock of the budget; `None`: never, it asks for more
    /// than the lane's part of a whole interval.
    pub until_ms: Option<u64>,
}

/// The limits of one surface and what was used of them.
///
/// ```
/// use windvane_client_core::budget::{Budget, Cost, Lane, Shares, documented};
/// use windvane_protocol::error::Limit;
/// use windvane_protocol::route::Surface;
///
/// let mut budget = Budget::new(&documented(Surface::Spot), Shares::default());
/// let order = Cost { weight: 1, orders: 1, own: None };
/// assert!(budget.acquire(0, Lane::Place, &order).is_ok());
/// // The venue answers 429 with Retry-After: nothing is sent until then.
/// budget.refused(10, Limit::Weight, Some(30_000), &order);
/// let denied = budget.acquire(20, Lane::Cancel, &Cost::weight(1)).unwrap_err();
/// assert_eq!(denied.until_ms, Some(30_010));
/// ```
#[derive(Clone, Debug)]
pub struct Budget {
    shares: Shares,
    weights: Vec<Window>,
    orders: Vec<Window>,
    own: Vec<(&'static str, Window)>,
    stop: Option<(u64, Denial)>,
    orders_stop_ms: Option<u64>,
    /// The venue's clock minus this one, where they were compared.
    venue_ahead_ms: Option<u64>,
    bans: u32,
}

impl Cost {
    /// A request that counts by its weight only.
    pub const fn weight(weight: u32) -> Self {
        Self {
            weight,
            orders: 0,
            own: None,
        }
    }

    /// The cost of a request of `route` with these parameters.
    pub fn of(route: &Route, parameters: &Parameters) -> Self {
        let has_symbol = ["symbol", "pair"]
            .iter()
            .any(|name| parameters.get(name).is_some_and(|value| !value.is_empty()));
        let limit = parameters.get("limit").and_then(|limit| limit.parse().ok());
        let mut cost = Self::weight(route.weight.of(has_symbol, limit));
        match route.counted {
            Counted::WeightOnly => {}
            Counted::Order => cost.orders = 1,
            Counted::BatchOrders => cost.orders = entries(parameters.get("batchOrders")),
            Counted::PerMinute(limit) => cost.own = Some((route.name, limit)),
        }
        cost
    }
}

/// Entries of a JSON list; what is no list counts as one.
fn entries(list: Option<&str>) -> u32 {
    let list = list.and_then(|list| serde_json::from_str::<Vec<serde::de::IgnoredAny>>(list).ok());
    list.map_or(1, |list| u32::try_from(list.len()).unwrap_or(u32::MAX))
}

impl Budget {
    /// Nothing used yet.
    pub fn new(limits: &[RateLimit], shares: Shares) -> Self {
        let mut budget = Self {
            shares,
            weights: Vec::new(),
            orders: Vec::new(),
            own: Vec::new(),
            stop: None,
            orders_stop_ms: None,
            venue_ahead_ms: None,
            bans: 0,
        };
        budget.set_limits(limits);
        budget
    }

    /// Takes the limits of `rateLimits` in place of the former ones; what was used in an interval
    /// that stays, stays used. Kinds that are not listed keep their limits.
    pub fn set_limits(&mut self, limits: &[RateLimit]) {
        for kind in [LimitKind::Weight, LimitKind::Orders] {
            let listed: Vec<_> = limits.iter().filter(|limit| limit.kind == kind).collect();
            if listed.is_empty() {
                continue;
            }
            let windows = self.windows(kind);
            windows.retain(|window| {
                listed
                    .iter()
                    .any(|limit| limit.interval_ms == window.interval_ms())
            });
            for limit in listed {
                let same = |window: &&mut Window| window.interval_ms() == limit.interval_ms;
                match windows.iter_mut().find(same) {
                    Some(window) => window.set_limit(limit.limit),
                    None => windows.push(Window::new(limit.limit, limit.interval_ms)),
                }
            }
        }
    }

    /// The limits in force.
    pub fn limits(&self) -> Vec<RateLimit> {
        let of = |kind, windows: &[Window]| {
            let limit = |window: &Window| RateLimit {
                kind,
                interval_ms: window.interval_ms(),
                limit: window.limit(),
            };
            windows.iter().map(limit).collect::<Vec<_>>()
        };
        let mut limits = of(LimitKind::Weight, &self.weights);
        limits.extend(of(LimitKind::Orders, &self.orders));
        limits
    }

    /// Reserves other parts of every limit from now on.
    pub const fn set_shares(&mut self, shares: Shares) {
        self.shares = shares;
    }

    /// Counts a request that is about to be sent, or says until when it has to wait. Nothing is
    /// counted then. A request of an emergency lane waits for the venue's word alone.
    pub fn acquire(&mut self, now_ms: u64, lane: Lane, cost: &Cost) -> Result<(), Denied> {
        self.check_stops(now_ms, cost)?;
        if planted!(EmergencyWaitsForBudget) {
            // Closes had no lane of their own.
            let lane = if lane == Lane::Close {
                Lane::Place
            } else {
                lane
            };
            self.check_counts(now_ms, lane, cost)?;
        } else if !lane.is_emergency() {
            self.check_counts(now_ms, lane, cost)?;
        }
        if let Some(own) = self.own(cost) {
            own.count(now_ms, lane, 1);
        }
        self.count_elsewhere(now_ms, lane, cost.weight);
        for window in &mut self.orders {
            window.count(now_ms, lane, cost.orders);
        }
        Ok(())
    }

    fn check_counts(&mut self, now_ms: u64, lane: Lane, cost: &Cost) -> Result<(), Denied> {
        let shares = self.shares;
        for window in &mut self.weights {
            let free_at = window.free_at(now_ms, lane, shares, cost.weight);
            wait_for(now_ms, free_at, Denial::Weight)?;
        }
        if cost.orders > 0 {
            for window in &mut self.orders {
                // Orders come through one lane: there is nobody to reserve them for.
                let free_at = window.free_at(now_ms, lane, Shares::NONE, cost.orders);
                wait_for(now_ms, free_at, Denial::Orders)?;
            }
        }
        if let Some(own) = self.own(cost) {
            let free_at = own.free_at(now_ms, lane, Shares::NONE, 1);
            wait_for(now_ms, free_at, Denial::Own)?;
        }
        Ok(())
    }

    /// Counts weight that was sent to a surface with the same counter.
    fn count_elsewhere(&mut self, now_ms: u64, lane: Lane, weight: u32) {
        for window in &mut self.weights {
            window.count(now_ms, lane, weight);
        }
    }

    /// The weight that `lane` may still use now, in the interval that leaves least.
    pub fn weight_left(&mut self, now_ms: u64, lane: Lane) -> u32 {
        if self.stopped_until(now_ms).is_some() {
            return 0;
        }
        let shares = self.shares;
        let left = self.weights.iter_mut();
        let left = left.map(|window| window.left(now_ms, lane, shares));
        left.min().unwrap_or(u32::MAX)
    }

    /// What others on the address used of the first weight limit, as headers showed it.
    pub fn used_by_others(&mut self, now_ms: u64) -> u32 {
        let first = self.weights.first_mut();
        first.map_or(0, |window| window.used_by_others(now_ms))
    }

    fn has_weight_limit(&self, interval_ms: u64) -> bool {
        let mut weights = self.weights.iter();
        weights.any(|window| window.interval_ms() == interval_ms)
    }

    /// Whether less than nine tenths of every weight limit were used, as far as is known.
    fn has_weight_left(&mut self, now_ms: u64) -> bool {
        self.weights
            .iter_mut()
            .all(|window| u64::from(window.used(now_ms)) * 10 < u64::from(window.limit()) * 9)
    }

    /// The venue refused a request for its weight.
    fn weight_refused(&mut self, now_ms: u64) {
        // The shortest interval is over first; a longer one refuses again.
        let shortest = self.weights.iter_mut();
        if let Some(window) = shortest.min_by_key(|window| window.interval_ms()) {
            window.refused(now_ms);
        }
    }

    /// Corrects a count upward by a response header.
    pub fn used(&mut self, now_ms: u64, used: &Used) {
        for window in self.windows(used.kind) {
            if window.interval_ms() == used.interval_ms {
                window.correct(now_ms, used.used);
            }
        }
    }

    /// The venue refused a request because of a limit; `after_ms` is how long it says to wait.
    ///
    /// The order limit stops orders only, and only if the request placed some: its 429 is known by
    /// its missing `Retry-After` (spec 1, Limits, rule 5), which means nothing on other requests. No order
    /// leaves until the interval that is used up is over, or until the end that the venue states all the
    /// same. That holds for closes too: going on leads to a ban. All other limits stop everything,
    /// cancels too.
    pub fn refused(&mut self, now_ms: u64, limit: Limit, after_ms: Option<u64>, cost: &Cost) {
        if planted!(BanIgnored) {
            return;
        }
        match limit {
            Limit::Orders if cost.orders > 0 => {
                let length = after_ms.unwrap_or_else(|| self.orders_turn_over(now_ms));
                let until_ms = now_ms.saturating_add(length);
                self.orders_stop_ms = self.orders_stop_ms.max(Some(until_ms));
            }
            Limit::Ban => {
                let grown = BAN_MIN_MS.saturating_mul(1 << self.bans.min(16));
                let length = after_ms.unwrap_or(grown.min(BAN_MAX_MS));
                self.bans = self.bans.saturating_add(1);
                self.stop_until(now_ms.saturating_add(length), Denial::Banned);
            }
            Limit::Orders | Limit::Weight | Limit::Firewall | Limit::Closed => {
                let until_ms = now_ms.saturating_add(after_ms.unwrap_or(STOP_MS));
                self.stop_until(until_ms, Denial::Stopped(limit));
            }
        }
    }

    /// Nothing may be sent for so long, as the venue told an earlier process.
    pub fn banned(&mut self, now_ms: u64, length_ms: u64) {
        if planted!(BanIgnored) {
            return;
        }
        self.stop_until(now_ms.saturating_add(length_ms), Denial::Banned);
    }

    /// How often the venue answered 418 so far.
    pub const fn bans(&self) -> u32 {
        self.bans
    }

    /// Until when nothing may be sent at all, if something said so.
    pub fn stopped_until(&self, now_ms: u64) -> Option<u64> {
        let until = self.stop.map(|(until_ms, _)| until_ms);
        until.filter(|until_ms| *until_ms > now_ms)
    }

    /// Why nothing may be sent at all, and until when, if something said so.
    pub fn stop(&self, now_ms: u64) -> Option<(Denial, u64)> {
        let stop = self.stop.filter(|(until_ms, _)| *until_ms > now_ms);
        stop.map(|(until_ms, why)| (why, until_ms))
    }

    /// Used and allowed weight of every interval: for status pages and metrics.
    pub fn weights(&mut self, now_ms: u64) -> impl Iterator<Item = (u64, u32, u32)> {
        self.weights.iter_mut().map(move |window| {
            let used = window.used(now_ms);
            (window.interval_ms(), used, window.limit())
        })
    }

    /// The weight per minute that `lane` may count on for itself when every more urgent lane
    /// keeps its reserve.
    pub fn steady_weight(&self, lane: Lane) -> u32 {
        let per_minute = |window: &Window| {
            let held =
                self.shares
                    .held_back(lane, (window.limit(), window.limit()), &[0; lane::LANES]);
            let free = u64::from(window.limit().saturating_sub(held));
            u32::try_from(free * 60_000 / window.interval_ms()).unwrap_or(u32::MAX)
        };
        self.weights.iter().map(per_minute).min().unwrap_or(0)
    }

    /// Takes the venue's clock, milliseconds, as it is now; `None` where it was not compared.
    pub fn set_venue_time(&mut self, now_ms: u64, venue_ms: Option<u64>) {
        self.venue_ahead_ms = venue_ms.map(|venue_ms| venue_ms.wrapping_sub(now_ms));
    }

    /// Until when no order may be sent, closes included, after the venue refused one for the order limit.
    pub fn orders_stopped_until(&self, now_ms: u64) -> Option<u64> {
        self.orders_stop_ms.filter(|until_ms| *until_ms > now_ms)
    }

    /// How long it takes until the interval of orders is over whose limit was exceeded. It is the longest
    /// one that is used up or nearly so, as far as is known. Where no count shows which, it is the longest
    /// of at most a minute.
    ///
    /// Intervals are taken to begin with the venue's clock. A refusal shortly after such an end shows that
    /// they do not: then the wait is a whole interval.
    fn orders_turn_over(&mut self, now_ms: u64) -> u64 {
        let intervals = self.orders.iter().map(Window::interval_ms);
        let intervals = intervals.filter(|interval_ms| *interval_ms <= STOP_MS);
        let (shortest, longest) = (intervals.clone().min(), intervals.max());
        let longest = longest.unwrap_or(STOP_MS);
        let soon_after = |until_ms: u64| {
            (until_ms..until_ms.saturating_add(shortest.unwrap_or(STOP_MS))).contains(&now_ms)
        };
        if self.orders_stop_ms.is_some_and(soon_after) {
            return longest;
        }
        let used_up = self.orders.iter_mut().filter_map(|window| {
            let interval_ms = window.interval_ms();
            // The wait for a long interval costs more than another refusal.
            let nearly = if interval_ms <= STOP_MS { 9 } else { 10 };
            let used = u64::from(window.used(now_ms)) * 10;
            (used >= u64::from(window.limit()) * nearly).then_some(interval_ms)
        });
        let interval_ms = used_up.max().unwrap_or(longest);
        self.venue_ahead_ms.map_or(interval_ms, |ahead_ms| {
            let gone_ms = now_ms.wrapping_add(ahead_ms) % interval_ms;
            interval_ms - gone_ms + CLOCK_MARGIN_MS
        })
    }

    fn check_stops(&mut self, now_ms: u64, cost: &Cost) -> Result<(), Denied> {
        if let Some((until_ms, why)) = self.stop {
            if until_ms > now_ms {
                let until_ms = Some(until_ms);
                return Err(Denied { why, until_ms });
            }
            self.stop = None;
        }
        let stop = self.orders_stopped_until(now_ms);
        if cost.orders > 0 && stop.is_some() {
            let why = Denial::Orders;
            return Err(Denied {
                why,
                until_ms: stop,
            });
        }
        Ok(())
    }

    /// A stop is never shortened by a later one.
    fn stop_until(&mut self, until_ms: u64, why: Denial) {
        if self.stop.is_none_or(|(before_ms, _)| before_ms < until_ms) {
            self.stop = Some((until_ms, why));
        }
    }

    const fn windows(&mut self, kind: LimitKind) -> &mut Vec<Window> {
        match kind {
            LimitKind::Weight => &mut self.weights,
            LimitKind::Orders => &mut self.orders,
        }
    }

    fn own(&mut self, cost: &Cost) -> Option<&mut Window> {
        let (name, limit) = cost.own?;
        let known = self.own.iter().position(|(known, _)| *known == name);
        let at = known.unwrap_or_else(|| {
            self.own.push((name, Window::new(limit, 60_000)));
            self.own.len() - 1
        });
        Some(&mut self.own[at].1)
    }
}

impl Denied {
    fn text(&self) -> String {
        let why = match self.why {
            Denial::Weight => {
                "no request weight is left for this: other programs on the address use it, or it is \
                 reserved for cancels, closes and renewals"
            }
            Denial::Orders => ORDERS_USED_UP,
            Denial::Own => "the route's own limit is used up",
            Denial::Stopped(Limit::Firewall) => "the venue said stop (HTTP 403, the firewall)",
            Denial::Stopped(Limit::Closed) => "the venue said stop (-1016, it is shutting down)",
            Denial::Stopped(_) => "the venue said stop (HTTP 429, too many requests)",
            Denial::Banned => "the address is banned",
        };
        match self.until_ms {
            Some(_) => format!("{why}: wait"),
            None => format!("{why}: it asks for more than a whole interval gives, send less"),
        }
    }
}

fn wait_for(now_ms: u64, free_at: Option<u64>, why: Denial) -> Result<(), Denied> {
    match free_at {
        Some(at_ms) if at_ms <= now_ms => Ok(()),
        until_ms => Err(Denied { why, until_ms }),
    }
}
