//! Decodes the text of a recording into a cache. Each line becomes events, and depth differences
//! are joined to snapshots. Memory use is one chunk and the depth frames that wait for a snapshot.

use std::path::Path;

use windvane_model::decimal::MARK_SCALE;
use windvane_model::{Level, MarketEvent, Surface, Time};
use windvane_protocol::{
    BookLevels, BookTop, Decoded, Frame, FrameError, MarkPrice, Number, NumberError, Trade,
    TradePro, decode as decode_frame,
};

use super::cache::{Key, Writer};
use super::chunking::{Chunking, local_id};
use super::listing::{Listing, TradeStream};
use super::reader::{Broken, Lines};
use super::survey::{Cut, Survey};
use super::tape_event::TapeEvent;
use super::{OnDamage, Options, Progress, RecordingError};

/// How many lines are searched for a frame that states its surface.
const PROBE_LINES: usize = 4096;
/// Lines between two calls of `progress`.
const PROGRESS_LINES: u64 = 8192;

/// Receive times from the year 2100 on are damage. Nanoseconds.
const RECEIVE_TIME_END: i64 = 4_102_444_800_000_000_000;
/// The longest gap between two lines, nanoseconds. A line with a later time is damaged. If it were
/// accepted, the receive times of all later lines would be raised to it.
const SILENCE_NS_MAX: i64 = 30 * 86_400 * 1_000_000_000;

/// Decodes a recording into the cache `home`.
pub(super) fn decode(
    path: &Path,
    key: &Key,
    home: &Path,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Survey, RecordingError> {
    let surface = match options.surface {
        Some(surface) => surface,
        None => probe(path)?.unwrap_or(Surface::Spot),
    };
    let mut lines = Lines::open(path)?;
    let mut decoding = Decoding {
        surface,
        survey: Survey::default(),
        listing: Listing::default(),
        chunking: Chunking::new(Writer::create(home)?),
        last_recv: i64::MIN,
        early: None,
    };
    let mut levels = BookLevels::default();
    while let Some((number, line)) = lines.next().map_err(RecordingError::io(path))? {
        let too_long = line.is_err();
        let outcome = match line {
            Ok(line) => decoding.line(number, line, &mut levels),
            Err(error) => Err(Refused::Line(error.to_string())),
        };
        match outcome {
            Ok(()) => {}
            Err(Refused::Cache(error)) => return Err(error),
            // The rest of a line at the point where the text breaks off is not counted as damage.
            Err(Refused::Line(reason)) if lines.at_broken_end() && !too_long => {
                decoding.survey.cut = Some(Cut {
                    after_line: number - 1,
                    corrupt: false,
                    reason,
                });
            }
            Err(Refused::Line(reason)) if options.on_damage == OnDamage::Fail => {
                return Err(RecordingError::Damaged {
                    path: path.to_owned(),
                    line: number,
                    reason,
                });
            }
            Err(Refused::Line(reason)) => decoding.survey.damaged.add(number, || reason),
        }
        if number % PROGRESS_LINES == 0 {
            let (read, total) = lines.progress();
            progress(read, total);
        }
    }
    let (_, total) = lines.progress();
    progress(total, total);
    decoding.finish(&lines, key)
}

/// The surface of the first frame that states it.
fn probe(path: &Path) -> Result<Option<Surface>, RecordingError> {
    let mut lines = Lines::open(path)?;
    let mut levels = BookLevels::default();
    for _ in 0..PROBE_LINES {
        let Some((_, line)) = lines.next().map_err(RecordingError::io(path))? else {
            break;
        };
        let frame = line.ok().and_then(|line| Some(split(line).ok()?.1));
        let surface = frame.and_then(|frame| decode_frame(frame, &mut levels).ok()?.surface);
        if surface.is_some() {
            return Ok(surface);
        }
    }
    Ok(None)
}

/// Splits a line into receive time and frame.
fn split(line: &[u8]) -> Result<(i64, &[u8]), String> {
    let space = memchr::memchr(b' ', line).unwrap_or(0);
    let digits = &line[..space];
    // 18 digits of nanoseconds reach the year 2001, 19 digits the year 2262.
    if digits.is_empty() || digits.len() > 19 || !digits.iter().all(u8::is_ascii_digit) {
        return Err("does not start with a receive time in nanoseconds and a space".to_owned());
    }
    let recv = digits
        .iter()
        .try_fold(0_i64, |sum, digit| {
            sum.checked_mul(10)?.checked_add(i64::from(digit - b'0'))
        })
        .filter(|recv| *recv < RECEIVE_TIME_END)
        .ok_or("its receive time is after the year 2099")?;
    Ok((recv, &line[space + 1..]))
}

/// Why a line added no event.
pub(super) enum Refused {
    Line(String),
    Cache(RecordingError),
}

impl From<FrameError> for Refused {
    fn from(error: FrameError) -> Self {
        Self::Line(error.to_string())
    }
}

impl From<NumberError> for Refused {
    fn from(error: NumberError) -> Self {
        Self::Line(error.to_string())
    }
}

impl From<RecordingError> for Refused {
    fn from(error: RecordingError) -> Self {
        Self::Cache(error)
    }
}

/// A depth snapshot without its symbol.
#[derive(Clone, Debug)]
pub(super) struct OwnedSnapshot {
    pub(super) last_update_id: i64,
    pub(super) levels: BookLevels,
}

/// A recording that is being decoded. Module `depth` contains the methods for depth frames.
pub(super) struct Decoding {
    /// The surface of frames that do not state theirs.
    pub(super) surface: Surface,
    pub(super) survey: Survey,
    pub(super) listing: Listing,
    pub(super) chunking: Chunking,
    last_recv: i64,
    /// A depth snapshot that arrived before any frame that could identify its instrument.
    pub(super) early: Option<(At, OwnedSnapshot)>,
}

/// Line number and receive time of a frame.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) line: u64,
    pub(super) recv: i64,
}

