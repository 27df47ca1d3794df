//! All timers of the engine, as one enum and one table, so that everything that the engine waits
//! for is visible in one place.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::{InstrumentId, OrderSeq, StrategyId, Time};
use crate::order::Surface;

/// The purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Timer {
    /// A timer that a strategy set.
    Strategy {
        /// The strategy.
        strategy: StrategyId,
        /// The strategy's own token.
        token: i64,
    },
    /// A bar closes.
    Bar {
        /// The instrument.
        instrument: InstrumentId,
        /// Interval of the bar, milliseconds.
        interval_ms: i64,
    },
    /// Query an order whose outcome is unknown or whose cancel was rejected.
    AskForOrder {
        /// The order.
        order: OrderSeq,
    },
    /// Check the age of all evidence. Only in a live run.
    Watch,
    /// Send the next query of a reconciliation, or start the next round. Only in a live run.
    Reconcile {
        /// Surface.
        surface: Surface,
    },
    /// Renew the dead man's switch of a symbol. Only in a live run.
    Renew {
        /// The instrument.
        instrument: InstrumentId,
    },
    /// Send a heartbeat to the watchdog process. Only in a live run.
    Heartbeat,
    /// Read the rules of a surface's instruments again. Only in a live run.
    Rules {
        /// Surface.
        surface: Surface,
    },
    /// The venue accepts requests of a surface again after a rate limit. Only in a live run.
    VenueWait {
        /// Surface.
        surface: Surface,
    },
    /// Read the account again for a close that waits for an account snapshot. Only in a live run.
    CloseSnapshot {
        /// Surface.
        surface: Surface,
    },
    /// Until this timer fires, the venue's list of the account's trades may lack the fill that
    /// explains a difference. Only in a live run.
    TradesLag {
        /// Surface.
        surface: Surface,
    },
    /// Book a fill that a response reported and for which no event has arrived. Only in a live run.
    FillFromTotals {
        /// The order.
        order: OrderSeq,
    },
}

/// Pending timers. Each is set at most once; setting it again moves it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Timers {
    by_time: BTreeSet<(Time, Timer)>,
    by_timer: BTreeMap<Timer, Time>,
}

impl Timers {
    /// Sets or moves a timer.
    pub fn set(&mut self, time: Time, timer: Timer) {
        self.cancel(timer);
        self.by_time.insert((time, timer));
        self.by_timer.insert(timer, time);
    }

    /// Cancels a timer.
    pub fn cancel(&mut self, timer: Timer) {
        if let Some(time) = self.by_timer.remove(&timer) {
            self.by_time.remove(&(time, timer));
        }
    }

    /// The next timer to fire. Timers of the same time fire in the order of [`Timer`].
    pub fn next(&self) -> Option<(Time, Timer)> {
        self.by_time.first().copied()
    }

    /// Removes this timer if it is due. Returns whether it was due.
    pub fn take_if_due(&mut self, timer: Timer, now: Time) -> bool {
        let due = self.by_timer.get(&timer).is_some_and(|time| *time <= now);
        if due {
            self.cancel(timer);
        }
        due
    }

    /// Removes and returns the next timer that is due and wanted.
    pub fn take_due(&mut self, now: Time, wanted: impl Fn(Timer) -> bool) -> Option<Timer> {
        let mut due = self.by_time.iter().take_while(|(time, _)| *time <= now);
        let (_, timer) = *due.find(|(_, timer)| wanted(*timer))?;
        self.cancel(timer);
        Some(timer)
    }

    /// The earliest time from `wanted` on for a timer of a strategy. One millisecond is kept free
    /// for each other timer of the strategy that fires before it, and one for itself. So a strategy
    /// gets at most a timer event each millisecond over time, however many timers it sets.
    pub fn earliest(&self, strategy: StrategyId, token: i64, now: Time, wanted: Time) -> Time {
        let key = |token| Timer::Strategy { strategy, token };
        let others = self.by_timer.range(key(i64::MIN)..=key(i64::MAX));
        let mut others: Vec<Time> = others
            .filter(|(timer, _)| **timer != key(token))
            .map(|(_, time)| *time)
            .collect();
        if wanted >= now.plus_ms(others.len() as i64 + 1) {
            return wanted;
        }
        others.sort_unstable();
        let mut others = others.into_iter().peekable();
        let (mut time, mut before) = (wanted, 0);
        loop {
            while others.next_if(|other| *other <= time).is_some() {
                before += 1;
            }
            let soonest = now.plus_ms(before + 1);
            if time >= soonest {
                return time;
            }
            time = soonest;
        }
    }

