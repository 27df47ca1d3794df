//! Advances the time of the venue. Every call first advances the time, so that everything due
//! happens before anything new.

use windvane_model::{Surface, Time};

use crate::account_id::AccountId;
use crate::state::State;
use crate::{audience, user_events};

/// Advances the time: market events up to `now`, countdowns, funding, delayed events, expiring
/// keys. A time that is not later than the last one changes nothing.
pub(crate) fn advance(state: &mut State, now: Time) {
    if now <= state.now {
        return;
    }
    state.now = now;
    audience::advance(state, now);
    for account in &mut state.accounts {
        if account.venue.next_timeout() <= now {
            account.venue.timeout(now);
        }
    }
    user_events::publish_all(state);
    for place in 0..state.accounts.len() {
        expire_listen_keys(state, AccountId(place as u16));
    }
    user_events::send_due(state, now);
}

fn expire_listen_keys(state: &mut State, id: AccountId) {
    let now_ms = state.now.millis();
    for surface in [Surface::Spot, Surface::Futures] {
        let expired = state.account_mut(id).listen_keys.expire(surface, now_ms);
        if let Some(key) = expired {
            user_events::send_key_expired(state, surface, key.key);
        }
    }
}
