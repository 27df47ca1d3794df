//! Inputs and effects to bytes. Nothing here may read them back or depend on more than its arguments.

use serde::Serialize;

use crate::config::EngineConfig;
use crate::decimal::Amount;
use crate::effect::{Adjustment, Cause, Effect};
use crate::engine::{Doubt, RunState};
use crate::event::Intent;
use crate::forced::ForcedCloseReport;
use crate::ids::{ClientOrderId, StrategyId, Time};
use crate::input::Input;
use crate::market::{Level, MarketEvent};
use crate::order::{NewOrder, OrderTerms};
use crate::protocol::{
    AccountUpdate, Fill, OrderReport, OrderUpdate, Outcome, Reply, Request, UserEvent,
};
use crate::record::Recorder;

use super::{HAS_TRANSACTION_TIME, kind};

/// Records a market event: the hot path.
#[inline]
pub fn record_market(recorder: &mut Recorder, now: Time, instrument: u16, event: &MarketEvent<'_>) {
    match event {
        MarketEvent::Trade {
            price,
            qty,
            trade_id,
            buyer_is_maker,
        } => {
            let mut body = [0; 27];
            body[..2].copy_from_slice(&instrument.to_le_bytes());
            body[2] = u8::from(*buyer_is_maker);
            put_words(&mut body[3..], &[*price, *qty, *trade_id]);
            recorder.begin(kind::TRADE, now.0).extend_from_slice(&body);
        }
        MarketEvent::Top {
            update_id,
            bid,
            ask,
        } => {
            let mut body = [0; 42];
            body[..2].copy_from_slice(&instrument.to_le_bytes());
            let words = [*update_id, bid.price, bid.qty, ask.price, ask.qty];
            put_words(&mut body[2..], &words);
            recorder.begin(kind::TOP, now.0).extend_from_slice(&body);
        }
        MarketEvent::Depth {
            update_id,
            snapshot,
            bids,
            asks,
        } => {
            let out = recorder.begin(kind::DEPTH, now.0);
            put(out, &instrument.to_le_bytes());
            put(out, &[u8::from(*snapshot)]);
            put_i64(out, *update_id);
            put_levels(out, bids);
            put_levels(out, asks);
        }
        MarketEvent::Gap => put(recorder.begin(kind::GAP, now.0), &instrument.to_le_bytes()),
        MarketEvent::Mark {
            mark,
            index,
            funding_rate,
            next_funding,
        } => {
            let out = recorder.begin(kind::MARK, now.0);
            put(out, &instrument.to_le_bytes());
            for word in [*mark, *index, *funding_rate, next_funding.0] {
                put_i64(out, word);
            }
        }
    }
}

