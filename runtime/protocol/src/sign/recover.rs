//! Finds the signer of a digest (docs/interface/conventions.md#signing-with-a-wallet). It does not
//! check permissions.

use alloy_primitives::{Address, B256, Signature};

/// An invalid signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    /// Not 65 bytes in hexadecimal.
    #[error("signature must be 130 hexadecimal digits, with or without 0x; sign again")]
    NotHex,
    /// The last byte, v, has an invalid value.
    #[error("signature ends in v = {0}; it must be 27 or 28 (0 and 1 are taken too); sign again")]
    Parity(u8),
    /// r and s do not give a point on the curve.
    #[error("signature is not one that any key could make over this digest; sign again")]
    NoKey,
}

/// The address whose key signed the digest. The signature may start with `0x`, may have hexadecimal
/// digits in any case, and may have 0, 1, 27 or 28 as v.
pub fn signer_of(digest: &B256, signature: &str) -> Result<Address, RecoverError> {
    let digits = signature
        .strip_prefix("0x")
        .or(signature.strip_prefix("0X"));
    let mut bytes = [0; 65];
    hex::decode_to_slice(digits.unwrap_or(signature), &mut bytes)
        .map_err(|_| RecoverError::NotHex)?;
    let odd = match bytes[64] {
        0 | 27 => false,
        1 | 28 => true,
        other => return Err(RecoverError::Parity(other)),
    };
    Signature::from_bytes_and_parity(&bytes[..64], odd)
        .recover_address_from_prehash(digest)
        .map_err(|_| RecoverError::NoKey)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign::Wallet;
    use alloy_primitives::keccak256;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_accepted_spelling_gives_the_signer(
            key in proptest::array::uniform32(1u8..=254),
            text in ".*",
            prefix in prop::sample::select(vec!["", "0x", "0X"]),
            upper: bool,
            low_parity: bool,
        ) {
            let wallet = Wallet::from_bytes(&key).unwrap();
            let digest = keccak256(text);
            let mut signature = wallet.sign(&digest);
            if low_parity {
                let v = if signature.ends_with("1b") { "00" } else { "01" };
                signature.replace_range(128.., v);
            }
            if upper {
                signature = signature.to_uppercase();
            }
            let signer = signer_of(&digest, &format!("{prefix}{signature}"));
            prop_assert_eq!(signer, Ok(wallet.address()));
            prop_assert_ne!(signer_of(&keccak256(digest), &signature), Ok(wallet.address()));
        }

        #[test]
        fn no_text_panics(text in "(0x)?[0-9a-fA-F]{0,140}|.*") {
            let _ = signer_of(&B256::ZERO, &text);
        }
    }

    #[test]
    fn an_invalid_signature_is_refused() {
        let digest = keccak256("text");
        let zeros = "0".repeat(128);
        assert_eq!(signer_of(&digest, ""), Err(RecoverError::NotHex));
        assert_eq!(signer_of(&digest, &zeros), Err(RecoverError::NotHex));
        assert_eq!(
            signer_of(&digest, &format!("{zeros}1d")),
            Err(RecoverError::Parity(29))
        );
        assert_eq!(
            signer_of(&digest, &format!("{zeros}1b")),
            Err(RecoverError::NoKey)
        );
    }
}
