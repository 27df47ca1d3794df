//! The `Action` that the main wallet signs inside the parameters of a withdrawal
//! (docs/interface/conventions.md#signing-withdrawals).

use alloy_primitives::{Address, B256};
use windvane_protocol::Brand;
use windvane_protocol::brand::upper_first;
use windvane_protocol::sign::{TypedError, signer_of, typed};

use crate::account_id::AccountId;
use crate::accounts::{Account, of_user};
use crate::request::{Params, Refusal, evm_address, invalid};
use crate::settings::Settings;
use crate::wallet::{Chain, chain_of};

/// The possible signers of the `Action`. `SafeWallet` may send several signatures, separated by
/// commas. The accounts here have one owner; the owner's signature must be among them.
pub(crate) fn signers(
    settings: &Settings,
    params: &Params,
    chain: Chain,
    signed_for: i64,
    nonce: &str,
) -> Result<Vec<Address>, Refusal> {
    let action = typed::Withdrawal {
        destination: params.required("receiver")?,
        chain: chain.name,
        token: params.required("asset")?,
        amount: params.required("amount")?,
        fee: params.required("fee")?,
        nonce: params.required(nonce)?,
    };
    let signed_for = u64::try_from(signed_for).map_err(|_| invalid("signatureChainId"))?;
    let digests = digests(settings, signed_for, &action)?;
    let text = params.required("userSignature")?;
    let signatures: Vec<&str> = match params.get("signatureType") {
        Some("SafeWallet") => text.split(',').map(str::trim).collect(),
        _ => vec![text],
    };
    let of_each = |text: &str| digests.map(|digest| signer_of(&digest, text).ok());
    let signers = signatures.into_iter().flat_map(of_each);
    Ok(signers.flatten().collect())
}

/// Whether a request is a withdrawal with only an inner signature. For the withdraw routes the core
/// interface lists no signature of the request. Public facts name the `Action`, and also an outer
/// signature (docs/interface/conventions.md#where-descriptions-differ). So both forms are accepted,
/// depending on the fields of the request.
pub(super) fn is_alone(name: &str, params: &Params) -> bool {
    let outer = ["nonce", "signer", "signature"];
    ["chain.perp_withdraw", "chain.spot_withdraw"].contains(&name)
        && outer.iter().all(|field| params.raw(field).is_none())
}

/// The account whose main wallet signed the `Action` of such a request. If the request has a
/// `user`, it must be that wallet. The refusal is -1022 if no account matches.
pub(super) fn account(
    accounts: &[Account],
    settings: &Settings,
    name: &str,
    params: &Params,
) -> Result<AccountId, Refusal> {
    let chain = chain_of(params)?;
    let signed_for = match name {
        "chain.spot_withdraw" => params.integer("signatureChainId")?,
        _ => None,
    };
    let signed_for = signed_for.unwrap_or(chain.id);
    let signers = signers(settings, params, chain, signed_for, "userNonce")?;
    let claimed = params.get("user").map(evm_address);
    let fits = |signer: &Address| claimed.is_none_or(|claimed| claimed == Some(*signer));
    let mut fitting = signers.into_iter().filter(fits);
    fitting
        .find_map(|signer| of_user(accounts, signer))
        .ok_or_else(bad_signature)
}

/// Both possible digests of an `Action`. The domain's name is the brand word "as the service writes
/// it" (docs/interface/conventions.md#brand-words), with or without a capital letter. The server
/// cannot know which, so it accepts both.
fn digests(
    settings: &Settings,
    signed_for: u64,
    action: &typed::Withdrawal<'_>,
) -> Result<[B256; 2], Refusal> {
    let plain = settings.brand.clone();
    let mut capital = plain.clone();
    capital.withdrawal_domain = upper_first(&plain.withdrawal_domain);
    let digest = |brand: &Brand| {
        let data = typed::withdrawal_action(brand, settings.network(), signed_for, action);
        let digest = data.map(|data| data.digest());
        digest.map_err(|error: TypedError| Refusal::new(-1130, error.to_string()))
    };
    Ok([digest(&plain)?, digest(&capital)?])
}

/// The signature inside the parameters is not valid.
pub(crate) fn bad_signature() -> Refusal {
    Refusal::new(-1022, "userSignature is not valid.")
}
