//! Risk limits of the account and of each strategy (`[risk]` and `[strategy.limits]`).
//!
//! Orders that are open, in flight or of unknown outcome count in the worst case: as if they had
//! filled on the side that increases the risk (`docs/promises.md#2-unknown-is-a-state`).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::Time;
use crate::order::Side;
use crate::planted;

/// Risk limits. `None` disables a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RiskLimits {
    /// `max_order_notional`.
    pub max_order_notional: Option<Amount>,
    /// `max_position_notional`: in the worst case, the sum over all instruments.
    pub max_position_notional: Option<Amount>,
    /// `max_open_orders`.
    pub max_open_orders: Option<u32>,
    /// `max_orders_per_minute`: within any 60 seconds.
    pub max_orders_per_minute: Option<u32>,
    /// `price_collar`: the largest distance of a limit price from the mid price, in parts per
    /// million of the mid price.
    pub price_collar_ppm: Option<u32>,
    /// `max_daily_loss`: the loss of equity since the start of the UTC day.
    pub max_daily_loss: Option<Amount>,
    /// `max_drawdown`: the loss from the peak of equity, in parts per million of the peak.
    pub max_drawdown_ppm: Option<u32>,
}

impl RiskLimits {
    /// Whether a limit depends on equity.
    pub const fn watches_equity(&self) -> bool {
        self.max_daily_loss.is_some() || self.max_drawdown_ppm.is_some()
    }
}

/// A loss limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossLimit {
    /// `max_daily_loss`.
    DailyLoss,
    /// `max_drawdown`.
    Drawdown,
}

impl LossLimit {
    /// The key in the configuration.
    pub const fn key(self) -> &'static str {
        match self {
            Self::DailyLoss => "max_daily_loss",
            Self::Drawdown => "max_drawdown",
        }
    }
}

/// Compares equity with the loss limits. Stores the peak and the equity at the start of the UTC
/// day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossWatch {
    last: Amount,
    peak: Amount,
    day: Option<i64>,
    day_start: Amount,
    /// Whether a breach halted the account and the operator has not accepted the loss yet.
    breached: bool,
}

const DAY_NS: i64 = 86_400_000_000_000;

impl LossWatch {
    /// Starts with this equity. The default starts with 0, like a strategy's profit.
    pub fn starting_at(equity: Amount) -> Self {
        Self {
            last: equity,
            peak: equity,
            day: None,
            day_start: equity,
            breached: false,
        }
    }

    /// Records that a breach halted the account or the strategy.
    pub const fn mark_breached(&mut self) {
        self.breached = true;
    }

    /// Called when the operator resumes. A loss that breached a limit counts as accepted, and the
    /// limits then start from this equity. A loss that breached no limit still counts.
    pub fn accept(&mut self, equity: Amount) {
        if self.breached {
            *self = Self::starting_at(equity);
        }
    }

    /// Shifts all stored values by a deposit or withdrawal, which is not profit or loss.
    pub fn shift(&mut self, amount: Amount) {
        self.last += amount;
        self.peak += amount;
        self.day_start += amount;
    }

    /// Records an equity. Returns the limit that it breaches.
    ///
    /// `base` is added to the peak to get the amount of which a drawdown is a fraction. It is 0 for
    /// the account, because the account's equity includes its balance. It is the account's start
    /// equity for a strategy, because a strategy's equity is only its profit.
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

    /// A day starts with the last equity of the day before, not with its own first equity.
    fn begin_day(&mut self, now: Time) {
        let day = Some(now.0.div_euclid(DAY_NS));
        if self.day != day {
            self.day = day;
            self.day_start = self.last;
        }
    }

    /// The limit that an equity would breach. The equity is not recorded: it may be wrong, and must
    /// not become the peak.
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

/// Times of the orders of the last minute.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RateWindow {
    times: VecDeque<Time>,
}

const MINUTE_NS: i64 = 60_000_000_000;

impl RateWindow {
    /// Whether one more order fits, if `pending` orders are counted before it.
    pub fn fits(&self, now: Time, pending: u32, max: u32) -> bool {
        let max = max as usize;
        let taken = self.times.len() + pending as usize;
        if taken < max {
            return true;
        }
        // The order that must leave the window before another one fits.
        let Some(index) = taken.checked_sub(max) else {
            return false;
        };
        match self.times.get(index) {
            Some(time) => now.0 - time.0 >= MINUTE_NS,
            None => false,
        }
    }

    /// The number of orders within the last minute.
    pub fn used(&self, now: Time) -> usize {
        let is_past = |time: &Time| now.0 - time.0 >= MINUTE_NS;
        self.times.len() - self.times.partition_point(is_past)
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

/// Position and open order quantities in one instrument and position side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposure {
    /// Position quantity, signed mantissa.
    pub position: i64,
    /// Quantity of open buy orders, including orders in flight and orders of unknown outcome.
    pub open_buy: i64,
    /// Quantity of open sell orders, counted in the same way.
    pub open_sell: i64,
}

impl Exposure {
    /// The largest absolute position that the open orders can lead to.
    #[inline]
    pub const fn worst_qty(&self) -> i64 {
        let long = self.position.saturating_add(self.open_buy).saturating_abs();
        let short = self
            .position
            .saturating_sub(self.open_sell)
            .saturating_abs();
        if long > short { long } else { short }
    }

    /// The position that the open orders of one side can lead to, positive in their direction. It
    /// is 0 or negative if they only reduce the position.
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
        let used = [59, 60, 89, 90].map(|second| window.used(seconds(second)));
        assert_eq!(used, [2, 1, 1, 0]);
    }

    #[test]
    fn a_rate_limit_of_zero_rejects_every_order() {
        assert!(!RateWindow::default().fits(seconds(0), 0, 0));
    }

    #[test]
    fn the_worst_case_uses_the_side_with_the_larger_position() {
        let exposure = Exposure {
            position: 5,
            open_buy: 2,
            open_sell: 20,
        };
        assert_eq!(exposure.worst_qty(), 15);
    }

    #[test]
    fn midnight_resets_the_daily_loss_but_not_the_drawdown() {
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
