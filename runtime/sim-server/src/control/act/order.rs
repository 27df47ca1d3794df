//! Actions of others on the account's orders and positions.

use serde_json::json;
use windvane_model::protocol::Outcome;
use windvane_model::{
    ClientOrderId, InstrumentId, NewOrder, OrderTerms, OrderType, PositionSide, Qty, Reply,
    Request, Side, Time, TimeInForce, VenueOrderId,
};
use windvane_sim::{OrderView, VenueMessage};

use super::arguments::{ActError, Done, account_of, instrument_of, price_of, qty_of, unfit};
use crate::account_id::AccountId;
use crate::faults::{Fields, required};
use crate::state::State;

fn word<T: std::str::FromStr>(
    fields: &mut Fields,
    field: &'static str,
    rule: &'static str,
) -> Result<Option<T>, ActError> {
    let Some(text) = fields.text(field)? else {
        return Ok(None);
    };
    match text.parse() {
        Ok(word) => Ok(Some(word)),
        Err(_) => Err(unfit(field, &text, rule)),
    }
}

/// Places an order as the account's owner would, without the client. Its client order id is given,
/// or begins with `web_`.
pub(super) fn place(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let account = account_of(state, &mut fields)?;
    let instrument = instrument_of(state, &mut fields)?;
    let terms = terms(state, &mut fields, instrument)?;
    let name = fields.text("client_order_id")?;
    fields.finish()?;
    let name = name.unwrap_or_else(|| format!("web_{}", state.faults.number()));
    let client_order_id = ClientOrderId::new(&name)
        .map_err(|_| unfit("client_order_id", &name, "must be a client order id"))?;
    let order = NewOrder {
        client_order_id,
        terms,
    };
    let venue = &mut state.account_mut(account).venue;
    venue.request(now, &Request::Place(order));
    let mut answer = None;
    while let Some(VenueMessage::Reply(Reply::Placed { outcome, .. })) = venue.poll() {
        answer = Some(outcome);
    }
    match answer {
        Some(Outcome::Done(report)) => Ok(json!({
            "order_id": report.order_id.0,
            "client_order_id": name,
            "status": report.status.as_str(),
        })),
        Some(Outcome::Refused(refusal)) => Err(refusal.into()),
        // Cannot happen: the simulated venue always knows the outcome.
        _ => Err(unfit("act", "place", "was not answered")),
    }
}

fn terms(
    state: &State,
    fields: &mut Fields,
    instrument: InstrumentId,
) -> Result<OrderTerms, ActError> {
    let side: Option<Side> = word(fields, "side", "must be BUY or SELL")?;
    let order_type = word(fields, "type", "must be an order type")?.unwrap_or(OrderType::Limit);
    let mut terms = OrderTerms::new(instrument, required("side", Ok(side))?, order_type);
    let rule = "must be BOTH, LONG or SHORT";
    terms.position_side = word(fields, "position_side", rule)?.unwrap_or(PositionSide::Both);
    terms.time_in_force = word(fields, "time_in_force", "must be a time in force")?;
    if order_type == OrderType::Limit && terms.time_in_force.is_none() {
        terms.time_in_force = Some(TimeInForce::Gtc);
    }
    if let Some(qty) = fields.decimal("quantity")? {
        terms.qty = Some(qty_of(state, instrument, "quantity", qty)?);
    }
    if let Some(price) = fields.decimal("price")? {
        terms.price = Some(price_of(state, instrument, "price", price)?);
    }
    if let Some(price) = fields.decimal("stop_price")? {
        terms.stop_price = Some(price_of(state, instrument, "stop_price", price)?);
    }
    terms.reduce_only = fields.boolean("reduce_only")?.unwrap_or(false);
    Ok(terms)
}

