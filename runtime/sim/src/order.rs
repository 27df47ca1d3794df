//! The venue's record of every order, found by key, by client order id, or by the venue's id.
//!
//! A finished order is kept until [`FINISHED_MAX`] later orders of its kind have finished (or the
//! number of [`crate::Venue::remember_finished`]), so that memory does not grow with the length of
//! a recording. The kind is the surface and whether the order has traded, so orders that end
//! without a fill never displace filled ones.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windvane_model::protocol::OrderReport;
use windvane_model::{
    Amount, ClientOrderId, OrderStatus, OrderTerms, OrderType, Qty, Side, Surface, Time,
    TimeInForce, VenueOrderId,
};

use crate::config::Rate;
use crate::index::Index;
use crate::order_key::OrderKey;

/// The default number of finished orders of each kind that can still be queried.
pub const FINISHED_MAX: usize = 1024;

/// The stage of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// Waits for its trigger condition.
    Waiting,
    /// Is executing or rests in the book.
    Active,
    /// Has a terminal status.
    Finished,
}

/// One order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: VenueOrderId,
    pub(crate) client_order_id: ClientOrderId,
    pub(crate) surface: Surface,
    pub(crate) terms: OrderTerms,
    pub(crate) time_in_force: TimeInForce,
    pub(crate) stage: Stage,
    pub(crate) status: OrderStatus,
    pub(crate) qty: i64,
    pub(crate) executed: i64,
    pub(crate) cum_quote: Amount,
    /// Spot: the amount locked in the account. Futures: its share of the open notional.
    pub(crate) reserved: Amount,
    /// The cost of its fills beyond the venue's fee, as a fraction of the notional.
    pub(crate) surcharge: Rate,
    /// Whether it can only reduce: reduce-only, close-position, or the closing side of hedge mode.
    pub(crate) closing: bool,
    /// Trailing stop: the activation price, and the extreme since placement.
    pub(crate) activation: i64,
    pub(crate) extreme: i64,
    /// Whether the condition of a conditional order has held.
    pub(crate) triggered: bool,
    pub(crate) created: Time,
    pub(crate) updated: Time,
}

impl Order {
    pub(crate) const fn remaining(&self) -> i64 {
        self.qty - self.executed
    }

    pub(crate) fn is_buy(&self) -> bool {
        self.terms.side == Side::Buy
    }

    /// The worst price that it may trade at; `None` for market orders.
    pub(crate) fn limit(&self) -> Option<i64> {
        match self.terms.price {
            Some(price) if !self.terms.order_type.is_market() => Some(price.0),
            _ => None,
        }
    }

    pub(crate) fn is_liquidation(&self) -> bool {
        self.terms.order_type == OrderType::Liquidation
    }

    pub(crate) const fn report(&self) -> OrderReport {
        OrderReport {
            client_order_id: self.client_order_id,
            order_id: self.id,
            instrument: self.terms.instrument,
            status: self.status,
            orig_qty: Qty(self.qty),
            executed_qty: Qty(self.executed),
            cum_quote: self.cum_quote,
            update_time: self.updated,
        }
    }
}

/// The number of kinds: surfaces times whether an order has traded.
const KINDS: usize = 4;

/// All orders.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    slots: Vec<Order>,
    free: Vec<OrderKey>,
    /// By kind, oldest first.
    finished: [VecDeque<OrderKey>; KINDS],
    /// The limits without and with a trade.
    finished_max: [usize; 2],
    index: Index,
    /// Index by the venue's id, only if [`Self::index_ids`] was called.
    by_id: Option<Index>,
}

