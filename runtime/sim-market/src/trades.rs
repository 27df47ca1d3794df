//! Recent public trades of one symbol, single and aggregated. The lists are bounded, and the oldest
//! trades are dropped first.

use std::collections::VecDeque;

/// Largest number of trades, and of aggregate trades, that are kept per symbol.
pub const TRADES_KEPT: usize = 5_000;

/// A public trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    /// Id, rising per symbol. Ids from [`Trades::skip`] are not public.
    pub id: i64,
    /// Price mantissa.
    pub price: i64,
    /// Quantity mantissa.
    pub qty: i64,
    /// Time, ms.
    pub time_ms: i64,
    /// Whether the buyer was the maker.
    pub buyer_is_maker: bool,
}

/// Trades of one taker, with the same time, price and side (docs/interface/market-data.md#trades).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggTrade {
    /// Id, rising by one per symbol.
    pub id: i64,
    /// Price mantissa.
    pub price: i64,
    /// Total quantity as a mantissa.
    pub qty: i64,
    /// First trade id.
    pub first_id: i64,
    /// Last trade id.
    pub last_id: i64,
    /// Time, ms.
    pub time_ms: i64,
    /// Whether the buyer was the maker.
    pub buyer_is_maker: bool,
}

/// The trades of one symbol.
#[derive(Clone, Debug)]
pub struct Trades {
    singles: VecDeque<Trade>,
    aggregates: VecDeque<AggTrade>,
    open: Option<AggTrade>,
    next_id: i64,
    next_aggregate_id: i64,
    /// Ids equal `place` modulo `step`.
    step: i64,
    place: i64,
}

impl Trades {
    /// An empty list with these first ids.
    pub fn new(first_id: i64, first_aggregate_id: i64) -> Self {
        Self {
            singles: VecDeque::new(),
            aggregates: VecDeque::new(),
            open: None,
            next_id: first_id,
            next_aggregate_id: first_aggregate_id,
            step: 1,
            place: 0,
        }
    }

    /// Trades, oldest first.
    pub fn singles(&self) -> &VecDeque<Trade> {
        &self.singles
    }

    /// The id of the next trade.
    pub const fn next_id(&self) -> i64 {
        self.next_id
    }

    /// Sets the id of the next trade, unless a higher id was used already.
    pub fn continue_at(&mut self, id: i64) {
        let id = self.next_id.max(id);
        self.next_id = id + (self.place - id).rem_euclid(self.step);
    }

    /// From now on, ids equal `place` modulo `step`. With a different `place` per symbol, no two
    /// symbols use the same id.
    pub fn number_apart(&mut self, place: i64, step: i64) {
        (self.place, self.step) = (place, step.max(1));
        self.continue_at(self.next_id);
    }

    /// Takes an id for a trade that is not public.
    pub const fn skip(&mut self) -> i64 {
        self.next_id += self.step;
        self.next_id - self.step
    }

    /// Adds a trade and gives it an id. Returns the trade, and the previous aggregate if this trade
    /// completed it.
    pub fn add(
        &mut self,
        time_ms: i64,
        price: i64,
        qty: i64,
        buyer_is_maker: bool,
    ) -> (Trade, Option<AggTrade>) {
        let trade = Trade {
            id: self.next_id,
            price,
            qty,
            time_ms,
            buyer_is_maker,
        };
        self.next_id += self.step;
        keep(&mut self.singles, trade);
        if let Some(open) = &mut self.open
            && (open.time_ms, open.price, open.buyer_is_maker) == (time_ms, price, buyer_is_maker)
        {
            open.qty += qty;
            open.last_id = trade.id;
            return (trade, None);
        }
        let complete = self.complete();
        self.open = Some(AggTrade {
            id: self.next_aggregate_id,
            price,
            qty,
            first_id: trade.id,
            last_id: trade.id,
            time_ms,
            buyer_is_maker,
        });
        self.next_aggregate_id += 1;
        (trade, complete)
    }

    /// Completes the current aggregate once its millisecond is over.
    pub fn complete_before(&mut self, now_ms: i64) -> Option<AggTrade> {
        if self.open?.time_ms < now_ms {
            self.complete()
        } else {
            None
        }
    }

    fn complete(&mut self) -> Option<AggTrade> {
        let complete = self.open.take()?;
        keep(&mut self.aggregates, complete);
        Some(complete)
    }

