//! Orders, account, positions and listen keys: the signed routes of spot and futures that move no
//! assets out of the account.

mod account;
mod cancel;
mod configuration;
mod history;
mod listen_key;
mod place;
mod position;
mod query;
mod record;
mod reject;
mod terms;

use windvane_model::protocol::{Outcome, Refusal as VenueRefusal, Reply, Request};
use windvane_model::{InstrumentId, Surface};
use windvane_sim::VenueMessage;

pub(crate) use place::batch_len;

use crate::accounts::AccountId;
use crate::request::{Answer, Call, Params, Refusal};
use crate::state::State;

/// Answers a route of this family.
pub(crate) fn handle(state: &mut State, call: &Call<'_>) -> Answer {
    if call.route.name == "spot.commission_rate" {
        return account::commission(state, call);
    }
    let own = call.route.name.split_once('.').map_or("", |(_, own)| own);
    match own {
        "new_order" => place::new_order(state, call),
        "batch_orders" => place::batch_orders(state, call),
        "cancel_order" => cancel::cancel_order(state, call),
        "cancel_all_orders" => cancel::cancel_all_orders(state, call),
        "cancel_batch_orders" => cancel::cancel_batch_orders(state, call),
        "countdown_cancel_all" => cancel::countdown(state, call),
        "query_order" => query::query_order(state, call),
        "open_order" => query::open_order(state, call),
        "open_orders" => query::open_orders(state, call),
        "all_orders" => query::all_orders(state, call),
        "force_orders" => query::force_orders(state, call),
        "user_trades" => history::user_trades(state, call),
        "income" => history::income(state, call),
        "position_margin_history" => history::position_margin(state, call),
        "account" | "earlier_account" => account::account(state, call),
        "balance" => account::balance(state, call),
        "commission_rate" => account::commission(state, call),
        "position_risk" => position::position_risk(state, call),
        "adl_quantile" => position::adl_quantile(state, call),
        "leverage_bracket" => position::leverage_bracket(state, call),
        "remaining_openable_notional" => position::remaining_openable(state, call),
        "change_position_margin" => position::change_margin(state, call),
        "change_margin_type" => position::change_margin_type(state, call),
        "change_leverage" => position::change_leverage(state, call),
        "change_position_mode" => configuration::change_position_mode(state, call),
        "position_mode" => configuration::position_mode(state, call),
        "change_multi_assets_mode" => configuration::change_multi_assets(state, call),
        "multi_assets_mode" => configuration::multi_assets(state, call),
        "create_listen_key" => listen_key::create(state, call),
        "keepalive_listen_key" => listen_key::keepalive(state, call),
        "close_listen_key" => listen_key::close(state, call),
        "noop" => Ok(configuration::done()),
        _ => Err(Refusal::not_built(call.route.name)),
    }
}

/// The surface of a call.
fn surface(call: &Call<'_>) -> Surface {
    match call.route.surface {
        windvane_protocol::route::Surface::Spot => Surface::Spot,
        _ => Surface::Futures,
    }
}

/// The instrument of `symbol` (-1121).
fn instrument(state: &State, call: &Call<'_>, params: &Params) -> Result<InstrumentId, Refusal> {
    let symbol = params.required("symbol")?;
    let found = state.instrument(surface(call), symbol);
    found.ok_or_else(|| Refusal::new(-1121, "Invalid symbol."))
}

/// The instrument of `symbol`, if it is sent.
fn maybe_instrument(state: &State, call: &Call<'_>) -> Result<Option<InstrumentId>, Refusal> {
    match call.params.get("symbol") {
        Some(_) => instrument(state, call, call.params).map(Some),
        None => Ok(None),
    }
}

/// Sends a request to an account's venue and returns its replies, in order.
fn perform(state: &mut State, call: &Call<'_>, id: AccountId, request: &Request) -> Vec<Reply> {
    perform_with_surcharge(state, call, id, request, 0)
}

