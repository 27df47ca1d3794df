//! Where the accounts and the source meet: one market for all.
//!
//! # What an account's venue hears
//! The public book without the account's own orders, and every trade. Its venue matches against
//! that as it always does; what it did is then made true for everybody else:
//!
//! - What it took of a level is gone: others' orders that are shown there are filled first, in the
//!   order in which they came to the price; the rest is taken of the source's level, which stays
//!   short until the source changes it. Public trades say so, and the fill bears the id of the
//!   last of them.
//! - What it has in the book is shown in the book.
//! - A trade of the source that fills it is one with its fills: each is printed as a trade of its
//!   own, and what is left of the quantity as the source said it. Accounts share such a trade by
//!   price, then by what stands before them; its quantity is never given out twice.
//! - An order that the source comes to is filled at its own price; that is a public trade, and the
//!   source's level is short of it.
//! - Orders of accounts that stand across each other all the same, as those of one account do,
//!   which its venue does not tell of each other, trade with each other: the older one is the
//!   maker.
//! - The insurance fund and auto-deleveraging are not in the market: their fills have ids that are
//!   not public.
//!
//! Nothing is published before all of that has settled: neither tops nor differences ever show
//! the moments in between.

use std::collections::BTreeSet;

use windvane_model::{InstrumentId, Level, MarketEvent, Price, Side, Time, TradeId};
use windvane_sim::{Deal, Met};

use super::board::Board;
use super::sink::{Deed, Filled, Sink};
use super::symbol::Symbol;

impl Board {
    /// A trade of the source.
    pub(crate) fn trade(
        &mut self,
        now: Time,
        id: InstrumentId,
        (price, qty): (i64, i64),
        buyer_is_maker: bool,
        sink: &mut impl Sink,
    ) {
        let Some(symbol) = self.symbol_mut(id) else {
            return;
        };
        if price <= 0 || qty <= 0 {
            return;
        }
        let hit = if buyer_is_maker {
            Side::Buy
        } else {
            Side::Sell
        };
        let order = by_priority(id, price, hit, sink);
        let mut left = qty;
        if order.is_empty() {
            // It meets nobody, but may trigger orders, whose trades come after it.
            symbol.print(now, (price, qty), buyer_is_maker, sink);
            left = 0;
        }
        let others = (0..sink.accounts()).filter(|account| !order.contains(account));
        let others: Vec<_> = others.collect();
        for account in order.iter().copied().chain(others) {
            let event = MarketEvent::Trade {
                price,
                qty: if order.is_empty() { qty } else { left },
                trade_id: 0,
                buyer_is_maker,
            };
            sink.feed(now, account, id, &event);
            left -= self.listen(now, account, sink);
        }
        if let Some(symbol) = self.symbol_mut(id) {
            if left > 0 {
                symbol.print(now, (price, left), buyer_is_maker, sink);
            }
            symbol.heard_last(price);
        }
        self.dirty.insert(id);
        self.settle(now, sink);
    }

    /// Brings what the accounts did to the market, and what the market became to the accounts,
    /// until nobody has anything to add; then publishes the tops.
    pub fn settle(&mut self, now: Time, sink: &mut impl Sink) {
        let mut changed = BTreeSet::new();
        loop {
            for account in 0..sink.accounts() {
                self.listen(now, account, sink);
            }
            if let Some(id) = self.dirty.pop_first() {
                changed.insert(id);
                self.tell(now, id, sink);
            } else if !changed.iter().any(|id| self.trade_crossed(now, *id, sink)) {
                break;
            }
        }
        for id in changed {
            if let Some(symbol) = self.symbol_mut(id) {
                symbol.publish_top(now, sink);
            }
        }
    }

    /// Tells the accounts' venues of the book, and of the last price where it is not the source's.
    fn tell(&mut self, now: Time, id: InstrumentId, sink: &mut impl Sink) {
        let mut prices = std::mem::take(&mut self.prices);
        let mut levels = std::mem::take(&mut self.levels);
        let changes = |symbol: &mut Symbol| symbol.take_changes(now, &mut prices);
        if self.symbol_mut(id).is_some_and(changes) {
            for account in 0..sink.accounts() {
                let Some(symbol) = self.symbol(id) else { break };
                for side in [Side::Buy, Side::Sell] {
                    let level = |price: &i64| Level {
                        price: *price,
                        qty: symbol.book.heard_by(account, side, *price),
                    };
                    let levels = &mut levels[side as usize];
                    levels.clear();
                    levels.extend(prices[side as usize].iter().map(level));
                }
                let event = MarketEvent::Depth {
                    update_id: symbol.book.update_id(),
                    snapshot: false,
                    bids: &levels[0],
                    asks: &levels[1],
                };
                sink.feed(now, account, id, &event);
                self.listen(now, account, sink);
            }
        }
        (self.prices, self.levels) = (prices, levels);
        // After the book, in which whomever the price triggers trades.
        if let Some((price, buyer_is_maker)) = self.symbol_mut(id).and_then(Symbol::take_unheard) {
            // Whoever it filled knows; to the others it is a price.
            let event = MarketEvent::Trade {
                price,
                qty: 0,
                trade_id: 0,
                buyer_is_maker,
            };
            for account in 0..sink.accounts() {
                sink.feed(now, account, id, &event);
                self.listen(now, account, sink);
            }
        }
    }

