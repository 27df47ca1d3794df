//! Market events in every format.
//!
//! Format 3 has a market part in each block: market events and the strategies that received them.
//! Each record is encoded as the difference to earlier records. A block is decoded independently of
//! other blocks, so writer and reader begin with an empty state for each block. Format 1 has no
//! market part ([`put_fixed`], [`read_fixed`]).

use crate::event::EventKind;
use crate::ids::{InstrumentId, StrategyId, Time};
use crate::market::{Level, MarketEvent, OwnedMarketEvent};

use super::cursor::{Cursor, DecodeError, Read};
use super::form::{Form, Out, Small, zigzag};
use super::kind;
use super::recorded::{Record, RecordBody, RecordedEffect, RecordedInput};

/// Tags of records. The kind is in bits 0 to 2.
mod tag {
    pub const TRADE: u8 = 0;
    pub const TOP: u8 = 1;
    pub const DEPTH: u8 = 2;
    pub const GAP: u8 = 3;
    pub const MARK: u8 = 4;
    pub const DELIVER: u8 = 5;
    pub const KIND: u8 = 0b111;
    /// The time equals that of the previous record.
    pub const SAME_TIME: u8 = 1 << 3;
    /// The instrument equals that of the previous event.
    pub const SAME_INSTRUMENT: u8 = 1 << 4;
    /// In a trade: the buyer was the maker.
    pub const BUYER_IS_MAKER: u8 = 1 << 5;
    /// In a depth record: it is a snapshot.
    pub const SNAPSHOT: u8 = 1 << 5;
    /// In a top: the fields that differ from the previous top.
    pub const BID_QTY: u8 = 1 << 5;
    pub const ASK_QTY: u8 = 1 << 6;
    pub const PRICES: u8 = 1 << 7;
    /// In a delivery: the first bit of the event kind.
    pub const EVENT_SHIFT: u32 = 4;
}

/// Values of earlier records of an instrument, to which the next record is a difference.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    /// The last price on each side, from a top or a trade.
    bid: Level,
    ask: Level,
    update_id: i64,
    trade_id: i64,
    /// The first price level on each side of the previous depth record.
    depth_bid: i64,
    depth_ask: i64,
    /// Mark price, index price, funding rate and time of the next funding payment.
    mark: [i64; 4],
}

/// Values of earlier records, the same for the writer and the reader.
#[derive(Clone, Debug, Default)]
struct Before {
    time: i64,
    instrument: u16,
    /// Index in `seen` of the current instrument.
    at: usize,
    seen: Vec<(u16, Last)>,
}

impl Before {
    fn clear(&mut self) {
        (self.time, self.instrument, self.at) = (0, 0, 0);
        self.seen.clear();
    }

    #[inline]
    fn last(&mut self, instrument: u16) -> &mut Last {
        self.instrument = instrument;
        let is_here = self
            .seen
            .get(self.at)
            .is_some_and(|(id, _)| *id == instrument);
        if !is_here {
            self.find(instrument);
        }
        &mut self.seen[self.at].1
    }

    #[cold]
    fn find(&mut self, instrument: u16) {
        let found = self.seen.iter().position(|(id, _)| *id == instrument);
        self.at = found.unwrap_or_else(|| {
            self.seen.push((instrument, Last::default()));
            self.seen.len() - 1
        });
    }
}

/// Writes the market part of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct MarketWriter {
    pub(crate) bytes: Vec<u8>,
    before: Before,
}

