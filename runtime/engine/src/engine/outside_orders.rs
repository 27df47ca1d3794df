//! Outside orders whose trades closed a position and that no event reported. The venue may refuse
//! the list of forced orders, or the list may be behind. The order itself shows whether the venue
//! placed it (spec 2, Query order): by its client order id, its type or its status. An order that
//! the venue does not know counts as a forced close.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::effect::Effect;
use windvane_model::forced::ForcedClose;
use windvane_model::ids::{InstrumentId, Time, VenueOrderId};
use windvane_model::order::{PositionSide, Surface};
use windvane_model::planted;
use windvane_model::protocol::{OrderUpdate, Outcome, Request};
use windvane_model::truth::{Subject, Truth};

use super::Engine;
use super::lag::READ_LAG_MS;
use super::reconcile::OF_ANY_ROUTE;
use super::snapshot::Names;

/// At most this many orders are queried at a time; closes by further orders count as closes by
/// hand.
const ORDERS_MAX: usize = 64;
/// Time from a failed query to the next.
const ASK_AGAIN_MS: i64 = 4_000;
/// An order whose query gets no response for this long counts as a forced close.
const ANSWERED_MS: i64 = 60_000;

/// Pending queries for outside orders.
pub(super) type OutsideOrders = BTreeMap<(InstrumentId, VenueOrderId), Inquiry>;

/// A pending query for one order.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Inquiry {
    position_side: PositionSide,
    /// When its trade was listed here.
    listed: Time,
    /// The venue's time of that trade.
    made: Time,
    /// When the last query was sent, if any.
    sent: Option<Time>,
    waits: bool,
}

impl Engine {
    /// Plans a query for the order of a listed outside trade that closed a position.
    pub(super) fn inquire_after_order(&mut self, update: &OrderUpdate) {
        let key = (update.instrument, update.order_id);
        let known = self.forced.orders_by_venue(key);
        if known || self.outside_orders.len() >= ORDERS_MAX || planted!(LiquidationIgnored) {
            return;
        }
        let inquiry = Inquiry {
            position_side: update.position_side,
            listed: self.now,
            made: update.transaction_time,
            sent: None,
            waits: false,
        };
        self.outside_orders.entry(key).or_insert(inquiry);
    }

    /// Drops the query for an order: an event reports the order and shows its kind.
    pub(super) fn forget_inquiry(&mut self, update: &OrderUpdate) {
        let key = (update.instrument, update.order_id);
        self.outside_orders.remove(&key);
    }

    /// Whether it is still unknown which party closed a position of an instrument.
    pub(super) fn inquires_after(&self, id: InstrumentId) -> bool {
        self.outside_orders.keys().any(|(of, _)| *of == id)
    }

    /// Queries the outside orders whose trades are listed, except those that are known to be
    /// forced.
    pub(super) fn ask_for_outside_orders(&mut self, id: InstrumentId) {
        let now = self.now;
        let forced = &self.forced;
        self.outside_orders
            .retain(|key, _| !forced.orders_by_venue(*key));
        let is_due = |inquiry: &Inquiry| {
            let again = inquiry.sent.map(|sent| sent.plus_ms(ASK_AGAIN_MS));
            !inquiry.waits && again.is_none_or(|again| now >= again)
        };
        let mut questions = Vec::new();
        for ((instrument, order_id), inquiry) in &mut self.outside_orders {
            if *instrument == id && is_due(inquiry) {
                (inquiry.waits, inquiry.sent) = (true, Some(now));
                questions.push(Subject::OutsideOrder {
                    instrument: id,
                    order_id: *order_id,
                });
            }
        }
        for subject in questions {
            self.emit(Effect::Send {
                record: 0,
                request: Box::new(Request::Read(subject)),
            });
        }
    }

    /// Repeats queries for outside orders that were not answered.
    pub(super) fn ask_again_for_outside_orders(&mut self) {
        let now = self.now;
        let mut asked: Vec<InstrumentId> = Vec::new();
        for ((id, _), inquiry) in &mut self.outside_orders {
            let overdue = |sent: Time| now > sent.plus_ms(ANSWERED_MS / 4);
            inquiry.waits &= !inquiry.sent.is_some_and(overdue);
            if inquiry.sent.is_some() && asked.last() != Some(id) {
                asked.push(*id);
            }
        }
        for id in asked {
            self.ask_for_outside_orders(id);
        }
    }

    /// Takes the response about an outside order. A forced close is settled with the figures of its
    /// order. Any other order is a close by hand.
    pub(super) fn take_outside_order(
        &mut self,
        instrument: InstrumentId,
        order_id: VenueOrderId,
        outcome: &Outcome<Truth>,
    ) {
        let (now, key) = (self.now, (instrument, order_id));
        let Some(inquiry) = self.outside_orders.get_mut(&key) else {
            return;
        };
        inquiry.waits = false;
        let inquiry = *inquiry;
        match outcome {
            Outcome::Done(Truth::OutsideOrder(order)) if order.report.order_id == order_id => {
                self.outside_orders.remove(&key);
                if ForcedClose::of_order(order).is_some() {
                    self.take_forced_order(order);
                } else {
                    self.explain_close_by_hand(key);
                }
            }
            Outcome::Refused(refusal)
                if !OF_ANY_ROUTE.contains(&refusal.code)
                    && now > inquiry.listed.plus_ms(READ_LAG_MS) =>
            {
                self.outside_orders.remove(&key);
                self.report_unknown_order(key, inquiry.made);
            }
            _ if now > inquiry.listed.plus_ms(ANSWERED_MS) => {
                self.outside_orders.remove(&key);
                self.report_unknown_order(key, inquiry.made);
            }
            _ => return,
        }
        if !self.inquires_after(instrument) {
            self.stated_closes
                .remove(&(instrument, inquiry.position_side));
        }
        self.settle_outside_closes(Surface::Futures);
        self.review_stated_positions();
    }

    /// Takes over the open queries of an earlier process.
    pub(super) fn inherit_inquiries(&mut self, from: &Self, names: &Names) {
        for ((id, order_id), inquiry) in &from.outside_orders {
            if let Some(id) = names.instruments.get(id) {
                let waits = false;
                let inquiry = Inquiry { waits, ..*inquiry };
                self.outside_orders.insert((*id, *order_id), inquiry);
            }
        }
    }
}
