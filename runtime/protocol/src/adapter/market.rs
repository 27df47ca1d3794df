//! Converts frames of the public streams into market events of the engine, in the instrument's
//! scales. Depth is joined here, so that the engine receives whole books, their differences in
//! order, and gaps.
//!
//! The only state is kept per instrument: the join of its book, and the quotes that estimate the
//! side of a `tradepro` trade. Two trade streams of one symbol would report each trade twice, so
//! subscribe to one of them only.

use windvane_model::decimal::MARK_SCALE;
use windvane_model::{Instrument, InstrumentId, Level, MarketEvent, Surface, Time};

use super::Names;
use crate::frame::{BookLevels, BookTop, DepthDiff, DepthSnapshot, DiffIds, MarkPrice, Trade};
use crate::join::{DiffStep, Joiner, Pending, SnapshotStep};
use crate::market_stream::MarketStreamEvent;
use crate::number::{Number, NumberError};
use crate::taker_side::TakerSide;

/// How many differences may wait for a snapshot: at ten a second, more than a minute of them.
const WAITING_MAX: usize = 1_000;

/// Receives the events.
pub type Emit<'a> = dyn FnMut(InstrumentId, MarketEvent<'_>) + 'a;

/// The next step of the caller after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The caller need not fetch anything.
    Nothing,
    /// Fetch GET depth (limit 1000) for [`MarketReader::snapshot`]: the instrument's differences
    /// wait for it. This is returned for every frame that waits.
    Snapshot(InstrumentId),
}

/// Why a frame gave no event. If it was a depth frame, the book is invalid until the next snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarketError {
    /// Digits that do not fit the engine's scales.
    #[error("{instrument}: {field} {error}; the engine's scales come from exchange information")]
    Figure {
        /// Name of the instrument.
        instrument: String,
        /// Field.
        field: &'static str,
        /// Why.
        error: NumberError,
    },
    /// A negative price or quantity.
    #[error("{instrument}: {field} {value} is not a price or a quantity")]
    Negative {
        /// Name of the instrument.
        instrument: String,
        /// Field.
        field: &'static str,
        /// The value in the frame.
        value: Number,
    },
}

/// Converts the public frames of all instruments.
#[derive(Clone, Debug)]
pub struct MarketReader {
    names: Names,
    feeds: Vec<Feed>,
    scratch: Vec<Level>,
}

/// The state of one instrument.
#[derive(Clone, Debug)]
struct Feed {
    joiner: Joiner,
    waiting: Pending<BookLevels>,
    taker_side: TakerSide,
    /// The instrument has a stream of differences, so partial books add nothing.
    has_diffs: bool,
}

impl MarketReader {
    /// Starts without any book.
    pub fn new(names: Names) -> Self {
        let ids = (0..=u16::MAX).map(InstrumentId);
        let known = ids.map_while(|id| names.rules(id));
        let feeds = known.map(|rules| Feed {
            joiner: Joiner::new(rules.surface),
            waiting: Pending::new(WAITING_MAX),
            taker_side: TakerSide::default(),
            has_diffs: false,
        });
        Self {
            feeds: feeds.collect(),
            names,
            scratch: Vec::new(),
        }
    }

    /// Takes a frame of a connection of `surface`; `levels` are those that were decoded with it.
    /// Frames that the engine does not use, and frames of symbols that are not configured, give no
    /// event.
    pub fn frame(
        &mut self,
        surface: Surface,
        event: &MarketStreamEvent<'_>,
        levels: &BookLevels,
        emit: &mut Emit<'_>,
    ) -> Result<Missing, MarketError> {
        match event {
            MarketStreamEvent::Trade(payload) => self.trade(surface, payload, emit)?,
            MarketStreamEvent::TradePro(payload) => {
                if let Some(id) = self.names.instrument(surface, payload.symbol) {
                    let side = &mut self.feeds[usize::from(id.0)].taker_side;
                    let buyer_is_maker = side.on_trade(payload.price);
                    self.trade(surface, &payload.with_side(buyer_is_maker), emit)?;
                }
            }
            MarketStreamEvent::Top(payload) => self.top(surface, payload, emit)?,
            MarketStreamEvent::Depth(diff) => {
                if let Some(id) = self.names.instrument(surface, diff.symbol) {
                    return self.difference(id, diff, levels, emit);
                }
            }
            MarketStreamEvent::Snapshot(payload) => {
                let symbol = payload.symbol.unwrap_or_default().to_ascii_uppercase();
                if let Some(id) = self.names.instrument(surface, &symbol) {
                    return self.snapshot(id, payload, levels, emit);
                }
            }
            MarketStreamEvent::Marks(marks) => {
                for payload in marks {
                    self.mark(payload, emit)?;
                }
            }
            MarketStreamEvent::Kline(_)
            | MarketStreamEvent::MiniTicker(_)
            | MarketStreamEvent::Ticker(_)
            | MarketStreamEvent::ForceOrder(_)
            | MarketStreamEvent::Answer(_)
            | MarketStreamEvent::Other(_) => {}
        }
        Ok(Missing::Nothing)
    }

