//! User events in the venue's own form (spec 1 and 2, Events), out to the streams of the
//! account's listen key. An event that nobody can hear is kept in the history all the same.

mod futures;
mod spot;

use serde_json::{Value, json};
use windvane_engine::{Amount, Surface};
use windvane_sim::{Cause, StreamEvent};

use crate::state::{AccountId, Income, State};
use crate::stream::{self, UserFrame};
use crate::{control, figures, wallet};

/// Keeps an event, and sends it where the account has a valid listen key.
pub(crate) fn tell(state: &mut State, id: AccountId, event: &StreamEvent) {
    keep(state, id, event);
    control::noted(state, id, event);
    stream::liquidated(state, event);
    let surface = surface_of(event);
    let Some(key) = state.account(id).listen_keys.valid(surface) else {
        return;
    };
    let listen_key = key.key.clone();
    let record = record(state, event, state.clock_ms(state.now));
    send(state, surface, listen_key, &record);
}

/// An event in the venue's own form.
fn record(state: &State, event: &StreamEvent, now_ms: i64) -> Value {
    match event {
        StreamEvent::Order(order) if order.order.surface == Surface::Spot => {
            spot::order(state, order, now_ms)
        }
        StreamEvent::Order(order) => futures::order(state, order, now_ms),
        StreamEvent::Spot {
            cause,
            balances,
            time,
        } => spot::account(state, *cause, balances, *time, now_ms),
        StreamEvent::Futures {
            cause,
            balances,
            positions,
            time,
        } => futures::account(state, (*cause, *time, now_ms), balances, positions),
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

/// The end of a listen key: futures connections are told, spot connections are closed (spec 1,
/// Listen key; spec 2, listenKeyExpired).
pub(crate) fn tell_expired(state: &mut State, surface: Surface, listen_key: String) {
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
    let frame = UserFrame {
        surface,
        listen_key,
        text: record.to_string().into(),
    };
    control::user_event(state, &frame);
}

fn surface_of(event: &StreamEvent) -> Surface {
    match event {
        StreamEvent::Order(order) => order.order.surface,
        StreamEvent::Spot { .. } => Surface::Spot,
        _ => Surface::Futures,
    }
}

/// Fills and income for the history routes, and when the account changed.
fn keep(state: &mut State, id: AccountId, event: &StreamEvent) {
    match event {
        StreamEvent::Order(order) => {
            let history = &mut state.account_mut(id).history;
            history.keep_fill(order.order.surface, &order.update);
            wallet::pay_builder(state, id, order);
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

/// Average price of an order, `ap`.
fn average(order: &windvane_sim::OrderView) -> String {
    figures::fine_price(order.average_price)
}

#[cfg(test)]
mod tests;
