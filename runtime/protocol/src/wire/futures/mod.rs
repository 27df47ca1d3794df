//! Requests and responses of the futures surface (docs/interface/futures.md#futures,
//! docs/interface/account.md#futures-account-routes).

mod account;
mod agents;
mod batch;
mod market;
mod orders;
mod positions;

pub use account::*;
pub use agents::*;
pub use batch::*;
pub use market::*;
pub use orders::*;
pub use positions::*;
