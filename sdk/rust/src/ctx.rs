//! The context of a callback: intents, queries and output. Each query is one call into the runtime,
//! which takes a few nanoseconds. A strategy with a hot path stores the values that it needs.

use std::fmt;

use crate::event::{OrderState, RULES, Raw};
use crate::imports::{account, log, market, orders, plot, timers};
use crate::instrument::{Instrument, InstrumentId};
use crate::number::{Amount, NONE, Price, Qty, Time};
use crate::order::{Order, OrderId, PositionSide, Side, Surface};
use crate::rejection::Rejection;

/// Marks an order without a group. Its stop price does not trail.
const NO_GROUP: i64 = 0;
const NO_TRAIL: i64 = 0;

/// Severity of a log message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// An error.
    Error = 1,
    /// A possible problem.
    Warn = 2,
    /// Useful information.
    Info = 3,
    /// Details for the author of the strategy.
    Debug = 4,
}

/// Time, intents, queries, timers, log messages and plots.
#[derive(Debug)]
pub struct Ctx {
    time: Time,
    sequence: i64,
    /// The instruments with their current rules.
    instruments: Vec<Instrument>,
    /// Instruments whose grid has changed since the start.
    moved: Vec<InstrumentId>,
    assets: Vec<String>,
}

impl Ctx {
    pub(crate) const fn new(instruments: Vec<Instrument>, assets: Vec<String>) -> Self {
        Self {
            time: Time(0),
            sequence: 0,
            instruments,
            moved: Vec::new(),
            assets,
        }
    }

    #[inline]
    pub(crate) fn enter(&mut self, time: Time, sequence: i64, raw: &Raw) {
        self.time = time;
        self.sequence = sequence;
        if raw.kind == RULES {
            self.take_rules(raw);
        }
    }

    fn take_rules(&mut self, raw: &Raw) {
        let id = InstrumentId(raw.instrument);
        let Some(known) = self.instruments.iter_mut().find(|i| i.id == id) else {
            return;
        };
        let present = Instrument {
            tick: raw.a.max(1),
            min_price: raw.b,
            max_price: raw.c,
            step: raw.d.max(1),
            min_qty: raw.e,
            max_qty: raw.f,
            min_notional: Amount(raw.id),
            ..known.clone()
        };
        if !present.has_grid_of(known) && !self.moved.contains(&id) {
            self.moved.push(id);
        }
        *known = present;
    }

    /// Time of the event.
    #[inline]
    pub const fn time(&self) -> Time {
        self.time
    }

    /// Number of the event. It increases by one with each event of the engine.
    #[inline]
    pub const fn sequence(&self) -> i64 {
        self.sequence
    }

    /// The instruments of this strategy, with their current rules.
    pub fn instruments(&self) -> &[Instrument] {
        &self.instruments
    }

    /// One instrument, with its current rules.
    pub fn instrument(&self, id: InstrumentId) -> Option<&Instrument> {
        self.instruments.iter().find(|i| i.id == id)
    }

    /// Names of assets. The position in the list is the asset's index.
    pub fn assets(&self) -> &[String] {
        &self.assets
    }

    /// Submits an order. The runtime checks it at once. It is sent to the venue after the callback
    /// has returned.
    ///
    /// If the venue changed the tick or the step since the start, the prices and the quantity are
    /// rounded to the current grid. The rounded order is never worse for the strategy and never
    /// larger.
    #[inline]
    pub fn submit(&self, order: Order) -> Result<OrderId, Rejection> {
        let order = self.on_present_grid(order);
        let answer = orders::submit(
            order.instrument.0,
            order.flags,
            order.qty,
            order.price,
            order.stop_price,
            order.activation_price,
            order.callback_ppm,
            order.quote_qty,
            NO_GROUP,
            NO_TRAIL,
        );
        if answer > 0 {
            Ok(OrderId(answer))
        } else {
            Err(Rejection::from_answer(answer))
        }
    }

    #[inline]
    fn on_present_grid(&self, mut order: Order) -> Order {
        if !self.moved.contains(&order.instrument) {
            return order;
        }
        let Some(present) = self.instrument(order.instrument) else {
            return order;
        };
        let side = order.side();
        for price in [&mut order.price, &mut order.stop_price] {
            if *price > 0
                && let Some(moved) = present.passive_price(side, Price(*price))
            {
                *price = moved.0;
            }
        }
        if order.qty > 0
            && let Some(moved) = present.floor_qty(Qty(order.qty))
        {
            order.qty = moved.0;
        }
        order
    }

