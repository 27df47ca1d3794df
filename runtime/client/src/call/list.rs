//! Checks lists among the arguments, entry by entry: orders of a batch, and ids
//! (docs/interface/orders.md#place-several-orders, docs/interface/orders.md#cancel-several-orders,
//! docs/interface/orders.md#cancel-all-open-orders).
//!
//! This module must never change a list: it checks the list, and the client sends it as written.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use windvane_protocol::route::{BATCH_ORDER, Bounds, Kind, Need, Param, Surface};

use super::error::{CallError, nearest};
use super::order_type::check_type;
use super::value::{self, check, refuse};

/// Checks that `text` is a valid list for the parameter. An empty list is refused: no document
/// states whether a venue would apply it to nothing or to everything.
pub(super) fn check_list(surface: Surface, param: &Param, text: &str) -> Result<(), CallError> {
    let rule = || value::rule(param);
    let list: Result<Vec<&RawValue>, _> = serde_json::from_str(text);
    let Ok(list) = list else {
        return Err(refuse(param.name, text, rule()));
    };
    if list.is_empty() {
        let rule = format!("{} with at least one", rule());
        return Err(refuse(param.name, text, rule));
    }
    if let Bounds::Entries(most) = param.bounds
        && list.len() > most
    {
        return Err(CallError::TooMany {
            name: param.name,
            entries: list.len(),
            most,
        });
    }
    for (index, entry) in list.iter().enumerate() {
        let place = format!("{}[{index}]", param.name);
        match param.name {
            "batchOrders" => check_order(&place, entry.get())?,
            "orderIdList" => check_order_id(&place, entry.get())?,
            _ => check_client_id(surface, &place, entry.get())?,
        }
    }
    Ok(())
}

fn check_order_id(place: &str, entry: &str) -> Result<(), CallError> {
    if entry.parse::<i64>().is_ok() {
        return Ok(());
    }
    Err(refuse(place, entry, "an integer, not in quotes".to_owned()))
}

fn check_client_id(surface: Surface, place: &str, entry: &str) -> Result<(), CallError> {
    let Ok(id) = serde_json::from_str::<String>(entry) else {
        return Err(refuse(place, entry, "a text in double quotes".to_owned()));
    };
    let id_rule = Param {
        name: "origClientOrderId",
        kind: Kind::String,
        need: Need::Required,
        // The documents state the characters only for futures, and the length for both surfaces.
        bounds: match surface {
            Surface::Futures => Bounds::ClientOrderId,
            _ => Bounds::Length(1, 36),
        },
        default: None,
        only: None,
    };
    check(&id_rule, &id).map_err(|error| error.inside(place))
}

/// Checks one order of a batch by the rules of a single order.
fn check_order(place: &str, entry: &str) -> Result<(), CallError> {
    let Ok(Fields(fields)) = serde_json::from_str(entry) else {
        let rule = "a JSON object of an order's parameters".to_owned();
        return Err(refuse(place, entry, rule));
    };
    let mut given: Vec<(&str, String)> = Vec::new();
    for (name, raw) in &fields {
        let inside = format!("{place}.{name}");
        let Some(param) = BATCH_ORDER.iter().find(|param| param.name == name) else {
            return Err(CallError::NoParameter {
                route: place.to_owned(),
                name: name.clone(),
                nearest: nearest(name, BATCH_ORDER.iter().map(|param| param.name))
                    .unwrap_or_default(),
            });
        };
        if given.iter().any(|(known, _)| known == name) {
            return Err(CallError::Twice { name: inside });
        }
        let Some(text) = plain_text(param.kind, raw.get()) else {
            return Err(refuse(&inside, raw.get(), value::rule(param)));
        };
        check(param, &text).map_err(|error| error.inside(&inside))?;
        given.push((param.name, text));
    }
    let get = |name: &str| {
        let found = given.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| text.as_str())
    };
    for param in BATCH_ORDER {
        if param.need == Need::Required && get(param.name).is_none() {
            return Err(CallError::MissingInEntry {
                entry: place.to_owned(),
                name: param.name,
                rule: value::rule(param),
            });
        }
    }
    check_type(place, Surface::Futures, get)
}

/// Converts a value into the text that a single order would have in its place. Every type may be
/// JSON text; numbers and flags may also be without quotes.
fn plain_text(kind: Kind, raw: &str) -> Option<String> {
    let is_bare = match kind {
        Kind::Decimal | Kind::Long | Kind::Int => {
            raw.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        }
        Kind::Boolean => matches!(raw, "true" | "false"),
        Kind::String | Kind::Enum(_) | Kind::List | Kind::Address => false,
    };
    if is_bare {
        return Some(raw.to_owned());
    }
    serde_json::from_str(raw).ok()
}

/// The fields of a JSON object in the written order, including duplicates.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(InOrder).map(Self)
    }
}
