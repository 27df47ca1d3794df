//! The opening orders of the last minute, which the keeper counts for the next signer. Otherwise a signer
//! that is replaced would begin to count anew.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use windvane_signer::COUNTED_MS;

const COUNTED: Duration = Duration::from_millis(COUNTED_MS);
/// Orders of this time share an entry, so that the list stays short.
const TOGETHER: Duration = Duration::from_secs(1);

/// What the keeper knows of opening orders.
#[derive(Debug)]
pub(super) struct Opened {
    /// When the first order of an entry was counted, and how many.
    entries: VecDeque<(Instant, u32)>,
    /// Orders of an earlier keeper are not known until this time.
    known_from: Option<Instant>,
}

impl Opened {
    /// Begins to count. With `is_first`, no keeper of the run was before this one.
    pub(super) fn new(is_first: bool) -> Self {
        Self {
            entries: VecDeque::new(),
            known_from: (!is_first).then(|| Instant::now() + COUNTED),
        }
    }

    pub(super) fn add(&mut self, now: Instant, count: u32) {
        let is_old = |entry: &mut (Instant, u32)| now.duration_since(entry.0) > COUNTED + TOGETHER;
        while self.entries.pop_front_if(is_old).is_some() {}
        match self.entries.back_mut() {
            Some((at, sum)) if now.duration_since(*at) < TOGETHER => {
                *sum = sum.saturating_add(count);
            }
            _ => self.entries.push_back((now, count)),
        }
    }

    /// The orders for the next signer; `None` if they are not known. Each counts as the newest of its
    /// entry.
    pub(super) fn orders(&self, now: Instant) -> Option<OpenedOrders> {
        if self.known_from.is_some_and(|from| now < from) {
            return None;
        }
        let entries = self.entries.iter().map(|(at, count)| {
            let age = now.duration_since(*at).saturating_sub(TOGETHER);
            (u64::try_from(age.as_millis()).unwrap_or(u64::MAX), *count)
        });
        let entries = entries.filter(|(age_ms, _)| *age_ms <= COUNTED_MS);
        Some(OpenedOrders(entries.collect()))
    }
}

/// Opening orders of the last minute: their age in milliseconds, and how many.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OpenedOrders(pub(super) Vec<(u64, u32)>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_of_the_last_minute_are_known_to_the_next_signer() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut opened = Opened::new(true);
        assert_eq!(opened.orders(start), Some(OpenedOrders::default()));
        for (ms, count) in [(0, 1), (10, 2), (2_000, 1)] {
            opened.add(at(ms), count);
        }
        let orders = opened.orders(at(3_000)).unwrap();
        assert_eq!(orders.0, [(2_000, 3), (0, 1)]);
        let orders = opened.orders(at(61_000)).unwrap();
        assert_eq!(orders.0, [(58_000, 1)]);
        opened.add(at(70_000), 1);
        assert_eq!(opened.entries.len(), 1);
    }

    #[test]
    fn orders_of_an_earlier_keeper_are_not_known() {
        let opened = Opened::new(false);
        let now = Instant::now();
        assert_eq!(opened.orders(now), None);
        assert!(opened.orders(now + COUNTED).is_some());
    }
}
