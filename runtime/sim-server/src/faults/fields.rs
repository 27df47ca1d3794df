//! Reads a JSON object field by field, so that a misspelt field is reported and not ignored.

use rust_decimal::Decimal;
use serde_json::{Map, Value};

/// An error in a body, written for the author of the body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FieldError {
    #[error("the body must be a JSON object: {0}")]
    Json(String),
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("{field} = {value}: must be {rule}")]
    Malformed {
        field: &'static str,
        value: String,
        rule: String,
    },
    #[error("unknown field {0}; CONTROL.md lists the fields of each switch")]
    Unknown(String),
}

/// The fields that have not been read yet.
#[derive(Debug)]
pub(crate) struct Fields {
    left: Map<String, Value>,
}

impl Fields {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, FieldError> {
        let parsed = serde_json::from_slice(body);
        let left = parsed.map_err(|error| FieldError::Json(error.to_string()))?;
        Ok(Self { left })
    }

    /// All fields, in the order of their names.
    pub(crate) fn all(&self) -> Map<String, Value> {
        self.left.clone()
    }

    fn take<T>(
        &mut self,
        field: &'static str,
        rule: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, FieldError> {
        match self.left.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match read(&value) {
                Some(read) => Ok(Some(read)),
                None => Err(FieldError::Malformed {
                    field,
                    value: value.to_string(),
                    rule: rule.to_owned(),
                }),
            },
        }
    }

    pub(crate) fn text(&mut self, field: &'static str) -> Result<Option<String>, FieldError> {
        self.take(field, "text", |value| value.as_str().map(str::to_owned))
    }

    pub(crate) fn boolean(&mut self, field: &'static str) -> Result<Option<bool>, FieldError> {
        self.take(field, "true or false", Value::as_bool)
    }

    pub(crate) fn whole(&mut self, field: &'static str) -> Result<Option<u64>, FieldError> {
        self.take(field, "a whole number, not negative", Value::as_u64)
    }

    pub(crate) fn signed(&mut self, field: &'static str) -> Result<Option<i64>, FieldError> {
        self.take(field, "a whole number", Value::as_i64)
    }

    /// A decimal as text or as a number.
    pub(crate) fn decimal(&mut self, field: &'static str) -> Result<Option<Decimal>, FieldError> {
        self.take(field, "a decimal", |value| match value {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.to_string().parse().ok(),
            _ => None,
        })
    }

    /// One of the given words.
    pub(crate) fn word<T: Copy>(
        &mut self,
        field: &'static str,
        values: &[(&str, T)],
    ) -> Result<Option<T>, FieldError> {
        let names: Vec<_> = values.iter().map(|(name, _)| *name).collect();
        let rule = format!("one of {}", names.join(", "));
        self.take(field, &rule, |value| {
            let text = value.as_str()?;
            let found = values.iter().find(|(name, _)| *name == text);
            found.map(|(_, word)| *word)
        })
    }

    /// Reports an error if a field was not read.
    pub(crate) fn finish(self) -> Result<(), FieldError> {
        match self.left.into_iter().next() {
            Some((name, _)) => Err(FieldError::Unknown(name)),
            None => Ok(()),
        }
    }
}

/// The value of a required field.
pub(crate) fn required<T>(
    field: &'static str,
    value: Result<Option<T>, FieldError>,
) -> Result<T, FieldError> {
    value?.ok_or(FieldError::Missing(field))
}
