//! All signatures: HMAC, EIP-712, EIP-191 and Ed25519, and the exact bytes of a signed request
//! ([`prepare()`]). This module must not send, read key files or have a clock: the caller provides
//! keys, time and nonce.
//!
//! One rule applies everywhere (docs/interface/README.md#8-signed-bytes): sign exactly the bytes on
//! the wire, percent-encoded and in the order in which they are sent.

pub mod hmac;
pub mod key;
pub mod prepare;
pub mod recover;
pub mod sentence;
pub mod solana;
pub mod typed;

mod encode;
mod inner;
mod network;

pub use encode::percent_encoded;
pub use key::{ApiKey, KeyError, SolanaKey, Wallet};
pub use network::{Network, chain_name};
pub use prepare::{Credentials, Dialect, PrepareError, Prepared, Stamp, prepare};
pub use recover::{RecoverError, signer_of};
pub use typed::{MessageDomain, TypedData, TypedError};
