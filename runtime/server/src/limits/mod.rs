//! Weights per IP, order counts per account, bans (spec 1, Limits; spec 2, Limits).

use windvane_engine::Time;
use windvane_venue::route::Route;

use crate::http::dispatch::Received;
use crate::http::{Params, Refusal};
use crate::state::State;

/// What was used of the limits.
#[derive(Debug, Default)]
pub(crate) struct Limits {}

/// Charges a request's weight to its IP; 429 where it is too much.
pub(crate) fn charge(
    _state: &mut State,
    _route: &Route,
    _params: &Params,
    _received: &Received<'_>,
    _now: Time,
    _headers: &mut Vec<(&'static str, String)>,
) -> Result<(), Refusal> {
    Ok(())
}
