//! Converts the tree to typed settings. This is a serde deserializer whose errors contain the
//! place, the key, the value and the rule.
//!
//! Decimals call `deserialize_str`, which also accepts numbers and returns their text. So
//! `tick = 0.1` is exactly one tenth. A `String` calls `deserialize_string`, which accepts only
//! strings.

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, EnumAccess, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};

use super::error::{ConfigError, Place, nearest};
use super::tree::{Entry, Node, Value};

/// Converts a whole tree.
pub(super) fn read<'de, T: Deserialize<'de>>(root: &'de Node) -> Result<T, ConfigError> {
    T::deserialize(Reader(root)).map_err(|error| error.at(root).into_config_error())
}

/// A broken rule. While the error is returned, each surrounding table and list adds its key.
#[derive(Debug)]
struct ReadError {
    fault: Fault,
    place: Option<Place>,
    /// Keys, the innermost first.
    path: Vec<String>,
}

#[derive(Debug)]
enum Fault {
    UnknownKey {
        key: String,
        nearest: Option<String>,
    },
    /// The value breaks a rule. It may be shown.
    Rule { rule: String, value: Option<String> },
    /// The value breaks a rule. It is not shown: it may be a secret in place of a table.
    Quiet { rule: String },
}

impl ReadError {
    fn new(fault: Fault) -> Self {
        Self {
            fault,
            place: None,
            path: Vec::new(),
        }
    }

    fn rule(rule: String) -> Self {
        Self::new(Fault::Rule { rule, value: None })
    }

    /// Adds the place and the value of `node`, unless an inner node has added its own.
    fn at(mut self, node: &Node) -> Self {
        if self.place.is_none() {
            self.place = Some(node.place.clone());
            if let Fault::Rule { value, .. } = &mut self.fault {
                *value = node.value.shown();
            }
        }
        self
    }

    fn under(mut self, key: &impl ToString) -> Self {
        self.path.push(key.to_string());
        self
    }

    fn into_config_error(mut self) -> ConfigError {
        self.path.reverse();
        let parent = self.path.join(".");
        let full = |key: &str| {
            if parent.is_empty() {
                key.to_owned()
            } else {
                format!("{parent}.{key}")
            }
        };
        let place = self
            .place
            .unwrap_or(Place::Argument("configuration".to_owned()));
        match self.fault {
            Fault::UnknownKey { key, nearest } => ConfigError::UnknownKey {
                place,
                key: full(&key),
                nearest: nearest.as_deref().map(full),
            },
            Fault::Rule { rule, value } => ConfigError::Value {
                place,
                key: parent,
                value,
                rule,
            },
            Fault::Quiet { rule } => ConfigError::Value {
                place,
                key: parent,
                value: None,
                rule,
            },
        }
    }
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.fault)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: std::fmt::Display>(rule: T) -> Self {
        Self::rule(rule.to_string())
    }
    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::rule(must_be(expected))
    }
    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::rule(must_be(expected))
    }
    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::rule(must_be(expected))
    }
    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        let hint = nearest(word, known)
            .filter(|near| strsim::damerau_levenshtein(word, near) <= 2)
            .map_or_else(String::new, |near| format!(" (did you mean {near:?}?)"));
        let known: Vec<String> = known.iter().map(|word| format!("{word:?}")).collect();
        Self::rule(format!("must be one of {}{hint}", known.join(", ")))
    }
    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::new(Fault::UnknownKey {
            key: key.to_owned(),
            nearest: nearest(key, known).map(str::to_owned),
        })
    }
    fn missing_field(field: &'static str) -> Self {
        Self::new(Fault::Quiet {
            rule: format!("has no `{field}`; add it"),
        })
    }
}

