//! Listen keys: read from an answer, and as a part of a path.

use std::fmt::Write as _;

use windvane_protocol::wire;

/// The listen key of an answer.
///
/// # Errors
/// Why there is none.
pub fn listen_key(text: &str) -> Result<String, String> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        listen_key: String,
    }
    let answer: Answer = wire::read(text).map_err(|error| error.to_string())?;
    match answer.listen_key.as_str() {
        "" => Err("the listen key is empty".to_owned()),
        _ => Ok(answer.listen_key),
    }
}

/// A listen key as one segment of a path: a key is whatever the venue gives.
pub fn path_segment(key: &str) -> String {
    let mut segment = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(segment, "%{byte:02X}");
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_segment_of_the_path() {
        assert_eq!(path_segment("aZ0-_.~"), "aZ0-_.~");
        assert_eq!(path_segment("a/b?c"), "a%2Fb%3Fc");
    }

    #[test]
    fn an_answer_without_a_key_is_no_key() {
        assert_eq!(listen_key(r#"{"listenKey":"k"}"#), Ok("k".to_owned()));
        for text in ["", "{}", r#"{"listenKey":""}"#, "<html>"] {
            assert!(listen_key(text).is_err(), "{text}");
        }
    }
}
