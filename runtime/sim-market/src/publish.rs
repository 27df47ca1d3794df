//! Changes of a symbol that the accounts and the public streams receive.

use windvane_model::Time;

use super::book::Speed;
use super::funding::{Funded, INTEREST};
use super::kline::Point;
use super::sink::{REFRESH_MS, Sink, Update, is_due};
use super::symbol::{Marks, Symbol};

impl Symbol {
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