impl Orders {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            finished: std::array::from_fn(|_| VecDeque::with_capacity(FINISHED_MAX + 1)),
            finished_max: [FINISHED_MAX; 2],
            index: Index::new(),
            by_id: None,
        }
    }

    /// The newest order with this client order id.
    pub(crate) fn find(&self, surface: Surface, id: &ClientOrderId) -> Option<OrderKey> {
        self.index.find(hash(surface, id), |key| {
            let order = self.at(key);
            order.surface == surface && order.client_order_id == *id
        })
    }

    /// The order with this id of the venue.
    pub(crate) fn find_id(&self, id: VenueOrderId) -> Option<OrderKey> {
        let Some(index) = &self.by_id else {
            let order = self.all().find(|(_, order)| order.id == id);
            return order.map(|(key, _)| key);
        };
        index.find(crate::index::hash_id(id), |key| self.at(key).id == id)
    }

    /// Keeps an index of the venue's ids from now on.
    pub(crate) fn index_ids(&mut self) {
        let mut index = Index::new();
        for (key, order) in self.all() {
            index.insert(crate::index::hash_id(order.id), key);
        }
        self.by_id = Some(index);
    }

    /// Keeps this many finished orders of each surface from now on.
    pub(crate) fn remember_finished(&mut self, traded: usize, untraded: usize) {
        self.finished_max = [untraded, traded];
        for kind in 0..KINDS {
            while self.finished[kind].len() > self.finished_max[kind % 2] {
                self.forget_oldest(kind);
            }
        }
    }

    /// Every kept order, in an order without meaning.
    pub(crate) fn all(&self) -> impl Iterator<Item = (OrderKey, &Order)> {
        let mut free = vec![false; self.slots.len()];
        for key in &self.free {
            free[key.0 as usize] = true;
        }
        let keys = (0..).map(OrderKey);
        let used = keys.zip(&self.slots).zip(free);
        used.filter(|(_, free)| !free).map(|(order, _)| order)
    }

    pub(crate) fn insert(&mut self, order: Order) -> OrderKey {
        let id = order.id;
        let older = self.find(order.surface, &order.client_order_id);
        let hash = hash(order.surface, &order.client_order_id);
        if let Some(older) = older {
            self.index.remove(hash, older);
        }
        let key = if let Some(key) = self.free.pop() {
            self.slots[key.0 as usize] = order;
            key
        } else {
            self.slots.push(order);
            OrderKey(self.slots.len() as u32 - 1)
        };
        self.index.insert(hash, key);
        if let Some(index) = &mut self.by_id {
            index.insert(crate::index::hash_id(id), key);
        }
        key
    }

    /// Marks an order as finished. The oldest finished order of its kind may be removed.
    pub(crate) fn finish(&mut self, key: OrderKey) {
        let order = self.at_mut(key);
        order.stage = Stage::Finished;
        let traded = usize::from(order.executed > 0);
        let kind = match order.surface {
            Surface::Spot => traded,
            Surface::Futures => 2 + traded,
        };
        self.finished[kind].push_back(key);
        if self.finished[kind].len() > self.finished_max[traded] {
            self.forget_oldest(kind);
        }
    }

    fn forget_oldest(&mut self, kind: usize) {
        if let Some(oldest) = self.finished[kind].pop_front() {
            let order = self.at(oldest);
            let hash = hash(order.surface, &order.client_order_id);
            let id = crate::index::hash_id(order.id);
            self.index.remove(hash, oldest);
            if let Some(index) = &mut self.by_id {
                index.remove(id, oldest);
            }
            self.free.push(oldest);
        }
    }

    /// Removes the orders for which `is_kept` returns false. It may change the others, but not the
    /// ids by which they are found.
    pub(crate) fn keep(&mut self, is_kept: &mut impl FnMut(&mut Order) -> bool) {
        let keys: Vec<_> = self.all().map(|(key, _)| key).collect();
        for key in keys {
            if is_kept(self.at_mut(key)) {
                continue;
            }
            for finished in &mut self.finished {
                finished.retain(|other| *other != key);
            }
            let order = self.at(key);
            let (hash, id) = (
                hash(order.surface, &order.client_order_id),
                crate::index::hash_id(order.id),
            );
            self.index.remove(hash, key);
            if let Some(index) = &mut self.by_id {
                index.remove(id, key);
            }
            self.free.push(key);
        }
    }

    #[inline]
    pub(crate) fn at(&self, key: OrderKey) -> &Order {
        &self.slots[key.0 as usize]
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, key: OrderKey) -> &mut Order {
        &mut self.slots[key.0 as usize]
    }
}

fn hash(surface: Surface, id: &ClientOrderId) -> u64 {
    crate::index::hash(surface.code(), id)
}
