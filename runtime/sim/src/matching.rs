//! How own orders meet the recorded market, as crossing and as resting orders.
//!
//! - A crossing order takes the displayed levels within its limit, best first, as taker. Quantity
//!   that is not displayed does not exist: beyond the last known level a market order ends EXPIRED
//!   with the rest unfilled. In a book with only a top, that level is the top. Filling the rest at
//!   the top's price would be too optimistic, because a real order would have paid more.
//! - Own fills never change the recorded market. But quantity that one own order took of a level is
//!   not available to another until the recording updates that level.
//! - A resting order fills as maker at its own price, in three cases. A trade at its price fills it
//!   by the quantity that reaches it (see [`crate::queue`]). A trade through its price proves that
//!   its level was consumed, so it fills before all others, up to the trade's quantity. An opposite
//!   best price that touches or crosses its price fills it up to the displayed quantity. Own orders
//!   share a trade by price, then age; no quantity of a trade is used twice.
//! - Own orders do not match own orders, because the recorded book does not contain them.
//! - HIDDEN orders are behind everything that is displayed at their price.
//! - A GTX order that would cross is accepted and ends EXPIRED at once ("per time in force",
//!   docs/interface/orders.md#order-status). So does the rest of an IOC order, and a FOK order that
//!   cannot fill completely.

use windvane_model::{InstrumentId, Level, OrderStatus, Side, TimeInForce, WorkingType};

use crate::order::{Order, Stage};
use crate::order_key::OrderKey;
use crate::queue::Resting;
use crate::stream::Met;
use crate::venue::Venue;

/// Whether a price of the opposite side is good enough for `limit`.
#[inline]
const fn reaches(side: Side, limit: i64, price: i64) -> bool {
    match side {
        Side::Buy => price <= limit,
        Side::Sell => price >= limit,
    }
}

/// Execution of an order that becomes active.
impl Venue {
    pub(crate) fn execute(&mut self, key: OrderKey) {
        let order = self.orders.at(key);
        let (time_in_force, limit) = (order.time_in_force, order.limit());
        let blocked = match time_in_force {
            TimeInForce::Gtx => self.would_cross(key),
            TimeInForce::Fok => self.reachable(key, order.remaining()) < order.remaining(),
            _ => false,
        };
        if blocked {
            return self.end(key, self.rest_ends());
        }
        self.take(key);
        if self.orders.at(key).stage == Stage::Finished {
            return;
        }
        let rests = matches!(
            time_in_force,
            TimeInForce::Gtc | TimeInForce::Gtx | TimeInForce::Hidden
        );
        match limit {
            Some(price) if rests && self.executable(key) > 0 => self.rest(key, price),
            _ => self.end(key, self.rest_ends()),
        }
    }

    /// The worst price of the order: its limit, or for market orders the mark price plus or minus
    /// `marketTakeBound`.
    fn worst_price(&self, key: OrderKey) -> i64 {
        let order = self.orders.at(key);
        let side = order.terms.side;
        let bound = || {
            let market = self.at(order.terms.instrument);
            (!order.is_liquidation()).then(|| market.take_bound(side))?
        };
        let unbounded = || match side {
            Side::Buy => i64::MAX,
            Side::Sell => i64::MIN,
        };
        order.limit().or_else(bound).unwrap_or_else(unbounded)
    }

    /// Whether the best opposite price reaches its limit, even if no quantity is left there.
    fn would_cross(&self, key: OrderKey) -> bool {
        let terms = &self.orders.at(key).terms;
        let best = self.at(terms.instrument).book.best(terms.side.opposite());
        best.is_some_and(|level| reaches(terms.side, self.worst_price(key), level.price))
    }

    /// Whether the best opposite price reaches the limit of an order that is not in the book yet.
    pub(crate) fn order_would_cross(&self, order: &Order) -> bool {
        let terms = &order.terms;
        let best = self.at(terms.instrument).book.best(terms.side.opposite());
        let met = |price| {
            order
                .limit()
                .is_some_and(|limit| reaches(terms.side, limit, price))
        };
        best.is_some_and(|level| met(level.price))
    }

    /// The final status of an order whose rest cannot be filled at once.
    const fn rest_ends(&self) -> OrderStatus {
        if self.open_terms.rest_is_canceled {
            OrderStatus::Canceled
        } else {
            OrderStatus::Expired
        }
    }

    /// The quantity that it could take at once. Counting stops at `enough`.
    pub(crate) fn reachable(&self, key: OrderKey, enough: i64) -> i64 {
        let order = self.orders.at(key);
        let (side, worst) = (order.terms.side, self.worst_price(key));
        let book = &self.at(order.terms.instrument).book;
        let mut found = 0;
        let mut n = 0;
        while let Some(level) = book.nth(side.opposite(), n) {
            if found >= enough || !reaches(side, worst, level.price) {
                break;
            }
            found += level.available();
            n += 1;
        }
        found
    }

