//! Risk limits of the account and of each strategy (`[risk]` and `[strategy.limits]`).
//!
//! Orders that are open, in flight or of unknown outcome count as if they had filled on the side
//! that hurts: the worst case (promise 2).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::Time;
use crate::order::Side;
use crate::planted;

/// Limits; `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RiskLimits {
    /// `max_order_notional`.
    pub max_order_notional: Option<Amount>,
    /// `max_position_notional`: worst case, the sum over all instruments.
    pub max_position_notional: Option<Amount>,
    /// `max_open_orders`.
    pub max_open_orders: Option<u32>,
    /// `max_orders_per_minute`: in any 60 seconds.
    pub max_orders_per_minute: Option<u32>,
    /// `price_collar`: largest distance of a limit price from mid, in parts per million of mid.
    pub price_collar_ppm: Option<u32>,
    /// `max_daily_loss`: loss of equity since the start of the UTC day.
    pub max_daily_loss: Option<Amount>,
    /// `max_drawdown`: loss from the peak of equity, in parts per million of the peak.
    pub max_drawdown_ppm: Option<u32>,
}

impl RiskLimits {
    /// Whether equity must be watched at all.
    pub const fn watches_equity(&self) -> bool {
        self.max_daily_loss.is_some() || self.max_drawdown_ppm.is_some()
    }
}

/// Which loss limit was breached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossLimit {
    /// `max_daily_loss`.
    DailyLoss,
    /// `max_drawdown`.
    Drawdown,
}

impl LossLimit {
    /// The key of the configuration.
    pub const fn key(self) -> &'static str {
        match self {
            Self::DailyLoss => "max_daily_loss",
            Self::Drawdown => "max_drawdown",
        }
    }
}

/// Equity against the loss limits: its peak and the start of the UTC day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossWatch {
    last: Amount,
    peak: Amount,
    day: Option<i64>,
    day_start: Amount,
    /// A breach halted the account, and nobody has accepted the loss.
    breached: bool,
}

const DAY_NS: i64 = 86_400_000_000_000;

impl LossWatch {
    /// Watches from this equity on. The default starts at nothing, as a strategy's profit does.
    pub fn starting_at(equity: Amount) -> Self {
        Self {
            last: equity,
            peak: equity,
            day: None,
            day_start: equity,
            breached: false,
        }
    }

    /// A limit halted what is watched.
    pub const fn mark_breached(&mut self) {
        self.breached = true;
    }

    /// A person resumes: a loss that breached a limit is accepted, and the limits count from this
    /// equity. One that breached nothing stays counted.
    pub fn accept(&mut self, equity: Amount) {
        if self.breached {
            *self = Self::starting_at(equity);
        }
    }

    /// Money came in or went out that is no profit and no loss.
    pub fn shift(&mut self, amount: Amount) {
        self.last += amount;
        self.peak += amount;
        self.day_start += amount;
    }

    /// Takes an equity and answers the limit that it breaches.
    ///
    /// `base` is what a drawdown is a fraction of, on top of the peak: nothing for the account,
    /// whose equity includes its balance, and the account's start equity for a strategy, whose
    /// equity is its profit.
    pub fn observe(
        &mut self,
        now: Time,
        equity: Amount,
        base: Amount,
        limits: &RiskLimits,
    ) -> Option<LossLimit> {
        self.begin_day(now);
        self.last = equity;
        self.peak = self.peak.max(equity);
        self.breach(now, equity, base, limits)
    }

    /// A day starts with what the day before ended with, not with its first change.
    fn begin_day(&mut self, now: Time) {
        let day = Some(now.0.div_euclid(DAY_NS));
        if self.day != day {
            self.day = day;
            self.day_start = self.last;
        }
    }

    /// The limit that an equity would breach. It is not observed: it may not be the true one, and
    /// must not become a peak.
    pub fn breach(
        &mut self,
        now: Time,
        equity: Amount,
        base: Amount,
        limits: &RiskLimits,
    ) -> Option<LossLimit> {
        self.begin_day(now);
        let (start, peak) = (self.day_start, self.peak);
        if limits
            .max_daily_loss
            .is_some_and(|max| start - equity >= max)
        {
            return Some(LossLimit::DailyLoss);
        }
        let lost = (peak - equity).0;
        let whole = (base + peak).0;
        let breached = |ppm: u32| lost > 0 && lost * 1_000_000 >= whole * i128::from(ppm);
        if limits.max_drawdown_ppm.is_some_and(breached) {
            return Some(LossLimit::Drawdown);
        }
        None
    }
}

