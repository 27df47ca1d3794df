//! Writes inputs and effects as records of a [`Recorder`]. Nothing here may read them back or depend
//! on more than its arguments.
//!
//! [`codec`](crate::codec) has the encodings and the decoder, [`record`](crate::record) has blocks
//! and the chain. Neither may use this module.

use serde::Serialize;

use crate::codec::{Form, HAS_TRANSACTION_TIME, Out, fixed_kind, kind, put_fixed};
use crate::config::EngineConfig;
use crate::decimal::Amount;
use crate::degraded_reason::DegradedReason;
use crate::effect::{Adjustment, Cause, Effect};
use crate::event::Intent;
use crate::forced::ForcedCloseReport;
use crate::ids::{ClientOrderId, StrategyId, Time};
use crate::input::Input;
use crate::market::MarketEvent;
use crate::order::{NewOrder, OrderTerms};
use crate::protocol::{
    AccountUpdate, Fill, OrderReport, OrderUpdate, Outcome, Reply, Request, UserEvent,
};
use crate::record::Recorder;
use crate::run_state::RunState;

/// Records a market event. This is the hot path.
#[inline]
pub fn record_market(recorder: &mut Recorder, now: Time, instrument: u16, event: &MarketEvent<'_>) {
    if let Some(market) = recorder.market() {
        market.event(now, instrument, event);
    } else {
        let out = &mut recorder.begin(fixed_kind(event), now.0);
        put_fixed(out, instrument, event);
    }
}

/// Records an input.
pub fn record_input(recorder: &mut Recorder, now: Time, input: &Input<'_>) {
    match input {
        Input::Market { instrument, event } => record_market(recorder, now, instrument.0, event),
        Input::Answer { strategy, intents } => {
            let out = &mut recorder.begin(kind::ANSWER, now.0);
            put_strategy(out, *strategy);
            out.put_u32(intents.len() as u32);
            for intent in *intents {
                put_intent(out, intent);
            }
        }
        Input::Reply(reply) => put_reply(&mut recorder.begin(kind::REPLY, now.0), reply),
        Input::User(event) => put_user_event(&mut recorder.begin(kind::USER, now.0), event),
        Input::Timeout => {
            recorder.begin(kind::TIMEOUT, now.0);
        }
        Input::Fault {
            strategy,
            kind: fault,
        } => {
            let out = &mut recorder.begin(kind::FAULT, now.0);
            put_strategy(out, *strategy);
            out.put(&[*fault as u8]);
        }
        Input::Command(command) => {
            recorder.begin(kind::COMMAND, now.0).put(&[*command as u8]);
        }
        Input::Steer { strategy, command } => {
            let out = &mut recorder.begin(kind::STEER, now.0);
            put_strategy(out, *strategy);
            out.put(&[*command as u8]);
        }
        Input::Renew { strategy } => {
            put_strategy(&mut recorder.begin(kind::RENEW, now.0), *strategy);
        }
        Input::Start { strategy, phase } => {
            let out = &mut recorder.begin(kind::START, now.0);
            put_strategy(out, *strategy);
            out.put(&[*phase as u8]);
        }
        Input::Saved {
            strategy,
            handled,
            state,
        } => {
            let out = &mut recorder.begin(kind::SAVED, now.0);
            put_strategy(out, *strategy);
            out.put_i64(*handled);
            out.put(&[u8::from(state.is_some())]);
            if let Some(state) = state {
                out.put_u32(state.len() as u32);
                out.put(state);
            }
        }
        Input::Reconfigure(next) => put_rare(&mut recorder.begin(kind::RECONFIGURE, now.0), next),
        Input::Live(input) => put_rare(&mut recorder.begin(kind::LIVE, now.0), input),
        Input::SymbolStatus { instrument, status } => {
            let out = &mut recorder.begin(kind::SYMBOL_STATUS, now.0);
            out.put_u16(instrument.0);
            let word = match status {
                crate::instrument::SymbolStatus::Trading => "TRADING",
                crate::instrument::SymbolStatus::Other(word) => word,
            };
            put_text(out, word);
        }
        Input::OnLiquidation(reaction) => {
            let out = &mut recorder.begin(kind::ON_LIQUIDATION, now.0);
            out.put(&[*reaction as u8]);
        }
    }
}

