//! Passes user events to the streams, as the fault switches demand.

use windvane_model::Time;

use crate::state::State;
use crate::user_frame::UserFrame;

/// Passes a user event to the streams: now, later, twice or never.
pub(super) fn deliver(state: &mut State, frame: &UserFrame) {
    if state.faults.is_quiet() && frame.delay_ms == 0 {
        return state.hub.send_user(frame);
    }
    let owner = state.accounts.iter().position(|account| {
        let key = account.listen_keys.valid(frame.surface);
        key.is_some_and(|key| key.key == frame.listen_key)
    });
    let owner = owner.map(|place| place as u16);
    for frame in state.faults.carry(frame, owner, state.now) {
        state.hub.send_user(&frame);
    }
}

/// Sends the delayed events that are due at `now`.
pub(crate) fn send_due(state: &mut State, now: Time) {
    state.hub.gaps.retain(|switch| !switch.is_over(now));
    if state.faults.is_quiet() {
        return;
    }
    for frame in state.faults.due(now) {
        state.hub.send_user(&frame);
    }
}
