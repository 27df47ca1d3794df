//! One symbol of the board: rules, book, trades, klines, mark and funding. It turns what a source
//! says into updates with ids of its own, so that a looped recording's ids never go back.

use windvane_engine::decimal::{MARK_SCALE, pow10};
use windvane_engine::{Instrument, InstrumentId, Level, MarketEvent, Side, Surface, Time};

use super::book::{Book, Speed};
use super::fixed::Fixed;
use super::funding::Funded;
use super::kline::{KlineTable, Point};
use super::sink::{REFRESH_MS, Sink, Update, is_due};
use super::trades::Trades;

/// Everything public of one symbol.
#[derive(Debug)]
pub(crate) struct Symbol {
    pub(crate) id: InstrumentId,
    pub(crate) instrument: Instrument,
    pub(crate) book: Book,
    pub(crate) trades: Trades,
    /// From trades.
    pub(crate) klines: KlineTable,
    /// Futures only: from mark and index prices, at scale 8.
    pub(crate) mark_klines: KlineTable,
    pub(crate) index_klines: KlineTable,
    /// Futures only.
    pub(crate) funded: Option<Funded>,
    /// When the book last changed, ms.
    pub(crate) book_ms: i64,
    /// A source states marks, so they are not computed.
    marks_are_stated: bool,
    klines_changed: bool,
    /// Reused between events.
    levels: [Vec<Level>; 2],
}

/// Where ids begin: large, as those of services that have run for years.
const FIRST_UPDATE_ID: i64 = 5_000_000_000;
const FIRST_TRADE_ID: i64 = 10_000_000;
const FIRST_AGGREGATE_ID: i64 = 4_000_000;

impl Symbol {
    pub(crate) fn new(id: InstrumentId, instrument: Instrument) -> Self {
        Self {
            id,
            book: Book::new(instrument.surface, FIRST_UPDATE_ID),
            trades: Trades::new(FIRST_TRADE_ID, FIRST_AGGREGATE_ID),
            klines: KlineTable::default(),
            mark_klines: KlineTable::default(),
            index_klines: KlineTable::default(),
            funded: None,
            book_ms: 0,
            marks_are_stated: false,
            klines_changed: false,
            levels: [Vec::new(), Vec::new()],
            instrument,
        }
    }

    pub(crate) fn is_futures(&self) -> bool {
        self.instrument.surface == Surface::Futures
    }

    /// The last trade's price; the mid before the first trade.
    pub(crate) fn last_price(&self) -> i64 {
        let last = self.trades.singles().back().map(|trade| trade.price);
        last.unwrap_or_else(|| self.mid().unwrap_or(0))
    }

    fn mid(&self) -> Option<i64> {
        let (bid, ask) = self.book.top();
        (bid.qty > 0 && ask.qty > 0).then_some(i64::midpoint(bid.price, ask.price))
    }

    /// A price mantissa at the scale of marks.
    pub(crate) fn at_mark_scale(&self, price: i64) -> i64 {
        let scale = self.instrument.price_scale;
        if scale <= MARK_SCALE {
            price.saturating_mul(pow10(MARK_SCALE - scale))
        } else {
            price / pow10(scale - MARK_SCALE)
        }
    }

    /// A price as the wire shows it: with all decimals that `pricePrecision` promises.
    pub(crate) fn price(&self, mantissa: i64) -> Fixed {
        let scale = self.instrument.price_scale;
        let shown = self.instrument.price_precision.unwrap_or(scale).max(scale);
        Fixed(i128::from(mantissa), scale).at(shown)
    }

    /// A quantity, or a sum of quantities.
    pub(crate) fn qty(&self, mantissa: i128) -> Fixed {
        Fixed(mantissa, self.instrument.qty_scale)
    }

    /// Price times quantity, at most 8 decimals.
    pub(crate) fn quote(&self, mantissa: i128) -> Fixed {
        let scale = self.instrument.price_scale + self.instrument.qty_scale;
        Fixed(mantissa, scale).at(scale.min(8))
    }

