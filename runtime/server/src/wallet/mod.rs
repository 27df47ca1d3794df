//! Agents, builders, transfers, withdrawals, API keys, the chain API and the JSON-RPC endpoint.

use crate::http::{Answer, Call, Refusal};
use crate::state::{AccountId, State};

/// What the venue keeps of wallets beside the accounts' balances.
#[derive(Debug, Default)]
pub(crate) struct Wallets {}

/// Is a route of this room.
pub(crate) fn owns(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "wallet_transfer",
        "send_to_address",
        "withdraw_fee",
        "withdraw",
        "get_nonce",
        "create_api_key",
        "approve_agent",
        "update_agent",
        "delete_agent",
        "agents",
        "approve_builder",
        "update_builder",
        "delete_builder",
        "builders",
    ];
    match name.split_once('.') {
        Some(("chain", _)) | None => true,
        Some((_, own)) => NAMES.contains(&own),
    }
}

/// The `method` of a JSON-RPC request body; `None` where it has none.
pub(crate) fn rpc_method(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Request {
        method: String,
    }
    let request: Request = serde_json::from_slice(body).ok()?;
    Some(request.method)
}

/// Whether the user approved this builder at this fee rate or more (spec 2, Place order with
/// builder code).
pub(crate) fn check_builder(
    _state: &State,
    _account: AccountId,
    _builder: &str,
    _fee_rate: &str,
) -> Result<(), Refusal> {
    Err(Refusal::not_built("An order with a builder's code"))
}

/// Answers a route of this family.
pub(crate) fn handle(_state: &mut State, call: &Call<'_>) -> Answer {
    Err(Refusal::not_built(call.route.name))
}