impl MarketWriter {
    /// Clears the state for the next block.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.before.clear();
    }

    /// Writes the tag, the instrument and the time.
    #[inline]
    fn head<const N: usize>(&mut self, small: &mut Small<N>, kind: u8, now: i64, instrument: u16) {
        let mut tag = kind;
        let elapsed = now.wrapping_sub(self.before.time) as u64;
        let same_instrument = instrument == self.before.instrument;
        if elapsed == 0 {
            tag |= tag::SAME_TIME;
        }
        if same_instrument {
            tag |= tag::SAME_INSTRUMENT;
        }
        small.byte(tag);
        if !same_instrument {
            small.put(instrument.into());
        }
        if elapsed != 0 {
            small.put(elapsed);
            self.before.time = now;
        }
    }

    #[inline]
    pub(crate) fn event(&mut self, now: Time, instrument: u16, event: &MarketEvent<'_>) {
        match event {
            MarketEvent::Trade {
                price,
                qty,
                trade_id,
                buyer_is_maker,
            } => {
                let mut small = Small::<48>::new();
                let flag = u8::from(*buyer_is_maker) * tag::BUYER_IS_MAKER;
                self.head(&mut small, tag::TRADE | flag, now.0, instrument);
                let last = self.before.last(instrument);
                let side = if *buyer_is_maker {
                    &mut last.bid
                } else {
                    &mut last.ask
                };
                small.put_signed(price.wrapping_sub(side.price));
                small.put(*qty as u64);
                small.put_signed(trade_id.wrapping_sub(last.trade_id));
                side.price = *price;
                last.trade_id = *trade_id;
                self.bytes.extend_from_slice(small.bytes());
            }
            MarketEvent::Top {
                update_id,
                bid,
                ask,
            } => self.top(now, instrument, *update_id, *bid, *ask),
            MarketEvent::Depth {
                update_id,
                snapshot,
                bids,
                asks,
            } => self.depth(now, instrument, (*update_id, *snapshot), bids, asks),
            MarketEvent::Gap => {
                let mut small = Small::<16>::new();
                self.head(&mut small, tag::GAP, now.0, instrument);
                self.before.last(instrument);
                self.bytes.extend_from_slice(small.bytes());
            }
            MarketEvent::Mark {
                mark,
                index,
                funding_rate,
                next_funding,
            } => {
                let mut small = Small::<56>::new();
                self.head(&mut small, tag::MARK, now.0, instrument);
                let last = self.before.last(instrument);
                let words = [*mark, *index, *funding_rate, next_funding.0];
                for (word, last) in words.iter().zip(&mut last.mark) {
                    small.put_signed(word.wrapping_sub(*last));
                    *last = *word;
                }
                self.bytes.extend_from_slice(small.bytes());
            }
        }
    }

    #[inline]
    fn top(&mut self, now: Time, instrument: u16, update_id: i64, bid: Level, ask: Level) {
        let mut small = Small::<72>::new();
        self.head(&mut small, tag::TOP, now.0, instrument);
        let last = self.before.last(instrument);
        small.put_signed(update_id.wrapping_sub(last.update_id));
        let mut flags = 0;
        if (bid.price, ask.price) != (last.bid.price, last.ask.price) {
            flags |= tag::PRICES;
            small.put_signed(bid.price.wrapping_sub(last.bid.price));
            small.put_signed(ask.price.wrapping_sub(last.ask.price));
        }
        if bid.qty != last.bid.qty {
            flags |= tag::BID_QTY;
            small.put(bid.qty as u64);
        }
        if ask.qty != last.ask.qty {
            flags |= tag::ASK_QTY;
            small.put(ask.qty as u64);
        }
        small.flag(flags);
        (last.bid, last.ask, last.update_id) = (bid, ask, update_id);
        self.bytes.extend_from_slice(small.bytes());
    }

    fn depth(
        &mut self,
        now: Time,
        instrument: u16,
        (update_id, snapshot): (i64, bool),
        bids: &[Level],
        asks: &[Level],
    ) {
        let mut small = Small::<40>::new();
        let flag = u8::from(snapshot) * tag::SNAPSHOT;
        self.head(&mut small, tag::DEPTH | flag, now.0, instrument);
        let last = self.before.last(instrument);
        small.put_signed(update_id.wrapping_sub(last.update_id));
        small.put(bids.len() as u64);
        small.put(asks.len() as u64);
        last.update_id = update_id;
        self.bytes.extend_from_slice(small.bytes());
        for (levels, first) in [(bids, &mut last.depth_bid), (asks, &mut last.depth_ask)] {
            let mut price = *first;
            for level in levels {
                let mut small = Small::<20>::new();
                small.put(zigzag(level.price.wrapping_sub(price)));
                small.put(level.qty as u64);
                self.bytes.extend_from_slice(small.bytes());
                price = level.price;
            }
            if let Some(level) = levels.first() {
                *first = level.price;
            }
        }
    }

    /// Records that a market event was delivered to a strategy.
    #[inline]
    pub(crate) fn delivered(&mut self, now: Time, strategy: StrategyId, kind: EventKind) {
        let mut small = Small::<16>::new();
        let elapsed = now.0.wrapping_sub(self.before.time) as u64;
        let tag = tag::DELIVER | (kind as u8) << tag::EVENT_SHIFT;
        if elapsed == 0 {
            small.byte(tag | tag::SAME_TIME);
        } else {
            small.byte(tag);
            small.put(elapsed);
            self.before.time = now.0;
        }
        small.put(strategy.0.into());
        self.bytes.extend_from_slice(small.bytes());
    }
}

