//! Requests for orders: placing, cancelling, and the checks on arrival besides the filters.
//!
//! The checks run in this order: instrument, filters, order counts, client order id, immediate
//! trigger, position to close, funds. The first failure is the response, and nothing has changed
//! then.

use windvane_model::protocol::{OrderReport, Outcome, Reply, Request};
use windvane_model::{
    Amount, ClientOrderId, ExecutionType, InstrumentId, NewOrder, OrderStatus, OrderTerms,
    OrderType, PositionSide, Side, Surface, Time, TimeInForce, VenueOrderId,
};

use crate::code::Code;
use crate::config::Rate;
use crate::filter::{self, Context};
use crate::market::Market;
use crate::order::{Order, Stage};
use crate::order_key::OrderKey;
use crate::venue::{Venue, VenueMessage, refused};

/// Maximum orders of one batch (docs/interface/orders.md#place-several-orders).
const BATCH_MAX: usize = 5;
/// Maximum ids of one cancel (docs/interface/orders.md#cancel-several-orders).
const CANCEL_MAX: usize = 10;

impl Venue {
    /// Handles a request whose fills cost this additional fraction of their notional (in units of
    /// 1e-8), for the builder that the order names
    /// (docs/interface/futures.md#orders-with-a-builder-code).
    pub fn request_with_surcharge(&mut self, now: Time, request: &Request, surcharge: i64) {
        self.surcharge = Rate(surcharge);
        self.request(now, request);
        self.surcharge = Rate(0);
    }

    /// Places one order or a batch. All replies come before the first user event.
    pub(crate) fn place_all(&mut self, orders: &[NewOrder], batch: bool) {
        let first = self.out.len();
        for order in orders {
            self.reply(Reply::Placed {
                client_order_id: order.client_order_id,
                outcome: Outcome::Unknown,
            });
        }
        for (n, order) in orders.iter().enumerate() {
            let outcome = if batch && orders.len() > BATCH_MAX {
                refused(Code::InvalidBatch)
            } else {
                self.place(order, batch)
            };
            self.settle();
            self.out[first + n] = VenueMessage::Reply(Reply::Placed {
                client_order_id: order.client_order_id,
                outcome,
            });
        }
    }

    fn place(&mut self, new: &NewOrder, batch: bool) -> Outcome<OrderReport> {
        match self.admit(new, batch) {
            Ok(order) => {
                let key = self.orders.insert(order);
                // Before the event, because the event contains the activation price and the open
                // notional including this order.
                let waits = self.orders.at(key).stage == Stage::Waiting;
                if waits {
                    self.wait(key);
                } else {
                    self.reserve(key);
                }
                self.emit_order(key, ExecutionType::New, None);
                if !waits {
                    self.lock(key);
                    self.execute(key);
                }
                Outcome::Done(self.orders.at(key).report())
            }
            Err(code) => refused(code),
        }
    }

    /// Reserves the amount that an order needs when it becomes active.
    pub(crate) fn lock(&mut self, key: OrderKey) {
        self.reserve(key);
        let order = self.orders.at(key);
        if order.surface == Surface::Spot && order.reserved != Amount::ZERO {
            self.emit_account(key);
        }
    }

