//! The public book of one symbol, and the differences that its depth streams carry
//! (spec 4, section 5).
//!
//! # Update ids
//! Every change of a level takes the next id. Each speed has a chain of differences: `U` is the id
//! after the one before's `u`. Sending a difference takes an id of its own, so that a snapshot is
//! always past the last difference and both joining rules find their first difference: futures
//! `U <= lastUpdateId <= u`, spot `U <= lastUpdateId + 1 <= u`.

use std::collections::{BTreeMap, BTreeSet};

use windvane_engine::{Level, Side, Surface};

/// Levels kept per side; what lies beyond is removed, and the differences say so.
pub const LEVELS_KEPT: usize = 2_000;

/// How often a depth stream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Speed {
    /// `@100ms`.
    Ms100,
    /// Plain `@depth` on futures.
    Ms250,
    /// Plain `@depth` on spot.
    Ms1000,
}

impl Speed {
    /// Milliseconds between two differences.
    pub const fn millis(self) -> i64 {
        match self {
            Self::Ms100 => 100,
            Self::Ms250 => 250,
            Self::Ms1000 => 1000,
        }
    }

    /// The speeds of a surface.
    pub const fn of(surface: Surface) -> &'static [Self] {
        match surface {
            Surface::Spot => &[Self::Ms100, Self::Ms1000],
            Surface::Futures => &[Self::Ms100, Self::Ms250],
        }
    }
}

/// A depth difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its chain.
    pub speed: Speed,
    /// `U`.
    pub first_id: i64,
    /// `u`.
    pub last_id: i64,
    /// `pu`: `u` of the one before.
    pub previous_id: i64,
    /// Bids that changed, absolute quantities, best first.
    pub bids: Vec<Level>,
    /// Asks that changed, best first.
    pub asks: Vec<Level>,
}

#[derive(Clone, Debug)]
struct Chain {
    speed: Speed,
    last_id: i64,
    changed: [BTreeSet<i64>; 2],
}

/// The book.
#[derive(Clone, Debug)]
pub struct Book {
    sides: [BTreeMap<i64, i64>; 2],
    update_id: i64,
    chains: Vec<Chain>,
    /// Prices that changed since they were last taken, for whoever wants every change.
    fresh: [Vec<i64>; 2],
    /// The last top that was told apart from the depth, and its id in the source.
    top: Option<(i64, Level, Level)>,
}

impl Book {
    /// Empty; ids start here.
    pub fn new(surface: Surface, update_id: i64) -> Self {
        let chain = |speed: &Speed| Chain {
            speed: *speed,
            last_id: update_id,
            changed: [BTreeSet::new(), BTreeSet::new()],
        };
        Self {
            sides: [BTreeMap::new(), BTreeMap::new()],
            // Past the chains' last ids from the start, as after every difference.
            update_id: update_id + 1,
            chains: Speed::of(surface).iter().map(chain).collect(),
            fresh: [Vec::new(), Vec::new()],
            top: None,
        }
    }

    /// Id of the last update.
    pub fn update_id(&self) -> i64 {
        self.update_id
    }

