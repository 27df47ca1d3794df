//! Counts the use within one interval. The limits themselves are elsewhere.

use windvane_protocol::route::Surface;

/// When intervals begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Begin {
    /// At whole multiples of their length on the clock.
    #[default]
    Clock,
    /// With the first request after the last interval.
    FirstRequest,
}

/// The use in the current interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    begins_ms: i64,
    used: u32,
}

impl Window {
    /// Adds to the interval that contains `now_ms`, and returns the sum.
    pub(crate) fn add(&mut self, amount: u32, length_ms: i64, now_ms: i64, begin: Begin) -> u32 {
        let begins_ms = match begin {
            Begin::Clock => now_ms - now_ms.rem_euclid(length_ms),
            Begin::FirstRequest if self.is_fresh(length_ms, now_ms) => self.begins_ms,
            Begin::FirstRequest => now_ms,
        };
        if begins_ms != self.begins_ms {
            *self = Self { begins_ms, used: 0 };
        }
        self.used = self.used.saturating_add(amount);
        self.used
    }

    /// Whether its interval has not ended.
    pub(crate) const fn is_fresh(&self, length_ms: i64, now_ms: i64) -> bool {
        self.begins_ms <= now_ms && now_ms < self.begins_ms.saturating_add(length_ms)
    }

    /// Milliseconds until the current interval ends.
    pub(crate) const fn left_ms(&self, length_ms: i64, now_ms: i64) -> u64 {
        let left_ms = self.begins_ms.saturating_add(length_ms) - now_ms;
        if left_ms > 0 {
            left_ms.cast_unsigned()
        } else {
            0
        }
    }
}

/// Order counts of one account, by surface and interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct OrderCounts(Vec<(Surface, i64, Window)>);

impl OrderCounts {
    /// Adds orders to the interval of this length. Returns the sum, and the milliseconds until the
    /// interval ends.
    pub(crate) fn add(
        &mut self,
        surface: Surface,
        length_ms: i64,
        orders: u32,
        now_ms: i64,
        begin: Begin,
    ) -> (u32, u64) {
        let known = self
            .0
            .iter()
            .position(|(s, l, _)| (*s, *l) == (surface, length_ms));
        let at = known.unwrap_or_else(|| {
            self.0.push((surface, length_ms, Window::default()));
            self.0.len() - 1
        });
        let window = &mut self.0[at].2;
        let used = window.add(orders, length_ms, now_ms, begin);
        (used, window.left_ms(length_ms, now_ms))
    }
}