/// Reads the market part of a block.
#[derive(Clone, Debug)]
pub(super) struct MarketReader<'a> {
    cursor: Cursor<'a>,
    before: Before,
}

impl<'a> MarketReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            cursor: Cursor::new(bytes, Form::Short),
            before: Before::default(),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.cursor.is_empty()
    }

    pub(super) const fn left(&self) -> usize {
        self.cursor.left()
    }

    pub(super) fn record(&mut self) -> Read<Record> {
        let offset = self.cursor.offset();
        let tag = self.cursor.u8("tag")?;
        let bad = || DecodeError::UnknownKind { offset, kind: tag };
        let kind = tag & tag::KIND;
        if kind > tag::DELIVER {
            return Err(bad());
        }
        let mut instrument = None;
        if kind != tag::DELIVER {
            instrument = Some(self.instrument(tag)?);
        }
        if tag & tag::SAME_TIME == 0 {
            let elapsed = self.different("time", 0, Cursor::short)?;
            self.before.time = self.before.time.wrapping_add(elapsed as i64);
        }
        let time = Time(self.before.time);
        let Some(instrument) = instrument else {
            let kind =
                EventKind::from_code(tag >> tag::EVENT_SHIFT).filter(|kind| kind.is_of_market());
            let strategy = StrategyId(self.cursor.u16("strategy")?);
            let kind = kind.ok_or_else(bad)?;
            let body = RecordBody::Effect(RecordedEffect::Deliver {
                strategy,
                kind,
                sequence: None,
            });
            return Ok(Record { time, body });
        };
        let flags = tag & !(tag::KIND | tag::SAME_TIME | tag::SAME_INSTRUMENT);
        let known = match kind {
            tag::TRADE => tag::BUYER_IS_MAKER,
            tag::TOP => tag::BID_QTY | tag::ASK_QTY | tag::PRICES,
            tag::DEPTH => tag::SNAPSHOT,
            _ => 0,
        };
        if flags & !known != 0 {
            return Err(bad());
        }
        let event = self.event(kind, flags, instrument)?.ok_or_else(bad)?;
        let body = RecordBody::Input(RecordedInput::Market {
            instrument: InstrumentId(instrument),
            event,
        });
        Ok(Record { time, body })
    }

    fn instrument(&mut self, tag: u8) -> Read<u16> {
        if tag & tag::SAME_INSTRUMENT != 0 {
            return Ok(self.before.instrument);
        }
        let before = self.before.instrument;
        self.different("instrument", before, Cursor::u16)
    }

    /// A value that is present only if it differs from `from`.
    fn different<T: Copy + PartialEq>(
        &mut self,
        field: &'static str,
        from: T,
        read: impl FnOnce(&mut Cursor<'a>, &'static str) -> Read<T>,
    ) -> Read<T> {
        let offset = self.cursor.offset();
        let value = read(&mut self.cursor, field)?;
        if value == from {
            return Err(DecodeError::Text { field, offset });
        }
        Ok(value)
    }

    /// `None` for a kind that is not a market event.
    fn event(&mut self, kind: u8, flags: u8, instrument: u16) -> Read<Option<OwnedMarketEvent>> {
        use OwnedMarketEvent::{Depth, Plain};
        let mut last = *self.before.last(instrument);
        let event = match kind {
            tag::TRADE => Plain(self.trade(&mut last, flags != 0)?),
            tag::TOP => Plain(self.top(&mut last, flags)?),
            tag::DEPTH => {
                last.update_id = self.moved("update id", last.update_id)?;
                let bids = self.cursor.short("bids")?;
                let asks = self.cursor.short("asks")?;
                Depth {
                    update_id: last.update_id,
                    snapshot: flags != 0,
                    bids: self.levels(bids, &mut last.depth_bid)?,
                    asks: self.levels(asks, &mut last.depth_ask)?,
                }
            }
            tag::GAP => Plain(MarketEvent::Gap),
            tag::MARK => {
                let fields = ["mark price", "index price", "funding rate", "next funding"];
                for (field, word) in fields.into_iter().zip(&mut last.mark) {
                    *word = word.wrapping_add(self.cursor.short_signed(field)?);
                }
                let [mark, index, funding_rate, next_funding] = last.mark;
                Plain(MarketEvent::Mark {
                    mark,
                    index,
                    funding_rate,
                    next_funding: Time(next_funding),
                })
            }
            _ => return Ok(None),
        };
        *self.before.last(instrument) = last;
        Ok(Some(event))
    }

    fn moved(&mut self, field: &'static str, from: i64) -> Read<i64> {
        Ok(from.wrapping_add(self.cursor.short_signed(field)?))
    }

    fn trade(&mut self, last: &mut Last, buyer_is_maker: bool) -> Read<MarketEvent<'static>> {
        let side = if buyer_is_maker {
            &mut last.bid
        } else {
            &mut last.ask
        };
        side.price = self.moved("price", side.price)?;
        let price = side.price;
        let qty = self.cursor.short("quantity")? as i64;
        last.trade_id = self.moved("trade id", last.trade_id)?;
        Ok(MarketEvent::Trade {
            price,
            qty,
            trade_id: last.trade_id,
            buyer_is_maker,
        })
    }

    fn top(&mut self, last: &mut Last, flags: u8) -> Read<MarketEvent<'static>> {
        last.update_id = self.moved("update id", last.update_id)?;
        if flags & tag::PRICES != 0 {
            let before = (last.bid.price, last.ask.price);
            let (bid, ask) = self.different("prices", before, |cursor, field| {
                let bid = cursor.short_signed(field)?;
                let ask = cursor.short_signed(field)?;
                Ok((before.0.wrapping_add(bid), before.1.wrapping_add(ask)))
            })?;
            (last.bid.price, last.ask.price) = (bid, ask);
        }
        let quantity = |cursor: &mut Cursor<'a>, field| Ok(cursor.short(field)? as i64);
        if flags & tag::BID_QTY != 0 {
            last.bid.qty = self.different("bid quantity", last.bid.qty, quantity)?;
        }
        if flags & tag::ASK_QTY != 0 {
            last.ask.qty = self.different("ask quantity", last.ask.qty, quantity)?;
        }
        Ok(MarketEvent::Top {
            update_id: last.update_id,
            bid: last.bid,
            ask: last.ask,
        })
    }

    /// Memory grows with the levels that are read, not with the stated count.
    fn levels(&mut self, count: u64, first: &mut i64) -> Read<Vec<Level>> {
        let mut levels = Vec::new();
        let mut price = *first;
        for _ in 0..count {
            price = self.moved("level price", price)?;
            let qty = self.cursor.short("level quantity")? as i64;
            levels.push(Level { price, qty });
        }
        if let Some(level) = levels.first() {
            *first = level.price;
        }
        Ok(levels)
    }
}

