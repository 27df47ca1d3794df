//! Listen keys: how one is read from a response.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_without_a_key_is_an_error() {
        assert_eq!(listen_key(r#"{"listenKey":"k"}"#), Ok("k".to_owned()));
        for text in ["", "{}", r#"{"listenKey":""}"#, "<html>"] {
            assert!(listen_key(text).is_err(), "{text}");
        }
    }
}