    /// Takes an event of the source.
    pub(crate) fn take(&mut self, now: Time, event: &MarketEvent<'_>, sink: &mut impl Sink) {
        match *event {
            MarketEvent::Trade {
                price,
                qty,
                buyer_is_maker,
                ..
            } => self.trade(now, price, qty, buyer_is_maker, sink),
            MarketEvent::Top {
                update_id,
                bid,
                ask,
            } => self.change_book(now, sink, |book| book.set_top(update_id, bid, ask)),
            MarketEvent::Depth {
                update_id,
                snapshot,
                bids,
                asks,
            } => self.change_book(now, sink, |book| {
                if snapshot {
                    book.replace(bids, asks);
                } else {
                    book.apply(update_id, bids, asks);
                }
            }),
            // What the source lost may stand in the book: its top is all that is sure.
            MarketEvent::Gap => self.change_book(now, sink, |book| {
                let (bid, ask) = book.top();
                book.replace(&[bid], &[ask]);
            }),
            MarketEvent::Mark {
                mark,
                index,
                funding_rate,
                ..
            } => {
                if self.is_futures() && mark > 0 {
                    self.marks_are_stated = true;
                    let funded = self
                        .funded
                        .get_or_insert_with(|| Funded::new(now.millis(), mark));
                    funded.state(now.millis(), mark, index, funding_rate);
                    self.marked(now, sink);
                }
            }
        }
    }

    fn trade(
        &mut self,
        now: Time,
        price: i64,
        qty: i64,
        buyer_is_maker: bool,
        sink: &mut impl Sink,
    ) {
        if price <= 0 || qty <= 0 {
            return;
        }
        let now_ms = now.millis();
        self.roll(now, sink);
        let (trade, complete) = self.trades.add(now_ms, price, qty, buyer_is_maker);
        self.klines.take(&Point {
            time_ms: now_ms,
            price,
            qty,
            id: trade.id,
            taker_buys: !buyer_is_maker,
        });
        self.klines_changed = true;
        if let Some(aggregate) = complete {
            sink.update(now, self, &Update::AggTrade(aggregate));
        }
        sink.update(now, self, &Update::Trade(trade));
        let event = MarketEvent::Trade {
            price,
            qty,
            trade_id: trade.id,
            buyer_is_maker,
        };
        sink.feed(now, self.id, &event);
    }

    /// Adds a trade of the time before the start; nobody hears of it.
    pub(crate) fn remember(&mut self, time_ms: i64, price: i64, qty: i64, buyer_is_maker: bool) {
        let (trade, _) = self.trades.add(time_ms, price, qty, buyer_is_maker);
        let mut point = Point {
            time_ms,
            price,
            qty,
            id: trade.id,
            taker_buys: !buyer_is_maker,
        };
        self.klines.take(&point);
        if self.is_futures() {
            point.price = self.at_mark_scale(price);
            (point.qty, point.id) = (0, -1);
            self.mark_klines.take(&point);
            self.index_klines.take(&point);
        }
    }

    /// Opens the bars of this time; nobody hears of those that close.
    pub(crate) fn open_bars(&mut self, now_ms: i64) {
        for table in [
            &mut self.klines,
            &mut self.mark_klines,
            &mut self.index_klines,
        ] {
            table.roll(now_ms, |_, _| {});
        }
    }

