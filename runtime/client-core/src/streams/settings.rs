//! Settings that keep streams alive.

use std::time::Duration;

use windvane_protocol::route::Surface;

/// The path of public streams. It decides the shape of their frames
/// (docs/interface/market-data.md#public-streams).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarketPath {
    /// `/stream`: `{stream, data}`.
    #[default]
    Combined,
    /// `/ws`: the bare payload, in which a futures partial book looks like a difference.
    Raw,
}

impl MarketPath {
    /// The path as written in an address.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Combined => "/stream",
            Self::Raw => "/ws",
        }
    }
}

/// Pings, reconnects and renewals. The defaults leave a margin to the rules of the documents
/// (docs/interface/limits.md#websocket-limits).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSettings {
    /// Interval of our own PINGs.
    pub ping_every: Duration,
    /// A connection whose PONG takes longer is given up.
    pub pong_within: Duration,
    /// Public streams only: a connection without a frame for this time is given up, even if it
    /// answers PINGs. `None` for topics that may be silent.
    pub silence_max: Option<Duration>,
    /// Feeds only: a topic is also polled if its stream sent no frame within this time of the
    /// start, or of the loss of its connection. A stream also has this time to deliver a change
    /// that polling shows; after that it counts as dead.
    pub first_frame_within: Duration,
    /// Feeds only: a topic is also polled after its stream was silent for this time.
    pub frame_within: Duration,
    /// Feeds only: books and mark prices are polled after this silence if it is shorter than
    /// `frame_within`, because strategies quote by them.
    pub quote_within: Duration,
    /// First and longest pause before a new connection. The pause doubles, and half of it is
    /// random.
    pub backoff: (Duration, Duration),
    /// A connection of this age is replaced. The venue ends it at 24 hours.
    pub age_max: Duration,
    /// Time for which the old and the new connection run in parallel during a replacement.
    pub overlap: Duration,
    /// Listen keys are renewed after this time, or up to a quarter of it later. They live 60
    /// minutes.
    pub renew_every: Duration,
    /// A connection must be open within this time, including its handshake.
    pub connect_within: Duration,
    /// Path of public streams. A feed switches to the other path if the venue does not know this
    /// one. With documented market data it always uses [`MarketPath::Raw`].
    pub path: MarketPath,
    /// Messages per second and connection to the venue. The core interface allows 5 on spot and
    /// futures, which takes precedence over the 10 of a public fact for futures
    /// (docs/interface/limits.md#websocket-limits).
    pub messages_per_s: u32,
    /// Maximum number of streams of one spot connection (docs/interface/limits.md#websocket-limits).
    pub spot_streams_max: usize,
    /// Maximum number of streams of one futures connection
    /// (docs/interface/limits.md#websocket-limits).
    pub futures_streams_max: usize,
    /// Maximum number of items that wait for the consumer. Further items are dropped and reported
    /// as a gap.
    pub capacity: usize,
    /// Seed of the random part of pauses. The default is the same in every process. If many
    /// processes connect to one venue, give each its own seed, or all reconnect at the same moment.
    pub seed: u64,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            ping_every: Duration::from_secs(10),
            pong_within: Duration::from_secs(10),
            silence_max: None,
            first_frame_within: Duration::from_secs(5),
            frame_within: Duration::from_mins(1),
            quote_within: Duration::from_secs(10),
            backoff: (Duration::from_millis(500), Duration::from_secs(30)),
            age_max: Duration::from_mins(23 * 60 + 30),
            overlap: Duration::from_secs(3),
            renew_every: Duration::from_mins(20),
            connect_within: Duration::from_secs(10),
            path: MarketPath::Combined,
            messages_per_s: 5,
            spot_streams_max: 1_024,
            futures_streams_max: 200,
            capacity: 65_536,
            seed: 0x5eed,
        }
    }
}

impl StreamSettings {
    /// Maximum number of streams of one connection of a surface; at least 1.
    pub fn streams_max(&self, surface: Surface) -> usize {
        let most = match surface {
            Surface::Spot => self.spot_streams_max,
            _ => self.futures_streams_max,
        };
        most.max(1)
    }
}
