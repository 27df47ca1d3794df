//! Authenticates the sender of a request by API key and HMAC, or by wallet signatures, over the raw
//! bytes (docs/interface/conventions.md#security-labels).
//!
//! | error | status | code |
//! |---|---|---|
//! | no API key, or one of the wrong form | 401 | -2014 |
//! | unknown API key, its IP or permission; an agent that is unknown, expired, or not allowed | 401 | -2015 |
//! | `timestamp`, `nonce`, `signer`, `user` or `signature` missing | 400 | -1102 |
//! | signature wrong, or not the last parameter | 400 | -1022 |
//! | outside of the time window | 400 | -1021 |
//! | `recvWindow` over 60000 | 400 | -1130 |
//! | nonce outside of its window, used before or expired | 400 | -4225 |

pub(crate) mod action;
mod claim;
mod hmac;
mod raw;
mod time;
mod wallet;

use windvane_protocol::route::{Listing, Scheme, Security, Surface, Version};

pub(crate) use time::check_time;

use crate::account_id::AccountId;
use crate::accounts::Account;
use crate::request::{Found, Params, Received, Refusal};
use crate::settings::Settings;
use claim::Claim;

/// The account of a signed request; `None` for a request that needs no key, or the refusal.
pub(crate) fn authenticate(
    accounts: &mut [Account],
    settings: &Settings,
    found: &Found,
    received: &Received<'_>,
    params: &Params,
    clock_ms: i64,
) -> Result<Option<AccountId>, Refusal> {
    let claim = Claim {
        settings,
        route: found.route,
        received,
        params,
        clock_ms,
    };
    let account = match found.scheme {
        Scheme::Open => return Ok(None),
        Scheme::ApiKey => hmac::by_key(accounts, &claim).map(|(id, _)| id),
        Scheme::Hmac if message_on_v2(found.listing, &claim) => wallet::message(accounts, &claim),
        Scheme::Hmac => hmac::signed(accounts, &claim),
        Scheme::Message if action::is_alone(found.route.name, params) => {
            action::account(accounts, settings, found.route.name, params)
        }
        Scheme::Message if key_on_v3(found.listing, &claim) => {
            hmac::by_key(accounts, &claim).map(|(id, _)| id)
        }
        Scheme::Message if hmac_on_v3(found.listing, &claim) => hmac::signed(accounts, &claim),
        Scheme::Message => wallet::message(accounts, &claim),
        Scheme::WalletMessage => wallet::main_message(accounts, &claim),
        Scheme::Typed(primary) => wallet::typed(accounts, &claim, primary),
    };
    account.map(Some)
}

/// User stream routes need only the API key, in every version
/// (docs/interface/user-stream.md#listen-keys). Public facts require a signature in v3. The server
/// accepts both. A request with a key and without a signature counts as the first form.
fn key_on_v3(listing: &Listing, claim: &Claim<'_>) -> bool {
    listing.version == Some(Version::V3)
        && claim.route.security == Security::UserStream
        && claim.received.headers.contains_key(hmac::KEY_HEADER)
        && claim.params.raw("signature").is_none()
}

/// The documents disagree about the v3 routes. All of them have labels that mean an API key and a
/// signature (docs/interface/conventions.md#signing-with-an-api-key). One description of futures
/// lists `timestamp` and an HMAC (docs/interface/conventions.md#where-descriptions-differ). Public
/// facts require wallet signatures.
///
/// The server accepts both. A request with `timestamp` and without the fields of a wallet signature
/// counts as the first form. For `noop` the nonce is ignored here, because it is the nonce of
/// another request.
fn hmac_on_v3(listing: &Listing, claim: &Claim<'_>) -> bool {
    let wallet_fields: &[&str] = match claim.route.name {
        "spot.noop" => &["signer", "user"],
        _ => &["nonce", "signer", "user"],
    };
    listing.version == Some(Version::V3)
        && matches!(claim.route.surface, Surface::Spot | Surface::Futures)
        && claim.params.raw("timestamp").is_some()
        && claim.received.headers.contains_key(hmac::KEY_HEADER)
        && !wallet_fields.iter().any(|f| claim.params.raw(f).is_some())
}

/// The documents give no scheme for the account routes under v2 and v4
/// (docs/interface/conventions.md#where-descriptions-differ). A request with the fields of v3 and
/// without a key counts as a v3 request.
fn message_on_v2(listing: &Listing, claim: &Claim<'_>) -> bool {
    matches!(listing.version, Some(Version::V2 | Version::V4))
        && !claim.received.headers.contains_key(hmac::KEY_HEADER)
        && ["nonce", "signer"]
            .iter()
            .all(|field| claim.params.raw(field).is_some())
}
