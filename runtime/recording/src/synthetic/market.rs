//! The market of a synthetic session: a limit order book and the flow of orders that moves it. It
//! uses only integers, so that a seed gives the same session on every machine.
//!
//! A hidden fair value is a random walk with rare jumps. Orders arrive at random times. Informed
//! traders know the fair value and trade towards it, so the price follows it with a lag and the
//! order flow is autocorrelated. One fifth of all actions are market orders, half are new orders
//! and the rest are cancels. Each further doubling of a size has probability one half (a discrete
//! heavy tail). A market order walks the book and prints one trade per level, so trades are always
//! consistent with the book.

use std::collections::{BTreeMap, BTreeSet};

use windvane_model::Side;
use windvane_model::random::SplitMix64;

/// The fair value is counted in this fraction of a tick.
const FINE: i64 = 16;
/// Number of levels per side.
const LEVELS: usize = 250;

/// A trade between other traders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Print {
    pub(super) price: i64,
    pub(super) qty: i64,
    pub(super) taker: Side,
}

/// Best bid and ask with their quantities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) bid: (i64, i64),
    pub(super) ask: (i64, i64),
}

/// Order book and order flow. Prices are in ticks, quantities in steps.
#[derive(Clone, Debug)]
pub(super) struct Market {
    random: SplitMix64,
    fair: i64,
    bids: BTreeMap<i64, i64>,
    asks: BTreeMap<i64, i64>,
    /// Increases by one with every change of a level.
    pub(super) update_id: i64,
    changed_bids: BTreeSet<i64>,
    changed_asks: BTreeSet<i64>,
}

impl Market {
    pub(super) fn new(random: SplitMix64, mid: i64, update_id: i64) -> Self {
        let mut market = Self {
            random,
            fair: mid * FINE,
            bids: BTreeMap::new(),
            asks: BTreeMap::new(),
            update_id,
            changed_bids: BTreeSet::new(),
            changed_asks: BTreeSet::new(),
        };
        market.set(Side::Buy, mid - 1, 900);
        market.set(Side::Sell, mid, 900);
        market.refill();
        market.changes();
        market
    }

    /// Performs one random action. Returns its trades.
    pub(super) fn step(&mut self) -> Vec<Print> {
        self.drift();
        let prints = match self.random.below_signed(10) {
            0 | 1 => self.market_order(),
            2..=6 => {
                self.add();
                Vec::new()
            }
            _ => {
                self.cancel();
                Vec::new()
            }
        };
        self.refill();
        prints
    }

    pub(super) fn touch(&self) -> Touch {
        let level = |level: Option<(&i64, &i64)>| level.map_or((0, 0), |(&p, &q)| (p, q));
        Touch {
            bid: level(self.bids.last_key_value()),
            ask: level(self.asks.first_key_value()),
        }
    }

    /// All bids and asks, best first.
    pub(super) fn book(&self) -> [Vec<(i64, i64)>; 2] {
        let pair = |(&price, &qty): (&i64, &i64)| (price, qty);
        [
            self.bids.iter().rev().map(pair).collect(),
            self.asks.iter().map(pair).collect(),
        ]
    }

    /// The levels that changed since the last call, with their current quantities; 0 for a removed
    /// level.
    pub(super) fn changes(&mut self) -> [Vec<(i64, i64)>; 2] {
        let now = |changed: BTreeSet<i64>, side: &BTreeMap<i64, i64>| {
            let level = |price| (price, side.get(&price).copied().unwrap_or(0));
            changed.into_iter().map(level).collect()
        };
        [
            now(std::mem::take(&mut self.changed_bids), &self.bids),
            now(std::mem::take(&mut self.changed_asks), &self.asks),
        ]
    }

    fn drift(&mut self) {
        let walk = self.random.below_signed(41) + self.random.below_signed(41) - 40;
        let jump = if self.random.below_signed(4000) == 0 {
            (self.random.below_signed(81) - 40) * FINE
        } else {
            0
        };
        let floor = (LEVELS as i64 * 8) * FINE;
        self.fair = (self.fair + walk + jump).max(floor);
    }

    /// The side of a market order. It moves the price towards the fair value more often than away:
    /// with probability 50 % at the fair value, at most 95 %.
    fn taker(&mut self) -> Side {
        let Touch { bid, ask } = self.touch();
        let mid = (bid.0 + ask.0) * FINE / 2;
        let edge = ((self.fair - mid) / 2).clamp(-45, 45);
        if self.random.below_signed(100) < 50 + edge {
            Side::Buy
        } else {
            Side::Sell
        }
    }

