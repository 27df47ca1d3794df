//! A strategy's account of processor time over time, as a token bucket. It has no clock: the caller
//! states the time and the use.

/// The burst is this part of a second at the full rate: 75 ms at 25 %.
const BURST_MS_PER_PERCENT: i64 = 3;
/// Credit beyond the burst for a new instance. Its first events come together, and its code is not
/// in memory yet. It is given once.
const START_CREDIT_NS: i64 = 250_000_000;
const NS_PER_MS: i64 = 1_000_000;

/// The account of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuAccount {
    percent: i64,
    /// Processor time that the strategy may still use, nanoseconds.
    left: i64,
    /// When `left` was computed, nanoseconds of the caller's clock.
    at: i64,
    /// When the account was full last, and the use since then.
    full_at: i64,
    used: i64,
    recent: Recent,
}

/// Length of a period of [`Recent`], nanoseconds.
const PERIOD_NS: i64 = 10_000_000_000;

/// The use in the present period and in the one before it, to show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Recent {
    /// When the present period began, nanoseconds of the caller's clock.
    begin: i64,
    used: i64,
    /// The length of the period before it and the use in it, nanoseconds.
    before: (i64, i64),
}

impl Recent {
    fn charge(&mut self, now_ns: i64, used_ns: i64) {
        self.used = self.used.saturating_add(used_ns);
        let length = now_ns.saturating_sub(self.begin);
        if length >= PERIOD_NS {
            self.before = (length, self.used);
            (self.begin, self.used) = (now_ns, 0);
        }
    }

    /// Percent of one processor, rounded up.
    fn percent(&self, now_ns: i64) -> u64 {
        let present = (now_ns.saturating_sub(self.begin), self.used);
        let (length, used) = if present.0 >= PERIOD_NS {
            present
        } else {
            let (length, used) = self.before;
            (
                present.0.saturating_add(length),
                present.1.saturating_add(used),
            )
        };
        let (length, used) = (length.max(0).unsigned_abs(), used.max(0).unsigned_abs());
        used.saturating_mul(100).div_ceil(length.max(1))
    }
}

/// What an account shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Use over the last 10 to 20 seconds, percent of one processor, rounded up.
    pub(crate) used_percent: u64,
    pub(crate) limit_percent: u64,
    /// Processor time that may be used at once, milliseconds.
    pub(crate) left_ms: i64,
}

/// A strategy used more than its account allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overuse {
    used_ns: i64,
    within_ns: i64,
    percent: i64,
}

impl std::fmt::Display for Overuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (used, within) = (self.used_ns / NS_PER_MS, self.within_ns / NS_PER_MS);
        let (percent, burst) = (self.percent, self.percent * BURST_MS_PER_PERCENT);
        write!(
            f,
            "cpu: it used {used} ms of processor time within {within} ms; limits.cpu_percent \
             allows {percent} % of one processor, and {burst} ms at once. Do less work in each \
             callback or set fewer timers, or raise limits.cpu_percent and reload"
        )
    }
}

impl CpuAccount {
    /// The account of a new instance, with this share of one processor.
    pub(crate) fn new(percent: u32, now_ns: i64) -> Self {
        let percent = i64::from(percent);
        Self {
            percent,
            left: percent * BURST_MS_PER_PERCENT * NS_PER_MS + START_CREDIT_NS,
            at: now_ns,
            full_at: now_ns,
            used: 0,
            recent: Recent {
                begin: now_ns,
                ..Recent::default()
            },
        }
    }

    const fn burst(&self) -> i64 {
        self.percent * BURST_MS_PER_PERCENT * NS_PER_MS
    }

    /// Changes the share of one processor.
    pub(crate) fn set_percent(&mut self, percent: u32) {
        self.percent = i64::from(percent);
    }

    /// The use and the credit at `now_ns`. It changes nothing.
    pub(crate) fn shown(&self, now_ns: i64) -> Shown {
        let mut left = self.left;
        if left < self.burst() {
            left = left.saturating_add(self.refill(now_ns)).min(self.burst());
        }
        Shown {
            used_percent: self.recent.percent(now_ns),
            limit_percent: self.percent.unsigned_abs(),
            left_ms: left.div_euclid(NS_PER_MS),
        }
    }

