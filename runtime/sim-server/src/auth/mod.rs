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

mod hmac;
mod raw;
mod wallet;

use std::net::IpAddr;

use windvane_model::Time;
use windvane_protocol::route::{Listing, Route, Scheme, Security, Surface, Version};

use crate::accounts::{AccountId, Grants};
use crate::request::{Found, Params, Received, Refusal};
use crate::state::State;
use crate::wallet::{action_account, is_action_alone};

pub(crate) use hmac::check_time;

/// A request and the route that it claims to use, before authentication.
#[derive(Clone, Copy, Debug)]
struct Claim<'a> {
    route: &'static Route,
    received: &'a Received<'a>,
    params: &'a Params,
    now: Time,
}

/// The account of a signed request; `None` for a request that needs no key, or the refusal.
pub(crate) fn authenticate(
    state: &mut State,
    found: &Found,
    received: &Received<'_>,
    params: &Params,
    now: Time,
) -> Result<Option<AccountId>, Refusal> {
    let claim = Claim {
        route: found.route,
        received,
        params,
        now,
    };
    let account = match found.scheme {
        Scheme::Open => return Ok(None),
        Scheme::ApiKey => hmac::by_key(state, &claim).map(|(id, _)| id),
        Scheme::Hmac if message_on_v2(found.listing, &claim) => wallet::message(state, &claim),
        Scheme::Hmac => hmac::signed(state, &claim),
        Scheme::Message if is_action_alone(found.route.name, params) => {
            action_account(state, found.route.name, params)
        }
        Scheme::Message if key_on_v3(found.listing, &claim) => {
            hmac::by_key(state, &claim).map(|(id, _)| id)
        }
        Scheme::Message if hmac_on_v3(found.listing, &claim) => hmac::signed(state, &claim),
        Scheme::Message => wallet::message(state, &claim),
        Scheme::WalletMessage => wallet::main_message(state, &claim),
        Scheme::Typed(primary) => wallet::typed(state, &claim, primary),
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

/// An invalid key, or one without the permission (-2015).
fn rejected() -> Refusal {
    let msg = "Invalid API-key, IP, or permissions for action.";
    Refusal::new(-2015, msg).with_status(401)
}

/// Whether the grants allow the route.
fn granted(route: &Route, grants: Grants) -> bool {
    match (route.security, route.surface) {
        (Security::None, _) => true,
        (Security::UserData | Security::UserStream | Security::MarketData, _) => grants.read,
        (Security::Withdraw, _) => grants.withdraw,
        (_, Surface::Spot) => grants.spot_trade,
        (_, Surface::Futures) => grants.perp_trade,
        (_, Surface::Chain | Surface::Rpc) => grants.spot_trade && grants.perp_trade,
    }
}

/// Whether a comma-separated whitelist contains this address. An empty list allows every address.
fn whitelisted(list: &str, ip: IpAddr) -> bool {
    let mut entries = list
        .split(',')
        .map(str::trim)
        .filter(|e| !e.is_empty())
        .peekable();
    entries.peek().is_none() || entries.any(|entry| entry.parse() == Ok(ip))
}
