//! A time series in constant memory: if it has too many buckets, their width is doubled.

use windvane_model::ids::Time;

/// Largest number of buckets in a series.
pub(super) const BUCKETS_MAX: usize = 2000;

/// The values within one bucket of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Index of the bucket: it starts `index` widths after the series' start.
    index: u64,
    /// Time of the last value.
    pub time: Time,
    /// Smallest value.
    pub min: i128,
    /// Largest value.
    pub max: i128,
    /// Last value.
    pub last: i128,
}

/// Values over time, reduced to buckets. Each bucket keeps its extremes and its last value, so that
/// no peak is lost.
#[derive(Clone, Debug, Default)]
pub struct Series {
    start: Option<Time>,
    /// The width of a bucket is `2^width_bits` nanoseconds.
    width_bits: u32,
    buckets: Vec<Bucket>,
}

impl Series {
    /// Adds the next value. A time before the last one counts as the last time.
    pub fn push(&mut self, time: Time, value: i128) {
        let start = *self.start.get_or_insert(time);
        let time = self.buckets.last().map_or(time, |last| last.time.max(time));
        let mut index = (time.0.saturating_sub(start.0) as u64) >> self.width_bits;
        if self.buckets.last().is_none_or(|last| last.index != index) {
            while self.buckets.len() >= BUCKETS_MAX {
                self.widen();
                index = (time.0.saturating_sub(start.0) as u64) >> self.width_bits;
            }
        }
        match self.buckets.last_mut() {
            Some(last) if last.index == index => {
                last.time = time;
                last.min = last.min.min(value);
                last.max = last.max.max(value);
                last.last = value;
            }
            _ => self.buckets.push(Bucket {
                index,
                time,
                min: value,
                max: value,
                last: value,
            }),
        }
    }

    /// The buckets, oldest first, without empty ones.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// The smallest and the largest value.
    pub fn range(&self) -> Option<(i128, i128)> {
        let min = self.buckets.iter().map(|bucket| bucket.min).min()?;
        let max = self.buckets.iter().map(|bucket| bucket.max).max()?;
        Some((min, max))
    }

    /// Doubles the bucket width and merges neighbours.
    fn widen(&mut self) {
        self.width_bits += 1;
        let mut kept = 0;
        for i in 0..self.buckets.len() {
            let mut bucket = self.buckets[i];
            bucket.index >>= 1;
            if kept > 0 && self.buckets[kept - 1].index == bucket.index {
                let into = &mut self.buckets[kept - 1];
                into.time = bucket.time;
                into.min = into.min.min(bucket.min);
                into.max = into.max.max(bucket.max);
                into.last = bucket.last;
            } else {
                self.buckets[kept] = bucket;
                kept += 1;
            }
        }
        self.buckets.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_values_are_kept_unchanged() {
        let mut series = Series::default();
        for second in 0..10 {
            series.push(Time(second * 1_000_000_000), second.into());
        }
        let values: Vec<i128> = series.buckets().iter().map(|bucket| bucket.last).collect();
        assert_eq!(values, (0..10).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn memory_is_bounded_and_no_extreme_is_lost(
            steps in proptest::collection::vec((0_i64..10_000_000_000, -1_000_i128..1_000), 1..6000)
        ) {
            let mut series = Series::default();
            let mut time = Time(0);
            for (wait, value) in &steps {
                time = time.plus_ns(*wait);
                series.push(time, *value);
                prop_assert!(series.buckets().len() <= BUCKETS_MAX);
            }
            let values = steps.iter().map(|(_, value)| *value);
            let buckets = series.buckets();
            prop_assert_eq!(buckets.iter().map(|b| b.max).max(), values.clone().max());
            prop_assert_eq!(buckets.iter().map(|b| b.min).min(), values.clone().min());
            prop_assert_eq!(buckets.last().map(|b| b.last), values.clone().next_back());
            prop_assert!(buckets.windows(2).all(|pair| pair[0].time < pair[1].time));
        }
    }
}
