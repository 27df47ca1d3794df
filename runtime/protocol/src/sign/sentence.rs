//! The sentence that a wallet signs to get an API key
//! (docs/interface/conventions.md#signing-the-api-key-sentence). The sentence contains the brand
//! word and has no default; it is part of [`Brand`].

use alloy_primitives::{B256, eip191_hash_message};

use crate::Brand;

/// The sentence with a space and the nonce at its end; `None` if the brand has no sentence.
pub fn text(brand: &Brand, nonce: &str) -> Option<String> {
    let sentence = brand.login_sentence.as_ref()?;
    Some(format!("{sentence} {nonce}"))
}

/// The sentence that the wallet signs to create an API key, with the space that precedes the nonce.
/// Configurations and the simulated venue's output use this documented form.
pub fn with_space(sentence: &str) -> String {
    format!("{sentence} ")
}

/// The sentence without the space before the nonce, as [`Brand`] stores it. A sentence that already
/// lacks the space is unchanged.
pub fn without_space(sentence: &str) -> &str {
    sentence.strip_suffix(' ').unwrap_or(sentence)
}

/// The digest that the wallet signs, by the EVM message-signing method (EIP-191).
pub fn digest(text: &str) -> B256 {
    eip191_hash_message(text)
}
