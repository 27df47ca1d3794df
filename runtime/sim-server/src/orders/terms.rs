//! Converts request parameters to the terms of an order ([`OrderTerms`])
//! (docs/interface/orders.md#place-a-spot-order, docs/interface/orders.md#place-a-futures-order).
//! The matching engine checks the terms. This module checks only what the terms cannot express:
//! words, precision beyond the instrument's integers, and parameters that must not be sent at all.

use rust_decimal::Decimal;
use windvane_model::decimal::exact_mantissa;
use windvane_model::ids::ClientOrderIdError;
use windvane_model::{
    Amount, ClientOrderId, Instrument, InstrumentId, NewOrder, OrderTerms, OrderType, PositionSide,
    Price, Qty, Side, Surface, TimeInForce, WorkingType,
};

use crate::request::{Params, Refusal, invalid, missing};

/// The context in which the parameters of an order are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading<'a> {
    pub(super) params: &'a Params,
    pub(super) instrument: InstrumentId,
    pub(super) rules: &'a Instrument,
    pub(super) hedge: bool,
}

impl Reading<'_> {
    /// Reads the order. `fallback` is its id if the request has none.
    pub(super) fn order(&self, fallback: ClientOrderId) -> Result<NewOrder, Refusal> {
        let params = self.params;
        let side = word(params, "side", Side::from_text, (-1117, "Invalid side."))?;
        let side = side.ok_or_else(|| missing("side"))?;
        let bad_type = (-1116, "Invalid orderType.");
        let order_type = word(params, "type", OrderType::from_text, bad_type)?;
        let order_type = order_type.ok_or_else(|| missing("type"))?;
        let mut terms = OrderTerms::new(self.instrument, side, order_type);
        let bad_tif = (-1115, "Invalid timeInForce.");
        terms.time_in_force = word(params, "timeInForce", TimeInForce::from_text, bad_tif)?;
        terms.qty = self.qty("quantity")?;
        terms.price = self.price("price")?;
        terms.stop_price = self.price("stopPrice")?;
        match self.rules.surface {
            Surface::Spot => {
                terms.quote_qty = self.quote_qty()?;
                let values = ["ACK", "RESULT", "FULL"];
                check_response_type(params, &values)?;
            }
            Surface::Futures => {
                self.futures(&mut terms)?;
                check_response_type(params, &["ACK", "RESULT"])?;
            }
        }
        let client_order_id = match params.raw("newClientOrderId") {
            None => fallback,
            Some(text) => client_order_id(text)?,
        };
        Ok(NewOrder {
            client_order_id,
            terms,
        })
    }

    fn futures(&self, terms: &mut OrderTerms) -> Result<(), Refusal> {
        let params = self.params;
        let bad_side = (-4060, "Invalid position side.");
        terms.position_side = word(params, "positionSide", PositionSide::from_text, bad_side)?
            .unwrap_or(PositionSide::Both);
        let bad_working = (-4031, "Invalid working type.");
        terms.working_type = word(params, "workingType", WorkingType::from_text, bad_working)?;
        terms.price_protect = params.flag("priceProtect")?.unwrap_or(false);
        terms.close_position = params.flag("closePosition")?.unwrap_or(false);
        terms.reduce_only = params.flag("reduceOnly")?.unwrap_or(false);
        // Not even "false" is permitted (docs/interface/README.md#12-hedge-mode).
        if params.raw("reduceOnly").is_some() && (self.hedge || terms.close_position) {
            let msg = "Parameter 'reduceOnly' sent when not required.";
            return Err(Refusal::new(-1106, msg));
        }
        terms.activation_price = self.price("activationPrice")?;
        if let Some(percent) = params.decimal("callbackRate")? {
            let ppm = percent.checked_mul(Decimal::from(10_000));
            let ppm = ppm.and_then(|ppm| exact_mantissa(ppm, 0));
            let ppm = ppm.and_then(|ppm| u32::try_from(ppm).ok());
            terms.callback_ppm = Some(ppm.ok_or_else(|| invalid("callbackRate"))?);
        }
        Ok(())
    }

    fn price(&self, name: &str) -> Result<Option<Price>, Refusal> {
        let Some(value) = self.params.decimal(name)? else {
            return Ok(None);
        };
        let rules = self.rules;
        mantissa(
            value,
            rules.price_scale,
            rules.price_precision,
            (name, Figure::Price),
        )
        .map(|mantissa| Some(Price(mantissa)))
    }

    fn qty(&self, name: &str) -> Result<Option<Qty>, Refusal> {
        let Some(value) = self.params.decimal(name)? else {
            return Ok(None);
        };
        let rules = self.rules;
        let figure = (name, Figure::Qty);
        mantissa(value, rules.qty_scale, rules.qty_precision, figure)
            .map(|mantissa| Some(Qty(mantissa)))
    }

    fn quote_qty(&self) -> Result<Option<Amount>, Refusal> {
        let Some(value) = self.params.decimal("quoteOrderQty")? else {
            return Ok(None);
        };
        let amount =
            Amount::from_decimal(value).filter(|amount| amount.to_decimal() == value.normalize());
        let bad = || bad_precision("quoteOrderQty");
        amount.map(Some).ok_or_else(bad)
    }
}