impl Decoding {
    fn line(&mut self, number: u64, line: &[u8], levels: &mut BookLevels) -> Result<(), Refused> {
        if line.is_empty() {
            return Ok(());
        }
        let (stamp, frame) = split(line).map_err(Refused::Line)?;
        let Decoded { surface, frame, .. } = decode_frame(frame, levels)?;
        if self.last_recv != i64::MIN && stamp - self.last_recv > SILENCE_NS_MAX {
            let days = (stamp - self.last_recv) / 86_400_000_000_000;
            let reason = format!("its receive time is {days} days after the line in front");
            return Err(Refused::Line(reason));
        }
        check_numbers(&frame, levels).map_err(Refused::Line)?;
        if stamp < self.last_recv {
            let by = self.last_recv - stamp;
            let fault = || format!("{by} ns before the line in front");
            self.survey.backwards.add(number, fault);
        }
        self.last_recv = stamp.max(self.last_recv);
        let at = At {
            line: number,
            recv: self.last_recv,
        };
        let known = surface.unwrap_or(self.surface);
        match frame {
            Frame::Trade(trade) if trade.aggregate => {
                self.trade(at, known, &trade, TradeStream::Aggregate)
            }
            Frame::Trade(trade) => self.trade(at, known, &trade, TradeStream::Trade),
            Frame::TradePro(trade) => self.trade_pro(at, known, &trade),
            Frame::Top(top) => self.top(at, known, &top),
            Frame::Depth(diff) => self.depth(at, known, &diff, levels),
            Frame::Snapshot(snapshot) => self.snapshot(at, surface, &snapshot, levels),
            Frame::Marks(marks) => marks.iter().try_for_each(|mark| self.mark(at, mark)),
            Frame::ExchangeInfo(text) => {
                let listed = self.listing.exchange_info(text);
                listed.map_err(|error| Refused::Line(error.to_string()))
            }
            Frame::Other => {
                self.survey.ignored += 1;
                Ok(())
            }
        }
    }

    /// A trade without its aggressor's side. The side is estimated from earlier events.
    fn trade_pro(&mut self, at: At, surface: Surface, trade: &TradePro<'_>) -> Result<(), Refused> {
        let index = self.listing.index(surface, trade.symbol);
        let buyer_is_maker = self.listing.at(index).taker_side.on_trade(trade.price);
        let trade = trade.with_side(buyer_is_maker);
        self.trade(at, surface, &trade, TradeStream::TradePro)
    }

    fn trade(
        &mut self,
        at: At,
        surface: Surface,
        trade: &Trade<'_>,
        stream: TradeStream,
    ) -> Result<(), Refused> {
        if trade.price.mantissa == 0 || trade.qty.mantissa == 0 {
            // Venues send such frames for executions outside the market.
            self.survey.ignored += 1;
            return Ok(());
        }
        let index = self.listing.index(surface, trade.symbol);
        let time = event_time(trade.trade_ms, trade.event_ms);
        self.chunking
            .fit(index, trade.price.scale, trade.qty.scale)?;
        let listed = self.listing.at(index);
        if *listed.trade_stream.get_or_insert(stream) != stream {
            listed.survey.trades_doubled += 1;
            return Ok(());
        }
        let price = self.chunking.price(index, trade.price)?;
        let qty = self.chunking.qty(index, trade.qty)?;
        listed.survey.trades += 1;
        listed.delay(at.recv, time);
        listed.last_price = Some(trade.price);
        let event = MarketEvent::Trade {
            price,
            qty,
            trade_id: trade.id,
            buyer_is_maker: trade.buyer_is_maker,
        };
        self.emit(at, time, index, &event, 0)
    }

    fn top(&mut self, at: At, surface: Surface, top: &BookTop<'_>) -> Result<(), Refused> {
        let index = self.listing.index(surface, top.symbol);
        let time = event_time(top.transaction_ms, top.event_ms);
        let price_scale = top.bid_price.scale.max(top.ask_price.scale);
        let qty_scale = top.bid_qty.scale.max(top.ask_qty.scale);
        self.chunking.fit(index, price_scale, qty_scale)?;
        let event = MarketEvent::Top {
            update_id: top.update_id,
            bid: Level {
                price: self.chunking.price(index, top.bid_price)?,
                qty: self.chunking.qty(index, top.bid_qty)?,
            },
            ask: Level {
                price: self.chunking.price(index, top.ask_price)?,
                qty: self.chunking.qty(index, top.ask_qty)?,
            },
        };
        let listed = self.listing.at(index);
        listed.survey.tops += 1;
        listed.delay(at.recv, time);
        listed.last_price = Some(top.bid_price);
        listed.taker_side.on_quotes(top.bid_price, top.ask_price);
        self.emit(at, time, index, &event, 0)
    }

