//! The plan of weights: what a configuration uses of a surface's limits in each of their
//! intervals, before anything is sent (promise 7). Arithmetic alone.
//!
//! What may never enter here: IO, a clock, and what was used already (that is the budget's).

use std::fmt;

use windvane_client::budget::polling::{self, Poll, PollingError};
use windvane_client::budget::{Lane, LimitKind, RateLimit, Shares, SharesError};
use windvane_client_core::Gateway;
use windvane_engine::Surface;
use windvane_venue::market_stream::{Feed, Topic};
use windvane_venue::route;

use super::start;
use crate::assembly;
use crate::config::{Config, MarketData, Mode};
use crate::watchdog;
use windvane_session::{
    CLOCK_EVERY_MS, CLOCK_SAMPLES, DEPTH_LEVELS, Documented, MODES_AGE_MS, venue_surface,
};

/// A listen key is kept alive this often at the most (spec 1 and 2: it lives 60 minutes).
const KEY_EVERY_MS: u64 = 20 * 60_000;
/// The rules of instruments are read this often while a symbol does not trade, and hourly otherwise.
const RULES_EVERY_MS: u64 = 15_000;
/// Reads of the account in a round: a difference counts after the second.
const ACCOUNT_READS: u32 = 2;

/// What a configuration asks of one surface.
#[derive(Clone, Debug)]
pub struct Wants {
    /// Surface.
    pub surface: Surface,
    /// Its instruments.
    pub symbols: u32,
    /// A heartbeat is renewed this often, milliseconds.
    pub renew_ms: u64,
    /// State is compared this often, milliseconds.
    pub reconcile_ms: u64,
    /// Public topics.
    pub topics: Vec<Topic>,
    /// Where public data come from.
    pub market_data: MarketData,
    /// Whose money it is: paper asks for public data alone.
    pub mode: Mode,
}

/// One use of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// For what.
    pub what: &'static str,
    /// The lane of the budget that it goes through.
    pub lane: Lane,
    /// Times in an interval.
    pub times: u64,
    /// Weight of each.
    pub weight: u32,
}

impl Use {
    /// Weight in an interval.
    pub const fn sum(&self) -> u64 {
        self.times.saturating_mul(self.weight as u64)
    }
}

/// How market data are polled where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Polling {
    /// Never: `market_data = "streams"`.
    Never,
    /// Always, for this weight (`documented`).
    Always(u64),
    /// While the venue does not stream, for this weight (`auto`).
    InPlaceOfStreams(u64),
    /// There is no plan that keeps what is left.
    TooLittle(PollingError),
}

/// The plan of one limit of a surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Surface.
    pub surface: Surface,
    /// The limit's interval, milliseconds.
    pub interval_ms: u64,
    /// Its weight.
    pub limit: u32,
    /// What must have its place, and, in the lane of questions, what takes what is left.
    pub uses: Vec<Use>,
    /// Weight of a symbol: its heartbeats, and its trades after a gap.
    per_symbol: u64,
    symbols: u32,
    /// Out of what is left.
    pub polling: Polling,
}

/// A plan that does not fit its limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{surface}: {} are {sum} of {limit} weight in {interval_ms} ms: at most {symbols_max} symbols \
     fit; trade fewer, lengthen heartbeat.interval_ms (and countdown_ms with it), or lengthen \
     reconcile.interval_ms", words.join(" + ")
)]
pub struct Overbooked {
    /// Surface.
    pub surface: Surface,
    /// Its uses, in words.
    words: Vec<String>,
    /// What they come to.
    pub sum: u64,
    /// The limit.
    pub limit: u32,
    /// Its interval.
    interval_ms: u64,
    /// The largest number of symbols that fits.
    pub symbols_max: u64,
}

impl Wants {
    /// What a configuration asks of a surface.
    pub fn of(config: &Config, surface: Surface) -> Self {
        let names = assembly::instrument_names(config);
        let symbols = names.iter().filter(|name| name.surface == surface).count();
        Self {
            surface,
            symbols: u32::try_from(symbols).unwrap_or(u32::MAX),
            renew_ms: config.heartbeat.interval_ms,
            reconcile_ms: config.reconcile.interval_ms,
            topics: start::topics(config, surface),
            market_data: config.venue.market_data,
            mode: config.run.mode,
        }
    }

