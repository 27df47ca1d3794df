//! HTTP: one prepared request out, one response in. It sends nothing twice, follows no redirect and
//! uses no system proxy.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::header::{CONTENT_LENGTH, HeaderMap};
use http::{HeaderName, HeaderValue};
use url::Url;
use windvane_protocol::route::Method;
use windvane_protocol::sign::Prepared;

use windvane_client_core::gateway::Failure;

use crate::departure::Departure;
use crate::outcome::{Lost, RequestError};
use crate::settings::Timeouts;

/// The documented responses are far shorter than this.
const ANSWER_MAX: usize = 64 << 20;

/// A response as received: not decoded and not classified.
#[derive(Clone, PartialEq, Eq)]
pub struct RawAnswer {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body; bytes that are not UTF-8 are replaced.
    pub text: String,
}

impl fmt::Debug for RawAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The response of createApiKey contains a secret.
        write!(f, "HTTP {}, {} bytes", self.status, self.text.len())
    }
}

impl RawAnswer {
    /// The value of a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Names and values of the headers that are text.
    pub fn texts(&self) -> Vec<(&str, &str)> {
        let headers = self.headers.iter();
        headers
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
            .collect()
    }
}

/// A request that is ready to be written: exactly these bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Ready {
    /// Method.
    pub method: Method,
    /// The complete address; its query is the signed text.
    pub url: Url,
    /// Headers. They may contain an API key.
    pub headers: Vec<(&'static str, String)>,
    /// Body.
    pub body: Option<String>,
    /// The signed text: the text of the HMAC or `Message`, or typed data as JSON.
    pub signed: Option<String>,
}

impl Ready {
    /// Combines the base address and the prepared request. It refuses if the URL would contain
    /// other bytes than the signed ones.
    pub(crate) fn new(
        base: &Url,
        prepared: Prepared,
        known: &KnownUrls,
    ) -> Result<Self, RequestError> {
        let base = base.as_str();
        let base = base.strip_suffix('/').unwrap_or(base);
        let query = prepared.query.as_deref();
        let mut text =
            String::with_capacity(base.len() + prepared.path.len() + query.map_or(0, str::len) + 1);
        text.push_str(base);
        text.push_str(&prepared.path);
        if let Some(query) = query {
            text.push('?');
            text.push_str(query);
        }
        let url = match query {
            None => known.parsed(text, |text| checked(text, &prepared))?,
            Some(_) => checked(&text, &prepared)?,
        };
        Ok(Self {
            method: prepared.method,
            url,
            headers: prepared.headers,
            body: prepared.body,
            signed: prepared.signed,
        })
    }

    /// Converts into the request type of the HTTP library.
    fn into_request(self) -> Result<reqwest::Request, RequestError> {
        let method = match self.method {
            Method::Get => http::Method::GET,
            Method::Post => http::Method::POST,
            Method::Put => http::Method::PUT,
            Method::Delete => http::Method::DELETE,
        };
        let mut request = reqwest::Request::new(method, self.url);
        let headers = request.headers_mut();
        for (name, value) in self.headers {
            let key = HeaderName::from_bytes(name.as_bytes());
            let key = key.map_err(|_| RequestError::Header(name))?;
            let mut value =
                HeaderValue::from_str(&value).map_err(|_| RequestError::Header(name))?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        match (self.body, self.method) {
            (Some(body), _) => *request.body_mut() = Some(body.into()),
            // Send the length explicitly: some servers refuse a POST without it (411).
            (None, Method::Post | Method::Put) => {
                let zero = HeaderValue::from_static("0");
                request.headers_mut().insert(CONTENT_LENGTH, zero);
            }
            (None, Method::Get | Method::Delete) => {}
        }
        Ok(request)
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Key and signature must not reach a log.
        write!(f, "{} {}", self.method, self.url.path())
    }
}

/// Parses a URL and checks that it contains exactly the signed bytes.
fn checked(text: &str, prepared: &Prepared) -> Result<Url, RequestError> {
    let url = Url::parse(text).map_err(|error| RequestError::Url {
        url: text.split('?').next().unwrap_or_default().to_owned(),
        error: error.to_string(),
    })?;
    let query = prepared.query.as_deref();
    if url.query() != query || !url.path().ends_with(&prepared.path) || url.fragment().is_some() {
        let signed = query.unwrap_or(&prepared.path);
        return Err(RequestError::OtherBytes {
            near: difference(signed, url.query().unwrap_or_default()),
        });
    }
    Ok(url)
}

/// A cache of URLs without a query, one for each route that sends a body, so that an order does not
/// wait for a URL parser.
#[derive(Debug, Default)]
pub(crate) struct KnownUrls(Mutex<BTreeMap<String, Url>>);

impl KnownUrls {
    fn parsed(
        &self,
        text: String,
        parse: impl FnOnce(&str) -> Result<Url, RequestError>,
    ) -> Result<Url, RequestError> {
        // The map is consistent after every operation, so a poisoned lock is safe to use.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(url) = known.get(&text) {
            return Ok(url.clone());
        }
        let url = parse(&text)?;
        known.insert(text, url.clone());
        Ok(url)
    }
}

