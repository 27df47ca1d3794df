//! One decoded market event in 64 bytes, with the same layout in memory and on disk. The levels of
//! depth events are stored separately.

use windvane_model::{InstrumentId, Level, MarketEvent, Time};

/// A market event of a tape. [`market`](Self::market) converts it to a [`MarketEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapeEvent {
    /// Receive time. Never before that of the previous event.
    pub recv: Time,
    /// Time at the venue: the transaction time (`T`) if the frame has one, otherwise the event time
    /// (`E`); 0 if both are missing.
    pub event_time: Time,
    /// The instrument.
    pub instrument: InstrumentId,
    pub(super) kind: u8,
    pub(super) flag: bool,
    /// Line number, relative to the first line of the chunk.
    pub(super) line: u32,
    /// The payload, depending on the kind:
    ///
    /// - trade: price, quantity, trade id.
    /// - top: update id, bid price, bid quantity, ask price, ask quantity.
    /// - depth: update id, index of the first level, number of bids, number of asks.
    /// - mark: mark, index, funding rate, next funding time.
    pub(super) words: [i64; 5],
}

pub(super) const TRADE: u8 = 1;
pub(super) const TOP: u8 = 2;
pub(super) const DEPTH: u8 = 3;
pub(super) const GAP: u8 = 4;
pub(super) const MARK: u8 = 5;

impl TapeEvent {
    /// Converts the event. `levels` are the levels of its chunk.
    ///
    /// # Panics
    /// If `levels` are not the levels of the event's chunk.
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
            // Only these five kinds are ever created or read from a cache.
            _ => MarketEvent::Gap,
        }
    }

    /// The range of a depth event's levels within those of its chunk.
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
