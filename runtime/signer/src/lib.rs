//! The signer: a process that holds the keys of a run and signs the requests that its policy allows.
//!
//! `live` uses this crate for both ends: the signer process serves [`Signer`], and the trading
//! process and the watchdog process use a [`Client`]. `cli` uses it for the hidden command. The
//! crate must not read keys, open a connection to the venue, or decide about orders. It must never
//! sign a withdrawal, a transfer, an API key or an agent, whatever its policy file says.
//!
//! The three parts: [`policy`] decides what may be signed, [`wire`] is the form of requests and
//! replies on the socket, and [`server`] and [`client`] are the two ends.

#![forbid(unsafe_code)]

pub mod client;
pub mod policy;
pub mod server;
pub mod wire;

mod address;
mod batch;
mod order;
mod policy_file;
mod routes;

pub use address::SocketPath;
pub use client::Client;
pub use policy::{COUNTED_MS, Limits, Now, Policy, Refused};
pub use policy_file::PolicyFileError;
pub use server::Signer;
