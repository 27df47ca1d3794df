//! The venue's time, estimated from its time routes (spec 1 and 2, `time`).
//!
//! What may never enter here: reading a clock without being asked. Local time is an argument or
//! comes from the [`LocalTime`] of the settings, so that tests need no real clock.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;
use windvane_venue::route::Surface;

pub use windvane_client_core::clock::{AHEAD_MAX_MS, Fit, Offset, Sample, estimate};

/// Local Unix time in microseconds; the system's unless a test brings its own.
#[derive(Clone)]
pub struct LocalTime(Arc<dyn Fn() -> i64 + Send + Sync>);

impl LocalTime {
    /// The system's clock, read once and then counted: whoever sets it later changes nothing here.
    /// Stamps and nonces follow the venue's clock, which is read again and again; a jump between
    /// two readings would put them outside of its window, and nonces never come back.
    pub fn system() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let (base, started) = (since.unwrap_or_default(), Instant::now());
        Self::from_fn(move || {
            let now = base + started.elapsed();
            i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
        })
    }

    /// A clock of the caller's: Unix microseconds.
    pub fn from_fn(now_us: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now_us))
    }

    /// Unix microseconds now.
    pub fn now_us(&self) -> i64 {
        (self.0)()
    }
}

impl fmt::Debug for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalTime")
    }
}

/// The venue's time on every surface: local time and the last offset.
#[derive(Debug)]
pub struct Clock {
    local: LocalTime,
    offsets: Mutex<[Option<Offset>; 4]>,
    refused: [Notify; 4],
}

impl Clock {
    /// A clock that knows no offset yet and takes local time for the venue's.
    pub const fn new(local: LocalTime) -> Self {
        Self {
            local,
            offsets: Mutex::new([None; 4]),
            refused: [const { Notify::const_new() }; 4],
        }
    }

    /// A request was refused for its time: the offset is not what it was.
    pub fn refuse(&self, surface: Surface) {
        self.refused[surface as usize].notify_one();
    }

    /// Waits until a request is refused for its time; one that was since the last wait counts.
    pub async fn refused(&self, surface: Surface) {
        self.refused[surface as usize].notified().await;
    }

    /// The last offset of a surface. Chain API and JSON-RPC have no time route: futures' stands
    /// for them, else spot's.
    pub fn offset(&self, surface: Surface) -> Option<Offset> {
        let offsets = self.lock();
        let [spot, futures, ..] = *offsets;
        match surface {
            Surface::Spot => spot,
            Surface::Futures => futures,
            Surface::Chain | Surface::Rpc => futures.or(spot),
        }
    }

    /// Takes an offset over.
    pub fn set(&self, surface: Surface, offset: Offset) {
        self.lock()[surface as usize] = Some(offset);
    }

    /// The local clock, Unix microseconds.
    pub fn local_us(&self) -> i64 {
        self.local.now_us()
    }

    /// The venue's time, Unix microseconds, as far as it is known.
    pub fn venue_us(&self, surface: Surface) -> i64 {
        let offset = self.offset(surface).map_or(0, |offset| offset.offset_us);
        self.local.now_us().saturating_add(offset)
    }

    fn lock(&self) -> MutexGuard<'_, [Option<Offset>; 4]> {
        // An offset is replaced as a whole: a panic elsewhere cannot leave half of one.
        self.offsets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_heard_once() {
        let clock = Clock::new(LocalTime::from_fn(|| 1_000));
        clock.refuse(Surface::Futures);
        clock.refuse(Surface::Futures);
        clock.refused(Surface::Futures).await;
        let again = clock.refused(Surface::Futures);
        let second = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(second, again).await.is_err());
    }

    #[test]
    fn surfaces_without_a_time_route_use_the_other_ones_offset() {
        let clock = Clock::new(LocalTime::from_fn(|| 1_000));
        let offset = Offset {
            offset_us: 50,
            error_us: 1,
            round_trip_us: 2,
        };
        clock.set(Surface::Spot, offset);
        assert_eq!(clock.venue_us(Surface::Chain), 1_050);
        assert_eq!(clock.venue_us(Surface::Futures), 1_000);
    }
}
