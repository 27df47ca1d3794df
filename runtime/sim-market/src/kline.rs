//! Klines of one symbol in all intervals, built from its trades (or from its mark or index prices).
//! The history is bounded.

use std::collections::VecDeque;

use super::interval::Interval;

/// At most this many bars are kept per interval: the largest `limit` of the kline routes, and more
/// than the minutes of a day, which tickers need.
pub const KLINES_KEPT: usize = 1_502;

/// One bar. Prices and quantities are mantissas in the symbol's scales. Quote amounts have the sum
/// of both scales.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kline {
    /// Open time, ms.
    pub open_ms: i64,
    /// Close time, ms: the last millisecond of the bar.
    pub close_ms: i64,
    /// First price.
    pub open: i64,
    /// Highest price.
    pub high: i64,
    /// Lowest price.
    pub low: i64,
    /// Last price.
    pub close: i64,
    /// Base volume.
    pub volume: i128,
    /// Quote volume.
    pub quote_volume: i128,
    /// Base volume of takers that bought.
    pub taker_base: i128,
    /// Quote volume of takers that bought.
    pub taker_quote: i128,
    /// Number of trades, or data points of a price series.
    pub count: i64,
    /// First trade id; -1 without trades.
    pub first_id: i64,
    /// Last trade id; -1 without trades.
    pub last_id: i64,
}

/// The input of a bar: a trade, or only a price (quantity 0, id -1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Time, ms.
    pub time_ms: i64,
    /// Price.
    pub price: i64,
    /// Quantity.
    pub qty: i64,
    /// Trade id, or -1.
    pub id: i64,
    /// Whether the taker bought.
    pub taker_buys: bool,
}

impl Kline {
    fn flat(interval: Interval, open_ms: i64, price: i64) -> Self {
        Self {
            open_ms,
            close_ms: interval.next_ms(open_ms) - 1,
            open: price,
            high: price,
            low: price,
            close: price,
            first_id: -1,
            last_id: -1,
            ..Self::default()
        }
    }

    fn take(&mut self, point: &Point) {
        if self.count == 0 {
            (self.open, self.high, self.low) = (point.price, point.price, point.price);
            self.first_id = point.id;
        }
        self.high = self.high.max(point.price);
        self.low = self.low.min(point.price);
        self.close = point.price;
        self.last_id = point.id;
        self.count += 1;
        let base = i128::from(point.qty);
        let quote = base * i128::from(point.price);
        self.volume += base;
        self.quote_volume += quote;
        if point.taker_buys {
            self.taker_base += base;
            self.taker_quote += quote;
        }
    }
}

/// The bars of one interval, oldest first. Periods without trades have flat bars at the last price.
#[derive(Clone, Debug)]
pub struct Klines {
    interval: Interval,
    bars: VecDeque<Kline>,
}

impl Klines {
    fn new(interval: Interval) -> Self {
        Self {
            interval,
            bars: VecDeque::new(),
        }
    }

    /// All bars, oldest first; the last is open.
    pub fn bars(&self) -> &VecDeque<Kline> {
        &self.bars
    }

    /// Opens the bars up to this time. Returns the bar that closed, if one did.
    fn roll(&mut self, time_ms: i64) -> Option<Kline> {
        let last = *self.bars.back()?;
        if time_ms <= last.close_ms {
            return None;
        }
        let target = self.interval.open_ms(time_ms);
        let mut open_ms = last.close_ms + 1;
        // After a long silence, create only the bars that would be kept.
        let bars_missed = (target - open_ms) / (last.close_ms + 1 - last.open_ms);
        if bars_missed > KLINES_KEPT as i64 {
            self.bars.clear();
            let back = (last.close_ms + 1 - last.open_ms) * KLINES_KEPT as i64;
            open_ms = self.interval.open_ms(time_ms - back);
        }
        while open_ms <= target {
            self.push(Kline::flat(self.interval, open_ms, last.close));
            open_ms = self.interval.next_ms(open_ms);
        }
        Some(last)
    }

    fn take(&mut self, point: &Point) {
        self.roll(point.time_ms);
        if self.bars.is_empty() {
            let open_ms = self.interval.open_ms(point.time_ms);
            self.push(Kline::flat(self.interval, open_ms, point.price));
        }
        if let Some(bar) = self.bars.back_mut() {
            bar.take(point);
        }
    }

    fn push(&mut self, bar: Kline) {
        if self.bars.len() == KLINES_KEPT {
            self.bars.pop_front();
        }
        self.bars.push_back(bar);
    }

    /// Bars that open within the bounds, at most `limit`. With a start time these are the first
    /// ones, otherwise the last ones.
    pub fn select(
        &self,
        start_ms: Option<i64>,
        end_ms: Option<i64>,
        limit: usize,
    ) -> impl Iterator<Item = &Kline> {
        let from = start_ms.map_or(0, |start| self.bars.partition_point(|b| b.open_ms < start));
        let to = end_ms.map_or(self.bars.len(), |end| {
            self.bars.partition_point(|b| b.open_ms <= end)
        });
        let to = to.max(from);
        let from = match start_ms {
            Some(_) => from,
            None => from.max(to.saturating_sub(limit)),
        };
        self.bars.range(from..to).take(limit)
    }
}

/// The bars of all intervals.
#[derive(Clone, Debug)]
pub struct KlineTable([Klines; 15]);

