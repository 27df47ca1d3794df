//! When the states of strategies are recorded, so that the next process can continue from them.
//!
//! A small state is recorded together with the events that it must not be behind. The strategy's
//! state, the order events that it received and the orders that it sends are then in one block. In
//! all other cases the state is recorded when a block ends because of its age; a large state is
//! recorded less often. So is the state of a strategy whose small states together are more than
//! [`AT_ONCE`] allows.

use windvane_model::{Event, EventKind, Intent, StrategyId, Time, planted};

use crate::log_throttle::LogThrottle;
use crate::rate::{Budget, Rate};

/// Largest state that a strategy may save in a run, in bytes. The engine's thread copies, compares and
/// hashes it, so a larger one would hold the orders of all. Older programs recorded states of up to
/// 16 MiB; these are still loaded.
pub const STATE_BYTES_MAX: usize = 4 << 20;
/// A state is small up to this many bytes, if `save` used at most this fuel.
const SMALL_BYTES: usize = 4 << 10;
const SMALL_FUEL: u64 = 1_000_000;
/// States that are recorded at the end of one block have this size together, or there is only one.
const TOGETHER_BYTES: usize = 1 << 20;
/// Minimum pause between two records of a large state, for each KiB of it.
const PAUSE_MS_PER_KIB: i64 = 16;
/// The pause is also at least about fifty times as long as `save` takes: one millisecond of
/// execution burns 800,000 fuel.
const FUEL_PER_MS: u64 = 16_000;
/// How much of the journal the states of one strategy may take that are recorded at once.
const AT_ONCE: Rate = Rate {
    per_second: 256 << 10,
    burst: 8 << 20,
};
/// The size of a record without its content, at most.
const RECORD_BYTES: usize = 64;

/// Cost of a recorded state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Its size in bytes.
    pub bytes: usize,
    /// Fuel that `save` used.
    pub fuel: u64,
}

impl Cost {
    /// The cost of a state that was loaded, without a call of `save`.
    pub fn of(state: Option<&[u8]>) -> Self {
        Self {
            bytes: state.map_or(0, <[u8]>::len),
            fuel: 0,
        }
    }

    const fn is_small(self) -> bool {
        self.bytes <= SMALL_BYTES && self.fuel <= SMALL_FUEL
    }

    fn pause_ms(self) -> i64 {
        let kib = i64::try_from(self.bytes >> 10).unwrap_or(i64::MAX);
        let by_fuel = i64::try_from(self.fuel / FUEL_PER_MS).unwrap_or(i64::MAX);
        kib.saturating_mul(PAUSE_MS_PER_KIB).max(by_fuel)
    }
}

/// Whether a state is recorded together with the event and the answer, before the answer. `last` is
/// the cost of the last recorded state.
pub fn is_saved_at_once(event: &Event, answers: bool, last: Cost) -> bool {
    if planted!(StateBehind) {
        return false;
    }
    let own = matches!(event.kind, EventKind::OrderUpdate | EventKind::Fill);
    (own || answers) && last.is_small()
}

/// When a state is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaveTime {
    /// Together with the event.
    AtOnce,
    /// When a block ends because of its age.
    Later,
    /// Later, because the strategy used up its share of the journal. If a log line is due: how
    /// often this happened since the last one.
    Slowed(Option<u64>),
}

/// The recorded states of the strategies.
#[derive(Debug, Default)]
pub(crate) struct Saving(Vec<Saved>);

#[derive(Debug)]
struct Saved {
    /// The last recorded state.
    last: Option<Vec<u8>>,
    cost: Cost,
    /// The strategy was called since its state was last recorded.
    called: bool,
    /// Sequence of the last event that it handled.
    handled: i64,
    /// The state is not recorded before this time.
    due: Time,
    /// The unused part of [`AT_ONCE`].
    at_once: Budget,
    slowed: LogThrottle,
}

impl Saving {
    /// Begins with the states in the checkpoint of the segment.
    pub(crate) fn begin(&mut self, states: &[Option<Vec<u8>>]) {
        let saved = |last: &Option<Vec<u8>>| Saved {
            last: last.clone(),
            cost: Cost::of(last.as_deref()),
            called: false,
            handled: 0,
            due: Time::default(),
            at_once: Budget::new(AT_ONCE),
            slowed: LogThrottle::default(),
        };
        self.0 = states.iter().map(saved).collect();
    }

