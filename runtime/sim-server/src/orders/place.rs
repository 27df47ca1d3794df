//! Places one order, a batch, or an order with a builder's code.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use windvane_model::protocol::{Reply, Request};
use windvane_model::{ClientOrderId, NewOrder, Surface};
use windvane_protocol::route;
use windvane_sim::OrderView;

use super::record::{self, Place};
use super::reject;
use super::terms::Reading;
use super::venue_request::{instrument, perform_with_surcharge, settled, surface, unanswered};
use crate::account_id::AccountId;
use crate::choices::{AckAnswer, BatchOrder, DuplicateCode, ForeignIds, RejectForm};
use crate::request::{Answer, Body, Call, Params, Refusal, check_entry, invalid, missing};
use crate::state::State;
use crate::wallet::Attribution;

/// Maximum number of orders in a batch (docs/interface/orders.md#place-several-orders).
const BATCH_MAX: usize = 5;
/// Code for a client order id that is already used (docs/interface/errors.md#40xx).
const DUPLICATE_ID: i32 = -4116;

/// Place order (docs/interface/orders.md#routes), New order and Place order with
/// builder code (docs/interface/futures.md#orders-with-a-builder-code).
pub(super) fn new_order(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let new = read(state, call, id, call.params)?;
    let builder = attribution(state, call, id, call.params)?;
    let placed = place(state, call, id, &Request::Place(new), builder);
    let order = match placed {
        Ok(order) => order,
        Err(refusal) => {
            reject::publish_rejection(state, id, &new, &refusal);
            let as_status = state.choices.of::<RejectForm>() == RejectForm::Status;
            if as_status && surface(call) == Surface::Futures && reject::by_engine(&refusal) {
                let order = reject::event(state, id, &new).order;
                return Ok(Body::json(&record::order(state, &order, Place::Changed)));
            }
            return Err(refusal);
        }
    };
    let place = match surface(call) {
        Surface::Futures if acknowledged(state, call.params) => Place::Acknowledged,
        _ => Place::Changed,
    };
    let record = if builder.is_some() {
        let data = json!({ "orderId": order.order_id.0, "status": order.status.as_str() });
        json!({ "code": 200, "msg": "success", "data": data })
    } else {
        record::order(state, &order, place)
    };
    Ok(Body::json(&record))
}

/// Place multiple orders (docs/interface/orders.md#place-several-orders): an order object or an
/// error object for each entry.
pub(super) fn batch_orders(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let entries = entries(call.params.required("batchOrders")?)?;
    if entries.is_empty() || entries.len() > BATCH_MAX {
        let msg =
            format!("Data sent for parameter 'batchOrders' is not valid: 1 to {BATCH_MAX} orders.");
        return Err(Refusal::new(-1130, msg));
    }
    let mut answers = Vec::with_capacity(entries.len());
    let reversed = state.choices.of::<BatchOrder>() == BatchOrder::Reversed;
    let mut entries = entries;
    if reversed {
        entries.reverse();
    }
    for entry in entries {
        answers.push(
            match entry.and_then(|params| in_batch(state, call, id, &params)) {
                Ok(record) => record,
                Err(refusal) => json!({ "code": refusal.code, "msg": refusal.msg }),
            },
        );
    }
    if reversed {
        answers.reverse();
    }
    Ok(Body::json(&answers))
}

/// The number of orders that a batch counts as; at least one.
pub(crate) fn batch_len(params: &Params) -> u32 {
    let entries = params.get("batchOrders").map(entries);
    let len = entries.and_then(Result::ok).map_or(1, |list| list.len());
    u32::try_from(len.max(1)).unwrap_or(u32::MAX)
}

fn in_batch(
    state: &mut State,
    call: &Call<'_>,
    id: AccountId,
    params: &Params,
) -> Result<Value, Refusal> {
    for name in ["symbol", "side", "type", "quantity"] {
        params.required(name)?;
    }
    // An entry has the parameters of an order that is sent alone
    // (docs/interface/orders.md#place-several-orders).
    if let Some(order) = route::named("futures.new_order") {
        check_entry(&state.router, order, call.listing, params)?;
    }
    let new = read(state, call, id, params)?;
    let builder = attribution(state, call, id, params)?;
    let order = place(state, call, id, &Request::PlaceBatch(vec![new]), builder)?;
    if !acknowledged(state, params) {
        return Ok(record::order(state, &order, Place::Batch));
    }
    let mut record = record::order(state, &order, Place::Acknowledged);
    if let Some(fields) = record.as_object_mut() {
        fields.remove("closePosition");
    }
    Ok(record)
}

/// Reads an order from the parameters.
fn read(
    state: &mut State,
    call: &Call<'_>,
    id: AccountId,
    params: &Params,
) -> Result<NewOrder, Refusal> {
    let instrument = instrument(state, call, params)?;
    let fallback = generated_id(state)?;
    let reading = Reading {
        params,
        instrument,
        rules: state.rules(instrument),
        hedge: state.account(id).venue.hedge_mode(),
    };
    reading.order(fallback)
}

/// A client order id that the venue generates.
fn generated_id(state: &mut State) -> Result<ClientOrderId, Refusal> {
    state.generated_ids += 1;
    let drawn = crate::accounts::drawn(
        state.settings.seed,
        0,
        &format!("id {}", state.generated_ids),
    );
    let text: String = match state.choices.of::<ForeignIds>() {
        ForeignIds::Hex => hex::encode(drawn).chars().take(22).collect(),
        ForeignIds::Long => format!("A.b:C/d_E-{:0>26}", state.generated_ids),
        ForeignIds::Short => (state.generated_ids % 10).to_string(),
    };
    ClientOrderId::new(&text).map_err(|_| unanswered())
}

