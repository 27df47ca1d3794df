//! Requests and responses of the futures surface (spec 2; the account routes after the open orders:
//! spec 4, section 4).

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
