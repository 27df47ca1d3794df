//! Public market data for the engine and the simulated venue: integers in the instrument's scales,
//! already joined and in order.

use serde::{Deserialize, Serialize};

use crate::ids::Time;

/// One price level: price and quantity mantissas. In a difference, quantity 0 removes the level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Price mantissa at the instrument's price scale.
    pub price: i64,
    /// Absolute quantity mantissa at the instrument's quantity scale.
    pub qty: i64,
}

/// A public market event of one instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketEvent<'a> {
    /// A public trade.
    Trade {
        /// Price mantissa.
        price: i64,
        /// Quantity mantissa.
        qty: i64,
        /// The venue's trade id.
        trade_id: i64,
        /// `m`: the buyer was the maker, so the seller was the taker.
        buyer_is_maker: bool,
    },
    /// Best bid and ask (`bookTicker`).
    Top {
        /// `u`, comparable with the update id of the depth; 0 if unknown.
        update_id: i64,
        /// Best bid.
        bid: Level,
        /// Best ask.
        ask: Level,
    },
    /// A depth difference, or the whole book if `snapshot`. The levels may be in any order.
    Depth {
        /// `u` of the difference or `lastUpdateId` of the snapshot.
        update_id: i64,
        /// Whether it replaces the whole book.
        snapshot: bool,
        /// Bid levels.
        bids: &'a [Level],
        /// Ask levels.
        asks: &'a [Level],
    },
    /// The depth sequence has a gap. Until the next snapshot the book has only its top.
    Gap,
    /// Mark price and funding terms (`markPriceUpdate`). Prices at [`MARK_SCALE`].
    ///
    /// [`MARK_SCALE`]: crate::decimal::MARK_SCALE
    Mark {
        /// Mark price, scale 8.
        mark: i64,
        /// Index price, scale 8; 0 if unknown.
        index: i64,
        /// Funding rate of the current interval, scale 8.
        funding_rate: i64,
        /// Time of the next funding payment; [`Time::NEVER`] if unknown.
        next_funding: Time,
    },
}

/// A market event that owns its levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedMarketEvent {
    /// Any event except [`MarketEvent::Depth`].
    Plain(MarketEvent<'static>),
    /// A depth difference or snapshot.
    Depth {
        /// `u` of the difference or `lastUpdateId` of the snapshot.
        update_id: i64,
        /// Whether it replaces the whole book.
        snapshot: bool,
        /// Bid levels.
        bids: Vec<Level>,
        /// Ask levels.
        asks: Vec<Level>,
    },
}

impl OwnedMarketEvent {
    /// An owned copy of an event.
    pub fn of(event: &MarketEvent<'_>) -> Self {
        match *event {
            MarketEvent::Depth {
                update_id,
                snapshot,
                bids,
                asks,
            } => Self::Depth {
                update_id,
                snapshot,
                bids: bids.to_vec(),
                asks: asks.to_vec(),
            },
            MarketEvent::Trade {
                price,
                qty,
                trade_id,
                buyer_is_maker,
            } => Self::Plain(MarketEvent::Trade {
                price,
                qty,
                trade_id,
                buyer_is_maker,
            }),
            MarketEvent::Top {
                update_id,
                bid,
                ask,
            } => Self::Plain(MarketEvent::Top {
                update_id,
                bid,
                ask,
            }),
            MarketEvent::Gap => Self::Plain(MarketEvent::Gap),
            MarketEvent::Mark {
                mark,
                index,
                funding_rate,
                next_funding,
            } => Self::Plain(MarketEvent::Mark {
                mark,
                index,
                funding_rate,
                next_funding,
            }),
        }
    }

    /// The event.
    pub fn market(&self) -> MarketEvent<'_> {
        match self {
            Self::Plain(event) => *event,
            Self::Depth {
                update_id,
                snapshot,
                bids,
                asks,
            } => MarketEvent::Depth {
                update_id: *update_id,
                snapshot: *snapshot,
                bids,
                asks,
            },
        }
    }
}
