//! The futures account: modes, balances, trades, income, listen keys
//! (docs/interface/account.md#futures-account-routes).

use windvane_model::{PositionSide, Side};

use crate::wire::common::{CommissionRate, Empty, ListenKey, SimpleResult};
use crate::wire::enums::IncomeType;
use crate::wire::fields::{record, request};
use crate::wire::scalar::{Exact, Flag, Text, Whole, Word};

request! {
    /// Change position mode (docs/interface/futures.md#position-mode), for every symbol.
    ChangePositionMode = "futures.change_position_mode" -> SimpleResult {
        /// `true`: hedge mode, `false`: one-way mode.
        dual_side_position: bool = "dualSidePosition",
    }
}

record! {
    /// Position mode (docs/interface/futures.md#position-mode).
    PositionMode {
        /// `true`: hedge mode, `false`: one-way mode.
        dual_side_position: Flag = "dualSidePosition",
    }
}

request! {
    /// Get current position mode (docs/interface/futures.md#position-mode).
    GetPositionMode = "futures.position_mode" -> PositionMode {}
}

request! {
    /// Change multi-assets mode (docs/interface/futures.md#multi-assets-mode).
    ChangeMultiAssetsMode = "futures.change_multi_assets_mode" -> SimpleResult {
        multi_assets_margin: bool = "multiAssetsMargin",
    }
}

record! {
    /// Multi-assets mode (docs/interface/futures.md#multi-assets-mode).
    MultiAssetsMode {
        multi_assets_margin: Flag = "multiAssetsMargin",
    }
}

request! {
    /// Get current multi-assets mode (docs/interface/futures.md#multi-assets-mode).
    GetMultiAssetsMode = "futures.multi_assets_mode" -> MultiAssetsMode {}
}

record! {
    /// Balance of one asset (docs/interface/account.md#futures-balances).
    Balance {
        account_alias?: String = "accountAlias",
        asset: String = "asset",
        balance: Exact = "balance",
        cross_wallet_balance?: Exact = "crossWalletBalance",
        cross_un_pnl?: Exact = "crossUnPnl",
        available_balance?: Exact = "availableBalance",
        max_withdraw_amount?: Exact = "maxWithdrawAmount",
        margin_available?: Flag = "marginAvailable",
        /// Milliseconds.
        update_time?: Whole = "updateTime",
    }
}

request! {
    /// Account balance (docs/interface/account.md#futures-balances).
    GetBalance = "futures.balance" -> Vec<Balance> {}
}

record! {
    /// Account information (docs/interface/account.md#futures-account).
    Account {
        fee_tier?: Whole = "feeTier",
        /// Not in the core interface: some services omit it.
        can_trade?: Flag = "canTrade",
        can_deposit?: Flag = "canDeposit",
        can_withdraw?: Flag = "canWithdraw",
        /// Milliseconds.
        update_time?: Whole = "updateTime",
        total_initial_margin?: Exact = "totalInitialMargin",
        total_maint_margin?: Exact = "totalMaintMargin",
        total_wallet_balance: Exact = "totalWalletBalance",
        total_unrealized_profit?: Exact = "totalUnrealizedProfit",
        total_margin_balance?: Exact = "totalMarginBalance",
        total_position_initial_margin?: Exact = "totalPositionInitialMargin",
        total_open_order_initial_margin?: Exact = "totalOpenOrderInitialMargin",
        total_cross_wallet_balance?: Exact = "totalCrossWalletBalance",
        total_cross_un_pnl?: Exact = "totalCrossUnPnl",
        available_balance?: Exact = "availableBalance",
        max_withdraw_amount?: Exact = "maxWithdrawAmount",
        assets: Vec<AccountAsset> = "assets",
        positions: Vec<AccountPosition> = "positions",
    }
}

record! {
    /// One asset of [`Account`]. Only the array is known, so every field except the asset is
    /// optional.
    AccountAsset {
        asset: String = "asset",
        wallet_balance?: Exact = "walletBalance",
        unrealized_profit?: Exact = "unrealizedProfit",
        margin_balance?: Exact = "marginBalance",
        maint_margin?: Exact = "maintMargin",
        initial_margin?: Exact = "initialMargin",
        position_initial_margin?: Exact = "positionInitialMargin",
        open_order_initial_margin?: Exact = "openOrderInitialMargin",
        cross_wallet_balance?: Exact = "crossWalletBalance",
        cross_un_pnl?: Exact = "crossUnPnl",
        available_balance?: Exact = "availableBalance",
        max_withdraw_amount?: Exact = "maxWithdrawAmount",
        margin_available?: Flag = "marginAvailable",
        /// Milliseconds.
        update_time?: Whole = "updateTime",
    }
}

