//! Builders receive a fee for orders that name them, up to a rate that the user approved
//! (docs/interface/futures.md#agent-and-builder-routes). Registration and platform tokens of a
//! builder (docs/interface/futures.md#builders) are outside of this interface, and are assumed.
//!
//! Rates are fractions of the notional, like the commission rates of the documents: 0.001 is a
//! tenth of a percent. A fill of an order with a builder's code costs the venue's fee and the
//! builder's fee. Their sum is its only commission, because the documents have no field for a
//! second one. A builder whose address is the main wallet of an account here is paid into its
//! futures wallet.

use alloy_primitives::Address;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use windvane_model::decimal::{AMOUNT_ONE, div_half_even, exact_mantissa};
use windvane_model::{Amount, Surface, VenueOrderId};
use windvane_sim::{Cause, OrderEvent};

use super::agents::check_network;
use super::values;
use crate::accounts::{AccountId, Income};
use crate::request::{Answer, Body, Call, Refusal, decimal, invalid};
use crate::state::State;

/// Maximum number of builders per account.
const BUILDERS_MAX: usize = 100;

/// The approval of a builder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Builder {
    address: Address,
    fee_rate_max: Decimal,
    name: String,
}

/// The builder whose code an order has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attribution {
    builder: Address,
    /// Fee rate as a fraction of the notional, in units of 1e-8.
    pub(crate) rate: i64,
}

impl Attribution {
    /// The builder's fee for a fill, rounded half to even at 8 decimals like every fee.
    fn of(self, notional: Amount) -> Amount {
        let product = notional.0 * i128::from(self.rate);
        Amount(div_half_even(product, AMOUNT_ONE))
    }
}

/// Approves a builder. A new approval of a known builder replaces its rate and name.
pub(super) fn approve(state: &mut State, call: &Call<'_>) -> Answer {
    check_network(state, call)?;
    put(state, call, call.account()?)?;
    Ok(values::success())
}

/// Stores the approval in `builder`, `maxFeeRate` and `builderName`.
pub(super) fn put(state: &mut State, call: &Call<'_>, id: AccountId) -> Result<(), Refusal> {
    let builder = Builder {
        address: values::address(call, "builder")?,
        fee_rate_max: fraction("maxFeeRate", call.params.required("maxFeeRate")?)?,
        name: call
            .params
            .get("builderName")
            .unwrap_or_default()
            .to_owned(),
    };
    let builders = &mut state.wallets.own(id).builders;
    let replaced = builders
        .iter()
        .position(|other| other.address == builder.address);
    match replaced {
        Some(place) => builders[place] = builder,
        None if builders.len() >= BUILDERS_MAX => {
            let msg = format!("An account approves at most {BUILDERS_MAX} builders.");
            return Err(Refusal::new(-1130, msg));
        }
        None => builders.push(builder),
    }
    Ok(())
}

/// Changes the maximum rate of an approved builder.
pub(super) fn update(state: &mut State, call: &Call<'_>) -> Answer {
    check_network(state, call)?;
    let rate = fraction("maxFeeRate", call.params.required("maxFeeRate")?)?;
    let address = values::address(call, "builder")?;
    let builders = &mut state.wallets.own(call.account()?).builders;
    let known = builders
        .iter_mut()
        .find(|builder| builder.address == address);
    known.ok_or_else(|| not_approved(address))?.fee_rate_max = rate;
    Ok(values::success())
}

/// Ends an approval.
pub(super) fn delete(state: &mut State, call: &Call<'_>) -> Answer {
    check_network(state, call)?;
    let address = values::address(call, "builder")?;
    let builders = &mut state.wallets.own(call.account()?).builders;
    let before = builders.len();
    builders.retain(|builder| builder.address != address);
    if builders.len() == before {
        return Err(not_approved(address));
    }
    Ok(values::success())
}

