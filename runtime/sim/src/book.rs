//! The recorded book of one instrument: its displayed levels, and how much of each own orders have
//! already taken. Own orders are never in it, and own fills never change what it displays.
//!
//! It accepts two kinds of recording. With a depth snapshot it has all levels; without one it has
//! only the top. Tops and depth differences have comparable update ids. A top that is newer than
//! the depth removes the levels that it disproves, and an older difference must not restore them.

use serde::{Deserialize, Serialize};
use windvane_model::{Level, Side};

/// One displayed level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BookLevel {
    pub(crate) price: i64,
    pub(crate) qty: i64,
    /// Quantity that own orders took since the level was last updated.
    pub(crate) used: i64,
}

impl BookLevel {
    const fn new(level: Level) -> Self {
        Self {
            price: level.price,
            qty: level.qty,
            used: 0,
        }
    }

    pub(crate) const fn available(&self) -> i64 {
        self.qty - self.used
    }
}

/// One side of the book, sorted with the best level last.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ladder {
    levels: Vec<BookLevel>,
    /// 1 for bids, -1 for asks: `price * sign` rises towards the best.
    sign: i64,
}

impl Ladder {
    fn at_or_after(&self, price: i64) -> usize {
        let rank = price * self.sign;
        self.levels
            .partition_point(|level| level.price * self.sign < rank)
    }

    fn set(&mut self, level: Level) {
        let at = self.at_or_after(level.price);
        let present = self.levels.get(at).is_some_and(|l| l.price == level.price);
        match (present, level.qty > 0) {
            // An unchanged quantity is not an update, so the taken quantity stays.
            (true, true) if self.levels[at].qty == level.qty => {}
            (true, true) => self.levels[at] = BookLevel::new(level),
            (true, false) => drop(self.levels.remove(at)),
            (false, true) => self.levels.insert(at, BookLevel::new(level)),
            (false, false) => {}
        }
    }

    /// Makes `level` the best one. Better levels are removed.
    fn trim_to(&mut self, level: Level) {
        if level.qty <= 0 {
            return self.levels.clear();
        }
        let rank = level.price * self.sign;
        while self
            .levels
            .last()
            .is_some_and(|l| l.price * self.sign > rank)
        {
            self.levels.pop();
        }
        self.set(level);
    }

    /// Replaces all levels. Returns the earlier ones.
    fn reset(&mut self, levels: &[Level]) -> Vec<BookLevel> {
        let shown = levels.iter().filter(|level| level.qty > 0);
        let mut fresh: Vec<_> = shown.map(|level| BookLevel::new(*level)).collect();
        fresh.sort_unstable_by_key(|level| level.price * self.sign);
        let before = std::mem::replace(&mut self.levels, fresh);
        for old in before.iter().filter(|level| level.used > 0) {
            let at = self.at_or_after(old.price);
            if let Some(level) = self.levels.get_mut(at)
                && (level.price, level.qty) == (old.price, old.qty)
            {
                level.used = old.used;
            }
        }
        before
    }

    /// Makes `level` the only level.
    #[inline]
    fn replace(&mut self, level: Level) {
        if let [only] = self.levels.as_mut_slice()
            && level.qty > 0
        {
            if only.price != level.price || only.qty != level.qty {
                *only = BookLevel::new(level);
            }
        } else {
            self.levels.clear();
            if level.qty > 0 {
                self.levels.push(BookLevel::new(level));
            }
        }
    }
}

/// The displayed book.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Book {
    sides: [Ladder; 2],
    /// Whether a snapshot was received, without a gap since.
    deep: bool,
    depth_id: i64,
    top_id: i64,
}

impl Book {
    pub(crate) fn new() -> Self {
        let ladder = |sign| Ladder {
            levels: Vec::new(),
            sign,
        };
        Self {
            sides: [ladder(1), ladder(-1)],
            deep: false,
            depth_id: 0,
            top_id: 0,
        }
    }