/// Sends an order to the account's venue.
fn place(
    state: &mut State,
    call: &Call<'_>,
    id: AccountId,
    request: &Request,
    builder: Option<Attribution>,
) -> Result<OrderView, Refusal> {
    let surcharge = builder.map_or(0, |builder| builder.rate);
    let replies = perform_with_surcharge(state, call, id, request, surcharge);
    let Some(Reply::Placed { outcome, .. }) = replies.into_iter().next() else {
        return Err(unanswered());
    };
    let report = settled(outcome).map_err(|refusal| duplicate(state, refusal))?;
    if let Some(builder) = builder {
        state.wallets.attribute(id, report.order_id, builder);
    }
    let order = state.account(id).venue.order(report.order_id);
    order.ok_or_else(unanswered)
}

/// Sets the code that the venue chose for a client order id that is already used.
fn duplicate(state: &State, mut refusal: Refusal) -> Refusal {
    if refusal.code == DUPLICATE_ID {
        refusal.code = match state.choices.of::<DuplicateCode>() {
            DuplicateCode::Futures => DUPLICATE_ID,
            DuplicateCode::Rejected => -2010,
            DuplicateCode::Length => -4015,
        };
    }
    refusal
}

/// Whether the response is ACK, which is the default of futures
/// (docs/interface/orders.md#routes).
fn acknowledged(state: &State, params: &Params) -> bool {
    let as_it_is = state.choices.of::<AckAnswer>() == AckAnswer::Current;
    let kind = params.get("newOrderRespType");
    !as_it_is && kind.is_none_or(|text| text == "ACK")
}

/// The builder whose code the order has. The user must have approved the builder
/// (docs/interface/futures.md#orders-with-a-builder-code).
fn attribution(
    state: &State,
    call: &Call<'_>,
    id: AccountId,
    params: &Params,
) -> Result<Option<Attribution>, Refusal> {
    let (builder, fee_rate) = (params.get("builder"), params.get("feeRate"));
    if surface(call) == Surface::Spot || (builder, fee_rate) == (None, None) {
        return Ok(None);
    }
    let builder = builder.ok_or_else(|| missing("builder"))?;
    let fee_rate = fee_rate.ok_or_else(|| missing("feeRate"))?;
    call.params.required("user")?;
    let wallets = &state.wallets;
    wallets.check_builder(id, builder, fee_rate).map(Some)
}

/// Parses a JSON list of objects; each object becomes parameters.
fn entries(text: &str) -> Result<Vec<Result<Params, Refusal>>, Refusal> {
    let list: Vec<Entry> = serde_json::from_str(text).map_err(|_| invalid("batchOrders"))?;
    Ok(list.into_iter().map(Entry::params).collect())
}

/// The members of an entry as they were sent, including repeated names.
struct Entry(Vec<(String, Box<RawValue>)>);

impl Entry {
    /// The members as parameters. Numbers and booleans keep their original text, so a number is
    /// checked by the digits that were sent, as in a single order. Any other value is malformed
    /// (-1102).
    fn params(self) -> Result<Params, Refusal> {
        let plain = |(name, value): (String, Box<RawValue>)| {
            let written = value.get();
            match written.as_bytes().first() {
                Some(b'"') => match serde_json::from_str(written) {
                    Ok(text) => Ok((name, text)),
                    Err(_) => Err(missing(&name)),
                },
                Some(b'n' | b'[' | b'{') => Err(missing(&name)),
                _ => Ok((name, written.to_owned())),
            }
        };
        Params::from_pairs(self.0.into_iter().map(plain).collect::<Result<_, _>>()?)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Entry;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Entry(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> Result<Vec<(String, String)>, i32> {
        let list = entries(text).map_err(|refusal| refusal.code)?;
        let params = list.into_iter().next().unwrap();
        let params = params.map_err(|refusal| refusal.code)?;
        Ok(params
            .iter()
            .map(|p| (p.name.clone(), p.value.clone()))
            .collect())
    }

    #[test]
    fn an_entry_keeps_the_original_text() {
        let text = r#"[{"price": 0.0100000000000000000000001, "quantity":1e-2, "b":true,
            "symbol":"BTC\u0055SDT"}]"#;
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let written = [
            pair("price", "0.0100000000000000000000001"),
            pair("quantity", "1e-2"),
            pair("b", "true"),
            pair("symbol", "BTCUSDT"),
        ];
        assert_eq!(first(text).unwrap(), written);
    }

    #[test]
    fn invalid_values_and_repeated_names_are_refused() {
        assert_eq!(first(r#"[{"a":1,"a":1}]"#), Err(-1101));
        assert_eq!(first(r#"[{"a":"1","A":"2"}]"#), Err(-1101));
        for value in ["null", "[1]", "{}"] {
            assert_eq!(first(&format!("[{{\"a\":{value}}}]")), Err(-1102));
        }
        for list in ["{}", "[1]", "[[]]", "[{\"a\":}]", "[{\"a\":1} x"] {
            assert_eq!(first(list), Err(-1130), "{list}");
        }
    }
}
