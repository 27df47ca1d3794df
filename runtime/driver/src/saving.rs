//! When what strategies know is recorded, so that the next process goes on from it.
//!
//! A small state goes with whatever it must not be behind: what a strategy was told of its own
//! orders, and the orders that it sends, are in one block with it. Everything else is recorded
//! where a block ends by time, a large state after a pause.

use windvane_engine::{Event, EventKind, Intent, StrategyId, Time, planted};

/// Up to this many bytes a state is small.
const SMALL_BYTES: usize = 4 << 10;
/// A large state is recorded after so long for each KiB of it.
const PAUSE_MS_PER_KIB: i64 = 16;

/// Whether a state is recorded with what its strategy was told and answered, before the answer.
pub fn is_saved_at_once(event: &Event, answers: bool, last: Option<&[u8]>) -> bool {
    if planted!(StateBehind) {
        return false;
    }
    let own = matches!(event.kind, EventKind::OrderUpdate | EventKind::Fill);
    (own || answers) && last.map_or(0, <[u8]>::len) <= SMALL_BYTES
}

/// What was recorded of each strategy's state.
#[derive(Debug, Default)]
pub(crate) struct Saving(Vec<Saved>);

#[derive(Clone, Debug, Default)]
struct Saved {
    /// What was recorded last.
    last: Option<Vec<u8>>,
    /// The strategy was called since.
    called: bool,
    /// Not before then.
    due: Time,
}

impl Saving {
    /// States stand in the head of a segment.
    pub(crate) fn begin(&mut self, states: &[Option<Vec<u8>>]) {
        let saved = |last: &Option<Vec<u8>>| Saved {
            last: last.clone(),
            ..Saved::default()
        };
        self.0 = states.iter().map(saved).collect();
    }

    /// A strategy was called; answers whether its state is recorded at once.
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
        is_saved_at_once(event, !intents.is_empty(), saved.last.as_deref())
    }

    /// The strategies whose state is to be recorded now, where a block ends.
    pub(crate) fn due(&self, now: Time) -> Vec<StrategyId> {
        let places = self.0.iter().enumerate();
        let due = |saved: &Saved| saved.called && saved.due <= now && !planted!(StateBehind);
        let due = places.filter(|(_, saved)| due(saved));
        due.map(|(place, _)| StrategyId(place as u16)).collect()
    }

    /// Takes what a strategy saved; answers what is to be recorded of it, `None` where it is what
    /// was recorded before.
    pub(crate) fn take(
        &mut self,
        now: Time,
        strategy: StrategyId,
        state: Option<Vec<u8>>,
    ) -> Option<&[u8]> {
        let saved = self.0.get_mut(usize::from(strategy.0))?;
        saved.called = false;
        let kib = state.as_ref().map_or(0, Vec::len) >> 10;
        let pause_ms = PAUSE_MS_PER_KIB.saturating_mul(i64::try_from(kib).unwrap_or(i64::MAX));
        saved.due = now.plus_ms(pause_ms);
        if state.is_none() || state == saved.last {
            return None;
        }
        saved.last = state;
        saved.last.as_deref()
    }
}
