//! The recorded book of one instrument: what is displayed, and how much of it own orders have
//! already taken. Own orders are never in it, and own fills never change what it displays.
//!
//! Two kinds of recording feed it. With a depth snapshot it holds the levels; without one the
//! book is its top. Tops and depth differences carry comparable update ids: a top newer than the
//! depth trims the levels that it proves gone, and an older difference must not bring them back.

use windvane_engine::{Level, Side};

/// One displayed level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BookLevel {
    pub(crate) price: i64,
    pub(crate) qty: i64,
    /// Taken by own orders since the level was last updated.
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

/// One side, sorted so that the best level is the last.
#[derive(Clone, Debug)]
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
            // An unchanged quantity is no update: what was taken of it stays taken.
            (true, true) if self.levels[at].qty == level.qty => {}
            (true, true) => self.levels[at] = BookLevel::new(level),
            (true, false) => drop(self.levels.remove(at)),
            (false, true) => self.levels.insert(at, BookLevel::new(level)),
            (false, false) => {}
        }
    }

    /// The best level is `level`: what was better is gone.
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

    /// The levels are `levels`. Answers those before.
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

    /// The only level known is `level`.
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
#[derive(Clone, Debug)]
pub(crate) struct Book {
    sides: [Ladder; 2],
    /// A snapshot was seen and no gap since.
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

    /// Best bid and ask. False if the depth is newer, so that nothing changed.
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

    /// Whether a difference means anything: there is a book to apply it to.
    pub(crate) const fn takes_differences(&self) -> bool {
        self.deep
    }

    /// Whether the last top is newer than a difference with this id.
    pub(crate) const fn is_stale(&self, update_id: i64) -> bool {
        update_id < self.top_id
    }

    /// Applies one level of a difference. False if a newer top contradicts it.
    pub(crate) fn difference(&mut self, side: Side, level: Level, stale: bool) -> bool {
        let ladder = &mut self.sides[side as usize];
        let shadowed = |best: &BookLevel| level.price * ladder.sign >= best.price * ladder.sign;
        if stale && ladder.levels.last().is_none_or(shadowed) {
            return false;
        }
        ladder.set(level);
        true
    }

    /// All levels of a difference are applied.
    pub(crate) const fn advance(&mut self, update_id: i64) {
        self.depth_id = update_id;
    }

    /// The depth sequence is broken: only the top is left.
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

    /// Takes `qty` of what the `n`-th best level displays.
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

    /// The quantity displayed at a price; `None` where the recording does not say.
    pub(crate) fn displayed(&self, side: Side, price: i64) -> Option<i64> {
        let ladder = &self.sides[side as usize];
        let at = ladder.at_or_after(price);
        match ladder.levels.get(at) {
            Some(level) if level.price == price => Some(level.qty),
            // Better than the best, or a hole in a known book.
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
