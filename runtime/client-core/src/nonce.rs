//! Nonces of v3 requests (docs/interface/conventions.md#nonces): microseconds, strictly rising,
//! used once.
//!
//! This module never reads a clock. The caller passes the venue's time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use windvane_protocol::planted;

static PROCESS: LazyLock<Arc<Nonces>> = LazyLock::new(Arc::default);

/// A source of nonces. One source must serve every signer of the same user, because the venue
/// refuses a nonce that it has seen (-4225: docs/interface/conventions.md#nonces).
///
/// ```
/// use windvane_client_core::nonce::Nonces;
///
/// let nonces = Nonces::new();
/// assert_eq!(nonces.next(1_000), 1_000);
/// assert_eq!(nonces.next(1_000), 1_001); // the same microsecond
/// assert_eq!(nonces.next(900), 1_002); // a clock that was set back
/// ```
#[derive(Debug, Default)]
pub struct Nonces {
    last: AtomicU64,
}

impl Nonces {
    /// A source that has not given out any nonce.
    pub const fn new() -> Self {
        Self {
            last: AtomicU64::new(0),
        }
    }

    /// The source that all clients of this process share by default.
    pub fn of_process() -> Arc<Self> {
        Arc::clone(&PROCESS)
    }

    /// The next nonce: `server_us`, the estimate of the venue's time in microseconds, or the last
    /// nonce plus one if that is higher.
    ///
    /// The nonce is never behind the estimate, so it stays inside the venue's time window (10 s by
    /// default). It is ahead by at most the number of nonces drawn in the same microsecond, or by
    /// the amount that the estimate was set back.
    pub fn next(&self, server_us: u64) -> u64 {
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            let least = if planted!(NonceRepeated) {
                last
            } else {
                last.saturating_add(1)
            };
            let nonce = server_us.max(least);
            let swapped =
                self.last
                    .compare_exchange_weak(last, nonce, Ordering::Relaxed, Ordering::Relaxed);
            match swapped {
                Ok(_) => return nonce,
                Err(seen) => last = seen,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nonces_rise_and_never_lag_the_estimate(
            estimates in proptest::collection::vec(0_u64..1_000_000, 1..200)
        ) {
            let nonces = Nonces::new();
            let mut last = 0;
            for estimate in estimates {
                let nonce = nonces.next(estimate);
                prop_assert!(nonce > last || last == 0);
                prop_assert!(nonce >= estimate);
                last = nonce;
            }
        }
    }
}
