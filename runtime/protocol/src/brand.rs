//! The service's brand word and the names that are derived from it
//! (docs/interface/conventions.md#brand-words). The word is configuration, never a constant.

use crate::sign::Network;

/// Every name that contains the brand word, and the chain id of signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brand {
    /// The word as it appears in paths and parameters: `svc`.
    pub word: String,
    /// v3 signing domain name: `SvcSignTransaction`.
    pub signing_domain: String,
    /// Withdrawal domain name: `svc`.
    pub withdrawal_domain: String,
    /// Withdrawal field name: `svc chain`.
    pub withdrawal_field: String,
    /// Parameter of the management routes: `svcChain`. Its typed field starts with an upper-case
    /// letter.
    pub chain_parameter: String,
    /// Path segment: `svc`.
    pub path_segment: String,
    /// JSON-RPC method prefix: `svc_`.
    pub rpc_prefix: String,
    /// The sentence that a wallet signs to get an API key, without the space and the nonce at its
    /// end. It has no default.
    pub login_sentence: Option<String>,
    /// Chain id in the domain of the v3 `Message`, if it is not the network's documented one.
    pub signing_chain: Option<u64>,
}

/// The brand word is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("brand = {0:?} must be 1 to 32 ASCII letters and digits, a letter first")]
pub struct BrandError(pub String);

impl Brand {
    /// Derives all names from the word.
    pub fn new(word: &str) -> Result<Self, BrandError> {
        let starts = word.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
        if !starts || word.len() > 32 || !word.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(BrandError(word.to_owned()));
        }
        Ok(Self {
            word: word.to_owned(),
            signing_domain: format!("{}SignTransaction", upper_first(word)),
            withdrawal_domain: word.to_owned(),
            withdrawal_field: format!("{word} chain"),
            chain_parameter: format!("{word}Chain"),
            path_segment: word.to_owned(),
            rpc_prefix: format!("{word}_"),
            login_sentence: None,
            signing_chain: None,
        })
    }

    /// The chain id in the domain of the v3 `Message`.
    pub fn signing_chain(&self, network: Network) -> u64 {
        self.signing_chain
            .unwrap_or_else(|| network.signing_chain())
    }

    /// Fills a template of the route table: replaces `{brand}`, `{Brand}` and `{rpc}`.
    pub fn fill(&self, template: &str) -> String {
        if !template.contains('{') {
            return template.to_owned();
        }
        template
            .replace("{brand}", &self.path_segment)
            .replace("{Brand}", &upper_first(&self.path_segment))
            .replace("{rpc}", &self.rpc_prefix)
    }
}

/// The text with its first letter in upper case, as in the names of typed fields
/// (docs/interface/conventions.md#signing-management-routes).
pub fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_derived_from_the_word() {
        let brand = Brand::new("svc").unwrap();
        assert_eq!(brand.signing_domain, "SvcSignTransaction");
        assert_eq!(brand.withdrawal_field, "svc chain");
        assert_eq!(
            brand.fill("/{brand}-chain/v3/staking/getLocked{Brand}"),
            "/svc-chain/v3/staking/getLockedSvc"
        );
        assert_eq!(brand.fill("{rpc}getBalance"), "svc_getBalance");
        assert!(Brand::new("").is_err() && Brand::new("a b").is_err() && Brand::new("1a").is_err());
    }
}
