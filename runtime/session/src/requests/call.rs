//! A call to the venue, its result and its purpose.

use std::time::Duration;

use windvane_client_core::gateway::Answer;
use windvane_client_core::outcome::{Lost, RequestError};
use windvane_client_core::streams::feed::PollId;
use windvane_model::{InstrumentId, Surface, Time};
use windvane_protocol::route::Route;
use windvane_protocol::sign::Prepared;

use super::clock_reads::ClockRead;

/// The number of a call. Each number is used once in a process.
pub type CallId = u64;

/// A call that leaves now.
#[derive(Debug)]
pub struct Call {
    /// Its number, to match the response.
    pub id: CallId,
    /// The route.
    pub route: &'static Route,
    /// The signed bytes.
    pub prepared: Prepared,
    /// Whether it changes something at the venue.
    pub changes: bool,
    /// The call must not leave after this time: the process was suspended, and the dead man's
    /// switch of the order may have acted. The shell then reports [`CallAnswer::Late`].
    pub leave_by: Option<Time>,
    /// Arrival of the public frame that caused it, to measure order latency.
    pub since: Option<Time>,
}

/// By how much a call misses its [`Call::leave_by`]; `None` if it is not late.
pub fn late_by(leave_by: Option<Time>, now: Time) -> Option<Duration> {
    let late_ns = now.0.saturating_sub(leave_by?.0);
    (late_ns > 0).then(|| Duration::from_nanos(late_ns.unsigned_abs()))
}

/// The result of a call.
#[derive(Clone, Debug)]
pub enum CallAnswer<'a> {
    /// A response.
    Received(Answer<'a>),
    /// The call was or may have been written, and no response will come.
    Lost(Lost),
    /// No connection was available to write it to.
    NoConnection(String),
    /// The call could not be encoded for sending.
    NotMade(RequestError),
    /// The call did not leave: the session stopped waiting for it, or [`Call::leave_by`] had passed
    /// by this time.
    Late(Duration),
}

/// How a call ended, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEnded {
    /// Its surface.
    pub surface: windvane_protocol::route::Surface,
    /// "done", "refused", "unknown" or "wait".
    pub outcome: &'static str,
    /// How long it took, in nanoseconds.
    pub took_ns: i64,
}

/// The purpose of a call.
#[derive(Debug)]
pub(super) enum Purpose {
    /// A part of a request of the engine.
    Part(u64),
    /// A depth snapshot.
    Depth(InstrumentId),
    /// A sample of the venue's clock.
    Clock(ClockRead),
    /// The response header, which shows the used weight.
    Probe,
    /// Creation of a listen key.
    CreateKey(Surface),
    /// Renewal of a listen key.
    RenewKey(Surface),
    /// A query of public data that is polled.
    Poll(Surface, PollId),
    /// A query of a start or of a watchdog, by its own number.
    Query(u64),
}
