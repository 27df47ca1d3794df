//! Changes the form of responses and user events: fields, keys, white space and the format of
//! numbers.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{
    AccountTime, CanTrade, Choices, DecimalForm, KeyOrder, LeverageForm, Spacing, UnknownFields,
};

/// The field that is added to objects.
const UNKNOWN: &str = "zzAdded";
/// Objects whose keys are data, so nothing is added to them.
const MAPS: [&str; 2] = ["adlQuantile", UNKNOWN];
/// Text fields that may look like numbers but are names.
const NAMES: [&str; 9] = [
    "clientOrderId",
    "c",
    "leverage",
    "code",
    "tradeId",
    "info",
    "id",
    "orderId",
    "countdownTime",
];
/// Decimals of padded numbers.
const PADDED: u32 = 8;

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    /// The response of a route.
    Route(&'a str),
    /// A user event.
    Event,
    /// An error.
    Error,
}

/// Converts a text to the form that the venue's choices demand.
pub(crate) fn shape(choices: &Choices, subject: Subject<'_>, text: String) -> String {
    if is_usual(choices) {
        return text;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(&text) else {
        return text;
    };
    if let Subject::Route(route) = subject {
        account_fields(choices, route, &mut value);
    }
    if choices.of::<DecimalForm>() == DecimalForm::Padded && subject != Subject::Error {
        pad(&mut value);
    }
    if choices.of::<UnknownFields>() == UnknownFields::Added {
        add_unknown(&mut value);
    }
    let reversed = choices.of::<KeyOrder>() == KeyOrder::Reversed;
    let spaced = choices.of::<Spacing>() == Spacing::Spaced;
    let mut written = String::with_capacity(text.len() * 2);
    write(&value, reversed, spaced, &mut written);
    written
}

fn is_usual(choices: &Choices) -> bool {
    choices.of::<UnknownFields>() == UnknownFields::None
        && choices.of::<KeyOrder>() == KeyOrder::Usual
        && choices.of::<Spacing>() == Spacing::Compact
        && choices.of::<DecimalForm>() == DecimalForm::Shortest
        && choices.of::<LeverageForm>() == LeverageForm::Text
        && choices.of::<CanTrade>() == CanTrade::Present
        && choices.of::<AccountTime>() == AccountTime::Set
}

/// Changes fields in the responses of account and position routes.
fn account_fields(choices: &Choices, route: &str, value: &mut Value) {
    let own = route.split_once('.').map_or("", |(_, own)| own);
    if !["account", "earlier_account", "balance", "position_risk"].contains(&own) {
        return;
    }
    if choices.of::<CanTrade>() == CanTrade::Absent
        && let Some(account) = value.as_object_mut()
    {
        account.remove("canTrade");
    }
    let (time, leverage) = (choices.of::<AccountTime>(), choices.of::<LeverageForm>());
    each_object(value, &mut |object| {
        match time {
            AccountTime::Set => {}
            AccountTime::Zero => {
                if let Some(field) = object.get_mut("updateTime") {
                    *field = json!(0);
                }
            }
            AccountTime::Absent => {
                object.remove("updateTime");
            }
        }
        if leverage == LeverageForm::Number
            && let Some(field) = object.get_mut("leverage")
            && let Some(number) = field.as_str().and_then(|text| text.parse::<i64>().ok())
        {
            *field = json!(number);
        }
    });
}

fn each_object(value: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Array(list) => {
            for entry in list {
                each_object(entry, change);
            }
        }
        Value::Object(object) => {
            change(object);
            for (name, entry) in object {
                if !MAPS.contains(&name.as_str()) {
                    each_object(entry, change);
                }
            }
        }
        _ => {}
    }
}

fn add_unknown(value: &mut Value) {
    each_object(value, &mut |object| {
        let added = json!({ "list": [1, "x", null], "text": "}{\"e\":\"" });
        object.insert(UNKNOWN.to_owned(), added);
    });
}

/// Pads decimal text to eight decimals.
fn pad(value: &mut Value) {
    each_object(value, &mut |object| {
        for (name, field) in object {
            let text = field.as_str().filter(|_| !NAMES.contains(&name.as_str()));
            let decimal = text.and_then(|text| text.parse::<windvane_model::Decimal>().ok());
            if let Some(mut decimal) = decimal {
                decimal.rescale(decimal.scale().max(PADDED));
                *field = Value::String(decimal.to_string());
            }
        }
    });
}

fn write(value: &Value, reversed: bool, spaced: bool, out: &mut String) {
    let gap = if spaced { "\n  " } else { "" };
    match value {
        Value::Array(list) => {
            out.push('[');
            for (n, entry) in list.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                out.push_str(gap);
                write(entry, reversed, spaced, out);
            }
            out.push_str(gap);
            out.push(']');
        }
        Value::Object(object) => {
            let mut fields: Vec<_> = object.iter().collect();
            if reversed {
                fields.reverse();
            }
            out.push('{');
            for (n, (name, entry)) in fields.into_iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                out.push_str(gap);
                // Writing to a string cannot fail.
                let _ = write!(out, "{}", Value::String(name.clone()));
                out.push_str(if spaced { " : " } else { ":" });
                write(entry, reversed, spaced, out);
            }
            out.push_str(gap);
            out.push('}');
        }
        plain => {
            let _ = write!(out, "{plain}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_changes_and_the_meaning_stays() {
        let text = r#"{"a":"1.5","b":[{"c":"2","d":3}],"e":"ORDER"}"#;
        let shaped = |chosen: &[(&str, &str)]| {
            let choices = Choices::new(chosen.iter().copied()).unwrap();
            shape(&choices, Subject::Event, text.to_owned())
        };
        assert_eq!(shaped(&[]), text);
        let reversed = shaped(&[("key-order", "reversed")]);
        assert_eq!(reversed, r#"{"e":"ORDER","b":[{"d":3,"c":"2"}],"a":"1.5"}"#);
        let spaced = shaped(&[("json-spacing", "spaced")]);
        assert!(spaced.contains("\"a\" : \"1.5\""), "{spaced}");
        let same: Value = serde_json::from_str(&spaced).unwrap();
        assert_eq!(same, serde_json::from_str::<Value>(text).unwrap());
        assert!(shaped(&[("decimal-form", "padded")]).contains("\"1.50000000\""));
        let added = shaped(&[("unknown-fields", "added")]);
        assert_eq!(added.matches(UNKNOWN).count(), 2, "{added}");
    }
}
