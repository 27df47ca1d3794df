//! The state that the tasks of the listeners and connections share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::OwnedSemaphorePermit;
use windvane_model::Time;

use crate::state::State;

/// The state that the tasks share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Time limit for receiving the body of a request.
    pub(super) body_within: Duration,
}

impl Shared {
    pub(crate) const fn new(state: State) -> Self {
        Self {
            body_within: state.settings.body_within,
            state: Mutex::new(state),
        }
    }

    /// Calls `act` with the state and the venue's present time.
    pub(crate) fn at_present<T>(&self, act: impl FnOnce(&mut State, Time) -> T) -> T {
        let mut state = self.state();
        let now = state.choices.venue_time(now());
        act(&mut state, now)
    }

    /// Locks the state. The lock is never held across an await.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wall clock. The venue's time always runs at normal speed.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.unwrap_or_default().as_nanos();
    Time(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// A connection's slot among those of its port. A WebSocket keeps the slot after its handshake.
pub(super) type Slot = Arc<OwnedSemaphorePermit>;
