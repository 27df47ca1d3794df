//! Listen keys: how one is read from a response, and how it is written in a path.

use std::fmt::Write as _;

use windvane_protocol::wire;

/// The listen key of a response.
///
/// # Errors
/// Why the response has no listen key.
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

/// A listen key as one path segment. Escaping is needed, because the venue may use any characters.
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
    fn a_response_without_a_key_is_an_error() {
        assert_eq!(listen_key(r#"{"listenKey":"k"}"#), Ok("k".to_owned()));
        for text in ["", "{}", r#"{"listenKey":""}"#, "<html>"] {
            assert!(listen_key(text).is_err(), "{text}");
        }
    }
}
