//! Who hears of the market: the accounts' venues and the public streams.

use windvane_model::{InstrumentId, Level, MarketEvent, Side, Time};
use windvane_sim::{Deal, Met};

use super::book::{Difference, Speed};
use super::interval::Interval;
use super::kline::Kline;
use super::symbol::Symbol;
use super::trades::{AggTrade, Trade};

/// A change that public streams tell of. What they repeat in intervals (tickers, marks, open
/// klines) they read from the symbol at every [`Sink::second`] or [`Sink::refresh`].
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

/// What an account did, of which the market hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// An order of it was filled.
    Fill(Filled),
    /// Its orders in the book of an instrument are these now, bids and asks.
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
    /// Its place among what the account has not been told of.
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

/// Hears of everything, at once and in order, and has accounts that trade: their places count
/// from 0.
pub trait Sink {
    /// How many accounts there are.
    fn accounts(&self) -> usize;
    /// A market event in the board's own ids, for the venue of one account.
    fn feed(&mut self, now: Time, account: usize, id: InstrumentId, event: &MarketEvent<'_>);
    /// The next thing that an account did, until there is none.
    fn poll(&mut self, account: usize) -> Option<Deed>;
    /// The trade id of a fill that was polled.
    fn number(&mut self, account: usize, place: usize, trade_id: i64);
    /// An order of an account at this side and price trades at most this quantity with another
    /// account; answers how much it was.
    fn meet(
        &mut self,
        now: Time,
        account: usize,
        id: InstrumentId,
        at: (Side, i64),
        qty: i64,
        deal: Deal,
    ) -> i64;
    /// The best price of an account's orders in the book, hidden ones included, and the quantity
    /// that stands before them.
    fn best(&self, account: usize, id: InstrumentId, side: Side) -> Option<(i64, i64)>;
    /// A change of a symbol, which is as it is after the change.
    fn update(&mut self, now: Time, symbol: &Symbol, update: &Update);
    /// A quarter of a second is over.
    fn refresh(&mut self, now: Time, symbol: &Symbol);
    /// A second is over.
    fn second(&mut self, now: Time, symbols: &[Symbol]);
}

/// Time between two calls of [`Sink::refresh`], ms.
pub const REFRESH_MS: i64 = 250;
/// Times at which timers of the board may be due are multiples of this, ms: it divides the
/// periods of all of them.
pub const GRID_MS: i64 = 50;

/// Is a speed's difference due at this time?
pub const fn is_due(speed: Speed, grid_ms: i64) -> bool {
    grid_ms % speed.millis() == 0
}

/// Hears nothing: the board's first events happen before anybody listens.
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