    /// Trades from an id on, or the last ones; at most `limit`, oldest first.
    pub fn since(&self, from_id: Option<i64>, limit: usize) -> impl Iterator<Item = &Trade> {
        let from = match from_id {
            Some(id) => self.singles.partition_point(|trade| trade.id < id),
            None => self.singles.len().saturating_sub(limit),
        };
        self.singles.range(from..).take(limit)
    }

    /// Aggregate trades from an id on, or within times (both included), or the last ones; at most
    /// `limit`, oldest first.
    pub fn select_aggregates(
        &self,
        from_id: Option<i64>,
        start_ms: Option<i64>,
        end_ms: Option<i64>,
        limit: usize,
    ) -> impl Iterator<Item = &AggTrade> {
        let all = &self.aggregates;
        let first = all.front().map_or(0, |aggregate| aggregate.id);
        let end = end_ms.map_or(all.len(), |end| all.partition_point(|a| a.time_ms <= end));
        let from = match (from_id, start_ms) {
            (Some(id), _) => index(id, first, all.len()),
            (None, Some(start)) => all.partition_point(|a| a.time_ms < start),
            (None, None) => end.saturating_sub(limit),
        };
        all.range(from.min(end)..end).take(limit)
    }
}

fn index(id: i64, first: i64, len: usize) -> usize {
    usize::try_from(id.saturating_sub(first))
        .unwrap_or(0)
        .min(len)
}

fn keep<T>(ring: &mut VecDeque<T>, item: T) {
    if ring.len() == TRADES_KEPT {
        ring.pop_front();
    }
    ring.push_back(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trades_of_one_taker_are_one_aggregate() {
        let mut trades = Trades::new(10, 5);
        assert_eq!(trades.add(1, 100, 2, false).1, None);
        assert_eq!(trades.add(1, 100, 3, false).1, None);
        let first = trades.add(1, 101, 1, false).1.unwrap();
        assert_eq!(
            (first.id, first.qty, first.first_id, first.last_id),
            (5, 5, 10, 11)
        );
        assert_eq!(trades.complete_before(1), None);
        let second = trades.complete_before(2).unwrap();
        assert_eq!((second.id, second.first_id, second.last_id), (6, 12, 12));
        assert_eq!(trades.complete_before(3), None);
        // The same price and time, but the other side.
        assert_eq!(trades.add(3, 100, 1, false).1, None);
        assert!(trades.add(3, 100, 1, true).1.is_some());
    }

    #[test]
    fn symbols_with_separate_numbers_share_no_id() {
        let ids = |place| {
            let mut trades = Trades::new(10, 5);
            trades.number_apart(place, 3);
            trades.add(1, 100, 2, false);
            trades.skip();
            trades.continue_at(30);
            trades.add(2, 100, 2, false);
            trades.singles().iter().map(|t| t.id).collect::<Vec<_>>()
        };
        assert_eq!(
            (ids(0), ids(1), ids(2)),
            (vec![12, 30], vec![10, 31], vec![11, 32])
        );
    }

    #[test]
    fn memory_is_bounded_and_ids_continue() {
        let mut trades = Trades::new(1, 1);
        for n in 0..TRADES_KEPT as i64 + 50 {
            trades.add(n, 100, 1, false);
        }
        assert_eq!(trades.singles().len(), TRADES_KEPT);
        assert_eq!(
            trades.since(Some(0), 2).map(|t| t.id).collect::<Vec<_>>(),
            [51, 52]
        );
        let last = TRADES_KEPT as i64 + 50;
        assert_eq!(
            trades.since(None, 1).map(|t| t.id).collect::<Vec<_>>(),
            [last]
        );
        assert_eq!(trades.since(Some(last + 1), 5).count(), 0);
    }

    #[test]
    fn aggregates_are_selected_by_id_or_time() {
        let mut trades = Trades::new(1, 1);
        for n in 0..10 {
            trades.add(n * 10, 100, 1, false);
        }
        trades.complete_before(1000);
        let ids = |from, start, end, limit| -> Vec<i64> {
            let selected = trades.select_aggregates(from, start, end, limit);
            selected.map(|aggregate| aggregate.id).collect()
        };
        assert_eq!(ids(None, None, None, 2), [9, 10]);
        assert_eq!(ids(Some(3), None, None, 2), [3, 4]);
        assert_eq!(ids(None, Some(20), Some(40), 9), [3, 4, 5]);
        assert_eq!(ids(None, None, Some(40), 2), [4, 5]);
        assert!(ids(None, Some(50), Some(40), 2).is_empty());
    }
}
