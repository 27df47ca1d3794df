//! Orders of others whose trades closed a position, and that no event reported. The list of forced orders may
//! be refused or be behind. The order itself says whether the venue placed it (spec 2, Query order): by its
//! client order id, its type or its status. One that the venue does not know counts as a forced close.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::forced::ForcedClose;
use crate::ids::{InstrumentId, Time, VenueOrderId};
use crate::order::{PositionSide, Surface};
use crate::planted;
use crate::protocol::{OrderUpdate, Outcome, Request};
use crate::truth::{Subject, Truth};

use super::Engine;
use super::lag::READ_LAG_MS;
use super::reconcile::OF_ANY_ROUTE;
use super::snapshot::Names;

/// Orders that are asked for at a time; closes of more than these count as closes by hand.
const ORDERS_MAX: usize = 64;
/// From a question that failed to the next.
const ASK_AGAIN_MS: i64 = 4_000;
/// An order for which no answer comes for so long counts as a forced close.
const ANSWERED_MS: i64 = 60_000;

/// Questions for orders of others.
pub(super) type OutsideOrders = BTreeMap<(InstrumentId, VenueOrderId), Inquiry>;

/// A question for one order.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Inquiry {
    position_side: PositionSide,
    /// When its trade was listed here.
    listed: Time,
    /// The venue's time of that trade.
    made: Time,
    /// When the last question left, if any did.
    sent: Option<Time>,
    waits: bool,
}

impl Engine {
    /// A listed trade of others closed a position: its order is asked for.
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

    /// An event reports an order of others: it says itself what it is.
    pub(super) fn forget_inquiry(&mut self, update: &OrderUpdate) {
        let key = (update.instrument, update.order_id);
        self.outside_orders.remove(&key);
    }

    /// Whether it is open who closed a position of an instrument.
    pub(super) fn inquires_after(&self, id: InstrumentId) -> bool {
        self.outside_orders.keys().any(|(of, _)| *of == id)
    }

    /// Asks for the orders of others whose trades are listed, apart from those that are known to be forced.
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

    /// Asks again for orders of others that were not answered.
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

    /// Takes the answer about an order of others: a forced close is settled with the figures of its order. Any
    /// other was a close by hand.
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

    /// Takes over what an engine of another process did not know yet.
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
