//! User events in the venue's own form (docs/interface/user-stream.md#user-stream), sent to the
//! streams of the account's listen key. An event without a listener is also kept in the history.

mod builder_fee;
mod delivery;
mod futures;
mod spot;

use serde_json::{Value, json};
use windvane_model::{Amount, Surface};
use windvane_sim::{Cause, StreamEvent};

use crate::account_id::AccountId;
use crate::accounts::Income;
use crate::audience;
use crate::choices::{self, Arranged, Arrival, EventTimes, StreamDelay, Subject, UnknownEvents};
use crate::state::State;
use crate::user_frame::UserFrame;

pub(crate) use delivery::send_due;

/// Delay of an event after its transaction, if the venue chose different times for them.
const APART_MS: i64 = 7;
/// Maximum delay of events that arrive in random order.
const SHUFFLE_MS: i64 = 200;

/// Applies the events of the accounts' venues to the market, to the histories and to the streams.
/// Call it after any action that may affect an account.
pub(crate) fn publish_all(state: &mut State) {
    loop {
        audience::settle(state, state.now);
        let quiet = state
            .accounts
            .iter()
            .all(|account| account.unpublished.is_empty());
        if quiet {
            return;
        }
        for place in 0..state.accounts.len() {
            let id = AccountId(place as u16);
            // An event may cause more events, for example the payment of a builder.
            while !state.account(id).unpublished.is_empty() {
                let events = Vec::from(std::mem::take(&mut state.account_mut(id).unpublished));
                for event in &events {
                    note(state, id, event);
                }
                let now = state.now;
                let account = state.account_mut(id);
                if let Some(past) = &mut account.past {
                    past.keep(&account.venue, now);
                }
                for arranged in choices::arrange(&state.choices, events) {
                    send_event(state, id, &arranged);
                }
            }
        }
    }
}

/// Records an event, and sends it if the account has a valid listen key.
pub(crate) fn publish(state: &mut State, id: AccountId, event: StreamEvent) {
    note(state, id, &event);
    for arranged in choices::arrange(&state.choices, vec![event]) {
        send_event(state, id, &arranged);
    }
}

/// Records an event in the account's history, whether it is sent or not.
pub(crate) fn note(state: &mut State, id: AccountId, event: &StreamEvent) {
    keep(state, id, event);
    state.counters.event(id.0, event);
    state.hub.liquidated(state.now, &state.board, event);
    if let Some(past) = &mut state.account_mut(id).past {
        past.note(event);
    }
}

/// Sends an event if the account has a valid listen key.
pub(crate) fn send_event(state: &mut State, id: AccountId, arranged: &Arranged) {
    let event = &arranged.event;
    let surface = surface_of(event);
    let Some(key) = state.account(id).listen_keys.valid(surface) else {
        return;
    };
    let listen_key = key.key.clone();
    let apart_ms = match state.choices.of::<EventTimes>() {
        EventTimes::Equal => 0,
        EventTimes::Apart => APART_MS,
    };
    let now_ms = state.clock_ms(state.now) + apart_ms;
    let record = record(state, id, arranged, now_ms);
    send(state, surface, listen_key.clone(), &record);
    let account = matches!(
        event,
        StreamEvent::Futures { .. } | StreamEvent::Spot { .. }
    );
    if account && state.choices.of::<UnknownEvents>() == UnknownEvents::Some {
        let unknown = json!({
            "e": "STRATEGY_UPDATE", "E": now_ms, "T": now_ms,
            "su": { "si": 1, "st": "GRID", "ss": "WORKING", "s": "BTCUSDT", "c": 0 },
        });
        send(state, surface, listen_key, &unknown);
    }
}