record! {
    /// One position of [`Account`].
    AccountPosition {
        symbol: String = "symbol",
        position_side: Word<PositionSide> = "positionSide",
        /// Negative when short.
        position_amt: Exact = "positionAmt",
        entry_price?: Exact = "entryPrice",
        /// Text in the documents; a number is parsed too.
        leverage?: Whole = "leverage",
        isolated?: Flag = "isolated",
        unrealized_profit?: Exact = "unrealizedProfit",
        initial_margin?: Exact = "initialMargin",
        maint_margin?: Exact = "maintMargin",
        /// Milliseconds.
        update_time?: Whole = "updateTime",
    }
}

request! {
    /// Account information (docs/interface/account.md#futures-account).
    GetAccount = "futures.account" -> Account {}
}

request! {
    /// Account information of v3 under its earlier name
    /// (docs/interface/account.md#futures-account).
    GetEarlierAccount = "futures.earlier_account" -> Account {}
}

record! {
    /// Account trade (docs/interface/account.md#futures-trades).
    UserTrade {
        buyer: Flag = "buyer",
        /// Negative if it is a rebate.
        commission: Exact = "commission",
        commission_asset: String = "commissionAsset",
        id: Whole = "id",
        maker: Flag = "maker",
        order_id: Whole = "orderId",
        price: Exact = "price",
        qty: Exact = "qty",
        quote_qty?: Exact = "quoteQty",
        realized_pnl?: Exact = "realizedPnl",
        side: Word<Side> = "side",
        position_side?: Word<PositionSide> = "positionSide",
        symbol: String = "symbol",
        /// Milliseconds.
        time: Whole = "time",
    }
}

request! {
    /// List of the account's trades (docs/interface/account.md#futures-trades).
    UserTrades = "futures.user_trades" -> Vec<UserTrade> {
        symbol: String = "symbol",
        /// Milliseconds.
        start_time?: i64 = "startTime",
        /// Milliseconds.
        end_time?: i64 = "endTime",
        /// First trade; not allowed together with the times.
        from_id?: i64 = "fromId",
        /// At most 1000; default 500.
        limit?: i64 = "limit",
    }
}

record! {
    /// One movement of the balance (docs/interface/account.md#income).
    Income {
        /// Empty if the entry belongs to no symbol.
        symbol?: String = "symbol",
        income_type: Word<IncomeType> = "incomeType",
        income: Exact = "income",
        asset: String = "asset",
        info?: Text = "info",
        /// Milliseconds.
        time: Whole = "time",
        tran_id?: Text = "tranId",
        /// Empty if the entry belongs to no trade.
        trade_id?: Text = "tradeId",
    }
}

request! {
    /// Income history (docs/interface/account.md#income).
    GetIncome = "futures.income" -> Vec<Income> {
        symbol?: String = "symbol",
        income_type?: IncomeType = "incomeType",
        /// Milliseconds.
        start_time?: i64 = "startTime",
        /// Milliseconds.
        end_time?: i64 = "endTime",
        /// At most 1000; default 100.
        limit?: i64 = "limit",
    }
}

request! {
    /// Own fee rates of a symbol (docs/interface/account.md#symbol-fees).
    GetCommissionRate = "futures.commission_rate" -> CommissionRate {
        symbol: String = "symbol",
    }
}

request! {
    /// Creates a listen key, or extends the valid one by 60 minutes
    /// (docs/interface/user-stream.md#listen-keys).
    CreateListenKey = "futures.create_listen_key" -> ListenKey {}
}

request! {
    /// Extends the listen key (docs/interface/user-stream.md#listen-keys, which lists no
    /// parameters).
    KeepaliveListenKey = "futures.keepalive_listen_key" -> Empty {}
}

request! {
    /// Closes the listen key and its stream (docs/interface/user-stream.md#listen-keys, which lists
    /// no parameters).
    CloseListenKey = "futures.close_listen_key" -> Empty {}
}
