//! Distributions of latencies, waiting times and quantities in constant memory.

use serde::Serialize;

/// Sub-buckets per power of two. The relative error of a value is at most 1/32, about 3 percent.
const SUB_BITS: u32 = 5;
const SUB: usize = 1 << SUB_BITS;
const BUCKETS: usize = (64 - SUB_BITS as usize) * SUB;

/// Counts non-negative integers in buckets whose width grows with the value. Negative values count
/// as 0. Values below 64 are exact, larger ones have an error of at most 1/32.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Box<[u64; BUCKETS]>,
    count: u64,
    sum: i128,
    min: i64,
    max: i64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: Box::new([0; BUCKETS]),
            count: 0,
            sum: 0,
            min: i64::MAX,
            max: 0,
        }
    }
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: i64) {
        let value = value.max(0);
        self.buckets[bucket_of(value as u64)] += 1;
        self.count += 1;
        self.sum += i128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Number of counted values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The figures of the distribution. `None` if nothing was counted.
    pub fn quantiles(&self) -> Option<Quantiles> {
        (self.count > 0).then(|| Quantiles {
            count: self.count,
            min: self.min,
            p50: self.quantile(50, 100),
            p90: self.quantile(90, 100),
            p99: self.quantile(99, 100),
            max: self.max,
            mean: (self.sum / i128::from(self.count)) as i64,
        })
    }

    /// Upper bound of the bucket that contains the value of this rank, at most the maximum.
    fn quantile(&self, numerator: u64, denominator: u64) -> i64 {
        let rank = (u128::from(self.count) * u128::from(numerator))
            .div_ceil(u128::from(denominator)) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_bound(bucket).clamp(self.min, self.max);
            }
        }
        self.max
    }
}

const fn bucket_of(value: u64) -> usize {
    if value < SUB as u64 {
        return value as usize;
    }
    let exponent = value.ilog2();
    let shift = exponent - SUB_BITS;
    ((shift + 1) as usize) * SUB + (value >> shift) as usize - SUB
}

const fn upper_bound(bucket: usize) -> i64 {
    if bucket < SUB {
        return bucket as i64;
    }
    let shift = (bucket / SUB - 1) as u32;
    let low = ((bucket % SUB + SUB) as i64) << shift;
    low + ((1_i64 << shift) - 1)
}

/// Figures of a distribution. p50, p90 and p99 are at most 1/32 above the true value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// Number of values.
    pub count: u64,
    /// Smallest.
    pub min: i64,
    /// Median.
    pub p50: i64,
    /// 90 percent of the values are not above it.
    pub p90: i64,
    /// 99 percent of the values are not above it.
    pub p99: i64,
    /// Largest.
    pub max: i64,
    /// Mean, rounded towards 0.
    pub mean: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_distribution_has_no_figures() {
        assert_eq!(Histogram::default().quantiles(), None);
    }

    #[test]
    fn small_values_are_exact() {
        let mut histogram = Histogram::default();
        for value in 1..=10 {
            histogram.record(value);
        }
        let quantiles = histogram.quantiles().unwrap();
        let figures = (
            quantiles.min,
            quantiles.p50,
            quantiles.p90,
            quantiles.p99,
            quantiles.max,
        );
        assert_eq!(figures, (1, 5, 9, 10, 10));
        assert_eq!(quantiles.mean, 5);
    }

    proptest! {
        #[test]
        fn bucket_bounds_are_at_most_a_32nd_above_a_value(value in 0_i64..=i64::MAX) {
            let bound = upper_bound(bucket_of(value as u64));
            prop_assert!(bound >= value);
            prop_assert!(i128::from(bound - value) * 32 <= i128::from(value));
        }
    }
}