    /// Sets the best bid and ask. Returns false if the depth is newer, so nothing changed.
    #[inline]
    pub(crate) fn top(&mut self, update_id: i64, bid: Level, ask: Level) -> bool {
        if !self.deep {
            self.top_id = update_id;
            self.sides[0].replace(bid);
            self.sides[1].replace(ask);
            return true;
        }
        if update_id != 0 && update_id < self.depth_id {
            return false;
        }
        self.top_id = update_id;
        self.sides[0].trim_to(bid);
        self.sides[1].trim_to(ask);
        true
    }

    /// Replaces the whole book. A newer top still trims it.
    pub(crate) fn snapshot(&mut self, update_id: i64, bids: &[Level], asks: &[Level]) {
        let newer_top = self.top_id > update_id;
        for (ladder, levels) in self.sides.iter_mut().zip([bids, asks]) {
            let before = ladder.reset(levels);
            if let (true, Some(top)) = (newer_top, before.last()) {
                ladder.trim_to(Level {
                    price: top.price,
                    qty: top.qty,
                });
            }
        }
        self.deep = true;
        self.depth_id = update_id;
    }

    /// Whether there is a complete book that a difference can be applied to.
    pub(crate) const fn takes_differences(&self) -> bool {
        self.deep
    }

    /// Whether the last top is newer than a difference with this id.
    pub(crate) const fn is_stale(&self, update_id: i64) -> bool {
        update_id < self.top_id
    }

    /// Applies one level of a difference. Returns false if a newer top contradicts it.
    pub(crate) fn difference(&mut self, side: Side, level: Level, stale: bool) -> bool {
        let ladder = &mut self.sides[side as usize];
        let shadowed = |best: &BookLevel| level.price * ladder.sign >= best.price * ladder.sign;
        if stale && ladder.levels.last().is_none_or(shadowed) {
            return false;
        }
        ladder.set(level);
        true
    }

    /// Ends a difference after all of its levels are applied.
    pub(crate) const fn advance(&mut self, update_id: i64) {
        self.depth_id = update_id;
    }

    /// Handles a break in the depth sequence: only the top is kept.
    pub(crate) fn gap(&mut self) {
        self.deep = false;
        self.depth_id = 0;
        for ladder in &mut self.sides {
            let below = ladder.levels.len().saturating_sub(1);
            ladder.levels.drain(..below);
        }
    }

    /// The best level of a side.
    #[inline]
    pub(crate) fn best(&self, side: Side) -> Option<&BookLevel> {
        self.sides[side as usize].levels.last()
    }

    /// The `n`-th best level of a side.
    #[inline]
    pub(crate) fn nth(&self, side: Side, n: usize) -> Option<&BookLevel> {
        let levels = &self.sides[side as usize].levels;
        levels.get(levels.len().checked_sub(n + 1)?)
    }

    /// Takes `qty` of the quantity that the `n`-th best level displays.
    #[inline]
    pub(crate) fn take(&mut self, side: Side, n: usize, qty: i64) {
        let levels = &mut self.sides[side as usize].levels;
        let at = levels.len() - 1 - n;
        levels[at].used += qty;
        debug_assert!(
            levels[at].used <= levels[at].qty,
            "took more than displayed"
        );
    }

    /// The displayed quantity at a price; `None` if the recording does not contain it.
    pub(crate) fn displayed(&self, side: Side, price: i64) -> Option<i64> {
        let ladder = &self.sides[side as usize];
        let at = ladder.at_or_after(price);
        match ladder.levels.get(at) {
            Some(level) if level.price == price => Some(level.qty),
            // Better than the best price, or an empty price in a complete book.
            None if !ladder.levels.is_empty() => Some(0),
            _ if self.deep => Some(0),
            _ => None,
        }
    }