    /// Levels of a side, best first.
    pub fn levels(&self, side: Side) -> impl Iterator<Item = Level> + '_ {
        let level = |(&price, &qty): (&i64, &i64)| Level { price, qty };
        let levels = self.sides[side as usize].iter();
        // Bids from the highest, asks from the lowest.
        let (bids, asks) = match side {
            Side::Buy => (Some(levels.rev()), None),
            Side::Sell => (None, Some(levels)),
        };
        let bids = bids.into_iter().flatten().map(level);
        bids.chain(asks.into_iter().flatten().map(level))
    }

    /// Best bid and ask; a side without levels is zero.
    pub fn top(&self) -> (Level, Level) {
        let level = |(&price, &qty): (&i64, &i64)| Level { price, qty };
        let bid = self.sides[0].last_key_value().map(level);
        let ask = self.sides[1].first_key_value().map(level);
        (bid.unwrap_or_default(), ask.unwrap_or_default())
    }

    /// Sets a level; quantity 0 removes it.
    pub fn set(&mut self, side: Side, level: Level) {
        let levels = &mut self.sides[side as usize];
        let before = if level.qty > 0 {
            levels.insert(level.price, level.qty)
        } else {
            levels.remove(&level.price)
        };
        if before.unwrap_or(0) == level.qty.max(0) {
            return;
        }
        self.update_id += 1;
        self.fresh[side as usize].push(level.price);
        for chain in &mut self.chains {
            chain.changed[side as usize].insert(level.price);
        }
    }

    /// Applies a difference of the source. One that is older than the last top must not bring back
    /// what the top proved gone.
    pub fn apply(&mut self, source_id: i64, bids: &[Level], asks: &[Level]) {
        for (side, levels) in [(Side::Buy, bids), (Side::Sell, asks)] {
            for level in levels {
                self.set(side, *level);
            }
        }
        match self.top {
            Some((id, bid, ask)) if id > source_id => self.trim(bid, ask),
            _ => self.top = None,
        }
        self.uncross(!bids.is_empty());
        self.bound();
    }

    /// The book is exactly this.
    pub fn replace(&mut self, bids: &[Level], asks: &[Level]) {
        self.top = None;
        for (side, levels) in [(Side::Buy, bids), (Side::Sell, asks)] {
            let kept: BTreeSet<i64> = levels.iter().map(|level| level.price).collect();
            let prices = self.sides[side as usize].keys().copied();
            let gone: Vec<i64> = prices.filter(|price| !kept.contains(price)).collect();
            for price in gone {
                self.set(side, Level { price, qty: 0 });
            }
            for level in levels {
                self.set(side, *level);
            }
        }
        self.uncross(true);
        self.bound();
    }

    /// The best levels are these: what was better is gone.
    pub fn set_top(&mut self, source_id: i64, bid: Level, ask: Level) {
        self.top = Some((source_id, bid, ask));
        self.trim(bid, ask);
        self.bound();
    }

    fn trim(&mut self, bid: Level, ask: Level) {
        // Where the source knows no bid or ask, nothing is better than it.
        let bids = self.sides[0].range(bid.price + 1..).map(|(&p, _)| p);
        let worst_ask = if ask.price > 0 { ask.price } else { i64::MAX };
        let asks = self.sides[1].range(..worst_ask).map(|(&p, _)| p);
        let gone: Vec<_> = bids
            .map(|price| (Side::Buy, price))
            .chain(asks.map(|price| (Side::Sell, price)))
            .collect();
        for (side, price) in gone {
            self.set(side, Level { price, qty: 0 });
        }
        for (side, level) in [(Side::Buy, bid), (Side::Sell, ask)] {
            if level.qty > 0 {
                self.set(side, level);
            }
        }
    }

    /// Levels that crossed are stale on one side: of the asks if bids have just come in.
    fn uncross(&mut self, bids_are_fresh: bool) {
        loop {
            let (bid, ask) = self.top();
            if bid.qty == 0 || ask.qty == 0 || bid.price < ask.price {
                return;
            }
            let (side, price) = if bids_are_fresh {
                (Side::Sell, ask.price)
            } else {
                (Side::Buy, bid.price)
            };
            self.set(side, Level { price, qty: 0 });
        }
    }

    fn bound(&mut self) {
        while self.sides[0].len() > LEVELS_KEPT
            && let Some((&price, _)) = self.sides[0].first_key_value()
        {
            self.set(Side::Buy, Level { price, qty: 0 });
        }
        while self.sides[1].len() > LEVELS_KEPT
            && let Some((&price, _)) = self.sides[1].last_key_value()
        {
            self.set(Side::Sell, Level { price, qty: 0 });
        }
    }

    /// Takes the levels that changed since the last call, bids and asks, each once.
    pub fn take_changes(&mut self, levels: &mut [Vec<Level>; 2]) {
        for (side, levels) in levels.iter_mut().enumerate() {
            let prices = &mut self.fresh[side];
            prices.sort_unstable();
            prices.dedup();
            let held = &self.sides[side];
            let level = |price| Level {
                price,
                qty: held.get(&price).copied().unwrap_or(0),
            };
            levels.clear();
            levels.extend(prices.drain(..).map(level));
        }
    }

    /// Takes the difference of a speed since its last one, if anything changed.
    pub fn difference(&mut self, speed: Speed) -> Option<Difference> {
        let chain = self.chains.iter_mut().find(|chain| chain.speed == speed)?;
        let [bids, asks] = chain.changed.each_mut().map(std::mem::take);
        if bids.is_empty() && asks.is_empty() {
            return None;
        }
        let level = |side: Side| {
            let levels = &self.sides[side as usize];
            move |price| Level {
                price,
                qty: levels.get(&price).copied().unwrap_or(0),
            }
        };
        let difference = Difference {
            speed,
            first_id: chain.last_id + 1,
            last_id: self.update_id,
            previous_id: chain.last_id,
            bids: bids.into_iter().rev().map(level(Side::Buy)).collect(),
            asks: asks.into_iter().map(level(Side::Sell)).collect(),
        };
        chain.last_id = self.update_id;
        self.update_id += 1;
        Some(difference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn level(price: i64, qty: i64) -> Level {
        Level { price, qty }
    }

    fn prices(book: &Book, side: Side) -> Vec<(i64, i64)> {
        book.levels(side).map(|l| (l.price, l.qty)).collect()
    }

    #[test]
    fn a_top_removes_better_levels_and_an_older_difference_does_not_bring_them_back() {
        let mut book = Book::new(Surface::Futures, 0);
        book.replace(
            &[level(99, 1), level(98, 1)],
            &[level(101, 1), level(102, 1)],
        );
        book.set_top(50, level(98, 2), level(100, 5));
        assert_eq!(prices(&book, Side::Buy), [(98, 2)]);
        book.apply(49, &[level(99, 7), level(97, 1)], &[]);
        assert_eq!(prices(&book, Side::Buy), [(98, 2), (97, 1)]);
        book.apply(51, &[level(99, 7)], &[]);
        assert_eq!(prices(&book, Side::Buy), [(99, 7), (98, 2), (97, 1)]);
        assert_eq!(prices(&book, Side::Sell), [(100, 5), (101, 1), (102, 1)]);
    }

    #[test]
    fn the_book_never_crosses() {
        let mut book = Book::new(Surface::Spot, 0);
        book.replace(&[level(99, 1)], &[level(100, 1), level(101, 1)]);
        book.apply(1, &[level(100, 3)], &[]);
        assert_eq!(prices(&book, Side::Sell), [(101, 1)]);
        book.apply(2, &[], &[level(98, 3)]);
        assert_eq!(prices(&book, Side::Buy), []);
    }

    #[test]
    fn far_levels_go_and_the_difference_says_so() {
        let mut book = Book::new(Surface::Spot, 0);
        let bids: Vec<_> = (1..=LEVELS_KEPT as i64 + 1).map(|p| level(p, 1)).collect();
        book.apply(1, &bids, &[]);
        let difference = book.difference(Speed::Ms100).unwrap();
        assert_eq!(book.levels(Side::Buy).count(), LEVELS_KEPT);
        assert_eq!(difference.bids.last(), Some(&level(1, 0)));
    }

    /// A client by the letter of spec 4, section 5.
    #[derive(Default)]
    struct Local {
        sides: [BTreeMap<i64, i64>; 2],
        snapshot: i64,
        last: Option<i64>,
    }

    impl Local {
        fn take(&mut self, surface: Surface, d: &Difference) -> Result<(), String> {
            let old = match surface {
                Surface::Futures => d.last_id < self.snapshot,
                Surface::Spot => d.last_id <= self.snapshot,
            };
            if old {
                return Ok(());
            }
            let joins = match (surface, self.last) {
                (Surface::Futures, None) => {
                    d.first_id <= self.snapshot && self.snapshot <= d.last_id
                }
                (Surface::Spot, None) => {
                    d.first_id <= self.snapshot + 1 && self.snapshot < d.last_id
                }
                (Surface::Futures, Some(last)) => d.previous_id == last,
                (Surface::Spot, Some(last)) => d.first_id == last + 1,
            };
            if !joins {
                return Err(format!(
                    "{d:?} does not join {:?} {}",
                    self.last, self.snapshot
                ));
            }
            self.last = Some(d.last_id);
            for (side, levels) in [(0, &d.bids), (1, &d.asks)] {
                for level in levels {
                    if level.qty == 0 {
                        self.sides[side].remove(&level.price);
                    } else {
                        self.sides[side].insert(level.price, level.qty);
                    }
                }
            }
            Ok(())
        }
    }

    proptest! {
        /// Subscribed at any time, snapshot at any later time: the book is the server's.
        #[test]
        fn a_book_joined_by_the_documented_rule_is_the_servers(
            futures: bool,
            steps in prop::collection::vec((0_u8..8, 1_i64..40, 0_i64..4), 1..120),
            subscribed in 0_usize..60,
            waited in 0_usize..20,
        ) {
            let surface = if futures { Surface::Futures } else { Surface::Spot };
            for speed in Speed::of(surface) {
                let mut book = Book::new(surface, 1000);
                let (mut buffer, mut local) = (Vec::new(), None);
                for (n, (action, price, qty)) in steps.iter().enumerate() {
                    if n == subscribed + waited {
                        let sides = [Side::Buy, Side::Sell]
                            .map(|side| prices(&book, side).into_iter().collect());
                        local = Some(Local { sides, snapshot: book.update_id(), last: None });
                    }
                    match action {
                        0..=2 => book.apply(n as i64, &[level(*price, *qty)], &[]),
                        3..=5 => book.apply(n as i64, &[], &[level(*price + 20, *qty)]),
                        6 => book.set_top(n as i64, level(*price, 1), level(*price + 1, 2)),
                        _ => {
                            // Other speeds take their ids too.
                            for other in Speed::of(surface) {
                                if let Some(d) = book.difference(*other)
                                    && other == speed && n >= subscribed
                                {
                                    buffer.push(d);
                                }
                            }
                        }
                    }
                }
                if let Some(d) = book.difference(*speed) {
                    buffer.push(d);
                }
                if let Some(mut local) = local {
                    for d in &buffer {
                        prop_assert_eq!(local.take(surface, d), Ok(()));
                    }
                    for side in [Side::Buy, Side::Sell] {
                        let mut ours: Vec<_> =
                            local.sides[side as usize].iter().map(|(p, q)| (*p, *q)).collect();
                        if side == Side::Buy { ours.reverse(); }
                        prop_assert_eq!(ours, prices(&book, side));
                    }
                }
            }
        }
    }
}
