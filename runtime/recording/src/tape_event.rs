//! One decoded market event in 64 bytes, in memory as on disk. Levels of depth events lie beside.

use windvane_model::{InstrumentId, Level, MarketEvent, Time};

/// A market event of a tape. Its kind and payload show as a [`MarketEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapeEvent {
    /// When it was received. Never before the event in front of it.
    pub recv: Time,
    /// When it happened at the venue: transaction time (`T`) where the frame has one, else event
    /// time (`E`); 0 where it has neither.
    pub event_time: Time,
    /// The instrument.
    pub instrument: InstrumentId,
    pub(super) kind: u8,
    pub(super) flag: bool,
    /// Lines after the first line of the chunk.
    pub(super) line: u32,
    /// By kind. Trade: price, quantity, id. Top: update id, bid price and quantity, ask price and
    /// quantity. Depth: update id, index of the first level, number of bids, of asks. Mark: mark,
    /// index, funding rate, next funding.
    pub(super) words: [i64; 5],
}

pub(super) const TRADE: u8 = 1;
pub(super) const TOP: u8 = 2;
pub(super) const DEPTH: u8 = 3;
pub(super) const GAP: u8 = 4;
pub(super) const MARK: u8 = 5;

impl TapeEvent {
    /// The event, with its levels out of those of its chunk.
    ///
    /// # Panics
    /// If `levels` are not those of the event's chunk.
    #[inline]
    pub fn market<'a>(&self, levels: &'a [Level]) -> MarketEvent<'a> {
        let words = self.words;
        match self.kind {
            TRADE => MarketEvent::Trade {
                price: words[0],
                qty: words[1],
                trade_id: words[2],
                buyer_is_maker: self.flag,
            },
            TOP => MarketEvent::Top {
                update_id: words[0],
                bid: Level {
                    price: words[1],
                    qty: words[2],
                },
                ask: Level {
                    price: words[3],
                    qty: words[4],
                },
            },
            DEPTH => {
                let levels = &levels[self.levels()];
                let (bids, asks) = levels.split_at(words[2] as usize);
                MarketEvent::Depth {
                    update_id: words[0],
                    snapshot: self.flag,
                    bids,
                    asks,
                }
            }
            MARK => MarketEvent::Mark {
                mark: words[0],
                index: words[1],
                funding_rate: words[2],
                next_funding: Time(words[3]),
            },
            // Only the five kinds are ever read or made.
            _ => MarketEvent::Gap,
        }
    }

    /// Where the levels of a depth event lie in those of its chunk.
    #[inline]
    pub(super) fn levels(&self) -> std::ops::Range<usize> {
        let [_, first, bids, asks, _] = self.words;
        let first = first as usize;
        first
            ..first
                .saturating_add(bids as usize)
                .saturating_add(asks as usize)
    }
}
