//! Typed access to the `params` of a strategy's configuration. Errors name the parameter, its value
//! and the rule.

use crate::instrument::Instrument;
use crate::json::Json;
use crate::number::{Amount, NumberError, Price, Qty, write_scaled};

/// The parameters of a strategy. A decimal may be text (`"0.01"`) or a number.
#[derive(Clone, Debug)]
pub struct Params {
    json: Json,
}

impl Params {
    /// Parses a JSON object. Empty input is an empty object.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let json = match bytes {
            [] => Json::Object(Vec::new()),
            bytes => Json::parse(bytes)?,
        };
        match json {
            Json::Object(_) => Ok(Self { json }),
            _ => Err("params is not a JSON object".to_owned()),
        }
    }

    /// Refuses unknown parameters, so that a typing error is noticed.
    pub fn only(&self, known: &[&str]) -> Result<(), String> {
        let Json::Object(entries) = &self.json else {
            return Ok(());
        };
        match entries
            .iter()
            .find(|(key, _)| !known.contains(&key.as_str()))
        {
            Some((key, _)) => Err(format!(
                "params.{key} is unknown; known are {}",
                known.join(", ")
            )),
            None => Ok(()),
        }
    }

    /// Whether a parameter is set.
    pub fn has(&self, key: &str) -> bool {
        !matches!(self.json.get(key), None | Some(Json::Null))
    }

    /// A text parameter, or `None` if it is not set.
    pub fn text(&self, key: &str) -> Result<Option<&str>, String> {
        match self.json.get(key) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::Text(text)) => Ok(Some(text)),
            Some(_) => Err(format!("params.{key} is not a text; write it in quotes")),
        }
    }

    /// One of several named values. The first one is the default.
    pub fn choice<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<T, String> {
        let text = self.text(key)?;
        let wanted = text.or_else(|| words.first().map(|(word, _)| *word));
        let found = words.iter().find(|(word, _)| Some(*word) == wanted);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            format!(
                "params.{key} = {:?} is not one of {}",
                text.unwrap_or(""),
                known.join(", ")
            )
        })
    }

    /// A boolean parameter, or `default` if it is not set.
    pub fn bool_or(&self, key: &str, default: bool) -> Result<bool, String> {
        match self.json.get(key) {
            None | Some(Json::Null) => Ok(default),
            Some(Json::Bool(value)) => Ok(*value),
            Some(_) => Err(format!("params.{key} is not true or false")),
        }
    }

    /// An integer within `range`, or `default` if it is not set.
    pub fn integer_or(
        &self,
        key: &str,
        default: i64,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<i64, String> {
        let Some(text) = self.scalar(key)? else {
            return Ok(default);
        };
        let value = text.parse().ok().filter(|value| range.contains(value));
        value.ok_or_else(|| {
            let (low, high) = (range.start(), range.end());
            format!("params.{key} = {text} is not an integer from {low} to {high}")
        })
    }

    /// An amount of money or a fraction, or `None` if it is not set.
    pub fn amount(&self, key: &str) -> Result<Option<Amount>, String> {
        let Some(text) = self.scalar(key)? else {
            return Ok(None);
        };
        Amount::parse(text)
            .map(Some)
            .map_err(|error| number_error(key, text, error))
    }

    /// A quantity that the instrument's rules allow.
    pub fn qty(&self, key: &str, instrument: &Instrument) -> Result<Qty, String> {
        self.qty_opt(key, instrument)?
            .ok_or_else(|| format!("params.{key} is missing; give a quantity, such as \"0.01\""))
    }

    /// A quantity that the instrument's rules allow, or `None` if it is not set.
    pub fn qty_opt(&self, key: &str, instrument: &Instrument) -> Result<Option<Qty>, String> {
        let Some(text) = self.scalar(key)? else {
            return Ok(None);
        };
        let qty = instrument
            .parse_qty(text)
            .map_err(|error| number_error(key, text, error))?;
        if instrument.floor_qty(qty) == Some(qty) {
            return Ok(Some(qty));
        }
        let mut rule = String::new();
        for (word, mantissa) in [
            ("step ", instrument.step),
            (", minimum ", instrument.min_qty),
            (", maximum ", instrument.max_qty),
        ] {
            rule.push_str(word);
            // Writing to a `String` cannot fail.
            let _ = write_scaled(&mut rule, mantissa, instrument.qty_scale);
        }
        Err(format!(
            "params.{key} = {text} is not a quantity of {} ({rule})",
            instrument.name
        ))
    }

    /// A price, or `None` if it is not set. It may be off the grid.
    pub fn price_opt(&self, key: &str, instrument: &Instrument) -> Result<Option<Price>, String> {
        let Some(text) = self.scalar(key)? else {
            return Ok(None);
        };
        let price = instrument.parse_price(text);
        price
            .map(Some)
            .map_err(|error| number_error(key, text, error))
    }

    fn scalar(&self, key: &str) -> Result<Option<&str>, String> {
        match self.json.get(key) {
            None | Some(Json::Null) => Ok(None),
            Some(value) => value
                .scalar()
                .map(Some)
                .ok_or_else(|| format!("params.{key} is not a number")),
        }
    }
}

fn number_error(key: &str, text: &str, error: NumberError) -> String {
    format!("params.{key} = {text} {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::instrument;

    fn params(json: &str) -> Params {
        Params::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn decimals_are_texts_or_numbers() {
        let i = instrument("futures:BTCUSDT", "0.1", "0.001");
        for json in [r#"{"qty":"0.01"}"#, r#"{"qty":0.01}"#, r#"{"qty":1e-2}"#] {
            assert_eq!(params(json).qty("qty", &i), Ok(Qty(10)), "{json}");
        }
    }

    #[test]
    fn errors_name_parameter_value_and_rule() {
        let i = instrument("futures:BTCUSDT", "0.1", "0.001");
        let error = |json: &str| params(json).qty("qty", &i).unwrap_err();
        assert_eq!(
            error(r#"{"qty":"0.0105"}"#),
            "params.qty = 0.0105 has more than 3 decimal places"
        );
        assert!(error(r#"{"qty":0}"#).contains("step 0.001"));
        assert!(error("{}").contains("missing"));
        assert!(error(r#"{"qty":true}"#).contains("not a number"));
        assert_eq!(
            params(r#"{"fast":0}"#).integer_or("fast", 10, 1..=500),
            Err("params.fast = 0 is not an integer from 1 to 500".to_owned())
        );
        assert_eq!(
            params(r#"{"qtty":1}"#).only(&["qty"]),
            Err("params.qtty is unknown; known are qty".to_owned())
        );
    }

    #[test]
    fn choices_default_to_the_first() {
        let words = [("touch", 1), ("mid", 2)];
        assert_eq!(params("{}").choice("reference", &words), Ok(1));
        assert_eq!(
            params(r#"{"reference":"mid"}"#).choice("reference", &words),
            Ok(2)
        );
        assert!(
            params(r#"{"reference":"x"}"#)
                .choice("reference", &words)
                .unwrap_err()
                .contains("touch, mid")
        );
    }

    #[test]
    fn only_an_object_is_taken() {
        assert!(Params::parse(b"").unwrap().text("x").unwrap().is_none());
        assert!(Params::parse(b"[]").is_err());
    }
}
