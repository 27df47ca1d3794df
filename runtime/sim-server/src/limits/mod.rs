//! Weights per IP, order counts per account, and bans (docs/interface/limits.md#limits-in-force).
//!
//! - Intervals begin at whole minutes (and whole 10 seconds) of the clock, as `rateLimits`
//!   describes them. Every response reports the used weight in `X-MBX-USED-WEIGHT-1M`.
//! - A request above the weight limit gets a 429 with `Retry-After`, the seconds until the interval
//!   ends. A client that sends more after [`LimitSettings::patience`] of these is banned with 418:
//!   first for 2 minutes, each time four times longer, at most for 3 days.
//! - Orders are counted as they are sent. A request above the order limit gets a 429 without
//!   `Retry-After`, which counts toward the same ban.
//!
//! Each surface has its own weights. A ban applies to the IP on all surfaces.

mod window;

use std::collections::BTreeMap;
use std::net::IpAddr;

use windvane_model::Time;
use windvane_protocol::route::{Counted, Route, Surface};

use crate::choices::{Choices, InfoWeight, OrderLimitRetry, SpotWeight};
use crate::request::{Params, Refusal};
use crate::settings::LimitSettings;
pub(crate) use window::{Begin, OrderCounts, Window};

/// Sent with every response (docs/interface/limits.md#headers).
const USED_WEIGHT: &str = "x-mbx-used-weight-1m";
const MINUTE_MS: i64 = 60_000;
const TEN_SECONDS_MS: i64 = 10_000;
/// The first ban and the longest (docs/interface/limits.md#429-418-and-bans).
const BAN_MIN_MS: i64 = 2 * MINUTE_MS;
const BAN_MAX_MS: i64 = 3 * 24 * 60 * MINUTE_MS;
/// Maximum number of addresses to remember. Idle ones are dropped first.
const ADDRESSES_MAX: usize = 10_000;

/// One entry of `rateLimits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) rate_limit_type: &'static str,
    pub(crate) interval: &'static str,
    pub(crate) interval_num: u32,
    pub(crate) limit: u32,
    /// Suffix of the header: `1M`, `10S`.
    suffix: &'static str,
    length_ms: i64,
}

impl Rule {
    const fn minute(rate_limit_type: &'static str, limit: u32) -> Self {
        Self {
            rate_limit_type,
            interval: "MINUTE",
            interval_num: 1,
            limit,
            suffix: "1M",
            length_ms: MINUTE_MS,
        }
    }
}

/// A ban of an address. It is kept after its end, to count repeated bans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ban {
    until_ms: i64,
    /// How often the address was banned.
    times: u32,
}

/// Which surfaces share a weight counter. The documents leave this open
/// (docs/interface/limits.md#counters).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Counters {
    /// Each surface has its own.
    #[default]
    Apart,
    /// The info endpoint uses the counter of futures.
    Info,
    /// All surfaces share one.
    All,
}

/// The current use of the limits.
#[derive(Debug)]
pub(crate) struct Limits {
    settings: LimitSettings,
    /// When intervals of weights and orders begin.
    pub(crate) begin: Begin,
    weights: BTreeMap<(IpAddr, Surface), Window>,
    /// Number of 429 responses in the current minute.
    refused: BTreeMap<IpAddr, Window>,
    /// Limits of single routes.
    routes: BTreeMap<(IpAddr, &'static str), Window>,
    bans: BTreeMap<IpAddr, Ban>,
    counters: Counters,
    /// Weight of a counter that other programs on the address use in each minute.
    others: BTreeMap<Surface, u32>,
    /// Whether responses lack the header of used weight.
    hides_weight: bool,
}

impl Limits {
    pub(crate) fn new(settings: LimitSettings) -> Self {
        Self {
            settings,
            begin: Begin::default(),
            weights: BTreeMap::new(),
            refused: BTreeMap::new(),
            routes: BTreeMap::new(),
            bans: BTreeMap::new(),
            counters: Counters::default(),
            others: BTreeMap::new(),
            hides_weight: false,
        }
    }