    /// Takes a snapshot of an instrument: the response of GET depth, which has no symbol, or a
    /// partial book of a stream.
    pub fn snapshot(
        &mut self,
        id: InstrumentId,
        payload: &DepthSnapshot<'_>,
        levels: &BookLevels,
        emit: &mut Emit<'_>,
    ) -> Result<Missing, MarketError> {
        let Some(feed) = self.feeds.get_mut(usize::from(id.0)) else {
            return Ok(Missing::Nothing);
        };
        if payload.partial {
            // A partial book has the first levels only; a stream of differences has all of them.
            if !feed.has_diffs {
                self.book(id, payload.last_update_id, true, levels, emit)?;
            }
            return Ok(Missing::Nothing);
        }
        if feed.joiner.on_snapshot(payload.last_update_id) == SnapshotStep::Drop {
            return Ok(Missing::Nothing);
        }
        let waiting = feed.waiting.take();
        self.book(id, payload.last_update_id, true, levels, emit)?;
        for (ids, levels) in waiting {
            self.join(id, ids, &levels, emit)?;
        }
        let feed = &self.feeds[usize::from(id.0)];
        Ok(if feed.waiting.is_empty() {
            Missing::Nothing
        } else {
            Missing::Snapshot(id)
        })
    }

    /// The streams of an instrument were interrupted. Until the next snapshot only the top of its
    /// book is valid, and old quotes must not estimate the side of trades.
    pub fn interrupted(&mut self, id: InstrumentId, emit: &mut Emit<'_>) {
        if let Some(feed) = self.feeds.get_mut(usize::from(id.0)) {
            feed.taker_side = TakerSide::default();
        }
        self.void(id, emit);
    }

    fn trade(
        &self,
        surface: Surface,
        payload: &Trade<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), MarketError> {
        let Some((id, rules)) = self.of(surface, payload.symbol) else {
            return Ok(());
        };
        if payload.price.mantissa == 0 || payload.qty.mantissa == 0 {
            // Venues send zeros for an execution that was not a public trade.
            return Ok(());
        }
        let event = MarketEvent::Trade {
            price: price(rules, "p", payload.price)?,
            qty: qty(rules, "q", payload.qty)?,
            trade_id: payload.id,
            buyer_is_maker: payload.buyer_is_maker,
        };
        emit(id, event);
        Ok(())
    }

    fn top(
        &mut self,
        surface: Surface,
        payload: &BookTop<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), MarketError> {
        let Some((id, rules)) = self.of(surface, payload.symbol) else {
            return Ok(());
        };
        let event = MarketEvent::Top {
            update_id: payload.update_id,
            bid: Level {
                price: price(rules, "b", payload.bid_price)?,
                qty: qty(rules, "B", payload.bid_qty)?,
            },
            ask: Level {
                price: price(rules, "a", payload.ask_price)?,
                qty: qty(rules, "A", payload.ask_qty)?,
            },
        };
        let side = &mut self.feeds[usize::from(id.0)].taker_side;
        side.on_quotes(payload.bid_price, payload.ask_price);
        emit(id, event);
        Ok(())
    }

    fn mark(&self, payload: &MarkPrice<'_>, emit: &mut Emit<'_>) -> Result<(), MarketError> {
        let Some((id, rules)) = self.of(Surface::Futures, payload.symbol) else {
            return Ok(());
        };
        let number = |field, number: Option<Number>| match number {
            Some(number) => at(rules, field, number, MARK_SCALE),
            None => Ok(0),
        };
        let event = MarketEvent::Mark {
            mark: positive(rules, "p", payload.mark, MARK_SCALE)?,
            index: number("i", payload.index)?,
            funding_rate: number("r", payload.funding_rate)?,
            next_funding: match payload.next_funding_ms {
                0 => Time::NEVER,
                ms => Time::from_millis(ms),
            },
        };
        emit(id, event);
        Ok(())
    }

    fn difference(
        &mut self,
        id: InstrumentId,
        diff: &DepthDiff<'_>,
        levels: &BookLevels,
        emit: &mut Emit<'_>,
    ) -> Result<Missing, MarketError> {
        self.feeds[usize::from(id.0)].has_diffs = true;
        self.join(id, diff.ids, levels, emit)
    }

