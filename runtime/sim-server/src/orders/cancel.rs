//! Cancels one order, several or all, and sets the countdown.

use serde_json::{Value, json};
use windvane_model::protocol::{Reply, Request};
use windvane_model::{InstrumentId, Surface, VenueOrderId};
use windvane_sim::OrderView;

use super::record::{self, Place};
use super::terms;
use super::venue_request::{instrument, perform, refused, settled, surface, unanswered};
use crate::account_id::AccountId;
use crate::choices::CancelUnknown;
use crate::request::{Answer, Body, Call, Params, Refusal, invalid, missing};
use crate::state::State;

/// Maximum number of ids in one list (docs/interface/orders.md#cancel-several-orders).
const LIST_MAX: usize = 10;

/// How a request identifies an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Id(VenueOrderId),
    Client(String),
}

impl Named {
    /// Reads `orderId`, or else `origClientOrderId`. One of them is required.
    pub(super) fn of(params: &Params) -> Result<Self, Refusal> {
        if let Some(id) = params.integer("orderId")? {
            return Ok(Self::Id(VenueOrderId(id)));
        }
        let id = params.get("origClientOrderId");
        id.map(|id| Self::Client(id.to_owned()))
            .ok_or_else(|| missing("orderId"))
    }

    /// The order of this symbol, open or finished.
    pub(super) fn find(
        &self,
        state: &State,
        id: AccountId,
        instrument: InstrumentId,
    ) -> Option<OrderView> {
        let venue = &state.account(id).venue;
        match self {
            Self::Id(order) => {
                let view = venue.order(*order)?;
                (view.terms.instrument == instrument).then_some(view)
            }
            Self::Client(text) => {
                let client = terms::client_order_id(text).ok()?;
                venue.order_by_client(instrument, &client)
            }
        }
    }
}

/// Cancel order.
pub(super) fn cancel_order(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let instrument = instrument(state, call, call.params)?;
    let named = Named::of(call.params)?;
    let order = cancel(state, call, id, instrument, &named)?;
    Ok(Body::json(&record::order(state, &order, Place::Changed)))
}

/// Cancel multiple orders (docs/interface/orders.md#cancel-several-orders).
pub(super) fn cancel_batch_orders(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let instrument = instrument(state, call, call.params)?;
    let named = lists(call.params)?.ok_or_else(|| missing("orderIdList"))?;
    if named.len() > LIST_MAX {
        let msg = format!("Exceed maximum cancel order size of {LIST_MAX}.");
        return Err(Refusal::new(-4032, msg));
    }
    let mut answers = Vec::with_capacity(named.len());
    for named in &named {
        answers.push(match cancel(state, call, id, instrument, named) {
            Ok(order) => record::order(state, &order, Place::Changed),
            Err(refusal) => json!({ "code": refusal.code, "msg": refusal.msg }),
        });
    }
    Ok(Body::json(&answers))
}

/// Cancel all open orders. On spot, only those of the list if one is sent
/// (docs/interface/orders.md#cancel-all-open-orders).
pub(super) fn cancel_all_orders(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let instrument = instrument(state, call, call.params)?;
    let spot = surface(call) == Surface::Spot;
    let named = if spot { lists(call.params)? } else { None };
    if let Some(named) = named {
        for named in named {
            // Ignore an order that has ended already.
            let _ = cancel(state, call, id, instrument, &named);
        }
    } else {
        let request = Request::CancelAll { instrument };
        match perform(state, call, id, &request).into_iter().next() {
            Some(Reply::CanceledAll { outcome, .. }) => settled(outcome)?,
            _ => return Err(unanswered()),
        }
    }
    let msg = "The operation of cancel all open order is done.";
    // Futures send the code as text (docs/interface/orders.md#cancel-all-open-orders).
    let code = if spot { json!(200) } else { json!("200") };
    Ok(Body::json(&json!({ "code": code, "msg": msg })))
}

/// Auto-cancel all open orders (docs/interface/futures.md#countdowncancelall).
pub(super) fn countdown(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let instrument = instrument(state, call, call.params)?;
    let wanted = call.params.integer("countdownTime")?;
    let wanted = wanted.ok_or_else(|| missing("countdownTime"))?;
    let countdown_ms = u64::try_from(wanted).map_err(|_| invalid("countdownTime"))?;
    let request = Request::Countdown {
        instrument,
        countdown_ms,
    };
    let armed = match perform(state, call, id, &request).into_iter().next() {
        Some(Reply::Countdown { outcome, .. }) => settled(outcome)?,
        _ => return Err(unanswered()),
    };
    let symbol = &state.rules(instrument).symbol;
    Ok(Body::json(
        &json!({ "symbol": symbol, "countdownTime": armed }),
    ))
}

/// Cancels an open order. If it is not open, the refusal is -2011, or -2013 if the venue chose
/// that.
fn cancel(
    state: &mut State,
    call: &Call<'_>,
    id: AccountId,
    instrument: InstrumentId,
    named: &Named,
) -> Result<OrderView, Refusal> {
    let unknown = match state.choices.of::<CancelUnknown>() {
        CancelUnknown::Rejected => Refusal::new(-2011, "Unknown order sent."),
        CancelUnknown::NoSuch => Refusal::new(-2013, "Order does not exist."),
    };
    let order = named.find(state, id, instrument);
    let order = order
        .filter(|order| !order.status.is_final())
        .ok_or(unknown)?;
    let venue = &mut state.account_mut(id).venue;
    venue
        .cancel_order(call.now, order.order_id)
        .map_err(refused)?;
    venue.order(order.order_id).ok_or_else(unanswered)
}

/// Reads `orderIdList` or `origClientOrderIdList`, but not both (-1128). They are JSON lists as
/// text, with ids as numbers or text. An empty list is refused (-1102), because it must not be
/// taken for a missing list, which cancels everything on spot.
fn lists(params: &Params) -> Result<Option<Vec<Named>>, Refusal> {
    let list = |name: &str| -> Result<Option<Vec<Value>>, Refusal> {
        let Some(text) = params.raw(name) else {
            return Ok(None);
        };
        if text.is_empty() {
            return Err(missing(name));
        }
        let ids: Vec<Value> = serde_json::from_str(text).map_err(|_| invalid(name))?;
        if ids.is_empty() {
            return Err(missing(name));
        }
        Ok(Some(ids))
    };
    let both = params.get("orderIdList").is_some() && params.get("origClientOrderIdList").is_some();
    if both {
        let msg = "Combination of optional parameters invalid: send orderIdList or \
                   origClientOrderIdList, not both.";
        return Err(Refusal::new(-1128, msg));
    }
    if let Some(ids) = list("orderIdList")? {
        let read = |value: &Value| {
            let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
            number
                .map(|id| Named::Id(VenueOrderId(id)))
                .ok_or_else(|| invalid("orderIdList"))
        };
        return ids.iter().map(read).collect::<Result<_, _>>().map(Some);
    }
    let Some(ids) = list("origClientOrderIdList")? else {
        return Ok(None);
    };
    let read = |value: &Value| {
        let text = value.as_str().map(str::to_owned);
        text.map(Named::Client)
            .ok_or_else(|| invalid("origClientOrderIdList"))
    };
    ids.iter().map(read).collect::<Result<_, _>>().map(Some)
}