    /// The plans for the weight limits of the surface, in their order.
    pub fn plans(&self, limits: &[RateLimit]) -> Vec<Plan> {
        let weights = limits
            .iter()
            .filter(|limit| limit.kind == LimitKind::Weight);
        weights.map(|limit| self.plan(*limit)).collect()
    }

    fn plan(&self, limit: RateLimit) -> Plan {
        let interval_ms = limit.interval_ms;
        let mut uses = Vec::new();
        let clock = CLOCK_EVERY_MS.unsigned_abs();
        let readings = times(interval_ms, clock) * CLOCK_SAMPLES as u64;
        uses.push(self.row("clock", "time", Lane::Heartbeat, readings));
        let mut per_symbol = 0;
        if self.mode == Mode::Live {
            let rules = times(interval_ms, RULES_EVERY_MS);
            uses.push(self.row("instrument rules", "exchange_info", Lane::Reconcile, rules));
            per_symbol = self.account(interval_ms, &mut uses);
        }
        let books = self.topics.iter().filter(|topic| is_book(topic)).count() as u64;
        if books > 0 && self.market_data != MarketData::Documented {
            let mut depth = self.row("depth snapshots", "depth", Lane::Query, books);
            let limit = DEPTH_LEVELS.parse().ok();
            depth.weight = weight(self.surface, "depth", |weight| weight.of(true, limit));
            uses.push(depth);
        }
        for (what, lane) in [
            ("reserve: cancels", Lane::Cancel),
            ("reserve: orders", Lane::Place),
        ] {
            if self.mode == Mode::Live {
                let reserve = Shares::default().reserve(lane, limit.limit);
                uses.push(Use {
                    what,
                    lane,
                    times: 1,
                    weight: reserve,
                });
            }
        }
        let mut plan = Plan {
            surface: self.surface,
            interval_ms,
            limit: limit.limit,
            uses,
            per_symbol,
            symbols: self.symbols,
            polling: Polling::Never,
        };
        plan.polling = self.polling(&plan);
        plan
    }

    /// What an account of its own needs; answers the weight of one symbol.
    fn account(&self, interval_ms: u64, uses: &mut Vec<Use>) -> u64 {
        let symbols = u64::from(self.symbols);
        let mut per_symbol = 0;
        if self.surface == Surface::Futures {
            let renewals = times(interval_ms, self.renew_ms);
            let name = "countdown_cancel_all";
            let heartbeats = self.row("heartbeats", name, Lane::Heartbeat, symbols * renewals);
            per_symbol += renewals * u64::from(heartbeats.weight);
            uses.push(heartbeats);
        }
        if self.surface == Surface::Spot {
            // While the watchdog process acts, it lists every symbol once a second.
            let listings = times(interval_ms, ms(watchdog::LIST_EVERY));
            let mut watchdog = self.row(
                "watchdog process",
                "open_orders",
                Lane::Heartbeat,
                symbols * listings,
            );
            watchdog.weight = weight(self.surface, "open_orders", |weight| weight.of(true, None));
            per_symbol += listings * u64::from(watchdog.weight);
            uses.push(watchdog);
        }
        let keys = times(interval_ms, KEY_EVERY_MS);
        uses.push(self.row("listen key", "keepalive_listen_key", Lane::Heartbeat, keys));
        let rounds = times(interval_ms, self.reconcile_ms);
        let documented = self.market_data == MarketData::Documented;
        let lane = Lane::Reconcile;
        uses.push(self.row("open orders", "open_orders", lane, rounds));
        if self.surface == Surface::Spot || !documented {
            let reads = rounds * u64::from(ACCOUNT_READS);
            uses.push(self.row("account", "account", lane, reads));
        } else {
            // The info endpoint may use the same counter (spec 3, Limits).
            uses.push(Use {
                what: "account by the info endpoint",
                lane,
                times: rounds * u64::from(ACCOUNT_READS),
                weight: 1,
            });
        }
        if self.surface == Surface::Futures {
            let modes = times(interval_ms, MODES_AGE_MS.unsigned_abs());
            let weight = Documented::CAPABILITIES
                .modes
                .iter()
                .map(|name| named_weight(name))
                .sum();
            uses.push(Use {
                what: "position and asset mode",
                lane,
                times: modes,
                weight,
            });
        }
        if !documented {
            let trades = self.row("trades after a gap", "user_trades", lane, symbols);
            per_symbol += u64::from(trades.weight);
            uses.push(trades);
        }
        per_symbol
    }

