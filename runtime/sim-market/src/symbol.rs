//! One symbol of the board: rules, book, trades, klines, mark and funding. It converts actions of
//! the source and the accounts into updates with ids of its own, so that the ids of a looped
//! recording never go back.

use windvane_model::decimal::{MARK_SCALE, pow10};
use windvane_model::{Instrument, InstrumentId, Level, MarketEvent, Side, Surface, Time};

use super::book::Book;
use super::fixed::Fixed;
use super::funding::Funded;
use super::kline::{KlineTable, Point};
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
    pub(super) marks: Marks,
    pub(super) klines_changed: bool,
    /// The last printed price, and whether its buyer was the maker, if the accounts have not
    /// received it.
    pub(super) undelivered_trade: Option<(i64, bool)>,
    /// The last published top.
    pub(super) published: (Level, Level),
}

/// The source of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
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
    pub(super) fn mid(&self) -> Option<i64> {
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

    /// The mark as a market event.
    pub(super) fn mark_event(&self) -> Option<MarketEvent<'static>> {
        let funded = self.funded.as_ref()?;
        Some(MarketEvent::Mark {
            mark: funded.mark,
            index: funded.index,
            funding_rate: funded.rate,
            next_funding: Time::from_millis(funded.next_ms),
        })
    }
}