    /// Lets orders of accounts trade that stand across each other. False if there are none.
    fn trade_crossed(&mut self, now: Time, id: InstrumentId, sink: &mut impl Sink) -> bool {
        let Some(symbol) = self.symbol_mut(id) else {
            return false;
        };
        let Some(crossed) = symbol.book.crossed() else {
            return false;
        };
        let (bid, ask) = ((Side::Buy, crossed.bid), (Side::Sell, crossed.ask));
        let (maker, taker) = if crossed.bid_is_older {
            (bid, ask)
        } else {
            (ask, bid)
        };
        let trade_id = TradeId(symbol.trades.next_id());
        let mut meet = |(side, (account, at)): (Side, (usize, i64)), qty| {
            let deal = Deal {
                trade_id,
                price: Price(maker.1.1),
                maker: side == maker.0,
            };
            sink.meet(now, account, id, (side, at), qty, deal)
        };
        let qty = meet(maker, crossed.qty);
        if qty == 0 {
            return false;
        }
        meet(taker, qty);
        symbol.print(now, (maker.1.1, qty), crossed.bid_is_older, sink);
        self.dirty.insert(id);
        true
    }

    /// Makes true what an account did, and those whom it met. Answers how much of the account's
    /// fills met the trade that it has just been told of.
    fn listen(&mut self, now: Time, account: usize, sink: &mut impl Sink) -> i64 {
        let (mut met_trade, mut waiting) = (0, vec![account]);
        while let Some(account) = waiting.pop() {
            while let Some(deed) = sink.poll(account) {
                match deed {
                    Deed::Fill(fill) => {
                        if fill.met == Met::Trade {
                            met_trade += fill.qty;
                        }
                        self.filled(now, account, &fill, &mut waiting, sink);
                    }
                    Deed::Rests { instrument, sides } => {
                        self.dirty.insert(instrument);
                        if let Some(symbol) = self.symbol_mut(instrument) {
                            symbol.book.rest(account, sides);
                        }
                    }
                }
            }
        }
        met_trade
    }

    fn filled(
        &mut self,
        now: Time,
        account: usize,
        fill: &Filled,
        waiting: &mut Vec<usize>,
        sink: &mut impl Sink,
    ) {
        let Some(symbol) = self.symbol_mut(fill.instrument) else {
            return;
        };
        let buys = fill.side == Side::Buy;
        let trade_id = match fill.met {
            // Printed and numbered with the other side's.
            Met::Order(_) => return,
            Met::Trade | Met::Outside => symbol.print(now, (fill.price, fill.qty), buys, sink),
            Met::Fund => symbol.trades.skip(),
            Met::Level(level) => {
                let taken = Taken {
                    account,
                    level,
                    fill,
                };
                taken.from(now, symbol, waiting, sink)
            }
        };
        sink.number(account, fill.place, trade_id);
        self.dirty.insert(fill.instrument);
    }
}

/// What an account's fill took of a level.
struct Taken<'a> {
    account: usize,
    level: i64,
    fill: &'a Filled,
}

impl Taken<'_> {
    /// Takes it: of other accounts, who are `met`, then of the source. Answers the id of the last
    /// public trade that it made.
    fn from(
        &self,
        now: Time,
        symbol: &mut Symbol,
        met: &mut Vec<usize>,
        sink: &mut impl Sink,
    ) -> i64 {
        let (fill, side) = (self.fill, self.fill.side.opposite());
        let buyer_is_maker = fill.maker == (fill.side == Side::Buy);
        let (price, mut left, mut trade_id) = (fill.price, fill.qty, 0);
        let mut others = symbol.book.accounts_at(side, self.level);
        if others.contains(&self.account) {
            // It was told of the source's part alone.
            others.clear();
        }
        for other in others {
            while left > 0 {
                let deal = Deal {
                    trade_id: TradeId(symbol.trades.next_id()),
                    price: Price(price),
                    maker: !fill.maker,
                };
                let at = (side, self.level);
                let qty = sink.meet(now, other, symbol.id, at, left, deal);
                if qty == 0 {
                    break;
                }
                trade_id = symbol.print(now, (price, qty), buyer_is_maker, sink);
                left -= qty;
                met.push(other);
            }
        }
        if left > 0 {
            symbol.book.take(side, self.level, left);
            trade_id = symbol.print(now, (price, left), buyer_is_maker, sink);
        }
        trade_id
    }
}

/// The accounts whose orders a trade reaches: by price, then by what stands before them.
fn by_priority(id: InstrumentId, price: i64, hit: Side, sink: &impl Sink) -> Vec<usize> {
    let mut reached = Vec::new();
    for account in 0..sink.accounts() {
        for side in [Side::Buy, Side::Sell] {
            let Some((own, ahead)) = sink.best(account, id, side) else {
                continue;
            };
            let beyond = (own - price) * side.sign();
            if beyond > 0 || (beyond == 0 && side == hit) {
                reached.push((-beyond, ahead, account));
            }
        }
    }
    reached.sort_unstable();
    let mut order: Vec<usize> = Vec::with_capacity(reached.len());
    for (_, _, account) in reached {
        if !order.contains(&account) {
            order.push(account);
        }
    }
    order
}
