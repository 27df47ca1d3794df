//! Events of the futures user stream (spec 2, Events). No other surface.

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
        /// The key, where it is told; the documents do not list it.
        listen_key: Option<String> = "listenKey",
    }

    /// `MARGIN_CALL`: the risk ratio is too high. Guidance only: liquidation may have begun.
    MarginCall {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        /// Cross wallet balance; only where a cross position is called.
        cross_wallet: Option<Exact> = "cw",
        #[serde(default, deserialize_with = "crate::keyed::list")]
        positions: Vec<PositionAtRisk> = "p",
    }

    /// A position of a margin call.
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
        /// Maintenance margin that is required.
        maintenance_margin: Exact = "mm",
    }

    /// `ACCOUNT_UPDATE`: balances, positions or a margin type changed. It holds only what
    /// changed: an empty list of positions (funding of a cross position) wipes none.
    AccountUpdate {
        /// Event time, milliseconds.
        event_ms: Whole = "E",
        /// Transaction time, milliseconds.
        transaction_ms: Whole = "T",
        change: AccountChange = "a",
    }

    /// What an `ACCOUNT_UPDATE` holds.
    AccountChange {
        reason: Word<UpdateReason> = "m",
        #[serde(default, deserialize_with = "crate::keyed::list")]
        balances: Vec<BalanceChange> = "B",
        #[serde(default, deserialize_with = "crate::keyed::list")]
        positions: Vec<PositionChange> = "P",
    }

    /// A balance after the change. What is available is never pushed (spec 4, section 6).
    BalanceChange {
        asset: String = "a",
        wallet: Exact = "wb",
        cross_wallet: Exact = "cw",
        /// Change of the balance but for profit and commission.
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
        /// Chosen by whoever placed it; see [`OrderUpdate::forced_close`].
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
        /// To be ignored for `TRAILING_STOP_MARKET`.
        stop_price: Option<Exact> = "sp",
        /// What happened.
        execution_type: Word<ExecutionType> = "x",
        /// What the order is now.
        status: Word<OrderStatus> = "X",
        order_id: Whole = "i",
        /// Quantity of this fill.
        last_qty: Exact = "l",
        /// Quantity of all fills.
        cum_qty: Exact = "z",
        /// Price of this fill.
        last_price: Exact = "L",
        /// Left out without commission.
        commission_asset: Option<String> = "N",
        /// Left out without commission.
        commission: Option<Exact> = "n",
        /// Order trade time, milliseconds.
        trade_ms: Whole = "T",
        /// Id of the trade; 0 where there is none.
        trade_id: Option<Whole> = "t",
        bids_notional: Option<Exact> = "b",
        asks_notional: Option<Exact> = "a",
        /// The own side was the maker of this fill.
        is_maker: Option<Flag> = "m",
        reduce_only: Option<Flag> = "R",
        working_type: Option<Word<WorkingType>> = "wt",
        /// Type before a trigger changed it.
        original_type: Option<Word<OrderType>> = "ot",
        position_side: Option<Word<PositionSide>> = "ps",
        /// Closes the whole position; with conditional orders.
        close_all: Option<Flag> = "cp",
        /// Only `TRAILING_STOP_MARKET`.
        activation_price: Option<Exact> = "AP",
        /// Percent; only `TRAILING_STOP_MARKET`.
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
    /// It reports a fill, liquidations (`CALCULATED`) included: `trade_id`, `last_qty` and
    /// `last_price` belong to it.
    pub fn is_fill(&self) -> bool {
        matches!(
            self.execution_type,
            Word::Known(ExecutionType::Trade | ExecutionType::Calculated)
        )
    }

    /// The venue itself placed the order, by liquidation or auto-deleveraging.
    pub fn forced_close(&self) -> Option<ForcedClose> {
        ForcedClose::of(&self.client_order_id)
    }
}
