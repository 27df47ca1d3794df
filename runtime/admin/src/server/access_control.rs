//! Access control. Every request needs an allowed Host and no Origin, because a web page in a
//! browser on this machine can also reach loopback, under its own name (rebinding) or across
//! origins. `/api` also needs the token.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::metrics::{Metrics, table};
use crate::token::Token;

use super::answer::{refuse, with_headers};

/// The conditions for a request.
#[derive(Debug)]
pub(super) struct AccessControl {
    address: SocketAddr,
    exposed: bool,
    token: Token,
}

impl AccessControl {
    pub(super) const fn new(address: SocketAddr, exposed: bool, token: Token) -> Self {
        Self {
            address,
            exposed,
            token,
        }
    }

    /// Whether a Host header can only come from a client that meant this server. Any port is
    /// accepted: tunnels change it, and a web page under another name gains nothing from it.
    fn is_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
        let Ok(ip) = bare.unwrap_or(name).parse::<IpAddr>() else {
            return false;
        };
        // An IP address cannot be rebound. On an exposed server, any address of this machine is
        // accepted.
        ip.is_loopback() || ip == self.address.ip() || self.exposed
    }

    fn refuses(&self, headers: &HeaderMap) -> Option<Response> {
        let host = only(headers, &HOST).and_then(|host| host.to_str().ok());
        if !host.is_some_and(|host| self.is_host(host)) {
            let address = self.address;
            return Some(refuse(
                StatusCode::FORBIDDEN,
                "the Host header does not name this server",
                &format!("use {address} or localhost:{}", address.port()),
            ));
        }
        if headers.contains_key(ORIGIN) {
            return Some(refuse(
                StatusCode::FORBIDDEN,
                "requests of web pages (with an Origin header) are refused",
                "use the verbs of windvane, or a client that is not a browser",
            ));
        }
        None
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(value) = only(headers, &AUTHORIZATION) else {
            return false;
        };
        let value = value.as_bytes();
        let Some((scheme, token)) = value.split_at_checked("bearer ".len()) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"bearer ") && self.token.is(token)
    }
}

/// The value of a header that occurs exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Checks Host and Origin on all routes, and adds the common headers.
pub(super) async fn admit_host(
    State((access_control, metrics)): State<(Arc<AccessControl>, Metrics)>,
    request: Request,
    next: Next,
) -> Response {
    let response = match access_control.refuses(request.headers()) {
        Some(refused) => refused,
        None => next.run(request).await,
    };
    metrics.within(|| {
        let status = response.status();
        table::ADMIN_REQUESTS.of([status.as_str()]).increment(1);
    });
    with_headers(response)
}

/// Checks the token for `/api`.
pub(super) async fn admit_token(
    State(access_control): State<Arc<AccessControl>>,
    request: Request,
    next: Next,
) -> Response {
    if access_control.admits(request.headers()) {
        return next.run(request).await;
    }
    let mut refused = refuse(
        StatusCode::UNAUTHORIZED,
        "the token is missing or wrong",
        "send Authorization: Bearer TOKEN, with the token of admin.token (default: the file \
         admin.token in data_dir)",
    );
    let challenge = HeaderValue::from_static("Bearer");
    refused.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access_control(address: &str, exposed: bool) -> AccessControl {
        let token = Token::from_text(&"t".repeat(32), "test").unwrap();
        AccessControl::new(address.parse().unwrap(), exposed, token)
    }

    #[test]
    fn only_loopback_names_this_server() {
        let access_control = access_control("127.0.0.2:9800", false);
        let ours = "localhost LocalHost:9800 127.0.0.1 127.0.0.1:1 127.0.0.2:9800 [::1] [::1]:9800";
        for host in ours.split(' ') {
            assert!(access_control.is_host(host), "{host}");
        }
        let others = "example.com 127.0.0.1.example.com:9800 10.0.0.1:9800 localhost.:9800 \
                      localhost:x user@localhost 0.0.0.0";
        for host in others.split_whitespace().chain([""]) {
            assert!(!access_control.is_host(host), "{host}");
        }
    }

    #[test]
    fn an_exposed_server_accepts_addresses_but_no_names() {
        let access_control = access_control("0.0.0.0:9800", true);
        assert!(access_control.is_host("10.0.0.1:9800"));
        assert!(!access_control.is_host("example.com:9800"));
    }
}
