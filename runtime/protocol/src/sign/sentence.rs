//! The sentence that is signed to get an API key (spec 1, Authentication, rule 5). The sentence
//! carries the brand word and has no default; it is part of [`Brand`].

use alloy_primitives::{B256, eip191_hash_message};

use crate::Brand;

/// The sentence with a space and the nonce at its end; none where the brand has no sentence.
pub fn text(brand: &Brand, nonce: &str) -> Option<String> {
    let sentence = brand.login_sentence.as_ref()?;
    Some(format!("{sentence} {nonce}"))
}

/// A sentence as configurations and the line of a simulated venue have it, with the space before
/// the nonce at its end: the form that the documents describe.
pub fn with_space(sentence: &str) -> String {
    format!("{sentence} ")
}

/// A sentence as [`Brand`] holds it, from one that ends with the space before the nonce, or lacks
/// it.
pub fn without_space(sentence: &str) -> &str {
    sentence.strip_suffix(' ').unwrap_or(sentence)
}

/// What the wallet signs: the digest of the EVM message-signing method (EIP-191).
pub fn digest(text: &str) -> B256 {
    eip191_hash_message(text)
}
