//! Listen keys: one per account and surface, valid for 60 minutes
//! (docs/interface/user-stream.md#listen-keys).

use windvane_model::Surface;

/// Lifetime of a key after it was created or renewed.
pub(crate) const LIFE_MS: i64 = 60 * 60 * 1_000;

/// Lifetime of a short key.
const SHORT_LIFE_MS: i64 = 10 * 60 * 1_000;

/// A key that streams user events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenKey {
    pub(crate) key: String,
    pub(crate) expires_ms: i64,
}

/// The keys of one account by surface.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListenKeys {
    keys: [Option<ListenKey>; 2],
    /// Whether keys end ten minutes after their creation, even if they are renewed.
    pub(crate) are_short: bool,
    /// Number of created keys, from which the next one is derived.
    made: u64,
}

impl ListenKeys {
    /// The valid key of a surface.
    pub(crate) fn valid(&self, surface: Surface) -> Option<&ListenKey> {
        self.keys[surface as usize].as_ref()
    }

    /// Renews the valid key for 60 minutes, or creates a new one; `name` derives its text from its
    /// number.
    pub(crate) fn create(
        &mut self,
        surface: Surface,
        now_ms: i64,
        name: impl FnOnce(u64) -> String,
    ) -> &ListenKey {
        let short = self.are_short;
        let slot = &mut self.keys[surface as usize];
        let made = &mut self.made;
        let key = slot.get_or_insert_with(|| {
            *made += 1;
            ListenKey {
                key: name(*made),
                expires_ms: now_ms + SHORT_LIFE_MS,
            }
        });
        if !short {
            key.expires_ms = now_ms + LIFE_MS;
        }
        key
    }

    /// Renews the valid key; false if no key is valid.
    pub(crate) fn extend(&mut self, surface: Surface, now_ms: i64) -> bool {
        let short = self.are_short;
        let key = self.keys[surface as usize].as_mut();
        key.map(|key| {
            if !short {
                key.expires_ms = now_ms + LIFE_MS;
            }
        })
        .is_some()
    }

    /// Ends the key of a surface.
    pub(crate) fn close(&mut self, surface: Surface) -> Option<ListenKey> {
        self.keys[surface as usize].take()
    }

    /// Ends the key of a surface if it has expired.
    pub(crate) fn expire(&mut self, surface: Surface, now_ms: i64) -> Option<ListenKey> {
        self.keys[surface as usize].take_if(|key| key.expires_ms <= now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_post_renews_and_returns_the_same_key() {
        let mut keys = ListenKeys::default();
        let first = keys.create(Surface::Spot, 0, |n| n.to_string()).clone();
        let second = keys.create(Surface::Spot, 10, |n| n.to_string()).clone();
        assert_eq!(first.key, second.key);
        assert_eq!(second.expires_ms, LIFE_MS + 10);
        assert_eq!(keys.expire(Surface::Spot, LIFE_MS + 9), None);
        assert_eq!(keys.expire(Surface::Spot, LIFE_MS + 10), Some(second));
        assert_ne!(
            keys.create(Surface::Spot, 0, |n| n.to_string()).key,
            first.key
        );
        assert!(!keys.extend(Surface::Futures, 0));
    }
}