#[derive(Clone, Copy, Debug)]
enum Figure {
    Price,
    Qty,
}

/// Converts a decimal to the instrument's integers. A value with too many decimals violates the
/// precision (-1111), or else the tick or step. A value that does not fit exceeds any maximum.
fn mantissa(
    value: Decimal,
    scale: u8,
    precision: Option<u8>,
    (name, figure): (&str, Figure),
) -> Result<i64, Refusal> {
    if let Some(mantissa) = exact_mantissa(value, scale) {
        return Ok(mantissa);
    }
    let decimals = value.normalize().scale();
    if decimals <= u32::from(scale) {
        return Err(match figure {
            Figure::Price => Refusal::new(-4002, "Price greater than max price."),
            Figure::Qty => Refusal::new(-4005, "Quantity greater than max quantity."),
        });
    }
    if decimals > u32::from(precision.unwrap_or(scale)) {
        return Err(bad_precision(name));
    }
    Err(match figure {
        Figure::Price => Refusal::new(-4014, "Price not increased by tick size."),
        Figure::Qty => Refusal::new(-4023, "Quantity not increased by step size."),
    })
}

fn bad_precision(name: &str) -> Refusal {
    let msg =
        format!("Precision of parameter '{name}' is over the maximum defined for this asset.");
    Refusal::new(-1111, msg)
}

/// Reads a word of the venue, if it is sent.
fn word<T>(
    params: &Params,
    name: &str,
    read: impl Fn(&str) -> Option<T>,
    (code, msg): (i32, &str),
) -> Result<Option<T>, Refusal> {
    let Some(text) = params.get(name) else {
        return Ok(None);
    };
    read(text).map(Some).ok_or_else(|| Refusal::new(code, msg))
}

fn check_response_type(params: &Params, values: &[&str]) -> Result<(), Refusal> {
    match params.get("newOrderRespType") {
        Some(text) if !values.contains(&text) => {
            Err(Refusal::new(-1136, "Invalid newOrderRespType."))
        }
        _ => Ok(()),
    }
}

/// Reads an id of 1 to 36 characters from the permitted set. The code is -4015 for a wrong length
/// and -1100 for a wrong character (docs/interface/orders.md#place-a-futures-order).
pub(super) fn client_order_id(text: &str) -> Result<ClientOrderId, Refusal> {
    ClientOrderId::new(text).map_err(|error| match error {
        ClientOrderIdError::Length(0) => Refusal::new(-1118, "New client order ID was empty."),
        ClientOrderIdError::Length(_) => {
            let msg = "Client order id is not valid: its length must not exceed 36 characters.";
            Refusal::new(-4015, msg)
        }
        ClientOrderIdError::Character(_) => {
            let msg = "Illegal characters found in parameter 'newClientOrderId'; legal range is \
                       '^[\\.A-Z\\:/a-z0-9_-]{1,36}$'.";
            Refusal::new(-1100, msg)
        }
    })
}

#[cfg(test)]
mod tests;
