//! Historical lists: account trades, income, margin movements.

use serde_json::{Value, json};
use windvane_model::{Amount, Surface};

use super::span::{Span, cut, limit};
use super::venue_request::{instrument, maybe_instrument, surface};
use crate::accounts::{Income, TradeRecord};
use crate::choices::TradesLag;
use crate::choices::figures::{fee, profit};
use crate::figures::{amount, price, qty};
use crate::request::{Answer, Body, Call, Refusal};
use crate::state::State;

/// Account trade history (docs/interface/account.md#spot-trades,
/// docs/interface/account.md#futures-trades).
pub(super) fn user_trades(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let instrument = maybe_instrument(state, call)?;
    let (order, from_id) = (
        call.params.integer("orderId")?,
        call.params.integer("fromId")?,
    );
    let timed = ["startTime", "endTime"]
        .iter()
        .any(|name| call.params.get(name).is_some());
    if from_id.is_some() && timed {
        return Err(bad_combination(
            "fromId cannot be sent with startTime or endTime.",
        ));
    }
    if order.is_some() && instrument.is_none() {
        return Err(bad_combination(
            "orderId must be sent together with symbol.",
        ));
    }
    let span = Span::of(call)?;
    let until = state.behind::<TradesLag>();
    let wanted = |trade: &&TradeRecord| {
        until.is_none_or(|until| trade.time <= until)
            && trade.surface == surface(call)
            && instrument.is_none_or(|wanted| trade.instrument == wanted)
            && order.is_none_or(|wanted| trade.order_id.0 == wanted)
            && match from_id {
                Some(from) => trade.fill.trade_id.0 >= from,
                None => span.has(trade.time),
            }
    };
    let trades: Vec<_> = state
        .account(id)
        .history
        .trades
        .iter()
        .filter(wanted)
        .collect();
    let from_start = from_id.is_some() || call.params.get("startTime").is_some();
    let list = cut(trades, limit(call, 500)?, from_start);
    let list: Vec<_> = list.into_iter().map(|trade| record(state, trade)).collect();
    Ok(Body::json(&list))
}

fn bad_combination(why: &str) -> Refusal {
    Refusal::new(
        -1128,
        format!("Combination of optional parameters invalid: {why}"),
    )
}

fn record(state: &State, trade: &TradeRecord) -> Value {
    let rules = state.rules(trade.instrument);
    let fill = &trade.fill;
    let mut record = json!({
        "symbol": rules.symbol,
        "id": fill.trade_id.0,
        "orderId": trade.order_id.0,
        "side": trade.side.as_str(),
        "price": price(rules, fill.price.0),
        "qty": qty(rules, fill.qty.0),
        "quoteQty": amount(fill.quote_qty),
        "commission": fee(&state.choices, fill.fee),
        "commissionAsset": state.assets.name(fill.fee_asset),
        "time": trade.time.millis(),
        "maker": fill.maker,
        "buyer": trade.side == windvane_model::Side::Buy,
    });
    match trade.surface {
        Surface::Spot => {
            record["counterpartyId"] = json!(0);
            record["createUpdateId"] = Value::Null;
        }
        Surface::Futures => {
            record["positionSide"] = json!(trade.position_side.as_str());
            let realized = fill.realized_pnl.unwrap_or_default();
            record["realizedPnl"] = json!(profit(&state.choices, realized));
        }
    }
    record
}

/// GET income (docs/interface/account.md#income).
pub(super) fn income(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let instrument = maybe_instrument(state, call)?;
    let kind = call.params.get("incomeType");
    let span = Span::unbounded(call)?;
    let wanted = |income: &&Income| {
        instrument.is_none_or(|wanted| income.instrument == Some(wanted))
            && kind.is_none_or(|wanted| income.kind == wanted)
            && span.has(income.time)
    };
    let all: Vec<_> = state
        .account(id)
        .history
        .income
        .iter()
        .filter(wanted)
        .collect();
    let from_start = call.params.get("startTime").is_some();
    let list = cut(all, limit(call, 100)?, from_start);
    let list: Vec<_> = list
        .into_iter()
        .map(|income| {
            let symbol = income
                .instrument
                .map_or("", |i| state.rules(i).symbol.as_str());
            json!({
                "symbol": symbol,
                "incomeType": income.kind,
                "income": amount(income.amount),
                "asset": state.assets.name(income.asset),
                "info": income.info,
                "time": income.time.millis(),
                "tranId": income.tran_id,
                "tradeId": income.trade_id.map_or_else(String::new, |id| id.to_string()),
            })
        })
        .collect();
    Ok(Body::json(&list))
}

/// GET positionMargin/history (docs/interface/futures.md#position-margin).
pub(super) fn position_margin(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let instrument = instrument(state, call, call.params)?;
    let kind = call.params.integer("type")?;
    let span = Span::unbounded(call)?;
    let all: Vec<_> = state
        .account(id)
        .history
        .margin
        .iter()
        .filter(|change| {
            change.instrument == instrument
                && kind.is_none_or(|wanted| change.kind == wanted)
                && span.has(change.time)
        })
        .collect();
    let from_start = call.params.get("startTime").is_some();
    let list = cut(all, limit(call, 500)?, from_start);
    let list: Vec<_> = list
        .into_iter()
        .map(|change| {
            json!({
                "amount": amount(Amount(change.amount.0.abs())),
                "asset": state.assets.name(change.asset),
                "symbol": state.rules(change.instrument).symbol,
                "time": change.time.millis(),
                "type": change.kind,
                "positionSide": change.position_side.as_str(),
            })
        })
        .collect();
    Ok(Body::json(&list))
}
