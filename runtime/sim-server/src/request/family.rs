//! The families of routes. Each family has a module of handlers.

/// The market data routes of spot and futures.
const MARKET: &[&str] = &[
    "ping",
    "time",
    "exchange_info",
    "depth",
    "trades",
    "historical_trades",
    "agg_trades",
    "klines",
    "index_price_klines",
    "mark_price_klines",
    "premium_index",
    "funding_rate",
    "funding_info",
    "ticker_24hr",
    "ticker_price",
    "book_ticker",
];

/// The wallet routes of spot and futures.
const WALLET: &[&str] = &[
    "wallet_transfer",
    "send_to_address",
    "withdraw_fee",
    "withdraw",
    "get_nonce",
    "create_api_key",
    "approve_agent",
    "update_agent",
    "delete_agent",
    "agents",
    "approve_builder",
    "update_builder",
    "delete_builder",
    "builders",
];

/// A family of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Market data.
    Market,
    /// Routes of agents, builders, transfers, withdrawals and API keys, the chain API and the info
    /// endpoint.
    Wallet,
    /// Routes of orders, account, positions and listen keys.
    Orders,
}

impl Family {
    /// The family of the route with this name.
    pub(crate) fn of(name: &str) -> Self {
        match name.split_once('.') {
            Some(("spot" | "futures", own)) if MARKET.contains(&own) => Self::Market,
            Some(("chain", _)) | None => Self::Wallet,
            Some((_, own)) if WALLET.contains(&own) => Self::Wallet,
            Some(_) => Self::Orders,
        }
    }
}
