//! One decoded market event in 64 bytes, with the same layout in memory and on disk. The levels of
//! depth events are stored separately. Only this file knows the layout of the payload.

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
    pub(super) kind: Kind,
    pub(super) flag: bool,
    /// Line number, relative to the first line of the chunk.
    pub(super) line: u32,
    /// The payload, depending on the kind.
    pub(super) words: [i64; 5],
}

/// Kind of an event, with its number in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Words: price, quantity, trade id. The flag: the buyer was the maker.
    Trade = 1,
    /// Words: update id, bid price, bid quantity, ask price, ask quantity.
    Top = 2,
    /// Words: update id, index of the first level, number of bids, number of asks. The flag: it is a
    /// snapshot.
    Depth = 3,
    /// No words.
    Gap = 4,
    /// Words: mark, index, funding rate, next funding time.
    Mark = 5,
}

impl Kind {
    #[inline]
    pub(super) const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Trade,
            2 => Self::Top,
            3 => Self::Depth,
            4 => Self::Gap,
            5 => Self::Mark,
            _ => return None,
        })
    }
}

impl TapeEvent {
    /// The payload of an event: kind, flag and words. The levels of a depth event begin at
    /// `first_level`.
    #[inline]
    pub(super) fn payload(event: &MarketEvent<'_>, first_level: usize) -> (Kind, bool, [i64; 5]) {
        match *event {
            MarketEvent::Trade {
                price,
                qty,
                trade_id,
                buyer_is_maker,
            } => (Kind::Trade, buyer_is_maker, [price, qty, trade_id, 0, 0]),
            MarketEvent::Top {
                update_id,
                bid,
                ask,
            } => {
                let words = [update_id, bid.price, bid.qty, ask.price, ask.qty];
                (Kind::Top, false, words)
            }
            MarketEvent::Depth {
                update_id,
                snapshot,
                bids,
                asks,
            } => {
                let [first, bids, asks] =
                    [first_level, bids.len(), asks.len()].map(|count| count as i64);
                (Kind::Depth, snapshot, [update_id, first, bids, asks, 0])
            }
            MarketEvent::Gap => (Kind::Gap, false, [0; 5]),
            MarketEvent::Mark {
                mark,
                index,
                funding_rate,
                next_funding,
            } => {
                let words = [mark, index, funding_rate, next_funding.0, 0];
                (Kind::Mark, false, words)
            }
        }
    }

    /// Converts the event. `levels` are the levels of its chunk.
    ///
    /// # Panics
    /// If `levels` are not the levels of the event's chunk.
    #[inline]
    pub fn market<'a>(&self, levels: &'a [Level]) -> MarketEvent<'a> {
        let words = self.words;
        match self.kind {
            Kind::Trade => MarketEvent::Trade {
                price: words[0],
                qty: words[1],
                trade_id: words[2],
                buyer_is_maker: self.flag,
            },
            Kind::Top => MarketEvent::Top {
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
            Kind::Depth => {
                let levels = &levels[self.levels()];
                let (bids, asks) = levels.split_at(words[2] as usize);
                MarketEvent::Depth {
                    update_id: words[0],
                    snapshot: self.flag,
                    bids,
                    asks,
                }
            }
            Kind::Gap => MarketEvent::Gap,
            Kind::Mark => MarketEvent::Mark {
                mark: words[0],
                index: words[1],
                funding_rate: words[2],
                next_funding: Time(words[3]),
            },
        }
    }

    /// Whether a depth event has levels in its chunk, which has this many.
    pub(super) fn is_sound(&self, levels: usize) -> bool {
        let counts = &self.words[1..4];
        self.kind != Kind::Depth || counts.iter().all(|&n| n >= 0) && self.levels().end <= levels
    }

    /// Applies `to` to each pair of price and quantity in the scales of the instrument.
    #[inline]
    pub(super) fn scale(&mut self, levels: &mut [Level], to: impl Fn(i64, i64) -> (i64, i64)) {
        match self.kind {
            Kind::Trade => {
                let [price, qty, ..] = self.words;
                (self.words[0], self.words[1]) = to(price, qty);
            }
            Kind::Top => {
                let [_, bid, bid_qty, ask, ask_qty] = self.words;
                (self.words[1], self.words[2]) = to(bid, bid_qty);
                (self.words[3], self.words[4]) = to(ask, ask_qty);
            }
            Kind::Depth => {
                for level in &mut levels[self.levels()] {
                    (level.price, level.qty) = to(level.price, level.qty);
                }
            }
            // The scale of marks does not depend on the instrument.
            Kind::Gap | Kind::Mark => {}
        }
    }

    /// The pairs that [`scale`](Self::scale) changes.
    pub(super) fn pairs(&self, levels: &[Level]) -> Vec<(i64, i64)> {
        let words = self.words;
        match self.kind {
            Kind::Trade => vec![(words[0], words[1])],
            Kind::Top => vec![(words[1], words[2]), (words[3], words[4])],
            Kind::Depth => {
                let levels = levels[self.levels()].iter();
                levels.map(|level| (level.price, level.qty)).collect()
            }
            Kind::Gap | Kind::Mark => Vec::new(),
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