    /// The last recorded state of a strategy.
    pub(crate) fn last(&self, strategy: StrategyId) -> Option<Vec<u8>> {
        self.0.get(usize::from(strategy.0))?.last.clone()
    }

    /// A strategy handled an event. Returns when its state must be recorded.
    #[inline]
    pub(crate) fn called(
        &mut self,
        strategy: StrategyId,
        event: &Event,
        intents: &[Intent],
    ) -> SaveTime {
        let Some(saved) = self.0.get_mut(usize::from(strategy.0)) else {
            return SaveTime::Later;
        };
        saved.called = true;
        saved.handled = event.sequence;
        if !is_saved_at_once(event, !intents.is_empty(), saved.cost) {
            SaveTime::Later
        } else if saved.at_once.has_left(event.time) {
            SaveTime::AtOnce
        } else {
            SaveTime::Slowed(saved.slowed.again(event.time))
        }
    }

    /// Whether a strategy was called since its state was recorded last.
    pub(crate) fn is_behind(&self) -> bool {
        self.0.iter().any(|saved| saved.called) && !planted!(StateBehind)
    }

    /// The strategies whose state must be recorded now, at the end of a block, out of those that
    /// `runs` accepts. If their states are large, some wait for the end of the next block: those
    /// that are due for the longest time go first.
    pub(crate) fn due(&self, now: Time, runs: impl Fn(StrategyId) -> bool) -> Vec<StrategyId> {
        let places = (0..).map(StrategyId).zip(&self.0);
        let is_due = |saved: &Saved| saved.called && saved.due <= now && !planted!(StateBehind);
        let mut due: Vec<_> = places
            .filter(|(strategy, saved)| is_due(saved) && runs(*strategy))
            .collect();
        due.sort_by_key(|(strategy, saved)| (saved.due, *strategy));
        let mut bytes = 0;
        let fits = due.into_iter().filter(|(_, saved)| {
            let fits = bytes == 0 || bytes + saved.cost.bytes <= TOGETHER_BYTES;
            bytes += if fits { saved.cost.bytes } else { 0 };
            fits
        });
        fits.map(|(strategy, _)| strategy).collect()
    }

    /// Takes the saved state of a strategy. Returns what to record: the sequence of the last event
    /// that the strategy handled, and the state. The state is `None` if it is equal to the last
    /// recorded one.
    pub(crate) fn take(
        &mut self,
        now: Time,
        strategy: StrategyId,
        state: Option<Vec<u8>>,
        fuel: u64,
    ) -> (i64, Option<&[u8]>) {
        let Some(saved) = self.0.get_mut(usize::from(strategy.0)) else {
            return (0, None);
        };
        saved.called = false;
        saved.cost = Cost {
            fuel,
            ..Cost::of(state.as_deref())
        };
        saved.due = now.plus_ms(saved.cost.pause_ms());
        let is_same = state.is_none() || state == saved.last;
        let content = if is_same { 0 } else { saved.cost.bytes };
        saved.at_once.take(now, RECORD_BYTES + content);
        if is_same {
            return (saved.handled, None);
        }
        saved.last = state;
        (saved.handled, saved.last.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use windvane_model::InstrumentId;

    use super::*;

    #[test]
    fn large_states_of_several_strategies_are_not_recorded_together() {
        let mut saving = Saving::default();
        let state = |bytes| Some(vec![0; bytes]);
        saving.begin(&[state(900 << 10), state(100), state(3 << 20), state(3 << 20)]);
        let now = Time::from_millis(1_700_000_000_000);
        let book = Event {
            time: now,
            sequence: 1,
            kind: EventKind::BookTop,
            instrument: InstrumentId(0),
            flags: 0,
            fields: [0; 6],
            id: 0,
        };
        for place in 0..4 {
            saving.called(StrategyId(place), &book, &[]);
        }
        let mut recorded = Vec::new();
        while saving.is_behind() {
            let due = saving.due(now, |_| true);
            for strategy in &due {
                let bytes = saving.last(*strategy).map_or(0, |state| state.len());
                saving.take(now, *strategy, Some(vec![1; bytes]), 0);
            }
            recorded.push(due.iter().map(|strategy| strategy.0).collect::<Vec<_>>());
        }
        assert_eq!(recorded, [vec![0, 1], vec![2], vec![3]]);
    }
}
