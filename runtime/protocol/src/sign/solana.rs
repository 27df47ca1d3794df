//! Withdrawals to Solana: the signed text and its verification
//! (docs/interface/conventions.md#signing-solana-withdrawals).

use ed25519_dalek::{Signature, Verifier, VerifyingKey};

use crate::Brand;
use crate::brand::upper_first;
use crate::sign::Network;

/// The fields of a Solana withdrawal. Amounts are decimal texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Withdrawal<'a> {
    /// Receiver, a Solana address.
    pub destination: &'a str,
    /// Asset.
    pub token: &'a str,
    /// Amount, as in the request.
    pub amount: &'a str,
    /// Fee, as in the request.
    pub fee: &'a str,
    /// Microseconds, as in the request's `userNonce`.
    pub nonce: &'a str,
}

/// The text to sign. Trailing zeros of a fraction are removed from both amounts.
pub fn text(brand: &Brand, network: Network, withdrawal: &Withdrawal<'_>) -> String {
    format!(
        "PrimaryType=Withdraw,{}={},Destination={},DestinationChain=Solana,Token={},Amount={},\
         Fee={},Nonce={}",
        upper_first(&brand.chain_parameter),
        network.label(),
        withdrawal.destination,
        withdrawal.token,
        without_trailing_zeros(withdrawal.amount),
        without_trailing_zeros(withdrawal.fee),
        withdrawal.nonce,
    )
}

/// Whether the text is a Solana address: 32 bytes in base58.
pub fn is_address(text: &str) -> bool {
    bs58::decode(text).onto(&mut [0; 32]) == Ok(32)
}

/// Whether the signature (base58) over the text belongs to the wallet with this address (base58 of
/// its public key).
pub fn verifies(address: &str, text: &str, signature: &str) -> bool {
    let (mut key, mut bytes) = ([0; 32], [0; 64]);
    let decoded = bs58::decode(address).onto(&mut key) == Ok(32)
        && bs58::decode(signature).onto(&mut bytes) == Ok(64);
    decoded
        && VerifyingKey::from_bytes(&key).is_ok_and(|key| {
            key.verify(text.as_bytes(), &Signature::from_bytes(&bytes))
                .is_ok()
        })
}

fn without_trailing_zeros(amount: &str) -> &str {
    if amount.contains('.') {
        amount.trim_end_matches('0').trim_end_matches('.')
    } else {
        amount
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign::SolanaKey;

    const WITHDRAWAL: Withdrawal<'_> = Withdrawal {
        destination: "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin",
        token: "USDT",
        amount: "31.50",
        fee: "0.300",
        nonce: "1761210000000000",
    };

    #[test]
    fn the_text_equals_the_public_example() {
        let brand = Brand::new("svc").unwrap();
        assert_eq!(
            text(&brand, Network::Mainnet, &WITHDRAWAL),
            "PrimaryType=Withdraw,SvcChain=Mainnet,\
             Destination=9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin,DestinationChain=Solana,\
             Token=USDT,Amount=31.5,Fee=0.3,Nonce=1761210000000000"
        );
        assert!(text(&brand, Network::Testnet, &WITHDRAWAL).contains("SvcChain=Testnet,"));
    }

    #[test]
    fn only_zeros_of_a_fraction_are_removed() {
        let pairs = [
            ("100", "100"),
            ("100.0", "100"),
            ("0.0", "0"),
            ("0.10", "0.1"),
            ("10.01", "10.01"),
        ];
        for (given, stripped) in pairs {
            assert_eq!(without_trailing_zeros(given), stripped);
        }
    }

    #[test]
    fn only_the_signer_of_the_text_verifies() {
        let key = SolanaKey::from_seed(&[7; 32]);
        let signature = key.sign("text");
        assert!(verifies(&key.address(), "text", &signature));
        assert!(!verifies(&key.address(), "texts", &signature));
        assert!(!verifies(
            &SolanaKey::from_seed(&[8; 32]).address(),
            "text",
            &signature
        ));
        assert!(!verifies("", "text", &signature) && !verifies(&key.address(), "text", "0"));
    }
}
