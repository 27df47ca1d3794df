//! The rules that an order must keep before it may cost a request (promise 6).

mod rejection;

pub use rejection::{Rejection, Rule};
