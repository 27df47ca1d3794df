//! Orders as intents. The builder rounds prices and quantities to the instrument's grid.

use crate::instrument::{Instrument, InstrumentId};
use crate::number::{Amount, Price, Qty};

/// Number of an own order, above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderId(pub i64);

/// Spot or futures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// Spot.
    Spot = 0,
    /// Perpetual futures.
    Futures = 1,
}

/// Side of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Buys the base asset.
    Buy = 0,
    /// Sells the base asset.
    Sell = 1,
}

impl Side {
    /// The other side.
    #[inline]
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Buy => Self::Sell,
            Self::Sell => Self::Buy,
        }
    }
    /// +1 for a buy, -1 for a sell.
    #[inline]
    pub const fn sign(self) -> i64 {
        match self {
            Self::Buy => 1,
            Self::Sell => -1,
        }
    }
}

/// `BOTH` in one-way mode and on spot, `LONG` or `SHORT` in hedge mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionSide {
    /// One-way mode.
    Both = 0,
    /// The long position of hedge mode.
    Long = 1,
    /// The short position of hedge mode.
    Short = 2,
}

impl PositionSide {
    #[inline]
    pub(crate) const fn from_code(code: u32) -> Self {
        match code {
            1 => Self::Long,
            2 => Self::Short,
            _ => Self::Both,
        }
    }
}

/// Order type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderType {
    /// Limit order.
    Limit = 0,
    /// Market order.
    Market = 1,
    /// Stop-limit order.
    Stop = 2,
    /// Stop-market order.
    StopMarket = 3,
    /// Take-profit limit order.
    TakeProfit = 4,
    /// Take-profit market order.
    TakeProfitMarket = 5,
    /// Trailing stop; futures only.
    TrailingStopMarket = 6,
}

/// Time in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeInForce {
    /// Good until cancelled.
    Gtc = 1,
    /// Immediate or cancel.
    Ioc = 2,
    /// Fill or kill.
    Fok = 3,
    /// Post-only.
    Gtx = 4,
    /// Not visible in the book.
    Hidden = 5,
}

/// The price that triggers a conditional order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkingType {
    /// The mark price.
    MarkPrice = 1,
    /// The last trade price.
    ContractPrice = 2,
}

const TYPE_SHIFT: u32 = 1;
const TIME_IN_FORCE: u32 = 4;
const POSITION_SIDE: u32 = 7;
const REDUCE_ONLY: u32 = 1 << 9;
const CLOSE_POSITION: u32 = 1 << 10;
const WORKING_TYPE: u32 = 11;
const PRICE_PROTECT: u32 = 1 << 13;

/// An order to submit.
///
/// The constructors round to the instrument's grid, so that the order is never worse than
/// requested. Limit prices of buys are rounded down, of sells up. Quantities are rounded down,
/// trigger prices to the nearest tick. A value without an allowed result (a quantity below the
/// minimum, a price beyond its limits) becomes 0. The runtime refuses it with the name of the rule,
/// and sends no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an order does nothing until it is submitted"]
pub struct Order {
    pub(crate) instrument: InstrumentId,
    pub(crate) flags: u32,
    pub(crate) qty: i64,
    pub(crate) price: i64,
    pub(crate) stop_price: i64,
    pub(crate) activation_price: i64,
    pub(crate) callback_ppm: u32,
    pub(crate) quote_qty: i64,
}

impl Order {
    #[inline]
    fn new(instrument: &Instrument, side: Side, kind: OrderType, qty: Qty) -> Self {
        Self {
            instrument: instrument.id,
            flags: side as u32 | (kind as u32) << TYPE_SHIFT,
            qty: instrument.floor_qty(qty).unwrap_or_default().0,
            price: 0,
            stop_price: 0,
            activation_price: 0,
            callback_ppm: 0,
            quote_qty: 0,
        }
    }

    #[inline]
    fn with_price(mut self, instrument: &Instrument, price: Price) -> Self {
        let rounded = instrument.passive_price(self.side(), price);
        self.price = rounded.unwrap_or_default().0;
        self.time_in_force(TimeInForce::Gtc)
    }

    fn with_stop(mut self, instrument: &Instrument, stop: Price) -> Self {
        self.stop_price = instrument.nearest_price(stop).unwrap_or_default().0;
        self
    }

    /// A limit order. Its default time in force is GTC (good until cancelled).
    #[inline]
    pub fn limit(instrument: &Instrument, side: Side, price: Price, qty: Qty) -> Self {
        Self::new(instrument, side, OrderType::Limit, qty).with_price(instrument, price)
    }

    /// A market order by quantity. For a spot buy use [`Order::market_spend`]
    /// (docs/interface/orders.md#place-a-spot-order).
    #[inline]
    pub fn market(instrument: &Instrument, side: Side, qty: Qty) -> Self {
        Self::new(instrument, side, OrderType::Market, qty)
    }

