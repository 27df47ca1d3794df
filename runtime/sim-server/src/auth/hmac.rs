//! Authentication of v1: the API key in its header, the HMAC over query and body, and the time rule
//! (docs/interface/conventions.md#signing-with-an-api-key).

use windvane_protocol::sign::hmac::verifies;

use super::{Claim, granted, raw, rejected};
use crate::accounts::AccountId;
use crate::request::{Params, Refusal, invalid, missing};
use crate::state::State;

/// The header of the API key.
pub(super) const KEY_HEADER: &str = "x-mbx-apikey";
/// Default of `recvWindow`.
const WINDOW_DEFAULT_MS: i64 = 5_000;
/// Maximum of `recvWindow`.
const WINDOW_MAX_MS: i64 = 60_000;
/// How far a timestamp may be ahead of the server's clock.
const AHEAD_MS: i64 = 1_000;

/// The account of the key in the header, and the index of the key.
pub(super) fn by_key(state: &State, claim: &Claim<'_>) -> Result<(AccountId, usize), Refusal> {
    let malformed = || Refusal::new(-2014, "API-key format invalid.").with_status(401);
    let header = claim.received.headers.get(KEY_HEADER);
    let key = header.and_then(|value| value.to_str().ok());
    let key = key.filter(|key| {
        (16..=128).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_alphanumeric())
    });
    let key = key.ok_or_else(malformed)?;
    for (place, account) in (0_u16..).zip(&state.accounts) {
        if let Some(at) = account.api_keys.iter().position(|own| own.key == key) {
            let own = &account.api_keys[at];
            let known_ip = own.ips.is_empty() || own.ips.contains(&claim.received.ip);
            let allowed = known_ip && granted(claim.route, own.grants);
            return allowed
                .then_some((AccountId(place), at))
                .ok_or_else(rejected);
        }
    }
    Err(rejected())
}

/// The account of a request that is signed with an API key.
pub(super) fn signed(state: &State, claim: &Claim<'_>) -> Result<AccountId, Refusal> {
    let (id, at) = by_key(state, claim)?;
    raw::required(claim.params, "timestamp")?;
    let signed = raw::signed(claim.received, claim.params)?;
    let secret = &state.account(id).api_keys[at].secret;
    if !verifies(secret, &signed.parts, signed.signature) {
        return Err(raw::invalid_signature());
    }
    check_time(claim.params, state.clock_ms(claim.now))?;
    Ok(id)
}

/// Checks `timestamp < serverTime + 1000` and `serverTime - timestamp <= recvWindow` (-1021).
pub(crate) fn check_time(params: &Params, clock_ms: i64) -> Result<(), Refusal> {
    let timestamp = params.integer("timestamp")?;
    let timestamp = timestamp.ok_or_else(|| missing("timestamp"))?;
    let window = params.integer("recvWindow")?.unwrap_or(WINDOW_DEFAULT_MS);
    if !(0..=WINDOW_MAX_MS).contains(&window) {
        return Err(invalid("recvWindow"));
    }
    if timestamp >= clock_ms.saturating_add(AHEAD_MS) {
        let msg = "Timestamp for this request was 1000ms ahead of the server's time.";
        return Err(Refusal::new(-1021, msg));
    }
    if clock_ms.saturating_sub(timestamp) > window {
        let msg = "Timestamp for this request is outside of the recvWindow.";
        return Err(Refusal::new(-1021, msg));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windvane_protocol::route::Surface;

    fn at(query: &str) -> i32 {
        let params = Params::parse(Surface::Spot, query, "").unwrap();
        check_time(&params, 100_000).map_or_else(|refusal| refusal.code, |()| 0)
    }

    #[test]
    fn the_time_rule_has_exact_bounds() {
        assert_eq!(at("timestamp=100999"), 0);
        assert_eq!(at("timestamp=101000"), -1021);
        assert_eq!(at("timestamp=95000"), 0);
        assert_eq!(at("timestamp=94999"), -1021);
        assert_eq!(at("timestamp=40000&recvWindow=60000"), 0);
        assert_eq!(at("timestamp=100000&recvWindow=60001"), -1130);
        assert_eq!(at("timestamp=abc"), -1100);
        assert_eq!(at("recvWindow=5"), -1102);
    }
}