    /// Sets the weight of a surface's counter that other programs use in each minute.
    pub(crate) fn use_for_others(&mut self, surface: Surface, weight: u32) {
        self.others.insert(self.counter(surface), weight);
    }

    /// Changes how weight is counted from now on. `None` keeps the present setting.
    pub(crate) fn count_as(&mut self, counters: Option<Counters>, headers: Option<bool>) {
        self.counters = counters.unwrap_or(self.counters);
        self.hides_weight = headers.map_or(self.hides_weight, |headers| !headers);
    }

    /// The surface whose weight counter this surface uses.
    const fn counter(&self, surface: Surface) -> Surface {
        match (self.counters, surface) {
            (Counters::All, _) | (Counters::Info, Surface::Rpc) => Surface::Futures,
            (Counters::Apart | Counters::Info, own) => own,
        }
    }

    /// `rateLimits` of a surface.
    pub(crate) fn rules(&self, surface: Surface) -> Vec<Rule> {
        let limits = &self.settings;
        match surface {
            Surface::Spot => vec![
                Rule::minute("REQUEST_WEIGHT", limits.spot_weight),
                Rule::minute("ORDERS", limits.spot_orders),
                Rule {
                    interval: "SECOND",
                    interval_num: 10,
                    suffix: "10S",
                    length_ms: TEN_SECONDS_MS,
                    ..Rule::minute("ORDERS", limits.spot_orders_10s)
                },
            ],
            _ => vec![
                Rule::minute("REQUEST_WEIGHT", limits.futures_weight),
                Rule::minute("ORDERS", limits.futures_orders),
            ],
        }
    }

    /// Refuses a banned address (418).
    pub(crate) fn check_ban(&self, ip: IpAddr, now: Time) -> Result<(), Refusal> {
        let now_ms = now.millis();
        match self.bans.get(&ip) {
            Some(ban) if now_ms < ban.until_ms => Err(banned(ban.until_ms, now_ms)),
            _ => Ok(()),
        }
    }

    /// Bans an address until a time.
    pub(crate) fn ban(&mut self, ip: IpAddr, until_ms: i64) {
        let times = self.bans.get(&ip).map_or(0, |ban| ban.times);
        self.bans.insert(ip, Ban { until_ms, times });
    }

    /// Lifts a ban and forgets it.
    pub(crate) fn pardon(&mut self, ip: IpAddr) {
        self.bans.remove(&ip);
        self.refused.remove(&ip);
    }

    /// Adds a request's weight to the use of its IP. Returns the sum, and whether it is within the
    /// limit.
    fn use_weight(
        &mut self,
        ip: IpAddr,
        surface: Surface,
        weight: u32,
        now_ms: i64,
    ) -> (u32, bool) {
        let limit = self
            .rules(surface)
            .first()
            .map_or(u32::MAX, |rule| rule.limit);
        self.forget_idle(now_ms);
        let counter = self.counter(surface);
        let window = self.weights.entry((ip, counter)).or_default();
        let others = self.others.get(&counter).copied().unwrap_or(0);
        let used = window
            .add(weight, MINUTE_MS, now_ms, self.begin)
            .saturating_add(others);
        (used, used <= limit)
    }

    /// Counts one more 429 for an address. Too many of them cause a ban.
    fn refuse(&mut self, ip: IpAddr, left_ms: u64, now_ms: i64) -> Refusal {
        let answers = self
            .refused
            .entry(ip)
            .or_default()
            .add(1, MINUTE_MS, now_ms, Begin::Clock);
        if answers <= self.settings.patience {
            let seconds = left_ms.div_ceil(1_000);
            let msg = "Too many requests; please use the websocket for live updates.";
            return too_many(429, msg.to_owned(), Some(seconds));
        }
        let times = self.bans.get(&ip).map_or(0, |ban| ban.times);
        let length_ms = BAN_MIN_MS
            .saturating_mul(4_i64.saturating_pow(times))
            .min(BAN_MAX_MS);
        let until_ms = now_ms + length_ms;
        let times = times + 1;
        self.bans.insert(ip, Ban { until_ms, times });
        self.refused.remove(&ip);
        banned(until_ms, now_ms)
    }

