//! The state of one instrument's market: book, last trade, mark price and bars.

use serde::{Deserialize, Serialize};

use crate::book::Book;
use crate::config::{Streams, Subscription};
use crate::decimal::{MARK_SCALE, pow10};
use crate::ids::{InstrumentId, StrategyId, Time};
use crate::instrument::Instrument;

/// Mark price and funding terms. Prices and rate have scale 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Mark price.
    pub mark: i64,
    /// Index price; 0 if unknown.
    pub index: i64,
    /// Funding rate.
    pub funding_rate: i64,
    /// When funding is next paid.
    pub next_funding: Time,
}

/// The state of one instrument's market.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MarketState {
    /// The book.
    pub book: Book,
    /// Price of the last trade.
    pub last: Option<i64>,
    /// Mark price and funding terms as recorded.
    pub recorded_mark: Option<Mark>,
    subscribers: Vec<Subscriber>,
    bars: Vec<Bar>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Subscriber {
    strategy: StrategyId,
    streams: Streams,
}

/// A running bar, and the strategies that receive it at its close.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Bar {
    interval_ms: i64,
    subscribers: Vec<StrategyId>,
    prices: Option<BarPrices>,
}

/// Prices and volume of a bar.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct BarPrices {
    /// Price of the first trade.
    pub open: i64,
    /// Highest price.
    pub high: i64,
    /// Lowest price.
    pub low: i64,
    /// Price of the last trade.
    pub close: i64,
    /// Sum of the quantities.
    pub volume: i64,
}

impl MarketState {
    /// Adds a strategy to those that receive this market.
    pub fn subscribe(&mut self, strategy: StrategyId, subscription: &Subscription) {
        self.subscribers.push(Subscriber {
            strategy,
            streams: subscription.streams,
        });
        for interval_ms in &subscription.bars_ms {
            match self
                .bars
                .iter_mut()
                .find(|bar| bar.interval_ms == *interval_ms)
            {
                Some(bar) => bar.subscribers.push(strategy),
                None => self.bars.push(Bar {
                    interval_ms: *interval_ms,
                    subscribers: vec![strategy],
                    prices: None,
                }),
            }
        }
    }

    /// The mark price at scale 8: the recorded one, or mid without one.
    #[inline]
    pub fn mark(&self, price_scale: u8) -> Option<i64> {
        match self.recorded_mark {
            Some(mark) => Some(mark.mark),
            None => self.mid(price_scale),
        }
    }

    /// Mid at scale 8; a half is rounded down if the scale cannot represent it.
    #[inline]
    pub fn mid(&self, price_scale: u8) -> Option<i64> {
        let twice = self.book.mid_twice()?;
        Some(if price_scale <= MARK_SCALE {
            let factor = pow10(MARK_SCALE - price_scale);
            if factor == 1 {
                twice / 2
            } else {
                twice * (factor / 2)
            }
        } else {
            twice / pow10(price_scale - MARK_SCALE) / 2
        })
    }

    /// The strategies that receive this market, and the streams of each.
    #[inline]
    pub fn subscribers(&self) -> impl Iterator<Item = (StrategyId, &Streams)> {
        let subscribers = self.subscribers.iter();
        subscribers.map(|one| (one.strategy, &one.streams))
    }

    /// Counts a trade in the running bars. Returns the intervals of the bars that it begins.
    #[inline]
    pub fn count_trade(&mut self, price: i64, qty: i64) -> Vec<i64> {
        let mut starting = Vec::new();
        for bar in &mut self.bars {
            if let Some(prices) = &mut bar.prices {
                prices.high = prices.high.max(price);
                prices.low = prices.low.min(price);
                prices.close = price;
                prices.volume = prices.volume.saturating_add(qty);
            } else {
                bar.prices = Some(BarPrices::first(price, qty));
                starting.push(bar.interval_ms);
            }
        }
        starting
    }

    /// Closes a bar, and returns it with the strategies that receive it. A bar without trades is
    /// flat at the last close.
    pub fn close_bar(&mut self, interval_ms: i64) -> Option<(BarPrices, Vec<StrategyId>)> {
        let mut bars = self.bars.iter_mut();
        let bar = bars.find(|bar| bar.interval_ms == interval_ms)?;
        let prices = bar.prices?;
        bar.prices = Some(BarPrices {
            volume: 0,
            ..BarPrices::first(prices.close, 0)
        });
        Some((prices, bar.subscribers.clone()))
    }
}

impl BarPrices {
    const fn first(price: i64, qty: i64) -> Self {
        Self {
            open: price,
            high: price,
            low: price,
            close: price,
            volume: qty,
        }
    }
}
/// Mark price and funding terms of an instrument as recorded; without them, mid counts as the mark
/// price.
pub fn mark_of(
    markets: &[MarketState],
    instruments: &[Instrument],
    instrument: InstrumentId,
) -> Option<Mark> {
    let market = markets.get(usize::from(instrument.0))?;
    market.recorded_mark.or_else(|| {
        let price_scale = instruments.get(usize::from(instrument.0))?.price_scale;
        Some(Mark {
            mark: market.mid(price_scale)?,
            index: 0,
            funding_rate: 0,
            next_funding: Time::NEVER,
        })
    })
}
