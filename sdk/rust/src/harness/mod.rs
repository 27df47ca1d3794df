//! Tests a strategy natively with `cargo test`, without a runtime: a virtual clock, a scripted
//! market and an order desk in memory.
//!
//! The desk executes nothing by itself. The test states when an order is accepted, filled,
//! cancelled or refused, so every race can be tested. The desk checks no rule of the venue;
//! [`Harness::refuse_next`] scripts a refusal.
//!
//! ```
//! use windvane_sdk::harness::{Harness, Intent, instrument};
//! use windvane_sdk::prelude::*;
//!
//! struct BuyTheTouch(Instrument);
//! impl Strategy for BuyTheTouch {
//!     fn new(_: Params, instruments: &[Instrument]) -> Result<Self, String> {
//!         Ok(Self(instruments[0].clone()))
//!     }
//!     fn on_book_top(&mut self, ctx: &Ctx, top: &BookTop) {
//!         let _ = ctx.submit(Order::limit(&self.0, Side::Buy, top.bid, Qty(10)).post_only());
//!     }
//! }
//!
//! let btc = instrument("futures:BTCUSDT", "0.1", "0.001");
//! let mut h = Harness::<BuyTheTouch>::new("{}", &[btc]).unwrap();
//! h.book("65000.0", "1", "65000.1", "2");
//! let intents = h.intents();
//! let [Intent::Submit(id, order)] = intents.as_slice() else { panic!("one order") };
//! assert_eq!(order.price(), Price(650_000));
//! h.accept(*id);
//! h.fill(*id, "65000.0", "0.004");
//! assert_eq!(h.position(), Qty(4));
//! ```

mod desk;
pub(crate) mod imports;

pub use desk::{DeskOrder, Intent};

use crate::ctx::{Ctx, Level};
use crate::event::{OrderState, RULES, Raw, RuntimeState};
use crate::instrument::{Instrument, InstrumentId};
use crate::number::{Amount, Price, Qty, Time, clamp_i64, parse_scaled};
use crate::order::{OrderId, Side};
use crate::params::Params;
use crate::strategy::{Strategy, dispatch};
use desk::Desk;

/// 2024-01-01, so that times in tests look realistic.
const START: Time = Time::from_millis(1_704_067_200_000);

/// An instrument for tests, with index 0. The scales come from the tick and the step. The tick is
/// also the smallest price, the step is also the smallest quantity, and there are no other limits.
///
/// # Panics
/// If the tick or the step is not a decimal above 0.
pub fn instrument(name: &str, tick: &str, step: &str) -> Instrument {
    let scale_of = |text: &str| {
        text.split_once('.')
            .map_or(0, |(_, places)| places.len() as u8)
    };
    let (price_scale, qty_scale) = (scale_of(tick), scale_of(step));
    let (tick, step) = (mantissa(tick, price_scale), mantissa(step, qty_scale));
    assert!(tick > 0 && step > 0, "tick and step must be above 0");
    Instrument {
        id: InstrumentId(0),
        name: name.to_owned(),
        price_scale,
        qty_scale,
        tick,
        step,
        min_price: tick,
        max_price: 0,
        min_qty: step,
        max_qty: 0,
        min_notional: Amount(0),
    }
}

/// A strategy under test.
#[derive(Debug)]
pub struct Harness<S> {
    /// The strategy itself, so that tests can inspect it.
    pub strategy: S,
    ctx: Ctx,
    desk: Desk,
    time: Time,
    sequence: i64,
    at: InstrumentId,
}

impl<S: Strategy> Harness<S> {
    /// Creates the strategy from a JSON object of parameters.
    pub fn new(params: &str, instruments: &[Instrument]) -> Result<Self, String> {
        let ctx = Ctx::new(
            instruments.to_vec(),
            vec!["BTC".to_owned(), "USDT".to_owned()],
        );
        let strategy = S::new(Params::parse(params.as_bytes())?, instruments)?;
        let at = instruments.first().map_or(InstrumentId(0), |i| i.id);
        let desk = Desk::default();
        Ok(Self {
            strategy,
            ctx,
            desk,
            time: START,
            sequence: 0,
            at,
        })
    }

