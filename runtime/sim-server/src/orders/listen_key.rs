//! Listen keys (docs/interface/user-stream.md#listen-keys): one per account and surface, valid for
//! 60 minutes.

use serde_json::json;
use windvane_model::Surface;

use super::venue_request::surface;
use crate::accounts::drawn;
use crate::choices::ListenKeyPost;
use crate::request::{Answer, Body, Call, Refusal};
use crate::state::State;

/// POST: renews the valid key for 60 minutes, or creates a new one.
pub(super) fn create(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let (seed, now_ms) = (state.settings.seed, call.now.millis());
    let side = surface(call);
    let renews = state.choices.of::<ListenKeyPost>() == ListenKeyPost::New;
    let name = |n: u64| {
        hex::encode(drawn(
            seed,
            id.0,
            &format!("listen key {side} {n} {now_ms}"),
        ))
    };
    let keys = &mut state.account_mut(id).listen_keys;
    if renews {
        // The connections of the old key stay open, but receive no more events.
        keys.close(side);
    }
    let key = keys.create(side, now_ms, name);
    Ok(Body::json(&json!({ "listenKey": key.key })))
}

/// PUT: renews the key.
pub(super) fn keepalive(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    check(state, call)?;
    let now_ms = call.now.millis();
    state
        .account_mut(id)
        .listen_keys
        .extend(surface(call), now_ms);
    Ok(Body::json(&json!({})))
}

/// DELETE: closes the key and its streams.
pub(super) fn close(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    check(state, call)?;
    if let Some(key) = state.account_mut(id).listen_keys.close(surface(call)) {
        state.hub.close_user(surface(call), &key.key);
    }
    Ok(Body::json(&json!({})))
}

/// Checks that the account has a valid key, and that a key in the request equals it (-1125). On
/// futures the request need not have one.
fn check(state: &State, call: &Call<'_>) -> Result<(), Refusal> {
    let sent = match surface(call) {
        Surface::Spot => Some(call.params.required("listenKey")?),
        Surface::Futures => call.params.get("listenKey"),
    };
    let valid = state
        .account(call.account()?)
        .listen_keys
        .valid(surface(call));
    match valid {
        Some(own) if sent.is_none_or(|sent| sent == own.key) => Ok(()),
        _ => Err(Refusal::new(-1125, "This listenKey does not exist.")),
    }
}
