//! Daily withdrawal limits (UTC) in USD, per user and for all users
//! (docs/interface/chain.md#withdrawal-limits).

use rust_decimal::Decimal;

/// Daily limits (UTC) in USD: for one user, and for all users together.
pub(crate) const USER_DAILY_USD: i64 = 1_000_000;
pub(crate) const TOTAL_DAILY_USD: i64 = 10_000_000;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The amount withdrawn on one day.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    day: i64,
    usd: Decimal,
}

impl Spent {
    /// The amount of the day of this time, in USD.
    pub(crate) fn today(&self, now_ms: i64) -> Decimal {
        if self.day == now_ms.div_euclid(DAY_MS) {
            self.usd
        } else {
            Decimal::ZERO
        }
    }

    /// Adds an amount to the day of this time.
    pub(super) fn add(&mut self, now_ms: i64, usd: Decimal) {
        self.usd = self.today(now_ms) + usd;
        self.day = now_ms.div_euclid(DAY_MS);
    }
}
