//! Account-wide modes (docs/interface/futures.md#position-mode).

use serde_json::json;
use windvane_model::protocol::{Reply, Request};

use super::venue_request::{perform, refused, settled, unanswered};
use crate::request::{Answer, Body, Call, missing};
use crate::state::State;

/// `{code: 200, msg}`.
pub(super) fn done() -> Body {
    Body::json(&json!({ "code": 200, "msg": "success" }))
}

/// Change position mode.
pub(super) fn change_position_mode(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let hedge = call.params.flag("dualSidePosition")?;
    let hedge = hedge.ok_or_else(|| missing("dualSidePosition"))?;
    let request = Request::SetPositionMode { hedge };
    match perform(state, call, id, &request).into_iter().next() {
        Some(Reply::PositionMode { outcome }) => settled(outcome)?,
        _ => return Err(unanswered()),
    }
    Ok(done())
}

/// Get current position mode.
pub(super) fn position_mode(state: &mut State, call: &Call<'_>) -> Answer {
    let hedge = state.account(call.account()?).venue.hedge_mode();
    Ok(Body::json(&json!({ "dualSidePosition": hedge })))
}

/// Change multi-assets mode.
pub(super) fn change_multi_assets(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let on = call.params.flag("multiAssetsMargin")?;
    let on = on.ok_or_else(|| missing("multiAssetsMargin"))?;
    let venue = &mut state.account_mut(id).venue;
    venue.set_multi_assets(call.now, on).map_err(refused)?;
    Ok(done())
}

/// Get current multi-assets mode.
pub(super) fn multi_assets(state: &mut State, call: &Call<'_>) -> Answer {
    let on = state.account(call.account()?).venue.multi_assets_mode();
    Ok(Body::json(&json!({ "multiAssetsMargin": on })))
}
