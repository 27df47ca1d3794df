//! Access control. Every request needs an allowed Host and no Origin, because a web page in a
//! browser on this machine can also reach loopback, under its own name (rebinding) or across
//! origins. `/api` and `/metrics` also need the Unix socket, the token, or a proof of it (`proof`).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::{BodyExt, Collected, Limited};
use tokio::time::timeout;

use crate::metrics::{Metrics, table};
use crate::proof::{self, Challenge, Nonces};
use crate::token::Token;

use super::Settings;
use super::answer::{json, refuse, with_headers};
use super::visits::{Arrival, Asked, Visit};

/// A request with a proof has at most this body; [`super::routes`] refuses a longer one.
const PROVEN_BODY_BYTES_MAX: usize = 4 * 1024;
/// The time limit for such a body.
const BODY_WITHIN: Duration = Duration::from_secs(5);

/// The conditions for a request.
#[derive(Debug)]
pub(super) struct AccessControl {
    /// The TCP address; `None` with the socket only.
    address: Option<SocketAddr>,
    exposed: bool,
    /// The token of the TCP address.
    token: Option<Token>,
    nonces: Arc<Nonces>,
}

/// A request that may pass.
enum Admitted {
    /// Through the socket, or with the token.
    Plain(Request),
    /// With a proof for this nonce. The answer gets one too.
    Proven(Request, String),
}

