//! The one outcome type. It classifies the result of a request by the caller's next step.
//!
//! This module never sends a request again. That is the caller's decision.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use windvane_protocol::error::{Complaint, Limit, Pause, VenueError};
use windvane_protocol::sign::PrepareError;

use crate::budget::{Denial, Denied};
use crate::called_route::CalledRoute;

/// The result of a request.
///
/// | outcome | did it take effect? | next |
/// |---|---|---|
/// | [`Done`](Self::Done) | yes | use the response |
/// | [`Refused`](Self::Refused) | no | change something; the same request would be refused again |
/// | [`Unknown`](Self::Unknown) | perhaps | query its state before anything else |
/// | [`Wait`](Self::Wait) | no | send it again, but not before the stated time |
///
/// A request that only reads is never `Unknown`. It changes nothing, so after a lost response it
/// may be sent again.
///
/// ```
/// use windvane_client_core::outcome::Outcome;
/// use windvane_protocol::wire::spot::QueryOrder;
///
/// /// The query that must follow an order before anything else is sent, if one is needed.
/// fn question<T>(outcome: &Outcome<T>) -> Option<QueryOrder> {
///     match outcome {
///         Outcome::Done(_) | Outcome::Refused(_) | Outcome::Wait(_) => None,
///         // The order may be in the book: query it by the id that was chosen before sending.
///         Outcome::Unknown(_) => Some(QueryOrder::new("BTCUSDT").client_order_id("mm:1")),
///     }
/// }
/// assert!(question(&Outcome::Done("accepted")).is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome<T> {
    /// The request was carried out, and its response was read.
    Done(T),
    /// The request was not carried out, and would be refused again.
    Refused(Refusal),
    /// The request may or may not have been carried out.
    Unknown(UnknownReason),
    /// The request was not carried out, and may be sent again later.
    Wait(Wait),
}

/// Why a request was definitely not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request was not sent, because it cannot be built from these parameters.
    #[error(transparent)]
    NotMade(#[from] RequestError),
    /// The venue refused it.
    #[error("the venue refused: {}", ComplaintText(.complaint))]
    Venue {
        /// The route and version that were called.
        called_route: CalledRoute,
        /// The venue's error.
        complaint: Complaint,
        /// No request of this kind will succeed until a person changes something.
        is_fatal: bool,
    },
    /// A read succeeded, but the response is not the record that the documents describe.
    #[error("the answer cannot be read: {error}; it begins with {excerpt:?}")]
    Unreadable {
        /// The parse error.
        error: String,
        /// The first characters of the response.
        excerpt: String,
    },
}

/// Why it is unknown whether a request was carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownReason {
    /// No response, or only a part of it.
    #[error("no answer: {0}")]
    NoAnswer(Lost),
    /// The venue reported that it does not know, or the response did not come from the venue.
    #[error("the venue does not say: {}", ComplaintText(.0))]
    Venue(Complaint),
    /// The venue reported success, but the response is not the record that the documents describe.
    #[error("carried out, but the answer cannot be read: {error}; it begins with {excerpt:?}")]
    Unreadable {
        /// The parse error.
        error: String,
        /// The first characters of the response.
        excerpt: String,
    },
}

/// Why the request must wait, and how long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Wait {
    /// The reason.
    pub why: WaitReason,
    /// The request must not be sent again before this time has passed.
    pub after: Duration,
}

/// Why a request may be sent again later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitReason {
    /// The budget did not allow it.
    #[error("{0}")]
    Budget(Denied),
    /// The venue refused it because of a limit.
    #[error("the venue says wait, {}: {}", .0.limit, ComplaintText(&.0.complaint))]
    Venue(Pause),
    /// The connection could not be opened, so no byte was sent.
    #[error("no connection: {0}")]
    NoConnection(String),
    /// A read without a response. It cannot have changed anything.
    #[error("the venue sent no response to a query: {0}")]
    NoAnswer(Lost),
    /// A read that the venue could not answer. It cannot have changed anything.
    #[error("the venue could not answer: {}", ComplaintText(.0))]
    Busy(Complaint),
}

/// How a response was lost after the request may have been sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// It did not arrive in time.
    #[error("nothing came within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Cut(String),
    /// It is longer than any response in the documents.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