/// Records an effect.
#[inline]
pub fn record_effect(recorder: &mut Recorder, now: Time, effect: &Effect) {
    match effect {
        // The event's fields follow from the inputs before it. Only the strategy and the kind are
        // recorded.
        Effect::Deliver { strategy, event } => {
            if event.kind.is_of_market()
                && let Some(market) = recorder.market()
            {
                market.delivered(now, *strategy, event.kind);
                return;
            }
            let sequence = recorder.event_step(event.sequence);
            let out = &mut recorder.begin(kind::DELIVER, now.0);
            out.put_u16(strategy.0);
            out.put(&[event.kind as u8]);
            if let Some(step) = sequence {
                out.put_i64(step);
            }
        }
        Effect::Send { record, request } => {
            let out = &mut recorder.begin(kind::SEND, now.0);
            out.put_u64(*record);
            put_request(out, request);
        }
        Effect::Reconnect { surface } => {
            recorder
                .begin(kind::RECONNECT, now.0)
                .put(&[surface.code()]);
        }
        Effect::Heartbeat { number } => {
            recorder.begin(kind::BEAT, now.0).put_u64(*number);
        }
    }
}

/// Records a state change of a live run, with its degraded reasons.
pub fn record_state(
    recorder: &mut Recorder,
    now: Time,
    from: RunState,
    to: RunState,
    reasons: &[DegradedReason],
) {
    put_rare(
        &mut recorder.begin(kind::STATE, now.0),
        &(from, to, reasons),
    );
}

/// Records a correction of the engine's state by a value from the venue.
pub fn record_adjustment(
    recorder: &mut Recorder,
    now: Time,
    adjustment: &Adjustment,
    cause: Cause,
) {
    put_rare(
        &mut recorder.begin(kind::ADJUSTED, now.0),
        &(adjustment, cause),
    );
}

/// Records a liquidation or an ADL.
pub fn record_forced_close(recorder: &mut Recorder, now: Time, report: &ForcedCloseReport) {
    put_rare(&mut recorder.begin(kind::FORCED_CLOSE, now.0), report);
}

/// Records the engine's configuration, so that the fingerprint covers it: every rule and limit, in
/// their `Debug` form, which names each field.
pub fn record_config(recorder: &mut Recorder, config: &EngineConfig) {
    record_text(recorder, Time(0), &format!("{config:?}"));
}

/// Records a configuration that is already text.
pub fn record_text(recorder: &mut Recorder, now: Time, text: &str) {
    put_text(&mut recorder.begin(kind::CONFIG, now.0), text);
}

fn put_amount(out: &mut Out<'_>, value: Amount) {
    out.put_i128(value.0);
}

fn put_strategy(out: &mut Out<'_>, strategy: StrategyId) {
    out.put_u16(strategy.0);
}

fn put_text(out: &mut Out<'_>, text: &str) {
    out.put_u32(text.len() as u32);
    out.put(text.as_bytes());
}

/// Writes a rare value with many fields in its serialized form.
fn put_rare<T: Serialize>(out: &mut Out<'_>, value: &T) {
    // Writing to memory cannot fail, and every length in these types is known.
    let bytes = postcard::to_stdvec(value).unwrap_or_default();
    out.put_u32(bytes.len() as u32);
    out.put(&bytes);
}

fn put_id(out: &mut Out<'_>, id: &ClientOrderId) {
    out.put(&[id.as_str().len() as u8]);
    out.put(id.as_str().as_bytes());
}

/// Writes an optional field: a presence byte, then the value.
fn put_option(out: &mut Out<'_>, value: Option<i64>) {
    out.put(&[u8::from(value.is_some())]);
    if let Some(value) = value {
        out.put_i64(value);
    }
}

fn put_terms(out: &mut Out<'_>, terms: &OrderTerms) {
    out.put_u16(terms.instrument.0);
    out.put(&[
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
    ]);
    let numbers = [
        terms.qty.map(|qty| qty.0),
        terms.price.map(|price| price.0),
        terms.stop_price.map(|price| price.0),
        terms.activation_price.map(|price| price.0),
        terms.callback_ppm.map(i64::from),
    ];
    match out.form() {
        Form::Fixed => {
            for number in numbers {
                put_option(out, number);
            }
            out.put(&[u8::from(terms.quote_qty.is_some())]);
        }
        Form::Short => {
            let mut present = u8::from(terms.quote_qty.is_some()) << numbers.len();
            for (place, number) in numbers.iter().enumerate() {
                present |= u8::from(number.is_some()) << place;
            }
            out.put(&[present]);
            for number in numbers.into_iter().flatten() {
                out.put_i64(number);
            }
        }
    }
    if let Some(quote) = terms.quote_qty {
        put_amount(out, quote);
    }
}

