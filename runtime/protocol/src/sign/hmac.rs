//! HMAC-SHA256 of v1 requests (docs/interface/conventions.md#signing-with-an-api-key).

use ::hmac::{Hmac, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

/// Length of a signature in hex digits.
pub const HEX_LENGTH: usize = 64;

/// The signature over the joined parts, in lower-case hexadecimal. If a request has a query string
/// and a body, they are the two parts, with nothing between them
/// (docs/interface/conventions.md#signing-with-an-api-key).
pub fn hex_hmac(secret: &SecretString, parts: &[&[u8]]) -> String {
    hex::encode(keyed(secret, parts).finalize().into_bytes())
}

/// Whether a hexadecimal signature, in any case, belongs to these parts. The comparison takes
/// constant time.
pub fn verifies(secret: &SecretString, parts: &[&[u8]], signature: &str) -> bool {
    let mut given = [0; HEX_LENGTH / 2];
    hex::decode_to_slice(signature, &mut given).is_ok()
        && keyed(secret, parts).verify_slice(&given).is_ok()
}

#[expect(clippy::expect_used, reason = "an HMAC takes keys of every length")]
fn keyed(secret: &SecretString, parts: &[&[u8]]) -> Hmac<Sha256> {
    let key = secret.expose_secret().as_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    for part in parts {
        mac.update(part);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_and_a_body_sign_as_one_text() {
        let secret = SecretString::from("key");
        let whole = hex_hmac(&secret, &[b"symbol=A&side=BUYquantity=1"]);
        assert_eq!(
            hex_hmac(&secret, &[b"symbol=A&side=BUY", b"quantity=1"]),
            whole
        );
        assert_ne!(
            hex_hmac(&secret, &[b"quantity=1", b"symbol=A&side=BUY"]),
            whole
        );
    }

    #[test]
    fn signatures_match_in_any_case_but_only_complete() {
        let secret = SecretString::from("key");
        let signature = hex_hmac(&secret, &[b"a=1"]);
        assert!(verifies(&secret, &[b"a=1"], &signature.to_uppercase()));
        assert!(!verifies(&secret, &[b"a=2"], &signature));
        assert!(!verifies(&secret, &[b"a=1"], &signature[..62]));
        assert!(!verifies(&secret, &[b"a=1"], "zz"));
        assert!(!verifies(&SecretString::from("kez"), &[b"a=1"], &signature));
    }
}
