//! The list of orders in a batch request. It is read without any freedom that another reader of JSON
//! could use differently: each entry is an object, each value is text, no name occurs twice, and no
//! character is escaped.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

/// The most entries of a batch (docs/interface/orders.md#place-several-orders).
const ENTRIES_MAX: usize = 5;

/// Name and value of each parameter of an order, in the order of the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a>(pub Vec<(&'a str, &'a str)>);

impl<'de> Deserialize<'de> for Entry<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Entry<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object whose values are text")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry<'de>, A::Error> {
                let mut pairs = Vec::with_capacity(16);
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Entry(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// Reads the value of `batchOrders`.
///
/// # Errors
/// What is wrong with the text.
pub(crate) fn read(text: &str) -> Result<Vec<Entry<'_>>, String> {
    // Another program could read such text in another way. This program never sends it.
    if !text.is_ascii() || text.contains('\\') {
        return Err("batchOrders has a character that is escaped or not ASCII".to_owned());
    }
    let entries: Vec<Entry<'_>> =
        serde_json::from_str(text).map_err(|error| format!("batchOrders: {error}"))?;
    if entries.is_empty() || entries.len() > ENTRIES_MAX {
        return Err(format!("a batch must have 1 to {ENTRIES_MAX} orders"));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_of_plain_text_are_read() {
        let one = read(r#"[{"symbol":"A","side":"BUY"}]"#).unwrap();
        assert_eq!(one, [Entry(vec![("symbol", "A"), ("side", "BUY")])]);
        for text in [
            "",
            "[]",
            "{}",
            "[[]]",
            r#"[["A","BUY","LIMIT"]]"#,
            r#"[{"quantity":1}]"#,
            r#"[{"price":null}]"#,
            r#"[{"reduceOnly":true}]"#,
            r#"[{"symbol":"\u0041"}]"#,
            r#"[{"symbol":"Ä"}]"#,
            r#"[{"symbol":"A"}] x"#,
            "[{},{},{},{},{},{}]",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