fn put_new_order(out: &mut Out<'_>, order: &NewOrder) {
    put_id(out, &order.client_order_id);
    put_terms(out, &order.terms);
}

fn put_intent(out: &mut Out<'_>, intent: &Intent) {
    match intent {
        Intent::Submit { order, terms } => {
            out.put(&[0]);
            out.put_u64(order.0);
            put_terms(out, terms);
        }
        Intent::Rejected { terms, rejection } => {
            out.put(&[1]);
            put_terms(out, terms);
            out.put_u16(rejection.rule as u16);
            out.put(&rejection.value.serialize());
            out.put(&rejection.limit.serialize());
        }
        Intent::Cancel { order } => {
            out.put(&[2]);
            out.put_u64(order.0);
        }
        Intent::CancelAll { instrument } => {
            out.put(&[3]);
            put_option(out, instrument.map(|instrument| i64::from(instrument.0)));
        }
        Intent::SetTimer { time, token } => {
            out.put(&[4]);
            out.put_i64(time.0);
            out.put_i64(*token);
        }
        Intent::CancelTimer { token } => {
            out.put(&[5]);
            out.put_i64(*token);
        }
    }
}

fn put_request(out: &mut Out<'_>, request: &Request) {
    match request {
        Request::Place(order) => {
            out.put(&[0]);
            put_new_order(out, order);
        }
        Request::PlaceBatch(orders) => {
            out.put(&[1]);
            out.put_u32(orders.len() as u32);
            for order in orders {
                put_new_order(out, order);
            }
        }
        Request::Cancel {
            instrument,
            client_order_id,
        } => {
            out.put(&[2]);
            out.put_u16(instrument.0);
            put_id(out, client_order_id);
        }
        Request::CancelBatch {
            instrument,
            client_order_ids,
        } => {
            out.put(&[3]);
            out.put_u16(instrument.0);
            out.put_u32(client_order_ids.len() as u32);
            for id in client_order_ids {
                put_id(out, id);
            }
        }
        Request::CancelAll { instrument } => {
            out.put(&[4]);
            out.put_u16(instrument.0);
        }
        Request::Countdown {
            instrument,
            countdown_ms,
        } => {
            out.put(&[5]);
            out.put_u16(instrument.0);
            out.put_u64(*countdown_ms);
        }
        Request::Query {
            instrument,
            client_order_id,
        } => {
            out.put(&[6]);
            out.put_u16(instrument.0);
            put_id(out, client_order_id);
        }
        Request::SetPositionMode { hedge } => out.put(&[7, u8::from(*hedge)]),
        Request::SetLeverage {
            instrument,
            leverage,
        } => {
            out.put(&[8]);
            out.put_u16(instrument.0);
            out.put_u32(*leverage);
        }
        Request::Read(subject) => {
            out.put(&[9]);
            put_rare(out, subject);
        }
    }
}

fn put_outcome<T>(out: &mut Out<'_>, outcome: &Outcome<T>, done: impl FnOnce(&mut Out<'_>, &T)) {
    match outcome {
        Outcome::Done(value) => {
            out.put(&[0]);
            done(out, value);
        }
        Outcome::Refused(refusal) => {
            out.put(&[1]);
            out.put_i32(refusal.code);
            put_text(out, &refusal.msg);
        }
        Outcome::Unknown => out.put(&[2]),
    }
}

fn put_report(out: &mut Out<'_>, report: &OrderReport) {
    put_id(out, &report.client_order_id);
    out.put_i64(report.order_id.0);
    out.put_u16(report.instrument.0);
    out.put(&[report.status.code()]);
    out.put_i64(report.orig_qty.0);
    out.put_i64(report.executed_qty.0);
    put_amount(out, report.cum_quote);
    out.put_i64(report.update_time.0);
}

