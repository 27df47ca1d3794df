//! Agents: wallets that sign for an account (spec 2, Agent and builder routes). The typed data of
//! the requests was verified by `auth`.
//!
//! Not shown in the documents, chosen here: approving a known agent replaces it; updating or
//! deleting an unknown one is refused with -1130; an account has at most [`AGENTS_MAX`].

use std::net::IpAddr;

use alloy_primitives::Address;
use serde_json::json;

use super::{builders, values};
use crate::http::{Answer, Body, Call, Refusal, invalid};
use crate::state::{Agent, Grants, State};

/// Agents of one account.
const AGENTS_MAX: usize = 100;

/// Longest `agentName`.
const NAME_MAX: usize = 100;

/// Creates an agent, and approves a builder with it where one is named.
pub(super) fn approve(state: &mut State, call: &Call<'_>) -> Answer {
    check_network(state, call)?;
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

/// Changes permissions and whitelist. A whitelist that is not sent stays; an empty one is lifted.
pub(super) fn update(state: &mut State, call: &Call<'_>) -> Answer {
    check_network(state, call)?;
    let (grants, whitelist) = (grants(call)?, whitelist(call)?);
    let agent = known(state, call)?;
    agent.grants = grants;
    if let Some(whitelist) = whitelist {
        agent.ip_whitelist = whitelist;
    }
    Ok(values::success())
}

/// Revokes an agent: from here on it signs for nobody.
pub(super) fn delete(state: &mut State, call: &Call<'_>) -> Answer {
    check_network(state, call)?;
    let address = known(state, call)?.address;
    let id = call.account()?;
    state
        .account_mut(id)
        .agents
        .retain(|agent| agent.address != address);
    Ok(values::success())
}

/// All agents of the account, expired ones too.
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

/// The label must be that of this environment (spec 4, section 2).
pub(super) fn check_network(state: &State, call: &Call<'_>) -> Result<(), Refusal> {
    let name = &state.settings.brand.chain_parameter;
    let label = if state.settings.testnet {
        "Testnet"
    } else {
        "Mainnet"
    };
    if call.params.get(name) == Some(label) {
        Ok(())
    } else {
        Err(invalid(name))
    }
}

fn known<'a>(state: &'a mut State, call: &Call<'_>) -> Result<&'a mut Agent, Refusal> {
    let address: Address = values::address(call, "agentAddress")?;
    let agents = &mut state.account_mut(call.account()?).agents;
    let found = agents.iter_mut().find(|agent| agent.address == address);
    found.ok_or_else(|| Refusal::new(-1130, format!("{address} is no agent of this account.")))
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

/// `ipWhitelist` as sent, each entry an address; `None` where it is not sent.
fn whitelist(call: &Call<'_>) -> Result<Option<String>, Refusal> {
    let Some(list) = call.params.raw("ipWhitelist") else {
        return Ok(None);
    };
    ips("ipWhitelist", list)?;
    Ok(Some(list.to_owned()))
}

/// Addresses separated by commas.
pub(super) fn ips(name: &str, list: &str) -> Result<Vec<IpAddr>, Refusal> {
    let entries = list
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty());
    let parsed = entries.map(|entry| entry.parse().map_err(|_| invalid(name)));
    parsed.collect()
}
