//! Every key of the configuration, from the types: a deserializer that follows one path, and
//! records the fields of the structure at its end.

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use windvane_config::Config;

/// The dotted paths of all keys, in the order of the types. Entries of lists and tables have no
/// step of their own.
pub(super) fn all() -> Vec<String> {
    let mut keys = Vec::new();
    below(&mut Vec::new(), &mut keys);
    keys
}

fn below(path: &mut Vec<&'static str>, keys: &mut Vec<String>) {
    match Config::deserialize(At(path.as_slice())) {
        Err(Found::Fields(fields)) => {
            for field in fields {
                path.push(field);
                below(path, keys);
                path.pop();
            }
        }
        _ => keys.push(path.join(".")),
    }
}

/// The type at the end of a path. The deserializer returns it as an error.
#[derive(Debug)]
enum Found {
    Fields(&'static [&'static str]),
    Value,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Found {}

impl de::Error for Found {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Self::Value
    }
}

/// A position in the types: the rest of the path.
#[derive(Clone, Copy)]
struct At<'a>(&'a [&'static str]);

macro_rules! values {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Found> {
            Err(Found::Value)
        }
    )*};
}

impl<'de> Deserializer<'de> for At<'_> {
    type Error = Found;

    values! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32
        deserialize_i64 deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32
        deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_unit
        deserialize_map deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Found> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Found> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Found> {
        visitor.visit_seq(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Found> {
        if self.0.is_empty() {
            return Err(Found::Fields(fields));
        }
        visitor.visit_map(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: V,
    ) -> Result<V::Value, Found> {
        Err(Found::Value)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Found> {
        Err(Found::Value)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        _: V,
    ) -> Result<V::Value, Found> {
        Err(Found::Value)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Found> {
        Err(Found::Value)
    }
}

/// A list whose first entry is at the same position.
impl<'de> SeqAccess<'de> for At<'_> {
    type Error = Found;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Found> {
        seed.deserialize(*self).map(Some)
    }
}

/// Shows the visitor a map with one key: the next field of the path. The structure at the end of
/// the path reports its fields.
impl<'de> MapAccess<'de> for At<'_> {
    type Error = Found;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Found> {
        let Some((field, _)) = self.0.split_first() else {
            return Ok(None);
        };
        let field: StrDeserializer<'_, Found> = field.into_deserializer();
        seed.deserialize(field).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Found> {
        let rest = self.0.split_first().map_or(self.0, |(_, rest)| rest);
        seed.deserialize(At(rest))
    }
}
