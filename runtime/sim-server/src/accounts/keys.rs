//! The test keys that the server derives from its seed. The same seed gives the same keys, and they
//! are worthless elsewhere.

use alloy_primitives::{Address, B256, keccak256};
use secrecy::{ExposeSecret, SecretString};
use windvane_protocol::sign::Wallet;

/// The test keys of one account, as the ready line shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountKeys {
    /// v1 API key.
    pub api_key: String,
    /// v1 API secret.
    pub api_secret: String,
    /// Main wallet's address.
    pub user: String,
    /// Main wallet's private key.
    pub user_key: String,
    /// Agent's address, approved for everything.
    pub signer: String,
    /// Agent's private key.
    pub signer_key: String,
}

/// The keys of one account, before they are converted to text.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) api_key: String,
    pub(crate) api_secret: SecretString,
    pub(crate) user: Address,
    pub(crate) signer: Address,
    pub(crate) shown: AccountKeys,
}

/// The keys of the account with this index.
pub(crate) fn made(seed: u64, place: u16) -> Made {
    let text = |what: &str| hex::encode(drawn(seed, place, what));
    let (user, signer) = (wallet(seed, place, "user"), wallet(seed, place, "signer"));
    let shown = AccountKeys {
        api_key: text("api key"),
        api_secret: text("api secret"),
        user: user.address().to_checksum(None),
        user_key: user.to_hex().expose_secret().to_owned(),
        signer: signer.address().to_checksum(None),
        signer_key: signer.to_hex().expose_secret().to_owned(),
    };
    Made {
        api_key: shown.api_key.clone(),
        api_secret: SecretString::from(shown.api_secret.as_str()),
        user: user.address(),
        signer: signer.address(),
        shown,
    }
}

/// 32 bytes that depend on the seed, the account's index and the purpose.
pub(crate) fn drawn(seed: u64, place: u16, what: &str) -> B256 {
    keccak256(format!("windvane venue {seed} {place} {what}"))
}

fn wallet(seed: u64, place: u16, what: &str) -> Wallet {
    // With a probability of about 1 in 2^128 the bytes are not a valid key. Then hash them again.
    let mut bytes = drawn(seed, place, what);
    loop {
        match Wallet::from_bytes(&bytes.0) {
            Ok(wallet) => return wallet,
            Err(_) => bytes = keccak256(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_depend_on_the_seed_and_the_account() {
        assert_eq!(made(1, 0).shown, made(1, 0).shown);
        assert_ne!(made(1, 0).shown.api_key, made(1, 1).shown.api_key);
        assert_ne!(made(1, 0).shown.user, made(2, 0).shown.user);
        assert_ne!(made(1, 0).user, made(1, 0).signer);
    }
}
