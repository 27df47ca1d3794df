//! The enum values (docs/interface/orders.md#enumerations) that bound the parameters of the route
//! table.

use super::types::Kind;

pub(super) const SIDE: Kind = Kind::Enum(&["BUY", "SELL"]);
pub(super) const POSITION_SIDE: Kind = Kind::Enum(&["BOTH", "LONG", "SHORT"]);
pub(super) const TIME_IN_FORCE: Kind = Kind::Enum(&["GTC", "IOC", "FOK", "GTX", "HIDDEN"]);
pub(super) const WORKING_TYPE: Kind = Kind::Enum(&["MARK_PRICE", "CONTRACT_PRICE"]);
pub(super) const TRANSFER_KIND: Kind = Kind::Enum(&["FUTURE_SPOT", "SPOT_FUTURE"]);
pub(super) const KLINE_INTERVAL: Kind = Kind::Enum(&[
    "1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "8h", "12h", "1d", "3d", "1w", "1M",
]);
pub(super) const DEPTH_LIMITS: &[i64] = &[5, 10, 20, 50, 100, 500, 1000];
/// Depth weights (docs/interface/limits.md#weights): (largest limit, weight).
pub(super) const DEPTH_WEIGHTS: &[(u32, u32)] = &[(50, 2), (100, 5), (500, 10), (1000, 20)];
