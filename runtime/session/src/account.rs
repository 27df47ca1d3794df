//! The account of a run: an account of a venue, which the shell reaches over the network, or a
//! simulated one in this process.

use windvane_model::{InstrumentId, MarketEvent, Surface, Time};

use crate::paper::{Paper, PaperOutput};

/// The account that the engine trades on.
#[derive(Debug)]
pub enum Account {
    /// An account of a venue. Requests leave the process.
    Venue,
    /// A simulated account.
    Paper(Box<Paper>),
}

/// The kind of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountKind {
    /// An account of a venue.
    Venue,
    /// A simulated account.
    Paper,
}

impl AccountKind {
    /// Its name for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Venue => "an account of a venue",
            Self::Paper => "a simulated account",
        }
    }
}

impl Account {
    /// Whether requests leave the process.
    pub const fn is_of_venue(&self) -> bool {
        matches!(self, Self::Venue)
    }

    /// Passes on a public event that the engine receives at `now`. A venue already knows it.
    pub(crate) fn market(&mut self, now: Time, instrument: InstrumentId, event: &MarketEvent<'_>) {
        if let Self::Paper(paper) = self {
            paper.market(now, instrument, event);
        }
    }

    /// The next message of a simulated account that is due by `now`.
    pub(crate) fn poll(&mut self, now: Time) -> Option<PaperOutput> {
        match self {
            Self::Venue => None,
            Self::Paper(paper) => paper.poll(now),
        }
    }

    /// When a simulated account must be polled again.
    pub(crate) fn next(&self) -> Time {
        match self {
            Self::Venue => Time::NEVER,
            Self::Paper(paper) => paper.next(),
        }
    }

    /// Reconnects the user stream of a simulated account. Returns whether the account is simulated.
    pub(crate) fn reconnect(&mut self, surface: Surface) -> bool {
        match self {
            Self::Venue => false,
            Self::Paper(paper) => {
                paper.reconnect(surface);
                true
            }
        }
    }

    /// The part that belongs into the checkpoint of a segment.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Venue => None,
            Self::Paper(paper) => Some(paper.to_bytes()),
        }
    }
}
