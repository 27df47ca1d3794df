//! The keys of the server's accounts, as the signing functions take them.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "shared by tests, each with its own part; a panic is how a test fails"
)]

use secrecy::SecretString;
use windvane_protocol::sign::{ApiKey, Credentials, SolanaKey, Wallet};
use windvane_sim_server::AccountKeys;

pub fn wallet(key: &str) -> Wallet {
    Wallet::from_hex(&SecretString::from(key)).unwrap()
}

pub fn solana_key() -> SolanaKey {
    SolanaKey::from_seed(&[9; 32])
}

/// All credentials of an account in the ready line.
pub fn credentials(keys: &AccountKeys) -> Credentials {
    let secret = SecretString::from(keys.api_secret.as_str());
    Credentials {
        api_key: Some(ApiKey::new(keys.api_key.clone(), secret)),
        user: None,
        signer: Some(wallet(&keys.signer_key)),
        wallet: Some(wallet(&keys.user_key)),
        solana: Some(solana_key()),
    }
}
