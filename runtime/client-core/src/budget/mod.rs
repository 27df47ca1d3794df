//! Decides what may be sent now. Weights and order counts are planned before sending and corrected
//! by the venue's responses (docs/interface/limits.md#counters). Time is an argument, in
//! milliseconds of any clock that never goes back.
//!
//! This module does no IO, does not wait, and never decides to send a request again.

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

/// Length of a stop after a 418 without `Retry-After`: the shortest ban
/// (docs/interface/limits.md#429-418-and-bans).
const BAN_MIN_MS: u64 = 2 * 60_000;
/// The longest ban that the venue imposes (docs/interface/limits.md#429-418-and-bans). A stored ban
/// is cut to this length, because the wall clock may have been set back since.
pub const BAN_MAX: Duration = Duration::from_hours(3 * 24);
const BAN_MAX_MS: u64 = BAN_MAX.as_secs() * 1_000;
/// Length of a stop if the venue states none: the interval of the documents' limits.
const STOP_MS: u64 = 60_000;
/// Added to the end of an interval, because the venue's clock is known only approximately.
const CLOCK_MARGIN_MS: u64 = 500;

/// The parts of the limits that one request uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Request weight that the venue counts for it.
    pub weight: u32,
    /// Number of orders that it adds to the account's ORDERS counts.
    pub orders: u32,
    /// The route's own limit, if it has one: its name, and requests per minute.
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
    /// The strategy's share is used up, and the rest is used or kept for other strategies. The
    /// caller decides this.
    Share,
    /// The venue ordered a stop, and why (429, 403, or it is shutting down).
    Stopped(Limit),
    /// The address is banned (418). Every request prolongs the ban.
    Banned,
}

/// The first words of the text of [`Denial::Orders`].
pub const ORDERS_USED_UP: &str = "the order limit of this interval is used up";

/// A request that may not be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Denied {
    /// Why.
    pub why: Denial,
    /// Earliest time to try again, on the clock of the budget. `None` means never: the request
    /// costs more than the lane's part of a whole interval.
    pub until_ms: Option<u64>,
}

/// The limits of one surface, and how much of each is used.
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
    /// The venue's clock minus the budget's clock, if they were compared.
    venue_ahead_ms: Option<u64>,
    bans: u32,
}

impl Cost {
    /// The cost of a request that has a weight only.
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

/// Number of entries of a JSON list. Text that is not a list counts as one entry.
fn entries(list: Option<&str>) -> u32 {
    let list = list.and_then(|list| serde_json::from_str::<Vec<serde::de::IgnoredAny>>(list).ok());
    list.map_or(1, |list| u32::try_from(list.len()).unwrap_or(u32::MAX))
}

impl Budget {
    /// A budget of which nothing is used.
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

    /// Replaces the limits by those of `rateLimits`. An interval that is kept also keeps its count.
    /// Kinds that are not listed keep their limits.
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

    /// Changes the reserved part of every limit from now on.
    pub const fn set_shares(&mut self, shares: Shares) {
        self.shares = shares;
    }

