//! What the rules need beyond an order and its instrument.

/// Facts that the rules need beyond the order and its instrument. A price that is missing, or is
/// not over 0, is unknown. Rules that need an unknown price are left to the venue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderContext {
    /// Whether the account is in hedge mode.
    pub hedge_mode: bool,
    /// Mark price at [`MARK_SCALE`](crate::decimal::MARK_SCALE).
    pub mark: Option<i64>,
    /// Price of the last trade. This price and the next two are at the instrument's price scale.
    pub last: Option<i64>,
    /// Best bid.
    pub best_bid: Option<i64>,
    /// Best ask.
    pub best_ask: Option<i64>,
    /// The account's open orders on the symbol, including conditional ones.
    pub open_orders: u32,
    /// The account's open conditional orders on the symbol.
    pub open_algo_orders: u32,
}