    /// Best bid plus best ask: twice the mid, exact.
    #[inline]
    pub(crate) fn mid_twice(&self) -> Option<i64> {
        Some(self.best(Side::Buy)?.price + self.best(Side::Sell)?.price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const fn level(price: i64, qty: i64) -> Level {
        Level { price, qty }
    }

    fn deep() -> Book {
        let mut book = Book::new();
        let bids = [level(100, 5), level(99, 7), level(97, 1)];
        let asks = [level(101, 4), level(103, 6)];
        book.snapshot(10, &bids, &asks);
        book
    }

    #[test]
    fn without_a_snapshot_the_book_is_its_top() {
        let mut book = Book::new();
        assert!(!book.takes_differences());
        book.top(1, level(100, 5), level(101, 4));
        assert_eq!(book.displayed(Side::Buy, 100), Some(5));
        assert_eq!(book.displayed(Side::Buy, 99), None, "it is unknown");
        assert_eq!(
            book.displayed(Side::Sell, 100),
            Some(0),
            "better than the best"
        );
        assert_eq!(book.nth(Side::Buy, 1), None);
        book.top(2, level(100, 5), level(0, 0));
        assert_eq!(book.best(Side::Sell), None);
        assert_eq!(book.mid_twice(), None);
    }

    #[test]
    fn a_newer_top_trims_and_an_older_one_is_ignored() {
        let mut book = deep();
        assert!(!book.top(9, level(97, 2), level(98, 2)));
        assert_eq!(book.best(Side::Buy).map(|l| l.price), Some(100));
        assert!(book.top(11, level(99, 3), level(101, 4)));
        assert_eq!(book.displayed(Side::Buy, 100), Some(0));
        assert_eq!(book.displayed(Side::Buy, 99), Some(3));
        assert_eq!(book.displayed(Side::Buy, 97), Some(1));
    }

    #[test]
    fn an_older_snapshot_is_trimmed_by_the_top_before_it() {
        let mut book = Book::new();
        book.top(20, level(99, 3), level(103, 1));
        let bids = [level(100, 5), level(99, 7), level(97, 1)];
        book.snapshot(10, &bids, &[level(101, 4), level(103, 6)]);
        assert_eq!(book.displayed(Side::Buy, 99), Some(3));
        assert_eq!(book.best(Side::Sell).map(|l| l.price), Some(103));
    }

    #[test]
    fn after_a_gap_only_the_top_is_left() {
        let mut book = deep();
        book.gap();
        assert_eq!(book.displayed(Side::Buy, 100), Some(5));
        assert_eq!(book.displayed(Side::Buy, 99), None);
        assert!(!book.takes_differences());
    }

    #[test]
    fn taken_quantity_stays_until_the_level_changes() {
        let mut book = deep();
        book.take(Side::Sell, 0, 3);
        book.top(11, level(100, 5), level(101, 4));
        book.difference(Side::Sell, level(101, 4), false);
        book.snapshot(12, &[level(100, 5)], &[level(101, 4)]);
        assert_eq!(book.best(Side::Sell).map(BookLevel::available), Some(1));
        book.difference(Side::Sell, level(101, 8), false);
        assert_eq!(book.best(Side::Sell).map(BookLevel::available), Some(8));
    }

    proptest! {
        #[test]
        fn differences_build_the_same_book_as_a_map(
            changes in proptest::collection::vec((any::<bool>(), 1_i64..60, 0_i64..5), 0..200)
        ) {
            let mut book = Book::new();
            book.snapshot(1, &[], &[]);
            let mut maps = [BTreeMap::new(), BTreeMap::new()];
            for (bid, price, qty) in changes {
                let side = if bid { Side::Buy } else { Side::Sell };
                book.difference(side, level(price, qty), false);
                let map = &mut maps[side as usize];
                if qty == 0 { map.remove(&price) } else { map.insert(price, qty) };
                for side in [Side::Buy, Side::Sell] {
                    let map = &maps[side as usize];
                    let mut expected: Vec<_> = map.iter().map(|(p, q)| (*p, *q)).collect();
                    if side == Side::Buy {
                        expected.reverse();
                    }
                    let levels = (0..).map_while(|n| book.nth(side, n));
                    let found: Vec<_> = levels.map(|l| (l.price, l.qty)).collect();
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }
}
