//! The book as the source reports it, and the quantities that accounts took from its levels. Such a
//! level keeps the smaller quantity until the source changes it.

use std::collections::{BTreeMap, BTreeSet};

use windvane_model::{Level, Side};

/// Largest number of levels that are kept per side. Further levels are removed, and the differences
/// report the removal.
pub const LEVELS_KEPT: usize = 2_000;

/// The source's levels.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceBook {
    sides: [BTreeMap<i64, i64>; 2],
    /// Quantities that accounts took from levels which the source has not changed since. Never more
    /// than the source's quantity at that price.
    taken: [BTreeMap<i64, i64>; 2],
    /// The last top that arrived separately from the depth, and its id in the source.
    newer_top: Option<(i64, Level, Level)>,
    /// Prices, bids and asks, that changed since the owner took them.
    pub(crate) touched: [Vec<i64>; 2],
}

impl SourceBook {
    /// The remaining quantity of a level.
    pub(crate) fn left(&self, side: Side, price: i64) -> i64 {
        let of = |levels: &BTreeMap<i64, i64>| levels.get(&price).copied().unwrap_or(0);
        of(&self.sides[side as usize]) - of(&self.taken[side as usize])
    }

    /// Best bid and ask with a remaining quantity; zero for a side without one.
    pub(crate) fn top(&self) -> (Level, Level) {
        let level = |side: Side| {
            move |price: &i64| {
                let (price, qty) = (*price, self.left(side, *price));
                (qty > 0).then_some(Level { price, qty })
            }
        };
        let bid = self.sides[0].keys().rev().find_map(level(Side::Buy));
        let ask = self.sides[1].keys().find_map(level(Side::Sell));
        (bid.unwrap_or_default(), ask.unwrap_or_default())
    }

    /// Takes at most this quantity from a level for an account.
    pub(crate) fn take(&mut self, side: Side, price: i64, qty: i64) {
        let qty = qty.min(self.left(side, price));
        if qty > 0 {
            *self.taken[side as usize].entry(price).or_default() += qty;
            self.touched[side as usize].push(price);
        }
    }

    /// Sets a level; quantity 0 removes it. If the quantity is the same as before, nothing changes,
    /// and the taken quantity stays as it is.
    fn set(&mut self, side: Side, level: Level) {
        let levels = &mut self.sides[side as usize];
        let before = if level.qty > 0 {
            levels.insert(level.price, level.qty)
        } else {
            levels.remove(&level.price)
        };
        if before.unwrap_or(0) != level.qty.max(0) {
            self.taken[side as usize].remove(&level.price);
            self.touched[side as usize].push(level.price);
        }
    }

    /// Applies a difference. A difference older than the last top must not restore levels that the
    /// top removed.
    pub(crate) fn apply(&mut self, source_id: i64, bids: &[Level], asks: &[Level]) {
        for (side, levels) in [(Side::Buy, bids), (Side::Sell, asks)] {
            for level in levels {
                self.set(side, *level);
            }
        }
        match self.newer_top {
            Some((id, bid, ask)) if id > source_id => self.trim(bid, ask),
            _ => self.newer_top = None,
        }
        self.uncross(!bids.is_empty());
        self.bound();
    }

    /// Replaces the book.
    pub(crate) fn replace(&mut self, bids: &[Level], asks: &[Level]) {
        self.newer_top = None;
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

    /// Sets the best levels. Better levels are removed.
    pub(crate) fn set_top(&mut self, source_id: i64, bid: Level, ask: Level) {
        self.newer_top = Some((source_id, bid, ask));
        self.trim(bid, ask);
        self.bound();
    }

    fn trim(&mut self, bid: Level, ask: Level) {
        // If the source has no bid or no ask, no level on that side is better.
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

    /// Removes crossed levels, which are stale on one side: on the ask side if new bids have just
    /// arrived.
    fn uncross(&mut self, bids_are_fresh: bool) {
        while let (Some((&bid, _)), Some((&ask, _))) = (
            self.sides[0].last_key_value(),
            self.sides[1].first_key_value(),
        ) && bid >= ask
        {
            let (side, price) = if bids_are_fresh {
                (Side::Sell, ask)
            } else {
                (Side::Buy, bid)
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
}