    /// Whether a timer is set.
    pub fn is_set(&self, timer: Timer) -> bool {
        self.by_timer.contains_key(&timer)
    }

    /// The number of timers that a strategy has set.
    pub fn count_of(&self, strategy: StrategyId) -> usize {
        let key = |token| Timer::Strategy { strategy, token };
        self.by_timer.range(key(i64::MIN)..=key(i64::MAX)).count()
    }

    /// Cancels all timers of a strategy.
    pub fn cancel_of(&mut self, strategy: StrategyId) {
        let key = |token| Timer::Strategy { strategy, token };
        let timers: Vec<_> = self
            .by_timer
            .range(key(i64::MIN)..=key(i64::MAX))
            .map(|(timer, _)| *timer)
            .collect();
        for timer in timers {
            self.cancel(timer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(token: i64) -> Timer {
        Timer::Strategy {
            strategy: StrategyId(1),
            token,
        }
    }

    #[test]
    fn a_timer_that_is_set_again_moves() {
        let mut timers = Timers::default();
        timers.set(Time(5), timer(1));
        timers.set(Time(9), timer(1));
        assert_eq!(timers.next(), Some((Time(9), timer(1))));
        assert_eq!(timers.take_due(Time(8), |_| true), None);
        assert_eq!(timers.take_due(Time(9), |_| true), Some(timer(1)));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn cancel_of_removes_only_the_timers_of_its_strategy() {
        let mut timers = Timers::default();
        timers.set(Time(5), timer(-1));
        timers.set(Time(6), timer(i64::MAX));
        let other = Timer::Strategy {
            strategy: StrategyId(2),
            token: 0,
        };
        timers.set(Time(7), other);
        assert_eq!(timers.count_of(StrategyId(1)), 2);
        timers.cancel_of(StrategyId(1));
        assert_eq!(timers.next(), Some((Time(7), other)));
    }

    #[test]
    fn timers_that_are_not_wanted_stay() {
        let mut timers = Timers::default();
        timers.set(Time(5), timer(1));
        timers.set(Time(6), Timer::Heartbeat);
        let heartbeat = |timer| timer == Timer::Heartbeat;
        assert_eq!(timers.take_due(Time(5), heartbeat), None);
        assert_eq!(timers.take_due(Time(6), heartbeat), Some(Timer::Heartbeat));
        assert_eq!(timers.next(), Some((Time(5), timer(1))));
    }

    #[test]
    fn a_timer_waits_a_millisecond_for_each_one_before_it() {
        let mut timers = Timers::default();
        let now = Time::from_millis(1_000);
        let strategy = StrategyId(1);
        for token in 0..64 {
            let time = timers.earliest(strategy, token, now, now);
            assert_eq!(time, now.plus_ms(token + 1));
            timers.set(time, timer(token));
        }
        // A timer that moves leaves its own place free.
        assert_eq!(timers.earliest(strategy, 0, now, now), now.plus_ms(1));
        assert_eq!(timers.earliest(strategy, 64, now, now), now.plus_ms(65));
        // The timers of another strategy do not count.
        assert_eq!(timers.earliest(StrategyId(2), 0, now, now), now.plus_ms(1));
    }

    #[test]
    fn timers_far_away_may_be_due_together() {
        let mut timers = Timers::default();
        let (now, at) = (Time::from_millis(1_000), Time::from_millis(1_064));
        for token in 0..64 {
            assert_eq!(timers.earliest(StrategyId(1), token, now, at), at);
            timers.set(at, timer(token));
        }
    }
}
