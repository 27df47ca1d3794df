//! Requests and answers of the spot surface (spec 1).

mod account;
mod orders;

pub use account::*;
pub use orders::*;
