//! The futures account: modes, balances, trades, income, listen keys (spec 2; spec 4, section 4).

use windvane_engine::{PositionSide, Side};

use crate::wire::common::{CommissionRate, Empty, ListenKey, SimpleResult};
use crate::wire::enums::IncomeType;
use crate::wire::fields::{record, request};
use crate::wire::scalar::{Exact, Flag, Text, Whole, Word};

request! {
    /// Change position mode (spec 2), for every symbol.
    ChangePositionMode = "futures.change_position_mode" -> SimpleResult {
        /// `true`: hedge mode, `false`: one-way mode.
        dual_side_position: bool = "dualSidePosition",
    }
}

record! {
    /// Position mode (spec 2, Get current position mode).
    PositionMode {
        /// `true`: hedge mode, `false`: one-way mode.
        dual_side_position: Flag = "dualSidePosition",
    }
}

request! {
    /// Get current position mode (spec 2).
    GetPositionMode = "futures.position_mode" -> PositionMode {}
}

request! {
    /// Change multi-assets mode (spec 2).
    ChangeMultiAssetsMode = "futures.change_multi_assets_mode" -> SimpleResult {
        multi_assets_margin: bool = "multiAssetsMargin",
    }
}

record! {
    /// Multi-assets mode (spec 2, Get current multi-assets mode).
    MultiAssetsMode {
        multi_assets_margin: Flag = "multiAssetsMargin",
    }
}

request! {
    /// Get current multi-assets mode (spec 2).
    GetMultiAssetsMode = "futures.multi_assets_mode" -> MultiAssetsMode {}
}

record! {
    /// Balance of one asset (spec 4, section 4).
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
    /// Account balance (spec 4, section 4).
    GetBalance = "futures.balance" -> Vec<Balance> {}
}

record! {
    /// Account information (spec 4, section 4).
    Account {
        fee_tier?: Whole = "feeTier",
        /// Not in document 2: some services omit it.
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
    /// One asset of [`Account`]. Spec 4 names only the array, so every field except the asset is
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
    /// Account information (spec 4, section 4).
    GetAccount = "futures.account" -> Account {}
}

request! {
    /// Account information of v3 under its earlier name (spec 4, section 4).
    GetEarlierAccount = "futures.earlier_account" -> Account {}
}

record! {
    /// Account trade (spec 4, section 4).
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
    /// Account trades (spec 4, section 4).
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
    /// One movement of the balance (spec 4, section 4).
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
    /// Income history (spec 4, section 4).
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
    /// Own fee rates of a symbol (spec 4, section 4).
    GetCommissionRate = "futures.commission_rate" -> CommissionRate {
        symbol: String = "symbol",
    }
}

request! {
    /// Creates a listen key, or extends the valid one by 60 minutes (spec 2, Events).
    CreateListenKey = "futures.create_listen_key" -> ListenKey {}
}

request! {
    /// Extends the listen key (spec 2, Events, which lists no parameters).
    KeepaliveListenKey = "futures.keepalive_listen_key" -> Empty {}
}

request! {
    /// Closes the listen key and its stream (spec 2, Events, which lists no parameters).
    CloseListenKey = "futures.close_listen_key" -> Empty {}
}