/// Records an input.
pub fn record_input(recorder: &mut Recorder, now: Time, input: &Input<'_>) {
    match input {
        Input::Market { instrument, event } => record_market(recorder, now, instrument.0, event),
        Input::Answer { strategy, intents } => {
            let out = recorder.begin(kind::ANSWER, now.0);
            put_strategy(out, *strategy);
            put_u32(out, intents.len() as u32);
            for intent in *intents {
                put_intent(out, intent);
            }
        }
        Input::Reply(reply) => put_reply(recorder.begin(kind::REPLY, now.0), reply),
        Input::User(event) => put_user_event(recorder.begin(kind::USER, now.0), event),
        Input::Timeout => {
            recorder.begin(kind::TIMEOUT, now.0);
        }
        Input::Fault {
            strategy,
            kind: fault,
        } => {
            let out = recorder.begin(kind::FAULT, now.0);
            put_strategy(out, *strategy);
            put(out, &[*fault as u8]);
        }
        Input::Command(command) => {
            put(recorder.begin(kind::COMMAND, now.0), &[*command as u8]);
        }
        Input::Steer { strategy, command } => {
            let out = recorder.begin(kind::STEER, now.0);
            put_strategy(out, *strategy);
            put(out, &[*command as u8]);
        }
        Input::Renew { strategy } => put_strategy(recorder.begin(kind::RENEW, now.0), *strategy),
        Input::Saved {
            strategy,
            handled,
            state,
        } => {
            let out = recorder.begin(kind::SAVED, now.0);
            put_strategy(out, *strategy);
            put_i64(out, *handled);
            put(out, &[u8::from(state.is_some())]);
            if let Some(state) = state {
                put_u32(out, state.len() as u32);
                put(out, state);
            }
        }
        Input::Reconfigure(next) => put_rare(recorder.begin(kind::RECONFIGURE, now.0), next),
        Input::Live(input) => put_rare(recorder.begin(kind::LIVE, now.0), input),
        Input::SymbolStatus { instrument, status } => {
            let out = recorder.begin(kind::SYMBOL_STATUS, now.0);
            put(out, &instrument.0.to_le_bytes());
            let word = match status {
                crate::instrument::SymbolStatus::Trading => "TRADING",
                crate::instrument::SymbolStatus::Other(word) => word,
            };
            put_text(out, word);
        }
        Input::OnLiquidation(reaction) => {
            let out = recorder.begin(kind::ON_LIQUIDATION, now.0);
            put(out, &[*reaction as u8]);
        }
    }
}

/// Records an effect.
#[inline]
pub fn record_effect(recorder: &mut Recorder, now: Time, effect: &Effect) {
    match effect {
        // The event itself follows from the inputs before it; who is told of it is what counts.
        Effect::Deliver { strategy, event } => {
            let [low, high] = strategy.0.to_le_bytes();
            let body = [low, high, event.kind as u8];
            recorder
                .begin(kind::DELIVER, now.0)
                .extend_from_slice(&body);
        }
        Effect::Send { record, request } => {
            let out = recorder.begin(kind::SEND, now.0);
            put(out, &record.to_le_bytes());
            put_request(out, request);
        }
        Effect::Reconnect { surface } => {
            put(recorder.begin(kind::RECONNECT, now.0), &[surface.code()]);
        }
        Effect::Beat { number } => {
            put(recorder.begin(kind::BEAT, now.0), &number.to_le_bytes());
        }
    }
}

/// Records a move of the state of a live run, with what is in doubt.
pub fn record_state(
    recorder: &mut Recorder,
    now: Time,
    from: RunState,
    to: RunState,
    doubts: &[Doubt],
) {
    put_rare(recorder.begin(kind::STATE, now.0), &(from, to, doubts));
}

/// Records a correction by the venue's evidence.
pub fn record_adjustment(
    recorder: &mut Recorder,
    now: Time,
    adjustment: &Adjustment,
    cause: Cause,
) {
    put_rare(recorder.begin(kind::ADJUSTED, now.0), &(adjustment, cause));
}

/// Records a liquidation or an ADL.
pub fn record_forced_close(recorder: &mut Recorder, now: Time, report: &ForcedCloseReport) {
    put_rare(recorder.begin(kind::FORCED_CLOSE, now.0), report);
}

/// Records what the engine is made of, so that a fingerprint covers it: every rule and limit, in
/// the words of their `Debug` form, which names each field.
pub fn record_config(recorder: &mut Recorder, config: &EngineConfig) {
    let text = format!("{config:?}");
    put_text(recorder.begin(kind::CONFIG, 0), &text);
}

#[inline]
fn put_words(out: &mut [u8], words: &[i64]) {
    for (slot, word) in out.chunks_exact_mut(8).zip(words) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
}

#[inline]
fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    put(out, &value.to_le_bytes());
}

fn put_i64(out: &mut Vec<u8>, value: i64) {
    put(out, &value.to_le_bytes());
}

fn put_amount(out: &mut Vec<u8>, value: Amount) {
    put(out, &value.0.to_le_bytes());
}