    /// A refusal by the limit of a route or of orders. It counts like any other 429, so after too
    /// many of them it becomes a ban (docs/interface/limits.md#429-418-and-bans).
    fn refuse_as(&mut self, refusal: Refusal, ip: IpAddr, now: Time) -> Refusal {
        let counted = self.refuse(ip, 0, now.millis());
        if counted.status == 418 {
            counted
        } else {
            refusal
        }
    }

    /// Drops idle addresses once there are many.
    fn forget_idle(&mut self, now_ms: i64) {
        if self.weights.len() < ADDRESSES_MAX {
            return;
        }
        let fresh = |window: &Window| window.is_fresh(MINUTE_MS, now_ms);
        self.weights.retain(|_, window| fresh(window));
        self.refused.retain(|_, window| fresh(window));
        self.routes.retain(|_, window| fresh(window));
        self.bans
            .retain(|_, ban| now_ms < ban.until_ms + BAN_MAX_MS);
    }
}

/// The checks of a request, in their order.
impl Limits {
    /// Adds a request's weight to the use of its IP, reports the sum in a header, and refuses a
    /// request above the limit (429, 418).
    pub(crate) fn charge(
        &mut self,
        choices: &Choices,
        surface: Surface,
        weight: u32,
        ip: IpAddr,
        now: Time,
        headers: &mut Vec<(&'static str, String)>,
    ) -> Result<(), Refusal> {
        let now_ms = now.millis();
        let surface = counter(choices, surface);
        let (used, within) = self.use_weight(ip, surface, weight, now_ms);
        if !self.hides_weight {
            headers.push((USED_WEIGHT, used.to_string()));
        }
        if within {
            Ok(())
        } else {
            let window = self.weights.get(&(ip, surface)).copied();
            let left_ms = window.unwrap_or_default().left_ms(MINUTE_MS, now_ms);
            Err(self.refuse(ip, left_ms, now_ms))
        }
    }

    /// Adds the weight that another program uses from the same address, and returns the sum.
    pub(crate) fn use_by_others(
        &mut self,
        choices: &Choices,
        surface: Surface,
        ip: IpAddr,
        weight: u32,
        now: Time,
    ) -> u32 {
        let surface = counter(choices, surface);
        let (used, _) = self.use_weight(ip, surface, weight, now.millis());
        used
    }

    /// Reports the used weight of an address in a header, and adds nothing.
    pub(crate) fn add_used_weight(
        &mut self,
        choices: &Choices,
        surface: Surface,
        ip: IpAddr,
        now: Time,
        headers: &mut Vec<(&'static str, String)>,
    ) {
        let used = self.use_by_others(choices, surface, ip, 0, now);
        if !self.hides_weight {
            headers.push((USED_WEIGHT, used.to_string()));
        }
    }

    /// Applies the route's own limit per minute and IP (429 with `Retry-After`).
    pub(crate) fn count_route(
        &mut self,
        route: &'static Route,
        ip: IpAddr,
        now: Time,
    ) -> Result<(), Refusal> {
        let Counted::PerMinute(limit) = route.counted else {
            return Ok(());
        };
        let now_ms = now.millis();
        let window = self.routes.entry((ip, route.name)).or_default();
        if window.add(1, MINUTE_MS, now_ms, Begin::Clock) <= limit {
            return Ok(());
        }
        let seconds = window.left_ms(MINUTE_MS, now_ms).div_ceil(1_000);
        let msg = format!("Too many requests; current limit is {limit} requests per 1 MINUTE.");
        let refusal = too_many(429, msg, Some(seconds));
        Err(self.refuse_as(refusal, ip, now))
    }

    /// Counts orders of an account. Returns the headers of a successful response, or a 429 without
    /// `Retry-After` (-1015).
    pub(crate) fn count_orders(
        &mut self,
        choices: &Choices,
        counts: &mut OrderCounts,
        surface: Surface,
        orders: u32,
        ip: IpAddr,
        now: Time,
    ) -> Result<Vec<(&'static str, String)>, Refusal> {
        let rules = self.rules(surface);
        let mut headers = Vec::new();
        for rule in rules.iter().filter(|rule| rule.rate_limit_type == "ORDERS") {
            let (used, left_ms) =
                counts.add(surface, rule.length_ms, orders, now.millis(), self.begin);
            if used > rule.limit {
                let msg = format!(
                    "Too many new orders; current limit is {} orders per {} {}.",
                    rule.limit, rule.interval_num, rule.interval
                );
                let mut refusal = Refusal::new(-1015, msg).with_status(429);
                if choices.of::<OrderLimitRetry>() == OrderLimitRetry::Sent {
                    refusal.retry_after_s = Some(left_ms.div_ceil(1_000));
                }
                return Err(self.refuse_as(refusal, ip, now));
            }
            let name = match rule.suffix {
                "10S" => "x-mbx-order-count-10s",
                _ => "x-mbx-order-count-1m",
            };
            headers.push((name, used.to_string()));
        }
        Ok(headers)
    }
}

fn banned(until_ms: i64, now_ms: i64) -> Refusal {
    let seconds = (until_ms - now_ms).max(0).cast_unsigned().div_ceil(1_000);
    let msg = format!(
        "Way too many requests; IP banned until {until_ms}. Please use the websocket for live \
         updates to avoid bans."
    );
    too_many(418, msg, Some(seconds))
}

fn too_many(status: u16, msg: String, retry_after_s: Option<u64>) -> Refusal {
    Refusal {
        retry_after_s,
        ..Refusal::new(-1003, msg).with_status(status)
    }
}

/// The surface whose weight counter is used for a request of this surface.
fn counter(choices: &Choices, surface: Surface) -> Surface {
    let info = choices.of::<InfoWeight>() == InfoWeight::Futures;
    let spot = choices.of::<SpotWeight>() == SpotWeight::Futures;
    match surface {
        Surface::Rpc if info => Surface::Futures,
        Surface::Spot if spot => Surface::Futures,
        own => own,
    }
}

/// The weight of a request of a route.
pub(crate) fn weight_of(route: &Route, params: Option<&Params>) -> u32 {
    let has_symbol = params.is_some_and(|params| params.get("symbol").is_some());
    let limit = params.and_then(|params| params.integer("limit").ok().flatten());
    let limit = limit.and_then(|limit| u32::try_from(limit).ok());
    route.weight.of(has_symbol, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn limits() -> Limits {
        Limits::new(LimitSettings::default())
    }

    #[test]
    fn weight_is_counted_by_surface_and_minute() {
        let mut limits = limits();
        assert_eq!(
            limits.use_weight(IP, Surface::Futures, 2_400, 0),
            (2_400, true)
        );
        assert_eq!(
            limits.use_weight(IP, Surface::Futures, 1, 59_999),
            (2_401, false)
        );
        assert_eq!(limits.use_weight(IP, Surface::Spot, 1, 59_999), (1, true));
        assert_eq!(
            limits.use_weight(IP, Surface::Futures, 1, 60_000),
            (1, true)
        );
    }

    #[test]
    fn requests_after_429_lead_to_growing_bans() {
        let mut limits = limits();
        let refusal = limits.refuse(IP, 59_000, 1_000);
        assert_eq!((refusal.status, refusal.retry_after_s), (429, Some(59)));
        let mut now_ms = 1_000;
        for length_s in [120, 480, 1_920, 7_680, 30_720, 122_880, 259_200, 259_200] {
            let last = (0..20)
                .map(|_| limits.refuse(IP, 1_000, now_ms))
                .find(|r| r.status == 418);
            assert_eq!(last.unwrap().retry_after_s, Some(length_s));
            assert!(limits.check_ban(IP, Time::from_millis(now_ms)).is_err());
            now_ms += i64::try_from(length_s).unwrap() * 1_000;
            assert!(limits.check_ban(IP, Time::from_millis(now_ms)).is_ok());
        }
    }

    #[test]
    fn idle_addresses_are_dropped() {
        let mut limits = limits();
        for n in 0..ADDRESSES_MAX as u32 + 5 {
            limits.use_weight(IpAddr::V4(n.into()), Surface::Spot, 1, i64::from(n) * 1_000);
        }
        assert!(limits.weights.len() < 100);
    }
}
