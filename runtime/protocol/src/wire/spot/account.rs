//! The spot account (spec 1): balances, trades, listen keys.

use windvane_model::Side;

use crate::wire::common::{CommissionRate, Empty, ListenKey};
use crate::wire::fields::{record, request};
use crate::wire::scalar::{Exact, Flag, Json, Whole, Word};

record! {
    /// Account information (spec 1, Account information).
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
    /// Account information (spec 1, Account information).
    GetAccount = "spot.account" -> Account {}
}

record! {
    /// Account trade (spec 1, Account trade).
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
    /// Account trade history (spec 1, Account trade history): the last 7 days without times.
    UserTrades = "spot.user_trades" -> Vec<UserTrade> {
        symbol?: String = "symbol",
        /// Together with `symbol` only.
        order_id?: i64 = "orderId",
        /// Milliseconds.
        start_time?: i64 = "startTime",
        /// Milliseconds; at most 7 days after the start.
        end_time?: i64 = "endTime",
        /// First trade; not together with the times.
        from_id?: i64 = "fromId",
        /// At most 1000; default 500.
        limit?: i64 = "limit",
    }
}

request! {
    /// Symbol fees (spec 1, Spot market data).
    GetCommissionRate = "spot.commission_rate" -> CommissionRate {
        symbol: String = "symbol",
    }
}

request! {
    /// Makes a listen key, or extends the valid one by 60 minutes (spec 1, Listen key).
    CreateListenKey = "spot.create_listen_key" -> ListenKey {}
}

request! {
    /// Extends a listen key (spec 1, Listen key); recommended every 30 minutes.
    KeepaliveListenKey = "spot.keepalive_listen_key" -> Empty {
        listen_key: String = "listenKey",
    }
}

request! {
    /// Closes a listen key and its stream (spec 1, Listen key).
    CloseListenKey = "spot.close_listen_key" -> Empty {
        listen_key: String = "listenKey",
    }
}
