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

pub use encode::percent_encoded;
pub use key::{ApiKey, KeyError, SolanaKey, Wallet};
pub use prepare::{Credentials, Dialect, PrepareError, Prepared, Stamp, prepare};
pub use recover::{RecoverError, signer_of};
pub use typed::{MessageDomain, TypedData, TypedError};

/// The environment of the service (docs/interface/conventions.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Network {
    /// Production.
    #[default]
    Mainnet,
    /// The separate test environment.
    Testnet,
}

impl Network {
    /// Chain id in the domain of the v3 `Message`
    /// (docs/interface/conventions.md#signing-with-a-wallet).
    pub const fn signing_chain(self) -> u64 {
        match self {
            Self::Mainnet => 1666,
            Self::Testnet => 714,
        }
    }

    /// The label in `<brand>Chain` and in withdrawals
    /// (docs/interface/conventions.md#signing-management-routes,
    /// docs/interface/conventions.md#signing-withdrawals).
    pub const fn label(self) -> &'static str {
        match self {
            Self::Mainnet => "Mainnet",
            Self::Testnet => "Testnet",
        }
    }
}

/// Short name of a chain in withdrawals (docs/interface/conventions.md#signing-withdrawals); `None`
/// for other chains.
pub const fn chain_name(chain_id: u64) -> Option<&'static str> {
    match chain_id {
        1 => Some("ETH"),
        56 => Some("BSC"),
        42161 => Some("Arbitrum"),
        _ => None,
    }
}