    fn admit(&mut self, new: &NewOrder, batch: bool) -> Result<Order, Code> {
        let terms = &new.terms;
        let market = self.known(terms.instrument).ok_or(Code::BadSymbol)?;
        let surface = market.instrument.surface;
        if batch && surface == Surface::Spot {
            return Err(Code::Unsupported);
        }
        let context = Context {
            instrument: &market.instrument,
            fractions: &market.fractions,
            hedge: self.hedge,
            batch,
            mark: market.mark_price(),
            index: market.index_price(),
        };
        filter::check(&context, terms)?;
        self.check_counts(terms)?;
        self.check_id(surface, &new.client_order_id)?;
        if terms.order_type.is_conditional() {
            self.check_trigger(terms)?;
        }
        if terms.order_type == OrderType::Market {
            Self::check_counterparty(market, &context, terms.side)?;
        }
        let closing = self.check_closing(terms)?;
        self.order_id += 1;
        let mut order = Order {
            id: VenueOrderId(self.order_id),
            client_order_id: new.client_order_id,
            surface,
            terms: *terms,
            time_in_force: terms.time_in_force.unwrap_or(TimeInForce::Gtc),
            stage: Stage::Active,
            status: OrderStatus::New,
            qty: terms.qty.map_or(0, |qty| qty.0),
            executed: 0,
            cum_quote: Amount::ZERO,
            reserved: Amount::ZERO,
            surcharge: self.surcharge,
            closing,
            activation: 0,
            extreme: 0,
            triggered: false,
            created: self.now,
            updated: self.now,
        };
        if terms.order_type.is_conditional() {
            order.stage = Stage::Waiting;
            return Ok(order);
        }
        self.check_funds(&order)?;
        if self.open_terms.post_only_is_refused
            && order.time_in_force == TimeInForce::Gtx
            && self.order_would_cross(&order)
        {
            return Err(Code::PostOnly);
        }
        if let Some(quote) = terms.quote_qty {
            order.qty = self.qty_for(terms, quote);
        }
        Ok(order)
    }

    /// `MAX_NUM_ORDERS` and `MAX_NUM_ALGO_ORDERS` count open orders, so market orders pass.
    fn check_counts(&self, terms: &OrderTerms) -> Result<(), Code> {
        let market = self.at(terms.instrument);
        let filters = &market.instrument.filters;
        let full = |limit: Option<u32>, open: usize| limit.is_some_and(|max| open >= max as usize);
        let rests = terms.order_type != OrderType::Market;
        if rests && full(filters.max_num_orders, market.open_orders()) {
            return Err(Code::MaxOpenOrders);
        }
        let algo = terms.order_type.is_conditional();
        if algo && full(filters.max_num_algo_orders, market.waiting.len()) {
            return Err(Code::MaxStopOrders);
        }
        Ok(())
    }

    /// Checks that the client order id is free. On futures it is unique among open orders; on spot
    /// it is free again only after its order was filled
    /// (docs/interface/orders.md#client-order-ids).
    fn check_id(&self, surface: Surface, id: &ClientOrderId) -> Result<(), Code> {
        let Some(key) = self.orders.find(surface, id) else {
            return Ok(());
        };
        let order = self.orders.at(key);
        match surface {
            Surface::Spot if order.status != OrderStatus::Filled => Err(Code::Duplicate),
            Surface::Futures
                if order.stage != Stage::Finished || self.open_terms.ended_ids_stay_taken =>
            {
                Err(Code::DuplicateId)
            }
            _ => Ok(()),
        }
    }

    /// The best opposite price of a market order must be within the percent filters and
    /// `marketTakeBound`.
    fn check_counterparty(market: &Market, context: &Context<'_>, side: Side) -> Result<(), Code> {
        let Some(best) = market.book.best(side.opposite()).map(|level| level.price) else {
            return Ok(());
        };
        let reject = Code::MarketReject;
        filter::percent_price(context, side, best, (reject, reject))?;
        let met = market.take_bound(side).is_none_or(|worst| match side {
            Side::Buy => best <= worst,
            Side::Sell => best >= worst,
        });
        if met { Ok(()) } else { Err(reject) }
    }

    /// Whether the order can only close. A closing order needs something to close on arrival; a
    /// close-position order only when it triggers. A larger order fills up to the position, and its
    /// rest expires.
    fn check_closing(&self, terms: &OrderTerms) -> Result<bool, Code> {
        let hedge_close = matches!(
            (terms.position_side, terms.side),
            (PositionSide::Long, Side::Sell) | (PositionSide::Short, Side::Buy)
        );
        if terms.close_position {
            return Ok(true);
        }
        if !terms.reduce_only && !hedge_close {
            return Ok(false);
        }
        let closable = self
            .at(terms.instrument)
            .closable(terms.position_side, terms.side);
        if closable > 0 {
            Ok(true)
        } else if terms.reduce_only {
            Err(Code::ReduceOnly)
        } else {
            Err(Code::PositionNotSufficient)
        }
    }

