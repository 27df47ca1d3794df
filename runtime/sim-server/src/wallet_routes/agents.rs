//! Agents: wallets that sign for an account (docs/interface/futures.md#agent-and-builder-routes).
//! `auth` has verified the typed data of the requests.
//!
//! The documents leave some points open, which are decided here. Approving a known agent replaces
//! it. Updating or deleting an unknown one is refused with -1130. An account has at most
//! [`AGENTS_MAX`] agents.

use std::net::IpAddr;

use alloy_primitives::Address;
use serde_json::json;

use super::builders;
use super::values::{self, check_network};
use crate::accounts::{Agent, Grants};
use crate::request::{Answer, Body, Call, Refusal, invalid};
use crate::state::State;

/// Maximum number of agents per account.
const AGENTS_MAX: usize = 100;

/// Longest `agentName`.
const NAME_MAX: usize = 100;

/// Creates an agent. If the request names a builder, the builder is approved too.
pub(super) fn approve(state: &mut State, call: &Call<'_>) -> Answer {
    check_network(&state.settings, call)?;
    let id = call.account()?;
    let user = state.account(id).user;
    let address = values::address(call, "agentAddress")?;
    if address == user {
        return Err(invalid("agentAddress"));
    }
    let name = call.params.required("agentName")?;
    if name.chars().count() > NAME_MAX {
        return Err(invalid("agentName"));
    }
    let expired_ms = call.params.integer("expired")?.unwrap_or_default();
    if expired_ms <= call.now_ms {
        return Err(invalid("expired"));
    }
    let agent = Agent {
        address,
        name: name.to_owned(),
        ip_whitelist: whitelist(call)?.unwrap_or_default(),
        expired_ms,
        source: "api".to_owned(),
        grants: grants(call)?,
    };
    let known = &state.account(id).agents;
    let replaces = known.iter().any(|other| other.address == address);
    if !replaces && known.len() >= AGENTS_MAX {
        return Err(Refusal::new(
            -1130,
            format!("An account has at most {AGENTS_MAX} agents."),
        ));
    }
    if call.params.get("builder").is_some() {
        builders::put(state, call, id)?;
    }
    let agents = &mut state.account_mut(id).agents;
    agents.retain(|other| other.address != address);
    agents.push(agent);
    Ok(values::success())
}

/// Changes permissions and whitelist. A whitelist that is not sent is kept; an empty one is
/// removed.
pub(super) fn update(state: &mut State, call: &Call<'_>) -> Answer {
    check_network(&state.settings, call)?;
    let (grants, whitelist) = (grants(call)?, whitelist(call)?);
    let agent = known(state, call)?;
    agent.grants = grants;
    if let Some(whitelist) = whitelist {
        agent.ip_whitelist = whitelist;
    }
    Ok(values::success())
}

/// Revokes an agent, which cannot sign any more.
pub(super) fn delete(state: &mut State, call: &Call<'_>) -> Answer {
    check_network(&state.settings, call)?;
    let address = known(state, call)?.address;
    let id = call.account()?;
    state
        .account_mut(id)
        .agents
        .retain(|agent| agent.address != address);
    Ok(values::success())
}

/// All agents of the account, including expired ones.
pub(super) fn list(state: &State, call: &Call<'_>) -> Answer {
    let agents = &state.account(call.account()?).agents;
    let records: Vec<_> = agents
        .iter()
        .map(|agent| {
            json!({
                "agentAddress": agent.address.to_string(),
                "agentName": agent.name,
                "ipWhitelist": agent.ip_whitelist,
                "expired": agent.expired_ms,
                "source": agent.source,
                "canRead": agent.grants.read,
                "canSpotTrade": agent.grants.spot_trade,
                "canPerpTrade": agent.grants.perp_trade,
                "canWithdraw": agent.grants.withdraw,
            })
        })
        .collect();
    Ok(Body::json(&records))
}

fn known<'a>(state: &'a mut State, call: &Call<'_>) -> Result<&'a mut Agent, Refusal> {
    let address: Address = values::address(call, "agentAddress")?;
    let agents = &mut state.account_mut(call.account()?).agents;
    let found = agents.iter_mut().find(|agent| agent.address == address);
    found.ok_or_else(|| Refusal::new(-1130, format!("{address} is not an agent of this account.")))
}

fn grants(call: &Call<'_>) -> Result<Grants, Refusal> {
    let flag = |name| -> Result<bool, Refusal> {
        call.params.required(name)?;
        Ok(call.params.flag(name)?.unwrap_or_default())
    };
    Ok(Grants {
        read: true,
        spot_trade: flag("canSpotTrade")?,
        perp_trade: flag("canPerpTrade")?,
        withdraw: flag("canWithdraw")?,
    })
}

/// `ipWhitelist` as it was sent, after checking that each entry is an address; `None` if it was not
/// sent.
fn whitelist(call: &Call<'_>) -> Result<Option<String>, Refusal> {
    let Some(list) = call.params.raw("ipWhitelist") else {
        return Ok(None);
    };
    ips("ipWhitelist", list)?;
    Ok(Some(list.to_owned()))
}

/// Parses comma-separated addresses.
pub(super) fn ips(name: &str, list: &str) -> Result<Vec<IpAddr>, Refusal> {
    let entries = list
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty());
    let parsed = entries.map(|entry| entry.parse().map_err(|_| invalid(name)));
    parsed.collect()
}
