//! What is going to happen, in order of its time; at one time, in the order in which it was put.

use std::collections::BTreeMap;

/// The future.
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
    /// Something happens then.
    pub fn put(&mut self, at_ns: i64, event: E) {
        self.put += 1;
        self.events.insert((at_ns, self.put), event);
    }

    /// The next thing, and when.
    pub fn take(&mut self) -> Option<(i64, E)> {
        let ((at_ns, _), event) = self.events.pop_first()?;
        Some((at_ns, event))
    }

    /// Whether anything of a kind is still to come.
    pub fn any(&self, of: impl Fn(&E) -> bool) -> bool {
        self.events.values().any(of)
    }
}