    /// The quantity that the order may still fill. A closing order fills no more than there is to
    /// close.
    pub(crate) fn executable(&self, key: OrderKey) -> i64 {
        let order = self.orders.at(key);
        if !order.closing {
            return order.remaining();
        }
        let terms = &order.terms;
        let closable = self
            .at(terms.instrument)
            .closable(terms.position_side, terms.side);
        order.remaining().min(closable)
    }

    pub(crate) fn take(&mut self, key: OrderKey) {
        let order = self.orders.at(key);
        let (instrument, side) = (order.terms.instrument, order.terms.side);
        let worst = self.worst_price(key);
        let mut n = 0;
        while let Some(level) = self.at(instrument).book.nth(side.opposite(), n).copied() {
            let wanted = self.executable(key);
            if wanted == 0 || !reaches(side, worst, level.price) {
                break;
            }
            let qty = level.available().min(wanted);
            if qty > 0 {
                self.at_mut(instrument).book.take(side.opposite(), n, qty);
                let met = Met::Level(level.price);
                self.fill(key, level.price, qty, false, met);
            }
            n += 1;
        }
    }

    fn rest(&mut self, key: OrderKey, price: i64) {
        let order = self.orders.at(key);
        let (side, hidden) = (order.terms.side, order.time_in_force == TimeInForce::Hidden);
        let (instrument, model) = (order.terms.instrument, self.queue);
        let market = self.at_mut(instrument);
        let displayed = market.book.displayed(side, price);
        let resting = Resting::join(key, price, displayed, hidden, model);
        let own = &mut market.own[side as usize];
        let at = own.partition_point(|o| reaches(side, o.price, price));
        own.insert(at, resting);
        market.watch_own();
    }

    /// Expires the orders in the book that can only close, if nothing is left to close.
    #[cold]
    pub(crate) fn expire_closing(&mut self, instrument: InstrumentId) {
        if self.open_terms.closing_orders_stay {
            return;
        }
        let resting = self.at(instrument).own.iter().flatten();
        let spent = |key: &OrderKey| self.orders.at(*key).closing && self.executable(*key) == 0;
        let keys: Vec<_> = resting.map(|own| own.key).filter(spent).collect();
        for key in keys {
            self.close(key, OrderStatus::Expired);
        }
    }

    /// Removes an order from the book.
    pub(crate) fn withdraw(&mut self, key: OrderKey) {
        let terms = &self.orders.at(key).terms;
        let (instrument, side) = (terms.instrument, terms.side);
        let market = self.at_mut(instrument);
        market.own[side as usize].retain(|own| own.key != key);
        market.watch_own();
    }
}

