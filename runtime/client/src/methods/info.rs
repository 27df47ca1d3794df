//! The JSON-RPC info endpoint (docs/interface/chain.md#info-endpoint).

use windvane_protocol::wire::info::{GetBalance, GetOpenOrders, GetUserFills};

super::methods! {
    Info, "info";
    /// Balances and positions of an address.
    get_balance(GetBalance,
        GetBalance::new("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "latest"));
    /// Open orders of an address.
    open_orders(GetOpenOrders,
        GetOpenOrders::new("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "latest"));
    /// Fills of an address.
    user_fills(GetUserFills,
        GetUserFills::new("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "latest"));
}
