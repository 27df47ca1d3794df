//! Converts parameters into text on the wire: percent-encoding and compact lists
//! (docs/interface/README.md#8-signed-bytes).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters except the unreserved ones of RFC 3986. A URL library then has nothing left to
/// encode, so the sent bytes equal the signed bytes.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The text as it appears in a query or form body: a space becomes `%20`, a colon `%3A`.
pub fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_encoded(&mut out, text);
    out
}

/// Appends `name=value`, encoded, with a `&` before it if `out` is not empty.
pub(super) fn push_pair(out: &mut String, name: &str, value: &str) {
    if !out.is_empty() {
        out.push('&');
    }
    push_encoded(out, name);
    out.push('=');
    push_encoded(out, value);
}

fn push_encoded(out: &mut String, text: &str) {
    if text.bytes().all(is_unreserved) {
        out.push_str(text);
    } else {
        out.extend(utf8_percent_encode(text, RESERVED));
    }
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// JSON text without the white space between its tokens; text inside strings is kept.
pub(super) fn compact_json(text: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    text.chars()
        .filter(|&letter| {
            if in_string {
                in_string = escaped || letter != '"';
                escaped = !escaped && letter == '\\';
                return true;
            }
            in_string = letter == '"';
            !letter.is_ascii_whitespace()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unreserved_characters_stay() {
        assert_eq!(percent_encoded("aZ09-._~"), "aZ09-._~");
        assert_eq!(percent_encoded("mm:1 +&=é"), "mm%3A1%20%2B%26%3D%C3%A9");
    }

    #[test]
    fn lists_lose_the_space_between_tokens_only() {
        assert_eq!(compact_json(r#"[ "a b", "c" ]"#), r#"["a b","c"]"#);
        assert_eq!(compact_json(r#"["q\" , \\" , 1]"#), r#"["q\" , \\",1]"#);
    }
}