/// A request that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No route of this name.
    #[error("route {0:?} is not in the table; `windvane routes` prints it")]
    NoRoute(String),
    /// The settings hold no base address for the surface.
    #[error("no REST address of {0} is configured: set venue.{0}.rest")]
    NoAddress(windvane_protocol::route::Surface),
    /// A key is missing, or a parameter that must be signed.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The URL would not carry the bytes that were signed.
    #[error(
        "the URL would not carry the signed bytes from {near:?} on: not sent; check the base \
         address and the brand"
    )]
    OtherBytes {
        /// A few signed characters around the first difference.
        near: String,
    },
    /// Base address and path do not form a valid URL.
    #[error("{url:?} is no URL: {error}; check the base address")]
    Url {
        /// The URL without its query, which may contain a signature.
        url: String,
        /// The parse error.
        error: String,
    },
    /// A header value that HTTP cannot carry. The message does not show the value.
    #[error("the value of header {0} has characters that no header may have; check the API key")]
    Header(&'static str),
}

impl<T> Outcome<T> {
    /// The response, if the request was carried out.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(answer) => Some(answer),
            _ => None,
        }
    }

    /// Maps the response.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Done(answer) => Outcome::Done(change(answer)),
            Self::Refused(refusal) => Outcome::Refused(refusal),
            Self::Unknown(reason) => Outcome::Unknown(reason),
            Self::Wait(wait) => Outcome::Wait(wait),
        }
    }

    /// Converts to a `Result`, for callers that treat everything but success alike. Code that
    /// places orders must not use it.
    pub fn into_result(self) -> Result<T, NotDone> {
        match self {
            Self::Done(answer) => Ok(answer),
            Self::Refused(refusal) => Err(NotDone::Refused(refusal)),
            Self::Unknown(reason) => Err(NotDone::Unknown(reason)),
            Self::Wait(wait) => Err(NotDone::Wait(wait)),
        }
    }
}

impl<T> From<RequestError> for Outcome<T> {
    fn from(error: RequestError) -> Self {
        Self::Refused(Refusal::NotMade(error))
    }
}

/// Everything but [`Outcome::Done`], as an error whose text includes the advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// The request was definitely not carried out.
    Refused(Refusal),
    /// The request may have been carried out.
    Unknown(UnknownReason),
    /// The request was not carried out; it may be sent again later.
    Wait(Wait),
}

impl<T> From<NotDone> for Outcome<T> {
    fn from(not_done: NotDone) -> Self {
        match not_done {
            NotDone::Refused(refusal) => Self::Refused(refusal),
            NotDone::Unknown(reason) => Self::Unknown(reason),
            NotDone::Wait(wait) => Self::Wait(wait),
        }
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => write!(f, "{refusal}. {}", refusal.advice()),
            Self::Unknown(reason) => write!(f, "{reason}. {}", reason.advice()),
            Self::Wait(wait) => write!(f, "{wait}. {}", wait.advice()),
        }
    }
}

impl std::error::Error for NotDone {}

impl Refusal {
    /// The venue's error code, if the response has one.
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Venue { complaint, .. } => complaint.error.as_ref().map(|error| error.code),
            _ => None,
        }
    }

    /// The venue's error message, if the response has one.
    pub fn msg(&self) -> Option<&str> {
        match self {
            Self::Venue { complaint, .. } => complaint.error.as_ref().map(|error| &*error.msg),
            _ => None,
        }
    }

    /// Whether the venue does not have this route: it responded with 404 and no other error.
    pub fn is_of_no_route(&self) -> bool {
        match self {
            Self::Venue { complaint, .. } => {
                let unsupported = self.code().is_none_or(|code| code == UNSUPPORTED_OPERATION);
                complaint.status == 404 && unsupported
            }
            _ => false,
        }
    }

    /// Whether the venue does not serve a read without options: either it does not have the route,
    /// or it responds that the operation is unsupported.
    pub fn is_of_unserved_read(&self) -> bool {
        self.is_of_no_route() || self.code() == Some(UNSUPPORTED_OPERATION)
    }

    /// Advice: the next step.
    pub fn advice(&self) -> Cow<'static, str> {
        let advice = match self {
            Self::NotMade(_) => "Nothing was sent: correct the request or the settings.",
            Self::Venue { called_route, .. } if self.is_of_no_route() => {
                return called_route.advice_where_not_served().into();
            }
            Self::Venue { complaint, .. } => advice_of(complaint)
                .unwrap_or("Nothing was changed: read the venue's own words before sending more."),
            Self::Unreadable { .. } => {
                "The venue speaks otherwise than its documents: compare the answer with them."
            }
        };
        advice.into()
    }
}