impl Default for KlineTable {
    fn default() -> Self {
        Self(Interval::ALL.map(Klines::new))
    }
}

impl KlineTable {
    /// The bars of an interval.
    pub fn of(&self, interval: Interval) -> &Klines {
        &self.0[interval as usize]
    }

    /// Opens the bars up to this time, and calls `closed` for each bar that closed.
    pub fn roll(&mut self, time_ms: i64, mut closed: impl FnMut(Interval, Kline)) {
        for klines in &mut self.0 {
            if let Some(bar) = klines.roll(time_ms) {
                closed(klines.interval, bar);
            }
        }
    }

    /// Adds a trade or a price. Call [`Self::roll`] first, so that every closed bar is reported.
    pub fn take(&mut self, point: &Point) {
        for klines in &mut self.0 {
            klines.take(point);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::MINUTE_MS;
    use proptest::prelude::*;

    fn point(time_ms: i64, price: i64, qty: i64, id: i64) -> Point {
        Point {
            time_ms,
            price,
            qty,
            id,
            taker_buys: id % 2 == 0,
        }
    }

    #[test]
    fn minutes_without_trades_have_flat_bars() {
        let mut table = KlineTable::default();
        table.take(&point(10, 100, 1, 1));
        let mut closed = Vec::new();
        table.roll(3 * MINUTE_MS + 5, |interval, bar| {
            closed.push((interval, bar.count));
        });
        assert_eq!(closed, [(Interval::M1, 1), (Interval::M3, 1)]);
        let bars: Vec<_> = table.of(Interval::M1).bars().iter().collect();
        assert_eq!(bars.len(), 4);
        assert_eq!(
            (bars[3].open, bars[3].count, bars[3].first_id),
            (100, 0, -1)
        );
        assert_eq!(bars[3].close_ms, 4 * MINUTE_MS - 1);
    }

    #[test]
    fn a_long_silence_stays_bounded() {
        let mut table = KlineTable::default();
        table.take(&point(10, 100, 1, 1));
        table.roll(10_000_000 * MINUTE_MS, |_, _| {});
        assert!(table.of(Interval::M1).bars().len() <= KLINES_KEPT);
        let last = table.of(Interval::M1).bars().back().unwrap();
        assert_eq!(last.open_ms, 10_000_000 * MINUTE_MS);
    }

    #[test]
    fn bars_are_selected_from_the_start_time_or_from_the_end() {
        let mut table = KlineTable::default();
        for minute in 0..10 {
            table.take(&point(minute * MINUTE_MS, minute, 1, minute));
        }
        let klines = table.of(Interval::M1);
        let opens = |start, end, limit| -> Vec<i64> {
            let bars = klines.select(start, end, limit);
            bars.map(|bar| bar.open_ms / MINUTE_MS).collect()
        };
        assert_eq!(opens(None, None, 3), [7, 8, 9]);
        assert_eq!(opens(Some(2 * MINUTE_MS), None, 3), [2, 3, 4]);
        assert_eq!(opens(Some(2 * MINUTE_MS - 1), None, 1), [2]);
        assert_eq!(opens(None, Some(5 * MINUTE_MS), 2), [4, 5]);
        assert_eq!(opens(Some(5 * MINUTE_MS), Some(6 * MINUTE_MS), 9), [5, 6]);
        assert!(opens(Some(5 * MINUTE_MS), Some(MINUTE_MS), 9).is_empty());
    }

    proptest! {
        /// The expected bars follow directly from the definition: all trades are sorted into bars
        /// at once.
        #[test]
        fn bars_equal_those_computed_from_all_trades(
            trades in prop::collection::vec((0_i64..40 * MINUTE_MS, 1_i64..1000, 1_i64..50), 1..80),
        ) {
            let mut trades = trades;
            trades.sort_unstable();
            let mut table = KlineTable::default();
            for (id, (time, price, qty)) in trades.iter().enumerate() {
                table.take(&point(*time, *price, *qty, id as i64));
            }
            for interval in [Interval::M1, Interval::M3, Interval::M15, Interval::Month] {
                for bar in table.of(interval).bars() {
                    let inside: Vec<_> = trades.iter().enumerate()
                        .filter(|(_, t)| (bar.open_ms..=bar.close_ms).contains(&t.0)).collect();
                    prop_assert_eq!(bar.count, inside.len() as i64);
                    let prices = || inside.iter().map(|(_, t)| t.1);
                    if let (Some(first), Some(last)) = (inside.first(), inside.last()) {
                        prop_assert_eq!(bar.open, first.1.1);
                        prop_assert_eq!(bar.close, last.1.1);
                        prop_assert_eq!(Some(bar.high), prices().max());
                        prop_assert_eq!(Some(bar.low), prices().min());
                        prop_assert_eq!((bar.first_id, bar.last_id), (first.0 as i64, last.0 as i64));
                    }
                    let base: i64 = inside.iter().map(|(_, t)| t.2).sum();
                    let bought: i64 = inside.iter().filter(|(id, _)| id % 2 == 0)
                        .map(|(_, t)| t.1 * t.2).sum();
                    prop_assert_eq!(bar.volume, i128::from(base));
                    prop_assert_eq!(bar.taker_quote, i128::from(bought));
                }
                let total: i64 = table.of(interval).bars().iter().map(|b| b.count).sum();
                prop_assert_eq!(total, trades.len() as i64);
            }
        }
    }
}