impl AccessControl {
    pub(super) fn new(
        settings: &Settings,
        address: Option<SocketAddr>,
        nonces: Arc<Nonces>,
    ) -> Self {
        let tcp = settings.tcp.as_ref();
        Self {
            address,
            exposed: tcp.is_some_and(|tcp| tcp.expose),
            token: tcp.map(|tcp| tcp.token.clone()),
            nonces,
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
        let is_own = self.address.is_some_and(|address| ip == address.ip());
        ip.is_loopback() || is_own || self.exposed
    }

    fn refuses(&self, headers: &HeaderMap) -> Option<Response> {
        let host = only(headers, &HOST).and_then(|host| host.to_str().ok());
        if !host.is_some_and(|host| self.is_host(host)) {
            let use_instead = match self.address {
                Some(address) => format!("use {address} or localhost:{}", address.port()),
                None => "use localhost".to_owned(),
            };
            return Some(refuse(
                StatusCode::FORBIDDEN,
                "the Host header does not name this server",
                &use_instead,
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

    /// Whether the request may pass; otherwise the refusal.
    async fn admit(&self, request: Request) -> Result<Admitted, Response> {
        let visit = request.extensions().get::<Arc<Visit>>();
        if visit.is_some_and(|visit| visit.arrival() == Arrival::Socket) {
            return Ok(Admitted::Plain(request));
        }
        let (Some(token), Some(value)) = (&self.token, only(request.headers(), &AUTHORIZATION))
        else {
            return Err(unauthorized());
        };
        let value = value.as_bytes();
        if let Some(given) = after_scheme(value, "bearer ") {
            if token.is(given) {
                return Ok(Admitted::Plain(request));
            }
        } else if let Some(given) = after_scheme(value, proof::SCHEME)
            && let Ok(given) = std::str::from_utf8(given)
            && let Some((nonce, mac)) = given.split_once(':')
            && self.nonces.is_valid(nonce)
        {
            let (nonce, mac) = (nonce.to_owned(), mac.to_owned());
            return self.admit_proven(token, request, (nonce, mac)).await;
        }
        Err(unauthorized())
    }

    async fn admit_proven(
        &self,
        token: &Token,
        request: Request,
        (nonce, mac): (String, String),
    ) -> Result<Admitted, Response> {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, PROVEN_BODY_BYTES_MAX).collect();
        let Ok(Ok(body)) = timeout(BODY_WITHIN, body).await else {
            return Err(refuse(
                StatusCode::BAD_REQUEST,
                "the body is not complete, or too long",
                "send it again; nothing was done",
            ));
        };
        let body = body.to_bytes();
        let asked = head.extensions.get::<Asked>();
        let path = asked.map_or("", |asked| asked.0.as_str());
        let is_proven = token.is_request((&nonce, &mac), &head.method, path, &body);
        // Only a client with the token reaches the second condition.
        if !is_proven || !self.nonces.spend(&nonce) {
            return Err(unauthorized());
        }
        Ok(Admitted::Proven(
            Request::from_parts(head, Body::from(body)),
            nonce,
        ))
    }

    /// Adds the proof of an answer.
    async fn prove(&self, nonce: &str, response: Response) -> Response {
        let Some(token) = &self.token else {
            return response;
        };
        let (mut head, body) = response.into_parts();
        // Bodies are complete in memory already, so this neither waits nor fails.
        let body = body.collect().await.map(Collected::to_bytes);
        let body = body.unwrap_or_default();
        let proof = token.answer_proof(nonce, head.status.as_u16(), &body);
        if let Ok(proof) = HeaderValue::from_str(&proof) {
            head.headers.insert(proof::ANSWER_HEADER, proof);
        }
        Response::from_parts(head, Body::from(body))
    }

    /// Answers a client's challenge.
    fn answer_challenge(&self, query: Option<&str>) -> Response {
        let nonce = query.and_then(|query| query.strip_prefix("nonce="));
        let Some(client) = nonce.filter(|nonce| proof::is_client_nonce(nonce)) else {
            return refuse(
                StatusCode::BAD_REQUEST,
                "a challenge needs a nonce",
                "send ?nonce= with 32 random bytes in hex",
            );
        };
        let Some(token) = &self.token else {
            return refuse(
                StatusCode::NOT_FOUND,
                "the Unix socket needs no proof",
                "send the request without one",
            );
        };
        match self.nonces.issue() {
            Ok(nonce) => {
                let proof = token.server_proof(client, &nonce);
                json(StatusCode::OK, &Challenge { nonce, proof })
            }
            Err(error) => refuse(
                StatusCode::INTERNAL_SERVER_ERROR,
                &error.to_string(),
                "use the Unix socket admin.sock in data_dir",
            ),
        }
    }
}

fn after_scheme<'a>(value: &'a [u8], scheme: &str) -> Option<&'a [u8]> {
    let (given, rest) = value.split_at_checked(scheme.len())?;
    given
        .eq_ignore_ascii_case(scheme.as_bytes())
        .then_some(rest)
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

/// Lets a request pass that came through the socket, or that knows the token.
pub(super) async fn admit_known(
    State(access_control): State<Arc<AccessControl>>,
    request: Request,
    next: Next,
) -> Response {
    match access_control.admit(request).await {
        Ok(Admitted::Plain(request)) => next.run(request).await,
        Ok(Admitted::Proven(request, nonce)) => {
            let response = next.run(request).await;
            access_control.prove(&nonce, response).await
        }
        Err(refused) => refused,
    }
}

/// The route of challenges.
pub(super) async fn challenge(
    State(access_control): State<Arc<AccessControl>>,
    request: Request,
) -> Response {
    access_control.answer_challenge(request.uri().query())
}

fn unauthorized() -> Response {
    let mut refused = refuse(
        StatusCode::UNAUTHORIZED,
        "the token is missing or wrong",
        "send Authorization: Bearer TOKEN, with the token of admin.token (default: the file \
         admin.token in data_dir), or use the Unix socket admin.sock in data_dir",
    );
    let challenge = HeaderValue::from_static("Bearer");
    refused.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    refused
}

#[cfg(test)]
mod tests {
    use super::super::Tcp;
    use super::*;

    fn access_control(address: &str, exposed: bool) -> AccessControl {
        let token = Token::from_text(&"t".repeat(32), "test").unwrap();
        let address = address.parse().unwrap();
        let mut settings = Settings::new("unused");
        settings.tcp = Some(Tcp {
            expose: exposed,
            ..Tcp::new(address, token)
        });
        AccessControl::new(&settings, Some(address), Arc::new(Nonces::new().unwrap()))
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