    fn market_order(&mut self) -> Vec<Print> {
        let taker = self.taker();
        let mut left = (self.random.below_signed(30) + 1) << self.random.heads(7);
        let mut prints = Vec::new();
        // The last level is never used up, so that there is always a price.
        while left > 0 && self.side(taker.opposite()).len() > 1 {
            let Touch { bid, ask } = self.touch();
            let (price, there) = if taker == Side::Buy { ask } else { bid };
            let qty = left.min(there);
            self.set(taker.opposite(), price, there - qty);
            prints.push(Print { price, qty, taker });
            left -= qty;
        }
        prints
    }

    fn add(&mut self) {
        // New limit orders are also more frequent on the side of the fair value.
        let side = self.taker();
        let Touch { bid, ask } = self.touch();
        let depth = self.random.below_signed(4) << self.random.heads(5);
        let improves = ask.0 - bid.0 > 1 && self.random.below_signed(3) == 0;
        let inside = i64::from(improves);
        let price = match side {
            Side::Buy => bid.0 + inside - if improves { 0 } else { depth },
            Side::Sell => ask.0 - inside + if improves { 0 } else { depth },
        };
        let there = self.side(side).get(&price).copied().unwrap_or(0);
        let size = (self.random.below_signed(200) + 1) << self.random.heads(3);
        self.set(side, price, there + size);
    }

    fn cancel(&mut self) {
        let side = self.taker().opposite();
        let nth = (self.random.below_signed(3) << self.random.heads(4)) as usize;
        let levels = self.side(side);
        if levels.len() < 3 {
            return;
        }
        let level = match side {
            Side::Buy => levels.iter().rev().nth(nth.min(levels.len() - 1)),
            Side::Sell => levels.iter().nth(nth.min(levels.len() - 1)),
        };
        let Some((&price, &there)) = level else {
            return;
        };
        let gone = if self.random.below_signed(3) == 0 {
            there
        } else {
            self.random.below_signed(there) + 1
        };
        self.set(side, price, there - gone);
    }

    /// Adds or removes deep levels, so that each side keeps its number of levels.
    fn refill(&mut self) {
        for side in [Side::Buy, Side::Sell] {
            while self.side(side).len() < LEVELS {
                let size = (self.random.below_signed(900) + 100) << self.random.heads(3);
                let gap = self.random.below_signed(3) + 1;
                let price = match side {
                    Side::Buy => self.bids.first_key_value().map_or(1, |(p, _)| p - gap),
                    Side::Sell => self.asks.last_key_value().map_or(1, |(p, _)| p + gap),
                };
                self.set(side, price, size);
            }
            while self.side(side).len() > LEVELS {
                let deepest = match side {
                    Side::Buy => self.bids.first_key_value(),
                    Side::Sell => self.asks.last_key_value(),
                };
                let Some((&price, _)) = deepest else { break };
                self.set(side, price, 0);
            }
        }
    }

    fn side(&self, side: Side) -> &BTreeMap<i64, i64> {
        match side {
            Side::Buy => &self.bids,
            Side::Sell => &self.asks,
        }
    }

    fn set(&mut self, side: Side, price: i64, qty: i64) {
        let (levels, changed) = match side {
            Side::Buy => (&mut self.bids, &mut self.changed_bids),
            Side::Sell => (&mut self.asks, &mut self.changed_asks),
        };
        if qty == 0 {
            levels.remove(&price);
        } else {
            levels.insert(price, qty);
        }
        changed.insert(price);
        self.update_id += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_crossed_book_and_no_trade_inside_the_spread() {
        let mut market = Market::new(SplitMix64::new(7), 600_000, 1);
        let mut prints = 0;
        for _ in 0..50_000 {
            let before = market.touch();
            for print in market.step() {
                match print.taker {
                    Side::Buy => assert!(print.price >= before.ask.0),
                    Side::Sell => assert!(print.price <= before.bid.0),
                }
                prints += 1;
            }
            let after = market.touch();
            assert!(after.bid.0 < after.ask.0 && after.bid.1 > 0 && after.ask.1 > 0);
        }
        assert!(prints > 5_000, "{prints}");
    }
}
