//! The body of a JSON-RPC request (docs/interface/chain.md#info-endpoint).

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

/// A request. Each member is checked separately.
#[derive(Deserialize)]
pub(crate) struct RpcRequest<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) jsonrpc: Value,
    #[serde(default)]
    pub(crate) method: Value,
    #[serde(default)]
    pub(crate) params: Value,
}

/// The `method` of a request body; `None` if it is missing.
pub(crate) fn method(body: &[u8]) -> Option<String> {
    let request = read(body).ok()?;
    request.method.as_str().map(str::to_owned)
}

/// Parses a request, which must be an object. Batches are not supported, and an array must not be
/// taken for the members of one request.
pub(crate) fn read(body: &[u8]) -> Result<RpcRequest<'_>, (i32, &'static str)> {
    const INVALID: (i32, &str) = (-32600, "Invalid request");
    const UNREADABLE: (i32, &str) = (-32700, "Parse error");
    if body.trim_ascii_start().starts_with(b"[") {
        let whole = serde_json::from_slice::<IgnoredAny>(body).is_ok();
        return Err(if whole { INVALID } else { UNREADABLE });
    }
    serde_json::from_slice(body).map_err(|error| if error.is_data() { INVALID } else { UNREADABLE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_of_a_body_is_found_if_it_exists() {
        assert_eq!(
            method(br#"{"method":"svc_x","id":[1]}"#).as_deref(),
            Some("svc_x")
        );
        assert_eq!(method(br#"{"method":7}"#), None);
        assert_eq!(method(b"[]"), None);
        assert_eq!(method(b"{"), None);
    }
}
