//! Volume-weighted average price.

use super::{Fixed, Window};

/// `sum(price * volume) / sum(volume)` since the start or the last reset, rounded to the nearest
/// 1/65536.
#[derive(Clone, Debug, Default)]
pub struct Vwap {
    turnover: i128,
    volume: i128,
}

impl Vwap {
    /// An average without trades.
    pub const fn new() -> Self {
        Self {
            turnover: 0,
            volume: 0,
        }
    }

    /// Adds a trade.
    #[inline]
    pub fn update(&mut self, price: i64, volume: i64) -> Option<Fixed> {
        self.turnover += i128::from(price) * i128::from(volume);
        self.volume += i128::from(volume);
        self.value()
    }

    /// The average; `None` without volume.
    pub fn value(&self) -> Option<Fixed> {
        (self.volume > 0).then(|| Fixed::ratio(self.turnover, self.volume))
    }

    /// Removes all trades, for example at the start of a day.
    pub const fn reset(&mut self) {
        *self = Self::new();
    }
}

/// The volume-weighted average price over the last `length` trades or bars.
#[derive(Clone, Debug)]
pub struct RollingVwap {
    total: Vwap,
    window: Window<(i64, i64)>,
}

impl RollingVwap {
    /// An average over `length` trades or bars; 0 counts as 1.
    pub fn new(length: u32) -> Self {
        Self {
            total: Vwap::new(),
            window: Window::new(length),
        }
    }

    /// Adds a trade.
    pub fn update(&mut self, price: i64, volume: i64) -> Option<Fixed> {
        self.total.update(price, volume);
        if let Some((price, volume)) = self.window.push((price, volume)) {
            self.total.update(price, -volume);
        }
        self.total.value()
    }

    /// The average; `None` without volume.
    pub fn value(&self) -> Option<Fixed> {
        self.total.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(trades: &[(i64, i64)]) -> Option<Fixed> {
        let volume: i128 = trades.iter().map(|t| i128::from(t.1)).sum();
        let turnover = trades
            .iter()
            .map(|t| i128::from(t.0) * i128::from(t.1))
            .sum();
        (volume > 0).then(|| Fixed::ratio(turnover, volume))
    }

    proptest! {
        #[test]
        fn both_weigh_by_volume(
            trades in prop::collection::vec((1_i64..1_000_000, 0_i64..1_000_000), 1..60),
            length in 1_usize..20,
        ) {
            let (mut all, mut rolling) = (Vwap::new(), RollingVwap::new(length as u32));
            for (index, (price, volume)) in trades.iter().enumerate() {
                prop_assert_eq!(all.update(*price, *volume), naive(&trades[..=index]));
                let start = (index + 1).saturating_sub(length);
                let want = naive(&trades[start..=index]);
                prop_assert_eq!(rolling.update(*price, *volume), want);
            }
        }
    }

    #[test]
    fn a_reset_forgets() {
        let mut vwap = Vwap::new();
        vwap.update(10, 5);
        vwap.reset();
        assert_eq!(vwap.update(20, 1), Some(Fixed::new(20)));
    }
}
