//! Records of the public streams that no hot path reads: klines, tickers, liquidations (spec 4,
//! section 5). Trades, books and marks are [`crate::Frame`]s.

use windvane_model::{OrderStatus, OrderType, Side, TimeInForce};

use crate::keyed::keyed;
use crate::wire::words::Interval;
use crate::wire::{Exact, Flag, Whole, Word};

keyed! {
    /// `kline`: the bar of an interval so far.
    KlineEvent {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        symbol: String = "s",
        kline: Kline = "k",
    }

    /// A bar.
    Kline {
        /// Begin of the interval, milliseconds.
        open_ms: Whole = "t",
        /// Its last millisecond.
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
        /// The bar is complete.
        is_closed: Flag = "x",
        quote_volume: Exact = "q",
        /// Base volume that takers bought.
        taker_buy_volume: Option<Exact> = "V",
        /// Quote volume that takers bought.
        taker_buy_quote_volume: Option<Exact> = "Q",
    }

    /// `miniTicker`: the last 24 hours, in short.
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
        /// Begin of the 24 hours, milliseconds.
        open_ms: Option<Whole> = "O",
        /// Their end, milliseconds.
        close_ms: Option<Whole> = "C",
        first_trade_id: Option<Whole> = "F",
        last_trade_id: Option<Whole> = "L",
        /// Number of trades.
        trades: Option<Whole> = "n",
    }

    /// `forceOrder`: an order of a liquidation.
    ForceOrderEvent {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        order: ForceOrder = "o",
    }

    /// The order of a liquidation.
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
