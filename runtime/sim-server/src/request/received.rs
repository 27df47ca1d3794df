//! A request as it was received.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

use super::Port;

/// The content type of a body with parameters.
const FORM: &str = "application/x-www-form-urlencoded";

/// A request as it was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) port: Port,
    pub(crate) ip: IpAddr,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// Without the question mark, still encoded.
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
}

impl<'a> Received<'a> {
    /// The part of the body that has parameters. A GET request has parameters in the query alone. A
    /// body whose content type is not that of a form has none
    /// (docs/interface/conventions.md#parameters).
    pub(crate) fn form(&self) -> &'a [u8] {
        if self.method == "GET" || !self.is_form() {
            &[]
        } else {
            self.body
        }
    }

    fn is_form(&self) -> bool {
        let value = self.headers.get(CONTENT_TYPE);
        let text = value.and_then(|value| value.to_str().ok()).unwrap_or("");
        let kind = text.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case(FORM)
    }
}
