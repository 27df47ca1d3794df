//! Market data that stopped. If mark prices are streamed, they arrive every few seconds, whatever
//! the market does. If they did so and then nothing arrives any more, the book is stale: no
//! strategy opens a position on it. A quiet or polled market has no such rhythm and is not judged.

use serde::{Deserialize, Serialize};
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::trading::{BlockState, TradingBlock};

use super::super::Engine;

/// Mark prices that are at most this far apart are regular.
const RHYTHM_MS: i64 = 5_000;
/// This many regular mark prices in a row show a rhythm.
const REGULAR: u32 = 10;
/// If nothing arrived for this long, the data stopped.
const STOPPED_MS: i64 = 15_000;

/// The market data of each instrument.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in super::super) struct Feeds(Vec<Feed>);

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Feed {
    last: Time,
    mark: Time,
    /// Number of regular mark prices in a row.
    regular: u32,
    stopped: bool,
}

impl Engine {
    /// Notes that market data of an instrument arrived.
    #[inline]
    pub(in super::super) fn note_market(&mut self, instrument: InstrumentId, is_mark: bool) {
        if self.live.is_none() {
            return;
        }
        let (now, index) = (self.now, usize::from(instrument.0));
        if self.feeds.0.len() <= index {
            self.feeds.0.resize(index + 1, Feed::default());
        }
        let feed = &mut self.feeds.0[index];
        feed.last = now;
        if is_mark {
            let is_regular = now <= feed.mark.plus_ms(RHYTHM_MS);
            feed.regular = if is_regular {
                feed.regular.saturating_add(1)
            } else {
                0
            };
            feed.mark = now;
        }
        if std::mem::take(&mut feed.stopped) {
            self.unblock(TradingBlock::StaleMarket(instrument));
        }
    }

    /// Blocks opening orders of instruments whose market data stopped.
    pub(in super::super) fn watch_feeds(&mut self) {
        let now = self.now;
        for index in 0..self.feeds.0.len() {
            let feed = &mut self.feeds.0[index];
            let is_old = feed.regular >= REGULAR && now > feed.last.plus_ms(STOPPED_MS);
            if feed.stopped || !is_old {
                continue;
            }
            feed.stopped = true;
            let state = BlockState {
                since: now,
                ..BlockState::default()
            };
            let id = InstrumentId(index as u16);
            self.begin_block(TradingBlock::StaleMarket(id), state);
            // The symbol may have stopped trading.
            self.read_rules(self.surface_of(id));
        }
    }
}