/// Rewrites serde's description of an expected Rust type in the terms of a TOML file.
fn must_be(expected: &dyn Expected) -> String {
    let expected = expected.to_string();
    let words = match expected.as_str() {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" => "a whole number, in range",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "path string" => "a path as a string",
        text if text.starts_with("a Decimal type") => "a decimal number such as \"0.01\"",
        text if text.starts_with("struct ") || text == "a map" => "a table",
        text => text,
    };
    format!("must be {words}")
}

#[derive(Clone, Copy)]
struct Reader<'de>(&'de Node);

impl<'de> Reader<'de> {
    fn table<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::Table(entries) => visitor.visit_map(Entries {
                rest: entries,
                next: None,
            }),
            other => Err(ReadError::new(Fault::Quiet {
                rule: format!("{}, not {}", must_be(&visitor), other.kind()),
            })),
        }
    }

    fn wrong<T>(visitor: &impl Expected) -> Result<T, ReadError> {
        Err(ReadError::rule(must_be(visitor)))
    }
}

macro_rules! integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            let Value::Integer(text) = &self.0.value else {
                return Self::wrong(&visitor);
            };
            if let Ok(value) = text.parse::<u64>() {
                visitor.visit_u64(value)
            } else if let Ok(value) = text.parse::<i64>() {
                visitor.visit_i64(value)
            } else {
                Self::wrong(&visitor)
            }
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Reader<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::Text(text) | Value::Datetime(text) => visitor.visit_borrowed_str(text),
            Value::Integer(_) => self.deserialize_i64(visitor),
            Value::Float(text) => match text.parse::<f64>() {
                Ok(value) if value.is_finite() => visitor.visit_f64(value),
                _ => Err(ReadError::rule("must be a finite number".to_owned())),
            },
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::List(items) => visitor.visit_seq(Items { items, at: 0 }),
            Value::Table(_) => self.table(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0.value {
            Value::Boolean(value) => visitor.visit_bool(value),
            _ => Self::wrong(&visitor),
        }
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::Text(text) | Value::Integer(text) | Value::Float(text) => {
                visitor.visit_borrowed_str(text)
            }
            _ => Self::wrong(&visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::Text(text) => visitor.visit_borrowed_str(text),
            _ => Self::wrong(&visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::List(items) => visitor.visit_seq(Items { items, at: 0 }),
            _ => Self::wrong(&visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.table(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.table(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::Text(text) => visitor.visit_enum(Word(text)),
            _ => Err(de::Error::unknown_variant("", known)),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_string(visitor)
    }

    serde::forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct ignored_any
    }
}

struct Items<'de> {
    items: &'de [Node],
    at: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let Some(node) = self.items.get(self.at) else {
            return Ok(None);
        };
        let index = self.at;
        self.at += 1;
        seed.deserialize(Reader(node))
            .map(Some)
            .map_err(|error| error.at(node).under(&index))
    }
}

struct Entries<'de> {
    rest: &'de [Entry],
    next: Option<&'de Entry>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        let Some((entry, rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        self.rest = rest;
        self.next = Some(entry);
        let key: StrDeserializer<'_, ReadError> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|mut error| {
            error.place.get_or_insert_with(|| entry.place.clone());
            if matches!(error.fault, Fault::Rule { .. }) {
                error = error.under(&entry.key);
            }
            error
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let Some(entry) = self.next.take() else {
            return Err(ReadError::rule("was read before its key".to_owned()));
        };
        seed.deserialize(Reader(&entry.node))
            .map_err(|error| error.at(&entry.node).under(&entry.key))
    }
}

/// A string that names a variant of an enum.
struct Word<'de>(&'de str);

impl<'de> EnumAccess<'de> for Word<'de> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ReadError> {
        let word: StrDeserializer<'_, ReadError> = self.0.into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'de> VariantAccess<'de> for Word<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        Ok(())
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, ReadError> {
        Err(ReadError::rule("must be a string".to_owned()))
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, ReadError> {
        Err(ReadError::rule("must be a string".to_owned()))
    }
    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ReadError> {
        Err(ReadError::rule("must be a string".to_owned()))
    }
}