/// All approvals of the account. `maxFeeRate` is a number in this response.
pub(super) fn list(state: &mut State, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let user = state.account(id).user.to_string();
    let record = |builder: &Builder| {
        json!({
            "userAddress": user,
            "builderAddress": builder.address.to_string(),
            "maxFeeRate": number(builder.fee_rate_max),
            "builderName": builder.name,
        })
    };
    let records: Vec<Value> = state.wallets.own(id).builders.iter().map(record).collect();
    Ok(Body::json(&records))
}

/// An approval, for the exact state of the control port.
pub(super) fn report(builder: &Builder) -> Value {
    json!({
        "builder": builder.address.to_string(),
        "fee_rate_max": builder.fee_rate_max.to_string(),
        "name": builder.name,
    })
}

/// Checks that the user approved this builder for at least this fee rate; otherwise the order is
/// rejected (docs/interface/futures.md#orders-with-a-builder-code; -2010).
pub(crate) fn check(
    state: &State,
    id: AccountId,
    builder: &str,
    fee_rate: &str,
) -> Result<Attribution, Refusal> {
    let address = values::evm_address(builder).ok_or_else(|| invalid("builder"))?;
    let rate = fraction("feeRate", fee_rate)?;
    let builders = state
        .wallets
        .own
        .get(&id)
        .map_or(&[][..], |own| &own.builders);
    let approved = builders.iter().find(|builder| builder.address == address);
    let approved = approved.ok_or_else(|| {
        Refusal::new(
            -2010,
            format!("Builder {address} is not approved by this account."),
        )
    })?;
    if rate > approved.fee_rate_max {
        let most = approved.fee_rate_max;
        let msg = format!("feeRate {rate} is over the approved maxFeeRate {most}.");
        return Err(Refusal::new(-2010, msg));
    }
    let builder = address;
    let rate = exact_mantissa(rate, 8).ok_or_else(|| invalid("feeRate"))?;
    Ok(Attribution { builder, rate })
}

/// Stores the builder of an order until the order has ended.
pub(crate) fn attribute(
    state: &mut State,
    id: AccountId,
    order: VenueOrderId,
    attribution: Attribution,
) {
    let attributed = &mut state.wallets.own(id).attributed;
    attributed.insert(order, attribution);
}

/// Pays the builder its share of a fill.
pub(crate) fn pay(state: &mut State, id: AccountId, event: &OrderEvent) {
    let attributed = &mut state.wallets.own(id).attributed;
    let update = &event.update;
    let Some(attribution) = attributed.get(&update.order_id).copied() else {
        return;
    };
    if update.status.is_final() {
        attributed.remove(&update.order_id);
    }
    let (Some(fill), Some(payee)) = (update.fill, values::account_of(state, attribution.builder))
    else {
        return;
    };
    let share = attribution.of(fill.quote_qty);
    let (now, asset) = (state.now, fill.fee_asset);
    let account = state.account_mut(payee);
    let venue = &mut account.venue;
    let credited = venue.credit(now, Surface::Futures, asset, share, Cause::Adjustment);
    // A share that rounds to zero is not paid.
    if credited.is_ok() {
        account.history.keep_income(Income {
            instrument: Some(update.instrument),
            kind: "COMMISSION",
            amount: share,
            asset,
            info: "BUILDER_FEE".to_owned(),
            time: update.transaction_time,
            tran_id: 0,
            trade_id: Some(fill.trade_id.0),
        });
    }
}

/// Parses a fraction from 0 to 1 in decimal text.
fn fraction(name: &str, text: &str) -> Result<Decimal, Refusal> {
    let rate = decimal(name, text)?;
    if (Decimal::ZERO..=Decimal::ONE).contains(&rate) {
        Ok(rate)
    } else {
        Err(invalid(name))
    }
}

fn not_approved(address: Address) -> Refusal {
    Refusal::new(-1130, format!("{address} is no builder of this account."))
}

/// A decimal as a JSON number with all of its digits.
pub(super) fn number(value: Decimal) -> Box<serde_json::value::RawValue> {
    // The text of a decimal is always a valid JSON number.
    serde_json::value::RawValue::from_string(value.normalize().to_string()).unwrap_or_default()
}
