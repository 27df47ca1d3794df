//! The newest orders of each instrument (docs/interface/orders.md#all-orders), read at a start, and
//! if the venue does not list the account's trades. Like these trades (`recent_orders`), they
//! reveal an instance whose orders fill at once.
//!
//! The account is read first. Startup waits for the responses. The engine requests one instrument
//! after the other, once for each user stream and once at the end of a watch, because each request
//! weighs 5. If the venue refuses one, the engine sends no more, and notifies people that another
//! instance may be unseen.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::instrument::Instrument;
use windvane_model::order::Surface;
use windvane_model::protocol::Outcome;
use windvane_model::state_report::{StateReport, TradedOrder};

use crate::connection::OF_ANY_ROUTE;
use crate::recent_orders::PendingQuery;

/// The state of requests for the newest orders.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct NewestOrders {
    queries: BTreeMap<InstrumentId, PendingQuery>,
    /// Surfaces where the venue refuses to list orders, on the present user stream.
    refused: BTreeSet<Surface>,
    /// Surfaces for which people were notified that another instance may be unseen.
    notified: BTreeSet<Surface>,
}

/// The meaning of a response about the newest orders.
#[derive(Clone, Copy, Debug)]
pub enum NewestOrdersResponse<'a> {
    /// The response shows nothing yet, for example because the request failed.
    Nothing,
    /// The venue does not list the orders of a surface.
    Refused,
    /// The newest orders.
    Listed(&'a [TradedOrder]),
}

impl NewestOrders {
    /// Allows the requests again: the venue may have refused only at that moment.
    pub fn allow(&mut self, surface: Surface) {
        self.refused.remove(&surface);
    }

    /// Plans requests about the instruments of a surface, unless the venue refuses them.
    pub fn plan(
        &mut self,
        surface: Surface,
        instruments: impl IntoIterator<Item = InstrumentId>,
        now: Time,
    ) {
        if self.refused.contains(&surface) {
            return;
        }
        for instrument in instruments {
            self.queries.insert(instrument, PendingQuery::new(now));
        }
    }

    /// Whether no list of orders is expected.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// The next instrument of a surface.
    pub fn next(&self, surface: Surface, instruments: &[Instrument]) -> Option<InstrumentId> {
        let mut asked = self.queries.keys().copied();
        asked.find(|id| instruments[usize::from(id.0)].surface == surface)
    }

    /// Notes that a request about an instrument is sent, if it is due. Returns whether it is.
    pub fn ask(&mut self, instrument: InstrumentId, now: Time) -> bool {
        let query = self.queries.get_mut(&instrument);
        let Some(query) = query.filter(|query| query.is_due(now)) else {
            return false;
        };
        query.note_sent(now);
        true
    }

    /// Whether the engine stops waiting for the newest orders of an instrument.
    pub fn is_over(&self, instrument: InstrumentId, now: Time) -> bool {
        let query = self.queries.get(&instrument);
        query.is_some_and(|query| query.is_over(now))
    }

    /// Takes the response about the newest orders of an instrument.
    pub fn take_answer<'a>(
        &mut self,
        instrument: InstrumentId,
        outcome: &'a Outcome<StateReport>,
    ) -> NewestOrdersResponse<'a> {
        let Some(query) = self.queries.get_mut(&instrument) else {
            return NewestOrdersResponse::Nothing;
        };
        query.note_answer();
        match outcome {
            Outcome::Done(StateReport::NewestOrders(orders)) => {
                self.queries.remove(&instrument);
                NewestOrdersResponse::Listed(orders)
            }
            Outcome::Refused(refusal) if !OF_ANY_ROUTE.contains(&refusal.code) => {
                NewestOrdersResponse::Refused
            }
            _ => NewestOrdersResponse::Nothing,
        }
    }

    /// The venue does not list the orders of a surface. Returns whether people are not notified yet
    /// that another instance may be unseen.
    pub fn end(&mut self, surface: Surface, instruments: &[Instrument]) -> bool {
        self.queries
            .retain(|id, _| instruments[usize::from(id.0)].surface != surface);
        self.refused.insert(surface);
        self.notified.insert(surface)
    }
}
