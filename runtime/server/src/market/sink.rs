//! Who hears of the market: the accounts' venues and the public streams.

use windvane_engine::{InstrumentId, Level, MarketEvent, Time};

use super::book::{Difference, Speed};
use super::interval::Interval;
use super::kline::Kline;
use super::symbol::Symbol;
use super::trades::{AggTrade, Trade};

/// A change that public streams tell of. What they repeat in intervals (tickers, marks, open
/// klines) they read from the symbol at every [`Sink::second`] or [`Sink::refresh`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Update {
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

/// Hears of everything, at once and in order.
pub(crate) trait Sink {
    /// A market event in the board's own ids, for the venues of the accounts.
    fn feed(&mut self, now: Time, instrument: InstrumentId, event: &MarketEvent<'_>);
    /// A change of a symbol, which is as it is after the change.
    fn update(&mut self, now: Time, symbol: &Symbol, update: &Update);
    /// A quarter of a second is over.
    fn refresh(&mut self, now: Time, symbol: &Symbol);
    /// A second is over.
    fn second(&mut self, now: Time, symbols: &[Symbol]);
}

/// Time between two calls of [`Sink::refresh`], ms.
pub(crate) const REFRESH_MS: i64 = 250;
/// Times at which timers of the board may be due are multiples of this, ms: it divides the
/// periods of all of them.
pub(crate) const GRID_MS: i64 = 50;

/// Is a speed's difference due at this time?
pub(crate) const fn is_due(speed: Speed, grid_ms: i64) -> bool {
    grid_ms % speed.millis() == 0
}

/// Hears nothing: the board's first events happen before anybody listens.
pub(crate) struct Nobody;

impl Sink for Nobody {
    fn feed(&mut self, _: Time, _: InstrumentId, _: &MarketEvent<'_>) {}
    fn update(&mut self, _: Time, _: &Symbol, _: &Update) {}
    fn refresh(&mut self, _: Time, _: &Symbol) {}
    fn second(&mut self, _: Time, _: &[Symbol]) {}
}
