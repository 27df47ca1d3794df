//! The last seconds of an account, for routes that lag behind the stream.

use std::collections::{BTreeMap, VecDeque};

use windvane_model::{Surface, Time, VenueOrderId};
use windvane_sim::{FuturesBalance, OrderView, PositionView, SpotBalance, StreamEvent, Venue};

/// How long a moment is kept: the longest lag, plus a margin.
const KEPT_MS: i64 = 11_000;

/// Balances and positions at one time.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) time: Time,
    pub(crate) futures: Vec<FuturesBalance>,
    pub(crate) spot: Vec<SpotBalance>,
    pub(crate) positions: Vec<PositionView>,
}

impl Moment {
    /// The present moment of the account.
    pub(crate) fn of(venue: &Venue, time: Time) -> Self {
        Self {
            time,
            futures: venue
                .assets()
                .map(|asset| venue.futures_balance(asset))
                .collect(),
            spot: venue
                .assets()
                .map(|asset| venue.spot_balance(asset))
                .collect(),
            positions: venue.position_views().collect(),
        }
    }
}

/// Orders and account during the last seconds.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    /// Orders after each change, oldest first.
    orders: VecDeque<(Time, OrderView)>,
    /// Open orders before the first of these changes.
    before: BTreeMap<VenueOrderId, OrderView>,
    /// The account after each change. The first moment is older than the changes.
    moments: VecDeque<Moment>,
}

impl Past {
    /// Starts the past of an account now.
    pub(crate) fn new(venue: &Venue, now: Time) -> Self {
        let open = venue.open(None);
        Self {
            orders: VecDeque::new(),
            before: open
                .into_iter()
                .map(|order| (order.order_id, order))
                .collect(),
            moments: VecDeque::from([Moment::of(venue, now)]),
        }
    }

    /// Records a user event.
    pub(crate) fn note(&mut self, event: &StreamEvent) {
        if let StreamEvent::Order(order) = event {
            let time = order.update.transaction_time;
            self.orders.push_back((time, order.order));
        }
    }

    /// Records the account after its events.
    pub(crate) fn keep(&mut self, venue: &Venue, now: Time) {
        self.moments.push_back(Moment::of(venue, now));
        let old = |time: Time| time.millis() < now.millis() - KEPT_MS;
        while self.moments.get(1).is_some_and(|next| old(next.time)) {
            self.moments.pop_front();
        }
        while self.orders.front().is_some_and(|(time, _)| old(*time))
            && let Some((_, order)) = self.orders.pop_front()
        {
            if order.status.is_final() {
                self.before.remove(&order.order_id);
            } else {
                self.before.insert(order.order_id, order);
            }
        }
    }

    /// Balances and positions at a time.
    pub(crate) fn moment(&self, at: Time) -> Option<&Moment> {
        let known = self.moments.iter().rev().find(|moment| moment.time <= at);
        known.or_else(|| self.moments.front())
    }

    /// An order at a past time; `now` is its present state.
    pub(crate) fn order(&self, at: Time, now: OrderView) -> Option<OrderView> {
        let changes = self.orders.iter();
        let own = changes.filter(|(_, order)| order.order_id == now.order_id);
        let (mut then, mut changed) = (None, false);
        for (time, order) in own {
            if *time <= at {
                then = Some(*order);
            }
            changed = true;
        }
        match then {
            Some(order) => Some(order),
            None if changed => self.before.get(&now.order_id).copied(),
            None => Some(now),
        }
    }

    /// The open orders of a surface at a past time; `open` are those that are open now.
    pub(crate) fn open(&self, at: Time, surface: Surface, open: Vec<OrderView>) -> Vec<OrderView> {
        let mut all: BTreeMap<_, _> = self
            .orders
            .iter()
            .map(|(_, order)| (order.order_id, *order))
            .collect();
        all.extend(open.into_iter().map(|order| (order.order_id, order)));
        all.into_values()
            .filter_map(|order| self.order(at, order))
            .filter(|order| order.surface == surface && !order.status.is_final())
            .collect()
    }
}
