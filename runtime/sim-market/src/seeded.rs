//! The order flow of the server's own market. It is seeded and uses only integers, so the same time
//! steps give the same market on every machine.
//!
//! A hidden fair value follows a random walk with rare jumps. Orders arrive at random times.
//! Traders who know the fair value trade towards it, so the price follows it with a lag. A fifth of
//! all actions are market orders, half add orders, and the rest cancel. Each doubling of a size has
//! a probability of one half. A market order walks the book and prints one trade per level, so
//! trades always agree with the book.

use std::collections::BTreeMap;

use windvane_model::{Level, Side, Time};

use super::listing::Character;
use windvane_model::random::SplitMix64;

/// Number of units of the fair value per tick.
const FINE: i64 = 16;
/// Number of levels to keep per side.
const LEVELS: usize = 250;

/// A trade of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print {
    pub price: i64,
    pub qty: i64,
    pub taker: Side,
}

/// The results of one action: trades, then the levels after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Action {
    pub prints: Vec<Print>,
    pub bids: Vec<Level>,
    pub asks: Vec<Level>,
}

/// Book and order flow of one symbol. Internally, prices are in ticks and quantities in units.
#[derive(Clone, Debug)]
pub struct Flow {
    random: SplitMix64,
    character: Character,
    fair: i64,
    sides: [BTreeMap<i64, i64>; 2],
    action: Action,
    /// Time of the next action.
    next: Time,
    /// Mean time between two actions, ns.
    pause_ns: i64,
}

impl Flow {
    /// Starts with a full book around the first price of `character`.
    pub fn new(seed: u64, character: Character, now: Time, per_second: u32) -> Self {
        let mid = character.price / character.tick;
        let mut flow = Self {
            random: SplitMix64::new(seed),
            character,
            fair: mid * FINE,
            sides: [BTreeMap::new(), BTreeMap::new()],
            action: Action::default(),
            next: now,
            pause_ns: 1_000_000_000 / i64::from(per_second.max(1)),
        };
        flow.set(Side::Buy, mid - 1, 900);
        flow.set(Side::Sell, mid, 900);
        flow.refill();
        flow
    }

