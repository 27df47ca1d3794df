//! The public book of one symbol, and the differences on its depth streams
//! (docs/interface/market-data.md#joining-a-local-book). The book consists of the source's levels,
//! minus what the accounts took of them, plus the resting orders of the accounts.
//!
//! # Never crossed
//! An account's order that crosses the source or another order is about to trade. It is not shown
//! until it has traded, so the shown book is never crossed.
//!
//! # Update ids
//! Every change of a level takes the next id. Each speed has a chain of differences: `U` is the `u`
//! of the previous difference plus one. Sending a difference takes an id of its own. So a snapshot
//! is always later than the last difference, and both joining rules find their first difference:
//! futures `U <= lastUpdateId <= u`, spot `U <= lastUpdateId + 1 <= u`.

use std::collections::{BTreeMap, BTreeSet};

use windvane_model::{Level, Side, Surface};

use super::source_book::SourceBook;

/// The interval of a depth stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Speed {
    /// `@100ms`.
    Ms100,
    /// `@depth` without a speed on futures.
    Ms250,
    /// `@depth` without a speed on spot.
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
    /// The speed of its stream.
    pub speed: Speed,
    /// `U`.
    pub first_id: i64,
    /// `u`.
    pub last_id: i64,
    /// `pu`: the `u` of the previous difference.
    pub previous_id: i64,
    /// Changed bids with absolute quantities, best first.
    pub bids: Vec<Level>,
    /// Changed asks with absolute quantities, best first.
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
    source: SourceBook,
    own: OwnOrders,
    arrivals: u64,
    /// The public levels.
    sides: [BTreeMap<i64, i64>; 2],
    update_id: i64,
    chains: Vec<Chain>,
    /// Prices at which the book, or an account's quantity in it, changed since the last
    /// [`Book::take_changes`].
    fresh: [Vec<i64>; 2],
    /// Exclusive bounds for the account orders that are shown: bids lower than the first, asks
    /// higher than the second.
    inside: (i64, i64),
}

/// The resting orders of the accounts, by price, in the order in which the accounts arrived there.
type OwnOrders = [BTreeMap<i64, Vec<Own>>; 2];

/// The resting quantity of one account at a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Own {
    account: usize,
    qty: i64,
    /// Quantity of the account's oldest order at the price.
    first_qty: i64,
    /// A counter that rises with every arrival of an account at a price.
    arrival: u64,
}

/// Two orders of accounts that cross each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossed {
    /// Account and price of the bid.
    pub bid: (usize, i64),
    /// Account and price of the ask.
    pub ask: (usize, i64),
    /// The quantity that they can trade.
    pub qty: i64,
    /// Whether the bid arrived first.
    pub bid_is_older: bool,
}

