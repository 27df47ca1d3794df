//! Counting by interval: what was used since the interval began. No rules.

use windvane_venue::route::Surface;

/// What was used in the running interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// Number of the interval since the epoch.
    interval: i64,
    used: u32,
}

impl Window {
    /// Adds to the interval that `now_ms` lies in; the sum.
    pub(crate) fn add(&mut self, amount: u32, length_ms: i64, now_ms: i64) -> u32 {
        let interval = now_ms.div_euclid(length_ms);
        if interval != self.interval {
            *self = Self { interval, used: 0 };
        }
        self.used = self.used.saturating_add(amount);
        self.used
    }

    /// Whether its interval is still running.
    pub(crate) const fn is_fresh(&self, length_ms: i64, now_ms: i64) -> bool {
        self.interval == now_ms.div_euclid(length_ms)
    }

    /// Milliseconds until the interval ends.
    pub(crate) const fn left_ms(length_ms: i64, now_ms: i64) -> u64 {
        (length_ms - now_ms.rem_euclid(length_ms)).cast_unsigned()
    }
}

/// Orders of one account, by surface and interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct OrderCounts(Vec<(Surface, i64, Window)>);

impl OrderCounts {
    /// Adds orders to the interval of this length; the sum.
    pub(crate) fn add(
        &mut self,
        surface: Surface,
        length_ms: i64,
        orders: u32,
        now_ms: i64,
    ) -> u32 {
        let known = self
            .0
            .iter()
            .position(|(s, l, _)| (*s, *l) == (surface, length_ms));
        let at = known.unwrap_or_else(|| {
            self.0.push((surface, length_ms, Window::default()));
            self.0.len() - 1
        });
        self.0[at].2.add(orders, length_ms, now_ms)
    }
}
