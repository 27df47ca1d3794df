//! Timers as one enum and one table: everything that the engine waits for is in view.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::{InstrumentId, OrderSeq, StrategyId, Time};
use crate::order::Surface;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Timer {
    /// A timer that a strategy set.
    Strategy {
        /// Whose.
        strategy: StrategyId,
        /// The strategy's own token.
        token: i64,
    },
    /// A bar closes.
    Bar {
        /// The instrument.
        instrument: InstrumentId,
        /// Interval.
        interval_ms: i64,
    },
    /// An order whose outcome is unknown, or whose cancel was refused, is asked for.
    AskForOrder {
        /// The order.
        order: OrderSeq,
    },
    /// The age of all evidence is looked at; live only.
    Watch,
    /// The next question or round of reconciliation; live only.
    Reconcile {
        /// Surface.
        surface: Surface,
    },
    /// The dead man's switch of a symbol is due; live only.
    Renew {
        /// The instrument.
        instrument: InstrumentId,
    },
    /// The watchdog process is due for a sign of health; live only.
    Beat,
    /// The rules of a surface's instruments are due to be read again; live only.
    Rules {
        /// Surface.
        surface: Surface,
    },
    /// The venue takes requests of a surface again after a refusal for a limit; live only.
    VenueWait {
        /// Surface.
        surface: Surface,
    },
    /// The account may be read again for a close that waits for a reading; live only.
    CloseReading {
        /// Surface.
        surface: Surface,
    },
    /// Until then the list of account trades may lack the fill that explains a difference; live only.
    TradesLag {
        /// Surface.
        surface: Surface,
    },
    /// The fill that an answer states has no event yet and is booked; live only.
    StatedFill {
        /// The order.
        order: OrderSeq,
    },
}

/// Pending timers; each is set at most once, and setting it again moves it.
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

    /// Forgets a timer.
    pub fn cancel(&mut self, timer: Timer) {
        if let Some(time) = self.by_timer.remove(&timer) {
            self.by_time.remove(&(time, timer));
        }
    }

    /// The next timer to fire; ties fire in the order of [`Timer`].
    pub fn next(&self) -> Option<(Time, Timer)> {
        self.by_time.first().copied()
    }

    /// Takes this timer, if it is due.
    pub fn take_if_due(&mut self, timer: Timer, now: Time) -> bool {
        let due = self.by_timer.get(&timer).is_some_and(|time| *time <= now);
        if due {
            self.cancel(timer);
        }
        due
    }

    /// Takes the next timer that is due.
    pub fn take_due(&mut self, now: Time) -> Option<Timer> {
        let (time, timer) = self.next()?;
        if time > now {
            return None;
        }
        self.cancel(timer);
        Some(timer)
    }

    /// Whether a timer is set.
    pub fn is_set(&self, timer: Timer) -> bool {
        self.by_timer.contains_key(&timer)
    }

    /// How many timers a strategy has set.
    pub fn count_of(&self, strategy: StrategyId) -> usize {
        let key = |token| Timer::Strategy { strategy, token };
        self.by_timer.range(key(i64::MIN)..=key(i64::MAX)).count()
    }

    /// Forgets all timers of a strategy.
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
        assert_eq!(timers.take_due(Time(8)), None);
        assert_eq!(timers.take_due(Time(9)), Some(timer(1)));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_quarantined_strategy_loses_its_timers_alone() {
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
}
