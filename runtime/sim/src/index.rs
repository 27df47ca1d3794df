//! A hash index from a client order id, or from the venue's order id, to an order. The hash is the
//! same on every machine. The index has no iteration, only lookups of one id, so its internal order
//! can have no effect.
//!
//! No map of a library replaces it: its slots are a part of the bytes of a venue's snapshot
//! (`snapshot.rs`), so another map would need another version of that format.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use windvane_model::{ClientOrderId, VenueOrderId};

use crate::order_key::OrderKey;

/// Uses open addressing with linear probing. At most half of the slots are used.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Index {
    /// Hash and key; an empty slot contains [`VACANT`].
    slots: Vec<(u64, OrderKey)>,
    len: usize,
}

const VACANT: OrderKey = OrderKey(u32::MAX);
const START: usize = 64;

impl Index {
    pub(crate) fn new() -> Self {
        Self {
            slots: vec![(0, VACANT); START],
            len: 0,
        }
    }

    /// The first entry with this hash for which `matches` holds.
    pub(crate) fn find(&self, hash: u64, matches: impl Fn(OrderKey) -> bool) -> Option<OrderKey> {
        let mut at = self.home(hash);
        loop {
            let (found, key) = self.slots[at];
            if key == VACANT {
                return None;
            }
            if found == hash && matches(key) {
                return Some(key);
            }
            at = self.after(at);
        }
    }

    pub(crate) fn insert(&mut self, hash: u64, key: OrderKey) {
        if (self.len + 1) * 2 > self.slots.len() {
            self.grow();
        }
        self.place(hash, key);
        self.len += 1;
    }

    /// Removes the entry if it exists. A reused id may have replaced it.
    pub(crate) fn remove(&mut self, hash: u64, key: OrderKey) {
        let mut at = self.home(hash);
        while self.slots[at] != (hash, key) {
            if self.slots[at].1 == VACANT {
                return;
            }
            at = self.after(at);
        }
        self.len -= 1;
        // Move later entries into the hole, unless the hole is before their home slot.
        let mut hole = at;
        loop {
            at = self.after(at);
            let (found, key) = self.slots[at];
            if key == VACANT {
                break;
            }
            let mask = self.slots.len() - 1;
            let from_home = at.wrapping_sub(self.home(found)) & mask;
            let from_hole = at.wrapping_sub(hole) & mask;
            if from_home >= from_hole {
                self.slots[hole] = (found, key);
                hole = at;
            }
        }
        self.slots[hole] = (0, VACANT);
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![(0, VACANT); old.len() * 2];
        for (hash, key) in old {
            if key != VACANT {
                self.place(hash, key);
            }
        }
    }

    fn place(&mut self, hash: u64, key: OrderKey) {
        let mut at = self.home(hash);
        while self.slots[at].1 != VACANT {
            at = self.after(at);
        }
        self.slots[at] = (hash, key);
    }

    const fn home(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    const fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }
}

/// The hash of a client order id on a surface.
pub(crate) fn hash(surface: u8, id: &ClientOrderId) -> u64 {
    let mut mixer = Mixer(u64::from(surface) + 1);
    id.hash(&mut mixer);
    mixer.finish()
}

/// The hash of a venue order id.
pub(crate) const fn hash_id(id: VenueOrderId) -> u64 {
    let mut mixer = Mixer(0);
    mixer.mix(id.0.cast_unsigned());
    mixer.0
}

/// Multiply and fold, eight bytes at a time (the multiplier is 2^64 over the golden ratio).
struct Mixer(u64);

impl Mixer {
    const fn mix(&mut self, word: u64) {
        let product = (self.0 ^ word) as u128 * 0x9E37_79B9_7F4A_7C15_u128;
        self.0 = (product as u64) ^ ((product >> 64) as u64) ^ 0x9E37_79B9;
    }
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        let mut enum_values = bytes.chunks_exact(8);
        for word in &mut enum_values {
            let mut array = [0; 8];
            array.copy_from_slice(word);
            self.mix(u64::from_le_bytes(array));
        }
        let mut array = [0; 8];
        let rest = enum_values.remainder();
        array[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(array));
    }

    fn write_u8(&mut self, byte: u8) {
        self.mix(u64::from(byte));
    }

    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_behaves_like_a_map(steps in proptest::collection::vec((any::<bool>(), 0_u32..200), 0..600)) {
            let mut index = Index::new();
            let mut map = BTreeMap::new();
            for (add, n) in steps {
                // Few different hashes, so that probing and moving of entries are tested.
                let hash = u64::from(n % 40);
                if add && !map.contains_key(&n) {
                    index.insert(hash, OrderKey(n));
                    map.insert(n, hash);
                } else if !add && map.remove(&n).is_some() {
                    index.remove(hash, OrderKey(n));
                }
                for n in 0..200 {
                    let found = index.find(u64::from(n % 40), |key| key == OrderKey(n));
                    prop_assert_eq!(found.is_some(), map.contains_key(&n));
                }
            }
        }
    }
}
