//! Authentication of v3 by wallet signatures (docs/interface/conventions.md#signing-with-a-wallet,
//! docs/interface/conventions.md#signing-management-routes,
//! docs/interface/conventions.md#messages-of-the-main-wallet).

use alloy_primitives::{Address, B256};
use windvane_protocol::sign::typed::{management, management_as_listed};
use windvane_protocol::sign::{MessageDomain, signer_of};

use super::claim::{Claim, granted, rejected, whitelisted};
use super::raw;
use crate::account_id::AccountId;
use crate::accounts::{Account, Grants, NonceError, of_user};
use crate::request::{Refusal, evm_address, integer, invalid, missing};

/// Verifies a `Message` that an agent or the main wallet signed.
pub(super) fn message(accounts: &mut [Account], claim: &Claim<'_>) -> Result<AccountId, Refusal> {
    let nonce = nonce(claim)?;
    let signer = address(claim, "signer")?;
    let user = match claim.params.get("user") {
        Some(_) => Some(address(claim, "user")?),
        None => None,
    };
    signed_by(claim, signer)?;
    let id = account_of(accounts, user, signer)?;
    let grants = grants_of(accounts, claim, id, signer).ok_or_else(rejected)?;
    if !granted(claim.route, grants) {
        return Err(rejected());
    }
    take_nonce(accounts, claim, id, nonce)?;
    Ok(id)
}

/// Verifies a `Message` of the main wallet, without `signer`.
pub(super) fn main_message(
    accounts: &mut [Account],
    claim: &Claim<'_>,
) -> Result<AccountId, Refusal> {
    let nonce = nonce(claim)?;
    let user = address(claim, "user")?;
    signed_by(claim, user)?;
    let id = of_user(accounts, user).ok_or_else(rejected)?;
    take_nonce(accounts, claim, id, nonce)?;
    Ok(id)
}

/// Verifies typed data of the main wallet. Its fields may have the order in which they were sent,
/// or the order of the documents.
pub(super) fn typed(
    accounts: &mut [Account],
    claim: &Claim<'_>,
    primary: &str,
) -> Result<AccountId, Refusal> {
    let nonce = nonce(claim)?;
    let user = address(claim, "user")?;
    let signature = raw::required(claim.params, "signature")?;
    let chain_id = match claim.params.get("signatureChainId") {
        Some(text) => u64::try_from(integer("signatureChainId", text)?)
            .map_err(|_| invalid("signatureChainId"))?,
        // The core interface does not list this field, so use the chain of all other v3 requests.
        None => claim.settings.brand.signing_chain(claim.settings.network()),
    };
    // Check this before the typed data is built, so that the error is the same as on other routes.
    claim.params.integer("expired")?;
    let brand = &claim.settings.brand;
    let parameters = || claim.params.iter();
    let sent = || parameters().map(|p| (p.name.as_str(), p.value.as_str()));
    let readings = [
        management(brand, claim.route, primary, sent(), chain_id),
        management_as_listed(brand, claim.route, primary, sent(), chain_id),
    ];
    let mut signed_by_user = false;
    for data in readings {
        let data = data.map_err(|error| Refusal::new(-1130, error.to_string()))?;
        signed_by_user |= recovered(&data.digest(), signature)? == user;
    }
    if !signed_by_user {
        return Err(raw::invalid_signature());
    }
    let id = of_user(accounts, user).ok_or_else(rejected)?;
    take_nonce(accounts, claim, id, nonce)?;
    Ok(id)
}

fn signed_by(claim: &Claim<'_>, signer: Address) -> Result<(), Refusal> {
    let signed = raw::signed(claim.received, claim.params)?;
    let domain = MessageDomain::new(&claim.settings.brand, claim.settings.network());
    let digest = domain.digest(&signed.bytes());
    if recovered(&digest, signed.signature)? == signer {
        Ok(())
    } else {
        Err(raw::invalid_signature())
    }
}

fn recovered(digest: &B256, signature: &str) -> Result<Address, Refusal> {
    signer_of(digest, signature).map_err(|_| raw::invalid_signature())
}

fn nonce(claim: &Claim<'_>) -> Result<u64, Refusal> {
    let text = raw::required(claim.params, "nonce")?;
    u64::try_from(integer("nonce", text)?).map_err(|_| invalid("nonce"))
}

/// Parses an address. Case does not matter; the prefix `0x` is required.
fn address(claim: &Claim<'_>, name: &str) -> Result<Address, Refusal> {
    let text = raw::required(claim.params, name)?;
    evm_address(text).ok_or_else(|| invalid(name))
}

/// The account that a signer signs for. Without `user`, the signer must belong to exactly one
/// account.
fn account_of(
    accounts: &[Account],
    user: Option<Address>,
    signer: Address,
) -> Result<AccountId, Refusal> {
    if let Some(user) = user {
        return of_user(accounts, user).ok_or_else(rejected);
    }
    let signs = |(_, account): &(u16, &Account)| {
        account.user == signer || account.agents.iter().any(|agent| agent.address == signer)
    };
    let mut found = (0_u16..).zip(accounts).filter(signs);
    match (found.next(), found.next()) {
        (Some((place, _)), None) => Ok(AccountId(place)),
        (None, _) => Err(rejected()),
        (Some(_), Some(_)) => Err(missing("user")),
    }
}

/// The rights of the signer for the account. `None` if the signer is not an agent of the account,
/// has expired, or uses an IP address that it may not use.
fn grants_of(
    accounts: &[Account],
    claim: &Claim<'_>,
    id: AccountId,
    signer: Address,
) -> Option<Grants> {
    let account = &accounts[id.place()];
    if account.user == signer {
        return Some(Grants::ALL);
    }
    let agent = account
        .agents
        .iter()
        .find(|agent| agent.address == signer)?;
    let alive = claim.clock_ms < agent.expired_ms;
    let usable = alive && whitelisted(&agent.ip_whitelist, claim.received.ip);
    usable.then_some(agent.grants)
}

/// Consumes the nonce, or refuses with -4225. `noop` has the nonce of the request that it cancels,
/// and so makes that nonce unusable.
fn take_nonce(
    accounts: &mut [Account],
    claim: &Claim<'_>,
    id: AccountId,
    nonce_us: u64,
) -> Result<(), Refusal> {
    let clock_ms = claim.clock_ms;
    let window_ms = claim.settings.nonce_window_ms;
    let nonces = &mut accounts[id.place()].nonces;
    let outcome = if claim.route.name == "spot.noop" {
        nonces.cancel(nonce_us, clock_ms, window_ms)
    } else {
        nonces.take(nonce_us, clock_ms, window_ms)
    };
    outcome.map_err(|error| {
        let msg = match error {
            NonceError::Window => "Nonce is outside of the time window.",
            NonceError::Duplicate => "Nonce was used before.",
            NonceError::Expired => "Nonce is expired.",
        };
        Refusal::new(-4225, msg)
    })
}
