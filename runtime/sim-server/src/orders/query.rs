//! Queries of orders: one, the open ones, all, and forced ones.

use windvane_model::{OrderStatus, OrderType, Qty, Surface};
use windvane_sim::OrderView;

use super::cancel::Named;
use super::record::{self, Place};
use super::span::{Span, WEEK_MS, cut, limit};
use super::venue_request::{instrument, maybe_instrument, surface};
use crate::account_id::AccountId;
use crate::choices::{EndedListed, OpenOrdersLag, QueryLag, QueryUnknown};
use crate::request::{Answer, Body, Call, Refusal};
use crate::state::State;

/// How long a list of open orders also lists ended orders, if the venue chose that.
const ENDED_LISTED_MS: i64 = 2_000;

/// Query order. An order that ended without a fill is found only for 7 days.
pub(super) fn query_order(state: &mut State, call: &Call<'_>) -> Answer {
    let order = find(state, call)?;
    if forgotten(&order, call) {
        return Err(no_such_order(state));
    }
    Ok(Body::json(&record::order(state, &order, Place::Listed)))
}

/// Query current open order.
pub(super) fn open_order(state: &mut State, call: &Call<'_>) -> Answer {
    let order = find(state, call)?;
    if order.status.is_final() {
        return Err(no_such_order(state));
    }
    Ok(Body::json(&record::order(state, &order, Place::Listed)))
}

/// Current open orders of one symbol or of all.
pub(super) fn open_orders(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let instrument = maybe_instrument(state, call)?;
    let mut open = state.open_orders(id, surface(call), state.behind::<OpenOrdersLag>());
    if state.choices.of::<EndedListed>() == EndedListed::Yes {
        let since_ms = call.now.millis() - ENDED_LISTED_MS;
        open.extend(matching(state, id, |order| {
            order.surface == surface(call)
                && order.status.is_final()
                && order.updated.millis() > since_ms
        }));
    }
    let of_symbol =
        |order: &&OrderView| instrument.is_none_or(|wanted| order.terms.instrument == wanted);
    let list: Vec<_> = open
        .iter()
        .filter(of_symbol)
        .map(|order| record::order(state, order, Place::Listed))
        .collect();
    Ok(Body::json(&list))
}

/// All orders of a symbol, by default of the last 7 days.
pub(super) fn all_orders(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let instrument = instrument(state, call, call.params)?;
    let span = Span::of(call)?;
    if surface(call) == Surface::Futures {
        span.under_a_week(call)?;
    }
    let from_id = call.params.integer("orderId")?;
    let all = matching(state, id, |order| {
        let wanted = from_id.is_none_or(|from| order.order_id.0 >= from);
        let young = call.now_ms - order.created.millis() <= WEEK_MS;
        order.terms.instrument == instrument && wanted && young && span.has(order.created)
    });
    let from_start = from_id.is_some() || call.params.get("startTime").is_some();
    let list = cut(all, limit(call, 500)?, from_start);
    let list: Vec<_> = list
        .iter()
        .map(|order| record::order(state, order, Place::History))
        .collect();
    Ok(Body::json(&list))
}

/// The user's orders from liquidation and ADL (docs/interface/futures.md#forced-orders).
pub(super) fn force_orders(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let instrument = maybe_instrument(state, call)?;
    let span = Span::unbounded(call)?;
    let kind = call.params.get("autoCloseType");
    let all = matching(state, id, |order| {
        let name = order.client_order_id;
        let adl = name.as_str().starts_with("adl_autoclose");
        let forced = adl || order.terms.order_type == OrderType::Liquidation;
        let of_kind = match kind {
            Some("ADL") => adl,
            Some(_) => !adl,
            None => true,
        };
        let of_symbol = instrument.is_none_or(|wanted| order.terms.instrument == wanted);
        order.surface == Surface::Futures
            && forced
            && of_kind
            && of_symbol
            && span.has(order.created)
    });
    let from_start = call.params.get("startTime").is_some();
    let list = cut(all, limit(call, 50)?, from_start);
    let list: Vec<_> = list
        .iter()
        .map(|order| record::order(state, order, Place::History))
        .collect();
    Ok(Body::json(&list))
}

fn matching(state: &State, id: AccountId, wanted: impl Fn(&OrderView) -> bool) -> Vec<OrderView> {
    state.account(id).venue.orders_where(wanted)
}

fn find(state: &State, call: &Call<'_>) -> Result<OrderView, Refusal> {
    let id = call.account()?;
    let instrument = instrument(state, call, call.params)?;
    let named = Named::of(call.params)?;
    let unknown = || no_such_order(state);
    let order = named.find(state, id, instrument).ok_or_else(unknown)?;
    match (state.behind::<QueryLag>(), &state.account(id).past) {
        (Some(at), Some(past)) => past.order(at, order).ok_or_else(unknown),
        _ => Ok(order),
    }
}

fn forgotten(order: &OrderView, call: &Call<'_>) -> bool {
    let ended = matches!(order.status, OrderStatus::Canceled | OrderStatus::Expired);
    let old = order.created.millis() + WEEK_MS < call.now_ms;
    ended && order.executed == Qty(0) && old
}

fn no_such_order(state: &State) -> Refusal {
    match state.choices.of::<QueryUnknown>() {
        QueryUnknown::NoSuch => Refusal::new(-2013, "Order does not exist."),
        QueryUnknown::Unknown => Refusal::new(-2011, "Unknown order sent."),
    }
}