    fn polling(&self, plan: &Plan) -> Polling {
        if self.market_data == MarketData::Streams || self.topics.is_empty() {
            return Polling::Never;
        }
        let documented = self.market_data == MarketData::Documented;
        let can_be = |topic: &&Topic| polling::can_be_polled(venue_surface(self.surface), topic);
        let streamed = |topic: &&Topic| documented && is_tradepro(topic);
        let topics = self
            .topics
            .iter()
            .filter(|topic| can_be(topic) && !streamed(topic));
        let topics: Vec<Topic> = topics.cloned().collect();
        let beside: u64 = plan.beside().map(Use::sum).sum();
        let left = u64::from(plan.limit).saturating_sub(plan.sum() + beside);
        let per_minute = left * 60_000 / plan.interval_ms.max(1);
        let per_minute = u32::try_from(per_minute).unwrap_or(u32::MAX);
        match polling::plan(venue_surface(self.surface), &topics, per_minute) {
            Ok(polls) if documented => Polling::Always(polled(&polls, plan.interval_ms)),
            Ok(polls) => Polling::InPlaceOfStreams(polled(&polls, plan.interval_ms)),
            Err(error) => Polling::TooLittle(error),
        }
    }

    fn row(&self, what: &'static str, route: &str, lane: Lane, times: u64) -> Use {
        Use {
            what,
            lane,
            times,
            weight: weight(self.surface, route, |weight| weight.of(false, None)),
        }
    }
}

impl Plan {
    /// The weight of everything that must have its place.
    pub fn sum(&self) -> u64 {
        self.binding().map(Use::sum).fold(0, u64::saturating_add)
    }

    /// What must have its place.
    pub fn binding(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter().filter(|one| one.lane != Lane::Query)
    }

    /// What takes what is left, beside polling.
    pub fn beside(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter().filter(|one| one.lane == Lane::Query)
    }

    /// The largest number of symbols that fits: arithmetic, for each symbol costs the same.
    pub fn symbols_max(&self) -> u64 {
        let own = self.per_symbol.saturating_mul(u64::from(self.symbols));
        let fixed = self.sum().saturating_sub(own);
        let left = u64::from(self.limit).saturating_sub(fixed);
        left.checked_div(self.per_symbol).unwrap_or_default()
    }

    /// Whether everything has its place.
    ///
    /// # Errors
    /// The sum, and how many symbols would fit.
    pub fn check(&self) -> Result<(), Overbooked> {
        let sum = self.sum();
        if sum <= u64::from(self.limit) {
            return Ok(());
        }
        let word = |one: &Use| format!("{} {}", one.what, one.sum());
        Err(Overbooked {
            surface: self.surface,
            words: self.binding().map(word).collect(),
            sum,
            limit: self.limit,
            interval_ms: self.interval_ms,
            symbols_max: self.symbols_max(),
        })
    }
}

/// The shares of a budget that keep plans which fit: to each lane what it needs, and at least
/// what is usual while that leaves room.
///
/// # Errors
/// The plans do not fit.
pub fn shares(plans: &[Plan]) -> Result<Shares, SharesError> {
    let need = |lane: Lane| {
        let of = |plan: &Plan| {
            let uses = plan.uses.iter().filter(|one| one.lane == lane);
            let sum: u64 = uses.map(Use::sum).sum();
            (sum * 100).div_ceil(u64::from(plan.limit).max(1))
        };
        u8::try_from(plans.iter().map(of).max().unwrap_or_default()).unwrap_or(u8::MAX)
    };
    let usual = |lane: Lane| u8::try_from(Shares::default().reserve(lane, 100)).unwrap_or(u8::MAX);
    // The last lane needs no reserve against others: what is left is its own.
    let with = |part: &dyn Fn(Lane) -> u8| {
        let mut percent = Lane::ALL.map(part);
        percent[Lane::Query as usize] = 0;
        Shares::new(percent)
    };
    with(&|lane| need(lane).max(usual(lane)))
        .or_else(|_| with(&need))
        // Percents are rounded up: the missing ones are those of orders.
        .or_else(|_| {
            with(&|lane| need(lane).saturating_sub(if lane == Lane::Place { 3 } else { 0 }))
        })
}