    /// Applies a difference that continues the book, and buffers one that does not yet.
    fn join(
        &mut self,
        id: InstrumentId,
        ids: DiffIds,
        levels: &BookLevels,
        emit: &mut Emit<'_>,
    ) -> Result<Missing, MarketError> {
        let feed = &mut self.feeds[usize::from(id.0)];
        match feed.joiner.on_diff(ids) {
            DiffStep::Apply => {
                self.book(id, ids.last, false, levels, emit)?;
                return Ok(Missing::Nothing);
            }
            DiffStep::Drop => return Ok(Missing::Nothing),
            DiffStep::Buffer => {}
            DiffStep::Gap => emit(id, MarketEvent::Gap),
        }
        feed.waiting.push(ids, levels.clone());
        Ok(Missing::Snapshot(id))
    }

    /// Emits the levels of a frame. If they cannot be converted, the book becomes invalid.
    fn book(
        &mut self,
        id: InstrumentId,
        update_id: i64,
        snapshot: bool,
        levels: &BookLevels,
        emit: &mut Emit<'_>,
    ) -> Result<(), MarketError> {
        let result = self.levels(id, (update_id, snapshot), levels, emit);
        if result.is_err() {
            self.void(id, emit);
        }
        result
    }

    /// Ends the book: until the next snapshot only its top is valid.
    fn void(&mut self, id: InstrumentId, emit: &mut Emit<'_>) {
        let rules = self.names.rules(id);
        let feed = self.feeds.get_mut(usize::from(id.0));
        if let (Some(rules), Some(feed)) = (rules, feed) {
            feed.joiner = Joiner::new(rules.surface);
            feed.waiting.take();
            emit(id, MarketEvent::Gap);
        }
    }

    fn levels(
        &mut self,
        id: InstrumentId,
        (update_id, snapshot): (i64, bool),
        levels: &BookLevels,
        emit: &mut Emit<'_>,
    ) -> Result<(), MarketError> {
        let Some(rules) = self.names.rules(id) else {
            return Ok(());
        };
        let (from_price, from_qty) = (levels.price_scale(), levels.qty_scale());
        let number = |mantissa, scale| Number { mantissa, scale };
        let sound = |level: &&Level| level.price > 0 && level.qty >= 0;
        if let Some(bad) = levels.all().iter().find(|level| !sound(level)) {
            let (field, value) = match bad.price {
                1.. => ("quantity of a level", number(bad.qty, from_qty)),
                _ => ("price of a level", number(bad.price, from_price)),
            };
            return Err(negative(rules, field, value));
        }
        let all = if (from_price, from_qty) == (rules.price_scale, rules.qty_scale) {
            levels.all()
        } else {
            self.scratch.clear();
            for level in levels.all() {
                let (at, of) = (number(level.price, from_price), number(level.qty, from_qty));
                self.scratch.push(Level {
                    price: price(rules, "price of a level", at)?,
                    qty: qty(rules, "quantity of a level", of)?,
                });
            }
            &self.scratch
        };
        let (bids, asks) = all.split_at(levels.bids().len());
        let event = MarketEvent::Depth {
            update_id,
            snapshot,
            bids,
            asks,
        };
        emit(id, event);
        Ok(())
    }

    fn of(&self, surface: Surface, symbol: &str) -> Option<(InstrumentId, &Instrument)> {
        let id = self.names.instrument(surface, symbol)?;
        Some((id, self.names.rules(id)?))
    }
}

fn price(rules: &Instrument, field: &'static str, number: Number) -> Result<i64, MarketError> {
    positive(rules, field, number, rules.price_scale)
}

fn qty(rules: &Instrument, field: &'static str, number: Number) -> Result<i64, MarketError> {
    positive(rules, field, number, rules.qty_scale)
}

fn positive(
    rules: &Instrument,
    field: &'static str,
    number: Number,
    scale: u8,
) -> Result<i64, MarketError> {
    if number.mantissa < 0 {
        return Err(negative(rules, field, number));
    }
    at(rules, field, number, scale)
}

fn at(
    rules: &Instrument,
    field: &'static str,
    number: Number,
    scale: u8,
) -> Result<i64, MarketError> {
    number.at(scale).map_err(|error| MarketError::Figure {
        instrument: rules.name(),
        field,
        error,
    })
}

fn negative(rules: &Instrument, field: &'static str, value: Number) -> MarketError {
    MarketError::Negative {
        instrument: rules.name(),
        field,
        value,
    }
}