    const fn refill(&self, now_ns: i64) -> i64 {
        let passed = now_ns.saturating_sub(self.at);
        if passed > 0 {
            passed / 100 * self.percent
        } else {
            0
        }
    }

    /// Books a use that ended at `now_ns`.
    ///
    /// # Errors
    /// The account is overdrawn.
    #[inline]
    pub(crate) fn charge(&mut self, now_ns: i64, used_ns: i64) -> Result<(), Overuse> {
        let refill = self.refill(now_ns);
        self.at = now_ns;
        self.recent.charge(now_ns, used_ns);
        if self.left < self.burst() {
            self.left = self.left.saturating_add(refill).min(self.burst());
        }
        if self.left >= self.burst() {
            (self.full_at, self.used) = (now_ns.saturating_sub(used_ns), 0);
        }
        self.used = self.used.saturating_add(used_ns);
        self.left = self.left.saturating_sub(used_ns);
        if self.left >= 0 {
            return Ok(());
        }
        Err(Overuse {
            used_ns: self.used,
            within_ns: now_ns.saturating_sub(self.full_at),
            percent: self.percent,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = NS_PER_MS;

    /// Spends the credit of a start and lets the account fill up.
    fn settled() -> CpuAccount {
        let mut account = CpuAccount::new(25, 0);
        account.charge(250 * MS, 250 * MS).unwrap();
        account.charge(10_000 * MS, 0).unwrap();
        assert_eq!(account.left, 75 * MS);
        account
    }

    #[test]
    fn the_use_of_the_last_seconds_is_shown_beside_the_limit() {
        let mut account = settled();
        let shown = |used_percent, left_ms| Shown {
            used_percent,
            limit_percent: 25,
            left_ms,
        };
        // A tenth of a processor: 10 ms in each 100 ms.
        for callback in 1..=300_i64 {
            let now = 10_000 * MS + callback * 100 * MS;
            account.charge(now, 10 * MS).unwrap();
        }
        assert_eq!(account.shown(40_000 * MS), shown(10, 65));
        assert_eq!(account.shown(40_020 * MS), shown(10, 70));
        // It is not called any more.
        assert_eq!(account.shown(45_000 * MS), shown(7, 75));
        assert_eq!(account.shown(60_000 * MS), shown(0, 75));
        account.charge(60_000 * MS, 60 * MS).unwrap();
        assert_eq!(account.shown(60_000 * MS).left_ms, 15);
        account.set_percent(50);
        assert_eq!(account.shown(60_000 * MS).limit_percent, 50);
    }

    #[test]
    fn a_strategy_within_its_share_is_never_overdrawn() {
        let mut account = settled();
        for callback in 1..100_000_i64 {
            let now = 10_000 * MS + callback * 4 * MS;
            account.charge(now, MS).unwrap();
        }
    }

    #[test]
    fn a_burst_is_allowed_and_a_lasting_overuse_is_not() {
        let mut account = settled();
        account.charge(10_070 * MS, 70 * MS).unwrap();
        let overuse = account.charge(10_170 * MS, 100 * MS).unwrap_err();
        let text = overuse.to_string();
        assert!(
            text.starts_with("cpu: it used 170 ms of processor time within 170 ms; limits.cpu_percent allows 25 %"),
            "{text}"
        );
    }

    #[test]
    fn a_strategy_that_never_pauses_is_found_within_100_ms() {
        let mut account = settled();
        let mut now = 10_000 * MS;
        while account.charge(now, MS).is_ok() {
            now += MS;
        }
        assert!(now - 10_000 * MS <= 101 * MS, "{now}");
    }

    #[test]
    fn the_credit_of_a_start_is_given_once() {
        let mut account = CpuAccount::new(25, 0);
        assert_eq!(account.shown(0).left_ms, 325);
        account.charge(0, 320 * MS).unwrap();
        assert_eq!(account.shown(3_600_000 * MS).left_ms, 75);
        account.charge(3_600_000 * MS, 75 * MS).unwrap();
        account.charge(3_600_000 * MS, 1).unwrap_err();
    }

    #[test]
    fn a_clock_that_stands_still_does_not_refill() {
        let mut account = settled();
        account.charge(10_000 * MS, 75 * MS).unwrap();
        account.charge(9_000 * MS, 0).unwrap();
        account.charge(9_000 * MS, MS).unwrap_err();
    }
}