impl Book {
    /// An empty book with this first update id.
    pub fn new(surface: Surface, update_id: i64) -> Self {
        let chain = |speed: &Speed| Chain {
            speed: *speed,
            last_id: update_id,
            changed: [BTreeSet::new(), BTreeSet::new()],
        };
        Self {
            source: SourceBook::default(),
            own: OwnOrders::default(),
            arrivals: 0,
            sides: [BTreeMap::new(), BTreeMap::new()],
            // Later than the last ids of the chains from the start, as after every difference.
            update_id: update_id + 1,
            chains: Speed::of(surface).iter().map(chain).collect(),
            fresh: [Vec::new(), Vec::new()],
            inside: (i64::MAX, i64::MIN),
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
        // Bids start at the highest price, asks at the lowest.
        let (bids, asks) = match side {
            Side::Buy => (Some(levels.rev()), None),
            Side::Sell => (None, Some(levels)),
        };
        let bids = bids.into_iter().flatten().map(level);
        bids.chain(asks.into_iter().flatten().map(level))
    }

    /// Best bid and ask. A side without levels is zero.
    pub fn top(&self) -> (Level, Level) {
        let level = |(&price, &qty): (&i64, &i64)| Level { price, qty };
        let bid = self.sides[0].last_key_value().map(level);
        let ask = self.sides[1].first_key_value().map(level);
        (bid.unwrap_or_default(), ask.unwrap_or_default())
    }

    /// Best bid and ask without the orders of the accounts.
    pub fn source_top(&self) -> (Level, Level) {
        self.source.top()
    }

    /// The remaining quantity of a level of the source.
    pub fn left(&self, side: Side, price: i64) -> i64 {
        self.source.left(side, price)
    }

    /// Applies a difference of the source. A difference older than the last top must not restore
    /// levels that the top removed.
    pub fn apply(&mut self, source_id: i64, bids: &[Level], asks: &[Level]) {
        self.source.apply(source_id, bids, asks);
        self.refresh();
    }

    /// Replaces the source's book.
    pub fn replace(&mut self, bids: &[Level], asks: &[Level]) {
        self.source.replace(bids, asks);
        self.refresh();
    }

    /// Sets the source's best levels. Better levels are removed.
    pub fn set_top(&mut self, source_id: i64, bid: Level, ask: Level) {
        self.source.set_top(source_id, bid, ask);
        self.refresh();
    }

    /// Removes a quantity that an account took from the source's level.
    pub fn take(&mut self, side: Side, price: i64, qty: i64) {
        self.source.take(side, price, qty);
        self.refresh();
    }

    /// Replaces the resting orders of an account, bids and asks. Orders at one price are listed
    /// oldest first.
    pub fn rest(&mut self, account: usize, sides: [Vec<Level>; 2]) {
        for (side, levels) in [Side::Buy, Side::Sell].into_iter().zip(sides) {
            self.rest_of(account, side, &levels);
        }
        self.refresh();
    }

    fn rest_of(&mut self, account: usize, side: Side, levels: &[Level]) {
        // The total quantity, and the quantity of the oldest order.
        let mut now: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for level in levels.iter().filter(|level| level.qty > 0) {
            now.entry(level.price).or_insert((0, level.qty)).0 += level.qty;
        }
        let own = &mut self.own[side as usize];
        let mut changed = Vec::new();
        for (price, at) in own.iter_mut() {
            if let Some(own) = at.iter_mut().find(|own| own.account == account) {
                let (qty, first_qty) = now.remove(price).unwrap_or_default();
                if own.qty != qty {
                    changed.push(*price);
                }
                (own.qty, own.first_qty) = (qty, first_qty);
                at.retain(|own| own.qty > 0);
            }
        }
        for (price, (qty, first_qty)) in now {
            self.arrivals += 1;
            own.entry(price).or_default().push(Own {
                account,
                qty,
                first_qty,
                arrival: self.arrivals,
            });
            changed.push(price);
        }
        own.retain(|_, at| !at.is_empty());
        // An account with orders at a price receives a different quantity there. So report the
        // change even if the public level stays the same.
        self.fresh[side as usize].extend(&changed);
        self.source.touched[side as usize].append(&mut changed);
    }

    /// The accounts with orders at a price, in the order in which they arrived there.
    pub fn accounts_at(&self, side: Side, price: i64) -> Vec<usize> {
        let at = self.own[side as usize].get(&price);
        at.map_or_else(Vec::new, |at| at.iter().map(|own| own.account).collect())
    }

    /// The best orders of accounts, if they cross each other.
    pub fn crossed(&self) -> Option<Crossed> {
        let (bid_price, bids) = self.own[0].last_key_value()?;
        let (ask_price, asks) = self.own[1].first_key_value()?;
        let (bid, ask) = (bids.first()?, asks.first()?);
        (bid_price >= ask_price).then_some(Crossed {
            bid: (bid.account, *bid_price),
            ask: (ask.account, *ask_price),
            qty: bid.first_qty.min(ask.first_qty),
            bid_is_older: bid.arrival < ask.arrival,
        })
    }

    /// The quantity of a level that an account's venue receives: the public quantity without the
    /// account's own orders. If the account has orders there, the orders of other accounts are left
    /// out too, so that accounts do not block each other.
    pub fn qty_seen_by(&self, account: usize, side: Side, price: i64) -> i64 {
        let shown = self.sides[side as usize].get(&price).copied().unwrap_or(0);
        let at = self.own[side as usize].get(&price);
        match at {
            Some(at) if at.iter().any(|own| own.account == account) => self.left(side, price),
            _ => shown,
        }
    }

    /// Whether no account has orders in the book.
    pub fn is_sources_alone(&self) -> bool {
        self.own.iter().all(BTreeMap::is_empty)
    }

    /// Updates the public levels.
    fn refresh(&mut self) {
        let mut touched = std::mem::take(&mut self.source.touched);
        let inside = self.bounds();
        if inside != self.inside {
            self.inside = inside;
            for (side, own) in self.own.iter().enumerate() {
                touched[side].extend(own.keys());
            }
        }
        for side in [Side::Buy, Side::Sell] {
            for price in touched[side as usize].drain(..) {
                let qty = self.source.left(side, price) + self.shown_own(side, price);
                self.publish(side, Level { price, qty });
            }
        }
        // Keep the buffers for the next call.
        self.source.touched = touched;
    }

    /// The prices from which orders of the accounts would cross; see the module documentation.
    fn bounds(&self) -> (i64, i64) {
        if self.is_sources_alone() {
            return (i64::MAX, i64::MIN);
        }
        let (bid, ask) = self.source.top();
        let (bid, ask) = (
            (bid.qty > 0).then_some(bid.price),
            (ask.qty > 0).then_some(ask.price),
        );
        let own_bid = self.own[0].last_key_value().map(|(price, _)| *price);
        let own_ask = self.own[1].first_key_value().map(|(price, _)| *price);
        let lowest_ask = ask.into_iter().chain(own_ask).min();
        let highest_bid = bid.into_iter().chain(own_bid).max();
        (
            lowest_ask.unwrap_or(i64::MAX),
            highest_bid.unwrap_or(i64::MIN),
        )
    }

    fn shown_own(&self, side: Side, price: i64) -> i64 {
        let Some(at) = self.own[side as usize].get(&price) else {
            return 0;
        };
        let shown = match side {
            Side::Buy => price < self.inside.0,
            Side::Sell => price > self.inside.1,
        };
        if shown {
            at.iter().map(|own| own.qty).sum()
        } else {
            0
        }
    }

    /// Publishes a level; quantity 0 removes it.
    fn publish(&mut self, side: Side, level: Level) {
        let levels = &mut self.sides[side as usize];
        let before = if level.qty > 0 {
            levels.insert(level.price, level.qty)
        } else {
            levels.remove(&level.price)
        };
        if before.unwrap_or(0) == level.qty {
            return;
        }
        self.update_id += 1;
        self.fresh[side as usize].push(level.price);
        for chain in &mut self.chains {
            chain.changed[side as usize].insert(level.price);
        }
    }

    /// Takes the prices, bids and asks, at which the quantities for accounts may have changed since
    /// the last call, each price once. False if nothing changed.
    pub fn take_changes(&mut self, prices: &mut [Vec<i64>; 2]) -> bool {
        for (fresh, prices) in self.fresh.iter_mut().zip(prices.iter_mut()) {
            prices.clear();
            prices.append(fresh);
            prices.sort_unstable();
            prices.dedup();
        }
        prices.iter().any(|prices| !prices.is_empty())
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
    use super::super::source_book::LEVELS_KEPT;
    use super::*;
    use proptest::prelude::*;

    fn level(price: i64, qty: i64) -> Level {
        Level { price, qty }
    }

    fn prices(book: &Book, side: Side) -> Vec<(i64, i64)> {
        book.levels(side).map(|l| (l.price, l.qty)).collect()
    }

    #[test]
    fn an_older_diff_does_not_restore_levels_removed_by_a_top() {
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
    fn distant_levels_are_removed_with_a_difference() {
        let mut book = Book::new(Surface::Spot, 0);
        let bids: Vec<_> = (1..=LEVELS_KEPT as i64).map(|p| level(p, 1)).collect();
        book.apply(1, &bids, &[]);
        book.difference(Speed::Ms100).unwrap();
        book.apply(1, &[level(LEVELS_KEPT as i64 + 1, 1)], &[]);
        let difference = book.difference(Speed::Ms100).unwrap();
        assert_eq!(book.levels(Side::Buy).count(), LEVELS_KEPT);
        assert_eq!(difference.bids.last(), Some(&level(1, 0)));
    }

    fn rests(bids: &[Level], asks: &[Level]) -> [Vec<Level>; 2] {
        [bids.to_vec(), asks.to_vec()]
    }

    #[test]
    fn orders_of_accounts_are_added_to_the_sources_levels() {
        let mut book = Book::new(Surface::Spot, 0);
        book.replace(&[level(99, 5)], &[level(105, 5)]);
        book.rest(0, rests(&[level(99, 2), level(99, 1)], &[level(103, 4)]));
        book.rest(1, rests(&[level(99, 7), level(100, 1)], &[]));
        assert_eq!(prices(&book, Side::Buy), [(100, 1), (99, 15)]);
        assert_eq!(prices(&book, Side::Sell), [(103, 4), (105, 5)]);
        assert_eq!(book.accounts_at(Side::Buy, 99), [0, 1]);
        // Without the account's own orders; where it has some, without those of others too.
        assert_eq!(book.qty_seen_by(0, Side::Buy, 99), 5);
        assert_eq!(book.qty_seen_by(2, Side::Buy, 99), 15);
        assert_eq!(book.qty_seen_by(0, Side::Sell, 103), 0);
        assert_eq!(book.qty_seen_by(1, Side::Sell, 103), 4);
        book.rest(0, rests(&[], &[]));
        book.rest(1, rests(&[], &[]));
        assert_eq!(prices(&book, Side::Buy), [(99, 5)]);
        assert!(book.is_sources_alone());
    }

    #[test]
    fn a_taken_quantity_returns_only_with_a_change_of_the_level() {
        let mut book = Book::new(Surface::Spot, 0);
        book.replace(&[level(99, 5)], &[level(105, 5), level(106, 1)]);
        book.take(Side::Sell, 105, 3);
        assert_eq!(prices(&book, Side::Sell), [(105, 2), (106, 1)]);
        book.set_top(1, level(99, 4), level(105, 5));
        assert_eq!(prices(&book, Side::Sell), [(105, 2), (106, 1)]);
        book.take(Side::Sell, 105, 9);
        assert_eq!(book.source_top(), (level(99, 4), level(106, 1)));
        book.apply(2, &[], &[level(105, 7)]);
        assert_eq!(prices(&book, Side::Sell), [(105, 7), (106, 1)]);
    }

    #[test]
    fn crossing_orders_are_hidden_until_they_have_traded() {
        let mut book = Book::new(Surface::Spot, 0);
        book.replace(&[level(99, 5)], &[level(105, 5)]);
        book.rest(1, rests(&[], &[level(101, 2), level(101, 1)]));
        book.rest(0, rests(&[level(102, 1), level(98, 1)], &[]));
        assert_eq!(prices(&book, Side::Buy), [(99, 5), (98, 1)]);
        assert_eq!(prices(&book, Side::Sell), [(105, 5)]);
        let crossed = Crossed {
            bid: (0, 102),
            ask: (1, 101),
            qty: 1,
            bid_is_older: false,
        };
        assert_eq!(book.crossed(), Some(crossed));
        book.rest(1, rests(&[], &[level(101, 1)]));
        book.rest(0, rests(&[level(98, 1)], &[]));
        assert_eq!(book.crossed(), None);
        assert_eq!(prices(&book, Side::Sell), [(101, 1), (105, 5)]);
        // The source reaches an order, which is hidden until it has filled.
        book.apply(1, &[level(101, 2)], &[]);
        assert_eq!(prices(&book, Side::Buy), [(101, 2), (99, 5), (98, 1)]);
        assert_eq!(prices(&book, Side::Sell), [(105, 5)]);
        book.take(Side::Buy, 101, 2);
        assert_eq!(prices(&book, Side::Sell), [(101, 1), (105, 5)]);
    }

    /// A client that follows docs/interface/market-data.md#joining-a-local-book exactly.
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
        /// With a subscription at any time and a snapshot at any later time, the client's book
        /// equals the server's.
        #[test]
        fn a_book_joined_by_the_documented_rule_equals_the_servers(
            futures: bool,
            steps in prop::collection::vec((0_u8..11, 1_i64..40, 0_i64..4), 1..120),
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
                        7 => book.rest(*qty as usize, rests(&[level(*price, *qty)], &[])),
                        8 => {
                            let asks = [level(*price + 10, *qty), level(*price + 20, 1)];
                            book.rest(*qty as usize, rests(&[level(1, 1)], &asks));
                        }
                        9 => book.take(Side::Sell, *price + 20, *qty),
                        _ => {
                            // Other speeds take ids too.
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
                let (bid, ask) = book.top();
                prop_assert!(bid.qty == 0 || ask.qty == 0 || bid.price < ask.price);
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