/// Times of the orders of the last minute, at most as many as the limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RateWindow {
    times: VecDeque<Time>,
}

const MINUTE_NS: i64 = 60_000_000_000;

impl RateWindow {
    /// Whether one more order fits, with `pending` counted before it.
    pub fn fits(&self, now: Time, pending: u32, max: u32) -> bool {
        let max = max as usize;
        let taken = self.times.len() + pending as usize;
        if taken < max {
            return true;
        }
        // The order that must have left the window for one more to fit.
        let Some(index) = taken.checked_sub(max) else {
            return false;
        };
        match self.times.get(index) {
            Some(time) => now.0 - time.0 >= MINUTE_NS,
            None => false,
        }
    }

    /// Counts an order.
    pub fn count(&mut self, now: Time) {
        if planted!(RateForgotten) {
            return;
        }
        while self
            .times
            .front()
            .is_some_and(|time| now.0 - time.0 >= MINUTE_NS)
        {
            self.times.pop_front();
        }
        self.times.push_back(now);
    }
}

/// Quantities at stake in one instrument and position side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposure {
    /// Position quantity, signed mantissa.
    pub position: i64,
    /// Quantity of open buy orders, in flight and unknown ones included.
    pub open_buy: i64,
    /// Quantity of open sell orders, likewise.
    pub open_sell: i64,
}

impl Exposure {
    /// The largest absolute position that the open orders may lead to.
    #[inline]
    pub const fn worst_qty(&self) -> i64 {
        let long = self.position.saturating_add(self.open_buy).saturating_abs();
        let short = self
            .position
            .saturating_sub(self.open_sell)
            .saturating_abs();
        if long > short { long } else { short }
    }

    /// The position that the open orders of one side may lead to, counted in their direction: not
    /// positive where they only reduce.
    pub const fn side_qty(&self, side: Side) -> i64 {
        match side {
            Side::Buy => self.position.saturating_add(self.open_buy),
            Side::Sell => self.open_sell.saturating_sub(self.position),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(s: i64) -> Time {
        Time(s * 1_000_000_000)
    }

    #[test]
    fn the_rate_window_slides() {
        let mut window = RateWindow::default();
        assert!(window.fits(seconds(0), 0, 2));
        assert!(
            !window.fits(seconds(0), 2, 2),
            "the callback's own orders count"
        );
        window.count(seconds(0));
        window.count(seconds(30));
        assert!(!window.fits(seconds(59), 0, 2));
        assert!(window.fits(seconds(60), 0, 2));
        assert!(!window.fits(seconds(60), 1, 2));
        assert!(window.fits(seconds(90), 1, 2));
    }

    #[test]
    fn a_limit_of_zero_lets_no_order_through() {
        assert!(!RateWindow::default().fits(seconds(0), 0, 0));
    }

    #[test]
    fn worst_case_counts_open_orders_on_the_side_that_hurts() {
        let exposure = Exposure {
            position: 5,
            open_buy: 2,
            open_sell: 20,
        };
        assert_eq!(exposure.worst_qty(), 15);
    }

    #[test]
    fn daily_loss_starts_anew_at_midnight_and_drawdown_does_not() {
        let limits = RiskLimits {
            max_daily_loss: Some(Amount(100)),
            max_drawdown_ppm: Some(200_000),
            ..RiskLimits::default()
        };
        let mut watch = LossWatch::starting_at(Amount(1000));
        let day = 86_400;
        let mut at = |s, equity| watch.observe(seconds(s), Amount(equity), Amount::ZERO, &limits);
        assert_eq!(at(0, 1000), None);
        assert_eq!(at(1, 901), None);
        assert_eq!(at(2, 900), Some(LossLimit::DailyLoss));
        assert_eq!(at(day, 890), None, "a new day, which starts at 900");
        assert_eq!(at(day + 1, 801), None);
        assert_eq!(at(day * 2, 800), Some(LossLimit::Drawdown));
    }
}
