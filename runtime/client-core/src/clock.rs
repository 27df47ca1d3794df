//! The offset between the local clock and the venue's clock, estimated from responses of the
//! venue's time routes (docs/interface/market-data.md#spot-market-data).
//!
//! This module never reads a clock. Local time is an argument.

/// How far a timestamp may be ahead of the venue's clock
/// (docs/interface/conventions.md#timestamps).
pub const AHEAD_MAX_MS: i64 = 1_000;

/// One request to a time route and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Local time when the request was sent, Unix microseconds.
    pub sent_us: i64,
    /// Local time when the response was read, Unix microseconds.
    pub received_us: i64,
    /// `serverTime` of the response, Unix milliseconds.
    pub server_ms: i64,
}

/// The amount to add to local time to get the venue's time, with the bound of its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// Venue's time minus local time, microseconds.
    pub offset_us: i64,
    /// The true offset differs by at most this many microseconds: half the round trip, plus half of
    /// the millisecond that the venue truncates.
    pub error_us: i64,
    /// Round trip of the chosen sample, microseconds.
    pub round_trip_us: i64,
}

/// Whether requests would be inside the time window that the venue accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// They are inside, whatever the true offset is within its bounds.
    Kept,
    /// The timestamp could be further ahead than the venue allows.
    MayBeAhead,
    /// The request could be older than `recvWindow` when it arrives.
    MayBeLate,
}

impl Sample {
    const fn round_trip_us(&self) -> i64 {
        self.received_us - self.sent_us
    }

    /// The venue read its clock between `sent` and `received`, and truncated it to milliseconds.
    const fn offset(&self) -> Offset {
        let server_us = self.server_ms.saturating_mul(1_000);
        let low = server_us - self.received_us;
        let high = server_us + 999 - self.sent_us;
        Offset {
            offset_us: low + (high - low) / 2,
            error_us: (high - low + 1) / 2,
            round_trip_us: self.round_trip_us(),
        }
    }
}

/// The offset of the sample with the shortest round trip, because its bounds are the narrowest.
/// Samples during which the local clock was set back are ignored; `None` if no sample is left.
///
/// ```
/// use windvane_client_core::clock::{Sample, estimate};
///
/// let slow = Sample { sent_us: 0, received_us: 80_000, server_ms: 5_070 };
/// let quick = Sample { sent_us: 100_000, received_us: 102_000, server_ms: 5_101 };
/// let offset = estimate(&[slow, quick]).unwrap();
/// assert!((offset.offset_us - 5_000_000).abs() <= offset.error_us);
/// assert_eq!(offset.error_us, 1_500);
/// ```
pub fn estimate(samples: &[Sample]) -> Option<Offset> {
    let sane = samples.iter().filter(|sample| sample.round_trip_us() >= 0);
    sane.min_by_key(|sample| sample.round_trip_us())
        .map(Sample::offset)
}

impl Offset {
    /// Whether a request that takes as long as the sample did stays inside `recv_window_ms`.
    pub const fn fit(&self, recv_window_ms: u32) -> Fit {
        if self.error_us >= AHEAD_MAX_MS * 1_000 {
            Fit::MayBeAhead
        } else if self.error_us + self.round_trip_us > recv_window_ms as i64 * 1_000 {
            Fit::MayBeLate
        } else {
            Fit::Kept
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_samples_there_is_no_offset() {
        assert_eq!(estimate(&[]), None);
        let set_back = Sample {
            sent_us: 10,
            received_us: 5,
            server_ms: 0,
        };
        assert_eq!(estimate(&[set_back]), None);
    }

    #[test]
    fn a_long_round_trip_does_not_fit_the_window() {
        let fit = |round_trip_us| {
            let sample = Sample {
                sent_us: 0,
                received_us: round_trip_us,
                server_ms: 0,
            };
            sample.offset().fit(1_500)
        };
        assert_eq!(fit(20_000), Fit::Kept);
        assert_eq!(fit(1_200_000), Fit::MayBeLate);
        assert_eq!(fit(2_000_000), Fit::MayBeAhead);
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_bounds(
            truth in -10_000_000_i64..10_000_000,
            trips in proptest::collection::vec((0_i64..500_000, 0_i64..500_000), 1..8),
        ) {
            let mut local = 1_700_000_000_000_000_i64;
            let mut samples = Vec::new();
            for (there, back) in trips {
                let server_us = local + there + truth;
                samples.push(Sample {
                    sent_us: local,
                    received_us: local + there + back,
                    server_ms: server_us.div_euclid(1_000),
                });
                local += there + back + 1_000;
            }
            let offset = estimate(&samples).unwrap();
            prop_assert!((offset.offset_us - truth).abs() <= offset.error_us);
        }
    }
}
