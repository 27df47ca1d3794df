//! Errors of the venue: the table of codes ([`code`]), the error payload, and the classification of
//! whole HTTP responses ([`judge`]). Nothing here retries or waits: the caller decides that.

pub mod code;
mod judgement;

use std::fmt;

use serde::{Deserialize, Serialize};

use windvane_model::outside_text;

use crate::wire::Whole;
pub use code::{Class, ErrorCode};
pub use judgement::{Complaint, Judgement, Limit, Pause, judge};

/// The error payload of any route: `{code, msg}` (docs/interface/errors.md#error-payload). The code
/// is standardized, the text is not.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct VenueError {
    /// Negative. The wire has it as a number or as text.
    #[serde(deserialize_with = "whole")]
    pub code: i64,
    /// The venue's message; empty if it sent none.
    #[serde(default)]
    pub msg: String,
}

fn whole<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Whole::deserialize(deserializer).map(|whole| whole.0)
}

impl VenueError {
    /// The row of the table, if the documents list the code.
    pub fn row(&self) -> Option<&'static ErrorCode> {
        code::lookup(self.code)
    }

    /// The meaning of the code alone, for the sender of the request.
    pub fn class(&self) -> Class {
        code::class_of(self.code)
    }

    /// The next step for a person.
    pub fn advice(&self) -> &'static str {
        match (self.row(), self.class()) {
            (Some(row), _) => row.advice,
            (None, Class::Unknown) => "Ask for the order by its client order id first.",
            (None, _) => "The documents do not list this code: read the venue's own words.",
        }
    }
}

impl fmt::Display for VenueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.code)?;
        f.write_str(self.row().map_or("(not listed)", |row| row.name))?;
        // A trailing full stop would end up in the middle of a sentence.
        match self.msg.trim().trim_end_matches('.') {
            "" => Ok(()),
            words => write!(f, ": {}", outside_text::message(words)),
        }
    }
}

impl std::error::Error for VenueError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_venues_words_are_one_line_of_limited_length() {
        let hostile = |msg: &str| {
            let msg = msg.to_owned();
            VenueError { code: -1, msg }.to_string()
        };
        let text = hostile("a\n-2 b\u{1b}[2J\u{202e}");
        assert!(text.ends_with(r"a\n-2 b\u{1b}[2J\u{202e}"), "{text}");
        assert!(hostile(&"x".repeat(1 << 20)).len() < 4_200);
    }

    #[test]
    fn a_code_is_read_as_number_and_as_text() {
        for text in [
            r#"{"code":-1121,"msg":"Invalid symbol."}"#,
            r#"{"msg":"Invalid symbol.","code":"-1121","data":[1]}"#,
        ] {
            let error: VenueError = serde_json::from_str(text).unwrap();
            assert_eq!(error.row(), Some(&code::BAD_SYMBOL));
            assert_eq!(error.to_string(), "-1121 BAD_SYMBOL: Invalid symbol");
        }
        let silent: VenueError = serde_json::from_str(r#"{"code":-9}"#).unwrap();
        assert_eq!(silent.to_string(), "-9 (not listed)");
        assert!(silent.advice().contains("do not list"));
    }
}
