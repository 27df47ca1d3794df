//! The effect of a fill, a reservation and an end on order, account and position, and the user
//! events for them.
//!
//! A fee is rate times notional, rounded half to even at 8 decimals, in the quote asset on both
//! surfaces. Trade ids rise by one per instrument, from 1. The account event follows the order
//! event. It contains the position even if it is closed now: a server decides what it sends of
//! that.

use windvane_model::decimal::div_half_even;
use windvane_model::protocol::{Fill, OrderUpdate};
use windvane_model::{
    Amount, AssetId, ExecutionType, InstrumentId, OrderStatus, Price, Qty, Side, Surface, TradeId,
};

use crate::order::Stage;
use crate::order_key::OrderKey;
use crate::stream::{Cause, Met};
use crate::venue::Venue;

impl Venue {
    /// Books one fill. The caller removes a filled order from the book.
    pub(crate) fn fill(&mut self, key: OrderKey, price: i64, qty: i64, maker: bool, met: Met) {
        let order = self.orders.at_mut(key);
        let market = &mut self.markets[usize::from(order.terms.instrument.0)];
        debug_assert!(qty > 0 && qty <= order.remaining(), "filled past the order");
        let quote_qty = market.instrument.notional(price, qty);
        order.executed += qty;
        order.cum_quote += quote_qty;
        order.updated = self.now;
        order.status = if order.remaining() == 0 {
            OrderStatus::Filled
        } else {
            OrderStatus::PartiallyFilled
        };
        market.rested = true;
        let trade_id = if let Met::Order(deal) = met {
            deal.trade_id
        } else {
            market.trade_id += 1;
            TradeId(market.trade_id)
        };
        let (base, quote) = (market.instrument.base, market.instrument.quote);
        let buys = order.terms.side == Side::Buy;
        let spot = order.surface == Surface::Spot;
        let fee = match market.fractions.liquidation_fee {
            Some(rate) if order.is_liquidation() => rate.of(quote_qty),
            _ => self.rates.fee(maker, quote_qty) + order.surcharge.of(quote_qty),
        };
        let (fee_asset, fee) = if !spot {
            self.charged(quote, fee)
        } else if buys && self.open_terms.spot_fee_is_received && price > 0 {
            (base, self.in_base(key, qty, quote_qty, fee))
        } else {
            (quote, fee)
        };
        self.reserve(key);
        let realized_pnl = match self.orders.at(key).surface {
            Surface::Spot => {
                self.settle_spot(key, qty, quote_qty, (fee_asset, fee));
                None
            }
            Surface::Futures => {
                let charged = (fee_asset, fee);
                Some(self.settle_futures(key, qty, quote_qty, charged, price))
            }
        };
        let execution = if self.orders.at(key).is_liquidation() {
            ExecutionType::Calculated
        } else {
            ExecutionType::Trade
        };
        let fill = Fill {
            trade_id,
            price: Price(price),
            qty: Qty(qty),
            quote_qty,
            fee,
            fee_asset,
            maker,
            realized_pnl,
        };
        self.emit_order(key, execution, Some((fill, met)));
        self.emit_account(key);
        if self.orders.at(key).status == OrderStatus::Filled {
            self.orders.finish(key);
        }
    }

    /// A commission as the same share of the bought quantity, rounded half to even.
    fn in_base(&self, key: OrderKey, qty: i64, quote_qty: Amount, fee: Amount) -> Amount {
        let bought = self.base_amount(self.orders.at(key).terms.instrument, qty);
        if quote_qty.0 == 0 {
            return Amount::ZERO;
        }
        Amount(div_half_even(bought.0 * fee.0, quote_qty.0))
    }

    fn settle_spot(
        &mut self,
        key: OrderKey,
        qty: i64,
        quote_qty: Amount,
        (fee_asset, fee): (AssetId, Amount),
    ) {
        let order = self.orders.at(key);
        let (instrument, side) = (order.terms.instrument, order.terms.side);
        let (base, quote) = self.pair(instrument);
        let qty = self.base_amount(instrument, qty);
        let (bought, paid) = match side {
            Side::Buy => (qty, quote_qty),
            Side::Sell => (-qty, -quote_qty),
        };
        self.account.spot_mut(base).free += bought;
        self.account.spot_mut(quote).free -= paid;
        self.account.spot_mut(fee_asset).free -= fee;
    }

    fn settle_futures(
        &mut self,
        key: OrderKey,
        qty: i64,
        quote_qty: Amount,
        (fee_asset, fee): (AssetId, Amount),
        price: i64,
    ) -> Amount {
        let terms = &self.orders.at(key).terms;
        let (signed, slot) = (qty * terms.side.sign(), terms.position_side as usize);
        let market = &mut self.markets[usize::from(terms.instrument.0)];
        let rules = &market.instrument;
        let position = &mut market.positions[slot];
        let held = position.qty;
        let realized = position.apply(signed, quote_qty, |part| rules.notional(price, part));
        market.realized[slot] += realized;
        market.touched[slot] = self.now;
        if market.isolated {
            market.isolate(slot, held, signed, price);
        }
        let position = &market.positions[slot];
        if held != 0 && position.qty.signum() != held.signum() {
            self.closed = Some(market.id);
        }
        *self.account.wallet_mut(market.instrument.quote) += realized;
        *self.account.wallet_mut(fee_asset) -= fee;
        self.margin.dirty = Some(market.instrument.quote);
        realized
    }