/// Gives the budget of each surface the shares that its plan needs; exchange information has told
/// the limits.
///
/// # Errors
/// A plan does not fit the limits.
pub fn keep(config: &Config, surfaces: &[Surface], gateway: &Gateway) -> Result<(), Overbooked> {
    for surface in surfaces.iter().copied() {
        let venue = venue_surface(surface);
        let limits = gateway.with_budgets(|budgets| budgets.of(venue).limits());
        let plans = Wants::of(config, surface).plans(&limits);
        for plan in &plans {
            plan.check()?;
            let (weight, limit, polling) = (plan.sum(), plan.limit, plan.polling.to_string());
            tracing::info!(%surface, weight, limit, polling, "the plan of weights");
        }
        if let Ok(shares) = shares(&plans) {
            gateway.with_budgets(|budgets| budgets.of(venue).set_shares(shares));
        }
    }
    Ok(())
}

impl fmt::Display for Polling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("market data are streamed"),
            Self::Always(weight) => write!(f, "market data are polled for {weight}"),
            Self::InPlaceOfStreams(weight) => {
                write!(
                    f,
                    "market data that the venue does not stream are polled for up to {weight}"
                )
            }
            Self::TooLittle(error) => write!(f, "{error}"),
        }
    }
}

/// How often something that happens every `every_ms` happens in an interval at most.
fn times(interval_ms: u64, every_ms: u64) -> u64 {
    interval_ms.div_ceil(every_ms.max(1))
}