    /// Selects the instrument for the following calls. At the start it is the first one.
    pub const fn at(&mut self, instrument: InstrumentId) -> &mut Self {
        self.at = instrument;
        self
    }

    /// The virtual time.
    pub const fn time(&self) -> Time {
        self.time
    }

    /// Delivers a trade of the market with a buyer as the aggressor.
    pub fn trade(&mut self, price: &str, qty: &str) {
        let (price, qty) = (self.price(price), self.qty(qty));
        self.desk.set_last(self.at, 0, price);
        self.deliver(Raw {
            a: price,
            b: qty,
            id: self.sequence + 1,
            ..self.raw(1)
        });
    }

    /// Delivers a new best bid and ask.
    pub fn book(&mut self, bid: &str, bid_qty: &str, ask: &str, ask_qty: &str) {
        let bids = [(self.price(bid), self.qty(bid_qty))];
        let asks = [(self.price(ask), self.qty(ask_qty))];
        self.desk.set_book(self.at, &bids, &asks);
        self.deliver_top(2, bids[0], asks[0]);
    }

    /// Delivers a new whole book. The levels are mantissas, the best levels first.
    ///
    /// # Panics
    /// If a side is empty.
    pub fn book_levels(&mut self, bids: &[(i64, i64)], asks: &[(i64, i64)]) {
        self.desk.set_book(self.at, bids, asks);
        self.deliver_top(3, bids[0], asks[0]);
    }

    /// Empties both sides of the book. The strategy sees prices and quantities of 0.
    pub fn book_empty(&mut self) {
        self.desk.set_book(self.at, &[], &[]);
        self.deliver_top(2, (0, 0), (0, 0));
    }

    fn deliver_top(&mut self, kind: u32, bid: (i64, i64), ask: (i64, i64)) {
        self.deliver(Raw {
            a: bid.0,
            b: bid.1,
            c: ask.0,
            d: ask.1,
            ..self.raw(kind)
        });
    }

    /// Delivers a bar of one minute.
    pub fn bar(&mut self, open: &str, high: &str, low: &str, close: &str, volume: &str) {
        let raw = Raw {
            a: self.price(open),
            b: self.price(high),
            c: self.price(low),
            d: self.price(close),
            e: self.qty(volume),
            f: 60_000,
            id: self.time.millis() - 60_000,
            ..self.raw(4)
        };
        self.deliver(raw);
    }

    /// Delivers a mark price, which is also the index price, and a funding rate.
    pub fn mark_price(&mut self, mark: &str, funding_rate: &str) {
        let (mark, rate) = (
            mantissa(mark, Amount::SCALE),
            mantissa(funding_rate, Amount::SCALE),
        );
        let next = self.time.plus_ms(3_600_000).millis();
        for (field, value) in [(1, mark), (2, mark), (3, rate), (4, next)] {
            self.desk.set_last(self.at, field, value);
        }
        self.deliver(Raw {
            a: mark,
            b: mark,
            c: rate,
            d: next,
            ..self.raw(5)
        });
    }

    /// Changes the state of the runtime.
    pub fn runtime_state(&mut self, state: RuntimeState) {
        self.deliver(Raw {
            a: state as i64,
            ..self.raw(12)
        });
    }

    /// Changes the rules of one of the strategy's instruments. `rules` contains its id.
    ///
    /// # Panics
    /// If the strategy does not have the instrument.
    pub fn rules(&mut self, rules: &Instrument, trading: bool) {
        self.desk.set_trading(rules.id, trading);
        let raw = Raw {
            instrument: rules.id.0,
            flags: u32::from(trading),
            a: rules.tick,
            b: rules.min_price,
            c: rules.max_price,
            d: rules.step,
            e: rules.min_qty,
            f: rules.max_qty,
            id: rules.min_notional.0,
            ..self.raw(RULES)
        };
        self.deliver(raw);
    }

