//! Classifies one HTTP response: success, refused, unknown, or wait. The rules in order:
//!
//! | response | judgement | source |
//! |---|---|---|
//! | 418 | wait: banned | docs/interface/limits.md#429-418-and-bans |
//! | 429 | wait: orders if -1015 or without Retry-After; otherwise weight | docs/interface/limits.md#429-418-and-bans |
//! | 503 | unknown, whatever the body contains | docs/interface/errors.md#http-status |
//! | error payload with any other status | by its code; an unlisted code with 5xx is unknown | docs/interface/errors.md#classes |
//! | 2xx, JSON or empty | success (an empty body counts as success) | docs/interface/README.md#11-html-and-empty-bodies |
//! | 2xx, HTML or not JSON | unknown: it may come from a proxy, or be cut off | |
//! | 403 | wait: the firewall stopped the request before the venue | docs/interface/errors.md#http-status |
//! | 401 | refused, fatal | |
//! | 408 | unknown: it is not known which part of the request arrived | |
//! | other 4xx | refused: the request had no effect | docs/interface/errors.md#http-status |
//! | 5xx, 1xx, 3xx | unknown | docs/interface/errors.md#http-status |

use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Class, VenueError, code};

/// The meaning of an HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The request was carried out; the body is JSON or empty.
    Success,
    /// The request was refused and changed nothing.
    Refused {
        /// The venue's response.
        complaint: Complaint,
        /// Every request of this kind fails until a person changes something.
        is_fatal: bool,
    },
    /// The request may or may not have been carried out.
    Unknown(Complaint),
    /// The request was refused because of a limit.
    Wait(Pause),
}

/// A response that is not a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// HTTP status.
    pub status: u16,
    /// The error payload, if there is one.
    pub error: Option<VenueError>,
    /// The beginning of a body that is not an error payload.
    pub excerpt: String,
}

/// A limit was broken: how long nothing may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Which limit.
    pub limit: Limit,
    /// `Retry-After`, seconds.
    pub retry_after_s: Option<u64>,
    /// End of the wait in Unix milliseconds, if the message states it (-1003) or `Retry-After` is a
    /// date.
    pub until_ms: Option<i64>,
    /// The venue's response.
    pub complaint: Complaint,
}

impl Pause {
    /// How long nothing may be sent, in milliseconds, given the current time of the venue's clock.
    /// `None` if the response does not state it.
    ///
    /// A local clock that was never compared with the venue's (`is_compared` is false) may be wrong
    /// by hours. A date then counts only for a ban whose response states no other end.
    pub fn length_ms(&self, venue_ms: i64, is_compared: bool) -> Option<u64> {
        let named_ms = self.retry_after_s.map(|after| after.saturating_mul(1_000));
        let left_ms = |until_ms: i64| u64::try_from(until_ms - venue_ms).unwrap_or(0);
        let dated_ms = self.until_ms.map(left_ms);
        let is_sure = is_compared || (named_ms.is_none() && self.limit == Limit::Ban);
        named_ms.max(dated_ms.filter(|_| is_sure))
    }
}

/// Why to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// `REQUEST_WEIGHT` of the IP: nothing may be sent.
    Weight,
    /// ORDERS of the account: no order may be placed. The venue does not send `Retry-After` with
    /// it.
    Orders,
    /// HTTP 418: the IP is banned, from 2 minutes to 3 days.
    Ban,
    /// HTTP 403 without an error payload: the firewall in front of the venue.
    Firewall,
    /// The service is shutting down (-1016).
    Closed,
}