    /// A market buy that spends an amount of the quote asset. Spot only.
    pub fn market_spend(instrument: &Instrument, amount: Amount) -> Self {
        let mut order = Self::new(instrument, Side::Buy, OrderType::Market, Qty(0));
        order.quote_qty = amount.0.max(0);
        order
    }

    /// A market order of about `qty` on either surface. A spot buy spends the notional of `qty` at
    /// `price`.
    pub fn market_near(instrument: &Instrument, side: Side, qty: Qty, price: Price) -> Self {
        if instrument.surface() == Surface::Spot && side == Side::Buy {
            Self::market_spend(instrument, instrument.notional(price, qty))
        } else {
            Self::market(instrument, side, qty)
        }
    }

    /// A stop-limit order. It is placed at `price` when `stop` is reached.
    pub fn stop(i: &Instrument, side: Side, stop: Price, price: Price, qty: Qty) -> Self {
        let order = Self::new(i, side, OrderType::Stop, qty);
        order.with_price(i, price).with_stop(i, stop)
    }

    /// A stop-market order.
    pub fn stop_market(i: &Instrument, side: Side, stop: Price, qty: Qty) -> Self {
        Self::new(i, side, OrderType::StopMarket, qty).with_stop(i, stop)
    }

    /// A take-profit limit order.
    pub fn take_profit(i: &Instrument, side: Side, stop: Price, price: Price, qty: Qty) -> Self {
        let order = Self::new(i, side, OrderType::TakeProfit, qty);
        order.with_price(i, price).with_stop(i, stop)
    }

    /// A take-profit market order.
    pub fn take_profit_market(i: &Instrument, side: Side, stop: Price, qty: Qty) -> Self {
        Self::new(i, side, OrderType::TakeProfitMarket, qty).with_stop(i, stop)
    }

    /// A trailing stop. `callback_ppm` is in millionths: 1000 to 50000 for 0.1 % to 5 %.
    pub fn trailing_stop(i: &Instrument, side: Side, callback_ppm: u32, qty: Qty) -> Self {
        let mut order = Self::new(i, side, OrderType::TrailingStopMarket, qty);
        order.callback_ppm = callback_ppm;
        order
    }

    /// Chooses which price triggers the order: the mark price or the last price.
    pub fn activation_price(mut self, instrument: &Instrument, price: Price) -> Self {
        self.activation_price = instrument.nearest_price(price).unwrap_or_default().0;
        self
    }

    /// Sets the time in force.
    #[inline]
    pub const fn time_in_force(mut self, value: TimeInForce) -> Self {
        self.flags = (self.flags & !(7 << TIME_IN_FORCE)) | (value as u32) << TIME_IN_FORCE;
        self
    }

    /// Makes the order post-only (GTX): it is refused or expires if it would cross.
    #[inline]
    pub const fn post_only(self) -> Self {
        self.time_in_force(TimeInForce::Gtx)
    }

    /// Fills the available quantity at once and cancels the rest.
    pub const fn immediate_or_cancel(self) -> Self {
        self.time_in_force(TimeInForce::Ioc)
    }

    /// Fills completely at once, or not at all.
    pub const fn fill_or_kill(self) -> Self {
        self.time_in_force(TimeInForce::Fok)
    }

    /// Makes the order reduce-only: it can only reduce this strategy's own position, also on spot.
    #[inline]
    pub const fn reduce_only(mut self) -> Self {
        self.flags |= REDUCE_ONLY;
        self
    }

    /// Closes the whole position when it is triggered. For stop-market and take-profit-market
    /// orders.
    pub const fn close_position(mut self) -> Self {
        self.flags |= CLOSE_POSITION;
        self.qty = 0;
        self
    }

    /// Sets the position in hedge mode that the order belongs to.
    pub const fn position_side(mut self, side: PositionSide) -> Self {
        self.flags = (self.flags & !(3 << POSITION_SIDE)) | (side as u32) << POSITION_SIDE;
        self
    }

    /// Sets the price that triggers the order.
    pub const fn working_type(mut self, value: WorkingType) -> Self {
        self.flags = (self.flags & !(3 << WORKING_TYPE)) | (value as u32) << WORKING_TYPE;
        self
    }

    /// Prevents a trigger while the mark price and the last price are too far apart
    /// (`priceProtect`).
    pub const fn price_protect(mut self) -> Self {
        self.flags |= PRICE_PROTECT;
        self
    }

    /// Side.
    #[inline]
    pub const fn side(&self) -> Side {
        if self.flags & 1 == 0 {
            Side::Buy
        } else {
            Side::Sell
        }
    }

