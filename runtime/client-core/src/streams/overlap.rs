//! Two connections that carry the same events, made one: nothing lost, nothing twice, in order.
//! Pure.
//!
//! While the old connection still leads, its frames pass and are remembered; those of the new one
//! are held back. When the new one takes over, those that the old one has not brought pass, and
//! what the old one was ahead with is left out when the new one brings it. Equal frames are
//! counted, so that an event that the venue itself sends twice stays there twice.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Frames of the new connection that are held back at most; then it takes over at once.
pub(super) const HELD_MAX: usize = 100_000;

#[derive(Clone, Debug)]
pub(super) struct Overlap<F> {
    /// Frames of the old connection, by hash, that the new one has not brought.
    ahead: BTreeMap<u64, u32>,
    held: Vec<(u64, F)>,
}

impl<F: AsRef<str>> Overlap<F> {
    /// The new connection is being opened: from here on both may carry the same.
    pub(super) const fn new() -> Self {
        Self {
            ahead: BTreeMap::new(),
            held: Vec::new(),
        }
    }

    /// A frame of the old connection, which passes.
    pub(super) fn passed(&mut self, frame: &F) {
        *self.ahead.entry(hash(frame)).or_default() += 1;
    }

    /// A frame of the new connection while the old one leads; `false` if no more may be held.
    pub(super) fn hold(&mut self, frame: F) -> bool {
        self.held.push((hash(&frame), frame));
        self.held.len() < HELD_MAX
    }

    /// The new connection takes over: what it has brought and the old one has not.
    pub(super) fn take_over(&mut self) -> Vec<F> {
        let held = std::mem::take(&mut self.held);
        let fresh = held.into_iter().filter(|(hash, _)| !self.is_known(*hash));
        fresh.map(|(_, frame)| frame).collect()
    }

    /// A frame of the new connection after it took over: is it new?
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
        /// The venue sends `events` on the old connection from the first one on, and on the new
        /// one from `joined` on; the new one takes over when the old one has brought up to
        /// `old_end`, and the new one up to `new_end`.
        #[test]
        fn one_stream_comes_out_of_two(
            events in proptest::collection::vec(0_u8..4, 1..40),
            joined in 0_usize..40, old_end in 0_usize..40, new_end in 0_usize..40,
            order in proptest::collection::vec(any::<bool>(), 80),
        ) {
            let end = events.len();
            let joined = joined % (end + 1);
            // The old connection lives until the new one stands.
            let old_end = joined.max(old_end % (end + 1));
            let new_end = joined.max(new_end % (end + 1));
            let frames: Vec<String> = events.iter().map(u8::to_string).collect();
            let (mut old, mut new) = (0, joined);
            // What came before the new one was asked for.
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
