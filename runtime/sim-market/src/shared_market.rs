//! Where the accounts and the source meet: one market for all.
//!
//! # What the venue of an account receives
//! It receives the public book without the account's own orders, and every trade. It matches the
//! account's orders against that book and those trades, as a venue of one account does. The results
//! are then applied for everybody else:
//!
//! - A quantity that the account took from a level is removed. Orders of other accounts that are
//!   shown there fill first, in the order in which they arrived at the price. The rest is taken
//!   from the source's level, which keeps the smaller quantity until the source changes it. Public
//!   trades report this, and the fill has the id of the last of them.
//! - The account's resting orders are shown in the book.
//! - A trade of the source that fills the account's orders becomes the same trade as the fills.
//!   Each fill is printed as its own trade, and the remaining quantity as the source reported it.
//!   Accounts share such a trade by price, then by the quantity ahead of them. Its quantity is
//!   never used twice.
//! - An order that the source's book reaches is filled at its own price. This is a public trade,
//!   and the source's level is reduced by it.
//! - Orders of accounts may still cross each other. Orders of one account do so, because its venue
//!   does not receive them. Such orders trade with each other, and the older one is the maker.
//! - The insurance fund and auto-deleveraging are outside the market. Their fills have ids that are
//!   not public.
//!
//! Nothing is published before all of this has settled, so tops and differences never show the
//! states in between.

use std::collections::BTreeSet;

use windvane_model::{InstrumentId, Level, MarketEvent, Price, Side, Time, TradeId};
use windvane_sim::{Deal, Met};

use super::board::Board;
use super::sink::{Deed, Filled, Sink};
use super::symbol::Symbol;

impl Board {
    /// Applies a trade of the source.
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
            // The trade reaches no order. It may trigger orders, which trade after it.
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
            symbol.forget_last_trade(price);
        }
        self.dirty.insert(id);
        self.settle(now, sink);
    }

    /// Applies the accounts' actions to the market and the market's changes to the accounts, until
    /// nothing changes any more. Then publishes the tops.
    pub fn settle(&mut self, now: Time, sink: &mut impl Sink) {
        let mut changed = BTreeSet::new();
        loop {
            for account in 0..sink.accounts() {
                self.listen(now, account, sink);
            }
            if let Some(id) = self.dirty.pop_first() {
                changed.insert(id);
                self.send_books(now, id, sink);
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

    /// Sends changes of the book to the accounts' venues, and the last price if it did not come
    /// from the source.
    fn send_books(&mut self, now: Time, id: InstrumentId, sink: &mut impl Sink) {
        let mut prices = std::mem::take(&mut self.prices);
        let mut levels = std::mem::take(&mut self.levels);
        let changes = |symbol: &mut Symbol| symbol.take_changes(now, &mut prices);
        if self.symbol_mut(id).is_some_and(changes) {
            for account in 0..sink.accounts() {
                let Some(symbol) = self.symbol(id) else { break };
                for side in [Side::Buy, Side::Sell] {
                    let level = |price: &i64| Level {
                        price: *price,
                        qty: symbol.book.qty_seen_by(account, side, *price),
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
        // Send the price after the book, because orders that it triggers trade in that book.
        if let Some((price, buyer_is_maker)) =
            self.symbol_mut(id).and_then(Symbol::take_undelivered_trade)
        {
            // The venues of the accounts that it filled know it already. For the others it is only
            // a price.
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

    /// Executes a trade between orders of accounts that cross each other. False if no orders cross.
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

    /// Applies the actions of an account and of the accounts that it traded with. Returns the
    /// quantity of the account's fills that belongs to the trade it has just received.
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
            // The other side's fill has already printed and numbered this trade.
            Met::Order(_) => return,
            Met::Trade | Met::Outside => symbol.print(now, (fill.price, fill.qty), buys, sink),
            Met::Fund => symbol.trades.skip(),
            Met::Level(level) => {
                let taken = ReachedOrder {
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

/// A fill of an account against the quantity that the shared book shows at a price level.
struct ReachedOrder<'a> {
    account: usize,
    level: i64,
    fill: &'a Filled,
}

impl ReachedOrder<'_> {
    /// Takes the quantity from other accounts, which are added to `met`, and then from the source.
    /// Returns the id of its last public trade.
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
            // This account's venue received only the source's quantity at this level.
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

/// The accounts whose orders a trade reaches, sorted by price, then by the quantity ahead of them.
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