/// From docs/interface/errors.md#10xx.
const UNSUPPORTED_OPERATION: i64 = -1020;

const ASK_FIRST: &str =
    "It may have been carried out: query it by the client's own id before anything else.";

impl UnknownReason {
    /// Advice: the next step.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NoAnswer(_) => {
                "It may have been carried out: query it by the client's own id, and never send \
                 it again under another one."
            }
            // With 503 the code proves nothing, so its advice would mislead
            // (docs/interface/errors.md#http-status).
            Self::Venue(complaint) if complaint.status == 503 => ASK_FIRST,
            Self::Venue(complaint) => advice_of(complaint).unwrap_or(ASK_FIRST),
            Self::Unreadable { .. } => {
                "It was most likely carried out: query the state that it was to change."
            }
        }
    }
}

impl Wait {
    fn text(&self) -> String {
        // `Duration::MAX` means that it may never be sent.
        let after = match self.after {
            Duration::MAX => return self.why.to_string(),
            after if after < Duration::from_secs(10) => format!("{} ms", after.as_millis()),
            after => format!("{} s", after.as_millis().div_ceil(1_000)),
        };
        match &self.why {
            // Weight may become free earlier, if a later header shows it.
            WaitReason::Budget(denied) if matches!(denied.why, Denial::Weight | Denial::Own) => {
                format!("{denied} up to {after}")
            }
            WaitReason::Budget(denied) => format!("{denied} {after} at least"),
            why => format!("{why}; wait {after} at least"),
        }
    }

    /// Advice: the next step.
    pub const fn advice(&self) -> &'static str {
        match &self.why {
            WaitReason::Budget(denied) => match denied.why {
                Denial::Banned => "Send nothing at all: every request makes the ban longer.",
                Denial::Stopped(_) => "Send nothing before that: going on leads to a ban.",
                _ => "Nothing was sent: send it later, or less of it.",
            },
            WaitReason::Venue(pause) => match pause.limit {
                Limit::Ban => "Send nothing at all: every request makes the ban longer.",
                Limit::Orders => "Place no order before that; cancels may be sent.",
                _ => "Send nothing before that: going on leads to a ban.",
            },
            WaitReason::NoConnection(_) => "Nothing was sent: check address and network.",
            WaitReason::NoAnswer(_) | WaitReason::Busy(_) => "Nothing was changed: ask again.",
        }
    }
}

fn advice_of(complaint: &Complaint) -> Option<&'static str> {
    complaint.error.as_ref().map(VenueError::advice)
}

/// Status and error of a complaint on one line.
struct ComplaintText<'a>(&'a Complaint);

impl fmt::Display for ComplaintText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {}", self.0.status)?;
        match &self.0.error {
            Some(error) => write!(f, ", {error}"),
            None if self.0.excerpt.is_empty() => write!(f, ", no body"),
            None => write!(f, ", {:?}", self.0.excerpt),
        }
    }
}

#[cfg(test)]
mod tests {
    use windvane_protocol::error::{Judgement, judge};
    use windvane_protocol::route::{self, Surface, Version};

    use super::*;

