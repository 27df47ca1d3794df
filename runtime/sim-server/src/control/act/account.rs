//! Actions on money, modes, keys and bans of an account.

use std::net::IpAddr;

use rust_decimal::Decimal;
use serde_json::json;
use windvane_model::decimal::exact_mantissa;
use windvane_model::protocol::Outcome;
use windvane_model::{AssetId, Reply, Request, Surface, Time};
use windvane_sim::{Cause, VenueMessage};

use super::arguments::{
    ActError, Done, SURFACES, account_of, amount_of, instrument_of, optional_account, surface_of,
    unfit,
};
use crate::account_id::AccountId;
use crate::faults::{Fields, required};
use crate::state::State;
use crate::user_events;
use crate::wallet::Direction;

/// Funding of a symbol for one account or for all. `rate` is a fraction.
pub(super) fn funding(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let only = optional_account(state, &mut fields)?;
    let instrument = instrument_of(state, &mut fields)?;
    let rate = required("rate", fields.decimal("rate"))?;
    fields.finish()?;
    let mantissa = exact_mantissa(rate, 8).filter(|_| rate.abs() <= Decimal::ONE);
    let rule = "must lie in -1 to 1 and have at most 8 decimals";
    let mantissa = mantissa.ok_or_else(|| unfit("rate", &rate.to_string(), rule))?;
    for place in 0..state.accounts.len() {
        let account = AccountId(place as u16);
        if only.is_none_or(|only| only == account) {
            let venue = &mut state.account_mut(account).venue;
            venue.fund_now(now, instrument, mantissa)?;
        }
    }
    Ok(json!({}))
}

fn asset_of(state: &State, fields: &mut Fields) -> Result<AssetId, ActError> {
    let name = required("asset", fields.text("asset"))?;
    let place = state.assets.names().iter().position(|known| *known == name);
    let rule = "must be an asset of exchange information";
    let place = place.ok_or_else(|| unfit("asset", &name, rule))?;
    Ok(AssetId(place as u16))
}

/// Deposits or withdraws money; `cause` is the reason in the user event.
pub(super) fn funds(state: &mut State, name: &str, mut fields: Fields, now: Time) -> Done {
    let account = account_of(state, &mut fields)?;
    let surface = surface_of(&mut fields)?;
    let asset = asset_of(state, &mut fields)?;
    let amount = required("amount", fields.decimal("amount"))?;
    let amount = amount_of("amount", amount)?;
    let values: Vec<_> = Cause::ALL.iter().map(|c| (c.as_str(), *c)).collect();
    let cause = fields.word("cause", &values)?;
    fields.finish()?;
    let venue = &mut state.account_mut(account).venue;
    let (usual, direction) = match name {
        "deposit" => (Cause::Deposit, Direction::Deposit),
        _ => (Cause::Withdraw, Direction::Withdraw),
    };
    let cause = cause.unwrap_or(usual);
    match direction {
        Direction::Deposit => venue.credit(now, surface, asset, amount, cause)?,
        Direction::Withdraw => venue.debit(now, surface, asset, amount, cause)?,
    }
    if cause == usual {
        let now_ms = state.clock_ms(now);
        let seed = state.settings.seed;
        let moved = (surface, asset, amount);
        state
            .wallets
            .keep_act(seed, account, direction, moved, now_ms);
    }
    Ok(json!({}))
}

pub(super) fn transfer(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let account = account_of(state, &mut fields)?;
    let from = required("from", fields.word("from", SURFACES))?;
    let asset = asset_of(state, &mut fields)?;
    let amount = required("amount", fields.decimal("amount"))?;
    let amount = amount_of("amount", amount)?;
    fields.finish()?;
    let venue = &mut state.account_mut(account).venue;
    venue.transfer(now, from, asset, amount)?;
    Ok(json!({}))
}

/// Sends a settings request to the account's venue and returns its refusal, if any.
fn request(state: &mut State, account: AccountId, now: Time, request: &Request) -> Done {
    let venue = &mut state.account_mut(account).venue;
    venue.request(now, request);
    let mut refused = None;
    while let Some(message) = venue.poll() {
        refused = match message {
            VenueMessage::Reply(
                Reply::Leverage {
                    outcome: Outcome::Refused(refusal),
                    ..
                }
                | Reply::PositionMode {
                    outcome: Outcome::Refused(refusal),
                },
            ) => Some(refusal),
            _ => refused,
        };
    }
    refused.map_or_else(|| Ok(json!({})), |refusal| Err(refusal.into()))
}

pub(super) fn leverage(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let account = account_of(state, &mut fields)?;
    let instrument = instrument_of(state, &mut fields)?;
    let leverage = required("leverage", fields.whole("leverage"))?;
    fields.finish()?;
    let change = Request::SetLeverage {
        instrument,
        leverage: u32::try_from(leverage).unwrap_or(u32::MAX),
    };
    request(state, account, now, &change)
}

