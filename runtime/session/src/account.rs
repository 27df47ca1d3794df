//! Whose account it is: that of a venue, which the shell reaches over the wire, or a simulated one
//! in this process.

use windvane_model::{InstrumentId, MarketEvent, Surface, Time};

use crate::paper::{Paper, Word};

/// The account's side of the engine.
#[derive(Debug)]
pub enum Account {
    /// Requests travel to the venue.
    Venue,
    /// The simulated account.
    Paper(Box<Paper>),
}

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountKind {
    /// A venue has it.
    Venue,
    /// It is simulated.
    Paper,
}

impl AccountKind {
    /// In words.
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

    /// A public event that the engine is told at `now`. A venue knows of it already.
    pub(crate) fn market(&mut self, now: Time, instrument: InstrumentId, event: &MarketEvent<'_>) {
        if let Self::Paper(paper) = self {
            paper.market(now, instrument, event);
        }
    }

    /// What a simulated account has to say by `now`.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Word> {
        match self {
            Self::Venue => None,
            Self::Paper(paper) => paper.poll(now),
        }
    }

    /// When a simulated account is to be asked again.
    pub(crate) fn next(&self) -> Time {
        match self {
            Self::Venue => Time::NEVER,
            Self::Paper(paper) => paper.next(),
        }
    }

    /// The user stream of a simulated account is connected anew. Answers whether there is one.
    pub(crate) fn reconnect(&mut self, surface: Surface) -> bool {
        match self {
            Self::Venue => false,
            Self::Paper(paper) => {
                paper.reconnect(surface);
                true
            }
        }
    }

    /// What of it belongs into the head of a segment.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Venue => None,
            Self::Paper(paper) => Some(paper.to_bytes()),
        }
    }
}