fn put_reply(out: &mut Out<'_>, reply: &Reply) {
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
            out.put(&[3]);
            out.put_u16(instrument.0);
            put_outcome(out, outcome, |_, ()| {});
        }
        Reply::Countdown {
            instrument,
            outcome,
        } => {
            out.put(&[4]);
            out.put_u16(instrument.0);
            put_outcome(out, outcome, |out, ms| out.put_u64(*ms));
        }
        Reply::PositionMode { outcome } => {
            out.put(&[5]);
            put_outcome(out, outcome, |_, ()| {});
        }
        Reply::Leverage {
            instrument,
            outcome,
        } => {
            out.put(&[6]);
            out.put_u16(instrument.0);
            put_outcome(out, outcome, |out, leverage| out.put_u32(*leverage));
        }
        Reply::Read { subject, outcome } => {
            out.put(&[7]);
            put_rare(out, subject);
            put_outcome(out, outcome, put_rare);
        }
        Reply::Margins(terms) => {
            out.put(&[8]);
            put_rare(out, terms);
        }
        Reply::Stated(positions) => {
            out.put(&[9]);
            put_rare(out, positions);
        }
    }
}

fn put_order_reply(
    out: &mut Out<'_>,
    tag: u8,
    client_order_id: &ClientOrderId,
    outcome: &Outcome<OrderReport>,
) {
    out.put(&[tag]);
    put_id(out, client_order_id);
    put_outcome(out, outcome, put_report);
}

fn put_user_event(out: &mut Out<'_>, event: &UserEvent) {
    match event {
        UserEvent::Order(update) => {
            out.put(&[0]);
            put_order_update(out, update);
        }
        UserEvent::Account(update) => {
            out.put(&[1]);
            put_account_update(out, update);
        }
        UserEvent::MarginCall => out.put(&[2]),
        UserEvent::Leverage {
            instrument,
            leverage,
        } => {
            out.put(&[3]);
            out.put_u16(instrument.0);
            out.put_u32(*leverage);
        }
        UserEvent::PositionMode { hedge } => out.put(&[4, u8::from(*hedge)]),
        UserEvent::AssetMode { multi_assets } => out.put(&[5, u8::from(*multi_assets)]),
        UserEvent::MarginType {
            instrument,
            isolated,
        } => {
            out.put(&[6]);
            out.put_u16(instrument.0);
            out.put(&[u8::from(*isolated)]);
        }
        UserEvent::Stated(positions) => {
            out.put(&[7]);
            put_rare(out, positions);
        }
    }
}

fn put_order_update(out: &mut Out<'_>, update: &OrderUpdate) {
    put_id(out, &update.client_order_id);
    out.put_i64(update.order_id.0);
    out.put_u16(update.instrument.0);
    out.put(&[
        update.side.code(),
        update.position_side.code(),
        update.order_type.code(),
        update.time_in_force.code(),
        u8::from(update.reduce_only),
        update.execution.code(),
        update.status.code(),
        u8::from(update.fill.is_some()),
    ]);
    for word in [
        update.orig_qty.0,
        update.price.0,
        update.stop_price.0,
        update.executed_qty.0,
        update.transaction_time.0,
        update.event_time.0,
    ] {
        out.put_i64(word);
    }
    if let Some(fill) = &update.fill {
        put_fill(out, fill);
    }
}

fn put_fill(out: &mut Out<'_>, fill: &Fill) {
    for word in [fill.trade_id.0, fill.price.0, fill.qty.0] {
        out.put_i64(word);
    }
    put_amount(out, fill.quote_qty);
    put_amount(out, fill.fee);
    out.put_u16(fill.fee_asset.0);
    out.put(&[u8::from(fill.maker), u8::from(fill.realized_pnl.is_some())]);
    if let Some(realized) = fill.realized_pnl {
        put_amount(out, realized);
    }
}

fn put_account_update(out: &mut Out<'_>, update: &AccountUpdate) {
    let mut reason = update.reason as u8;
    let has_transaction_time = update.transaction_time != update.event_time;
    if has_transaction_time {
        reason |= HAS_TRANSACTION_TIME;
    }
    out.put(&[update.surface.code(), reason]);
    out.put_i64(update.event_time.0);
    if has_transaction_time {
        out.put_i64(update.transaction_time.0);
    }
    out.put_u32(update.balances.len() as u32);
    for balance in &update.balances {
        out.put_u16(balance.asset.0);
        put_amount(out, balance.total);
        put_amount(out, balance.locked);
        put_amount(out, balance.change);
    }
    out.put_u32(update.positions.len() as u32);
    for position in &update.positions {
        out.put_u16(position.instrument.0);
        out.put(&[position.position_side.code()]);
        out.put_i64(position.qty.0);
        put_amount(out, position.cost);
    }
}
