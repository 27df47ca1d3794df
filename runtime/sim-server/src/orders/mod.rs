//! Orders, account, positions and listen keys: the signed routes of spot and futures that move no
//! assets out of the account.

mod account;
mod cancel;
mod configuration;
mod history;
mod listen_key;
mod place;
mod position;
mod position_rows;
mod query;
mod record;
mod reject;
mod span;
mod terms;
mod venue_request;

pub(crate) use place::batch_len;

use crate::request::{Answer, Call, Refusal};
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
