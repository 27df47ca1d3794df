//! Fault switches and the full truth, for tests of any client.
//!
//! The hooks: [`plan`] is asked before each request of the other ports, [`user_event`] is given
//! every user event on its way to the streams, [`advance`] is called as time passes, and
//! [`answer`] is the control port.

use windvane_engine::Time;

use crate::http::dispatch::Received;
use crate::http::{Refusal, Sent};
use crate::state::State;
use crate::stream::UserFrame;

/// The switches.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Added to the clock that answers show and that the time rule reads, in milliseconds.
    pub(crate) skew_ms: i64,
}

/// What is done with one request.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Waits before the venue acts.
    pub(crate) before_ms: u64,
    /// Whether the venue acts at all.
    pub(crate) handled: bool,
    /// Waits before the answer is sent.
    pub(crate) after_ms: u64,
    /// What is sent.
    pub(crate) ending: Ending,
}

/// What becomes of an answer.
#[derive(Debug)]
pub(crate) enum Ending {
    /// Sent as it is.
    AsIs,
    /// Another one is sent.
    Instead(Sent),
    /// The connection is cut without one.
    Cut,
    /// Nothing is sent and the connection stays.
    HalfOpen,
}

/// What is done with a request that has just been read.
pub(crate) fn plan(_state: &mut State, _received: &Received<'_>, _now: Time) -> Plan {
    Plan {
        before_ms: 0,
        handled: true,
        after_ms: 0,
        ending: Ending::AsIs,
    }
}

/// Brings a user event to the streams: now, later, twice or never.
pub(crate) fn user_event(state: &mut State, frame: UserFrame) {
    state.hub.tell_user(&frame);
}

/// Sends what has been held back until `now`.
pub(crate) fn advance(_state: &mut State, _now: Time) {}

/// Answers the control port.
pub(crate) fn answer(_state: &mut State, received: &Received<'_>, _now: Time) -> Sent {
    Sent::new(Err(Refusal::not_built(received.path).with_status(404)))
}