pub(super) fn margin_type(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let account = account_of(state, &mut fields)?;
    let instrument = instrument_of(state, &mut fields)?;
    let values = &[("ISOLATED", true), ("CROSSED", false)];
    let isolated = required("margin_type", fields.word("margin_type", values))?;
    fields.finish()?;
    let venue = &mut state.account_mut(account).venue;
    venue.set_margin_type(now, instrument, isolated)?;
    Ok(json!({}))
}

pub(super) fn position_mode(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let account = account_of(state, &mut fields)?;
    let hedge = required("hedge", fields.boolean("hedge"))?;
    fields.finish()?;
    request(state, account, now, &Request::SetPositionMode { hedge })
}

pub(super) fn multi_assets(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let account = account_of(state, &mut fields)?;
    let on = required("on", fields.boolean("on"))?;
    fields.finish()?;
    let venue = &mut state.account_mut(account).venue;
    venue.set_multi_assets(now, on)?;
    Ok(json!({}))
}

/// Ends the listen keys of an account on one surface or both. With `silent`, no event reports it.
pub(super) fn expire_listen_key(state: &mut State, mut fields: Fields) -> Done {
    let account = account_of(state, &mut fields)?;
    let only = fields.word("surface", SURFACES)?;
    let silent = fields.boolean("silent")?.unwrap_or(false);
    fields.finish()?;
    let mut ended = Vec::new();
    for surface in [Surface::Spot, Surface::Futures] {
        if only.is_some_and(|only| only != surface) {
            continue;
        }
        let Some(key) = state.account_mut(account).listen_keys.close(surface) else {
            continue;
        };
        ended.push(key.key.clone());
        if !silent {
            user_events::send_key_expired(state, surface, key.key);
        }
    }
    Ok(json!({ "listen_keys": ended }))
}

/// Expires all agents of the account, or only the one with this address.
pub(super) fn expire_agent(state: &mut State, mut fields: Fields) -> Done {
    let account = account_of(state, &mut fields)?;
    let address = fields.text("agent")?;
    fields.finish()?;
    let now_ms = state.now.millis();
    let mut ended = Vec::new();
    for agent in &mut state.account_mut(account).agents {
        let shown = agent.address.to_checksum(None);
        let named = address.as_deref();
        if named.is_none_or(|named| named.eq_ignore_ascii_case(&shown)) {
            agent.expired_ms = now_ms - 1;
            ended.push(shown);
        }
    }
    Ok(json!({ "agents": ended }))
}

/// Sets rights of the account's keys and agents. Each right in the body is granted or removed (a
/// key can be limited to some types of routes: docs/interface/conventions.md#security-labels).
pub(super) fn rights(state: &mut State, mut fields: Fields) -> Done {
    let account = account_of(state, &mut fields)?;
    let read = fields.boolean("read")?;
    let spot_trade = fields.boolean("spot_trade")?;
    let perp_trade = fields.boolean("perp_trade")?;
    let withdraw = fields.boolean("withdraw")?;
    fields.finish()?;
    let account = state.account_mut(account);
    let keys = account.api_keys.iter_mut().map(|key| &mut key.grants);
    let agents = account.agents.iter_mut().map(|agent| &mut agent.grants);
    for grants in keys.chain(agents) {
        grants.read = read.unwrap_or(grants.read);
        grants.spot_trade = spot_trade.unwrap_or(grants.spot_trade);
        grants.perp_trade = perp_trade.unwrap_or(grants.perp_trade);
        grants.withdraw = withdraw.unwrap_or(grants.withdraw);
    }
    Ok(json!({}))
}

fn ip_of(fields: &mut Fields) -> Result<IpAddr, ActError> {
    let text = fields.text("ip")?.unwrap_or_else(|| "127.0.0.1".to_owned());
    let parsed = text.parse();
    parsed.map_err(|_| unfit("ip", &text, "must be an address"))
}

/// Uses weight of a surface's counter, like another program on the same address.
pub(super) fn weight(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let ip = ip_of(&mut fields)?;
    let surface = fields.word("surface", crate::faults::SURFACES)?;
    let weight = required("weight", fields.whole("weight"))?;
    fields.finish()?;
    let surface = surface.unwrap_or(windvane_protocol::route::Surface::Futures);
    let weight = u32::try_from(weight).unwrap_or(u32::MAX);
    let limits = &mut state.limits;
    let used = limits.use_by_others(&state.choices, surface, ip, weight, now);
    Ok(json!({ "used": used }))
}

/// Bans an address (418) for `for_ms`, as the limits would.
pub(super) fn ban(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let ip = ip_of(&mut fields)?;
    let for_ms = fields.whole("for_ms")?.unwrap_or(120_000);
    fields.finish()?;
    let for_ms = i64::try_from(for_ms).unwrap_or(i64::MAX);
    let until_ms = now.plus_ms(for_ms).millis();
    state.limits.ban(ip, until_ms);
    Ok(json!({ "until_ms": until_ms }))
}

pub(super) fn pardon(state: &mut State, mut fields: Fields) -> Done {
    let ip = ip_of(&mut fields)?;
    fields.finish()?;
    state.limits.pardon(ip);
    Ok(json!({}))
}
