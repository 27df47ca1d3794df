//! Checked values that several sections share.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use windvane_model::decimal::Decimal;

/// Reads a decimal from a string or a number, without rounding.
struct DecimalVisitor;

impl Visitor<'_> for DecimalVisitor {
    type Value = Decimal;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a decimal number such as \"0.01\", of at most 28 digits")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Decimal, E> {
        Decimal::from_str_exact(text)
            .or_else(|_| Decimal::from_scientific(text))
            .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

fn decimal_if<'de, D: Deserializer<'de>>(
    deserializer: D,
    holds: impl Fn(&Decimal) -> bool,
    rule: &str,
) -> Result<Decimal, D::Error> {
    let value = deserializer.deserialize_str(DecimalVisitor)?;
    if holds(&value) {
        Ok(value)
    } else {
        Err(de::Error::custom(rule))
    }
}

/// Reads a decimal above 0.
pub(super) fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
    decimal_if(
        deserializer,
        |value| *value > Decimal::ZERO,
        "must be over 0",
    )
}

/// Reads a decimal that is not negative.
pub(super) fn not_negative<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Decimal, D::Error> {
    decimal_if(
        deserializer,
        |value| *value >= Decimal::ZERO,
        "must not be negative",
    )
}

/// Reads an optional decimal above 0.
pub(super) fn positive_option<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Decimal>, D::Error> {
    positive(deserializer).map(Some)
}

/// Reads an optional fraction above 0 and at most 1.
pub(super) fn fraction_option<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Decimal>, D::Error> {
    let holds = |value: &Decimal| *value > Decimal::ZERO && *value <= Decimal::ONE;
    decimal_if(
        deserializer,
        holds,
        "must be a fraction over 0 and at most 1: 0.05 is 5 percent",
    )
    .map(Some)
}

/// Reads a fraction of at least 0 and below 1.
pub(super) fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
    let holds = |value: &Decimal| *value >= Decimal::ZERO && *value < Decimal::ONE;
    decimal_if(
        deserializer,
        holds,
        "must be a fraction from 0 and under 1: 0.005 is 0.5 percent",
    )
}

/// Reads a fee: a fraction between -1 and 1. A negative fee is a rebate.
pub(super) fn fee<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
    let holds = |value: &Decimal| value.abs() < Decimal::ONE;
    decimal_if(
        deserializer,
        holds,
        "must be a fraction between -1 and 1: 0.0004 is 0.04 percent",
    )
}

/// Reads milliseconds from 0 to one hour, and returns nanoseconds. Fractions are allowed.
pub(super) fn millis_as_ns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    const RULE: &str = "must be milliseconds from 0 to 3600000";
    let hour = Decimal::from(3_600_000);
    let holds = |value: &Decimal| *value >= Decimal::ZERO && *value <= hour;
    let millis = decimal_if(deserializer, holds, RULE)?;
    i64::try_from((millis * Decimal::from(1_000_000)).round()).map_err(|_| de::Error::custom(RULE))
}
