//! The highest and the lowest of the last values.

use std::collections::VecDeque;

/// Maximum and minimum of the last `length` values, exact, in amortised constant time.
#[derive(Clone, Debug)]
pub struct Extremes {
    length: u64,
    seen: u64,
    /// Decreasing values with their numbers. The first one is the maximum.
    highs: VecDeque<(u64, i64)>,
    /// Increasing values with their numbers. The first one is the minimum.
    lows: VecDeque<(u64, i64)>,
}

impl Extremes {
    /// The extremes of `length` values; 0 counts as 1.
    pub fn new(length: u32) -> Self {
        let length = length.max(1);
        let queue = || VecDeque::with_capacity(length as usize + 1);
        Self {
            length: u64::from(length),
            seen: 0,
            highs: queue(),
            lows: queue(),
        }
    }

    /// Adds a value. Returns minimum and maximum, or `None` until `length` values were added.
    pub fn update(&mut self, value: i64) -> Option<(i64, i64)> {
        self.seen += 1;
        while self.highs.back().is_some_and(|(_, high)| *high <= value) {
            self.highs.pop_back();
        }
        while self.lows.back().is_some_and(|(_, low)| *low >= value) {
            self.lows.pop_back();
        }
        self.highs.push_back((self.seen, value));
        self.lows.push_back((self.seen, value));
        for queue in [&mut self.highs, &mut self.lows] {
            if queue
                .front()
                .is_some_and(|(number, _)| number + self.length <= self.seen)
            {
                queue.pop_front();
            }
        }
        self.value()
    }

    /// Minimum and maximum; `None` until `length` values were added.
    pub fn value(&self) -> Option<(i64, i64)> {
        if self.seen < self.length {
            return None;
        }
        Some((self.lows.front()?.1, self.highs.front()?.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_are_those_of_the_window(
            values in prop::collection::vec(-20_i64..20, 1..100),
            length in 1_usize..12,
        ) {
            let mut extremes = Extremes::new(length as u32);
            for (index, value) in values.iter().enumerate() {
                let got = extremes.update(*value);
                let want = (index + 1 >= length).then(|| {
                    let window = &values[index + 1 - length..=index];
                    (*window.iter().min().unwrap(), *window.iter().max().unwrap())
                });
                prop_assert_eq!(got, want);
            }
        }
    }
}
