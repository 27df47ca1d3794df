//! Who sent a request: API key and HMAC, or wallet signatures, over the raw bytes (spec 1,
//! Authentication; spec 4, sections 1 and 2).

use windvane_engine::Time;
use windvane_venue::route::{Listing, Route, Scheme};

use crate::http::dispatch::Received;
use crate::http::{Params, Refusal};
use crate::state::{AccountId, State};

/// The account of a signed request, or why it is none.
pub(crate) fn authenticate(
    _state: &mut State,
    route: &Route,
    listing: &Listing,
    _received: &Received<'_>,
    _params: &Params,
    _now: Time,
) -> Result<Option<AccountId>, Refusal> {
    match listing.scheme {
        Scheme::Open => Ok(None),
        _ => Err(Refusal::not_built(route.name)),
    }
}