    /// Counts a request that is about to be sent, or returns when it may be sent; then it is not
    /// counted. A request of an emergency lane waits only for a stop by the venue.
    pub fn acquire(&mut self, now_ms: u64, lane: Lane, cost: &Cost) -> Result<(), Denied> {
        self.check_stops(now_ms, cost)?;
        if planted!(EmergencyWaitsForBudget) {
            // Before that fix, closes used the lane of new orders.
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
                // Orders use one lane only, so reserves make no sense here.
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

    /// The weight that `lane` may still use now, in the interval with the least weight left.
    pub fn weight_left(&mut self, now_ms: u64, lane: Lane) -> u32 {
        if self.stopped_until(now_ms).is_some() {
            return 0;
        }
        let shares = self.shares;
        let left = self.weights.iter_mut();
        let left = left.map(|window| window.left(now_ms, lane, shares));
        left.min().unwrap_or(u32::MAX)
    }

    /// The amount of the first weight limit that other programs on the address use, according to
    /// the headers.
    pub fn used_by_others(&mut self, now_ms: u64) -> u32 {
        let first = self.weights.first_mut();
        first.map_or(0, |window| window.used_by_others(now_ms))
    }

    fn has_weight_limit(&self, interval_ms: u64) -> bool {
        let mut weights = self.weights.iter();
        weights.any(|window| window.interval_ms() == interval_ms)
    }

    /// Whether less than nine tenths of every weight limit is used, according to our counts.
    fn has_weight_left(&mut self, now_ms: u64) -> bool {
        self.weights
            .iter_mut()
            .all(|window| u64::from(window.used(now_ms)) * 10 < u64::from(window.limit()) * 9)
    }

    /// The venue refused a request because of its weight.
    fn weight_refused(&mut self, now_ms: u64) {
        // Assume the shortest interval, because it ends first. If a longer one is used up, the
        // venue refuses again.
        let shortest = self.weights.iter_mut();
        if let Some(window) = shortest.min_by_key(|window| window.interval_ms()) {
            window.refused(now_ms);
        }
    }

    /// Raises a count to the value of a response header.
    pub fn used(&mut self, now_ms: u64, used: &Used) {
        for window in self.windows(used.kind) {
            if window.interval_ms() == used.interval_ms {
                window.correct(now_ms, used.used);
            }
        }
    }

    /// The venue refused a request because of a limit; `after_ms` is the wait that it states.
    ///
    /// The order limit stops only orders, and only if the request placed some. The venue marks that
    /// limit by a 429 without `Retry-After` (docs/interface/limits.md#429-418-and-bans), and a
    /// missing header has no meaning on other requests. No order is sent until the used-up interval
    /// ends, or until the end that the venue states nevertheless. This includes closes, because
    /// more orders lead to a ban. Every other limit stops all requests, including cancels.
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

    /// Stops all requests for this time, because the venue banned an earlier process.
    pub fn banned(&mut self, now_ms: u64, length_ms: u64) {
        if planted!(BanIgnored) {
            return;
        }
        self.stop_until(now_ms.saturating_add(length_ms), Denial::Banned);
    }

    /// Number of 418 responses so far.
    pub const fn bans(&self) -> u32 {
        self.bans
    }

    /// The end of the stop of all requests, if there is one.
    pub fn stopped_until(&self, now_ms: u64) -> Option<u64> {
        let until = self.stop.map(|(until_ms, _)| until_ms);
        until.filter(|until_ms| *until_ms > now_ms)
    }

    /// The reason and the end of the stop of all requests, if there is one.
    pub fn stop(&self, now_ms: u64) -> Option<(Denial, u64)> {
        let stop = self.stop.filter(|(until_ms, _)| *until_ms > now_ms);
        stop.map(|(until_ms, why)| (why, until_ms))
    }

    /// Length in milliseconds, used weight and weight limit of every interval, for status pages and
    /// metrics.
    pub fn weights(&mut self, now_ms: u64) -> impl Iterator<Item = (u64, u32, u32)> {
        self.weights.iter_mut().map(move |window| {
            let used = window.used(now_ms);
            (window.interval_ms(), used, window.limit())
        })
    }

    /// The weight per minute that `lane` can rely on while every more urgent lane keeps its
    /// reserve.
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

    /// The number of orders of the interval of this length that are used; 0 if no order limit has
    /// this interval.
    pub fn orders_used(&mut self, now_ms: u64, interval_ms: u64) -> u32 {
        let mut windows = self.orders.iter_mut();
        let window = windows.find(|window| window.interval_ms() == interval_ms);
        window.map_or(0, |window| window.used(now_ms))
    }

    /// Sets the venue's current time in milliseconds; `None` if the clocks were not compared.
    pub fn set_venue_time(&mut self, now_ms: u64, venue_ms: Option<u64>) {
        self.venue_ahead_ms = venue_ms.map(|venue_ms| venue_ms.wrapping_sub(now_ms));
    }

    /// The time until which no order may be sent, closes included, after the venue refused one for
    /// the order limit.
    pub fn orders_stopped_until(&self, now_ms: u64) -> Option<u64> {
        self.orders_stop_ms.filter(|until_ms| *until_ms > now_ms)
    }

    /// The time until the exceeded order interval ends. It is the longest interval that is used up
    /// or nearly used up, according to our counts. If no count shows one, it is the longest
    /// interval of at most one minute.
    ///
    /// Intervals are assumed to be aligned with the venue's clock. A refusal shortly after such an
    /// end disproves that, and then the wait is a whole interval.
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
            // A long interval must be fully used up, because waiting for it costs more than one
            // more refusal.
            let nearly = if interval_ms <= STOP_MS { 9 } else { 10 };
            let used = u64::from(window.used(now_ms)) * 10;
            (used >= u64::from(window.limit()) * nearly).then_some(interval_ms)
        });
        let interval_ms = used_up.max().unwrap_or(longest);
        self.venue_ahead_ms.map_or(interval_ms, |ahead_ms| {
            let elapsed_ms = now_ms.wrapping_add(ahead_ms) % interval_ms;
            interval_ms - elapsed_ms + CLOCK_MARGIN_MS
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

    /// A later stop never shortens an earlier one.
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
            Denial::Share => {
                "the strategy's share of the venue's request limits is used up, and the rest is used \
                 or kept for other strategies; let the strategy order and cancel less often"
            }
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
