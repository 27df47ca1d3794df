//! The three kinds of keys. They are wiped when dropped and never shown: not by `Debug`, not in
//! errors. This module reads no files; the caller stores the keys.

use std::fmt;

use alloy_primitives::{Address, B256};
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use ed25519_dalek::Signer as _;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

/// An API key pair of the v1 routes (docs/interface/conventions.md#signing-with-an-api-key). Key
/// and secret are case-sensitive.
#[derive(Clone, Debug)]
pub struct ApiKey {
    /// Sent in the header `X-MBX-APIKEY`.
    pub key: SecretString,
    /// The key of the HMAC; never sent.
    pub secret: SecretString,
}

impl ApiKey {
    /// Creates a pair.
    pub fn new(key: impl Into<String>, secret: SecretString) -> Self {
        Self {
            key: SecretString::from(key.into()),
            secret,
        }
    }
}

/// An invalid private key. The error does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not an EVM key.
    #[error(
        "the wallet key must be 64 hexadecimal digits (with or without 0x before them), not zero, below the curve's order; check the key file"
    )]
    Wallet,
    /// Not a Solana key.
    #[error(
        "the Solana key must be base58 of 32 or 64 bytes (of 64 the last 32 are its public key); check the key file"
    )]
    Solana,
}

/// The key of a main wallet or of an agent (secp256k1).
#[derive(Clone)]
pub struct Wallet(PrivateKeySigner);

impl Wallet {
    /// Parses 64 hexadecimal digits, with or without `0x`.
    pub fn from_hex(key: &SecretString) -> Result<Self, KeyError> {
        let digits = key.expose_secret().trim();
        let digits = digits
            .strip_prefix("0x")
            .or(digits.strip_prefix("0X"))
            .unwrap_or(digits);
        let mut bytes = Zeroizing::new([0; 32]);
        hex::decode_to_slice(digits, bytes.as_mut()).map_err(|_| KeyError::Wallet)?;
        Self::from_bytes(&bytes)
    }

    /// Reads the 32 bytes of the scalar, big-endian.
    pub fn from_bytes(key: &[u8; 32]) -> Result<Self, KeyError> {
        let signer = PrivateKeySigner::from_slice(key).map_err(|_| KeyError::Wallet)?;
        Ok(Self(signer))
    }

    /// The address that signature recovery gives for this key.
    pub fn address(&self) -> Address {
        self.0.address()
    }

    /// The key as hexadecimal with `0x`, for keystores and for test keys that must be printed.
    pub fn to_hex(&self) -> SecretString {
        let mut key = self.0.to_bytes();
        let mut text = Zeroizing::new(String::with_capacity(66));
        text.push_str("0x");
        text.push_str(&Zeroizing::new(hex::encode(key)));
        zeroize::Zeroize::zeroize(&mut key.0);
        SecretString::from(text.as_str())
    }

    /// Signs a digest: r, s and v (27 or 28), 130 hexadecimal digits without `0x`
    /// (docs/interface/conventions.md#signing-with-a-wallet).
    #[expect(
        clippy::expect_used,
        clippy::missing_panics_doc,
        reason = "never fails"
    )]
    pub fn sign(&self, digest: &B256) -> String {
        let signature = self
            .0
            .sign_hash_sync(digest)
            .expect("a local key signs every digest of 32 bytes");
        hex::encode(signature.as_bytes())
    }
}

impl From<PrivateKeySigner> for Wallet {
    fn from(signer: PrivateKeySigner) -> Self {
        Self(signer)
    }
}

impl fmt::Debug for Wallet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wallet({}, key withheld)", self.address())
    }
}

/// A Solana wallet's key (Ed25519), for Solana withdrawals.
#[derive(Clone)]
pub struct SolanaKey(ed25519_dalek::SigningKey);

