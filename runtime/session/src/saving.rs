//! When what strategies know is recorded, so that the next process goes on from it.
//!
//! A small state goes with whatever it must not be behind: what a strategy was told of its own
//! orders, and the orders that it sends, are in one block with it. Everything else is recorded
//! where a block ends by time, a large state after a pause.

use windvane_model::{Event, EventKind, Intent, StrategyId, Time, planted};

/// Up to this many bytes, said with so little fuel, a state is small.
const SMALL_BYTES: usize = 4 << 10;
const SMALL_FUEL: u64 = 1_000_000;
/// A large state is recorded after so long for each KiB of it.
const PAUSE_MS_PER_KIB: i64 = 16;
/// And after some fifty times as long as it takes to say it: a millisecond burns 800,000.
const FUEL_PER_MS: u64 = 16_000;

/// What is known of a state that was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Its size.
    pub bytes: usize,
    /// What it took to say it.
    pub fuel: u64,
}

impl Cost {
    /// Of a state that nobody was asked for.
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

/// Whether a state is recorded with what its strategy was told and answered, before the answer.
/// `last` is what the state before cost.
pub fn is_saved_at_once(event: &Event, answers: bool, last: Cost) -> bool {
    if planted!(StateBehind) {
        return false;
    }
    let own = matches!(event.kind, EventKind::OrderUpdate | EventKind::Fill);
    (own || answers) && last.is_small()
}

/// What was recorded of each strategy's state.
#[derive(Debug, Default)]
pub(crate) struct Saving(Vec<Saved>);

#[derive(Clone, Debug, Default)]
struct Saved {
    /// What was recorded last.
    last: Option<Vec<u8>>,
    cost: Cost,
    /// The strategy was called since.
    called: bool,
    /// Sequence of the last event that it handled.
    handled: i64,
    /// Not before then.
    due: Time,
}

impl Saving {
    /// States stand in the head of a segment.
    pub(crate) fn begin(&mut self, states: &[Option<Vec<u8>>]) {
        let saved = |last: &Option<Vec<u8>>| Saved {
            last: last.clone(),
            cost: Cost::of(last.as_deref()),
            ..Saved::default()
        };
        self.0 = states.iter().map(saved).collect();
    }

    /// What was recorded of a strategy last.
    pub(crate) fn last(&self, strategy: StrategyId) -> Option<Vec<u8>> {
        self.0.get(usize::from(strategy.0))?.last.clone()
    }

    /// A strategy handled an event; answers whether its state is recorded at once.
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

    /// Whether a strategy was called since what it knows was recorded.
    pub(crate) fn is_behind(&self) -> bool {
        self.0.iter().any(|saved| saved.called) && !planted!(StateBehind)
    }

    /// The strategies whose state is to be recorded now, where a block ends.
    pub(crate) fn due(&self, now: Time) -> Vec<StrategyId> {
        let places = self.0.iter().enumerate();
        let due = |saved: &Saved| saved.called && saved.due <= now && !planted!(StateBehind);
        let due = places.filter(|(_, saved)| due(saved));
        due.map(|(place, _)| StrategyId(place as u16)).collect()
    }

    /// Takes what a strategy saved; answers what is to be recorded: the last event that is in it,
    /// and the state, `None` where it is what was recorded before.
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
