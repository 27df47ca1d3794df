//! Events of the spot user stream (docs/interface/user-stream.md#spot-events).

use windvane_model::{ExecutionType, OrderStatus, OrderType, Side, TimeInForce};

use crate::keyed::keyed;
use crate::wire::{Exact, Flag, Whole, Word};

keyed! {
    /// `outboundAccountPosition`: sent when an account balance changes. Balances that are not
    /// listed have not changed.
    OutboundAccountPosition {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        /// Time of the last account update, milliseconds.
        update_ms: Option<Whole> = "T",
        /// The reason, for example a withdrawal; the document does not list the values.
        reason: Option<String> = "m",
        #[serde(default, deserialize_with = "crate::keyed::list")]
        balances: Vec<AssetBalance> = "B",
    }

    /// Balance of one asset after the change.
    AssetBalance {
        asset: String = "a",
        free: Exact = "f",
        /// Locked in open orders.
        locked: Exact = "l",
    }

    /// `executionReport`: a spot order changed.
    ExecutionReport {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        symbol: String = "s",
        client_order_id: String = "c",
        side: Word<Side> = "S",
        order_type: Word<OrderType> = "o",
        time_in_force: Option<Word<TimeInForce>> = "f",
        /// Ordered quantity.
        qty: Exact = "q",
        price: Option<Exact> = "p",
        /// Average price of all fills.
        avg_price: Option<Exact> = "ap",
        stop_price: Option<Exact> = "P",
        /// The event that this report describes.
        execution_type: Word<ExecutionType> = "x",
        /// The status of the order now.
        status: Word<OrderStatus> = "X",
        order_id: Whole = "i",
        /// Quantity of this fill.
        last_qty: Exact = "l",
        /// Quantity of all fills.
        cum_qty: Exact = "z",
        /// Price of this fill.
        last_price: Exact = "L",
        commission: Option<Exact> = "n",
        commission_asset: Option<String> = "N",
        /// Transaction time, milliseconds.
        transaction_ms: Whole = "T",
        /// The document's "transaction id"; the trade id if this is a fill.
        trade_id: Option<Whole> = "t",
        /// Whether our order was the maker of this fill.
        is_maker: Option<Flag> = "m",
        /// Type before a trigger changed it.
        original_type: Option<Word<OrderType>> = "ot",
        /// Creation time of the order, milliseconds.
        created_ms: Option<Whole> = "O",
        /// Quote quantity of all fills.
        cum_quote: Option<Exact> = "Z",
        /// Quote quantity of this fill.
        last_quote: Option<Exact> = "Y",
        /// Ordered quote quantity.
        quote_order_qty: Option<Exact> = "Q",
    }
}

impl ExecutionReport {
    /// Whether the report is a fill. [`Self::trade_id`], `last_qty` and `last_price` then belong to
    /// the fill.
    pub fn is_fill(&self) -> bool {
        self.execution_type == Word::Known(ExecutionType::Trade)
    }
}
