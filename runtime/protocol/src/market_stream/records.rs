//! Records of the less frequent public streams: klines, tickers, liquidations
//! (docs/interface/market-data.md#stream-topics). Trades, books and marks are [`crate::Frame`]s.

use windvane_model::{OrderStatus, OrderType, Side, TimeInForce};

use crate::keyed::keyed;
use crate::wire::enums::Interval;
use crate::wire::{Exact, Flag, Whole, Word};

keyed! {
    /// `kline`: the current state of an interval's bar.
    KlineEvent {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        symbol: String = "s",
        kline: Kline = "k",
    }

    /// One bar of a kline stream.
    Kline {
        /// Start of the interval, milliseconds.
        open_ms: Whole = "t",
        /// Last millisecond of the interval.
        close_ms: Whole = "T",
        symbol: String = "s",
        interval: Word<Interval> = "i",
        /// First trade of the bar.
        first_trade_id: Option<Whole> = "f",
        /// Last trade of the bar.
        last_trade_id: Option<Whole> = "L",
        open: Exact = "o",
        close: Exact = "c",
        high: Exact = "h",
        low: Exact = "l",
        volume: Exact = "v",
        /// Number of trades.
        trades: Whole = "n",
        /// Whether the bar is complete.
        is_closed: Flag = "x",
        quote_volume: Exact = "q",
        /// Base volume that takers bought.
        taker_buy_volume: Option<Exact> = "V",
        /// Quote volume that takers bought.
        taker_buy_quote_volume: Option<Exact> = "Q",
    }

    /// `miniTicker`: the last 24 hours, short form.
    MiniTicker {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        symbol: String = "s",
        last_price: Exact = "c",
        open: Exact = "o",
        high: Exact = "h",
        low: Exact = "l",
        volume: Exact = "v",
        quote_volume: Exact = "q",
    }

    /// `ticker`: the last 24 hours, with the fields of the REST ticker under short keys.
    Ticker {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        symbol: String = "s",
        change: Exact = "p",
        change_percent: Exact = "P",
        /// Weighted average price.
        average: Option<Exact> = "w",
        /// Spot: last price before the 24 hours.
        previous_close: Option<Exact> = "x",
        last_price: Exact = "c",
        last_qty: Option<Exact> = "Q",
        /// Spot.
        bid_price: Option<Exact> = "b",
        /// Spot.
        bid_qty: Option<Exact> = "B",
        /// Spot.
        ask_price: Option<Exact> = "a",
        /// Spot.
        ask_qty: Option<Exact> = "A",
        open: Exact = "o",
        high: Exact = "h",
        low: Exact = "l",
        volume: Exact = "v",
        quote_volume: Exact = "q",
        /// Start of the 24 hours, milliseconds.
        open_ms: Option<Whole> = "O",
        /// End of the 24 hours, milliseconds.
        close_ms: Option<Whole> = "C",
        first_trade_id: Option<Whole> = "F",
        last_trade_id: Option<Whole> = "L",
        /// Number of trades.
        trades: Option<Whole> = "n",
    }

    /// `forceOrder`: a liquidation order.
    ForceOrderEvent {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        order: ForceOrder = "o",
    }

    /// A liquidation order.
    ForceOrder {
        symbol: String = "s",
        side: Word<Side> = "S",
        order_type: Word<OrderType> = "o",
        time_in_force: Word<TimeInForce> = "f",
        qty: Exact = "q",
        price: Exact = "p",
        avg_price: Exact = "ap",
        status: Word<OrderStatus> = "X",
        /// Quantity of the last fill.
        last_qty: Exact = "l",
        /// Quantity of all fills.
        cum_qty: Exact = "z",
        /// Trade time, milliseconds.
        trade_ms: Whole = "T",
    }
}
