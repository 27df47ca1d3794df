//! The weight plan: how much of a surface's limits a run will use in each interval, computed before
//! it sends anything (`docs/promises.md#7-budget-before-sending`). This is only arithmetic.
//!
//! This module must never contain IO, a clock, or the weight that was used already (that belongs to
//! the budget).

mod plan;
mod shares;

#[cfg(test)]
mod tests;

use windvane_client_core::budget::polling::{self, Poll};
use windvane_client_core::budget::{Lane, LimitKind, RateLimit, Shares};
use windvane_client_core::settings::MarketData;
use windvane_model::Surface;
use windvane_protocol::market_stream::{Feed, Topic};

use crate::exchange::Recurring;
use crate::requests::{CLOCK_EVERY_MS, CLOCK_SAMPLES, MODES_AGE_MS};
use crate::surface::venue_surface;

pub use plan::{Overbooked, Plan, Polling, Use};
pub use shares::{keep, shares};

/// While the watchdog process acts, it lists the open orders of every symbol at this interval.
pub const WATCHDOG_LIST_MS: u64 = 1_000;
/// A listen key is renewed at most at this interval (it lives 60 minutes:
/// docs/interface/user-stream.md#listen-keys).
const KEY_EVERY_MS: u64 = 20 * 60_000;
/// The rules of instruments are read at this interval while a symbol does not trade, and hourly
/// otherwise.
const RULES_EVERY_MS: u64 = 15_000;
/// The plan counts this many reads of the account for one reconciliation: a difference counts only
/// after the second read.
const ACCOUNT_READS: u32 = 2;

/// The needs of a run on one surface.
#[derive(Clone, Debug)]
pub struct Wants {
    /// Surface.
    pub surface: Surface,
    /// Number of its instruments.
    pub symbols: u32,
    /// Renewal interval of a heartbeat, in milliseconds.
    pub renew_ms: u64,
    /// Reconciliation interval, in milliseconds.
    pub reconcile_ms: u64,
    /// Public topics.
    pub topics: Vec<Topic>,
    /// The source of public data.
    pub market_data: MarketData,
    /// Whether it trades an account of the venue. A simulated account needs only public data.
    pub is_live: bool,
    /// The weight of a call: [`Capabilities::weight`](crate::Capabilities::weight).
    pub weight: fn(Surface, Recurring) -> u32,
}

impl Wants {
    /// One plan for each weight limit of the surface, in the order of the limits.
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
        uses.push(self.row("clock", Recurring::Clock, Lane::Heartbeat, readings));
        let mut per_symbol = 0;
        if self.is_live {
            let rules = times(interval_ms, RULES_EVERY_MS);
            uses.push(self.row(
                "instrument rules",
                Recurring::Listing,
                Lane::Reconcile,
                rules,
            ));
            per_symbol = self.account(interval_ms, &mut uses);
        }
        let books = self.topics.iter().filter(|topic| is_book(topic)).count() as u64;
        if books > 0 && self.market_data != MarketData::Documented {
            uses.push(self.row("depth snapshots", Recurring::Depth, Lane::Query, books));
        }
        for (what, lane) in [
            ("reserve: cancels", Lane::Cancel),
            ("reserve: orders", Lane::Place),
        ] {
            if self.is_live {
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

    /// Adds the uses of an account of the venue. Returns the weight of one symbol.
    fn account(&self, interval_ms: u64, uses: &mut Vec<Use>) -> u64 {
        let symbols = u64::from(self.symbols);
        let mut per_symbol = 0;
        if self.surface == Surface::Futures {
            let renewals = times(interval_ms, self.renew_ms);
            let times = symbols * renewals;
            let heartbeats = self.row("heartbeats", Recurring::Heartbeat, Lane::Heartbeat, times);
            per_symbol += renewals * u64::from(heartbeats.weight);
            uses.push(heartbeats);
        }
        if self.surface == Surface::Spot {
            let listings = times(interval_ms, WATCHDOG_LIST_MS);
            let watchdog = self.row(
                "watchdog process",
                Recurring::OpenOrdersOfSymbol,
                Lane::Heartbeat,
                symbols * listings,
            );
            per_symbol += listings * u64::from(watchdog.weight);
            uses.push(watchdog);
        }
        let keys = times(interval_ms, KEY_EVERY_MS);
        uses.push(self.row("listen key", Recurring::RenewKey, Lane::Heartbeat, keys));
        let rounds = times(interval_ms, self.reconcile_ms);
        let documented = self.market_data == MarketData::Documented;
        let lane = Lane::Reconcile;
        uses.push(self.row("open orders", Recurring::OpenOrders, lane, rounds));
        let reads = rounds * u64::from(ACCOUNT_READS);
        if self.surface == Surface::Spot || !documented {
            uses.push(self.row("account", Recurring::Account, lane, reads));
        } else {
            let what = "account by the info endpoint";
            uses.push(self.row(what, Recurring::AccountInfo, lane, reads));
        }
        if self.surface == Surface::Futures {
            let readings = times(interval_ms, MODES_AGE_MS.unsigned_abs());
            let what = "position and asset mode";
            uses.push(self.row(what, Recurring::Modes, lane, readings));
        }
        if !documented {
            let trades = self.row(
                "trades after a gap",
                Recurring::AccountTrades,
                lane,
                symbols,
            );
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
        let spare: u64 = plan.on_spare_weight().map(Use::sum).sum();
        let left = u64::from(plan.limit).saturating_sub(plan.sum() + spare);
        let per_minute = left * 60_000 / plan.interval_ms.max(1);
        let per_minute = u32::try_from(per_minute).unwrap_or(u32::MAX);
        match polling::plan(venue_surface(self.surface), &topics, per_minute) {
            Ok(polls) if documented => Polling::Always(polled(&polls, plan.interval_ms)),
            Ok(polls) => Polling::InPlaceOfStreams(polled(&polls, plan.interval_ms)),
            Err(error) => Polling::TooLittle(error),
        }
    }

    fn row(&self, what: &'static str, call: Recurring, lane: Lane, times: u64) -> Use {
        Use {
            what,
            lane,
            times,
            weight: (self.weight)(self.surface, call),
        }
    }
}

/// The maximum number of times that something happens in an interval if it happens every
/// `every_ms`.
fn times(interval_ms: u64, every_ms: u64) -> u64 {
    interval_ms.div_ceil(every_ms.max(1))
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
