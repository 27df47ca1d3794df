//! Requests and responses, before and after their handlers: the received request, the route table, the
//! parameters and their check, the input of a handler, and its result. Nothing here knows the state
//! of the venue.

mod answer;
mod call;
mod check;
mod family;
pub(crate) mod json_rpc;
mod params;
mod port;
mod received;
mod router;

pub(crate) use answer::{Answer, Body, Refusal, Sent, error_body};
pub(crate) use call::Call;
pub(crate) use check::{check, check_entry};
pub(crate) use family::Family;
pub(crate) use params::{Params, decimal, evm_address, integer, invalid, missing};
pub use port::Port;
pub(crate) use received::Received;
pub(crate) use router::{Found, Router};