    fn change_book(&mut self, now: Time, sink: &mut impl Sink, change: impl FnOnce(&mut Book)) {
        let (top, before) = (self.book.top(), self.book.update_id());
        change(&mut self.book);
        if self.book.update_id() == before {
            return;
        }
        self.book_ms = now.millis();
        // The accounts' venues hear what changed in the book, not what the source said.
        let mut levels = std::mem::take(&mut self.levels);
        self.book.take_changes(&mut levels);
        let event = MarketEvent::Depth {
            update_id: self.book.update_id(),
            snapshot: false,
            bids: &levels[0],
            asks: &levels[1],
        };
        sink.feed(now, self.id, &event);
        self.levels = levels;
        let (bid, ask) = self.book.top();
        if (bid, ask) != top {
            let update_id = self.book.update_id();
            let update = Update::Top {
                update_id,
                bid,
                ask,
            };
            sink.update(now, self, &update);
        }
    }

    /// The whole book, and the mark, for the venue of an account.
    pub(crate) fn show(&self, mut feed: impl FnMut(&MarketEvent<'_>)) {
        let bids: Vec<_> = self.book.levels(Side::Buy).collect();
        let asks: Vec<_> = self.book.levels(Side::Sell).collect();
        feed(&MarketEvent::Depth {
            update_id: self.book.update_id(),
            snapshot: true,
            bids: &bids,
            asks: &asks,
        });
        if let Some(event) = self.mark_event() {
            feed(&event);
        }
    }

    /// Lets a multiple of the grid pass.
    pub(crate) fn pass(&mut self, now: Time, sink: &mut impl Sink) {
        let now_ms = now.millis();
        if let Some(aggregate) = self.trades.complete_before(now_ms) {
            sink.update(now, self, &Update::AggTrade(aggregate));
        }
        self.roll(now, sink);
        for speed in Speed::of(self.instrument.surface) {
            if is_due(*speed, now_ms)
                && let Some(difference) = self.book.difference(*speed)
            {
                sink.update(now, self, &Update::Depth(difference));
            }
        }
        if now_ms % 1000 == 0 {
            self.follow(now, sink);
        }
        if now_ms % REFRESH_MS == 0 && std::mem::take(&mut self.klines_changed) {
            sink.refresh(now, self);
        }
    }

    /// Funding, and the mark out of the mid where no source states it.
    fn follow(&mut self, now: Time, sink: &mut impl Sink) {
        if !self.is_futures() {
            return;
        }
        let now_ms = now.millis();
        let mid = self.mid().map(|mid| self.at_mark_scale(mid));
        let Some(funded) = &mut self.funded else {
            self.funded = mid.map(|mid| Funded::new(now_ms, mid));
            return self.marked(now, sink);
        };
        let paid = funded.pay(now_ms);
        match mid {
            Some(mid) if !self.marks_are_stated => {
                funded.follow(now_ms, mid);
                self.marked(now, sink);
            }
            // The next funding time is news to the accounts.
            _ if paid => self.marked(now, sink),
            _ => {}
        }
    }

    fn mark_event(&self) -> Option<MarketEvent<'static>> {
        let funded = self.funded.as_ref()?;
        Some(MarketEvent::Mark {
            mark: funded.mark,
            index: funded.index,
            funding_rate: funded.rate,
            next_funding: Time::from_millis(funded.next_ms),
        })
    }

    fn marked(&mut self, now: Time, sink: &mut impl Sink) {
        let (Some(event), Some(funded)) = (self.mark_event(), &self.funded) else {
            return;
        };
        let mut point = Point {
            time_ms: now.millis(),
            price: funded.mark,
            qty: 0,
            id: -1,
            taker_buys: false,
        };
        self.mark_klines.take(&point);
        point.price = funded.index;
        self.index_klines.take(&point);
        sink.feed(now, self.id, &event);
    }

    fn roll(&mut self, now: Time, sink: &mut impl Sink) {
        let now_ms = now.millis();
        let mut closed = Vec::new();
        self.klines
            .roll(now_ms, |interval, bar| closed.push((interval, bar)));
        self.mark_klines.roll(now_ms, |_, _| {});
        self.index_klines.roll(now_ms, |_, _| {});
        for (interval, bar) in closed {
            self.klines_changed = true;
            sink.update(now, self, &Update::Closed(interval, bar));
        }
    }
}
