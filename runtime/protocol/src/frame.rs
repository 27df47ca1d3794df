//! The venue's public frames as types (docs/interface/market-data.md#public-streams). Text is
//! borrowed from the line. Nothing here depends on where the line came from.

use windvane_model::{Level, Surface};

use crate::number::{Number, NumberError};

/// A decoded frame and what is known about its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<'a> {
    /// `stream` in the envelope of a combined stream.
    pub stream: Option<&'a str>,
    /// The surface, where the frame's keys identify it (see [`crate::surface`]).
    pub surface: Option<Surface>,
    /// The payload.
    pub frame: Frame<'a>,
}

/// One public frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame<'a> {
    /// `trade` or `aggTrade`.
    Trade(Trade<'a>),
    /// `tradepro`: a trade that does not report which side was the taker.
    TradePro(TradePro<'a>),
    /// `bookTicker`.
    Top(BookTop<'a>),
    /// `depthUpdate`; its levels are in the [`BookLevels`] that was passed to the decoder.
    Depth(DepthDiff<'a>),
    /// The whole book or its first levels: a REST response or a partial depth frame. Its levels are
    /// in the [`BookLevels`] that was passed to the decoder.
    Snapshot(DepthSnapshot<'a>),
    /// `markPriceUpdate`: one, or an array of them.
    Marks(Vec<MarkPrice<'a>>),
    /// Exchange information: the text of the object, for [`crate::exchange_info`].
    ExchangeInfo(&'a str),
    /// A frame with no data for a book or a trade tape: klines, tickers, responses to commands.
    Other,
}

/// A public trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade<'a> {
    /// Symbol.
    pub symbol: &'a str,
    /// `aggTrade`: the fills of one taker order at one price, combined into one trade.
    pub aggregate: bool,
    /// `E`, milliseconds.
    pub event_ms: i64,
    /// `T`, milliseconds.
    pub trade_ms: i64,
    /// `t`, or `a` of an aggregate.
    pub id: i64,
    /// `p`.
    pub price: Number,
    /// `q`.
    pub qty: Number,
    /// `m`.
    pub buyer_is_maker: bool,
    /// `f` and `l` of an aggregate.
    pub fills: Option<FillIds>,
}

/// The ids of the trades that an aggregate combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillIds {
    /// `f`, the first.
    pub first: i64,
    /// `l`, the last.
    pub last: i64,
}

/// A public trade from `tradepro` (docs/interface/market-data.md#tradepro). It has the addresses of
/// taker and maker but does not report which of them bought. [`crate::TakerSide`] estimates that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TradePro<'a> {
    /// Symbol.
    pub symbol: &'a str,
    /// `E`, milliseconds.
    pub event_ms: i64,
    /// `T`, milliseconds.
    pub trade_ms: i64,
    /// `t`.
    pub id: i64,
    /// `p`.
    pub price: Number,
    /// `q`.
    pub qty: Number,
    /// `h`: the hash of the transaction that settled the trade.
    pub hash: Option<&'a str>,
    /// `m[0]`; `None` where it is `hidden`.
    pub taker: Option<&'a str>,
    /// `m[1]`; `None` where it is `hidden`.
    pub maker: Option<&'a str>,
}

impl<'a> TradePro<'a> {
    /// This trade in the form of the stream `trade`, with the estimated side.
    pub fn with_side(&self, buyer_is_maker: bool) -> Trade<'a> {
        Trade {
            symbol: self.symbol,
            aggregate: false,
            event_ms: self.event_ms,
            trade_ms: self.trade_ms,
            id: self.id,
            price: self.price,
            qty: self.qty,
            buyer_is_maker,
            fills: None,
        }
    }
}

/// An entry of `m`: an address, or `None` for the text `hidden`.
pub(crate) fn shown(entry: &str) -> Option<&str> {
    (entry != "hidden").then_some(entry)
}

/// Best bid and ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookTop<'a> {
    /// Symbol.
    pub symbol: &'a str,
    /// `u`.
    pub update_id: i64,
    /// `E`, milliseconds; 0 on spot, which does not send it.
    pub event_ms: i64,
    /// `T`, milliseconds; 0 on spot.
    pub transaction_ms: i64,
    /// `b`.
    pub bid_price: Number,
    /// `B`.
    pub bid_qty: Number,
    /// `a`.
    pub ask_price: Number,
    /// `A`.
    pub ask_qty: Number,
}

/// A difference of the book. Quantities are absolute; 0 removes a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthDiff<'a> {
    /// Symbol.
    pub symbol: &'a str,
    /// `E`, milliseconds.
    pub event_ms: i64,
    /// `T`, milliseconds; 0 on spot.
    pub transaction_ms: i64,
    /// The update ids.
    pub ids: DiffIds,
}