    /// Requests the cancel of an own order. An order update reports the outcome. Until then, the
    /// order may still fill.
    #[inline]
    pub fn cancel(&self, order: OrderId) -> Result<(), Rejection> {
        match orders::cancel(order.0) {
            0.. => Ok(()),
            answer => Err(Rejection::from_answer(answer)),
        }
    }

    /// Requests the cancel of all own orders of an instrument. Returns their number.
    pub fn cancel_all(&self, instrument: InstrumentId) -> i64 {
        orders::cancel_all(index(instrument))
    }

    /// Requests the cancel of all own orders. Returns their number.
    pub fn cancel_everything(&self) -> i64 {
        orders::cancel_all(-1)
    }

    /// Own position in one-way mode or on spot.
    pub const fn position(&self, instrument: InstrumentId) -> PositionQuery {
        self.position_of(instrument, PositionSide::Both)
    }

    /// Own position on one side in hedge mode.
    pub const fn position_of(&self, instrument: InstrumentId, side: PositionSide) -> PositionQuery {
        PositionQuery { instrument, side }
    }

    /// Own open orders of an instrument, oldest first.
    pub fn open_orders(&self, instrument: InstrumentId) -> impl Iterator<Item = OrderId> {
        let count = account::open_orders(index(instrument)).max(0) as u32;
        (0..count).map(move |at| OrderId(account::open_order(index(instrument), at)))
    }

    /// An own order that is open or ended recently. The order of an order update is always
    /// available.
    pub const fn order(&self, order: OrderId) -> OrderQuery {
        OrderQuery { order }
    }

    /// The account's balance of an asset. `asset` is its index in [`Ctx::assets`].
    pub const fn balance(&self, surface: Surface, asset: u32) -> BalanceQuery {
        BalanceQuery { surface, asset }
    }

    /// The order book.
    pub const fn book(&self, instrument: InstrumentId) -> BookQuery {
        BookQuery { instrument }
    }

    /// Price of the last trade.
    pub fn last_price(&self, instrument: InstrumentId) -> Option<Price> {
        some(market::last(instrument.0, 0)).map(Price)
    }

    /// Mark price.
    pub fn mark_price(&self, instrument: InstrumentId) -> Option<Amount> {
        some(market::last(instrument.0, 1)).map(Amount)
    }

    /// Index price.
    pub fn index_price(&self, instrument: InstrumentId) -> Option<Amount> {
        some(market::last(instrument.0, 2)).map(Amount)
    }

    /// Funding rate.
    pub fn funding_rate(&self, instrument: InstrumentId) -> Option<Amount> {
        some(market::last(instrument.0, 3)).map(Amount)
    }

    /// Time of the next funding.
    pub fn next_funding(&self, instrument: InstrumentId) -> Option<Time> {
        some(market::last(instrument.0, 4)).map(Time::from_millis)
    }

    /// Whether the instrument is trading now.
    pub fn is_trading(&self, instrument: InstrumentId) -> bool {
        market::rule(instrument.0, 12) == 1
    }

    /// Calls [`crate::Strategy::on_timer`] with `token` at `time`. Setting the same token again
    /// moves the timer.
    pub fn set_timer(&self, time: Time, token: i64) -> Result<(), Rejection> {
        let (ms, ns) = time.parts();
        match timers::set(ms, ns, token) {
            0.. => Ok(()),
            answer => Err(Rejection::from_answer(answer)),
        }
    }

    /// Like [`Ctx::set_timer`], `ms` milliseconds from now.
    pub fn set_timer_in(&self, ms: i64, token: i64) -> Result<(), Rejection> {
        self.set_timer(self.time.plus_ms(ms), token)
    }

    /// Cancels a timer.
    pub fn cancel_timer(&self, token: i64) {
        timers::cancel(token);
    }

    /// Logs a message. The macros [`crate::info!`] and so on are shorter.
    pub fn log(&self, level: Level, message: fmt::Arguments<'_>) {
        match message.as_str() {
            Some(text) => log::log(level as u32, text.as_bytes()),
            None => log::log(level as u32, message.to_string().as_bytes()),
        }
    }

    /// Adds the point `value / 10^scale` to a named series at the time of the event.
    pub fn plot(&self, series: &str, value: i64, scale: u8) {
        plot::plot(series.as_bytes(), value, u32::from(scale));
    }

