//! One symbol of the board: rules, book, trades, klines, mark and funding. It converts actions of
//! the source and the accounts into updates with ids of its own, so that the ids of a looped
//! recording never go back.

use windvane_model::decimal::{MARK_SCALE, pow10};
use windvane_model::{Instrument, InstrumentId, Level, MarketEvent, Side, Surface, Time};

use super::book::{Book, Speed};
use super::fixed::Fixed;
use super::funding::{Funded, INTEREST};
use super::kline::{KlineTable, Point};
use super::sink::{REFRESH_MS, Sink, Update, is_due};
use super::trades::Trades;

/// All public data of one symbol.
#[derive(Debug)]
pub struct Symbol {
    /// Its place on the board.
    pub id: InstrumentId,
    /// Its rules.
    pub instrument: Instrument,
    /// The public book, with the orders of all accounts.
    pub book: Book,
    /// Recent trades and aggregate trades.
    pub trades: Trades,
    /// Built from trades.
    pub klines: KlineTable,
    /// Futures only: built from mark and index prices, at scale 8.
    pub mark_klines: KlineTable,
    /// Futures only: from index prices, at scale 8.
    pub index_klines: KlineTable,
    /// Futures only.
    pub funded: Option<Funded>,
    /// When the book last changed, ms.
    pub book_ms: i64,
    marks: Marks,
    klines_changed: bool,
    /// The last printed price, and whether its buyer was the maker, if the accounts have not
    /// received it.
    undelivered_trade: Option<(i64, bool)>,
    /// The last published top.
    published: (Level, Level),
}

/// The source of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marks {
    /// Marks follow the mid of the server's own market.
    Followed,
    /// The mark is the mid, because the recording has not stated any mark.
    Mid,
    /// The source states the marks.
    Stated,
}

/// The first ids. They are large, like those of services that have run for years.
const FIRST_UPDATE_ID: i64 = 5_000_000_000;
const FIRST_TRADE_ID: i64 = 10_000_000;
const FIRST_AGGREGATE_ID: i64 = 4_000_000;

impl Symbol {
    /// A symbol with an empty book and no trades.
    pub fn new(id: InstrumentId, instrument: Instrument) -> Self {
        Self {
            id,
            book: Book::new(instrument.surface, FIRST_UPDATE_ID),
            trades: Trades::new(FIRST_TRADE_ID, FIRST_AGGREGATE_ID),
            klines: KlineTable::default(),
            mark_klines: KlineTable::default(),
            index_klines: KlineTable::default(),
            funded: None,
            book_ms: 0,
            marks: Marks::Followed,
            klines_changed: false,
            undelivered_trade: None,
            published: Default::default(),
            instrument,
        }
    }

    /// Whether it is a perpetual future.
    pub fn is_futures(&self) -> bool {
        self.instrument.surface == Surface::Futures
    }

    /// The last trade's price; the mid before the first trade.
    pub fn last_price(&self) -> i64 {
        let last = self.trades.singles().back().map(|trade| trade.price);
        last.unwrap_or_else(|| self.mid().unwrap_or(0))
    }

    /// The mid of the source's book alone, so that no account can move a mark by an order.
    fn mid(&self) -> Option<i64> {
        let (bid, ask) = self.book.source_top();
        (bid.qty > 0 && ask.qty > 0).then_some(i64::midpoint(bid.price, ask.price))
    }

    /// Converts a price mantissa to the scale of marks.
    pub fn at_mark_scale(&self, price: i64) -> i64 {
        let scale = self.instrument.price_scale;
        if scale <= MARK_SCALE {
            price.saturating_mul(pow10(MARK_SCALE - scale))
        } else {
            price / pow10(scale - MARK_SCALE)
        }
    }

    /// A price for the wire, with all decimals that `pricePrecision` promises.
    pub fn price(&self, mantissa: i64) -> Fixed {
        let scale = self.instrument.price_scale;
        let shown = self.instrument.price_precision.unwrap_or(scale).max(scale);
        Fixed(i128::from(mantissa), scale).at(shown)
    }

    /// A quantity, or a sum of quantities.
    pub fn qty(&self, mantissa: i128) -> Fixed {
        Fixed(mantissa, self.instrument.qty_scale)
    }

    /// Price times quantity, at most 8 decimals.
    pub fn quote(&self, mantissa: i128) -> Fixed {
        let scale = self.instrument.price_scale + self.instrument.qty_scale;
        Fixed(mantissa, scale).at(scale.min(8))
    }

