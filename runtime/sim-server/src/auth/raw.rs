//! The signed bytes: query string and body as received, without the signature.

use crate::request::{Params, Received, Refusal, missing};

/// The signed bytes and their signature.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signed<'a> {
    /// Query and body, joined without a separator
    /// (docs/interface/conventions.md#signing-with-an-api-key).
    pub(super) parts: [&'a [u8]; 2],
    pub(super) signature: &'a str,
}

impl Signed<'_> {
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.parts.concat()
    }
}

/// Separates the signature. It must be the last parameter of the query string or of the body.
/// Elsewhere the signed bytes are ambiguous, so the signature counts as invalid (-1022).
pub(super) fn signed<'a>(
    received: &Received<'a>,
    params: &'a Params,
) -> Result<Signed<'a>, Refusal> {
    let signature = params.required("signature")?;
    let body = std::str::from_utf8(received.form()).unwrap_or_default();
    let query = received.query;
    let parts = match (without_signature(query), without_signature(body)) {
        (Some(query), None) => [query, body],
        (None, Some(body)) => [query, body],
        _ => return Err(invalid_signature()),
    };
    Ok(Signed {
        parts: parts.map(str::as_bytes),
        signature,
    })
}

/// The text before the final signature; `None` if the text does not end with a signature.
fn without_signature(text: &str) -> Option<&str> {
    let (before, last) = text.rsplit_once('&').unwrap_or(("", text));
    let (name, _) = last.split_once('=')?;
    name.eq_ignore_ascii_case("signature").then_some(before)
}

pub(super) fn invalid_signature() -> Refusal {
    Refusal::new(-1022, "Signature for this request is not valid.")
}

pub(super) fn required<'a>(params: &'a Params, name: &str) -> Result<&'a str, Refusal> {
    params.get(name).ok_or_else(|| missing(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_signature_at_the_end_is_taken_off() {
        assert_eq!(without_signature("a=1&signature=ff"), Some("a=1"));
        assert_eq!(without_signature("signature=ff"), Some(""));
        assert_eq!(without_signature("a=1&Signature=ff"), Some("a=1"));
        assert_eq!(without_signature("signature=ff&a=1"), None);
        assert_eq!(without_signature("a=1&xsignature=ff"), None);
        assert_eq!(without_signature(""), None);
    }
}