/// The same for orders whose fills cost more than the venue's fee.
fn perform_with_surcharge(
    state: &mut State,
    call: &Call<'_>,
    id: AccountId,
    request: &Request,
    surcharge: i64,
) -> Vec<Reply> {
    let venue = &mut state.account_mut(id).venue;
    venue.request_with_surcharge(call.now, request, surcharge);
    let mut replies = Vec::new();
    while let Some(message) = venue.poll() {
        if let VenueMessage::Reply(reply) = message {
            replies.push(reply);
        }
    }
    replies
}

/// Converts an outcome of the matching engine to a result.
fn settled<T>(outcome: Outcome<T>) -> Result<T, Refusal> {
    match outcome {
        Outcome::Done(value) => Ok(value),
        Outcome::Refused(refusal) => Err(refused(refusal)),
        Outcome::Unknown => Err(unanswered()),
    }
}

fn refused(refusal: VenueRefusal) -> Refusal {
    Refusal::new(refusal.code, refusal.msg)
}

/// The matching engine did not reply as expected.
fn unanswered() -> Refusal {
    let msg = "An unexpected response was received from the message bus. Execution status unknown.";
    Refusal::new(-1006, msg).with_status(503)
}

/// The requested time span of a list, in milliseconds, both ends included.
#[derive(Clone, Copy, Debug)]
struct Span {
    from_ms: i64,
    to_ms: i64,
}

/// One week.
const WEEK_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

impl Span {
    /// Reads `startTime` and `endTime`. The span is at most 7 days, by default the last 7
    /// (docs/interface/orders.md#all-orders). A start after the end is refused with -1023, a longer
    /// span with -1127.
    fn of(call: &Call<'_>) -> Result<Self, Refusal> {
        let (start, end) = (
            call.params.integer("startTime")?,
            call.params.integer("endTime")?,
        );
        let now_ms = call.now_ms;
        let (from_ms, to_ms) = match (start, end) {
            (Some(start), Some(end)) => (start, end),
            (Some(start), None) => (start, start.saturating_add(WEEK_MS)),
            (None, Some(end)) => (end.saturating_sub(WEEK_MS), end),
            (None, None) => (now_ms - WEEK_MS, i64::MAX),
        };
        if from_ms > to_ms {
            return Err(Refusal::new(-1023, "Start time is greater than end time."));
        }
        if start.is_some() && end.is_some() && to_ms.saturating_sub(from_ms) > WEEK_MS {
            let msg = "The query interval is too large: at most 7 days.";
            return Err(Refusal::new(-1127, msg));
        }
        Ok(Self { from_ms, to_ms })
    }

    /// Refuses a requested span of 7 days (-1127), because a request for all futures orders needs a
    /// shorter one (docs/interface/orders.md#all-orders).
    fn under_a_week(self, call: &Call<'_>) -> Result<(), Refusal> {
        let sent = |name| call.params.get(name).is_some();
        let long = self.to_ms.saturating_sub(self.from_ms) >= WEEK_MS;
        if long && sent("startTime") && sent("endTime") {
            let msg = "The query interval is too large: it must be under 7 days.";
            return Err(Refusal::new(-1127, msg));
        }
        Ok(())
    }

    /// Reads `startTime` and `endTime` of any span, for the routes that state no limit.
    fn unbounded(call: &Call<'_>) -> Result<Self, Refusal> {
        let (start, end) = (
            call.params.integer("startTime")?,
            call.params.integer("endTime")?,
        );
        let (from_ms, to_ms) = (start.unwrap_or(0), end.unwrap_or(i64::MAX));
        if from_ms > to_ms {
            return Err(Refusal::new(-1023, "Start time is greater than end time."));
        }
        Ok(Self { from_ms, to_ms })
    }

    const fn has(self, time: windvane_model::Time) -> bool {
        let ms = time.millis();
        self.from_ms <= ms && ms <= self.to_ms
    }
}

/// `limit` or its default.
fn limit(call: &Call<'_>, default: usize) -> Result<usize, Refusal> {
    let limit = call.params.integer("limit")?;
    Ok(limit
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(default))
}

/// The newest `limit` entries of a list that is sorted oldest first; the first ones if the request
/// has a start.
fn cut<T>(mut all: Vec<T>, limit: usize, from_start: bool) -> Vec<T> {
    if from_start {
        all.truncate(limit);
    } else {
        all.drain(..all.len().saturating_sub(limit));
    }
    all
}
