//! What was used of one limit during the last interval. Pure: time is an argument.
//!
//! The venue may count in fixed intervals or in sliding ones; the documents do not say. Counted
//! here is the sliding sum, which keeps both.

use std::collections::VecDeque;

use super::lane::{LANES, Lane, Shares};

/// Parts of an interval that are counted apart: the memory of a window is bounded by it, and
/// what was used is held for at most this part of the interval too long.
const STEPS: u64 = 60;

/// Used amounts of one interval, by lane. What others on the same address used stands apart.
#[derive(Clone, Debug)]
pub struct Window {
    limit: u32,
    interval_ms: u64,
    steps: VecDeque<Step>,
    used: [u32; LANES],
    outside: u32,
}

#[derive(Clone, Debug)]
struct Step {
    /// Time when what was used in this step no longer counts.
    free_at_ms: u64,
    used: [u32; LANES],
    outside: u32,
}

impl Window {
    /// Nothing used yet. An interval of zero is taken as one millisecond.
    pub fn new(limit: u32, interval_ms: u64) -> Self {
        Self {
            limit,
            interval_ms: interval_ms.max(1),
            steps: VecDeque::new(),
            used: [0; LANES],
            outside: 0,
        }
    }

    /// Its length.
    pub const fn interval_ms(&self) -> u64 {
        self.interval_ms
    }

    /// The largest sum in one interval.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// Takes another limit; what was used stays used.
    pub const fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// The sum at `now_ms`, others' use included.
    pub fn used(&mut self, now_ms: u64) -> u32 {
        self.forget(now_ms);
        total(&self.used, self.outside)
    }

    /// When `cost` fits for `lane`: `now_ms` if at once, `None` if it never does.
    pub fn free_at(&mut self, now_ms: u64, lane: Lane, shares: Shares, cost: u32) -> Option<u64> {
        self.forget(now_ms);
        let (mut used, mut outside) = (self.used, self.outside);
        let mut at_ms = now_ms;
        let mut steps = self.steps.iter();
        loop {
            let sum = total(&used, outside).saturating_add(cost);
            let held = shares.held_back(lane, self.limit, &used);
            if sum.saturating_add(held) <= self.limit {
                return Some(at_ms);
            }
            let step = steps.next()?;
            subtract(&mut used, &step.used);
            outside -= step.outside;
            at_ms = step.free_at_ms;
        }
    }

    /// Counts `cost` for `lane`.
    pub fn count(&mut self, now_ms: u64, lane: Lane, cost: u32) {
        self.forget(now_ms);
        self.used[lane as usize] = self.used[lane as usize].saturating_add(cost);
        let step = self.step(now_ms);
        step.used[lane as usize] = step.used[lane as usize].saturating_add(cost);
    }

    /// The venue says that `used` is the sum: if that is more than was counted, others used the
    /// rest. Less is not believed, because the venue's interval may have just begun.
    pub fn correct(&mut self, now_ms: u64, used: u32) {
        let more = used.saturating_sub(self.used(now_ms));
        if more > 0 {
            self.outside = self.outside.saturating_add(more);
            let step = self.step(now_ms);
            step.outside = step.outside.saturating_add(more);
        }
    }

    fn step(&mut self, now_ms: u64) -> &mut Step {
        let length = (self.interval_ms / STEPS).max(1);
        let end_ms = (now_ms / length).saturating_add(1).saturating_mul(length);
        let free_at_ms = end_ms.saturating_add(self.interval_ms);
        // A time before the last step's is counted there: held longer, never shorter.
        if self
            .steps
            .back()
            .is_none_or(|last| last.free_at_ms < free_at_ms)
        {
            self.steps.push_back(Step {
                free_at_ms,
                used: [0; LANES],
                outside: 0,
            });
        }
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }

    fn forget(&mut self, now_ms: u64) {
        while let Some(step) = self.steps.front() {
            if step.free_at_ms > now_ms {
                break;
            }
            subtract(&mut self.used, &step.used);
            self.outside -= step.outside;
            self.steps.pop_front();
        }
    }
}

fn total(used: &[u32; LANES], outside: u32) -> u32 {
    used.iter()
        .fold(outside, |sum, used| sum.saturating_add(*used))
}

fn subtract(from: &mut [u32; LANES], what: &[u32; LANES]) {
    for (from, what) in from.iter_mut().zip(what) {
        *from -= what;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_counts_for_a_whole_interval_and_little_longer() {
        let mut window = Window::new(10, 60_000);
        let free =
            |window: &mut Window, now_ms| window.free_at(now_ms, Lane::Query, Shares::NONE, 10);
        window.count(500, Lane::Query, 10);
        assert_eq!(window.used(60_499), 10);
        assert_eq!(free(&mut window, 600), Some(61_000));
        assert_eq!(window.used(61_000), 0);
        assert_eq!(free(&mut window, 61_000), Some(61_000));
    }

    #[test]
    fn only_more_than_counted_is_believed() {
        let mut window = Window::new(100, 60_000);
        window.count(0, Lane::Place, 5);
        window.correct(10, 3);
        assert_eq!(window.used(10), 5);
        window.correct(20, 40);
        assert_eq!(window.used(20), 40);
        window.count(30, Lane::Place, 1);
        window.correct(40, 41);
        assert_eq!(window.used(40), 41);
    }

    #[test]
    fn more_than_the_limit_never_fits() {
        let mut window = Window::new(5, 1_000);
        assert_eq!(window.free_at(0, Lane::Cancel, Shares::NONE, 6), None);
    }
}