    /// Whether the account can carry the order when it becomes active.
    pub(crate) fn check_funds(&self, order: &Order) -> Result<(), Code> {
        let (terms, surface) = (&order.terms, order.surface);
        let market = self.at(terms.instrument);
        if surface == Surface::Futures {
            if order.closing {
                return Ok(());
            }
            return self.check_margin_of(order);
        }
        let (base, quote) = self.pair(terms.instrument);
        let (asset, needed) = match terms.side {
            Side::Sell => (base, self.base_amount(terms.instrument, order.remaining())),
            Side::Buy => {
                let cost = match (terms.quote_qty, order.limit()) {
                    (Some(quote), _) => quote,
                    (None, Some(price)) => market.instrument.notional(price, order.remaining()),
                    (None, None) => market.cost(Side::Buy, order.remaining()),
                };
                (quote, cost + self.rates.fee_bound(cost))
            }
        };
        if needed <= self.account.spot(asset).free {
            Ok(())
        } else {
            Err(Code::BalanceNotSufficient)
        }
    }

    /// The quantity that a `quoteOrderQty` buys in the displayed book, rounded down to a whole
    /// step.
    fn qty_for(&self, terms: &OrderTerms, quote: Amount) -> i64 {
        let market = self.at(terms.instrument);
        let filters = &market.instrument.filters;
        let lot = filters.market_lot_size.or(filters.lot_size);
        let step = lot.map_or(1, |lot| lot.step_size.max(1));
        let qty = market.affordable(quote);
        qty - qty % step
    }
}

/// Cancels and queries.
impl Venue {
    pub(crate) fn find(&self, instrument: InstrumentId, id: &ClientOrderId) -> Option<OrderKey> {
        let surface = self.known(instrument)?.instrument.surface;
        let key = self.orders.find(surface, id)?;
        (self.orders.at(key).terms.instrument == instrument).then_some(key)
    }

    /// Cancels orders by client order id. All replies come before the first user event.
    pub(crate) fn cancel_each(&mut self, instrument: InstrumentId, ids: &[ClientOrderId]) {
        let first = self.out.len();
        for id in ids {
            self.reply(Reply::Canceled {
                client_order_id: *id,
                outcome: Outcome::Unknown,
            });
        }
        for (n, id) in ids.iter().enumerate() {
            let open = |key: &OrderKey| self.orders.at(*key).stage != Stage::Finished;
            let outcome = if ids.len() > CANCEL_MAX {
                refused(Code::TooManyCancels)
            } else if let Some(key) = self.find(instrument, id).filter(open) {
                self.close(key, OrderStatus::Canceled);
                Outcome::Done(self.orders.at(key).report())
            } else {
                refused(Code::CancelRejected)
            };
            self.out[first + n] = VenueMessage::Reply(Reply::Canceled {
                client_order_id: *id,
                outcome,
            });
        }
    }

    pub(crate) fn cancel_all(&mut self, instrument: InstrumentId) {
        let outcome = match self.known(instrument) {
            Some(_) => Outcome::Done(()),
            None => refused(Code::BadSymbol),
        };
        let known = outcome == Outcome::Done(());
        self.reply(Reply::CanceledAll {
            instrument,
            outcome,
        });
        if known {
            self.close_all(instrument, OrderStatus::Canceled);
        }
    }

    /// Removes an open order from the book or the waiting list, and ends it.
    pub(crate) fn close(&mut self, key: OrderKey, status: OrderStatus) {
        match self.orders.at(key).stage {
            Stage::Waiting => self.forget(key),
            Stage::Active => self.withdraw(key),
            Stage::Finished => return,
        }
        self.end(key, status);
    }

    /// Ends every open order of an instrument, oldest first.
    pub(crate) fn close_all(&mut self, instrument: InstrumentId, status: OrderStatus) {
        let market = self.at(instrument);
        let resting = market.own.iter().flatten().map(|own| own.key);
        let mut keys: Vec<_> = resting.chain(market.waiting.iter().copied()).collect();
        keys.sort_unstable_by_key(|key| self.orders.at(*key).id);
        for key in keys {
            self.close(key, status);
        }
    }
}
