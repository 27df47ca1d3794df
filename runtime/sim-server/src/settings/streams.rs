//! Limits of WebSocket connections (docs/interface/limits.md#websocket-limits).

use std::time::Duration;

use windvane_model::Surface;

/// Rules of the connections of one surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Interval between pings.
    pub ping_every: Duration,
    /// A connection without a pong for this time is closed.
    pub pong_within: Duration,
    /// Maximum number of messages per second from a client: pings, pongs and texts together.
    ///
    /// It is 5 on spot and futures. The limits of the core interface apply to every surface. A
    /// public fact is 10 for futures, but the core takes precedence over it.
    pub messages_per_second: usize,
    /// Maximum number of streams per connection.
    pub streams_max: usize,
    /// Maximum age of a connection.
    pub life: Duration,
    /// Maximum number of frames that wait for a slow reader. With one more the connection is
    /// closed.
    pub frames_waiting_max: usize,
}

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

impl StreamLimits {
    /// The documented rules of a surface.
    pub const fn of(surface: Surface) -> Self {
        let (ping, pong, streams_max) = match surface {
            Surface::Spot => (3, 10, 1024),
            Surface::Futures => (5, 15, 200),
        };
        Self {
            ping_every: minutes(ping),
            pong_within: minutes(pong),
            messages_per_second: 5,
            streams_max,
            life: minutes(24 * 60),
            frames_waiting_max: 8_192,
        }
    }
}
