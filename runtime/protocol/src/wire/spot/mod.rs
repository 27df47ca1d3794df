//! Requests and responses of the spot surface (docs/interface/orders.md#spot-order,
//! docs/interface/account.md#spot-account).

mod account;
mod market;
mod orders;
mod wallet;

pub use account::*;
pub use market::*;
pub use orders::*;
pub use wallet::*;
