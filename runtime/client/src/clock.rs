//! The venue's time, estimated from its time routes
//! (docs/interface/market-data.md#spot-market-data).
//!
//! This module must never read a clock by itself. Local time is an argument or comes from the
//! [`LocalTime`] of the settings, so that tests need no real clock.

use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;
use windvane_client_core::Gateway;
use windvane_protocol::route::Surface;

pub use windvane_client_core::clock::{AHEAD_MAX_MS, Fit, Offset, Sample, estimate};

/// Local Unix time in microseconds. It is the system's time, unless a test provides another source.
#[derive(Clone)]
pub struct LocalTime(Arc<dyn Fn() -> i64 + Send + Sync>);

impl LocalTime {
    /// The system clock, read once and then advanced by a monotonic timer: a later change of the
    /// system clock has no effect here. Stamps and nonces follow the venue's clock, which the
    /// client measures repeatedly. A jump between two measurements would move them outside the
    /// venue's window, and nonces can never go back.
    pub fn system() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let (base, started) = (since.unwrap_or_default(), Instant::now());
        Self::from_fn(move || {
            let now = base + started.elapsed();
            i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
        })
    }

    /// A clock of the caller, in Unix microseconds.
    pub fn from_fn(now_us: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now_us))
    }

    /// The current time in Unix microseconds.
    pub fn now_us(&self) -> i64 {
        (self.0)()
    }
}

impl fmt::Debug for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalTime")
    }
}

/// The venue's time on every surface: local time plus the gateway's last offset.
#[derive(Debug)]
pub struct Clock {
    local: LocalTime,
    gateway: Gateway,
    refused: Arc<[Notify; 4]>,
}

impl Clock {
    pub(crate) const fn new(local: LocalTime, gateway: Gateway, refused: Arc<[Notify; 4]>) -> Self {
        Self {
            local,
            gateway,
            refused,
        }
    }

    /// Waits until the venue refuses a request because of its time. A refusal since the last wait
    /// counts.
    pub async fn refused(&self, surface: Surface) {
        self.refused[surface as usize].notified().await;
    }

    /// The last offset of a surface. The chain API and JSON-RPC have no time route: they use the
    /// futures offset, or else the spot offset.
    pub fn offset(&self, surface: Surface) -> Option<Offset> {
        self.gateway.offset(surface)
    }

    /// Sets the offset of a surface.
    pub fn set(&self, surface: Surface, offset: Offset) {
        self.gateway.set_offset(surface, offset);
    }

    /// The local time, in Unix microseconds.
    pub fn local_us(&self) -> i64 {
        self.local.now_us()
    }

    /// The venue's time in Unix microseconds, as far as it is known.
    pub fn venue_us(&self, surface: Surface) -> i64 {
        self.gateway.venue_us(self.local.now_us(), surface)
    }
}

#[cfg(test)]
mod tests {
    use windvane_client_core::gateway::Identity;
    use windvane_client_core::nonce::Nonces;
    use windvane_protocol::Brand;
    use windvane_protocol::sign::{Credentials, Dialect, Network};

    use super::*;
    use crate::budget::Shares;
    use crate::settings::Api;

    #[tokio::test(start_paused = true)]
    async fn a_refusal_wakes_one_wait() {
        let identity = Identity {
            dialect: Dialect {
                brand: Brand::new("svc").unwrap(),
                network: Network::Mainnet,
                recv_window_ms: None,
            },
            credentials: Credentials::default(),
            spot_api: Api::V1,
            futures_api: Api::V1,
            hosts: [const { None }; 4],
        };
        let gateway = Gateway::new(identity, Shares::default(), Arc::new(Nonces::new()));
        let refused = Arc::new([const { Notify::const_new() }; 4]);
        let clock = Clock::new(LocalTime::from_fn(|| 1_000), gateway, Arc::clone(&refused));
        refused[Surface::Futures as usize].notify_one();
        refused[Surface::Futures as usize].notify_one();
        clock.refused(Surface::Futures).await;
        let again = clock.refused(Surface::Futures);
        let second = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(second, again).await.is_err());
    }
}
