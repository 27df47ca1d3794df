//! The order book of one instrument: full depth once a snapshot was received, otherwise only the
//! best bid and ask.
//!
//! Top-of-book events arrive earlier than depth differences. Both carry the venue's update id, so
//! the newer one wins, level by level.

use serde::{Deserialize, Serialize};

use crate::market::Level;
use crate::order::Side;

/// One side. The best level is last, so that changes near the top move few elements.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Ladder {
    levels: Vec<Level>,
    /// +1 for bids, -1 for asks: a better price has the larger `price * sign`.
    sign: i64,
}

impl Ladder {
    fn set(&mut self, level: Level) {
        let key = level.price * self.sign;
        let at = self
            .levels
            .partition_point(|other| other.price * self.sign < key);
        let found = self
            .levels
            .get(at)
            .is_some_and(|other| other.price == level.price);
        match (found, level.qty > 0) {
            (true, true) => self.levels[at].qty = level.qty,
            (true, false) => {
                self.levels.remove(at);
            }
            (false, true) => self.levels.insert(at, level),
            (false, false) => {}
        }
    }

    /// Makes `best` the best level and removes every better one.
    fn trim_to(&mut self, best: Level) {
        let key = best.price * self.sign;
        while self
            .levels
            .last()
            .is_some_and(|level| best.qty == 0 || level.price * self.sign > key)
        {
            self.levels.pop();
        }
        if best.qty > 0 {
            self.set(best);
        }
    }

    fn best(&self) -> Level {
        self.levels.last().copied().unwrap_or_default()
    }
}

/// The book of one instrument.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Book {
    bid: Level,
    ask: Level,
    top_update_id: i64,
    depth_update_id: i64,
    synced: bool,
    bids: Ladder,
    asks: Ladder,
}

impl Default for Book {
    fn default() -> Self {
        let side = |sign| Ladder {
            levels: Vec::new(),
            sign,
        };
        Self {
            bid: Level::default(),
            ask: Level::default(),
            top_update_id: 0,
            depth_update_id: 0,
            synced: false,
            bids: side(1),
            asks: side(-1),
        }
    }
}

impl Book {
    /// Best bid; price and quantity 0 when the side is empty.
    #[inline]
    pub const fn bid(&self) -> Level {
        self.bid
    }

    /// Best ask; price and quantity 0 when the side is empty.
    #[inline]
    pub const fn ask(&self) -> Level {
        self.ask
    }

    /// Bid plus ask, twice the mid; `None` while a side is empty.
    #[inline]
    pub const fn mid_twice(&self) -> Option<i64> {
        if self.bid.qty > 0 && self.ask.qty > 0 {
            Some(self.bid.price + self.ask.price)
        } else {
            None
        }
    }

    /// The level at `depth` (0 is the best) on a side. `Buy` means bids, `Sell` means asks.
    pub fn level(&self, side: Side, depth: usize) -> Option<Level> {
        let (best, ladder) = match side {
            Side::Buy => (self.bid, &self.bids),
            Side::Sell => (self.ask, &self.asks),
        };
        if depth == 0 {
            return (best.qty > 0).then_some(best);
        }
        let index = ladder.levels.len().checked_sub(depth + 1)?;
        ladder.levels.get(index).copied()
    }

    /// Applies a top of book. Returns false if it is older than the depth and was ignored.
    #[inline]
    pub fn apply_top(&mut self, update_id: i64, bid: Level, ask: Level) -> bool {
        if self.synced {
            return self.apply_top_to_depth(update_id, bid, ask);
        }
        self.bid = bid;
        self.ask = ask;
        true
    }

    fn apply_top_to_depth(&mut self, update_id: i64, bid: Level, ask: Level) -> bool {
        if update_id != 0 && update_id < self.depth_update_id {
            return false;
        }
        self.top_update_id = update_id;
        self.bid = bid;
        self.ask = ask;
        self.bids.trim_to(bid);
        self.asks.trim_to(ask);
        true
    }

    /// Applies a depth difference or, with `snapshot`, the whole book.
    pub fn apply_depth(&mut self, update_id: i64, snapshot: bool, bids: &[Level], asks: &[Level]) {
        if snapshot {
            self.bids.levels.clear();
            self.asks.levels.clear();
            self.synced = true;
        } else if !self.synced {
            return;
        }
        self.depth_update_id = update_id;
        for level in bids {
            self.bids.set(*level);
        }
        for level in asks {
            self.asks.set(*level);
        }
        if self.top_update_id > update_id {
            self.bids.trim_to(self.bid);
            self.asks.trim_to(self.ask);
        } else {
            self.bid = self.bids.best();
            self.ask = self.asks.best();
        }
    }

    /// The larger of the last update ids of top and depth.
    pub fn update_id(&self) -> i64 {
        self.top_update_id.max(self.depth_update_id)
    }

    /// Whether the depth is known, and not only the top.
    pub const fn is_synced(&self) -> bool {
        self.synced
    }

    /// Discards the depth. Until the next snapshot the book has only its top.
    pub fn apply_gap(&mut self) {
        self.synced = false;
        self.bids.levels.clear();
        self.asks.levels.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(price: i64, qty: i64) -> Level {
        Level { price, qty }
    }

    fn synced() -> Book {
        let mut book = Book::default();
        let bids = [level(99, 5), level(100, 1), level(98, 7)];
        let asks = [level(102, 2), level(101, 3)];
        book.apply_depth(10, true, &bids, &asks);
        book
    }

    #[test]
    fn a_snapshot_in_any_order_gives_sorted_levels() {
        let book = synced();
        let bids: Vec<_> = (0..4).map_while(|i| book.level(Side::Buy, i)).collect();
        assert_eq!(bids, [level(100, 1), level(99, 5), level(98, 7)]);
        assert_eq!(book.level(Side::Sell, 1), Some(level(102, 2)));
        assert_eq!(book.mid_twice(), Some(201));
    }

    #[test]
    fn a_difference_before_any_snapshot_changes_nothing() {
        let mut book = Book::default();
        book.apply_top(1, level(5, 1), level(6, 1));
        book.apply_depth(2, false, &[level(5, 9)], &[]);
        assert_eq!(book.bid(), level(5, 1));
    }

    #[test]
    fn a_newer_top_removes_better_levels() {
        let mut book = synced();
        assert!(book.apply_top(11, level(99, 4), level(102, 9)));
        assert_eq!(book.level(Side::Buy, 0), Some(level(99, 4)));
        assert_eq!(book.level(Side::Buy, 1), Some(level(98, 7)));
        assert_eq!(book.level(Side::Sell, 0), Some(level(102, 9)));
        assert_eq!(book.level(Side::Sell, 1), None);
    }

    #[test]
    fn an_older_depth_does_not_restore_levels_behind_a_newer_top() {
        let mut book = synced();
        book.apply_top(20, level(99, 4), level(101, 3));
        book.apply_depth(15, false, &[level(100, 8), level(97, 1)], &[]);
        assert_eq!(book.bid(), level(99, 4));
        assert_eq!(book.level(Side::Buy, 2), Some(level(97, 1)));
    }

    #[test]
    fn an_older_top_is_ignored() {
        let mut book = synced();
        assert!(!book.apply_top(9, level(90, 4), level(91, 3)));
        assert_eq!(book.bid(), level(100, 1));
    }

    #[test]
    fn after_a_gap_only_the_top_is_left() {
        let mut book = synced();
        book.apply_gap();
        assert_eq!(book.bid(), level(100, 1));
        assert_eq!(book.level(Side::Buy, 1), None);
    }
}
