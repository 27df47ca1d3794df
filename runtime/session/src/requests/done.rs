//! What the requests report to the session.

use windvane_client_core::budget::Lane;
use windvane_client_core::gateway::Unsigned;
use windvane_client_core::outcome::NotDone;
use windvane_client_core::streams::feed::PollId;
use windvane_model::live::LiveInput;
use windvane_model::{InstrumentId, Reply, Surface};

use super::call::{Call, CallEnded, CallId};

/// Results and work for the session.
#[derive(Debug)]
pub(crate) enum Done {
    /// A call must be signed elsewhere.
    Sign(CallId, Unsigned),
    /// A call leaves.
    Send(Call),
    /// The session stops waiting for a call.
    Abandon(CallId),
    /// An input for the engine.
    Live(LiveInput),
    /// The replies to a request.
    Replies(Vec<Reply>),
    /// The response of GET depth; `None` if it must be requested again.
    Depth(InstrumentId, Option<String>),
    /// The result of creating a listen key.
    Key(Surface, Result<String, NotDone>),
    /// The result of renewing a listen key.
    Renewed(Surface, Result<String, NotDone>),
    /// The result of a poll of public data.
    Polled(Surface, PollId, Result<String, NotDone>),
    /// A call ended; for the metrics.
    Ended(CallEnded),
    /// How long a call waited for its budget, in nanoseconds, also if it then stopped waiting
    /// without being sent.
    Waited(Lane, i64),
    /// The result of a query by `Requests::send_numbered_query`.
    QueryEnded(u64, Result<String, NotDone>),
}