/// Events of the recorded market.
impl Venue {
    #[cold]
    #[inline(never)]
    pub(crate) fn traded(
        &mut self,
        instrument: InstrumentId,
        price: i64,
        qty: i64,
        buyer_is_maker: bool,
    ) {
        let hit = if buyer_is_maker {
            Side::Buy
        } else {
            Side::Sell
        };
        let mut left = qty;
        for side in [Side::Buy, Side::Sell] {
            let mut n = 0;
            while let Some(own) = self.at_mut(instrument).own[side as usize].get_mut(n) {
                let reach = if own.price == price {
                    if side != hit {
                        break;
                    }
                    own.on_trade(left)
                } else if reaches(side, own.price, price) {
                    own.on_through();
                    left
                } else {
                    break;
                };
                let (filled, gone) = self.fill_resting(instrument, side, n, reach, Met::Trade);
                left -= filled;
                n += usize::from(!gone);
            }
        }
        self.trigger(instrument, WorkingType::ContractPrice);
        self.settle();
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn touched(&mut self, instrument: InstrumentId, changed: bool) {
        if !changed {
            return;
        }
        let model = self.queue;
        let market = self.at_mut(instrument);
        for side in [Side::Buy, Side::Sell] {
            let Some(best) = market.book.best(side).copied() else {
                continue;
            };
            for own in &mut market.own[side as usize] {
                if own.price == best.price {
                    own.on_displayed(best.qty, model);
                } else if reaches(side, own.price, best.price) {
                    // The own price is better than the best of others, so nothing is displayed
                    // there.
                    own.on_displayed(0, model);
                } else {
                    break;
                }
            }
        }
        self.cross(instrument);
        self.mid_moved(instrument);
    }

    pub(crate) fn deepened(
        &mut self,
        instrument: InstrumentId,
        update_id: i64,
        snapshot: bool,
        sides: [&[Level]; 2],
    ) {
        let model = self.queue;
        let market = self.at_mut(instrument);
        let book = &mut market.book;
        if snapshot {
            book.snapshot(update_id, sides[0], sides[1]);
            for side in [Side::Buy, Side::Sell] {
                for own in &mut market.own[side as usize] {
                    let displayed = book.displayed(side, own.price).unwrap_or(0);
                    own.on_displayed(displayed, model);
                }
            }
        } else if book.takes_differences() {
            let stale = book.is_stale(update_id);
            for (side, levels) in [Side::Buy, Side::Sell].into_iter().zip(sides) {
                let own = &mut market.own[side as usize];
                for level in levels {
                    let applied = book.difference(side, *level, stale);
                    if !own.is_empty() && applied {
                        displayed_at(own, side, *level, model);
                    }
                }
            }
            book.advance(update_id);
        } else {
            return;
        }
        let alert = market.alert;
        let touch = |side| market.book.best(side).map(|l| l.price);
        let bid_reaches = touch(Side::Buy).is_some_and(|bid| bid >= alert.ask);
        let ask_reaches = touch(Side::Sell).is_some_and(|ask| ask <= alert.bid);
        if bid_reaches || ask_reaches {
            self.cross(instrument);
        }
        self.mid_moved(instrument);
    }

    /// Handles a change of the book and of its mid price, which may be the mark price.
    fn mid_moved(&mut self, instrument: InstrumentId) {
        if self.at(instrument).mark.is_none() {
            self.trigger(instrument, WorkingType::MarkPrice);
            self.watch_mark(instrument);
        }
        self.settle();
    }

    /// Fills own orders that the opposite side touches or crosses.
    fn cross(&mut self, instrument: InstrumentId) {
        for side in [Side::Buy, Side::Sell] {
            let mut n = 0;
            while let Some(own) = self.at(instrument).own[side as usize].get(n).copied() {
                let Some(best) = self.at(instrument).book.best(side.opposite()) else {
                    break;
                };
                if !reaches(side, own.price, best.price) {
                    break;
                }
                self.at_mut(instrument).own[side as usize][n].on_through();
                let gone = self.fill_from_levels(instrument, side, n, own.price);
                n += usize::from(!gone);
            }
        }
    }

    fn fill_from_levels(
        &mut self,
        instrument: InstrumentId,
        side: Side,
        n: usize,
        price: i64,
    ) -> bool {
        let mut depth = 0;
        while let Some(level) = self
            .at(instrument)
            .book
            .nth(side.opposite(), depth)
            .copied()
        {
            if !reaches(side, price, level.price) {
                break;
            }
            let (reach, met) = (level.available(), Met::Level(level.price));
            let (filled, gone) = self.fill_resting(instrument, side, n, reach, met);
            self.at_mut(instrument)
                .book
                .take(side.opposite(), depth, filled);
            if gone {
                return true;
            }
            depth += 1;
        }
        false
    }

    /// Fills the `n`-th own order of a side by at most `reach`. Returns the filled quantity, and
    /// whether the order left the book.
    pub(crate) fn fill_resting(
        &mut self,
        instrument: InstrumentId,
        side: Side,
        n: usize,
        reach: i64,
        met: Met,
    ) -> (i64, bool) {
        if reach == 0 {
            return (0, false);
        }
        let own = self.at(instrument).own[side as usize][n];
        let qty = self.executable(own.key).min(reach);
        if qty > 0 {
            let (price, maker) = match met {
                Met::Order(deal) => (deal.price.0, deal.maker),
                _ => (own.price, true),
            };
            self.fill(own.key, price, qty, maker, met);
        }
        let finished = self.orders.at(own.key).stage == Stage::Finished;
        let stays = self.open_terms.closing_orders_stay;
        let spent = !finished && !stays && self.executable(own.key) == 0;
        if finished || spent {
            let market = self.at_mut(instrument);
            market.own[side as usize].remove(n);
            market.watch_own();
        }
        if spent {
            self.end(own.key, OrderStatus::Expired);
        }
        (qty, finished || spent)
    }
}

/// Updates the own orders at a level's price with its displayed quantity.
fn displayed_at(own: &mut [Resting], side: Side, level: Level, model: crate::config::QueueModel) {
    let first =
        own.partition_point(|o| o.price != level.price && reaches(side, o.price, level.price));
    for order in own[first..]
        .iter_mut()
        .take_while(|o| o.price == level.price)
    {
        order.on_displayed(level.qty, model);
    }
}
