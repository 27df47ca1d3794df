//! Where the account is: at a venue, over the wire, or simulated in the engine's thread.

use std::sync::Arc;
use std::time::Instant;

use windvane_admin::metrics::table;
use windvane_engine::engine::Purpose;
use windvane_engine::{InstrumentId, MarketEvent, Request, Time};

use super::carrier::Carrier;
use super::paper::{Paper, Word};

/// The account's side of the engine.
pub enum Account {
    /// Requests travel to the venue.
    Venue(Arc<Carrier>),
    /// The simulated account.
    Paper(Box<Paper>),
}

impl Account {
    /// A public event that the engine is told at `now`. A venue knows of it already.
    pub fn market(&mut self, now: Time, instrument: InstrumentId, event: &MarketEvent<'_>) {
        if let Self::Paper(paper) = self {
            paper.market(now, instrument, event);
        }
    }

    /// Sends a request on its way, which the engine wanted at `now`; `since` is when the market
    /// event came that it follows from.
    pub fn carry(
        &mut self,
        now: Time,
        (request, purpose): (Request, Purpose),
        since: Option<Instant>,
    ) {
        match self {
            Self::Venue(carrier) => carrier.carry(request, purpose, since),
            Self::Paper(paper) => {
                if let (Request::Place(_), Some(since)) = (&request, since) {
                    let latency = since.elapsed().as_secs_f64();
                    table::ORDER_LATENCY.of([]).record(latency);
                }
                paper.request(now, request);
            }
        }
    }

    /// Has the way of an order walked without one, see [`Carrier::rehearse`].
    pub fn rehearse(&self) {
        if let Self::Venue(carrier) = self {
            carrier.rehearse();
        }
    }

    /// What a simulated account has to say by `now`; a venue's words come through the mailbox.
    pub fn poll(&mut self, now: Time) -> Option<Word> {
        match self {
            Self::Venue(_) => None,
            Self::Paper(paper) => paper.poll(now),
        }
    }

    /// The run is ending.
    pub fn hurry(&self) {
        if let Self::Venue(carrier) = self {
            carrier.hurry();
        }
    }

    /// When a simulated account is to be asked again.
    pub fn next(&self) -> Time {
        match self {
            Self::Venue(_) => Time::NEVER,
            Self::Paper(paper) => paper.next(),
        }
    }

    /// What of it belongs into the head of a segment.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Venue(_) => None,
            Self::Paper(paper) => Some(paper.to_bytes()),
        }
    }
}
