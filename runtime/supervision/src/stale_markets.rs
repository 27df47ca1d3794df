//! Market data that stopped. If mark prices are streamed, they arrive every few seconds, whatever
//! the market does. If they did so and then nothing arrives any more, the book is stale: no
//! strategy opens a position on it. A quiet or polled market has no such rhythm and is not judged.

use serde::{Deserialize, Serialize};
use windvane_model::ids::{InstrumentId, Time};

/// Mark prices that are at most this far apart are regular.
const RHYTHM_MS: i64 = 5_000;

/// This many regular mark prices in a row show a rhythm.
const REGULAR: u32 = 10;

/// If nothing arrived for this long, the data stopped.
const STOPPED_MS: i64 = 15_000;

/// The market data of each instrument.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct MarketFeeds(Vec<MarketFeed>);

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct MarketFeed {
    last: Time,
    mark: Time,
    /// Number of regular mark prices in a row.
    regular: u32,
    stopped: bool,
}

impl MarketFeeds {
    /// Notes that market data of an instrument arrived. Returns whether they had stopped.
    #[inline]
    pub fn note(&mut self, instrument: InstrumentId, is_mark: bool, now: Time) -> bool {
        let index = usize::from(instrument.0);
        if self.0.len() <= index {
            self.0.resize(index + 1, MarketFeed::default());
        }
        let feed = &mut self.0[index];
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
        std::mem::take(&mut feed.stopped)
    }

    /// The instruments whose market data stopped since the last call.
    pub fn stopped(&mut self, now: Time) -> Vec<InstrumentId> {
        let mut stopped = Vec::new();
        for (index, feed) in self.0.iter_mut().enumerate() {
            let is_old = feed.regular >= REGULAR && now > feed.last.plus_ms(STOPPED_MS);
            if is_old && !feed.stopped {
                feed.stopped = true;
                stopped.push(InstrumentId(index as u16));
            }
        }
        stopped
    }
}
