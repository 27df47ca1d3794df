//! Requests and responses of the spot surface (spec 1).

mod account;
mod market;
mod orders;
mod wallet;

pub use account::*;
pub use market::*;
pub use orders::*;
pub use wallet::*;
