//! The newest entries of the venue's list of the account's trades may belong to orders that this
//! process does not know. An order that filled at once never rests, so no list of open orders shows
//! the instance that placed it. But its trade is in that list and names the order, and a query for
//! the order returns its client order id (docs/interface/orders.md#query-an-order).
//!
//! The account is read first, and the queries are sent after it. Startup waits for their responses.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_model::ids::{InstrumentId, Time, VenueOrderId};
use windvane_model::names::Names;
use windvane_model::order::Surface;
use windvane_model::protocol::Outcome;
use windvane_model::state_report::{StateReport, TradedOrder};

use crate::connection::OF_ANY_ROUTE;
use crate::lag::READ_LAG_MS;

/// Number of orders that are queried per instrument and read. Each costs a weight of 1.
pub const ORDERS_MAX: usize = 3;

/// At most this many orders that events name are queried at a time.
const QUERIES_MAX: usize = 64;

/// Older trades are ignored.
pub const RECENT_MS: i64 = 24 * 60 * 60 * 1_000;

/// Time from a failed query to the next.
const ASK_AGAIN_MS: i64 = 4_000;

/// A query without a response for this long is sent again.
const LOST_MS: i64 = 15_000;

/// An order is queried for at most this long: startup must end even if the route fails.
const GIVE_UP_MS: i64 = 60_000;

/// An order of an instrument.
pub type TradedKey = (InstrumentId, VenueOrderId);

/// Orders with listed trades whose client order ids are not known yet.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct RecentOrders {
    queries: BTreeMap<TradedKey, PendingQuery>,
    /// Surfaces that were read again after the end of the watch for another instance.
    read_after_watch: BTreeSet<Surface>,
}

/// A query that waits for its response.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PendingQuery {
    /// When the trade was listed here, or when the list became necessary.
    listed: Time,
    /// When the first and the last query were sent.
    sent: Option<(Time, Time)>,
    waits: bool,
}

impl PendingQuery {
    /// A query that is not sent yet.
    pub const fn new(listed: Time) -> Self {
        Self {
            listed,
            sent: None,
            waits: false,
        }
    }

    /// Whether the engine stops waiting for this query: it had no useful response for too long.
    pub fn is_over(&self, now: Time) -> bool {
        self.sent
            .is_some_and(|(first, _)| now > first.plus_ms(GIVE_UP_MS))
    }

    /// Whether the query must be sent now.
    pub fn is_due(&self, now: Time) -> bool {
        self.sent.is_none_or(|(_, last)| {
            let wait_ms = if self.waits { LOST_MS } else { ASK_AGAIN_MS };
            now >= last.plus_ms(wait_ms)
        })
    }

    /// Notes that the query is sent.
    pub(crate) fn note_sent(&mut self, now: Time) {
        let first = self.sent.map_or(now, |(first, _)| first);
        self.sent = Some((first, now));
        self.waits = true;
    }

    /// Notes that the query was answered.
    pub(crate) const fn note_answer(&mut self) {
        self.waits = false;
    }
}

impl RecentOrders {
    /// Notes the orders of the newest trades of an instrument.
    pub fn note_newest(&mut self, instrument: InstrumentId, orders: &[VenueOrderId], now: Time) {
        let queries = &mut self.queries;
        for order_id in orders {
            let key = (instrument, *order_id);
            queries.entry(key).or_insert_with(|| PendingQuery::new(now));
        }
        // An earlier page may have named more: the newest orders have the highest ids.
        let of_instrument = queries.range((instrument, VenueOrderId(i64::MIN))..);
        let unsent: Vec<TradedKey> = of_instrument
            .take_while(|((of, _), _)| *of == instrument)
            .filter(|(_, query)| query.sent.is_none())
            .map(|(key, _)| *key)
            .collect();
        for key in unsent.iter().rev().skip(ORDERS_MAX) {
            queries.remove(key);
        }
    }

    /// Notes an order that an event names, to query when it was placed.
    pub fn note(&mut self, key: TradedKey, now: Time) {
        if self.queries.len() < QUERIES_MAX {
            self.queries.entry(key).or_insert(PendingQuery::new(now));
        }
    }

    /// Whether no order is queried.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// Notes that the queries are sent that are due and whose instrument is not held back. Returns
    /// their orders.
    pub fn ask(&mut self, now: Time, held_back: impl Fn(InstrumentId) -> bool) -> Vec<TradedKey> {
        let mut due = Vec::new();
        for (key, query) in &mut self.queries {
            if query.is_due(now) && !held_back(key.0) {
                query.note_sent(now);
                due.push(*key);
            }
        }
        due
    }

    /// Removes queries that time out, except those of instruments that are held back. Returns
    /// whether one of the others was sent.
    pub fn give_up(&mut self, now: Time, held_back: impl Fn(InstrumentId) -> bool) -> bool {
        self.queries
            .retain(|(id, _), query| !query.is_over(now) || held_back(*id));
        let mut left = self.queries.values();
        left.any(|query| query.sent.is_some())
    }

    /// Takes the response about an order. Returns `Some` if the query is finished, with the order
    /// if the venue returned it.
    pub fn take_answer<'a>(
        &mut self,
        key: TradedKey,
        outcome: &'a Outcome<StateReport>,
        now: Time,
    ) -> Option<Option<&'a TradedOrder>> {
        let query = self.queries.get_mut(&key)?;
        query.note_answer();
        let order = match outcome {
            Outcome::Done(StateReport::TradedOrder(order)) => Some(order),
            // The query may be behind the list of trades.
            Outcome::Refused(refusal)
                if !OF_ANY_ROUTE.contains(&refusal.code)
                    && now > query.listed.plus_ms(READ_LAG_MS) =>
            {
                None
            }
            _ => return None,
        };
        self.queries.remove(&key);
        Some(order)
    }

    /// A watch for another instance begins: every surface must be read again at its end.
    pub fn begin_watch(&mut self) {
        self.read_after_watch.clear();
    }

    /// A surface was read again after the end of the watch.
    pub fn note_read_after_watch(&mut self, surface: Surface) {
        self.read_after_watch.insert(surface);
    }

    /// Whether a surface was read again after the end of the watch.
    pub fn was_read_after_watch(&self, surface: Surface) -> bool {
        self.read_after_watch.contains(&surface)
    }

    /// Takes over the open queries of an earlier process.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        for ((id, order_id), query) in &old.queries {
            if let Some(id) = names.instruments.get(id) {
                let query = PendingQuery::new(query.listed);
                self.queries.insert((*id, *order_id), query);
            }
        }
    }
}
