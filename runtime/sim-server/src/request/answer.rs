//! The result of a handler, and how it is sent. Errors have the form `{code, msg}`
//! (docs/interface/errors.md#error-payload).

use serde::Serialize;

/// The result of a handler.
pub(crate) type Answer = Result<Body, Refusal>;

/// The body of a successful response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body(pub(crate) String);

impl Body {
    /// A record as JSON.
    pub(crate) fn json(record: &impl Serialize) -> Self {
        // Records are maps with text keys; their serialization cannot fail.
        Self(serde_json::to_string(record).unwrap_or_default())
    }
}

/// A definite refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// HTTP status.
    pub(crate) status: u16,
    /// Code of the table (docs/interface/errors.md#error-payload).
    pub(crate) code: i32,
    /// Error message.
    pub(crate) msg: String,
    /// `Retry-After` in seconds.
    pub(crate) retry_after_s: Option<u64>,
    /// The body is a page of a server in front of the venue, not an error of the venue.
    pub(crate) is_page: bool,
}

impl Refusal {
    /// A refusal with status 400.
    pub(crate) fn new(code: i32, msg: impl Into<String>) -> Self {
        Self {
            status: 400,
            code,
            msg: msg.into(),
            retry_after_s: None,
            is_page: false,
        }
    }

    /// Sets another status.
    #[must_use]
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// A documented route that this venue does not implement (-1020).
    pub(crate) fn not_built(route: &str) -> Self {
        Self::new(-1020, format!("{route} is not built in this venue."))
    }

    /// `{code, msg}`.
    pub(crate) fn body(&self) -> String {
        if self.is_page {
            return "404 page not found\n".to_owned();
        }
        error_body(self.code, &self.msg)
    }
}

/// `{code, msg}` as text.
pub(crate) fn error_body(code: i32, msg: &str) -> String {
    serde_json::json!({ "code": code, "msg": msg }).to_string()
}

/// A response as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Sent {
    /// The response, with the headers that its content requires.
    pub(crate) fn new(answer: Answer) -> Self {
        let mut headers = vec![("content-type", "application/json;charset=UTF-8".to_owned())];
        match answer {
            Ok(Body(body)) => Self {
                status: 200,
                headers,
                body,
            },
            Err(refusal) => {
                if let Some(seconds) = refusal.retry_after_s {
                    headers.push(("retry-after", seconds.to_string()));
                }
                Self {
                    status: refusal.status,
                    headers,
                    body: refusal.body(),
                }
            }
        }
    }
}
