//! Use of one limit during the last interval. Time is an argument.
//!
//! The documents do not say whether the venue counts in fixed or in sliding intervals. Our own use
//! is counted as a sliding sum, which satisfies both. Use by other programs on the address is known
//! only from the venue's headers, and the newest header is the best evidence of it.

use std::collections::VecDeque;

use windvane_protocol::planted;

use super::lane::{LANES, Lane, Shares};

/// A window counts this many steps of an interval separately. This bounds its memory. Our own use
/// counts for at most one step too long.
const STEPS: u64 = 60;
/// Headers may arrive late and out of order. A lower value replaces a higher one only after this
/// time.
const LATE_MS: u64 = 5_000;
/// After an unexplained 429, ordinary requests stay below this percentage of the limit. After
/// another one, they stay below this percentage of that lower limit.
const CAUTION_PERCENT: u64 = 75;
/// The lower limit applies for this many intervals.
const CAUTION_INTERVALS: u64 = 10;

/// Used amounts of one interval, by lane, and the use by others on the same address.
#[derive(Clone, Debug)]
pub struct Window {
    limit: u32,
    interval_ms: u64,
    steps: VecDeque<Step>,
    used: [u32; LANES],
    other_use: VecDeque<OtherUse>,
    /// A lower limit for ordinary requests, and the time until which it applies.
    caution: Option<(u32, u64)>,
}

#[derive(Clone, Debug)]
struct Step {
    /// Time when the use of this step no longer counts.
    free_at_ms: u64,
    used: [u32; LANES],
}

/// Use by others, as one header reported it.
#[derive(Clone, Copy, Debug)]
struct OtherUse {
    at_ms: u64,
    amount: u32,
}

impl Window {
    /// A window of which nothing is used. An interval of zero counts as one millisecond.
    pub fn new(limit: u32, interval_ms: u64) -> Self {
        Self {
            limit,
            interval_ms: interval_ms.max(1),
            steps: VecDeque::new(),
            used: [0; LANES],
            other_use: VecDeque::new(),
            caution: None,
        }
    }

    /// Its length in milliseconds.
    pub const fn interval_ms(&self) -> u64 {
        self.interval_ms
    }

    /// The largest sum in one interval.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// Sets another limit and keeps the counts.
    pub const fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// The sum at `now_ms`, including use by others.
    pub fn used(&mut self, now_ms: u64) -> u32 {
        self.forget(now_ms);
        total(&self.used, self.other_use_at(now_ms))
    }

    /// Use by others, according to the headers.
    pub fn used_by_others(&mut self, now_ms: u64) -> u32 {
        self.forget(now_ms);
        self.other_use_at(now_ms)
    }

    /// The part of the limit that a lane may still use at `now_ms`.
    pub fn left(&mut self, now_ms: u64, lane: Lane, shares: Shares) -> u32 {
        let sum = self.used(now_ms);
        let limit = self.limit_at(now_ms);
        let open = limit.saturating_sub(self.other_use_at(now_ms));
        let held = shares.held_back(lane, (limit, open), &self.used);
        limit.saturating_sub(sum).saturating_sub(held)
    }

    /// The earliest time at which `cost` fits for `lane`: `now_ms` if it fits now, `None` if it
    /// never fits.
    pub fn free_at(&mut self, now_ms: u64, lane: Lane, shares: Shares, cost: u32) -> Option<u64> {
        self.forget(now_ms);
        let fits = |window: &Self, at_ms: u64, used: &[u32; LANES]| {
            let others = window.other_use_at(at_ms);
            let sum = total(used, others).saturating_add(cost);
            let limit = window.limit_at(at_ms);
            let open = limit.saturating_sub(others);
            sum.saturating_add(shares.held_back(lane, (limit, open), used)) <= limit
        };
        let mut used = self.used;
        if fits(self, now_ms, &used) {
            return Some(now_ms);
        }
        let others = self.other_use.iter().map(|seen| self.ends(*seen));
        let others = others.chain(self.caution.map(|(_, until_ms)| until_ms));
        let mut moments: Vec<u64> = others
            .chain(self.steps.iter().map(|step| step.free_at_ms))
            .collect();
        moments.sort_unstable();
        let mut steps = self.steps.iter().peekable();
        for at_ms in moments {
            while let Some(step) = steps.next_if(|step| step.free_at_ms <= at_ms) {
                subtract(&mut used, &step.used);
            }
            if fits(self, at_ms, &used) {
                return Some(at_ms);
            }
        }
        None
    }

    /// Counts `cost` for `lane`.
    pub fn count(&mut self, now_ms: u64, lane: Lane, cost: u32) {
        self.forget(now_ms);
        self.used[lane as usize] = self.used[lane as usize].saturating_add(cost);
        let step = self.step(now_ms);
        step.used[lane as usize] = step.used[lane as usize].saturating_add(cost);
    }

    /// The venue reports `used` as the sum. The part beyond our own use belongs to others.
    ///
    /// A sum that is lower than before is accepted once `LATE_MS` have passed, because the venue's
    /// interval has restarted. Our own use is never lowered, because the venue's interval may be
    /// shorter than ours. A sum above a lower limit that a refusal caused shows that the refusal
    /// had another cause.
    pub fn correct(&mut self, now_ms: u64, used: u32) {
        if planted!(OthersUsageIgnored) {
            return;
        }
        self.forget(now_ms);
        if used > self.limit_at(now_ms) {
            self.caution = None;
        }
        let own = total(&self.used, 0);
        self.see(now_ms, used.saturating_sub(own));
    }

