//! The nonces of one user (docs/interface/conventions.md#nonces). The highest 100 are kept. A nonce
//! that was used before is a duplicate. While the list is full, a nonce below the smallest one has
//! expired.
//!
//! `noop` blocks a nonce (docs/interface/account.md#noop, docs/interface/conventions.md#nonces):
//! that of an earlier request, or an unused one, which no request can use afterwards. The documents
//! do not guarantee that the cancel succeeds, so both are accepted. A second `noop` with the same
//! nonce is refused.

use std::collections::BTreeSet;

/// Number of nonces to keep.
const KEPT: usize = 100;

/// Why a nonce is refused. The code is always -4225.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NonceError {
    /// Too far from the venue's clock.
    Window,
    /// Used before.
    Duplicate,
    /// Below the smallest nonce in a full list.
    Expired,
}

/// The nonces that were used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nonces {
    used: BTreeSet<u64>,
    /// The nonces in `used` that a `noop` named.
    cancelled: BTreeSet<u64>,
}

impl Nonces {
    /// The nonces in the list, smallest first.
    pub(crate) fn kept(&self) -> impl Iterator<Item = u64> {
        self.used.iter().copied()
    }

    /// Checks a nonce, in microseconds, and marks it as used.
    pub(crate) fn take(
        &mut self,
        nonce_us: u64,
        clock_ms: i64,
        window_ms: i64,
    ) -> Result<(), NonceError> {
        in_window(nonce_us, clock_ms, window_ms)?;
        if self.used.contains(&nonce_us) {
            return Err(NonceError::Duplicate);
        }
        self.keep(nonce_us)
    }

    /// Checks the nonce of a `noop`, in microseconds, and blocks it.
    pub(crate) fn cancel(
        &mut self,
        nonce_us: u64,
        clock_ms: i64,
        window_ms: i64,
    ) -> Result<(), NonceError> {
        in_window(nonce_us, clock_ms, window_ms)?;
        if self.cancelled.contains(&nonce_us) {
            return Err(NonceError::Duplicate);
        }
        if !self.used.contains(&nonce_us) {
            self.keep(nonce_us)?;
        }
        self.cancelled.insert(nonce_us);
        Ok(())
    }

    fn keep(&mut self, nonce_us: u64) -> Result<(), NonceError> {
        let full = self.used.len() >= KEPT;
        if full && self.used.first().is_some_and(|least| nonce_us < *least) {
            return Err(NonceError::Expired);
        }
        self.used.insert(nonce_us);
        if self.used.len() > KEPT
            && let Some(least) = self.used.pop_first()
        {
            self.cancelled.remove(&least);
        }
        Ok(())
    }
}

fn in_window(nonce_us: u64, clock_ms: i64, window_ms: i64) -> Result<(), NonceError> {
    let clock_us = i128::from(clock_ms) * 1_000;
    // The clock is truncated to milliseconds, so it may be behind by almost one.
    let window_us = i128::from(window_ms) * 1_000 + 999;
    if (i128::from(nonce_us) - clock_us).abs() > window_us {
        return Err(NonceError::Window);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_valid_once_within_its_window_in_any_order() {
        let mut nonces = Nonces::default();
        assert_eq!(nonces.take(1_000_000, 1_000, 10), Ok(()));
        assert_eq!(nonces.take(999_000, 1_000, 10), Ok(()));
        assert_eq!(nonces.take(999_000, 1_000, 10), Err(NonceError::Duplicate));
        assert_eq!(nonces.take(1_011_000, 1_000, 10), Err(NonceError::Window));
        assert_eq!(nonces.take(989_000, 1_000, 10), Err(NonceError::Window));
    }

    #[test]
    fn noop_blocks_a_used_or_unused_nonce_once() {
        let mut nonces = Nonces::default();
        assert_eq!(nonces.take(1_000_000, 1_000, 10), Ok(()));
        assert_eq!(nonces.cancel(1_000_000, 1_000, 10), Ok(()));
        assert_eq!(
            nonces.cancel(1_000_000, 1_000, 10),
            Err(NonceError::Duplicate)
        );
        assert_eq!(nonces.cancel(1_000_001, 1_000, 10), Ok(()));
        assert_eq!(
            nonces.take(1_000_001, 1_000, 10),
            Err(NonceError::Duplicate)
        );
        assert_eq!(nonces.cancel(1_011_000, 1_000, 10), Err(NonceError::Window));
    }

    #[test]
    fn a_nonce_below_the_smallest_of_a_full_list_has_expired() {
        let mut nonces = Nonces::default();
        for n in 0..100 {
            assert_eq!(nonces.take(1_000_100 + n, 1_000, 10), Ok(()));
        }
        assert_eq!(nonces.take(1_000_050, 1_000, 10), Err(NonceError::Expired));
        assert_eq!(nonces.take(1_000_300, 1_000, 10), Ok(()));
        assert_eq!(nonces.take(1_000_100, 1_000, 10), Err(NonceError::Expired));
    }
}
