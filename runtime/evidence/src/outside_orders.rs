//! Outside orders whose trades closed a position and that no event reported. The venue may refuse
//! the list of forced orders, or the list may be behind. The order itself shows whether the venue
//! placed it (docs/interface/orders.md#query-an-order): by its client order id, its type or its
//! status. An order that the venue does not know counts as a forced close.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::forced::ForcedClose;
use windvane_model::ids::{InstrumentId, Time, VenueOrderId};
use windvane_model::names::Names;
use windvane_model::order::PositionSide;
use windvane_model::planted;
use windvane_model::protocol::{OrderUpdate, Outcome};
use windvane_model::state_report::{OpenOrder, StateReport};

use crate::connection::OF_ANY_ROUTE;
use crate::forced::{ForcedCloses, OrderKey};
use crate::lag::READ_LAG_MS;

/// At most this many orders are queried at a time; closes by further orders count as closes by
/// hand.
const ORDERS_MAX: usize = 64;

/// Time from a failed query to the next.
const ASK_AGAIN_MS: i64 = 4_000;

/// An order whose query gets no response for this long counts as a forced close.
const ANSWERED_MS: i64 = 60_000;

/// A pending query for one order.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PendingQuery {
    position_side: PositionSide,
    /// When its trade was listed here.
    listed: Time,
    /// The venue's time of that trade.
    made: Time,
    /// When the last query was sent, if any.
    sent: Option<Time>,
    waits: bool,
}

/// Pending queries for outside orders.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct OutsideOrders(BTreeMap<OrderKey, PendingQuery>);

/// The meaning of a response about an outside order.
#[derive(Clone, Copy, Debug)]
pub enum OutsideOrderAnswer<'a> {
    /// The order is a forced one.
    Forced(&'a OpenOrder),
    /// A person or another program placed the order.
    ByHand,
    /// The order counts as a forced close. The time is the venue's time of its trade.
    Unknown(Time),
}

impl OutsideOrders {
    /// Plans a query for the order of a listed outside trade that closed a position, unless it is
    /// known to be the venue's own (`known`).
    pub fn plan_query(&mut self, update: &OrderUpdate, known: bool, now: Time) {
        let key = (update.instrument, update.order_id);
        if known || self.0.len() >= ORDERS_MAX || planted!(LiquidationIgnored) {
            return;
        }
        let query = PendingQuery {
            position_side: update.position_side,
            listed: now,
            made: update.transaction_time,
            sent: None,
            waits: false,
        };
        self.0.entry(key).or_insert(query);
    }

    /// Drops the query for an order: an event reports the order and shows its kind.
    pub fn forget(&mut self, key: OrderKey) {
        self.0.remove(&key);
    }

    /// The orders that are queried.
    pub fn keys(&self) -> impl Iterator<Item = &OrderKey> {
        self.0.keys()
    }

    /// Whether it is still unknown which party closed a position of an instrument.
    pub fn queries_outside_order(&self, id: InstrumentId) -> bool {
        self.0.keys().any(|(of, _)| *of == id)
    }

    /// Notes that the orders of an instrument are queried, except those that are known to be
    /// forced. Returns them.
    pub fn ask(&mut self, id: InstrumentId, forced: &ForcedCloses, now: Time) -> Vec<VenueOrderId> {
        self.0.retain(|key, _| !forced.orders_by_venue(*key));
        let is_due = |query: &PendingQuery| {
            let again = query.sent.map(|sent| sent.plus_ms(ASK_AGAIN_MS));
            !query.waits && again.is_none_or(|again| now >= again)
        };
        let mut asked = Vec::new();
        for ((instrument, order_id), query) in &mut self.0 {
            if *instrument == id && is_due(query) {
                (query.waits, query.sent) = (true, Some(now));
                asked.push(*order_id);
            }
        }
        asked
    }

    /// Stops waiting for responses that are overdue, so that their queries can be sent again.
    /// Returns the instruments that were asked about.
    pub fn overdue(&mut self, now: Time) -> Vec<InstrumentId> {
        let mut asked: Vec<InstrumentId> = Vec::new();
        for ((id, _), query) in &mut self.0 {
            let overdue = |sent: Time| now > sent.plus_ms(ANSWERED_MS / 4);
            query.waits &= !query.sent.is_some_and(overdue);
            if query.sent.is_some() && asked.last() != Some(id) {
                asked.push(*id);
            }
        }
        asked
    }

    /// Takes the response about an outside order. Returns the side of the position that it closed
    /// and what it is; `None` if that is not known yet.
    pub fn take_answer<'a>(
        &mut self,
        key: OrderKey,
        outcome: &'a Outcome<StateReport>,
        now: Time,
    ) -> Option<(PositionSide, OutsideOrderAnswer<'a>)> {
        let query = self.0.get_mut(&key)?;
        query.waits = false;
        let query = *query;
        let found = match outcome {
            Outcome::Done(StateReport::OutsideOrder(order)) if order.report.order_id == key.1 => {
                if ForcedClose::of_order(order).is_some() {
                    OutsideOrderAnswer::Forced(order)
                } else {
                    OutsideOrderAnswer::ByHand
                }
            }
            Outcome::Refused(refusal)
                if !OF_ANY_ROUTE.contains(&refusal.code)
                    && now > query.listed.plus_ms(READ_LAG_MS) =>
            {
                OutsideOrderAnswer::Unknown(query.made)
            }
            _ if now > query.listed.plus_ms(ANSWERED_MS) => OutsideOrderAnswer::Unknown(query.made),
            _ => return None,
        };
        self.0.remove(&key);
        Some((query.position_side, found))
    }

    /// Takes over the open queries of an earlier process.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        for ((id, order_id), query) in &old.0 {
            if let Some(id) = names.instruments.get(id) {
                let waits = false;
                let query = PendingQuery { waits, ..*query };
                self.0.insert((*id, *order_id), query);
            }
        }
    }
}
