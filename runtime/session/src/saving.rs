//! When the states of strategies are recorded, so that the next process can continue from them.
//!
//! A small state is recorded together with the events that it must not be behind. The strategy's
//! state, the order events that it received and the orders that it sends are then in one block. In
//! all other cases the state is recorded when a block ends because of its age; a large state is
//! recorded less often.

use windvane_model::{Event, EventKind, Intent, StrategyId, Time, planted};

/// A state is small up to this many bytes, if `save` used at most this fuel.
const SMALL_BYTES: usize = 4 << 10;
const SMALL_FUEL: u64 = 1_000_000;
/// Minimum pause between two records of a large state, for each KiB of it.
const PAUSE_MS_PER_KIB: i64 = 16;
/// The pause is also at least about fifty times as long as `save` takes: one millisecond of
/// execution burns 800,000 fuel.
const FUEL_PER_MS: u64 = 16_000;

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

/// The recorded states of the strategies.
#[derive(Debug, Default)]
pub(crate) struct Saving(Vec<Saved>);

#[derive(Clone, Debug, Default)]
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
}

impl Saving {
    /// Begins with the states in the checkpoint of the segment.
    pub(crate) fn begin(&mut self, states: &[Option<Vec<u8>>]) {
        let saved = |last: &Option<Vec<u8>>| Saved {
            last: last.clone(),
            cost: Cost::of(last.as_deref()),
            ..Saved::default()
        };
        self.0 = states.iter().map(saved).collect();
    }

    /// The last recorded state of a strategy.
    pub(crate) fn last(&self, strategy: StrategyId) -> Option<Vec<u8>> {
        self.0.get(usize::from(strategy.0))?.last.clone()
    }

    /// A strategy handled an event. Returns whether its state must be recorded at once.
    #[inline]
    pub(crate) fn called(
        &mut self,
        strategy: StrategyId,
        event: &Event,
        intents: &[Intent],
    ) -> bool {
        let Some(saved) = self.0.get_mut(usize::from(strategy.0)) else {
            return false;
        };
        saved.called = true;
        saved.handled = event.sequence;
        is_saved_at_once(event, !intents.is_empty(), saved.cost)
    }

    /// Whether a strategy was called since its state was recorded last.
    pub(crate) fn is_behind(&self) -> bool {
        self.0.iter().any(|saved| saved.called) && !planted!(StateBehind)
    }

    /// The strategies whose state must be recorded now, at the end of a block.
    pub(crate) fn due(&self, now: Time) -> Vec<StrategyId> {
        let places = self.0.iter().enumerate();
        let due = |saved: &Saved| saved.called && saved.due <= now && !planted!(StateBehind);
        let due = places.filter(|(_, saved)| due(saved));
        due.map(|(place, _)| StrategyId(place as u16)).collect()
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
        if state.is_none() || state == saved.last {
            return (saved.handled, None);
        }
        saved.last = state;
        (saved.handled, saved.last.as_deref())
    }
}
