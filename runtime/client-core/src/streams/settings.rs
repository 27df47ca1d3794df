//! How streams are kept alive.

use std::time::Duration;

/// Which path public streams use, and with it the shape of their frames (spec 4, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarketPath {
    /// `/stream`: `{stream, data}`.
    #[default]
    Combined,
    /// `/ws`: the bare payload, which does not tell a futures partial book from a difference.
    Raw,
}

impl MarketPath {
    /// As it is written in an address.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Combined => "/stream",
            Self::Raw => "/ws",
        }
    }
}

/// Pings, reconnects, renewals. The defaults keep the rules of the documents (spec 1, Limits,
/// rule 8; spec 4, section 5) with room to spare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSettings {
    /// A PING of our own goes out so often.
    pub ping_every: Duration,
    /// A connection whose PONG takes longer is given up.
    pub pong_within: Duration,
    /// Public streams only: a connection that carries no frame for so long is given up although
    /// it answers PINGs. For topics that must be talking; `None` for topics that may be silent.
    pub silence_max: Option<Duration>,
    /// Feeds only: a topic whose stream brought no frame within this time of the start, or of the
    /// loss of its connection, is polled beside. As long has the stream to bring what polling
    /// shows before it counts as dead.
    pub first_frame_within: Duration,
    /// Feeds only: a topic whose stream was silent for so long is polled beside.
    pub frame_within: Duration,
    /// The same for books and mark prices, where it is shorter: strategies quote on them.
    pub quote_within: Duration,
    /// First and longest pause before a new connection; between them it doubles, and half of it
    /// is random.
    pub backoff: (Duration, Duration),
    /// A connection is replaced when it is so old; the venue ends it at 24 hours.
    pub age_max: Duration,
    /// Old and new connection run side by side so long when one replaces the other.
    pub overlap: Duration,
    /// Listen keys are renewed after this time, and up to a quarter of it later; they live 60
    /// minutes.
    pub renew_every: Duration,
    /// A connection, its handshake included, must stand within this time.
    pub connect_within: Duration,
    /// Where public streams are connected to. A feed takes the other path where the venue does
    /// not know this one, and with documented market data always [`MarketPath::Raw`].
    pub path: MarketPath,
    /// Messages to the venue per connection and second: 5 on both surfaces by document 1, which
    /// wins over the 10 of spec 4, section 5, for futures.
    pub messages_per_s: u32,
    /// Items that wait for the consumer; what comes on top is dropped and reported as a gap.
    pub capacity: usize,
    /// Seed of the random part of pauses. The default is the same in every process: give each
    /// its own where many connect to one venue, or all come back at the same moment.
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
            capacity: 65_536,
            seed: 0x5eed,
        }
    }
}
