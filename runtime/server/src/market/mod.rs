//! The public market: symbols, books, trades, klines, tickers, marks and funding, and where they
//! come from. Sans-IO: time is an argument, everything is integers, and every list is bounded.
//!
//! Orders of the accounts are not in the public book and their fills print no public trade: each
//! account's `sim::Venue` matches against the public market as if it were alone with it.

mod board;
pub(crate) mod book;
pub(crate) mod fixed;
pub(crate) mod funding;
pub(crate) mod interval;
pub(crate) mod kline;
mod listing;
mod past;
mod random;
mod recorded;
mod seeded;
mod sink;
pub(crate) mod symbol;
pub(crate) mod ticker;
pub(crate) mod trades;

pub(crate) use board::Board;
pub use board::Source;
pub(crate) use random::Random;
pub use recorded::{Recorded, RecordedEvent, RecordedEvents, Recording};
pub(crate) use sink::{Sink, Update};
pub(crate) use symbol::Symbol;

use windvane_engine::{InstrumentId, MarketEvent, Time};

use crate::state::{Account, State};
use crate::stream::Hub;

/// Takes every market event up to `now` to the board, the accounts and the streams.
pub(crate) fn advance(state: &mut State, now: Time) {
    let mut audience = Audience {
        accounts: &mut state.accounts,
        hub: &mut state.hub,
    };
    state.board.advance(now, &mut audience);
}

/// Takes an event from outside the source to all of them, as if it had happened now.
pub(crate) fn inject(state: &mut State, now: Time, id: InstrumentId, event: &MarketEvent<'_>) {
    let mut audience = Audience {
        accounts: &mut state.accounts,
        hub: &mut state.hub,
    };
    state.board.inject(now, id, event, &mut audience);
}

/// The accounts' venues and the public streams.
struct Audience<'a> {
    accounts: &'a mut [Account],
    hub: &'a mut Hub,
}

impl Sink for Audience<'_> {
    fn feed(&mut self, now: Time, instrument: InstrumentId, event: &MarketEvent<'_>) {
        State::feed(self.accounts, now, instrument, event);
    }

    fn update(&mut self, now: Time, symbol: &Symbol, update: &Update) {
        self.hub.update(now, symbol, update);
    }

    fn refresh(&mut self, now: Time, symbol: &Symbol) {
        self.hub.refresh(now, symbol);
    }

    fn second(&mut self, now: Time, symbols: &[Symbol]) {
        self.hub.second(now, symbols);
    }
}
