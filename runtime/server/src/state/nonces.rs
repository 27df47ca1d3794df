//! The nonces of one user (spec 4, section 1): the latest 100 are kept; one used before is a
//! duplicate, one below the smallest kept while the list is full is expired.

use std::collections::BTreeSet;

/// How many are kept.
const KEPT: usize = 100;

/// Why a nonce is refused; all of them -4225.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NonceError {
    /// Too far from the venue's clock.
    Window,
    /// Used before.
    Duplicate,
    /// Below the smallest kept.
    Expired,
}

/// The nonces that were used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nonces(BTreeSet<u64>);

impl Nonces {
    /// The nonces that are kept, smallest first.
    pub(crate) fn kept(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }

    /// Checks a nonce, in microseconds, and keeps it.
    pub(crate) fn take(
        &mut self,
        nonce_us: u64,
        clock_ms: i64,
        window_ms: i64,
    ) -> Result<(), NonceError> {
        let clock_us = i128::from(clock_ms) * 1_000;
        // A clock in milliseconds may lag by almost one.
        let window_us = i128::from(window_ms) * 1_000 + 999;
        if (i128::from(nonce_us) - clock_us).abs() > window_us {
            return Err(NonceError::Window);
        }
        if self.0.contains(&nonce_us) {
            return Err(NonceError::Duplicate);
        }
        let full = self.0.len() >= KEPT;
        if full && self.0.first().is_some_and(|least| nonce_us < *least) {
            return Err(NonceError::Expired);
        }
        self.0.insert(nonce_us);
        if self.0.len() > KEPT {
            self.0.pop_first();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_counts_once_in_its_window_and_in_any_order() {
        let mut nonces = Nonces::default();
        assert_eq!(nonces.take(1_000_000, 1_000, 10), Ok(()));
        assert_eq!(nonces.take(999_000, 1_000, 10), Ok(()));
        assert_eq!(nonces.take(999_000, 1_000, 10), Err(NonceError::Duplicate));
        assert_eq!(nonces.take(1_011_000, 1_000, 10), Err(NonceError::Window));
        assert_eq!(nonces.take(989_000, 1_000, 10), Err(NonceError::Window));
    }

    #[test]
    fn below_the_smallest_of_a_full_list_a_nonce_is_expired() {
        let mut nonces = Nonces::default();
        for n in 0..100 {
            assert_eq!(nonces.take(1_000_100 + n, 1_000, 10), Ok(()));
        }
        assert_eq!(nonces.take(1_000_050, 1_000, 10), Err(NonceError::Expired));
        assert_eq!(nonces.take(1_000_300, 1_000, 10), Ok(()));
        assert_eq!(nonces.take(1_000_100, 1_000, 10), Err(NonceError::Expired));
    }
}
