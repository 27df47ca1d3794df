//! How one request is handled under the active faults.

use windvane_model::Time;

use super::switch::{Fault, Spoil, UnknownOutcome};
use crate::request::{Refusal, Sent, error_body};

/// How one request is handled.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Delay before the venue acts, milliseconds.
    pub(crate) before_ms: u64,
    /// Whether the venue acts at all.
    pub(crate) handled: bool,
    /// Delay before the response is sent, milliseconds.
    pub(crate) after_ms: u64,
    /// How the request ends.
    pub(crate) ending: Ending,
}

/// How a request ends.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The response is sent unchanged.
    AsIs,
    /// This response is sent instead.
    Instead(Sent),
    /// Half of the response is sent, as if it were complete.
    Half,
    /// The connection is cut without a response.
    Cut,
    /// Nothing is sent, and the connection stays open.
    HalfOpen,
}

/// How an exchange ends.
#[derive(Debug)]
pub(crate) enum Ended {
    /// A response is sent.
    Sent(Sent),
    /// The connection is cut.
    Cut,
    /// Nothing is sent, and the connection stays open.
    HalfOpen,
}

/// Applies the fault plan to the venue's response.
pub(crate) fn ended(ending: Ending, sent: Option<Sent>) -> Ended {
    match (ending, sent) {
        (Ending::AsIs, Some(sent)) | (Ending::Instead(sent), _) => Ended::Sent(sent),
        (Ending::Half, Some(mut sent)) => {
            sent.body = sent.body.chars().take(sent.body.len() / 2).collect();
            Ended::Sent(sent)
        }
        (Ending::Cut, _) | (Ending::AsIs | Ending::Half, None) => Ended::Cut,
        (Ending::HalfOpen, _) => Ended::HalfOpen,
    }
}

impl Plan {
    pub(crate) const fn as_is() -> Self {
        Self {
            before_ms: 0,
            handled: true,
            after_ms: 0,
            ending: Ending::AsIs,
        }
    }

    /// Adds to the delays.
    pub(crate) const fn wait(&mut self, before_ms: u64, after_ms: u64) {
        self.before_ms = self.before_ms.saturating_add(before_ms);
        self.after_ms = self.after_ms.saturating_add(after_ms);
    }

    /// Applies a fault. The caller makes sure that only one switch sets the ending.
    pub(crate) fn add(&mut self, fault: &Fault, until: Time, now: Time) {
        match fault {
            Fault::Unknown { how, accepted } => self.end(*accepted, unknown_outcome(*how)),
            Fault::Refuse { status, code, msg } => {
                let refusal = Refusal::new(*code, msg.as_str()).with_status(*status);
                self.end(false, Ending::Instead(Sent::new(Err(refusal))));
            }
            Fault::Body {
                spoil: Spoil::Truncated,
                ..
            } => self.end(true, Ending::Half),
            Fault::Body {
                spoil,
                status,
                accepted,
            } => self.end(*accepted, Ending::Instead(spoilt(*spoil, *status))),
            Fault::Ban {
                status,
                retry_after_s,
            } => self.end(
                false,
                Ending::Instead(banned(*status, *retry_after_s, until, now)),
            ),
            _ => {}
        }
    }

    fn end(&mut self, handled: bool, ending: Ending) {
        self.handled = handled;
        self.ending = ending;
    }
}

/// A response that leaves the outcome unknown (docs/interface/errors.md#http-status,
/// docs/interface/errors.md#10xx).
fn unknown_outcome(how: UnknownOutcome) -> Ending {
    let (status, code, msg) = match how {
        UnknownOutcome::Cut => return Ending::Cut,
        UnknownOutcome::HalfOpen => return Ending::HalfOpen,
        UnknownOutcome::Status503 => (
            503,
            -1000,
            "Unknown error, please check your request or try again later.",
        ),
        UnknownOutcome::UnexpectedResponse => (
            400,
            -1006,
            "An unexpected response was received from the message bus. Execution status unknown.",
        ),
        UnknownOutcome::Timeout => (
            400,
            -1007,
            "Timeout waiting for response from backend server. Send status unknown; execution \
             status unknown.",
        ),
    };
    let refusal = Refusal::new(code, msg).with_status(status);
    Ending::Instead(Sent::new(Err(refusal)))
}

fn spoilt(spoil: Spoil, status: u16) -> Sent {
    let body = match spoil {
        Spoil::Html => format!(
            "<!DOCTYPE html>\n<html><head><title>{status}</title></head>\
             <body><h1>{status}</h1><p>The request could not be satisfied.</p></body></html>\n"
        ),
        Spoil::Empty | Spoil::Truncated => String::new(),
    };
    let kind = match spoil {
        Spoil::Html => "text/html",
        Spoil::Empty | Spoil::Truncated => "application/json;charset=UTF-8",
    };
    Sent {
        status,
        headers: vec![("content-type", kind.to_owned())],
        body,
    }
}

/// A 429 or 418 (docs/interface/limits.md#429-418-and-bans). A ban with an end states it in
/// `Retry-After`, unless the switch sets another value.
fn banned(status: u16, retry_after_s: Option<u64>, until: Time, now: Time) -> Sent {
    let left_ms = until.millis().saturating_sub(now.millis()).max(0);
    let ends = until != Time::NEVER && status == 418;
    let left_s = ends.then(|| left_ms.cast_unsigned().div_ceil(1_000));
    let msg = match status {
        418 => format!(
            "Way too many requests; IP banned until {}. Please use the websocket for live updates \
             to avoid bans.",
            until.millis()
        ),
        _ => "Too many requests; please use the websocket for live updates.".to_owned(),
    };
    let mut sent = Sent {
        status,
        headers: vec![("content-type", "application/json;charset=UTF-8".to_owned())],
        body: error_body(-1003, &msg),
    };
    if let Some(seconds) = retry_after_s.or(left_s) {
        sent.headers.push(("retry-after", seconds.to_string()));
    }
    sent
}