/// The kind of the record of a market event in format 1.
pub(crate) const fn fixed_kind(event: &MarketEvent<'_>) -> u8 {
    match event {
        MarketEvent::Trade { .. } => kind::TRADE,
        MarketEvent::Top { .. } => kind::TOP,
        MarketEvent::Depth { .. } => kind::DEPTH,
        MarketEvent::Gap => kind::GAP,
        MarketEvent::Mark { .. } => kind::MARK,
    }
}

/// Writes the fields of a market event in format 1, which has no market part.
pub(crate) fn put_fixed(out: &mut Out<'_>, instrument: u16, event: &MarketEvent<'_>) {
    out.put_u16(instrument);
    match event {
        MarketEvent::Trade {
            price,
            qty,
            trade_id,
            buyer_is_maker,
        } => {
            out.put(&[u8::from(*buyer_is_maker)]);
            for word in [*price, *qty, *trade_id] {
                out.put_i64(word);
            }
        }
        MarketEvent::Top {
            update_id,
            bid,
            ask,
        } => {
            for word in [*update_id, bid.price, bid.qty, ask.price, ask.qty] {
                out.put_i64(word);
            }
        }
        MarketEvent::Depth {
            update_id,
            snapshot,
            bids,
            asks,
        } => {
            out.put(&[u8::from(*snapshot)]);
            out.put_i64(*update_id);
            put_levels(out, bids);
            put_levels(out, asks);
        }
        MarketEvent::Gap => {}
        MarketEvent::Mark {
            mark,
            index,
            funding_rate,
            next_funding,
        } => {
            for word in [*mark, *index, *funding_rate, next_funding.0] {
                out.put_i64(word);
            }
        }
    }
}

