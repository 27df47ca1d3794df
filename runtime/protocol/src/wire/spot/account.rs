//! The spot account (docs/interface/account.md#spot-account): balances, trades, listen keys.

use windvane_model::Side;

use crate::wire::common::{CommissionRate, Empty, ListenKey};
use crate::wire::fields::{record, request};
use crate::wire::scalar::{Exact, Flag, Json, Whole, Word};

record! {
    /// Account information (docs/interface/account.md#spot-account).
    Account {
        fee_tier?: Whole = "feeTier",
        can_trade?: Flag = "canTrade",
        can_deposit: Flag = "canDeposit",
        can_withdraw: Flag = "canWithdraw",
        can_burn_asset?: Flag = "canBurnAsset",
        /// Milliseconds.
        update_time?: Whole = "updateTime",
        balances: Vec<Balance> = "balances",
    }
}

record! {
    /// One balance of [`Account`].
    Balance {
        asset: String = "asset",
        free: Exact = "free",
        /// In open orders.
        locked: Exact = "locked",
    }
}

request! {
    /// Account information (docs/interface/account.md#spot-account).
    GetAccount = "spot.account" -> Account {}
}

record! {
    /// Account trade (docs/interface/account.md#spot-trades).
    UserTrade {
        symbol: String = "symbol",
        id: Whole = "id",
        order_id: Whole = "orderId",
        side: Word<Side> = "side",
        price: Exact = "price",
        qty: Exact = "qty",
        quote_qty?: Exact = "quoteQty",
        commission: Exact = "commission",
        commission_asset: String = "commissionAsset",
        /// Milliseconds.
        time: Whole = "time",
        counterparty_id?: Whole = "counterpartyId",
        create_update_id?: Json = "createUpdateId",
        maker: Flag = "maker",
        buyer: Flag = "buyer",
    }
}

request! {
    /// Account trade history (docs/interface/account.md#spot-trades). Without times: the last 7
    /// days.
    UserTrades = "spot.user_trades" -> Vec<UserTrade> {
        symbol?: String = "symbol",
        /// Allowed only together with `symbol`.
        order_id?: i64 = "orderId",
        /// Milliseconds.
        start_time?: i64 = "startTime",
        /// Milliseconds; at most 7 days after the start.
        end_time?: i64 = "endTime",
        /// First trade; not allowed together with the times.
        from_id?: i64 = "fromId",
        /// At most 1000; default 500.
        limit?: i64 = "limit",
    }
}

request! {
    /// Symbol fees (docs/interface/account.md#symbol-fees).
    GetCommissionRate = "spot.commission_rate" -> CommissionRate {
        symbol: String = "symbol",
    }
}

request! {
    /// Creates a listen key, or extends the valid one by 60 minutes
    /// (docs/interface/user-stream.md#listen-keys).
    CreateListenKey = "spot.create_listen_key" -> ListenKey {}
}

request! {
    /// Extends a listen key (docs/interface/user-stream.md#listen-keys); recommended every 30
    /// minutes.
    KeepaliveListenKey = "spot.keepalive_listen_key" -> Empty {
        listen_key: String = "listenKey",
    }
}

request! {
    /// Closes a listen key and its stream (docs/interface/user-stream.md#listen-keys).
    CloseListenKey = "spot.close_listen_key" -> Empty {
        listen_key: String = "listenKey",
    }
}
