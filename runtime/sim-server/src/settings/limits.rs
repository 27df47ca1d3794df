//! Rate limits (docs/interface/limits.md#limits-in-force).

/// The limits in force, as `rateLimits` shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// Spot: weight per minute and IP.
    pub spot_weight: u32,
    /// Spot: orders per minute and account.
    pub spot_orders: u32,
    /// Spot: orders per 10 seconds and account.
    pub spot_orders_10s: u32,
    /// Futures, chain and info endpoint, each with its own counter: weight per minute and IP.
    pub futures_weight: u32,
    /// Futures: orders per minute and account.
    pub futures_orders: u32,
    /// Number of 429 responses that an IP gets in one minute before it is banned.
    pub patience: u32,
    /// Maximum number of open connections per port, including upgraded ones. Further connections
    /// wait. The documents have no such limit; it bounds the server's memory.
    pub connections: usize,
}

impl Default for LimitSettings {
    /// The samples of docs/interface/limits.md#limits-in-force, of spot the second.
    fn default() -> Self {
        Self {
            spot_weight: 6_000,
            spot_orders: 6_000,
            spot_orders_10s: 300,
            futures_weight: 2_400,
            futures_orders: 1_200,
            patience: 10,
            connections: 4_096,
        }
    }
}