fn put_strategy(out: &mut Vec<u8>, strategy: StrategyId) {
    put(out, &strategy.0.to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_u32(out, text.len() as u32);
    put(out, text.as_bytes());
}

/// What is rare and has many fields, in the form of its type.
fn put_rare<T: Serialize>(out: &mut Vec<u8>, value: &T) {
    // Writing to memory cannot fail, and every length in our types is known.
    let bytes = postcard::to_stdvec(value).unwrap_or_default();
    put_u32(out, bytes.len() as u32);
    put(out, &bytes);
}

fn put_id(out: &mut Vec<u8>, id: &ClientOrderId) {
    put(out, &[id.as_str().len() as u8]);
    put(out, id.as_str().as_bytes());
}

fn put_levels(out: &mut Vec<u8>, levels: &[Level]) {
    put_u32(out, levels.len() as u32);
    for level in levels {
        put_i64(out, level.price);
        put_i64(out, level.qty);
    }
}

/// Optional fields: a byte of presence, then the value.
fn put_option(out: &mut Vec<u8>, value: Option<i64>) {
    put(out, &[u8::from(value.is_some())]);
    if let Some(value) = value {
        put_i64(out, value);
    }
}

fn put_terms(out: &mut Vec<u8>, terms: &OrderTerms) {
    put(out, &terms.instrument.0.to_le_bytes());
    put(
        out,
        &[
            terms.side.code(),
            terms.position_side.code(),
            terms.order_type.code(),
            terms
                .time_in_force
                .map_or(u8::MAX, crate::order::TimeInForce::code),
            terms
                .working_type
                .map_or(u8::MAX, crate::order::WorkingType::code),
            u8::from(terms.reduce_only)
                | u8::from(terms.close_position) << 1
                | u8::from(terms.price_protect) << 2,
        ],
    );
    put_option(out, terms.qty.map(|qty| qty.0));
    put_option(out, terms.price.map(|price| price.0));
    put_option(out, terms.stop_price.map(|price| price.0));
    put_option(out, terms.activation_price.map(|price| price.0));
    put_option(out, terms.callback_ppm.map(i64::from));
    put(out, &[u8::from(terms.quote_qty.is_some())]);
    if let Some(quote) = terms.quote_qty {
        put_amount(out, quote);
    }
}

fn put_new_order(out: &mut Vec<u8>, order: &NewOrder) {
    put_id(out, &order.client_order_id);
    put_terms(out, &order.terms);
}

fn put_intent(out: &mut Vec<u8>, intent: &Intent) {
    match intent {
        Intent::Submit { order, terms } => {
            put(out, &[0]);
            put(out, &order.0.to_le_bytes());
            put_terms(out, terms);
        }
        Intent::Rejected { terms, rejection } => {
            put(out, &[1]);
            put_terms(out, terms);
            put(out, &(rejection.rule as u16).to_le_bytes());
            put(out, &rejection.value.serialize());
            put(out, &rejection.limit.serialize());
        }
        Intent::Cancel { order } => {
            put(out, &[2]);
            put(out, &order.0.to_le_bytes());
        }
        Intent::CancelAll { instrument } => {
            put(out, &[3]);
            put_option(out, instrument.map(|instrument| i64::from(instrument.0)));
        }
        Intent::SetTimer { time, token } => {
            put(out, &[4]);
            put_i64(out, time.0);
            put_i64(out, *token);
        }
        Intent::CancelTimer { token } => {
            put(out, &[5]);
            put_i64(out, *token);
        }
    }
}

fn put_request(out: &mut Vec<u8>, request: &Request) {
    match request {
        Request::Place(order) => {
            put(out, &[0]);
            put_new_order(out, order);
        }
        Request::PlaceBatch(orders) => {
            put(out, &[1]);
            put_u32(out, orders.len() as u32);
            for order in orders {
                put_new_order(out, order);
            }
        }
        Request::Cancel {
            instrument,
            client_order_id,
        } => {
            put(out, &[2]);
            put(out, &instrument.0.to_le_bytes());
            put_id(out, client_order_id);
        }
        Request::CancelBatch {
            instrument,
            client_order_ids,
        } => {
            put(out, &[3]);
            put(out, &instrument.0.to_le_bytes());
            put_u32(out, client_order_ids.len() as u32);
            for id in client_order_ids {
                put_id(out, id);
            }
        }
        Request::CancelAll { instrument } => {
            put(out, &[4]);
            put(out, &instrument.0.to_le_bytes());
        }
        Request::Countdown {
            instrument,
            countdown_ms,
        } => {
            put(out, &[5]);
            put(out, &instrument.0.to_le_bytes());
            put(out, &countdown_ms.to_le_bytes());
        }
        Request::Query {
            instrument,
            client_order_id,
        } => {
            put(out, &[6]);
            put(out, &instrument.0.to_le_bytes());
            put_id(out, client_order_id);
        }
        Request::SetPositionMode { hedge } => put(out, &[7, u8::from(*hedge)]),
        Request::SetLeverage {
            instrument,
            leverage,
        } => {
            put(out, &[8]);
            put(out, &instrument.0.to_le_bytes());
            put_u32(out, *leverage);
        }
        Request::Read(subject) => {
            put(out, &[9]);
            put_rare(out, subject);
        }
    }
}

fn put_outcome<T>(out: &mut Vec<u8>, outcome: &Outcome<T>, done: impl FnOnce(&mut Vec<u8>, &T)) {
    match outcome {
        Outcome::Done(value) => {
            put(out, &[0]);
            done(out, value);
        }
        Outcome::Refused(refusal) => {
            put(out, &[1]);
            put(out, &refusal.code.to_le_bytes());
            put_text(out, &refusal.msg);
        }
        Outcome::Unknown => put(out, &[2]),
    }
}

fn put_report(out: &mut Vec<u8>, report: &OrderReport) {
    put_id(out, &report.client_order_id);
    put_i64(out, report.order_id.0);
    put(out, &report.instrument.0.to_le_bytes());
    put(out, &[report.status.code()]);
    put_i64(out, report.orig_qty.0);
    put_i64(out, report.executed_qty.0);
    put_amount(out, report.cum_quote);
    put_i64(out, report.update_time.0);
}

fn put_reply(out: &mut Vec<u8>, reply: &Reply) {
    match reply {
        Reply::Placed {
            client_order_id,
            outcome,
        } => put_order_reply(out, 0, client_order_id, outcome),
        Reply::Canceled {
            client_order_id,
            outcome,
        } => put_order_reply(out, 1, client_order_id, outcome),
        Reply::Queried {
            client_order_id,
            outcome,
        } => put_order_reply(out, 2, client_order_id, outcome),
        Reply::CanceledAll {
            instrument,
            outcome,
        } => {
            put(out, &[3]);
            put(out, &instrument.0.to_le_bytes());
            put_outcome(out, outcome, |_, ()| {});
        }
        Reply::Countdown {
            instrument,
            outcome,
        } => {
            put(out, &[4]);
            put(out, &instrument.0.to_le_bytes());
            put_outcome(out, outcome, |out, ms| put(out, &ms.to_le_bytes()));
        }
        Reply::PositionMode { outcome } => {
            put(out, &[5]);
            put_outcome(out, outcome, |_, ()| {});
        }
        Reply::Leverage {
            instrument,
            outcome,
        } => {
            put(out, &[6]);
            put(out, &instrument.0.to_le_bytes());
            put_outcome(out, outcome, |out, leverage| put_u32(out, *leverage));
        }
        Reply::Read { subject, outcome } => {
            put(out, &[7]);
            put_rare(out, subject);
            put_outcome(out, outcome, put_rare);
        }
        Reply::Margins(told) => {
            put(out, &[8]);
            put_rare(out, told);
        }
        Reply::Stated(positions) => {
            put(out, &[9]);
            put_rare(out, positions);
        }
    }
}

fn put_order_reply(
    out: &mut Vec<u8>,
    tag: u8,
    client_order_id: &ClientOrderId,
    outcome: &Outcome<OrderReport>,
) {
    put(out, &[tag]);
    put_id(out, client_order_id);
    put_outcome(out, outcome, put_report);
}

fn put_user_event(out: &mut Vec<u8>, event: &UserEvent) {
    match event {
        UserEvent::Order(update) => {
            put(out, &[0]);
            put_order_update(out, update);
        }
        UserEvent::Account(update) => {
            put(out, &[1]);
            put_account_update(out, update);
        }
        UserEvent::MarginCall => put(out, &[2]),
        UserEvent::Leverage {
            instrument,
            leverage,
        } => {
            put(out, &[3]);
            put(out, &instrument.0.to_le_bytes());
            put_u32(out, *leverage);
        }
        UserEvent::PositionMode { hedge } => put(out, &[4, u8::from(*hedge)]),
        UserEvent::AssetMode { multi_assets } => put(out, &[5, u8::from(*multi_assets)]),
        UserEvent::MarginType {
            instrument,
            isolated,
        } => {
            put(out, &[6]);
            put(out, &instrument.0.to_le_bytes());
            put(out, &[u8::from(*isolated)]);
        }
        UserEvent::Stated(positions) => {
            put(out, &[7]);
            put_rare(out, positions);
        }
    }
}

fn put_order_update(out: &mut Vec<u8>, update: &OrderUpdate) {
    put_id(out, &update.client_order_id);
    put_i64(out, update.order_id.0);
    put(out, &update.instrument.0.to_le_bytes());
    put(
        out,
        &[
            update.side.code(),
            update.position_side.code(),
            update.order_type.code(),
            update.time_in_force.code(),
            u8::from(update.reduce_only),
            update.execution.code(),
            update.status.code(),
            u8::from(update.fill.is_some()),
        ],
    );
    for word in [
        update.orig_qty.0,
        update.price.0,
        update.stop_price.0,
        update.executed_qty.0,
        update.transaction_time.0,
        update.event_time.0,
    ] {
        put_i64(out, word);
    }
    if let Some(fill) = &update.fill {
        put_fill(out, fill);
    }
}

fn put_fill(out: &mut Vec<u8>, fill: &Fill) {
    for word in [fill.trade_id.0, fill.price.0, fill.qty.0] {
        put_i64(out, word);
    }
    put_amount(out, fill.quote_qty);
    put_amount(out, fill.fee);
    put(out, &fill.fee_asset.0.to_le_bytes());
    put(
        out,
        &[u8::from(fill.maker), u8::from(fill.realized_pnl.is_some())],
    );
    if let Some(realized) = fill.realized_pnl {
        put_amount(out, realized);
    }
}

fn put_account_update(out: &mut Vec<u8>, update: &AccountUpdate) {
    let mut reason = update.reason as u8;
    let has_transaction_time = update.transaction_time != update.event_time;
    if has_transaction_time {
        reason |= HAS_TRANSACTION_TIME;
    }
    put(out, &[update.surface.code(), reason]);
    put_i64(out, update.event_time.0);
    if has_transaction_time {
        put_i64(out, update.transaction_time.0);
    }
    put_u32(out, update.balances.len() as u32);
    for balance in &update.balances {
        put(out, &balance.asset.0.to_le_bytes());
        put_amount(out, balance.total);
        put_amount(out, balance.locked);
        put_amount(out, balance.change);
    }
    put_u32(out, update.positions.len() as u32);
    for position in &update.positions {
        put(out, &position.instrument.0.to_le_bytes());
        put(out, &[position.position_side.code()]);
        put_i64(out, position.qty.0);
        put_amount(out, position.cost);
    }
}