/// An event in the venue's own form.
fn record(state: &State, id: AccountId, arranged: &Arranged, now_ms: i64) -> Value {
    match &arranged.event {
        StreamEvent::Order(order) if order.order.surface == Surface::Spot => {
            spot::order(state, order, now_ms)
        }
        StreamEvent::Order(order) => futures::order(state, order, now_ms),
        StreamEvent::Spot {
            cause,
            balances,
            time,
        } => spot::account(state, id, *cause, balances, *time, now_ms),
        StreamEvent::Futures {
            cause,
            balances,
            positions,
            time,
        } => {
            let reason = arranged.reason.unwrap_or(cause.as_str());
            futures::account(state, id, (reason, *time, now_ms), balances, positions)
        }
        StreamEvent::MarginCall {
            cross_wallet,
            positions,
            ..
        } => futures::margin_call(state, *cross_wallet, positions, now_ms),
        StreamEvent::Leverage {
            instrument,
            leverage,
            time,
        } => json!({
            "e": "ACCOUNT_CONFIG_UPDATE", "E": now_ms, "T": time.millis(),
            "ac": { "s": state.rules(*instrument).symbol, "l": leverage },
        }),
        StreamEvent::Config {
            multi_assets,
            hedge,
            time,
        } => json!({
            "e": "ACCOUNT_CONFIG_UPDATE", "E": now_ms, "T": time.millis(),
            "ai": { "j": multi_assets, "f": false, "d": hedge },
        }),
    }
}

/// Reports the end of a listen key. Futures connections receive an event, and spot connections are
/// closed (docs/interface/user-stream.md#listen-keys,
/// docs/interface/user-stream.md#listenkeyexpired).
pub(crate) fn send_key_expired(state: &mut State, surface: Surface, listen_key: String) {
    match surface {
        Surface::Spot => state.hub.close_user(surface, &listen_key),
        Surface::Futures => {
            let record = json!({
                "e": "listenKeyExpired",
                "E": state.clock_ms(state.now),
            });
            send(state, surface, listen_key, &record);
        }
    }
}

fn send(state: &mut State, surface: Surface, listen_key: String, record: &Value) {
    let text = choices::shape(&state.choices, Subject::Event, record.to_string());
    let frame = UserFrame {
        surface,
        listen_key,
        text: text.into(),
        delay_ms: delay_ms(state),
    };
    delivery::deliver(state, &frame);
}

/// Delay of an event after its transaction, in milliseconds.
fn delay_ms(state: &mut State) -> u64 {
    let behind = state.choices.lag_ms::<StreamDelay>();
    let apart = match state.choices.of::<EventTimes>() {
        EventTimes::Equal => 0,
        EventTimes::Apart => APART_MS,
    };
    let shuffled = match state.choices.of::<Arrival>() {
        Arrival::InOrder => 0,
        Arrival::Shuffled => state.chance.below_signed(SHUFFLE_MS),
    };
    (behind + apart + shuffled).unsigned_abs()
}

fn surface_of(event: &StreamEvent) -> Surface {
    match event {
        StreamEvent::Order(order) => order.order.surface,
        StreamEvent::Spot { .. } => Surface::Spot,
        _ => Surface::Futures,
    }
}

/// Records fills and income for the history routes, and the time of the account's change.
fn keep(state: &mut State, id: AccountId, event: &StreamEvent) {
    match event {
        StreamEvent::Order(order) => {
            let quote = state.rules(order.update.instrument).quote;
            let history = &mut state.account_mut(id).history;
            history.keep_fill(order.order.surface, &order.update, quote);
            builder_fee::pay(state, id, order);
        }
        StreamEvent::Spot { balances, time, .. } => {
            let assets = balances.iter().map(|balance| balance.asset);
            let history = &mut state.account_mut(id).history;
            history.note_change(Surface::Spot, assets, *time);
        }
        StreamEvent::Futures {
            cause,
            balances,
            positions,
            time,
        } => {
            let assets = balances.iter().map(|(balance, _)| balance.asset);
            let history = &mut state.account_mut(id).history;
            history.note_change(Surface::Futures, assets, *time);
            let kind = match cause {
                Cause::FundingFee => "FUNDING_FEE",
                Cause::InsuranceClear => "INSURANCE_CLEAR",
                Cause::Deposit
                | Cause::Withdraw
                | Cause::WithdrawReject
                | Cause::AdminDeposit
                | Cause::AdminWithdraw
                | Cause::AssetTransfer => "TRANSFER",
                Cause::Order
                | Cause::Adjustment
                | Cause::MarginTransfer
                | Cause::MarginTypeChange
                | Cause::AutoExchange => return,
            };
            for (balance, change) in balances {
                if *change == Amount::ZERO {
                    continue;
                }
                state.account_mut(id).history.keep_income(Income {
                    instrument: positions.first().map(|position| position.instrument),
                    kind,
                    amount: *change,
                    asset: balance.asset,
                    info: cause.as_str().to_owned(),
                    time: *time,
                    tran_id: 0,
                    trade_id: None,
                });
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