    /// Applies an event of the source to its book.
    pub fn change_book(&mut self, event: &MarketEvent<'_>) {
        let book = &mut self.book;
        match *event {
            MarketEvent::Top {
                update_id,
                bid,
                ask,
            } => book.set_top(update_id, bid, ask),
            MarketEvent::Depth {
                snapshot: true,
                bids,
                asks,
                ..
            } => book.replace(bids, asks),
            MarketEvent::Depth {
                update_id,
                bids,
                asks,
                ..
            } => book.apply(update_id, bids, asks),
            // After a gap the book may have stale levels. Only its top is certain.
            MarketEvent::Gap => {
                let (bid, ask) = book.source_top();
                book.replace(&[bid], &[ask]);
            }
            MarketEvent::Trade { .. } | MarketEvent::Mark { .. } => {}
        }
    }

    /// Makes the mid the mark until the source states one.
    pub fn mark_by_mid(&mut self) {
        self.marks = Marks::Mid;
    }

    /// Sets the mark to the mid, if that is the rule. Returns whether it changed.
    pub fn take_mid(&mut self, now: Time, sink: &mut impl Sink) -> bool {
        let (bid, ask) = self.book.source_top();
        let applies = self.is_futures() && self.marks == Marks::Mid;
        if !applies || bid.qty == 0 || ask.qty == 0 {
            return false;
        }
        let [bid, ask] = [bid, ask].map(|level| self.at_mark_scale(level.price));
        let mid = i64::midpoint(bid, ask);
        if self.funded.as_ref().is_some_and(|f| f.mark == mid) {
            return false;
        }
        let now_ms = now.millis();
        let funded = self.funded.get_or_insert_with(|| Funded::new(now_ms, mid));
        funded.state(now_ms, mid, mid, INTEREST);
        self.marked(now, sink);
        true
    }

    /// Applies a mark that the source states.
    pub fn state_mark(
        &mut self,
        now: Time,
        (mark, index): (i64, i64),
        funding_rate: i64,
        sink: &mut impl Sink,
    ) {
        if self.is_futures() && mark > 0 {
            self.marks = Marks::Stated;
            let funded = self
                .funded
                .get_or_insert_with(|| Funded::new(now.millis(), mark));
            funded.state(now.millis(), mark, index, funding_rate);
            self.marked(now, sink);
        }
    }

    /// Publishes a trade and returns its id.
    pub fn print(
        &mut self,
        now: Time,
        (price, qty): (i64, i64),
        buyer_is_maker: bool,
        sink: &mut impl Sink,
    ) -> i64 {
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
        self.undelivered_trade = Some((price, buyer_is_maker));
        if let Some(aggregate) = complete {
            sink.update(now, self, &Update::AggTrade(aggregate));
        }
        sink.update(now, self, &Update::Trade(trade));
        trade.id
    }

    /// Notes that the accounts have received a trade at this price.
    pub fn forget_last_trade(&mut self, price: i64) {
        self.undelivered_trade = self.undelivered_trade.filter(|(last, _)| *last != price);
    }

    /// The last price, if the accounts have not received it, and whether the buyer was the maker.
    pub fn take_undelivered_trade(&mut self) -> Option<(i64, bool)> {
        self.undelivered_trade.take()
    }

    /// Adds a trade from before the start, without publishing it.
    pub fn remember(&mut self, time_ms: i64, price: i64, qty: i64, buyer_is_maker: bool) {
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

    /// Opens the bars of this time, without publishing those that close.
    pub fn open_bars(&mut self, now_ms: i64) {
        for table in [
            &mut self.klines,
            &mut self.mark_klines,
            &mut self.index_klines,
        ] {
            table.roll(now_ms, |_, _| {});
        }
    }

    /// Takes the prices at which the quantities for accounts may have changed. False if nothing
    /// changed.
    pub fn take_changes(&mut self, now: Time, prices: &mut [Vec<i64>; 2]) -> bool {
        let changed = self.book.take_changes(prices);
        if changed {
            self.book_ms = now.millis();
        }
        changed
    }

    /// Publishes the best bid and ask, if they changed.
    pub fn publish_top(&mut self, now: Time, sink: &mut impl Sink) {
        let (bid, ask) = self.book.top();
        if (bid, ask) != self.published {
            self.published = (bid, ask);
            let update_id = self.book.update_id();
            let update = Update::Top {
                update_id,
                bid,
                ask,
            };
            sink.update(now, self, &update);
        }
    }

    /// Sends the whole book and the mark to the venue of an account.
    pub fn show(&self, mut feed: impl FnMut(&MarketEvent<'_>)) {
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

    /// Handles one multiple of the grid.
    pub fn pass(&mut self, now: Time, sink: &mut impl Sink) {
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

    /// Pays funding, and updates a mark that follows the mid.
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
            Some(mid) if self.marks == Marks::Followed => {
                funded.follow(now_ms, mid);
                self.marked(now, sink);
            }
            // Accounts need the next funding time.
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
        for account in 0..sink.accounts() {
            sink.feed(now, account, self.id, &event);
        }
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
