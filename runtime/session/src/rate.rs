//! A limit of bytes or orders over time, which allows bursts. The time is the engine's, so that it depends on
//! recorded inputs alone.

use windvane_model::Time;

/// How much may be used over time: bytes or orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Amount in each second.
    pub per_second: i64,
    /// Amount at once after a long pause.
    pub burst: i64,
}

/// What is left of a [`Rate`].
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    rate: Rate,
    left: i64,
    at: Time,
}

impl Budget {
    /// A budget of which nothing is used.
    pub const fn new(rate: Rate) -> Self {
        Self {
            rate,
            left: rate.burst,
            at: Time(0),
        }
    }

    /// Whether something is left at this time.
    pub fn has_left(&mut self, now: Time) -> bool {
        self.refill(now);
        self.left > 0
    }

    /// Takes this amount if something is left, even if it is more than that. Returns whether it took
    /// it.
    pub fn take(&mut self, now: Time, amount: usize) -> bool {
        let has_left = self.has_left(now);
        if has_left {
            let amount = i64::try_from(amount).unwrap_or(i64::MAX);
            self.left = self.left.saturating_sub(amount);
        }
        has_left
    }

    fn refill(&mut self, now: Time) {
        let passed_us = (now.0.saturating_sub(self.at.0) / 1_000).max(0);
        let gained = passed_us.saturating_mul(self.rate.per_second) / 1_000_000;
        // A shorter time would be lost by rounding.
        if gained == 0 {
            return;
        }
        self.at = now;
        self.left = self.left.saturating_add(gained).min(self.rate.burst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let rate = Rate {
            per_second: 1_000,
            burst: 10_000,
        };
        let mut budget = Budget::new(rate);
        let start = Time::from_millis(1_700_000_000_000);
        assert!(budget.take(start, 10_000));
        assert!(!budget.take(start, 1));
        let taken = (1..=100).filter(|tenth| budget.take(start.plus_ms(tenth * 100), 1_000));
        assert_eq!(taken.count(), 10, "1,000 a second for ten seconds");
        assert!(budget.take(start.plus_ms(60_000), 10_000));
        assert!(!budget.has_left(start.plus_ms(60_000)));
    }
}