    #[test]
    fn advice_after_a_503_is_to_query_first() {
        for code in [-1121, -1003, -2010, -7777] {
            let body = format!(r#"{{"code":{code},"msg":"text"}}"#);
            let Judgement::Unknown(complaint) = judge(503, None, &body) else {
                panic!("a 503 must be unknown")
            };
            assert_eq!(
                UnknownReason::Venue(complaint).advice(),
                ASK_FIRST,
                "{code}"
            );
        }
    }

    fn not_done(status: u16, retry_after: Option<&str>, body: &str) -> NotDone {
        match judge(status, retry_after, body) {
            Judgement::Success => panic!("{body} counts as a success"),
            Judgement::Refused {
                complaint,
                is_fatal,
            } => NotDone::Refused(Refusal::Venue {
                called_route: CalledRoute {
                    route: route::named("spot.trades").unwrap(),
                    version: Some(Version::V3),
                },
                complaint,
                is_fatal,
            }),
            Judgement::Unknown(complaint) => NotDone::Unknown(UnknownReason::Venue(complaint)),
            Judgement::Wait(pause) => wait(WaitReason::Venue(pause), 30_000),
        }
    }

    fn wait(why: WaitReason, after_ms: u64) -> NotDone {
        let after = Duration::from_millis(after_ms);
        NotDone::Wait(Wait { why, after })
    }

    fn denied(why: Denial, until_ms: Option<u64>) -> WaitReason {
        WaitReason::Budget(Denied { why, until_ms })
    }

    /// One outcome of each kind, with the text that a person reads.
    fn messages() -> Vec<(NotDone, &'static str)> {
        let route = "spot.account";
        let error = "missing field `orderId`".to_owned();
        let excerpt = "{}".to_owned();
        let never = Wait {
            why: denied(Denial::Weight, None),
            after: Duration::MAX,
        };
        vec![
            (
                NotDone::Refused(RequestError::NoAddress(Surface::Futures).into()),
                "no REST address of futures is configured: set venue.futures.rest. Nothing was \
                 sent: correct the request or the settings.",
            ),
            (
                NotDone::Refused(RequestError::from(PrepareError::NoApiKey { route }).into()),
                "spot.account needs an API key (header X-MBX-APIKEY): set account.api_key. Nothing \
                 was sent: correct the request or the settings.",
            ),
            (
                not_done(400, None, r#"{"code":-1121,"msg":"Invalid symbol."}"#),
                "the venue refused: HTTP 400, -1121 BAD_SYMBOL: Invalid symbol. Take the symbol \
                 from exchangeInfo of this surface, in upper case.",
            ),
            (
                not_done(400, None, r#"{"code":-9999,"msg":""}"#),
                "the venue refused: HTTP 400, -9999 (not listed). The documents do not list this \
                 code: read the venue's own words.",
            ),
            (
                not_done(404, None, "<html>nothing here</html>"),
                "the venue refused: HTTP 404, \"<html>nothing here</html>\". Nothing was changed: \
                 the venue does not serve spot.trades at this address, and the route has no other \
                 version. Check that venue.spot.rest is the address of the venue's spot routes.",
            ),
            (
                not_done(400, None, r#"{"msg":"text"}"#),
                "the venue refused: HTTP 400, \"{\\\"msg\\\":\\\"text\\\"}\". Nothing was changed: \
                 read the venue's own words before sending more.",
            ),
            (
                NotDone::Unknown(UnknownReason::NoAnswer(Lost::Timeout(Duration::from_secs(
                    10,
                )))),
                "no answer: nothing came within 10000 ms. It may have been carried out: query it by \
                 the client's own id, and never send it again under another one.",
            ),
            (
                not_done(503, None, ""),
                "the venue does not say: HTTP 503, no body. It may have been carried out: query it \
                 by the client's own id before anything else.",
            ),
            (
                NotDone::Unknown(UnknownReason::Unreadable { error, excerpt }),
                "carried out, but the answer cannot be read: missing field `orderId`; it begins \
                 with \"{}\". It was most likely carried out: query the state that it was to change.",
            ),
            (
                not_done(
                    429,
                    Some("30"),
                    r#"{"code":-1003,"msg":"Too many requests."}"#,
                ),
                "the venue says wait, too much request weight: HTTP 429, -1003 TOO_MANY_REQUESTS: \
                 Too many requests; wait 30 s at least. Send nothing before that: going on leads to \
                 a ban.",
            ),
            (
                not_done(418, None, ""),
                "the venue says wait, this address is banned: HTTP 418, no body; wait 30 s at \
                 least. Send nothing at all: every request makes the ban longer.",
            ),
            (
                wait(denied(Denial::Orders, Some(5)), 1_200),
                "the order limit of this interval is used up: wait 1200 ms at least. Nothing was sent: \
                 send it later, or less of it.",
            ),
            (
                NotDone::Wait(never),
                "no request weight is left for this: other programs on the address use it, or it is \
                 reserved for cancels, closes and renewals: it asks for more than a whole interval \
                 gives, send less. Nothing was sent: send it later, or less of it.",
            ),
            (
                wait(denied(Denial::Stopped(Limit::Firewall), Some(5)), 60_000),
                "the venue said stop (HTTP 403, the firewall): wait 60 s at least. Send nothing \
                 before that: going on leads to a ban.",
            ),
            (
                wait(WaitReason::NoConnection("refused".to_owned()), 1_000),
                "no connection: refused; wait 1000 ms at least. Nothing was sent: check address and \
                 network.",
            ),
        ]
    }

    #[test]
    fn messages_say_what_happened_and_what_to_do() {
        for (not_done, text) in messages() {
            let shown = not_done.to_string();
            assert_eq!(shown, text);
            assert!(!shown.contains("..") && !shown.contains("  "), "{shown}");
        }
    }
}