    /// Liquidates a part of the position: delivers a forced close, then a position update.
    ///
    /// # Panics
    /// If the position is smaller than `qty`.
    pub fn liquidate(&mut self, price: &str, qty: &str) {
        let (price, qty) = (self.price(price), self.qty(qty));
        let held = self.desk.position(self.at).qty;
        assert!(qty > 0 && held.abs() >= qty, "the position is {held}");
        let side = if held > 0 { Side::Sell } else { Side::Buy };
        let instrument = self.instrument();
        let closed = self.desk.close(&instrument, side, price, qty);
        let price = instrument.notional(Price(price), Qty(1)).0;
        let price = i128::from(price) * 10_i128.pow(u32::from(instrument.qty_scale));
        self.deliver(Raw {
            flags: if side == Side::Sell { 4 } else { 0 },
            a: clamp_i64(price),
            b: qty,
            d: closed.realized,
            e: 1,
            f: closed.position,
            id: self.sequence + 1,
            ..self.raw(14)
        });
        self.deliver(Raw {
            a: closed.position,
            b: closed.cost,
            c: closed.realized_total,
            ..self.raw(9)
        });
    }

    /// Advances the clock and delivers the timers that become due, in order.
    pub fn advance_ms(&mut self, ms: i64) {
        let until = self.time.plus_ms(ms);
        while let Some((time, token)) = self.desk.take_timer(until) {
            self.time = self.time.max(time);
            self.deliver(Raw {
                a: token,
                ..self.raw(11)
            });
        }
        self.time = until;
    }

    /// The venue acknowledges an order.
    pub fn accept(&mut self, id: OrderId) {
        self.update(id, OrderState::New, 0);
    }

    /// Fills an order of the strategy: delivers a fill, a position update, then an order update.
    ///
    /// # Panics
    /// If the order is not open, or `qty` is larger than its remaining quantity.
    pub fn fill(&mut self, id: OrderId, price: &str, qty: &str) {
        let order = self.desk.order(id);
        let (price, qty) = (self.price(price), self.qty(qty));
        let side = order.order.side();
        let instrument = self.instrument();
        let filled = self.desk.fill(id, &instrument, price, qty);
        let maker = u32::from(order.order.is_post_only());
        let flags = maker | if side == Side::Sell { 2 } else { 0 };
        let realized = filled.realized;
        let trade = self.sequence + 1;
        let position = filled.position;
        let fill = Raw {
            flags,
            a: price,
            b: qty,
            d: realized,
            e: trade,
            f: position,
            id: id.0,
            ..self.raw(8)
        };
        self.deliver(fill);
        let (cost, total) = (filled.cost, filled.realized_total);
        self.deliver(Raw {
            a: position,
            b: cost,
            c: total,
            ..self.raw(9)
        });
        self.update(id, filled.state, 0);
    }

    /// The venue confirms a cancel, or cancels the order itself.
    pub fn confirm_cancel(&mut self, id: OrderId) {
        self.update(id, OrderState::Canceled, 0);
    }

    /// The venue rejects an order with this error code.
    pub fn reject(&mut self, id: OrderId, code: i64) {
        self.update(id, OrderState::Rejected, code);
    }

    /// The venue expires an order, such as a post-only order that would have crossed.
    pub fn expire(&mut self, id: OrderId) {
        self.update(id, OrderState::Expired, 0);
    }

    /// Acknowledges all submitted orders and confirms all requested cancels, until nothing is in
    /// flight.
    pub fn settle(&mut self) {
        while let Some((id, state)) = self.desk.under_way() {
            match state {
                OrderState::CancelRequested => self.confirm_cancel(id),
                _ => self.accept(id),
            }
        }
    }