    /// The venue refused a request for this limit, although our count is below it. If no header
    /// explains that, ordinary requests keep below a lower limit for some intervals: either others
    /// use the rest, or the limit is lower than assumed.
    pub fn refused(&mut self, now_ms: u64) {
        if self.used(now_ms) >= self.limit || !self.other_use.is_empty() {
            return;
        }
        let lower = u64::from(self.limit_at(now_ms)) * CAUTION_PERCENT / 100;
        let lower = u32::try_from(lower).unwrap_or(u32::MAX);
        let until_ms = now_ms.saturating_add(self.interval_ms * CAUTION_INTERVALS);
        self.caution = Some((lower.max(self.limit / 10), until_ms));
    }

    fn see(&mut self, at_ms: u64, amount: u32) {
        self.other_use
            .retain(|seen| seen.at_ms.saturating_add(LATE_MS) > at_ms);
        // A lower value that arrived before a higher one never counts.
        while self
            .other_use
            .back()
            .is_some_and(|seen| seen.amount <= amount)
        {
            self.other_use.pop_back();
        }
        self.other_use.push_back(OtherUse { at_ms, amount });
    }

    const fn ends(&self, seen: OtherUse) -> u64 {
        seen.at_ms.saturating_add(self.interval_ms)
    }

    fn other_use_at(&self, at_ms: u64) -> u32 {
        let counts = |seen: &&OtherUse| self.ends(**seen) > at_ms;
        let seen = self.other_use.iter().filter(counts);
        seen.map(|seen| seen.amount).max().unwrap_or(0)
    }

    fn limit_at(&self, at_ms: u64) -> u32 {
        match self.caution {
            Some((limit, until_ms)) if at_ms < until_ms => limit.min(self.limit),
            _ => self.limit,
        }
    }

    fn step(&mut self, now_ms: u64) -> &mut Step {
        let length = (self.interval_ms / STEPS).max(1);
        let end_ms = (now_ms / length).saturating_add(1).saturating_mul(length);
        let free_at_ms = end_ms.saturating_add(self.interval_ms);
        // A time before the last step counts in the last step, so that it is held longer, never
        // shorter.
        if self
            .steps
            .back()
            .is_none_or(|last| last.free_at_ms < free_at_ms)
        {
            self.steps.push_back(Step {
                free_at_ms,
                used: [0; LANES],
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
            self.steps.pop_front();
        }
        let interval_ms = self.interval_ms;
        self.other_use
            .retain(|seen| seen.at_ms.saturating_add(interval_ms) > now_ms);
        if self.caution.is_some_and(|(_, until_ms)| until_ms <= now_ms) {
            self.caution = None;
        }
    }
}

fn total(used: &[u32; LANES], other_use: u32) -> u32 {
    used.iter()
        .fold(other_use, |sum, used| sum.saturating_add(*used))
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
    fn own_use_counts_for_slightly_more_than_an_interval() {
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
    fn a_header_above_own_use_shows_use_by_others() {
        let mut window = Window::new(100, 60_000);
        window.count(0, Lane::Place, 5);
        window.correct(10, 3);
        assert_eq!(window.used(10), 5);
        window.correct(20, 40);
        assert_eq!((window.used(20), window.used_by_others(20)), (40, 35));
        window.count(30, Lane::Place, 1);
        window.correct(40, 41);
        assert_eq!(window.used(40), 41);
    }

    #[test]
    fn a_late_header_does_not_replace_a_newer_one() {
        let mut window = Window::new(100, 60_000);
        window.correct(0, 80);
        window.correct(100, 20);
        assert_eq!(window.used(100), 80);
        // The venue's interval restarted: its sums are lower from now on.
        window.correct(4_000, 25);
        window.correct(5_100, 26);
        assert_eq!(window.used(5_100), 26);
    }

    #[test]
    fn use_by_others_counts_for_one_interval_after_the_last_header() {
        let mut window = Window::new(100, 60_000);
        window.correct(1_000, 80);
        assert_eq!(window.used(60_999), 80);
        assert_eq!(window.used(61_000), 0);
        window.correct(70_000, 80);
        let free = window.free_at(71_000, Lane::Query, Shares::NONE, 30);
        assert_eq!(free, Some(130_000));
    }

    #[test]
    fn a_refusal_without_headers_lowers_ordinary_limits() {
        let mut window = Window::new(2_400, 60_000);
        let at_once = |window: &mut Window, now_ms, cost| {
            window.free_at(now_ms, Lane::Query, Shares::NONE, cost) == Some(now_ms)
        };
        window.refused(1_000);
        assert!(at_once(&mut window, 1_000, 1_800));
        assert!(!at_once(&mut window, 1_000, 1_801));
        window.refused(2_000);
        assert!(!at_once(&mut window, 2_000, 1_351));
        assert!(at_once(&mut window, 602_000, 2_400));
        // The sum exceeds the lower limit and the venue still responds, so the refusal had another
        // cause.
        window.refused(602_000);
        window.correct(602_500, 1_900);
        assert!(at_once(&mut window, 602_500, 500));
        // A header explains the refusal.
        window.correct(603_000, 2_390);
        window.refused(603_000);
        assert!(at_once(&mut window, 664_000, 2_400));
    }

    #[test]
    fn more_than_the_limit_never_fits() {
        let mut window = Window::new(5, 1_000);
        assert_eq!(window.free_at(0, Lane::Cancel, Shares::NONE, 6), None);
    }
}