impl Limit {
    /// The limit as text for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Weight => "too much request weight",
            Self::Orders => "too many orders",
            Self::Ban => "this address is banned",
            Self::Firewall => "stopped by the firewall",
            Self::Closed => "the service is shutting down",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Classifies a response by its status, its header `Retry-After` and its body.
pub fn judge(status: u16, retry_after: Option<&str>, body: &str) -> Judgement {
    let reading = Reading::of(body);
    let complain = || Complaint {
        status,
        error: reading.error().cloned(),
        excerpt: match reading {
            Reading::Error(_) => String::new(),
            _ => excerpt(body),
        },
    };
    let pause = |limit| {
        let complaint = complain();
        let stated = complaint
            .error
            .as_ref()
            .and_then(|error| ban_end(&error.msg));
        let dated = retry_after.and_then(http_date_ms);
        let until_ms = stated.max(dated);
        Judgement::Wait(Pause {
            limit,
            retry_after_s: retry_after.and_then(|text| text.trim().parse().ok()),
            until_ms,
            complaint,
        })
    };
    let refused = |is_fatal| Judgement::Refused {
        complaint: complain(),
        is_fatal,
    };
    match (status, &reading) {
        (418, _) => pause(Limit::Ban),
        (429, _) => pause(broken_limit(reading.error(), retry_after.is_some())),
        (_, Reading::Error(error)) if status != 503 => match error.class() {
            Class::Wait => pause(limit_of(error.code)),
            Class::Unknown => Judgement::Unknown(complain()),
            Class::Definite if status >= 500 && error.row().is_none() => {
                Judgement::Unknown(complain())
            }
            Class::Definite => refused(status == 401),
            Class::Fatal => refused(true),
        },
        (200..=299, Reading::Json | Reading::Empty) => Judgement::Success,
        (403, _) => pause(Limit::Firewall),
        (401, _) => refused(true),
        (400..=499, _) if status != 408 => refused(false),
        _ => Judgement::Unknown(complain()),
    }
}

/// The kind of a body.
enum Reading {
    Empty,
    Error(VenueError),
    Json,
    /// HTML, plain text, or JSON that is cut off.
    Foreign,
}

/// The keys that make a JSON object an error payload: `code` and `msg`, or `error` of JSON-RPC.
#[derive(Deserialize)]
struct Outer<'a> {
    #[serde(borrow, default)]
    code: Option<&'a serde_json::value::RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a serde_json::value::RawValue>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    #[serde(default)]
    message: String,
}

impl Reading {
    fn of(body: &str) -> Self {
        let body = body.trim_start_matches('\u{feff}').trim();
        if body.is_empty() {
            return Self::Empty;
        }
        if serde_json::from_str::<IgnoredAny>(body).is_err() {
            return Self::Foreign;
        }
        error_payload(body).map_or(Self::Json, Self::Error)
    }

    fn error(&self) -> Option<&VenueError> {
        match self {
            Self::Error(error) => Some(error),
            _ => None,
        }
    }
}

fn error_payload(body: &str) -> Option<VenueError> {
    let outer: Outer<'_> = serde_json::from_str(body).ok()?;
    if outer.code.is_some() {
        let error: VenueError = serde_json::from_str(body).ok()?;
        return (error.code < 0).then_some(error);
    }
    let error: RpcError = serde_json::from_str(outer.error?.get()).ok()?;
    Some(VenueError {
        code: error.code,
        msg: error.message,
    })
}

/// The limit behind a 429. The documents name no code for the order limit, only one sign: the
/// response has no `Retry-After` (docs/interface/limits.md#429-418-and-bans).
fn broken_limit(error: Option<&VenueError>, has_retry_after: bool) -> Limit {
    match error.map(|error| error.code) {
        Some(code) if code == code::TOO_MANY_ORDERS.code => Limit::Orders,
        _ if has_retry_after => Limit::Weight,
        _ => Limit::Orders,
    }
}

/// The limit that belongs to a code of class wait.
fn limit_of(code: i64) -> Limit {
    if code == code::TOO_MANY_ORDERS.code {
        Limit::Orders
    } else if code == code::SERVICE_SHUTTING_DOWN.code {
        Limit::Closed
    } else {
        Limit::Weight
    }
}

