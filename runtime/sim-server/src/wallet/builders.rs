//! Approvals of builders, and the builders of orders
//! (docs/interface/futures.md#agent-and-builder-routes).
//!
//! Rates are fractions of the notional, like the commission rates of the documents: 0.001 is a
//! tenth of a percent. A fill of an order with a builder's code costs the venue's fee and the
//! builder's fee. Their sum is its only commission, because the documents have no field for a
//! second one.

use alloy_primitives::Address;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use windvane_model::Amount;
use windvane_model::decimal::{AMOUNT_ONE, div_half_even};

use crate::request::{Refusal, decimal, invalid};

/// The approval of a builder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Builder {
    pub(crate) address: Address,
    pub(crate) fee_rate_max: Decimal,
    pub(crate) name: String,
}

impl Builder {
    /// The approval, for the exact state of the control port.
    pub(super) fn report(&self) -> Value {
        json!({
            "builder": self.address.to_string(),
            "fee_rate_max": self.fee_rate_max.to_string(),
            "name": self.name,
        })
    }
}

/// The builder whose code an order has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attribution {
    pub(crate) builder: Address,
    /// Fee rate as a fraction of the notional, in units of 1e-8.
    pub(crate) rate: i64,
}

impl Attribution {
    /// The builder's fee for a fill, rounded half to even at 8 decimals like every fee.
    pub(crate) fn share(self, notional: Amount) -> Amount {
        let product = notional.0 * i128::from(self.rate);
        Amount(div_half_even(product, AMOUNT_ONE))
    }
}

/// Parses a fraction from 0 to 1 in decimal text.
pub(crate) fn fraction(name: &str, text: &str) -> Result<Decimal, Refusal> {
    let rate = decimal(name, text)?;
    if (Decimal::ZERO..=Decimal::ONE).contains(&rate) {
        Ok(rate)
    } else {
        Err(invalid(name))
    }
}
