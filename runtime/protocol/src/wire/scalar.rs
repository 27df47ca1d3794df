//! Scalars as venues of this kind write them: exact decimals, integers, booleans and enum values,
//! each as JSON text or as JSON number. No floating point.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A decimal parsed from the JSON text itself, with or without quotes. Digits that do not fit in 96
/// bits are an error; they are never rounded. Empty text is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exact(pub Decimal);

/// An integer, as a number or as text on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Whole(pub i64);

/// A boolean, as `true` or as `"true"` on the wire, in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flag(pub bool);

/// A value of a documented enum, or an unknown value as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word<T> {
    /// A documented value.
    Known(T),
    /// An undocumented value.
    Other(String),
}

/// An identifier or note that is text in one place and a number in another; both are kept as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(pub String);

/// Any JSON value as its text: for values that the documents do not define, and for values that are
/// only echoed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json(pub String);

/// A list that is sent as compact JSON text: `[1,2]`, `["a","b"]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T>(pub Vec<T>);

/// A boolean that is sent as `TRUE` or `FALSE` (`priceProtect`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperFlag(pub bool);

/// A response that is an object for one symbol and an array for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OneOrMany<T> {
    /// An object.
    One(T),
    /// An array.
    Many(Vec<T>),
}

/// The text of a scalar, without its quotes. Numbers have no escapes; a text with escapes is not a
/// number.
fn scalar<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'de str, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    let inner = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
    Ok(inner.unwrap_or(raw).trim())
}

impl<'de> Deserialize<'de> for Exact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = scalar(deserializer)?;
        if text.is_empty() {
            return Ok(Self::default());
        }
        let value = exact(text).ok_or_else(|| {
            D::Error::custom(format!(
                "{text:?} is no decimal, or has more digits than 96 bits hold"
            ))
        });
        value.map(Self)
    }
}

/// The decimal of a text, with its exponent if it has one. `None` if the text is not a decimal or
/// the value would need rounding. Trailing zeros that do not fit are dropped.
fn exact(text: &str) -> Option<Decimal> {
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, i32::from_str(exponent).ok()?),
        None => (text, 0),
    };
    let is_plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.');
    if !digits.bytes().all(is_plain) {
        return None;
    }
    let trimmed = || {
        let whole = digits.contains('.').then(|| digits.trim_end_matches('0'));
        Decimal::from_str_exact(whole?).ok()
    };
    let value = Decimal::from_str_exact(digits).ok().or_else(trimmed)?;
    if exponent == 0 || value.is_zero() {
        return Some(value);
    }
    let value = value.normalize();
    let scale = i64::from(value.scale()) - i64::from(exponent);
    if let Ok(scale) = u32::try_from(scale) {
        return Decimal::try_from_i128_with_scale(value.mantissa(), scale).ok();
    }
    let power = 10_i128.checked_pow(u32::try_from(-scale).ok()?)?;
    Decimal::try_from_i128_with_scale(value.mantissa().checked_mul(power)?, 0).ok()
}

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl Deref for Exact {
    type Target = Decimal;

    fn deref(&self) -> &Decimal {
        &self.0
    }
}

impl From<Decimal> for Exact {
    fn from(value: Decimal) -> Self {
        Self(value)
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = scalar(deserializer)?;
        let value = i64::from_str(text);
        value
            .map(Self)
            .map_err(|error| D::Error::custom(format!("{text:?} is no integer: {error}")))
    }
}

impl Serialize for Whole {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

impl Deref for Whole {
    type Target = i64;

    fn deref(&self) -> &i64 {
        &self.0
    }
}

impl From<i64> for Whole {
    fn from(value: i64) -> Self {
        Self(value)
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = scalar(deserializer)?;
        if text.eq_ignore_ascii_case("true") {
            Ok(Self(true))
        } else if text.eq_ignore_ascii_case("false") {
            Ok(Self(false))
        } else {
            Err(D::Error::custom(format!(
                "{text:?} is neither true nor false"
            )))
        }
    }
}

impl Serialize for Flag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(self.0)
    }
}

impl Deref for Flag {
    type Target = bool;

    fn deref(&self) -> &bool {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        if raw.starts_with('"') {
            let text = serde_json::from_str(raw).map_err(D::Error::custom)?;
            return Ok(Self(text));
        }
        let is_number = raw.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        if is_number {
            Ok(Self(raw.to_owned()))
        } else {
            Err(D::Error::custom(format!(
                "{raw} is neither text nor number"
            )))
        }
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(raw.get().to_owned()))
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = RawValue::from_string(self.0.clone()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(entries: Vec<T>) -> Self {
        Self(entries)
    }
}

impl<T: Serialize> fmt::Display for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Integers and texts always serialize.
        f.write_str(&serde_json::to_string(&self.0).map_err(|_| fmt::Error)?)
    }
}

impl From<bool> for UpperFlag {
    fn from(value: bool) -> Self {
        Self(value)
    }
}

impl fmt::Display for UpperFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "TRUE" } else { "FALSE" })
    }
}

impl<'de, T: FromStr> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(T::from_str(&text).map_or(Self::Other(text), Self::Known))
    }
}

impl<T: fmt::Display> fmt::Display for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(word) => word.fmt(f),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl<T: fmt::Display> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let answer = if raw.starts_with('[') {
            serde_json::from_str(raw).map(Self::Many)
        } else {
            serde_json::from_str(raw).map(Self::One)
        };
        answer.map_err(D::Error::custom)
    }
}

impl<T: Serialize> Serialize for OneOrMany<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(record) => record.serialize(serializer),
            Self::Many(records) => records.serialize(serializer),
        }
    }
}

impl<T> OneOrMany<T> {
    /// Converts into a list; an object becomes one entry.
    pub fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(record) => vec![record],
            Self::Many(records) => records,
        }
    }
}

impl<T> Word<T> {
    /// The documented value, or `None` for an undocumented one.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(word) => Some(word),
            Self::Other(_) => None,
        }
    }
}