impl SolanaKey {
    /// Parses base58 of the 32-byte seed, or of the 64 bytes of seed and public key.
    pub fn from_base58(key: &SecretString) -> Result<Self, KeyError> {
        let mut bytes = Zeroizing::new([0; 64]);
        let length = bs58::decode(key.expose_secret().trim())
            .onto(bytes.as_mut_slice())
            .map_err(|_| KeyError::Solana)?;
        match length {
            32 => {
                let (seed, _) = bytes.split_first_chunk().ok_or(KeyError::Solana)?;
                Ok(Self::from_seed(seed))
            }
            64 => ed25519_dalek::SigningKey::from_keypair_bytes(&bytes)
                .map(Self)
                .map_err(|_| KeyError::Solana),
            _ => Err(KeyError::Solana),
        }
    }

    /// Reads the 32 bytes of the seed.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    /// The public key in base58; it is the wallet's address.
    pub fn address(&self) -> String {
        bs58::encode(self.0.verifying_key().as_bytes()).into_string()
    }

    /// The Ed25519 signature of a text in base58
    /// (docs/interface/conventions.md#signing-solana-withdrawals).
    pub fn sign(&self, text: &str) -> String {
        bs58::encode(self.0.sign(text.as_bytes()).to_bytes()).into_string()
    }
}

impl fmt::Debug for SolanaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SolanaKey({}, key withheld)", self.address())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign::Credentials;

    const CANARY: &str = "4fd0a42218f3eae43a6ce26d22544e986139a01e5b34a62db53757ffca81bae1";

    #[test]
    fn no_key_shows_in_debug_output() {
        let secret = || SecretString::from(CANARY);
        let seed: [u8; 32] = hex::decode(CANARY).unwrap().try_into().unwrap();
        let seed58 = bs58::encode(seed).into_string();
        let everything = Credentials {
            api_key: Some(ApiKey::new("name", secret())),
            user: None,
            signer: Some(Wallet::from_hex(&secret()).unwrap()),
            wallet: Some(Wallet::from_bytes(&seed).unwrap()),
            solana: Some(SolanaKey::from_base58(&SecretString::from(seed58.as_str())).unwrap()),
        };
        for shown in [format!("{everything:?}"), format!("{everything:#?}")] {
            assert!(
                shown.contains("withheld") && shown.contains("REDACTED"),
                "{shown}"
            );
            for half in [&CANARY[..16], &CANARY[48..], &seed58[..12], "79, 208, 164"] {
                assert!(
                    !shown.to_lowercase().contains(&half.to_lowercase()),
                    "{shown}"
                );
            }
        }
    }

    #[test]
    fn a_bad_key_is_refused_without_repeating_it() {
        for bad in [
            "",
            "0x",
            "zz",
            &CANARY[1..],
            &"0".repeat(64),
            &"f".repeat(64),
        ] {
            let error = Wallet::from_hex(&SecretString::from(bad)).unwrap_err();
            assert!(bad.len() < 3 || !error.to_string().contains(bad));
        }
        for bad in ["", "0OIl", "abc"] {
            assert!(SolanaKey::from_base58(&SecretString::from(bad)).is_err());
        }
    }

    #[test]
    fn a_wallet_key_survives_its_text_form() {
        let wallet = Wallet::from_hex(&SecretString::from(CANARY)).unwrap();
        assert_eq!(wallet.to_hex().expose_secret(), format!("0x{CANARY}"));
        let again = Wallet::from_hex(&wallet.to_hex()).unwrap();
        assert_eq!(again.address(), wallet.address());
    }

    #[test]
    fn a_solana_key_may_carry_its_public_key() {
        let key = SolanaKey::from_seed(&[7; 32]);
        let mut pair = [7; 64];
        bs58::decode(key.address()).onto(&mut pair[32..]).unwrap();
        let text = bs58::encode(pair).into_string();
        let again = SolanaKey::from_base58(&SecretString::from(text)).unwrap();
        assert_eq!(again.address(), key.address());
    }
}
