//! Public market data: books, bars and mark prices, and which strategies receive them.

use windvane_model::config::Streams;
use windvane_model::effect::Effect;
use windvane_model::encode;
use windvane_model::event::{Event, EventKind};
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::market::MarketEvent;
use windvane_model::market_state::Mark;
use windvane_model::timer::Timer;

use super::Engine;

impl Engine {
    #[inline]
    pub(super) fn handle_market(&mut self, instrument: InstrumentId, event: &MarketEvent<'_>) {
        self.note_market(instrument, matches!(event, MarketEvent::Mark { .. }));
        match *event {
            MarketEvent::Trade {
                price,
                qty,
                trade_id,
                buyer_is_maker,
            } => {
                let market = &mut self.markets[usize::from(instrument.0)];
                market.last = Some(price);
                let starting = market.count_trade(price, qty);
                self.start_bars(instrument, starting);
                let fields = [price, qty, 0, 0, 0, 0];
                let flags = u32::from(buyer_is_maker);
                let event = self.event(EventKind::Trade, instrument, flags, fields, trade_id);
                self.deliver_market(event, |streams| streams.trades);
            }
            MarketEvent::Top {
                update_id,
                bid,
                ask,
            } => {
                let market = &mut self.markets[usize::from(instrument.0)];
                if !market.book.apply_top(update_id, bid, ask) {
                    return;
                }
                self.watch_losses(instrument);
                let fields = [bid.price, bid.qty, ask.price, ask.qty, 0, 0];
                let event = self.event(EventKind::BookTop, instrument, 0, fields, update_id);
                self.deliver_standing(event, |streams| streams.book);
            }
            MarketEvent::Depth {
                update_id,
                snapshot,
                bids,
                asks,
            } => {
                let book = &mut self.markets[usize::from(instrument.0)].book;
                book.apply_depth(update_id, snapshot, bids, asks);
                self.watch_losses(instrument);
                self.deliver_book_change(instrument, u32::from(snapshot), update_id);
            }
            MarketEvent::Gap => {
                self.markets[usize::from(instrument.0)].book.apply_gap();
                self.deliver_book_change(instrument, 2, 0);
            }
            MarketEvent::Mark {
                mark,
                index,
                funding_rate,
                next_funding,
            } => {
                let mark = Mark {
                    mark,
                    index,
                    funding_rate,
                    next_funding,
                };
                self.markets[usize::from(instrument.0)].recorded_mark = Some(mark);
                self.note_mark(instrument);
                self.watch_losses(instrument);
                self.deliver_mark(instrument, mark);
            }
        }
    }

    fn deliver_book_change(&mut self, instrument: InstrumentId, flags: u32, update_id: i64) {
        let book = &self.markets[usize::from(instrument.0)].book;
        let (bid, ask) = (book.bid(), book.ask());
        let fields = [bid.price, bid.qty, ask.price, ask.qty, 0, 0];
        let event = self.event(EventKind::BookChange, instrument, flags, fields, update_id);
        self.deliver_standing(event, |streams| streams.book);
    }

    /// Delivers a book or a mark price only once the account is known. A strategy that sees a book
    /// before its orders of the previous process would place them again. Trades and bars are
    /// delivered at any time, because they cannot be delivered later.
    #[inline]
    fn deliver_standing(&mut self, event: Event, wants: impl Fn(&Streams) -> bool) {
        if self.knows_account() {
            self.deliver_market(event, wants);
        }
    }

    /// Delivers an event to every subscriber of the instrument whose streams match.
    #[inline]
    fn deliver_market(&mut self, event: Event, wants: impl Fn(&Streams) -> bool) {
        // Destructured field by field, so that the subscribers can be read while effects are
        // pushed.
        let Self {
            markets,
            strategies,
            recorder,
            effects,
            now,
            ..
        } = self;
        for (strategy, streams) in markets[usize::from(event.instrument.0)].subscribers() {
            if wants(streams) && strategies[usize::from(strategy.0)].fault.is_none() {
                let effect = Effect::Deliver { strategy, event };
                encode::record_effect(recorder, *now, &effect);
                effects.push_back(effect);
            }
        }
    }

    /// Delivers the present books and mark prices. Strategies do not get them before the account is
    /// known.
    pub(super) fn deliver_withheld_markets(&mut self) {
        for id in (0..self.instruments.len()).map(|index| InstrumentId(index as u16)) {
            let market = &self.markets[usize::from(id.0)];
            let (bid, ask) = (market.book.bid(), market.book.ask());
            let (update_id, is_synced) = (market.book.update_id(), market.book.is_synced());
            let mark = market.recorded_mark;
            if bid.qty > 0 && ask.qty > 0 {
                let fields = [bid.price, bid.qty, ask.price, ask.qty, 0, 0];
                let event = self.event(EventKind::BookTop, id, 0, fields, update_id);
                self.deliver_standing(event, |streams| streams.book);
            }
            if is_synced {
                self.deliver_book_change(id, 1, update_id);
            }
            if let Some(mark) = mark {
                self.deliver_mark(id, mark);
            }
        }
    }

    fn deliver_mark(&mut self, instrument: InstrumentId, mark: Mark) {
        let next_ms = mark.next_funding.millis();
        let fields = [mark.mark, mark.index, mark.funding_rate, next_ms, 0, 0];
        let event = self.event(EventKind::MarkPrice, instrument, 0, fields, 0);
        self.deliver_standing(event, |streams| streams.marks);
    }

    fn start_bars(&mut self, instrument: InstrumentId, intervals_ms: Vec<i64>) {
        for interval_ms in intervals_ms {
            let timer = Timer::Bar {
                instrument,
                interval_ms,
            };
            let at = next_boundary(self.now, interval_ms);
            self.timers.set(at, timer);
        }
    }

    /// Closes a bar at its boundary. A bar without trades is flat at the last close.
    pub(super) fn close_bar(&mut self, instrument: InstrumentId, interval_ms: i64) {
        let market = &mut self.markets[usize::from(instrument.0)];
        let Some((prices, subscribers)) = market.close_bar(interval_ms) else {
            return;
        };
        let boundary_ms = self.now.millis().div_euclid(interval_ms) * interval_ms;
        let fields = [
            prices.open,
            prices.high,
            prices.low,
            prices.close,
            prices.volume,
            interval_ms,
        ];
        let open_ms = boundary_ms - interval_ms;
        let event = self.event(EventKind::Bar, instrument, 0, fields, open_ms);
        for strategy in subscribers {
            self.deliver(strategy, event);
        }
        let timer = Timer::Bar {
            instrument,
            interval_ms,
        };
        self.timers.set(next_boundary(self.now, interval_ms), timer);
    }
}

/// The first multiple of the interval after `now`.
fn next_boundary(now: Time, interval_ms: i64) -> Time {
    Time::from_millis((now.millis().div_euclid(interval_ms) + 1) * interval_ms)
}
