//! Events of the futures user stream (docs/interface/user-stream.md#futures-events).

use windvane_model::{
    ExecutionType, OrderStatus, OrderType, PositionSide, Side, TimeInForce, WorkingType,
};

use super::{ForcedClose, MarginType, UpdateReason};
use crate::keyed::keyed;
use crate::wire::{Exact, Flag, Whole, Word};

keyed! {
    /// `listenKeyExpired`: no further event arrives on the connection.
    ListenKeyExpired {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        /// The key, if the event has it; the documents do not list it.
        listen_key: Option<String> = "listenKey",
    }

    /// `MARGIN_CALL`: the risk ratio is too high. It is only a warning: liquidation may have begun
    /// already.
    MarginCall {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        /// Cross wallet balance; present only if a cross position is at risk.
        cross_wallet: Option<Exact> = "cw",
        #[serde(default, deserialize_with = "crate::keyed::list")]
        positions: Vec<PositionAtRisk> = "p",
    }

    /// A position in a margin call.
    PositionAtRisk {
        symbol: String = "s",
        side: Word<PositionSide> = "ps",
        /// Signed amount.
        amount: Exact = "pa",
        margin_type: Word<MarginType> = "mt",
        /// Margin of an isolated position.
        isolated_wallet: Option<Exact> = "iw",
        mark_price: Exact = "mp",
        unrealized_pnl: Exact = "up",
        /// Required maintenance margin.
        maintenance_margin: Exact = "mm",
    }

    /// `ACCOUNT_UPDATE`: balances, positions or a margin type changed. It has only the changed
    /// entries: an empty list of positions (funding of a cross position) does not remove any
    /// position.
    AccountUpdate {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        /// Transaction time, milliseconds.
        transaction_ms: Whole = "T",
        change: AccountChange = "a",
    }

    /// The content of an `ACCOUNT_UPDATE`.
    AccountChange {
        reason: Word<UpdateReason> = "m",
        #[serde(default, deserialize_with = "crate::keyed::list")]
        balances: Vec<BalanceChange> = "B",
        #[serde(default, deserialize_with = "crate::keyed::list")]
        positions: Vec<PositionChange> = "P",
    }

    /// A balance after the change. The venue never sends the available balance here
    /// (docs/interface/user-stream.md#account_update).
    BalanceChange {
        asset: String = "a",
        wallet: Exact = "wb",
        cross_wallet: Exact = "cw",
        /// Change of the balance, without profit and commission.
        change: Option<Exact> = "bc",
    }

    /// A position after the change.
    PositionChange {
        symbol: String = "s",
        /// Signed amount.
        amount: Exact = "pa",
        entry_price: Exact = "ep",
        /// Realized profit so far, before fees.
        realized: Option<Exact> = "cr",
        unrealized_pnl: Option<Exact> = "up",
        margin_type: Option<Word<MarginType>> = "mt",
        /// Margin of an isolated position.
        isolated_wallet: Option<Exact> = "iw",
        side: Word<PositionSide> = "ps",
    }

    /// `ORDER_TRADE_UPDATE`: an order was created or its status changed.
    OrderTradeUpdate {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        /// Transaction time, milliseconds.
        transaction_ms: Whole = "T",
        order: OrderUpdate = "o",
    }

    /// The order of an `ORDER_TRADE_UPDATE`.
    OrderUpdate {
        symbol: String = "s",
        /// Chosen by the sender of the order; see [`OrderUpdate::forced_close`].
        client_order_id: String = "c",
        side: Word<Side> = "S",
        order_type: Word<OrderType> = "o",
        time_in_force: Option<Word<TimeInForce>> = "f",
        /// Original quantity.
        qty: Exact = "q",
        /// Original price.
        price: Option<Exact> = "p",
        /// Average price of all fills.
        avg_price: Option<Exact> = "ap",
        /// Ignore it for `TRAILING_STOP_MARKET`.
        stop_price: Option<Exact> = "sp",
        /// The event that this update reports.
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
        /// Absent without a commission.
        commission_asset: Option<String> = "N",
        /// Absent without a commission.
        commission: Option<Exact> = "n",
        /// Order trade time, milliseconds.
        trade_ms: Whole = "T",
        /// Trade id; 0 if the update is not a trade.
        trade_id: Option<Whole> = "t",
        bids_notional: Option<Exact> = "b",
        asks_notional: Option<Exact> = "a",
        /// Whether our order was the maker of this fill.
        is_maker: Option<Flag> = "m",
        reduce_only: Option<Flag> = "R",
        working_type: Option<Word<WorkingType>> = "wt",
        /// Type before a trigger changed it.
        original_type: Option<Word<OrderType>> = "ot",
        position_side: Option<Word<PositionSide>> = "ps",
        /// Closes the whole position; sent with conditional orders.
        close_all: Option<Flag> = "cp",
        /// Only for `TRAILING_STOP_MARKET`.
        activation_price: Option<Exact> = "AP",
        /// Percent; only for `TRAILING_STOP_MARKET`.
        callback_rate: Option<Exact> = "cr",
        /// Realized profit of the trade.
        realized_profit: Option<Exact> = "rp",
    }

    /// `ACCOUNT_CONFIG_UPDATE`: either the leverage of a symbol or a mode of the account.
    AccountConfigUpdate {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        /// Transaction time, milliseconds.
        transaction_ms: Whole = "T",
        leverage: Option<LeverageChange> = "ac",
        modes: Option<ModeChange> = "ai",
    }

    /// The leverage of a symbol.
    LeverageChange {
        symbol: String = "s",
        leverage: Whole = "l",
    }

    /// The modes of the account.
    ModeChange {
        multi_assets: Option<Flag> = "j",
        /// Fees are paid in a specified token.
        fee_token: Option<Flag> = "f",
        /// Hedge mode (dual-side positions).
        hedge: Option<Flag> = "d",
    }
}

impl OrderUpdate {
    /// Whether the update is a fill, liquidations (`CALCULATED`) included. `trade_id`, `last_qty`
    /// and `last_price` then belong to the fill.
    pub fn is_fill(&self) -> bool {
        matches!(
            self.execution_type,
            Word::Known(ExecutionType::Trade | ExecutionType::Calculated)
        )
    }

    /// Whether the venue itself placed the order, and why: liquidation or auto-deleveraging.
    pub fn forced_close(&self) -> Option<ForcedClose> {
        ForcedClose::of(&self.client_order_id)
    }
}
