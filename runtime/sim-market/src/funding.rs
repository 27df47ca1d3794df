//! Mark price, index price and funding of one futures symbol: a cycle of 8 hours, the current rate,
//! and past payments (docs/interface/market-data.md#mark-price-and-funding). Prices and rates have
//! scale 8.

use std::collections::VecDeque;

use super::interval::HOUR_MS;

/// Time between two fundings.
pub const FUNDING_MS: i64 = 8 * HOUR_MS;
/// At most this many fundings are kept: the largest `limit` of the route.
pub const FUNDINGS_KEPT: usize = 1_000;
/// `interestRate` of 8 hours: 0.0001.
pub const INTEREST: i64 = 10_000;
/// `fundingFeeCap`: 0.02.
pub const RATE_CAP: i64 = 2_000_000;

/// One paid funding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Funding {
    /// Time of the payment, ms.
    pub time_ms: i64,
    /// Its rate.
    pub rate: i64,
}

/// Mark price and funding terms of one symbol.
#[derive(Clone, Debug)]
pub struct Funded {
    /// Mark price.
    pub mark: i64,
    /// Index price.
    pub index: i64,
    /// Rate of the current interval.
    pub rate: i64,
    /// Time of the next payment, ms.
    pub next_ms: i64,
    /// Time when mark and index were last computed, ms.
    pub time_ms: i64,
    paid: VecDeque<Funding>,
}

impl Funded {
    /// Starts with a price. The next funding is at 00:00, 08:00 or 16:00 UTC.
    pub fn new(now_ms: i64, price: i64) -> Self {
        Self {
            mark: price,
            index: price,
            rate: INTEREST,
            next_ms: now_ms.div_euclid(FUNDING_MS) * FUNDING_MS + FUNDING_MS,
            time_ms: now_ms,
            paid: VecDeque::new(),
        }
    }

    /// Updates mark, index and rate from the mid price, once a second. The index follows the mid
    /// slowly, the mark is halfway between them, and the rate grows with the mark's premium.
    pub fn follow(&mut self, now_ms: i64, mid: i64) {
        self.index += (mid - self.index) / 64;
        self.mark = self.index + (mid - self.index) / 2;
        let premium = if self.index > 0 {
            i128::from(self.mark - self.index) * 100_000_000 / i128::from(self.index)
        } else {
            0
        };
        let rate = i128::from(INTEREST) + premium;
        let cap = i128::from(RATE_CAP);
        self.rate = rate.clamp(-cap, cap) as i64;
        self.time_ms = now_ms;
    }

    /// Sets the values that a source states.
    pub fn state(&mut self, now_ms: i64, mark: i64, index: i64, rate: i64) {
        self.mark = mark;
        self.index = if index > 0 { index } else { mark };
        self.rate = rate;
        self.time_ms = now_ms;
    }

    /// Pays the fundings that are due; returns whether there was one.
    pub fn pay(&mut self, now_ms: i64) -> bool {
        let due = self.next_ms <= now_ms;
        while self.next_ms <= now_ms {
            self.record(self.next_ms, self.rate);
            self.next_ms += FUNDING_MS;
        }
        due
    }

    /// Records a paid funding.
    pub fn record(&mut self, time_ms: i64, rate: i64) {
        if self.paid.len() == FUNDINGS_KEPT {
            self.paid.pop_front();
        }
        self.paid.push_back(Funding { time_ms, rate });
    }

    /// Paid fundings within the bounds, oldest first. With a start time these are the first ones,
    /// otherwise the last ones.
    pub fn select(
        &self,
        start_ms: Option<i64>,
        end_ms: Option<i64>,
        limit: usize,
    ) -> impl Iterator<Item = &Funding> {
        let after = |bound: i64| self.paid.partition_point(|f| f.time_ms <= bound);
        let from = start_ms.map_or(0, |start| after(start - 1));
        let to = end_ms.map_or(self.paid.len(), after).max(from);
        let from = match (start_ms, end_ms) {
            (Some(_), _) => from,
            (None, _) => to.saturating_sub(limit),
        };
        self.paid.range(from..to).take(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn funding_is_paid_every_eight_hours_and_kept() {
        let mut funded = Funded::new(FUNDING_MS * 5 + 1, 100);
        assert_eq!(funded.next_ms, FUNDING_MS * 6);
        assert!(!funded.pay(FUNDING_MS * 6 - 1));
        assert!(funded.pay(FUNDING_MS * 7));
        assert_eq!(funded.next_ms, FUNDING_MS * 8);
        let times = |start, end, limit| -> Vec<i64> {
            let fundings = funded.select(start, end, limit);
            fundings.map(|f| f.time_ms / FUNDING_MS).collect()
        };
        assert_eq!(times(None, None, 1), [7]);
        assert_eq!(times(Some(FUNDING_MS * 6), None, 1), [6]);
        assert_eq!(times(None, Some(FUNDING_MS * 6), 5), [6]);
        assert!(times(Some(FUNDING_MS * 8), None, 5).is_empty());
    }

    #[test]
    fn the_mark_lies_between_index_and_mid_and_the_rate_is_capped() {
        let mut funded = Funded::new(0, 1_000_000);
        funded.follow(1000, 1_064_000);
        assert_eq!((funded.index, funded.mark), (1_001_000, 1_032_500));
        assert_eq!(funded.rate, RATE_CAP);
    }
}