    /// Adds a price to a named series.
    pub fn plot_price(&self, series: &str, instrument: &Instrument, price: Price) {
        self.plot(series, price.0, instrument.price_scale);
    }

    /// Adds an amount to a named series.
    pub fn plot_amount(&self, series: &str, amount: Amount) {
        self.plot(series, amount.0, Amount::SCALE);
    }
}

/// Logs an error: `error!(ctx, "order {} refused", id)`.
#[macro_export]
macro_rules! error {
    ($ctx:expr, $($message:tt)+) => { $ctx.log($crate::Level::Error, format_args!($($message)+)) };
}

/// Logs a warning.
#[macro_export]
macro_rules! warn {
    ($ctx:expr, $($message:tt)+) => { $ctx.log($crate::Level::Warn, format_args!($($message)+)) };
}

/// Logs useful information.
#[macro_export]
macro_rules! info {
    ($ctx:expr, $($message:tt)+) => { $ctx.log($crate::Level::Info, format_args!($($message)+)) };
}

/// Logs details for the author of the strategy.
#[macro_export]
macro_rules! debug {
    ($ctx:expr, $($message:tt)+) => { $ctx.log($crate::Level::Debug, format_args!($($message)+)) };
}

#[inline]
const fn index(instrument: InstrumentId) -> i32 {
    instrument.0 as i32
}

#[inline]
const fn some(value: i64) -> Option<i64> {
    if value == NONE { None } else { Some(value) }
}

/// Zero for a missing value: a position or balance that was never changed.
#[inline]
const fn or_zero(value: i64) -> i64 {
    if value == NONE { 0 } else { value }
}

/// Queries an own position.
#[derive(Clone, Copy, Debug)]
pub struct PositionQuery {
    instrument: InstrumentId,
    side: PositionSide,
}

impl PositionQuery {
    #[inline]
    fn field(self, field: u32) -> i64 {
        or_zero(account::position(
            self.instrument.0,
            self.side as u32,
            field,
        ))
    }
    /// Signed quantity.
    pub fn qty(self) -> Qty {
        Qty(self.field(0))
    }
    /// Cost, with the sign of the quantity.
    pub fn cost(self) -> Amount {
        Amount(self.field(1))
    }
    /// Realized profit before fees.
    pub fn realized(self) -> Amount {
        Amount(self.field(2))
    }
    /// Unrealized profit.
    pub fn unrealized(self) -> Amount {
        Amount(self.field(3))
    }
    /// Quantity of open buy orders, including in-flight and unknown orders.
    pub fn open_buy(self) -> Qty {
        Qty(self.field(4))
    }
    /// Quantity of open sell orders, including in-flight and unknown orders.
    pub fn open_sell(self) -> Qty {
        Qty(self.field(5))
    }
    /// Fees paid.
    pub fn fees(self) -> Amount {
        Amount(self.field(6))
    }
    /// Average entry price.
    pub fn average_price(self) -> Amount {
        Amount(self.field(7))
    }
}

/// Queries an own order. Every value is `None` when the runtime no longer knows the order.
#[derive(Clone, Copy, Debug)]
pub struct OrderQuery {
    order: OrderId,
}

impl OrderQuery {
    #[inline]
    fn field(self, field: u32) -> Option<i64> {
        some(account::order(self.order.0, field))
    }
    /// State of the order.
    pub fn state(self) -> Option<OrderState> {
        self.field(0).map(OrderState::from_code)
    }
    /// Limit price.
    pub fn price(self) -> Option<Price> {
        self.field(1).map(Price)
    }
    /// Quantity.
    pub fn qty(self) -> Option<Qty> {
        self.field(2).map(Qty)
    }
    /// Executed quantity.
    pub fn executed(self) -> Option<Qty> {
        self.field(3).map(Qty)
    }
    /// Side.
    pub fn side(self) -> Option<Side> {
        self.field(4)
            .map(|code| if code == 0 { Side::Buy } else { Side::Sell })
    }
    /// Instrument.
    pub fn instrument(self) -> Option<InstrumentId> {
        self.field(5).map(|index| InstrumentId(index as u32))
    }
    /// Trigger price.
    pub fn stop_price(self) -> Option<Price> {
        self.field(6).map(Price)
    }
}

/// Queries a balance of the account.
#[derive(Clone, Copy, Debug)]
pub struct BalanceQuery {
    surface: Surface,
    asset: u32,
}