/// A few characters of `signed` around the first difference from `url`.
fn difference(signed: &str, url: &str) -> String {
    let same = signed.chars().zip(url.chars());
    let same = same.take_while(|(signed, url)| signed == url).count();
    signed
        .chars()
        .skip(same.saturating_sub(8))
        .take(24)
        .collect()
}

/// The connections of a client: HTTP/1.1 with keep-alive.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    http: reqwest::Client,
    timeout: Duration,
}

/// The HTTP library refused its settings.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// TLS.
    #[error("TLS cannot be set up: {0}; check the certificates of tls_roots")]
    Tls(#[from] rustls::Error),
    /// HTTP.
    #[error("HTTP cannot be set up: {0}")]
    Http(#[from] reqwest::Error),
}

impl Transport {
    pub(crate) fn new(
        timeouts: &Timeouts,
        tls: rustls::ClientConfig,
    ) -> Result<Self, TransportError> {
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .retry(reqwest::retry::never())
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .http1_only()
            .tcp_nodelay(true)
            .connect_timeout(timeouts.connect)
            .pool_idle_timeout(timeouts.idle)
            .build()?;
        Ok(Self {
            http,
            timeout: timeouts.request,
        })
    }

    /// These connections, with at most this response timeout.
    pub(crate) fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            timeout: self.timeout.min(timeout),
            ..self.clone()
        }
    }

    /// Writes a request once and reads the complete response.
    pub(crate) async fn exchange(
        &self,
        ready: Ready,
        departure: Option<&Departure>,
    ) -> Result<RawAnswer, Failure> {
        let request = ready.into_request().map_err(Failure::NotMade)?;
        if let Some(departure) = departure {
            departure.notify();
        }
        match tokio::time::timeout(self.timeout, self.answer(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::Lost(Lost::Timeout(self.timeout))),
        }
    }

    async fn answer(&self, request: reqwest::Request) -> Result<RawAnswer, Failure> {
        let mut response = match self.http.execute(request).await {
            Ok(response) => response,
            Err(error) if error.is_connect() => return Err(Failure::NoConnection(chain(error))),
            Err(error) => return Err(Failure::Lost(Lost::Cut(chain(error)))),
        };
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(part)) if body.len() + part.len() > ANSWER_MAX => {
                    return Err(Failure::Lost(Lost::TooLong(ANSWER_MAX)));
                }
                Ok(Some(part)) => body.extend_from_slice(&part),
                Ok(None) => break,
                Err(error) => return Err(Failure::Lost(Lost::Cut(chain(error)))),
            }
        }
        let text = String::from_utf8(body)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok(RawAnswer {
            status,
            headers,
            text,
        })
    }
}

/// An error with its causes, but without the URL, which may contain a signature.
fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(path: &str, query: Option<&str>) -> Prepared {
        Prepared {
            method: Method::Get,
            path: path.to_owned(),
            query: query.map(str::to_owned),
            headers: vec![("X-MBX-APIKEY", "sesame".to_owned())],
            body: None,
            signed: None,
        }
    }

    fn ready(query: &str) -> Result<Ready, RequestError> {
        let base = Url::parse("http://127.0.0.1:1/base/").unwrap();
        Ready::new(
            &base,
            prepared("/api/v1/order", Some(query)),
            &KnownUrls::default(),
        )
    }

    #[test]
    fn the_query_equals_the_signed_bytes() {
        let query = "symbol=BTCUSDT&newClientOrderId=mm%3A1&x=%20%27";
        let ready = ready(query).unwrap();
        assert_eq!(ready.url.query(), Some(query));
        assert_eq!(ready.url.path(), "/base/api/v1/order");
    }

    #[test]
    fn bytes_that_the_url_would_change_are_not_sent() {
        for query in [
            "a=1&b='",
            "a=1&b=\"",
            "a=1&b=é",
            "a=1#b",
            "a=1&b=\n2",
            "a=<",
        ] {
            let refused = ready(query).unwrap_err();
            assert!(
                matches!(refused, RequestError::OtherBytes { .. }),
                "{query}: {refused}"
            );
        }
        let base = Url::parse("http://127.0.0.1:1").unwrap();
        let known = KnownUrls::default();
        for _ in 0..2 {
            let dots = Ready::new(&base, prepared("/api/../v1/order", None), &known);
            assert!(matches!(dots, Err(RequestError::OtherBytes { .. })));
        }
    }

    #[test]
    fn a_cached_url_equals_the_parsed_url() {
        let base = Url::parse("http://127.0.0.1:1/base/").unwrap();
        let known = KnownUrls::default();
        let ready = |path| Ready::new(&base, prepared(path, None), &known).unwrap().url;
        let first = ready("/api/v1/order");
        assert_eq!(ready("/api/v1/order"), first);
        assert_eq!(first.as_str(), "http://127.0.0.1:1/base/api/v1/order");
        let other = ready("/api/v1/batchOrders");
        assert_eq!(other.as_str(), "http://127.0.0.1:1/base/api/v1/batchOrders");
    }

    #[test]
    fn debug_shows_neither_key_nor_query() {
        let text = format!("{:?}", ready("signature=abc").unwrap());
        assert_eq!(text, "GET /base/api/v1/order");
    }
}