    /// Type.
    pub const fn order_type(&self) -> OrderType {
        match self.flags >> TYPE_SHIFT & 7 {
            0 => OrderType::Limit,
            1 => OrderType::Market,
            2 => OrderType::Stop,
            3 => OrderType::StopMarket,
            4 => OrderType::TakeProfit,
            5 => OrderType::TakeProfitMarket,
            _ => OrderType::TrailingStopMarket,
        }
    }

    /// Instrument.
    pub const fn instrument(&self) -> InstrumentId {
        self.instrument
    }

    /// Quantity after rounding; 0 if no allowed quantity exists or it is not sent.
    pub const fn qty(&self) -> Qty {
        Qty(self.qty)
    }

    /// Limit price after rounding; 0 if it is not sent.
    pub const fn price(&self) -> Price {
        Price(self.price)
    }

    /// Trigger price after rounding; 0 if it is not sent.
    pub const fn stop_price(&self) -> Price {
        Price(self.stop_price)
    }

    /// Amount of the quote asset to spend; 0 if it is not sent.
    pub const fn quote_qty(&self) -> Amount {
        Amount(self.quote_qty)
    }

    /// Whether it is post-only.
    pub const fn is_post_only(&self) -> bool {
        self.flags >> TIME_IN_FORCE & 7 == TimeInForce::Gtx as u32
    }

    /// Whether it is reduce-only.
    pub const fn is_reduce_only(&self) -> bool {
        self.flags & REDUCE_ONLY != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::instrument;

    #[test]
    fn flags_are_those_of_the_contract() {
        let i = instrument("futures:BTCUSDT", "0.1", "0.001");
        let order = Order::limit(&i, Side::Sell, Price(650_001), Qty(10));
        assert_eq!(order.flags, 1 | 1 << 4, "sell, LIMIT, GTC");
        assert_eq!(order.post_only().reduce_only().flags, 1 | 4 << 4 | 1 << 9);
        let stop = Order::stop_market(&i, Side::Buy, Price(1), Qty(1))
            .position_side(PositionSide::Short)
            .working_type(WorkingType::ContractPrice)
            .price_protect()
            .close_position();
        assert_eq!(stop.flags, 3 << 1 | 2 << 7 | 1 << 10 | 2 << 11 | 1 << 13);
        assert_eq!(
            (stop.order_type(), stop.qty()),
            (OrderType::StopMarket, Qty(0))
        );
    }

    #[test]
    fn each_constructor_makes_its_type() {
        let i = instrument("futures:BTCUSDT", "0.1", "0.001");
        let (side, price, qty) = (Side::Buy, Price(1), Qty(1));
        for (order, order_type) in [
            (Order::limit(&i, side, price, qty), OrderType::Limit),
            (Order::market(&i, side, qty), OrderType::Market),
            (Order::stop(&i, side, price, price, qty), OrderType::Stop),
            (
                Order::stop_market(&i, side, price, qty),
                OrderType::StopMarket,
            ),
            (
                Order::take_profit(&i, side, price, price, qty),
                OrderType::TakeProfit,
            ),
            (
                Order::take_profit_market(&i, side, price, qty),
                OrderType::TakeProfitMarket,
            ),
            (
                Order::trailing_stop(&i, side, 1_000, qty),
                OrderType::TrailingStopMarket,
            ),
        ] {
            assert_eq!(order.order_type(), order_type);
        }
    }

    #[test]
    fn rounded_prices_are_never_worse_than_requested() {
        let mut i = instrument("futures:BTCUSDT", "0.1", "0.001");
        (i.tick, i.step, i.min_price, i.min_qty) = (5, 10, 0, 0);
        let buy = Order::limit(&i, Side::Buy, Price(104), Qty(19));
        let sell = Order::limit(&i, Side::Sell, Price(101), Qty(19));
        assert_eq!((buy.price(), buy.qty()), (Price(100), Qty(10)));
        assert_eq!((sell.price(), sell.qty()), (Price(105), Qty(10)));
    }

    #[test]
    fn a_spot_market_buy_spends_the_quote_asset() {
        let spot = instrument("spot:BTCUSDT", "0.1", "0.001");
        let buy = Order::market_near(&spot, Side::Buy, Qty(10), Price(650_000));
        assert_eq!(
            (buy.qty(), buy.quote_qty()),
            (Qty(0), Amount(65_000_000_000))
        );
        let sell = Order::market_near(&spot, Side::Sell, Qty(10), Price(650_000));
        assert_eq!((sell.qty(), sell.quote_qty()), (Qty(10), Amount(0)));
        let futures = instrument("futures:BTCUSDT", "0.1", "0.001");
        assert_eq!(
            Order::market_near(&futures, Side::Buy, Qty(10), Price(1)).qty(),
            Qty(10)
        );
    }
}