    /// Refuses the next order with the rule of this number.
    pub fn refuse_next(&mut self, rule: u16) {
        self.desk.refusals.push_back(rule);
    }

    /// The intents of the strategy since the last call.
    pub fn intents(&mut self) -> Vec<Intent> {
        std::mem::take(&mut self.desk.intents)
    }

    /// Orders that are not in a terminal state, oldest first.
    pub fn open_orders(&self) -> Vec<DeskOrder> {
        self.desk.open().cloned().collect()
    }

    /// Own position in the current instrument.
    pub fn position(&self) -> Qty {
        Qty(self.desk.position(self.at).qty)
    }

    /// Gives the strategy a position without a fill, as after a restart.
    pub fn set_position(&mut self, qty: &str, price: &str) {
        let (qty, price) = (self.qty(qty), self.price(price));
        let cost = self.instrument().notional(Price(price), Qty(qty));
        self.desk.set_position(self.at, qty, cost.0);
        self.deliver(Raw {
            a: qty,
            b: cost.0,
            ..self.raw(9)
        });
    }

    /// All log messages so far.
    pub fn logs(&self) -> &[(Level, String)] {
        &self.desk.logs
    }

    /// All plotted points so far: series, value, scale.
    pub fn plots(&self) -> &[(String, i64, u8)] {
        &self.desk.plots
    }

    /// Saves the state and loads it into a new strategy with these parameters, as a hot swap does.
    /// Orders and positions stay, and the new strategy receives updates of them.
    pub fn swap(&mut self, params: &str) -> Result<(), String> {
        let mut next = S::new(Params::parse(params.as_bytes())?, self.ctx.instruments())?;
        next.load(S::STATE_SCHEMA, &self.strategy.save())?;
        self.strategy = next;
        let open: Vec<(OrderId, OrderState)> = self.desk.open().map(|o| (o.id, o.state)).collect();
        for (id, state) in open {
            self.update(id, state, 0);
        }
        let position = self.desk.position(self.at);
        self.deliver(Raw {
            a: position.qty,
            b: position.cost,
            c: position.realized,
            ..self.raw(9)
        });
        Ok(())
    }

    fn update(&mut self, id: OrderId, state: OrderState, code: i64) {
        let order = self.desk.set_state(id, state);
        let remaining = order.order.qty - order.executed.0;
        let (executed, instrument) = (order.executed.0, order.order.instrument.0);
        let raw = self.raw(7);
        self.deliver(Raw {
            instrument,
            a: state as i64,
            b: executed,
            c: remaining,
            e: code,
            id: id.0,
            ..raw
        });
    }

    /// Delivers one event. Meanwhile the desk implements the imports.
    fn deliver(&mut self, raw: Raw) {
        self.sequence += 1;
        self.ctx.enter(self.time, self.sequence, &raw);
        imports::lend(&mut self.desk, || {
            dispatch(&mut self.strategy, &self.ctx, &raw);
        });
    }

    const fn raw(&self, kind: u32) -> Raw {
        let instrument = self.at.0;
        Raw {
            kind,
            instrument,
            flags: 0,
            a: 0,
            b: 0,
            c: 0,
            d: 0,
            e: 0,
            f: 0,
            id: 0,
        }
    }

    fn instrument(&self) -> Instrument {
        let found = self.ctx.instrument(self.at);
        found
            .unwrap_or_else(|| panic!("instrument {} was not given", self.at.0))
            .clone()
    }

    fn price(&self, text: &str) -> i64 {
        mantissa(text, self.instrument().price_scale)
    }

    fn qty(&self, text: &str) -> i64 {
        mantissa(text, self.instrument().qty_scale)
    }
}

fn mantissa(text: &str, scale: u8) -> i64 {
    parse_scaled(text, scale).unwrap_or_else(|error| panic!("{text:?} {error}"))
}