    fn mark(&mut self, at: At, mark: &MarkPrice<'_>) -> Result<(), Refused> {
        let index = self.listing.index(Surface::Futures, mark.symbol);
        // Marks do not use the chunk's scales, but the scales must exist.
        self.chunking.fit(index, 0, 0)?;
        let time = event_time(0, mark.event_ms);
        let or_zero = |number: Option<Number>| number.map_or(Ok(0), |number| number.at(MARK_SCALE));
        let event = MarketEvent::Mark {
            mark: mark.mark.at(MARK_SCALE)?,
            index: or_zero(mark.index)?,
            funding_rate: or_zero(mark.funding_rate)?,
            next_funding: match mark.next_funding_ms {
                0 => Time::NEVER,
                ms => Time::from_millis(ms),
            },
        };
        let listed = self.listing.at(index);
        listed.survey.marks += 1;
        listed.delay(at.recv, time);
        self.emit(at, time, index, &event, 0)
    }

    /// Adds an event. Its levels, if any, are in the chunk already and begin at `first_level`.
    #[inline]
    pub(super) fn emit(
        &mut self,
        at: At,
        event_time: i64,
        index: usize,
        event: &MarketEvent<'_>,
        first_level: usize,
    ) -> Result<(), Refused> {
        let (kind, flag, words) = TapeEvent::payload(event, first_level);
        if self.survey.first_recv_ns == 0 {
            self.survey.first_recv_ns = at.recv;
        }
        self.survey.last_recv_ns = at.recv;
        let event = TapeEvent {
            recv: Time(at.recv),
            event_time: Time(event_time),
            instrument: local_id(index),
            kind,
            flag,
            line: 0,
            words,
        };
        Ok(self.chunking.push(at.line, event)?)
    }

    fn finish(mut self, lines: &Lines, key: &Key) -> Result<Survey, RecordingError> {
        if let Some((at, ..)) = self.early.take() {
            self.survey
                .unassigned
                .add(at.line, || "no depth stream to join".to_owned());
        }
        if let Some(broken) = lines.broken() {
            let (corrupt, reason) = match broken {
                Broken::Cut(reason) => (false, reason),
                Broken::Corrupt(reason) => (true, reason),
            };
            // If the last line was incomplete, it is already excluded.
            let whole = self.survey.cut.map_or(lines.count(), |cut| cut.after_line);
            self.survey.cut = Some(Cut {
                after_line: whole,
                corrupt,
                reason: reason.clone(),
            });
        }
        let finished = self.chunking.finish()?;
        self.survey.lines = lines.count();
        self.survey.events = finished.events;
        self.survey.instruments = self.listing.into_surveys();
        for (survey, (price, qty)) in self.survey.instruments.iter_mut().zip(finished.steps) {
            (survey.price_step, survey.qty_step) = (price, qty);
        }
        finished.writer.finish(key, &self.survey)?;
        Ok(self.survey)
    }
}

/// Refuses negative prices and quantities, and depth levels without a price.
fn check_numbers(frame: &Frame<'_>, levels: &BookLevels) -> Result<(), String> {
    let check = |what: &str, number: Number| {
        if number.mantissa >= 0 {
            return Ok(());
        }
        let value = windvane_model::decimal::decimal(number.mantissa.into(), number.scale);
        Err(format!("its {what} {value} is below 0"))
    };
    match frame {
        Frame::Trade(trade) => {
            check("price", trade.price)?;
            check("quantity", trade.qty)
        }
        Frame::TradePro(trade) => {
            check("price", trade.price)?;
            check("quantity", trade.qty)
        }
        Frame::Top(top) => {
            check("price", top.bid_price)?;
            check("price", top.ask_price)?;
            check("quantity", top.bid_qty)?;
            check("quantity", top.ask_qty)
        }
        Frame::Depth(_) | Frame::Snapshot(_) => {
            let sound = |level: &windvane_model::Level| level.price > 0 && level.qty >= 0;
            match levels.all().iter().find(|level| !sound(level)) {
                Some(_) => Err("a level has a price not over 0 or a quantity below 0".to_owned()),
                None => Ok(()),
            }
        }
        Frame::Marks(marks) => marks
            .iter()
            .try_for_each(|mark| check("mark price", mark.mark)),
        Frame::ExchangeInfo(_) | Frame::Other => Ok(()),
    }
}

/// The transaction time, or the event time if it is missing, in nanoseconds. 0 if both are missing.
pub(super) fn event_time(transaction_ms: i64, event_ms: i64) -> i64 {
    let ms = if transaction_ms != 0 {
        transaction_ms
    } else {
        event_ms
    };
    Time::from_millis(ms).0
}