impl BalanceQuery {
    /// Total balance.
    pub fn total(self) -> Amount {
        Amount(or_zero(account::balance(
            self.surface as u32,
            self.asset,
            0,
        )))
    }
    /// Part of the balance that is locked in spot orders.
    pub fn locked(self) -> Amount {
        Amount(or_zero(account::balance(
            self.surface as u32,
            self.asset,
            1,
        )))
    }
}

/// Queries an order book.
#[derive(Clone, Copy, Debug)]
pub struct BookQuery {
    instrument: InstrumentId,
}

impl BookQuery {
    fn level(self, side: u32, level: u32) -> Option<(Price, Qty)> {
        let price = some(market::book(self.instrument.0, side, level, 0)).filter(|p| *p != 0)?;
        let qty = some(market::book(self.instrument.0, side, level, 1))?;
        Some((Price(price), Qty(qty)))
    }
    /// Price and quantity of a bid; level 0 is the best.
    pub fn bid(self, level: u32) -> Option<(Price, Qty)> {
        self.level(0, level)
    }
    /// Price and quantity of an ask; level 0 is the best.
    pub fn ask(self, level: u32) -> Option<(Price, Qty)> {
        self.level(1, level)
    }
}

#[cfg(test)]
mod tests {
    use crate::harness::{Harness, Intent, instrument};
    use crate::prelude::*;

    /// Buys at each trade with the instrument from the start, and stores the events that it
    /// receives.
    struct Buyer {
        instrument: Instrument,
        events: Vec<String>,
    }

    impl Strategy for Buyer {
        fn new(_: Params, instruments: &[Instrument]) -> Result<Self, String> {
            let instrument = instruments[0].clone();
            let events = Vec::new();
            Ok(Self { instrument, events })
        }

        fn on_trade(&mut self, ctx: &Ctx, trade: &Trade) {
            let order = Order::limit(&self.instrument, Side::Buy, trade.price, Qty(25));
            let _ = ctx.submit(order);
        }

        fn on_rules(&mut self, ctx: &Ctx, rules: &RulesUpdate) {
            let present = ctx.instrument(rules.instrument).unwrap();
            let (tick, trading) = (present.tick, ctx.is_trading(rules.instrument));
            assert_eq!(trading, rules.trading);
            self.events.push(format!("tick {tick}, trading {trading}"));
        }

        fn on_forced_close(&mut self, _: &Ctx, close: &ForcedClose) {
            self.events.push(format!("{close:?}"));
        }

        fn on_position(&mut self, _: &Ctx, position: &PositionUpdate) {
            self.events.push(format!("holds {}", position.qty.0));
        }
    }

    fn buyer() -> Harness<Buyer> {
        Harness::new("{}", &[instrument("futures:BTCUSDT", "0.1", "0.001")]).unwrap()
    }

    fn bought(h: &mut Harness<Buyer>) -> (i64, i64) {
        h.trade("65000.7", "1");
        match h.intents().as_slice() {
            [Intent::Submit(_, order)] => (order.price().0, order.qty().0),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn orders_are_rounded_to_the_current_grid() {
        let mut h = buyer();
        let mut rules = instrument("futures:BTCUSDT", "0.1", "0.001");
        assert_eq!(bought(&mut h), (650_007, 25));
        h.rules(&rules, false);
        assert_eq!(bought(&mut h), (650_007, 25), "the grid has not changed");
        (rules.tick, rules.min_price, rules.step, rules.min_qty) = (5, 0, 10, 0);
        h.rules(&rules, true);
        assert_eq!(bought(&mut h), (650_005, 20));
        let events = ["tick 1, trading false", "tick 5, trading true"];
        assert_eq!(h.strategy.events, events);
        // The strategy's own copy keeps the old rules.
        assert_eq!(h.strategy.instrument.tick, 1);
    }

    #[test]
    fn a_liquidation_comes_before_its_position_update() {
        let mut h = buyer();
        h.set_position("0.010", "65000.0");
        h.liquidate("60000.0", "0.004");
        let [_, close, position] = h.strategy.events.as_slice() else {
            panic!("{:?}", h.strategy.events);
        };
        assert_eq!(position, "holds 6");
        for part in [
            "kind: Liquidation",
            "side: Sell",
            "price: Some(Amount(6000000000000))",
            "qty: Qty(4)",
            "fee: Some(Amount(0))",
            "realized: Amount(-2000000000)",
            "position: Qty(6)",
        ] {
            assert!(close.contains(part), "{part}: {close}");
        }
    }
}
