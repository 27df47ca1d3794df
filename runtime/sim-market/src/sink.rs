//! The receivers of market data: the accounts' venues and the public streams.

use windvane_model::{InstrumentId, Level, MarketEvent, Side, Time};
use windvane_sim::{Deal, Met};

use super::book::{Difference, Speed};
use super::interval::Interval;
use super::kline::Kline;
use super::symbol::Symbol;
use super::trades::{AggTrade, Trade};

/// A change for the public streams. Data that they repeat at intervals (tickers, marks, open
/// klines) is read from the symbol at each [`Sink::second`] or [`Sink::refresh`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// A trade.
    Trade(Trade),
    /// A complete aggregate trade.
    AggTrade(AggTrade),
    /// The best bid or ask changed.
    Top {
        /// Update id of the book.
        update_id: i64,
        /// Best bid.
        bid: Level,
        /// Best ask.
        ask: Level,
    },
    /// The book changed since the last difference of this speed.
    Depth(Difference),
    /// A bar closed.
    Closed(Interval, Kline),
}

/// An action of an account that affects the market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// One of its orders was filled.
    Fill(Filled),
    /// Its resting orders in the book of an instrument changed to these bids and asks.
    Rests {
        /// The instrument.
        instrument: InstrumentId,
        /// Its bids and asks, best first.
        sides: [Vec<Level>; 2],
    },
}

/// A fill of an account's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Its index among the account's events that are not published yet.
    pub place: usize,
    /// The instrument.
    pub instrument: InstrumentId,
    /// Side of the order.
    pub side: Side,
    /// Mantissa at the price scale of the instrument.
    pub price: i64,
    /// Mantissa at the quantity scale of the instrument.
    pub qty: i64,
    /// Whether the order was in the book.
    pub maker: bool,
    /// What filled it.
    pub met: Met,
}

/// Receives all market data at once and in order, and has the trading accounts, which are numbered
/// from 0.
pub trait Sink {
    /// Number of accounts.
    fn accounts(&self) -> usize;
    /// Passes a market event, in the board's own ids, to the venue of one account.
    fn feed(&mut self, now: Time, account: usize, id: InstrumentId, event: &MarketEvent<'_>);
    /// The next action of an account; `None` after the last one.
    fn poll(&mut self, account: usize) -> Option<Deed>;
    /// Sets the trade id of a fill that was polled.
    fn number(&mut self, account: usize, place: usize, trade_id: i64);
    /// Lets an order of an account at this side and price trade at most this quantity with another
    /// account. Returns the traded quantity.
    fn meet(
        &mut self,
        now: Time,
        account: usize,
        id: InstrumentId,
        at: (Side, i64),
        qty: i64,
        deal: Deal,
    ) -> i64;
    /// The best price of an account's resting orders, including hidden ones, and the quantity ahead
    /// of them.
    fn best(&self, account: usize, id: InstrumentId, side: Side) -> Option<(i64, i64)>;
    /// Reports a change of a symbol. `symbol` has the state after the change.
    fn update(&mut self, now: Time, symbol: &Symbol, update: &Update);
    /// Called every quarter of a second.
    fn refresh(&mut self, now: Time, symbol: &Symbol);
    /// Called every second.
    fn second(&mut self, now: Time, symbols: &[Symbol]);
}

/// Time between two calls of [`Sink::refresh`], ms.
pub const REFRESH_MS: i64 = 250;
/// The timers of the board are due only at multiples of this, ms. It divides all of their periods.
pub const GRID_MS: i64 = 50;

/// Whether a difference of this speed is due at this time.
pub const fn is_due(speed: Speed, grid_ms: i64) -> bool {
    grid_ms % speed.millis() == 0
}

/// Ignores everything. It receives the board's first events, which happen before the venue has any
/// listeners.
pub struct Nobody;

impl Sink for Nobody {
    fn accounts(&self) -> usize {
        0
    }
    fn feed(&mut self, _: Time, _: usize, _: InstrumentId, _: &MarketEvent<'_>) {}
    fn poll(&mut self, _: usize) -> Option<Deed> {
        None
    }
    fn number(&mut self, _: usize, _: usize, _: i64) {}
    fn meet(&mut self, _: Time, _: usize, _: InstrumentId, _: (Side, i64), _: i64, _: Deal) -> i64 {
        0
    }
    fn best(&self, _: usize, _: InstrumentId, _: Side) -> Option<(i64, i64)> {
        None
    }
    fn update(&mut self, _: Time, _: &Symbol, _: &Update) {}
    fn refresh(&mut self, _: Time, _: &Symbol) {}
    fn second(&mut self, _: Time, _: &[Symbol]) {}
}
