//! Drawdown and Sharpe ratio of the equity curve. The drawdown uses integers. The Sharpe ratio uses
//! floating point; it is the only result that does, and no amount of money does.

use windvane_model::decimal::{Amount, div_half_even};

/// Seconds in a year of 365 days, because the venue never closes.
const SECONDS_PER_YEAR: f64 = 31_536_000.0;
/// Decimal places of a drawdown.
pub const DRAWDOWN_SCALE: u8 = 8;
const DRAWDOWN_ONE: i128 = 100_000_000;

/// Follows the equity of an account, one value per virtual second.
#[derive(Clone, Debug, Default)]
pub struct EquityCurve {
    last: Option<Amount>,
    peak: Amount,
    /// Lowest equity since the peak. Only a lower equity can increase the largest drawdown, so this
    /// saves a division in most seconds.
    trough: Amount,
    max_drawdown: i128,
    returns: Moments,
}

impl EquityCurve {
    /// Adds the equity of the next second.
    pub fn push(&mut self, equity: Amount) {
        if let Some(last) = self.last.filter(|last| last.0 > 0) {
            let change = (equity - last).0 as f64 / last.0 as f64;
            self.returns.push(change);
        }
        if self.last.is_none() || equity > self.peak {
            (self.peak, self.trough) = (equity, equity);
        }
        self.last = Some(equity);
        if equity < self.trough {
            self.trough = equity;
            self.max_drawdown = self.max_drawdown.max(self.drawdown());
        }
    }

    /// The current drawdown: the fall of the last equity from the peak, as a fraction of the peak
    /// at scale [`DRAWDOWN_SCALE`], rounded half to even. It is 0 while the peak is not positive,
    /// and above 1 if the equity is negative.
    pub fn drawdown(&self) -> i128 {
        match self.last {
            Some(last) if self.peak.0 > 0 && last < self.peak => {
                let fall = (self.peak - last).0.saturating_mul(DRAWDOWN_ONE);
                div_half_even(fall, self.peak.0)
            }
            _ => 0,
        }
    }

    /// The largest drawdown so far, as a fraction at scale [`DRAWDOWN_SCALE`].
    pub fn max_drawdown(&self) -> i128 {
        self.max_drawdown
    }

    /// Annualised Sharpe ratio of the returns of consecutive seconds, with a risk-free rate of 0:
    /// `mean(r) / stddev(r) * sqrt(31,536,000)`, where `r = equity / previous equity - 1` and
    /// `stddev` is the sample standard deviation. It can be recomputed from `equity.csv`. `None`
    /// with fewer than two returns or if equity never changed. Rounded to 4 decimals.
    pub fn sharpe(&self) -> Option<f64> {
        let deviation = self.returns.deviation()?;
        (deviation > 0.0).then(|| {
            let ratio = self.returns.mean / deviation * SECONDS_PER_YEAR.sqrt();
            // Adding zero turns negative zero into zero.
            (ratio * 10_000.0).round() / 10_000.0 + 0.0
        })
    }
}

/// Running mean and sum of squared deviations (Welford).
#[derive(Clone, Debug, Default)]
struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn push(&mut self, value: f64) {
        self.count += 1;
        let delta = value - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (value - self.mean);
    }

    fn deviation(&self) -> Option<f64> {
        (self.count >= 2).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(whole: i128) -> Amount {
        Amount(whole * 100_000_000)
    }

    #[test]
    fn drawdown_is_measured_from_the_highest_peak() {
        let mut curve = EquityCurve::default();
        let drawdowns: Vec<i128> = [100, 80, 120, 90, 110]
            .into_iter()
            .map(|equity| {
                curve.push(amount(equity));
                curve.drawdown()
            })
            .collect();
        assert_eq!(drawdowns, [0, 20_000_000, 0, 25_000_000, 8_333_333]);
        assert_eq!(curve.max_drawdown(), 25_000_000);
    }

    #[test]
    fn a_constant_curve_has_no_sharpe_ratio() {
        let mut curve = EquityCurve::default();
        for _ in 0..10 {
            curve.push(amount(100));
        }
        assert_eq!(curve.sharpe(), None);
        assert_eq!(curve.max_drawdown(), 0);
    }

    #[test]
    fn sharpe_is_the_annualised_ratio_of_per_second_returns() {
        let mut curve = EquityCurve::default();
        for equity in [100, 110, 99] {
            curve.push(amount(equity));
        }
        // Returns 0.1 and -0.1: mean 0.
        assert_eq!(curve.sharpe().map(f64::abs), Some(0.0));
        let mut rising = EquityCurve::default();
        for equity in [100, 200, 200] {
            rising.push(amount(equity));
        }
        // Returns 1 and 0: mean 0.5, deviation sqrt(0.5), times sqrt(31,536,000).
        assert_eq!(rising.sharpe(), Some(3970.8941));
    }

    #[test]
    fn an_account_without_money_has_no_drawdown() {
        let mut curve = EquityCurve::default();
        for equity in [0, -5, 5] {
            curve.push(amount(equity));
            assert_eq!(curve.drawdown(), 0);
        }
        assert_eq!(curve.sharpe(), None);
    }
}