    /// Time of the next action.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Skips time without actions.
    pub fn skip_to(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// Performs one action. The first one shows the whole book.
    pub fn act(&mut self) -> Action {
        self.next = self
            .next
            .plus_ns(1 + self.random.below_signed(2 * self.pause_ns));
        self.drift();
        match self.random.below_signed(10) {
            0 | 1 => self.market_order(),
            2..=6 => self.add(),
            _ => self.cancel(),
        }
        self.refill();
        std::mem::take(&mut self.action)
    }

    fn drift(&mut self) {
        let walk = self.random.below_signed(41) + self.random.below_signed(41) - 40;
        let jump = if self.random.below_signed(1000) == 0 {
            (self.random.below_signed(81) - 40) * FINE
        } else {
            0
        };
        let floor = (LEVELS as i64 * 8) * FINE;
        self.fair = (self.fair + walk + jump).max(floor);
    }

    fn touch(&self) -> [(i64, i64); 2] {
        let level = |level: Option<(&i64, &i64)>| level.map_or((0, 0), |(&p, &q)| (p, q));
        let [bids, asks] = &self.sides;
        [level(bids.last_key_value()), level(asks.first_key_value())]
    }

    /// Draws the side of a taker. It is more likely to move the price towards the fair value than
    /// away from it: 50 % at the fair value, and at most 95 %.
    fn taker(&mut self) -> Side {
        let [bid, ask] = self.touch();
        let mid = (bid.0 + ask.0) * FINE / 2;
        let edge = ((self.fair - mid) / 2).clamp(-45, 45);
        if self.random.below_signed(100) < 50 + edge {
            Side::Buy
        } else {
            Side::Sell
        }
    }

    fn market_order(&mut self) {
        let taker = self.taker();
        let mut left = (self.random.below_signed(30) + 1) << self.random.heads(7);
        let maker = taker.opposite();
        // Keep the last level, so that there is always a price.
        while left > 0 && self.sides[maker as usize].len() > 1 {
            let (price, there) = self.touch()[maker as usize];
            let qty = left.min(there);
            self.set(maker, price, there - qty);
            self.action.prints.push(Print {
                price: price * self.character.tick,
                qty: qty * self.character.unit,
                taker,
            });
            left -= qty;
        }
    }

    fn add(&mut self) {
        // Makers also favour the side of the fair value, and most of them narrow a wide spread.
        let side = self.taker();
        let [bid, ask] = self.touch();
        let depth = self.random.below_signed(4) << self.random.heads(5);
        let spread = ask.0 - bid.0;
        let away = if spread > 1 && self.random.below_signed(3) > 0 {
            -1 - self.random.below_signed(spread - 1)
        } else {
            depth
        };
        let price = match side {
            Side::Buy => bid.0 - away,
            Side::Sell => ask.0 + away,
        };
        let there = self.sides[side as usize].get(&price).copied();
        let size = (self.random.below_signed(120) + 1) << self.random.heads(3);
        self.set(side, price, there.unwrap_or(0) + size);
    }

    fn cancel(&mut self) {
        let side = self.taker().opposite();
        let nth = (self.random.below_signed(3) << self.random.heads(4)) as usize;
        let levels = &self.sides[side as usize];
        if levels.len() < 3 {
            return;
        }
        let nth = nth.min(levels.len() - 1);
        let level = match side {
            Side::Buy => levels.iter().rev().nth(nth),
            Side::Sell => levels.iter().nth(nth),
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

    /// Adds deep levels, so that each side keeps its depth.
    fn refill(&mut self) {
        for side in [Side::Buy, Side::Sell] {
            while self.sides[side as usize].len() < LEVELS {
                let size = (self.random.below_signed(900) + 100) << self.random.heads(3);
                let gap = self.random.below_signed(3) + 1;
                let levels = &self.sides[side as usize];
                let price = match side {
                    Side::Buy => levels.first_key_value().map_or(1, |(p, _)| p - gap),
                    Side::Sell => levels.last_key_value().map_or(1, |(p, _)| p + gap),
                };
                self.set(side, price, size);
            }
            while self.sides[side as usize].len() > LEVELS {
                let levels = &self.sides[side as usize];
                let deepest = match side {
                    Side::Buy => levels.first_key_value(),
                    Side::Sell => levels.last_key_value(),
                };
                let Some((&price, _)) = deepest else { break };
                self.set(side, price, 0);
            }
        }
    }

    fn set(&mut self, side: Side, price: i64, qty: i64) {
        let levels = &mut self.sides[side as usize];
        if qty == 0 {
            levels.remove(&price);
        } else {
            levels.insert(price, qty);
        }
        let changed = match side {
            Side::Buy => &mut self.action.bids,
            Side::Sell => &mut self.action.asks,
        };
        changed.push(Level {
            price: price * self.character.tick,
            qty: qty * self.character.unit,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHARACTER: Character = Character {
        price: 6_000_000,
        tick: 10,
        unit: 5,
    };

    #[test]
    fn the_book_never_crosses_and_trades_start_at_the_best_price() {
        let mut flow = Flow::new(7, CHARACTER, Time(0), 100);
        let mut prints = 0;
        for _ in 0..50_000 {
            let [bid, ask] = flow.touch();
            for print in flow.act().prints {
                match print.taker {
                    Side::Buy => assert!(print.price >= ask.0 * 10),
                    Side::Sell => assert!(print.price <= bid.0 * 10),
                }
                prints += 1;
            }
            let [bid, ask] = flow.touch();
            assert!(bid.0 < ask.0 && bid.1 > 0 && ask.1 > 0);
        }
        assert!(prints > 5_000, "{prints}");
    }

    #[test]
    fn a_seed_decides_the_market_and_its_rate_is_kept() {
        let run = |seed| {
            let mut flow = Flow::new(seed, CHARACTER, Time(0), 100);
            let actions: Vec<_> = (0..5_000).map(|_| flow.act()).collect();
            (actions, flow.next())
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let seconds = run(1).1.0 / 1_000_000_000;
        assert!((45..55).contains(&seconds), "{seconds}");
    }

    #[test]
    fn the_spread_is_tight() {
        let mut flow = Flow::new(5, CHARACTER, Time(0), 20);
        let mut spreads: Vec<_> = (0..40_000)
            .map(|_| {
                flow.act();
                let [bid, ask] = flow.touch();
                ask.0 - bid.0
            })
            .collect();
        spreads.sort_unstable();
        assert!(spreads[20_000] <= 2 && spreads[39_600] <= 20);
    }

    #[test]
    fn an_order_at_the_touch_is_filled_within_seconds() {
        let mut flow = Flow::new(3, CHARACTER, Time(0), 20);
        let mut waits = Vec::new();
        for _ in 0..200 {
            // The order is last in the queue at the best bid. Only trades at this price or lower
            // count.
            let (price, mut ahead) = flow.touch()[0];
            let first = flow.next();
            while ahead >= 0 {
                for print in flow.act().prints {
                    let ticks = print.price / CHARACTER.tick;
                    if print.taker == Side::Sell && ticks <= price {
                        ahead -= print.qty / CHARACTER.unit;
                        if ticks < price {
                            ahead = -1;
                        }
                    }
                }
            }
            waits.push((flow.next().0 - first.0) / 1_000_000);
        }
        waits.sort_unstable();
        assert!(waits[100] < 2_000 && waits[180] < 25_000, "{waits:?}");
    }
}
