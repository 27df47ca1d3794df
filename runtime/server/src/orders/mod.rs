//! Orders, account, positions, listen keys: the signed routes of spot and futures that move no
//! asset out of the account.

use crate::http::{Answer, Call, Refusal};
use crate::state::State;

/// Answers a route of this family.
pub(crate) fn handle(_state: &mut State, call: &Call<'_>) -> Answer {
    Err(Refusal::not_built(call.route.name))
}