fn put_levels(out: &mut Out<'_>, levels: &[Level]) {
    out.put_u32(levels.len() as u32);
    for level in levels {
        out.put_i64(level.price);
        out.put_i64(level.qty);
    }
}

/// Reads a market event of format 1; `None` for another kind of record.
pub(super) fn read_fixed(cursor: &mut Cursor<'_>, kind: u8) -> Read<Option<RecordedInput>> {
    use OwnedMarketEvent::{Depth, Plain};
    let (instrument, event) = match kind {
        kind::TRADE => {
            let instrument = cursor.instrument()?;
            let buyer_is_maker = cursor.bool("buyer is maker")?;
            let event = MarketEvent::Trade {
                price: cursor.i64("price")?,
                qty: cursor.i64("quantity")?,
                trade_id: cursor.i64("trade id")?,
                buyer_is_maker,
            };
            (instrument, Plain(event))
        }
        kind::TOP => {
            let instrument = cursor.instrument()?;
            let event = MarketEvent::Top {
                update_id: cursor.i64("update id")?,
                bid: level(cursor)?,
                ask: level(cursor)?,
            };
            (instrument, Plain(event))
        }
        kind::DEPTH => {
            let instrument = cursor.instrument()?;
            let snapshot = cursor.bool("snapshot")?;
            let event = Depth {
                snapshot,
                update_id: cursor.i64("update id")?,
                bids: cursor.list("bids", level)?,
                asks: cursor.list("asks", level)?,
            };
            (instrument, event)
        }
        kind::GAP => (cursor.instrument()?, Plain(MarketEvent::Gap)),
        kind::MARK => {
            let instrument = cursor.instrument()?;
            let event = MarketEvent::Mark {
                mark: cursor.i64("mark price")?,
                index: cursor.i64("index price")?,
                funding_rate: cursor.i64("funding rate")?,
                next_funding: cursor.time("next funding")?,
            };
            (instrument, Plain(event))
        }
        _ => return Ok(None),
    };
    Ok(Some(RecordedInput::Market { instrument, event }))
}

fn level(cursor: &mut Cursor<'_>) -> Read<Level> {
    Ok(Level {
        price: cursor.i64("level price")?,
        qty: cursor.i64("level quantity")?,
    })
}
