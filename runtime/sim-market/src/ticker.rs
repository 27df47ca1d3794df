//! The rolling 24-hour ticker of a symbol, computed from its minute bars. The window starts at a
//! whole minute.

use super::interval::{DAY_MS, Interval, MINUTE_MS};
use super::symbol::Symbol;

/// Statistics of the last 24 hours. Prices and quantities are mantissas in the symbol's scales.
/// Quote amounts have the sum of both scales.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticker {
    /// Start of the window, ms.
    pub open_ms: i64,
    /// End of the window, ms.
    pub close_ms: i64,
    /// First price of the window.
    pub open: i64,
    /// Highest price.
    pub high: i64,
    /// Lowest price.
    pub low: i64,
    /// Last price.
    pub last: i64,
    /// Quantity of the last trade.
    pub last_qty: i64,
    /// The last price before the window.
    pub previous_close: i64,
    /// Sum of quantities.
    pub volume: i128,
    /// Sum of price times quantity.
    pub quote_volume: i128,
    /// First and last trade id; -1 without trades.
    pub first_id: i64,
    /// Last trade id; -1 without trades.
    pub last_id: i64,
    /// Number of trades.
    pub count: i64,
}

impl Ticker {
    /// The ticker at a time.
    pub fn of(symbol: &Symbol, now_ms: i64) -> Self {
        let open_ms = (now_ms - DAY_MS).div_euclid(MINUTE_MS) * MINUTE_MS;
        let bars = symbol.klines.of(Interval::M1).bars();
        let from = bars.partition_point(|bar| bar.open_ms < open_ms);
        let last = symbol.last_price();
        let before = from.checked_sub(1).and_then(|n| bars.get(n));
        let mut ticker = Self {
            open_ms,
            close_ms: now_ms,
            last,
            last_qty: symbol.trades.singles().back().map_or(0, |trade| trade.qty),
            first_id: -1,
            last_id: -1,
            ..Self::default()
        };
        for bar in bars.range(from..).filter(|bar| bar.count > 0) {
            if ticker.count == 0 {
                (ticker.open, ticker.high, ticker.low) = (bar.open, bar.high, bar.low);
                ticker.first_id = bar.first_id;
            }
            ticker.high = ticker.high.max(bar.high);
            ticker.low = ticker.low.min(bar.low);
            ticker.last_id = bar.last_id;
            ticker.volume += bar.volume;
            ticker.quote_volume += bar.quote_volume;
            ticker.count += bar.count;
        }
        if ticker.count == 0 {
            (ticker.open, ticker.high, ticker.low) = (last, last, last);
        }
        ticker.previous_close = before.map_or(ticker.open, |bar| bar.close);
        ticker
    }

    /// `priceChange`.
    pub fn change(&self) -> i64 {
        self.last - self.open
    }

    /// `priceChangePercent`, at scale 3.
    pub fn change_percent(&self) -> i128 {
        if self.open == 0 {
            return 0;
        }
        i128::from(self.change()) * 100_000 / i128::from(self.open)
    }

    /// `weightedAvgPrice`, a price mantissa.
    pub fn weighted_average(&self) -> i128 {
        if self.volume == 0 {
            return i128::from(self.last);
        }
        self.quote_volume / self.volume
    }
}