/// Closes the account's whole position in a symbol by market orders, as a person would.
pub(super) fn close(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let account = account_of(state, &mut fields)?;
    let instrument = instrument_of(state, &mut fields)?;
    fields.finish()?;
    let views = state.account(account).venue.position_views();
    let of_symbol = views.filter(|view| view.instrument == instrument && view.qty.0 != 0);
    let held: Vec<_> = of_symbol.collect();
    if held.is_empty() {
        return Err(unfit("symbol", "close", "the account holds nothing of it"));
    }
    for view in &held {
        let side = if view.qty.0 > 0 {
            Side::Sell
        } else {
            Side::Buy
        };
        let mut terms = OrderTerms::new(instrument, side, OrderType::Market);
        terms.position_side = view.position_side;
        terms.qty = Some(Qty(view.qty.0.abs()));
        terms.reduce_only = view.position_side == PositionSide::Both;
        let name = format!("web_{}", state.faults.number());
        let client_order_id = ClientOrderId::new(&name)
            .map_err(|_| unfit("client_order_id", &name, "must be a client order id"))?;
        let order = NewOrder {
            client_order_id,
            terms,
        };
        let venue = &mut state.account_mut(account).venue;
        venue.request(now, &Request::Place(order));
        while let Some(message) = venue.poll() {
            if let VenueMessage::Reply(Reply::Placed {
                outcome: Outcome::Refused(refusal),
                ..
            }) = message
            {
                return Err(refusal.into());
            }
        }
    }
    Ok(json!({ "orders": held.len() }))
}

/// A margin call for the account's positions.
pub(super) fn call_margin(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let account = account_of(state, &mut fields)?;
    let instrument = instrument_of(state, &mut fields)?;
    fields.finish()?;
    state
        .account_mut(account)
        .venue
        .call_margin(now, instrument)?;
    Ok(json!({}))
}

/// The order with this `order_id`, or with this `symbol` and `client_order_id`.
fn named(state: &State, fields: &mut Fields, account: AccountId) -> Result<OrderView, ActError> {
    let venue = &state.account(account).venue;
    let (found, name) = if let Some(id) = fields.signed("order_id")? {
        (venue.order(VenueOrderId(id)), id.to_string())
    } else {
        let instrument = instrument_of(state, fields)?;
        let name = required("client_order_id", fields.text("client_order_id"))?;
        let id = ClientOrderId::new(&name).ok();
        let found = id.and_then(|id| venue.order_by_client(instrument, &id));
        (found, name)
    };
    found.ok_or_else(|| unfit("order", &name, "is unknown to the account"))
}

pub(super) fn cancel(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let account = account_of(state, &mut fields)?;
    let order = named(state, &mut fields, account)?;
    fields.finish()?;
    let venue = &mut state.account_mut(account).venue;
    venue.cancel_order(now, order.order_id)?;
    Ok(json!({ "order_id": order.order_id.0 }))
}

pub(super) fn expire(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let account = account_of(state, &mut fields)?;
    let order = named(state, &mut fields, account)?;
    fields.finish()?;
    let venue = &mut state.account_mut(account).venue;
    venue.expire_order(now, order.order_id)?;
    Ok(json!({ "order_id": order.order_id.0 }))
}

pub(super) fn fill(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let account = account_of(state, &mut fields)?;
    let order = named(state, &mut fields, account)?;
    let instrument = order.terms.instrument;
    let qty = match fields.decimal("quantity")? {
        Some(qty) => qty_of(state, instrument, "quantity", qty)?,
        None => Qty(order.qty.0 - order.executed.0),
    };
    fields.finish()?;
    let venue = &mut state.account_mut(account).venue;
    let filled = venue.fill_order(now, order.order_id, qty)?;
    let filled = state.rules(instrument).qty(filled.0).to_string();
    Ok(json!({ "order_id": order.order_id.0, "quantity": filled }))
}

pub(super) fn liquidate(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let account = account_of(state, &mut fields)?;
    let instrument = instrument_of(state, &mut fields)?;
    fields.finish()?;
    state
        .account_mut(account)
        .venue
        .liquidate_now(now, instrument)?;
    Ok(json!({}))
}

pub(super) fn deleverage(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let account = account_of(state, &mut fields)?;
    let instrument = instrument_of(state, &mut fields)?;
    let rule = "must be BOTH, LONG or SHORT";
    let side = word(&mut fields, "position_side", rule)?.unwrap_or(PositionSide::Both);
    let qty = match fields.decimal("quantity")? {
        Some(qty) => qty_of(state, instrument, "quantity", qty)?,
        None => Qty(i64::MAX),
    };
    fields.finish()?;
    let venue = &mut state.account_mut(account).venue;
    let closed = venue.deleverage(now, instrument, side, qty)?;
    let closed = state.rules(instrument).qty(closed.0).to_string();
    Ok(json!({ "quantity": closed }))
}
