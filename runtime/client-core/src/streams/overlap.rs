//! Merges two connections that carry the same events. No event is lost or repeated, and the order
//! is kept.
//!
//! While the old connection leads, its frames are passed on and remembered, and frames of the new
//! connection are held back. At the switch, the held frames that the old connection has not
//! delivered are passed on. Frames that the old connection delivered early are dropped when the new
//! one delivers them. Equal frames are counted, so an event that the venue itself sends twice is
//! passed on twice.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum number of held frames of the new connection. At this number it takes over at once.
pub(super) const HELD_MAX: usize = 100_000;

#[derive(Clone, Debug)]
pub(super) struct Overlap<F> {
    /// Frames of the old connection, by hash, that the new one has not delivered.
    ahead: BTreeMap<u64, u32>,
    held: Vec<(u64, F)>,
}

impl<F: AsRef<str>> Overlap<F> {
    /// The new connection is being opened. From here on both may carry the same frames.
    pub(super) const fn new() -> Self {
        Self {
            ahead: BTreeMap::new(),
            held: Vec::new(),
        }
    }

    /// Remembers a frame of the old connection, which is passed on.
    pub(super) fn passed(&mut self, frame: &F) {
        *self.ahead.entry(hash(frame)).or_default() += 1;
    }

    /// Holds a frame of the new connection while the old one leads. `false` if no more may be held.
    pub(super) fn hold(&mut self, frame: F) -> bool {
        self.held.push((hash(&frame), frame));
        self.held.len() < HELD_MAX
    }

    /// The new connection takes over. Returns the held frames that the old one has not delivered.
    pub(super) fn take_over(&mut self) -> Vec<F> {
        let held = std::mem::take(&mut self.held);
        let fresh = held.into_iter().filter(|(hash, _)| !self.is_known(*hash));
        fresh.map(|(_, frame)| frame).collect()
    }

    /// Whether a frame of the new connection, received after the switch, is new.
    pub(super) fn is_fresh(&mut self, frame: &F) -> bool {
        self.ahead.is_empty() || !self.is_known(hash(frame))
    }

    fn is_known(&mut self, hash: u64) -> bool {
        let Some(count) = self.ahead.get_mut(&hash) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            self.ahead.remove(&hash);
        }
        true
    }
}

fn hash<F: AsRef<str>>(frame: &F) -> u64 {
    let mut hasher = DefaultHasher::new();
    frame.as_ref().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The venue sends `events` on the old connection from the start, and on the new connection
        /// from `joined` on. The new one takes over when the old one has delivered events up to
        /// `old_end`, and the new one up to `new_end`.
        #[test]
        fn two_connections_merge_into_one_stream(
            events in proptest::collection::vec(0_u8..4, 1..40),
            joined in 0_usize..40, old_end in 0_usize..40, new_end in 0_usize..40,
            order in proptest::collection::vec(any::<bool>(), 80),
        ) {
            let end = events.len();
            let joined = joined % (end + 1);
            // The old connection lives at least until the new one is open.
            let old_end = joined.max(old_end % (end + 1));
            let new_end = joined.max(new_end % (end + 1));
            let frames: Vec<String> = events.iter().map(u8::to_string).collect();
            let (mut old, mut new) = (0, joined);
            // The events before the new connection was opened.
            let mut passed: Vec<String> = frames[..joined].to_vec();
            old += joined;
            let mut overlap = Overlap::new();
            for pick_old in order {
                if pick_old && old < old_end {
                    overlap.passed(&frames[old]);
                    passed.push(frames[old].clone());
                    old += 1;
                } else if new < new_end {
                    prop_assert!(overlap.hold(frames[new].clone()));
                    new += 1;
                }
            }
            passed.extend(overlap.take_over());
            for frame in &frames[new..] {
                if overlap.is_fresh(frame) {
                    passed.push(frame.clone());
                }
            }
            prop_assert_eq!(passed, frames);
        }
    }
}
