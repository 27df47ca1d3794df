//! Records of market data that both surfaces share (docs/interface/market-data.md#market-data), and a
//! parser for arrays by position.

use serde::de::{Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::fields::record;
use super::scalar::{Exact, Flag, Whole};

record! {
    /// Order book (docs/interface/market-data.md#order-book).
    Depth {
        last_update_id: Whole = "lastUpdateId",
        /// Message output time, milliseconds.
        event_time?: Whole = "E",
        /// Transaction time, milliseconds.
        transaction_time?: Whole = "T",
        /// Best first.
        bids: Vec<Level> = "bids",
        /// Best first.
        asks: Vec<Level> = "asks",
    }
}

record! {
    /// Aggregated trade (docs/interface/market-data.md#trades).
    AggTrade {
        id: Whole = "a",
        price: Exact = "p",
        quantity: Exact = "q",
        first_trade_id: Whole = "f",
        last_trade_id: Whole = "l",
        /// Milliseconds.
        time: Whole = "T",
        /// Whether the buyer was the maker.
        is_buyer_maker: Flag = "m",
    }
}

record! {
    /// Latest price (docs/interface/market-data.md#spot-market-data).
    PriceTicker {
        symbol: String = "symbol",
        price: Exact = "price",
        /// Milliseconds.
        time?: Whole = "time",
    }
}

record! {
    /// Best bid and ask (docs/interface/market-data.md#spot-market-data).
    BookTicker {
        symbol: String = "symbol",
        bid_price: Exact = "bidPrice",
        bid_qty: Exact = "bidQty",
        ask_price: Exact = "askPrice",
        ask_qty: Exact = "askQty",
        /// Milliseconds.
        time?: Whole = "time",
    }
}

/// One level of a book: `[price, qty]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Price.
    pub price: Exact,
    /// Quantity at that price.
    pub quantity: Exact,
}

/// One kline (docs/interface/market-data.md#market-data), an array of 11 or 12 entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kline {
    /// Open time, milliseconds: it identifies a kline.
    pub open_time: i64,
    /// First price.
    pub open: Exact,
    /// Highest price.
    pub high: Exact,
    /// Lowest price.
    pub low: Exact,
    /// Last price.
    pub close: Exact,
    /// Volume in the base asset.
    pub volume: Exact,
    /// Close time, milliseconds.
    pub close_time: i64,
    /// Volume in the quote asset.
    pub quote_volume: Exact,
    /// Number of trades.
    pub trades: i64,
    /// The part of the volume that takers bought, in the base asset.
    pub taker_buy_volume: Exact,
    /// The part of the volume that takers bought, in the quote asset.
    pub taker_buy_quote_volume: Exact,
}

/// One kline of index or mark prices (docs/interface/market-data.md#market-data). Its volumes are
/// placeholders and are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceKline {
    /// Open time, milliseconds.
    pub open_time: i64,
    /// First price.
    pub open: Exact,
    /// Highest price.
    pub high: Exact,
    /// Lowest price.
    pub low: Exact,
    /// Last price.
    pub close: Exact,
    /// Close time, milliseconds.
    pub close_time: i64,
    /// Number of data points.
    pub points: i64,
}

/// The entries of an array, by position.
struct Row<A> {
    entries: A,
    position: usize,
}

impl<'de, A: SeqAccess<'de>> Row<A> {
    fn next<T: Deserialize<'de>>(&mut self) -> Result<T, A::Error> {
        let entry = self.entries.next_element()?;
        let entry =
            entry.ok_or_else(|| A::Error::invalid_length(self.position, &"more entries"))?;
        self.position += 1;
        Ok(entry)
    }

    fn whole(&mut self) -> Result<i64, A::Error> {
        self.next::<Whole>().map(|whole| whole.0)
    }

    fn skip(&mut self, count: usize) -> Result<(), A::Error> {
        (0..count).try_for_each(|_| self.next::<IgnoredAny>().map(drop))
    }

    /// Skips all remaining entries.
    fn end(mut self) -> Result<(), A::Error> {
        while self.entries.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Declares the parser of a record from an array; entries after the last known one are ignored.
macro_rules! by_position {
    ($name:ident, $expecting:literal, |$row:ident| $read:expr) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Entries;
                impl<'de> Visitor<'de> for Entries {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<$name, A::Error> {
                        let mut $row = Row {
                            entries,
                            position: 0,
                        };
                        let read = $read;
                        $row.end()?;
                        Ok(read)
                    }
                }
                deserializer.deserialize_seq(Entries)
            }
        }
    };
}

by_position!(Level, "[price, quantity]", |row| Level {
    price: row.next()?,
    quantity: row.next()?,
});

by_position!(Kline, "an array of 11 or 12 entries", |row| Kline {
    open_time: row.whole()?,
    open: row.next()?,
    high: row.next()?,
    low: row.next()?,
    close: row.next()?,
    volume: row.next()?,
    close_time: row.whole()?,
    quote_volume: row.next()?,
    trades: row.whole()?,
    taker_buy_volume: row.next()?,
    taker_buy_quote_volume: row.next()?,
});

by_position!(PriceKline, "an array of 12 entries", |row| PriceKline {
    open_time: row.whole()?,
    open: row.next()?,
    high: row.next()?,
    low: row.next()?,
    close: row.next()?,
    close_time: {
        row.skip(1)?;
        row.whole()?
    },
    points: {
        row.skip(1)?;
        row.whole()?
    },
});

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.price, self.quantity).serialize(serializer)
    }
}

impl Serialize for Kline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (
            self.open_time,
            self.open,
            self.high,
            self.low,
            self.close,
            self.volume,
            self.close_time,
            self.quote_volume,
            self.trades,
            self.taker_buy_volume,
            self.taker_buy_quote_volume,
            "0",
        )
            .serialize(serializer)
    }
}

impl Serialize for PriceKline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (
            self.open_time,
            self.open,
            self.high,
            self.low,
            self.close,
            "0",
            self.close_time,
            "0",
            self.points,
            "0",
            "0",
            "0",
        )
            .serialize(serializer)
    }
}
