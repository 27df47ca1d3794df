//! Scalars as venues of this kind write them: exact decimals, integers, flags and words, each as
//! JSON text or as JSON number. No floating point.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A decimal read from the JSON text itself, in quotes or not; digits that do not fit 96 bits are
/// an error, never rounded. Empty text is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exact(pub Decimal);

/// An integer, written as number or as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Whole(pub i64);

/// A boolean, written as `true` or as `"true"`, in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flag(pub bool);

/// A word of a documented set, or one that is not in it, kept as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word<T> {
    /// In the set.
    Known(T),
    /// Not in the set.
    Other(String),
}

/// An answer that is an object for one symbol and an array for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OneOrMany<T> {
    /// An object.
    One(T),
    /// An array.
    Many(Vec<T>),
}

/// The text of a scalar: without its quotes if it has them. Escapes do not occur in numbers, and
/// where they do the text is no number.
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
        let value = if text.contains(['e', 'E']) {
            Decimal::from_scientific(text)
        } else {
            Decimal::from_str_exact(text)
        };
        value
            .map(Self)
            .map_err(|error| D::Error::custom(format!("{text:?} is no decimal: {error}")))
    }
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