fn ms(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn weight(surface: Surface, route: &str, of: impl Fn(&route::Weight) -> u32) -> u32 {
    let named = route::named(&format!("{surface}.{route}"));
    // Every name above is one of the table: the test below holds them to it.
    named.map_or(0, |route| of(&route.weight))
}

fn named_weight(route: &str) -> u32 {
    route::named(route).map_or(0, |route| route.weight.of(false, None))
}

fn polled(polls: &[Poll], interval_ms: u64) -> u64 {
    let of = |poll: &Poll| u64::from(poll.weight) * interval_ms / poll.interval_ms.max(1);
    polls.iter().map(of).sum()
}

const fn is_book(topic: &Topic) -> bool {
    matches!(
        topic,
        Topic::Of {
            feed: Feed::Depth { .. },
            ..
        }
    )
}

const fn is_tradepro(topic: &Topic) -> bool {
    matches!(
        topic,
        Topic::Of {
            feed: Feed::TradePro,
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windvane_client::budget::documented;

    use super::*;

    fn wants(symbols: u32, renew_ms: u64, reconcile_ms: u64) -> Wants {
        let streams = ["bookTicker", "depth@100ms", "markPrice@1s"];
        let topics = (0..symbols).flat_map(|at| streams.map(|one| format!("a{at}usdt@{one}")));
        Wants {
            surface: Surface::Futures,
            symbols,
            renew_ms,
            reconcile_ms,
            topics: topics.map(|topic| topic.parse().unwrap()).collect(),
            market_data: MarketData::Auto,
            mode: Mode::Live,
        }
    }

    fn plan(wants: &Wants) -> Plan {
        wants
            .plans(&documented(venue_surface(wants.surface)))
            .remove(0)
    }

    #[test]
    fn a_heartbeat_weighs_ten_for_each_symbol_and_renewal() {
        let plan = plan(&wants(2, 10_000, 15_000));
        let of = |what| plan.uses.iter().find(|one| one.what == what).unwrap();
        assert_eq!((of("heartbeats").times, of("heartbeats").weight), (12, 10));
        assert_eq!((of("open orders").times, of("open orders").weight), (4, 40));
        assert_eq!(of("account").sum(), 40);
        assert_eq!(of("position and asset mode").sum(), 60);
        assert_eq!(of("trades after a gap").sum(), 10);
        assert_eq!(of("depth snapshots").sum(), 40);
        assert_eq!(
            of("reserve: cancels").sum() + of("reserve: orders").sum(),
            960
        );
        assert_eq!(plan.check(), Ok(()));
    }

    #[test]
    fn too_many_symbols_are_refused_with_the_sum_and_how_many_would_fit() {
        let mut many = wants(40, 10_000, 15_000);
        many.topics.clear();
        let refused = plan(&many).check().unwrap_err();
        // 40 * (60 + 5), 4 * (40 + 10), 60, 3 clock, 1 key, 4 rules, 960 reserved.
        assert_eq!(refused.sum, 40 * 65 + 200 + 60 + 8 + 960);
        assert_eq!(refused.symbols_max, (2_400 - 1_228) / 65);
        let said = refused.to_string();
        assert!(
            said.contains("heartbeats 2400") && said.contains("at most 18 symbols"),
            "{said}"
        );
        many.symbols = 18;
        assert_eq!(plan(&many).check(), Ok(()));
        many.symbols = 19;
        assert!(plan(&many).check().is_err());
    }

    #[test]
    fn paper_asks_for_public_data_alone() {
        let mut paper = wants(500, 10_000, 15_000);
        paper.topics.clear();
        paper.mode = Mode::Paper;
        let plan = plan(&paper);
        assert_eq!(plan.uses.len(), 1);
        assert_eq!(plan.check(), Ok(()));
    }

    #[test]
    fn spot_has_no_heartbeats_and_documents_no_account_trades() {
        let mut wants = wants(3, 10_000, 15_000);
        wants.market_data = MarketData::Documented;
        let names = |plan: &Plan| plan.uses.iter().map(|one| one.what).collect::<Vec<_>>();
        let futures = plan(&wants);
        assert!(!names(&futures).contains(&"trades after a gap"));
        assert!(matches!(futures.polling, Polling::Always(weight) if weight > 0));
        wants.surface = Surface::Spot;
        wants.topics.clear();
        let spot = plan(&wants);
        assert!(!names(&spot).contains(&"heartbeats"));
        assert!(spot.uses.iter().all(|one| one.weight > 0));
    }

    proptest! {
        #[test]
        fn more_symbols_or_shorter_intervals_never_cost_less(
            symbols in 0_u32..40, more in 0_u32..20, renew in 1_u64..60_000,
            reconcile in 1_u64..120_000, shorter in 0_u64..60_000,
        ) {
            let base = plan(&wants(symbols, renew, reconcile)).sum();
            prop_assert!(plan(&wants(symbols + more, renew, reconcile)).sum() >= base);
            let renew = renew.saturating_sub(shorter).max(1);
            prop_assert!(plan(&wants(symbols, renew, reconcile)).sum() >= base);
            let reconcile = reconcile.saturating_sub(shorter).max(1);
            prop_assert!(plan(&wants(symbols, renew, reconcile)).sum() >= base);
        }

        #[test]
        fn the_largest_number_of_symbols_is_the_largest(
            renew in 1_000_u64..60_000, reconcile in 5_000_u64..120_000, symbols in 1_u32..100,
        ) {
            let mut wants = wants(symbols, renew, reconcile);
            wants.topics.clear();
            let most = plan(&wants).symbols_max();
            for (symbols, fits) in [(most, true), (most + 1, false)] {
                wants.symbols = u32::try_from(symbols).unwrap();
                let fixed_fits = symbols > 0 || plan(&wants).check().is_ok();
                prop_assert_eq!(plan(&wants).check().is_ok(), fits && fixed_fits);
            }
        }

        #[test]
        fn shares_keep_every_lane_of_a_plan_that_fits(
            symbols in 1_u32..40, renew in 2_000_u64..60_000, reconcile in 5_000_u64..120_000,
        ) {
            let mut wants = wants(symbols, renew, reconcile);
            wants.topics.clear();
            let plan = plan(&wants);
            prop_assume!(plan.check().is_ok());
            let shares = shares(std::slice::from_ref(&plan)).unwrap();
            for lane in [Lane::Heartbeat, Lane::Reconcile, Lane::Cancel] {
                let uses = plan.uses.iter().filter(|one| one.lane == lane);
                let need: u64 = uses.map(Use::sum).sum();
                prop_assert!(u64::from(shares.reserve(lane, plan.limit)) >= need);
            }
        }
    }
}
