//! Stops that outlive the process that was told of them: until when the venue takes nothing from
//! this address, by host. A process that starts while one holds must not find it out by asking.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// What hosts said so far.
#[derive(Debug, Default)]
pub(crate) struct Bans {
    until: Mutex<BTreeMap<String, Instant>>,
    told: Notify,
}

impl Bans {
    /// A host takes nothing for so long; a stop is never shortened.
    pub(crate) fn tell(&self, host: &str, length: Duration) {
        let Some(until) = Instant::now().checked_add(length) else {
            return;
        };
        let mut known = self.lock();
        let is_news = known.get(host).is_none_or(|before| *before < until);
        if is_news {
            known.insert(host.to_owned(), until);
            self.told.notify_one();
        }
    }

    /// Waits until a host says something new.
    pub(crate) async fn told(&self) {
        self.told.notified().await;
    }

    /// Hosts that take nothing now, and for how long.
    pub(crate) fn now(&self) -> Vec<(String, Duration)> {
        let now = Instant::now();
        let known = self.lock();
        let left = known
            .iter()
            .map(|(host, until)| (host.clone(), *until - now));
        left.filter(|(_, left)| !left.is_zero()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        // A map is whole after every operation on it.
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