    /// Adjusts the reservation of an order to its state: on spot, balance is locked; on futures,
    /// the open notional of its position side changes.
    ///
    /// Three kinds of orders reserve nothing: conditional orders before they trigger, market
    /// orders, and futures orders that can only close.
    pub(crate) fn reserve(&mut self, key: OrderKey) {
        let order = self.orders.at(key);
        let (instrument, side) = (order.terms.instrument, order.terms.side);
        let slot = order.terms.position_side as usize;
        let surface = order.surface;
        let reserved = match order.limit() {
            Some(price) if order.stage == Stage::Active && !order.closing => {
                self.commitment(key, price)
            }
            _ => Amount::ZERO,
        };
        let change = reserved - self.orders.at(key).reserved;
        self.orders.at_mut(key).reserved = reserved;
        match surface {
            Surface::Spot => {
                let (base, quote) = self.pair(instrument);
                let asset = if side == Side::Buy { quote } else { base };
                let balance = self.account.spot_mut(asset);
                balance.free -= change;
                balance.locked += change;
            }
            Surface::Futures => {
                self.at_mut(instrument).open_notional[slot].0[side as usize] += change;
            }
        }
    }

    /// The amount that the rest of an order at `price` needs from the account.
    fn commitment(&self, key: OrderKey, price: i64) -> Amount {
        let order = self.orders.at(key);
        let instrument = order.terms.instrument;
        let notional = self
            .at(instrument)
            .instrument
            .notional(price, order.remaining());
        match (order.surface, order.terms.side) {
            (Surface::Futures, _) => notional,
            (Surface::Spot, Side::Buy) => notional + self.rates.fee_bound(notional),
            (Surface::Spot, Side::Sell) => self.base_amount(instrument, order.remaining()),
        }
    }

    /// Ends an order that is no longer in the book: sets its status and releases its reservation.
    pub(crate) fn end(&mut self, key: OrderKey, status: OrderStatus) {
        let execution = match status {
            OrderStatus::Canceled => ExecutionType::Canceled,
            _ => ExecutionType::Expired,
        };
        let order = self.orders.at_mut(key);
        order.status = status;
        order.updated = self.now;
        let locked = order.surface == Surface::Spot && order.reserved != Amount::ZERO;
        self.orders.finish(key);
        self.reserve(key);
        self.emit_order(key, execution, None);
        if locked {
            self.emit_account(key);
        }
    }

    pub(crate) fn emit_order(
        &mut self,
        key: OrderKey,
        execution: ExecutionType,
        fill: Option<(Fill, Met)>,
    ) {
        let order = self.orders.at(key);
        let terms = &order.terms;
        let update = OrderUpdate {
            client_order_id: order.client_order_id,
            order_id: order.id,
            instrument: terms.instrument,
            side: terms.side,
            position_side: terms.position_side,
            order_type: terms.order_type,
            time_in_force: order.time_in_force,
            orig_qty: Qty(order.qty),
            price: Price(order.limit().unwrap_or(0)),
            stop_price: terms.stop_price.unwrap_or_default(),
            reduce_only: terms.reduce_only,
            execution,
            status: order.status,
            executed_qty: Qty(order.executed),
            transaction_time: self.now,
            event_time: self.now,
            fill: fill.map(|(fill, _)| fill),
        };
        if let Some((fill, _)) = &fill {
            self.trades.keep(&update, fill);
        }
        self.emit_update(update, fill.map(|(_, met)| met));
    }

    /// Reports the balances and the position that an order concerns.
    pub(crate) fn emit_account(&mut self, key: OrderKey) {
        let order = self.orders.at(key);
        let (instrument, surface) = (order.terms.instrument, order.surface);
        let position_side = order.terms.position_side;
        let (base, quote) = self.pair(instrument);
        let none = Amount::ZERO;
        match surface {
            Surface::Spot => {
                self.emit_change(surface, Cause::Order, &[(base, none), (quote, none)], &[]);
            }
            Surface::Futures => {
                let held = [(instrument, position_side)];
                let mut changed = vec![(quote, none)];
                let fees = self.open_terms.futures_fee_asset;
                changed.extend(fees.map(|asset| (asset, none)));
                self.emit_change(surface, Cause::Order, &changed, &held);
            }
        }
    }

    pub(crate) fn pair(&self, instrument: InstrumentId) -> (AssetId, AssetId) {
        let rules = &self.at(instrument).instrument;
        (rules.base, rules.quote)
    }

    /// A quantity as an amount of the base asset.
    pub(crate) fn base_amount(&self, instrument: InstrumentId, qty: i64) -> Amount {
        Amount::notional(1, 0, qty, self.at(instrument).instrument.qty_scale)
    }
}
