//! Authentication of v1: the API key in its header, and the HMAC over query and body
//! (docs/interface/conventions.md#signing-with-an-api-key).

use windvane_protocol::sign::hmac::verifies;

use super::claim::{Claim, granted, rejected};
use super::raw;
use super::time::check_time;
use crate::account_id::AccountId;
use crate::accounts::Account;
use crate::request::Refusal;

/// The header of the API key.
pub(super) const KEY_HEADER: &str = "x-mbx-apikey";

/// The account of the key in the header, and the index of the key.
pub(super) fn by_key(
    accounts: &[Account],
    claim: &Claim<'_>,
) -> Result<(AccountId, usize), Refusal> {
    let malformed = || Refusal::new(-2014, "API-key format invalid.").with_status(401);
    let header = claim.received.headers.get(KEY_HEADER);
    let key = header.and_then(|value| value.to_str().ok());
    let key = key.filter(|key| {
        (16..=128).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_alphanumeric())
    });
    let key = key.ok_or_else(malformed)?;
    for (place, account) in (0_u16..).zip(accounts) {
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
pub(super) fn signed(accounts: &[Account], claim: &Claim<'_>) -> Result<AccountId, Refusal> {
    let (id, at) = by_key(accounts, claim)?;
    raw::required(claim.params, "timestamp")?;
    let signed = raw::signed(claim.received, claim.params)?;
    let secret = &accounts[id.place()].api_keys[at].secret;
    if !verifies(secret, &signed.parts, signed.signature) {
        return Err(raw::invalid_signature());
    }
    check_time(claim.params, claim.clock_ms)?;
    Ok(id)
}