/// The time in `... banned until 1659146400000 ...`: the first number of 13 digits after `until`.
fn ban_end(msg: &str) -> Option<i64> {
    let (_, after) = msg.split_once("until")?;
    let mut numbers = after.split(|c: char| !c.is_ascii_digit());
    numbers.find(|digits| digits.len() == 13)?.parse().ok()
}

/// The Unix milliseconds of an HTTP date, `Sun, 06 Nov 1994 08:49:37 GMT`. The date has whole
/// seconds. The end of that second counts, so that nothing is sent too early.
fn http_date_ms(text: &str) -> Option<i64> {
    let date = httpdate::parse_http_date(text).ok()?;
    let since = date.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from((since.as_secs() + 1) * 1_000).ok()
}

/// The beginning of a foreign body, short enough for a log line.
fn excerpt(body: &str) -> String {
    const CHARS_MAX: usize = 200;
    body.trim().chars().take(CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTML: &str = "<html><body><h1>403 Forbidden</h1></body></html>";

    fn word(status: u16, retry_after: Option<&str>, body: &str) -> String {
        match judge(status, retry_after, body) {
            Judgement::Success => "success".to_owned(),
            Judgement::Refused { is_fatal, .. } => {
                if is_fatal { "fatal" } else { "definite" }.to_owned()
            }
            Judgement::Unknown(_) => "unknown".to_owned(),
            Judgement::Wait(pause) => format!("{:?} {:?}", pause.limit, pause.retry_after_s),
        }
    }

    fn payload(code: i64) -> String {
        format!(r#"{{"code":{code},"msg":"text"}}"#)
    }

    #[test]
    fn statuses_without_a_code_are_classed_by_the_documents() {
        for (status, body, expected) in [
            (200, "{}", "success"),
            (200, "", "success"),
            (200, "  \r\n", "success"),
            (200, "1723161256313", "success"),
            (200, "[]", "success"),
            (204, "", "success"),
            (200, HTML, "unknown"),
            (200, "{\"orderId\":12", "unknown"),
            (200, "OK", "unknown"),
            (301, HTML, "unknown"),
            (400, "", "definite"),
            (400, "Bad Request", "definite"),
            (401, HTML, "fatal"),
            (403, HTML, "Firewall None"),
            (403, "", "Firewall None"),
            (404, HTML, "definite"),
            (405, "{}", "definite"),
            (408, "", "unknown"),
            (414, HTML, "definite"),
            (500, "", "unknown"),
            (500, "{}", "unknown"),
            (502, HTML, "unknown"),
            (503, HTML, "unknown"),
            (503, "", "unknown"),
            (504, HTML, "unknown"),
            (520, HTML, "unknown"),
            (101, "", "unknown"),
        ] {
            assert_eq!(word(status, None, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn codes_decide_where_the_status_leaves_room() {
        for (status, code, expected) in [
            (400, -1121, "definite"),
            (400, -2011, "definite"),
            (400, -1021, "definite"),
            (400, -1022, "fatal"),
            (401, -2015, "fatal"),
            (403, -1002, "fatal"),
            (403, -4061, "definite"),
            (400, -1000, "unknown"),
            (400, -1006, "unknown"),
            (408, -1007, "unknown"),
            (500, -1001, "unknown"),
            (500, -2010, "definite"),
            (500, -7777, "unknown"),
            (400, -7777, "definite"),
            (400, -1099, "unknown"),
            (503, -1121, "unknown"),
            (503, -1003, "unknown"),
            (503, -1016, "unknown"),
            (400, -1016, "Closed None"),
            (400, -1003, "Weight None"),
            (400, -1015, "Orders None"),
            (200, -1121, "definite"),
            (200, -1007, "unknown"),
            (200, 200, "success"),
            (200, 0, "success"),
        ] {
            assert_eq!(
                word(status, None, &payload(code)),
                expected,
                "{status} {code}"
            );
        }
    }

    #[test]
    fn a_limit_names_its_kind_and_its_wait() {
        for (status, retry_after, body, expected) in [
            (429, Some("7"), payload(-1003), "Weight Some(7)"),
            (429, Some(" 7 "), String::new(), "Weight Some(7)"),
            (429, Some("soon"), HTML.to_owned(), "Weight None"),
            (429, None, payload(-1003), "Orders None"),
            (429, None, payload(-1015), "Orders None"),
            (429, None, String::new(), "Orders None"),
            (429, None, HTML.to_owned(), "Orders None"),
            (429, Some("3"), payload(-1015), "Orders Some(3)"),
            (418, Some("120"), payload(-1003), "Ban Some(120)"),
            (418, None, HTML.to_owned(), "Ban None"),
        ] {
            assert_eq!(
                word(status, retry_after, &body),
                expected,
                "{status} {body}"
            );
        }
        let body = r#"{"code":-1003,"msg":"Way too many requests; IP(1.2.3.4) banned until 1659146400000. Use streams."}"#;
        let Judgement::Wait(pause) = judge(418, None, body) else {
            panic!("a ban must be classified as wait")
        };
        assert_eq!(pause.until_ms, Some(1_659_146_400_000));
    }

    #[test]
    fn a_date_in_retry_after_ends_the_wait() {
        for (date, end_s) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ] {
            let Judgement::Wait(pause) = judge(429, Some(date), &payload(-1003)) else {
                panic!("a limit must be classified as wait")
            };
            let until_ms = (end_s + 1) * 1_000;
            assert_eq!(
                (pause.retry_after_s, pause.until_ms),
                (None, Some(until_ms))
            );
        }
        assert_eq!(http_date_ms("tomorrow"), None);
    }

    #[test]
    fn without_a_compared_clock_a_date_counts_only_for_a_ban() {
        let length = |status, retry_after, is_compared| {
            let Judgement::Wait(pause) = judge(status, Some(retry_after), &payload(-1003)) else {
                panic!("a limit must be classified as wait")
            };
            pause.length_ms(784_111_700_000, is_compared)
        };
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(length(429, date, true), Some(78_000));
        assert_eq!(length(429, date, false), None);
        assert_eq!(length(418, date, false), Some(78_000));
        assert_eq!(length(429, "5", false), Some(5_000));
    }

    #[test]
    fn an_error_payload_is_found_under_status_200() {
        for body in [
            r#"{"code":"-1102","msg":"m"}"#,
            r#" {"msg":"m","code":-1102,"extra":{"code":1}} "#,
        ] {
            let Judgement::Refused {
                complaint,
                is_fatal: false,
            } = judge(200, None, body)
            else {
                panic!("{body}")
            };
            assert_eq!(
                complaint.error.unwrap().row(),
                Some(&code::MANDATORY_PARAM_EMPTY_OR_MALFORMED)
            );
            assert_eq!(complaint.excerpt, "");
        }
        // A batch is a success as a whole: the reader of the response checks each entry.
        assert_eq!(
            word(200, None, r#"[{"code":-2022,"msg":"m"},{"orderId":1}]"#),
            "success"
        );
        assert_eq!(word(200, None, r#"{"code":"200","msg":"done"}"#), "success");
    }

    #[test]
    fn a_json_rpc_error_is_a_refusal() {
        let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params"}}"#;
        let Judgement::Refused { complaint, .. } = judge(200, None, body) else {
            panic!("{body}")
        };
        assert_eq!(complaint.error.unwrap().msg, "Invalid params");
        assert_eq!(
            word(200, None, r#"{"result":{},"error":null,"id":1}"#),
            "success"
        );
    }

    #[test]
    fn a_foreign_body_is_kept_short() {
        let Judgement::Unknown(complaint) = judge(502, None, &"<p>é".repeat(500)) else {
            panic!("502 must be unknown")
        };
        assert_eq!(complaint.excerpt.chars().count(), 200);
    }
}
