//! The schema of a strategy's parameters, from `describe`. Its form is checked now, so that later
//! versions of the runtime can use the schemas of today's modules.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

/// One parameter of a strategy.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Parameter {
    /// Its key in `strategy.params`.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ParameterType,
    /// A description for people.
    #[serde(default)]
    pub text: String,
    /// The value if the configuration does not set the parameter.
    #[serde(default)]
    pub default: Option<Value>,
    /// The smallest value.
    #[serde(default)]
    pub min: Option<Value>,
    /// The largest value.
    #[serde(default)]
    pub max: Option<Value>,
    /// The distance between two values in a sweep.
    #[serde(default)]
    pub step: Option<Value>,
    /// The values of a `choice`.
    #[serde(default)]
    pub choices: Vec<String>,
    /// Whether the configuration must set it.
    #[serde(default)]
    pub required: bool,
}

/// Type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterType {
    /// True or false.
    Bool,
    /// An integer within 53 bits.
    Integer,
    /// An exact decimal number.
    Decimal,
    /// A percentage: 0.5 is half a percent.
    Percent,
    /// A number that need not be exact.
    Float,
    /// A price on the grid of the first instrument.
    Price,
    /// A quantity on the grid of the first instrument.
    Quantity,
    /// Any text.
    Text,
    /// One of the listed values.
    Choice,
}

/// Integers up to this size are exact in every language.
const INTEGER_MAX: i64 = 1 << 53;

impl ParameterType {
    const fn is_number(self) -> bool {
        !matches!(self, Self::Bool | Self::Text | Self::Choice)
    }

    /// The value as a number; `None` if it does not have this type.
    fn number(self, value: &Value) -> Option<f64> {
        match (self, value) {
            (Self::Integer, value) => {
                let exact = -INTEGER_MAX..=INTEGER_MAX;
                let value = value.as_i64().filter(|value| exact.contains(value))?;
                Some(value as f64)
            }
            (_, Value::String(text)) => text.parse().ok().filter(|value: &f64| value.is_finite()),
            (_, value) => value.as_f64(),
        }
    }
}

/// Parses and checks a schema.
///
/// # Errors
/// The problem and its parameter.
pub(crate) fn read(schema: &Value) -> Result<Vec<Parameter>, String> {
    let all: Vec<Parameter> =
        serde_json::from_value(schema.clone()).map_err(|error| format!("params: {error}"))?;
    let mut names = BTreeSet::new();
    for one in &all {
        let wrong = |what: &str| Err(format!("params: {}: {what}", one.name));
        if one.name.is_empty() {
            return Err("params: a parameter has no name".to_owned());
        }
        if !names.insert(&one.name) {
            return wrong("is listed twice");
        }
        if let Err(what) = one.check() {
            return wrong(&what);
        }
    }
    Ok(all)
}

impl Parameter {
    fn check(&self) -> Result<(), String> {
        let bounds = [("min", &self.min), ("max", &self.max), ("step", &self.step)];
        let bounds = bounds.map(|(name, value)| (name, value.as_ref()));
        if (self.kind == ParameterType::Choice) == self.choices.is_empty() {
            return Err(
                "the type choice needs `choices`, and no other type may have it".to_owned(),
            );
        }
        if self.required && self.default.is_some() {
            return Err("a required parameter must not have a default".to_owned());
        }
        if !self.kind.is_number() {
            if let Some((name, _)) = bounds.iter().find(|(_, value)| value.is_some()) {
                return Err(format!("only numbers may have `{name}`"));
            }
            let fits = match (self.kind, &self.default) {
                (_, None) => true,
                (ParameterType::Bool, Some(value)) => value.is_boolean(),
                (ParameterType::Text, Some(value)) => value.is_string(),
                (_, Some(value)) => self.choices.iter().any(|word| value == word),
            };
            return fits
                .then_some(())
                .ok_or_else(|| "`default` does not have the type of the parameter".to_owned());
        }
        let number = |name: &str, value: Option<&Value>| match value {
            None => Ok(None),
            Some(value) => match self.kind.number(value) {
                None => Err(format!("`{name}` does not have the type of the parameter")),
                number => Ok(number),
            },
        };
        let default = number("default", self.default.as_ref())?;
        let [min, max, step] = bounds.map(|(name, value)| number(name, value));
        let (min, max) = (
            min?.unwrap_or(f64::NEG_INFINITY),
            max?.unwrap_or(f64::INFINITY),
        );
        if min > max {
            return Err("`min` is over `max`".to_owned());
        }
        if step?.is_some_and(|step| step <= 0.0) {
            return Err("`step` must be over 0".to_owned());
        }
        if default.is_some_and(|default| !(min..=max).contains(&default)) {
            return Err("`default` is out of the range from `min` to `max`".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_with_every_type_is_read() {
        let schema = json!([
            {"name": "qty", "type": "quantity", "required": true, "text": "Size of an order."},
            {"name": "fast", "type": "integer", "default": 10, "min": 1, "max": 500, "step": 5},
            {"name": "skew", "type": "decimal", "default": "0.10", "min": -1, "max": "1.5"},
            {"name": "stop", "type": "percent", "default": 0.5},
            {"name": "decay", "type": "float", "default": 1e-3},
            {"name": "limit", "type": "price"},
            {"name": "note", "type": "text", "default": ""},
            {"name": "quiet", "type": "bool", "default": false},
            {"name": "mode", "type": "choice", "choices": ["touch", "mid"], "default": "mid",
             "since": "a key of a later version"},
        ]);
        let read = read(&schema).unwrap();
        assert_eq!(read.len(), 9);
        assert_eq!(
            (read[1].kind, &read[1].step),
            (ParameterType::Integer, &Some(json!(5)))
        );
    }

    #[test]
    fn an_error_in_a_schema_names_its_position() {
        for (entry, says) in [
            (json!({"name": "", "type": "bool"}), "no name"),
            (json!({"type": "bool"}), "name"),
            (json!({"name": "a", "type": "money"}), "money"),
            (json!({"name": "a", "type": "choice"}), "choices"),
            (
                json!({"name": "a", "type": "text", "choices": ["b"]}),
                "choices",
            ),
            (
                json!({"name": "a", "type": "choice", "choices": ["b"], "default": "c"}),
                "default",
            ),
            (
                json!({"name": "a", "type": "bool", "default": 1}),
                "default",
            ),
            (json!({"name": "a", "type": "text", "min": 1}), "min"),
            (
                json!({"name": "a", "type": "integer", "default": 1.5}),
                "default",
            ),
            (
                json!({"name": "a", "type": "integer", "max": 9_007_199_254_740_993_i64}),
                "max",
            ),
            (
                json!({"name": "a", "type": "decimal", "default": "ten"}),
                "default",
            ),
            (
                json!({"name": "a", "type": "decimal", "default": "inf"}),
                "default",
            ),
            (
                json!({"name": "a", "type": "float", "min": 2, "max": 1}),
                "over",
            ),
            (json!({"name": "a", "type": "float", "step": 0}), "step"),
            (
                json!({"name": "a", "type": "integer", "min": 1, "default": 0}),
                "out of",
            ),
            (
                json!({"name": "a", "type": "integer", "default": 1, "required": true}),
                "required",
            ),
        ] {
            let error = read(&json!([entry])).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        let twice = json!([{"name": "a", "type": "bool"}, {"name": "a", "type": "text"}]);
        assert!(read(&twice).unwrap_err().contains("twice"));
        assert!(read(&json!({})).is_err());
    }
}
