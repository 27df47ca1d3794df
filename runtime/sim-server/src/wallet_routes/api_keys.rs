//! API keys by wallet signature (docs/interface/account.md#api-keys). Both routes need no
//! authentication. The signature in the parameters identifies the account.

use serde_json::json;
use windvane_protocol::sign::{sentence, signer_of};

use super::{agents, values};
use crate::accounts::{ApiKey, Grants, drawn, of_user};
use crate::auth::check_time;
use crate::request::{Answer, Body, Call, Refusal, invalid};
use crate::state::State;
use secrecy::SecretString;

/// Maximum number of keys per account, to bound the memory.
const KEYS_MAX: usize = 1_000;

/// Maximum length of a label (docs/interface/limits.md#other-bounds).
const LABEL_MAX: usize = 20;

/// Returns a bare number, which the address must sign in its next `createApiKey`.
pub(super) fn nonce(state: &mut State, call: &Call<'_>) -> Answer {
    let made = state.wallets.next_id();
    let drawn = drawn(state.settings.seed, 0, &format!("login {made}"));
    // The number has seven digits.
    let [.., a, b, c, d] = drawn.0;
    let number = u64::from(u32::from_be_bytes([a, b, c, d]) % 9_000_000 + 1_000_000);
    if !is_solana(call) {
        let user = values::address(call, "address")?;
        state.wallets.give_login(user, number);
    }
    Ok(Body(number.to_string()))
}

/// Creates a key pair for the account whose main wallet signed the sentence.
pub(super) fn create(state: &mut State, call: &Call<'_>) -> Answer {
    check_time(call.params, call.now_ms)?;
    if is_solana(call) {
        return Err(no_account());
    }
    let user = values::address(call, "address")?;
    let signature = call.params.required("userSignature")?;
    let number = state.wallets.login(user).ok_or_else(bad_signature)?;
    let text = sentence::text(&state.settings.brand, &number.to_string()).ok_or_else(|| {
        let msg = "This venue has no sentence for API keys: configure the brand's login sentence.";
        Refusal::new(-1020, msg)
    })?;
    if signer_of(&sentence::digest(&text), signature) != Ok(user) {
        return Err(bad_signature());
    }
    let id = of_user(&state.accounts, user).ok_or_else(no_account)?;
    let label = call.params.required("desc")?;
    let keys = &state.account(id).api_keys;
    let outcome = keys.iter().any(|key| key.label == label);
    if outcome || label.chars().count() > LABEL_MAX || keys.len() >= KEYS_MAX {
        return Err(invalid("desc"));
    }
    let ips = agents::ips("apikeyIP", call.params.get("apikeyIP").unwrap_or_default())?;
    state.wallets.end_login(user);
    let made = state.wallets.next_id();
    let text = |what: &str| {
        let what = format!("{what} {made}");
        hex::encode(drawn(state.settings.seed, id.0, &what))
    };
    let (key, secret) = (text("created api key"), text("created api secret"));
    let answer = json!({ "apiKey": key, "apiSecret": secret });
    state.account_mut(id).api_keys.push(ApiKey {
        key,
        secret: SecretString::from(secret),
        label: label.to_owned(),
        ips,
        grants: Grants::ALL,
    });
    Ok(Body::json(&answer))
}

/// Whether the request concerns a Solana wallet. The accounts here are EVM wallets, and the
/// documents do not show how a Solana wallet signs the sentence. So it gets a number but no key.
fn is_solana(call: &Call<'_>) -> bool {
    let network = call.params.get("network");
    network.is_some_and(|network| network.eq_ignore_ascii_case("SOL"))
}

fn no_account() -> Refusal {
    let msg = "You are not authorized for this request: the address has no account.";
    Refusal::new(-1002, msg).with_status(401)
}

fn bad_signature() -> Refusal {
    Refusal::new(
        -1022,
        "userSignature is not valid: sign the number that getNonce gave last.",
    )
}
