//! What WebSocket connections are held to (spec 1, Limits; spec 4, section 5).

use std::time::Duration;

use windvane_model::Surface;

/// Rules of the connections of one surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// A ping is sent this often.
    pub ping_every: Duration,
    /// A connection without a pong for so long is closed.
    pub pong_within: Duration,
    /// Most messages that a client may send in a second: pings, pongs and texts together.
    ///
    /// 5 on both surfaces: the Limits of document 1 are those of every surface, and document 4,
    /// which knows of 10 on futures, gives way where documents 1 to 3 speak.
    pub messages_per_second: usize,
    /// Most streams of one connection.
    pub streams_max: usize,
    /// How long a connection lives.
    pub life: Duration,
    /// Frames that may wait for a slow reader; one more and it is let go.
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
