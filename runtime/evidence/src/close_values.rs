//! Values of closes by outside parties that strategies did not give up yet.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::names::Names;
use windvane_model::order::Side;

use crate::PositionKey;
use crate::outside_closes::renamed;

/// Values of due closes, by position.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct CloseValues(BTreeMap<PositionKey, CloseValue>);

/// The value of closes that are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseValue {
    /// Signed like the closing orders.
    qty: i64,
    quote: Amount,
}

impl CloseValue {
    /// The value of this part; `None` if it is not known for this quantity.
    pub fn part(&self, closing: Side, qty: i64) -> Option<Amount> {
        let known = closing.sign() * self.qty;
        (qty > 0 && qty <= known).then(|| self.quote.part(qty, known))
    }
}

impl CloseValues {
    /// Notes the value of an outside close that the strategies must still give up.
    pub fn note(&mut self, key: PositionKey, qty: i64, quote: Amount) {
        let known = self.0.entry(key).or_default();
        if known.qty.signum() == -qty.signum() {
            *known = CloseValue::default();
        }
        known.qty += qty;
        known.quote += quote;
    }

    /// The value of the due closes of a position.
    pub fn get(&self, key: PositionKey) -> Option<CloseValue> {
        self.0.get(&key).copied()
    }

    /// The value of this quantity of the due closes; `None` if it is not known.
    pub fn part(&self, key: PositionKey, closing: Side, qty: i64) -> Option<Amount> {
        self.0.get(&key)?.part(closing, qty)
    }

    /// Removes this quantity from the due closes: an order explains it, or a strategy gave it up.
    /// `value` is its value, if known.
    pub fn take(&mut self, key: PositionKey, qty: i64, value: Option<Amount>) {
        let Some(known) = self.0.get_mut(&key) else {
            return;
        };
        let whole = known.qty.saturating_abs();
        if qty >= whole {
            self.0.remove(&key);
            return;
        }
        let average = known.quote.part(qty, whole);
        let value = value.filter(|value| *value < known.quote);
        known.quote -= value.unwrap_or(average);
        known.qty -= known.qty.signum() * qty;
    }

    /// Removes the value of a position whose closes are settled.
    pub fn remove(&mut self, key: PositionKey) -> Option<CloseValue> {
        self.0.remove(&key)
    }

    /// Takes over the close values of an earlier process.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        self.0.extend(renamed(&old.0, names));
    }
}
