//! The future events, ordered by time. Events of the same time keep the order in which they were
//! added.

use std::collections::BTreeMap;

/// The future events.
#[derive(Debug)]
pub struct Queue<E> {
    events: BTreeMap<(i64, u64), E>,
    put: u64,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Self {
            events: BTreeMap::new(),
            put: 0,
        }
    }
}

impl<E> Queue<E> {
    /// Adds an event at this time.
    pub fn put(&mut self, at_ns: i64, event: E) {
        self.put += 1;
        self.events.insert((at_ns, self.put), event);
    }

    /// Takes the next event with its time.
    pub fn take(&mut self) -> Option<(i64, E)> {
        let ((at_ns, _), event) = self.events.pop_first()?;
        Some((at_ns, event))
    }

    /// Whether an event that satisfies the condition is still to come.
    pub fn any(&self, of: impl Fn(&E) -> bool) -> bool {
        self.events.values().any(of)
    }
}
