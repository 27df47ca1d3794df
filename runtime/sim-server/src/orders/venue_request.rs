//! Requests to the matching engine of an account, and its outcomes as results.

use windvane_model::protocol::{Outcome, Refusal as VenueRefusal, Reply, Request};
use windvane_model::{InstrumentId, Surface};
use windvane_sim::VenueMessage;

use crate::account_id::AccountId;
use crate::request::{Call, Params, Refusal};
use crate::state::State;

/// The surface of a call.
pub(super) fn surface(call: &Call<'_>) -> Surface {
    match call.route.surface {
        windvane_protocol::route::Surface::Spot => Surface::Spot,
        _ => Surface::Futures,
    }
}

/// The instrument of `symbol` (-1121).
pub(super) fn instrument(
    state: &State,
    call: &Call<'_>,
    params: &Params,
) -> Result<InstrumentId, Refusal> {
    let symbol = params.required("symbol")?;
    let found = state.instrument(surface(call), symbol);
    found.ok_or_else(|| Refusal::new(-1121, "Invalid symbol."))
}

/// The instrument of `symbol`, if it is sent.
pub(super) fn maybe_instrument(
    state: &State,
    call: &Call<'_>,
) -> Result<Option<InstrumentId>, Refusal> {
    match call.params.get("symbol") {
        Some(_) => instrument(state, call, call.params).map(Some),
        None => Ok(None),
    }
}

/// Sends a request to an account's venue and returns its replies, in order.
pub(super) fn perform(
    state: &mut State,
    call: &Call<'_>,
    id: AccountId,
    request: &Request,
) -> Vec<Reply> {
    perform_with_surcharge(state, call, id, request, 0)
}

/// Like [`perform`], for orders whose fills cost `surcharge` in addition to the venue's fee.
pub(super) fn perform_with_surcharge(
    state: &mut State,
    call: &Call<'_>,
    id: AccountId,
    request: &Request,
    surcharge: i64,
) -> Vec<Reply> {
    let venue = &mut state.account_mut(id).venue;
    venue.request_with_surcharge(call.now, request, surcharge);
    let mut replies = Vec::new();
    while let Some(message) = venue.poll() {
        if let VenueMessage::Reply(reply) = message {
            replies.push(reply);
        }
    }
    replies
}

/// Converts an outcome of the matching engine to a result.
pub(super) fn settled<T>(outcome: Outcome<T>) -> Result<T, Refusal> {
    match outcome {
        Outcome::Done(value) => Ok(value),
        Outcome::Refused(refusal) => Err(refused(refusal)),
        Outcome::Unknown => Err(unanswered()),
    }
}

pub(super) fn refused(refusal: VenueRefusal) -> Refusal {
    Refusal::new(refusal.code, refusal.msg)
}

/// The matching engine did not reply as expected.
pub(super) fn unanswered() -> Refusal {
    let msg = "An unexpected response was received from the message bus. Execution status unknown.";
    Refusal::new(-1006, msg).with_status(503)
}