/// The update ids of a depth difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffIds {
    /// `U`, the first update id in the frame.
    pub first: i64,
    /// `u`, the last update id in the frame.
    pub last: i64,
    /// `pu`, the last update id of the previous frame; futures only.
    pub previous: Option<i64>,
}

/// The book at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthSnapshot<'a> {
    /// The symbol, in any case; a REST response has no symbol.
    pub symbol: Option<&'a str>,
    /// `lastUpdateId`, or `u` of a partial depth frame.
    pub last_update_id: i64,
    /// `E`, milliseconds; 0 where absent.
    pub event_ms: i64,
    /// `T`, milliseconds; 0 where absent.
    pub transaction_ms: i64,
    /// From a stream of the first 5, 10 or 20 levels, where every frame replaces the previous one.
    pub partial: bool,
}

/// Mark price and funding terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkPrice<'a> {
    /// Symbol.
    pub symbol: &'a str,
    /// `E`, milliseconds.
    pub event_ms: i64,
    /// `p`.
    pub mark: Number,
    /// `i`; `None` where absent or empty.
    pub index: Option<Number>,
    /// `P`, the estimated settle price; `None` where absent or empty.
    pub settle: Option<Number>,
    /// `r`; `None` where absent or empty.
    pub funding_rate: Option<Number>,
    /// `T`, milliseconds; 0 where absent.
    pub next_funding_ms: i64,
}

/// The levels of the last decoded frame: bids first, then asks, all at one price scale and one
/// quantity scale. The buffer is reused for every frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookLevels {
    levels: Vec<Level>,
    bids: usize,
    price_scale: u8,
    qty_scale: u8,
}

impl BookLevels {
    /// Bid levels, in the order of the frame.
    pub fn bids(&self) -> &[Level] {
        &self.levels[..self.bids]
    }
    /// Ask levels, in the order of the frame.
    pub fn asks(&self) -> &[Level] {
        &self.levels[self.bids..]
    }
    /// Bids, then asks.
    pub fn all(&self) -> &[Level] {
        &self.levels
    }
    /// Decimal places of all prices.
    pub fn price_scale(&self) -> u8 {
        self.price_scale
    }
    /// Decimal places of all quantities.
    pub fn qty_scale(&self) -> u8 {
        self.qty_scale
    }

    pub(crate) fn clear(&mut self) {
        *self = Self {
            levels: std::mem::take(&mut self.levels),
            ..Self::default()
        };
        self.levels.clear();
    }

    /// Ends the bids: levels pushed after this call are asks.
    pub(crate) fn end_bids(&mut self) {
        self.bids = self.levels.len();
    }

    /// Adds a level. If its scales differ from the first level's, all levels move to the finer
    /// scale.
    #[inline]
    pub(crate) fn push(&mut self, price: Number, qty: Number) -> Result<(), NumberError> {
        if price.scale != self.price_scale || qty.scale != self.qty_scale {
            self.widen(price.scale, qty.scale)?;
        }
        self.levels.push(Level {
            price: price.at(self.price_scale)?,
            qty: qty.at(self.qty_scale)?,
        });
        Ok(())
    }

    fn widen(&mut self, price_scale: u8, qty_scale: u8) -> Result<(), NumberError> {
        let price_to = price_scale.max(self.price_scale);
        let qty_to = qty_scale.max(self.qty_scale);
        let number = |mantissa, scale| Number { mantissa, scale };
        for level in &mut self.levels {
            level.price = number(level.price, self.price_scale).at(price_to)?;
            level.qty = number(level.qty, self.qty_scale).at(qty_to)?;
        }
        self.price_scale = price_to;
        self.qty_scale = qty_to;
        Ok(())
    }
}

/// Why a frame could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Not JSON, or a field has another type than documented.
    #[error("not a valid frame: {0}")]
    Json(String),
    /// A field that this kind of frame must have is absent.
    #[error("{kind} without its field {field:?}")]
    Missing {
        /// Kind of the frame.
        kind: &'static str,
        /// The absent key.
        field: &'static str,
    },
    /// A number that has no exact representation.
    #[error("field {field:?}: {error}")]
    Number {
        /// The key.
        field: &'static str,
        /// Why.
        error: NumberError,
    },
}
