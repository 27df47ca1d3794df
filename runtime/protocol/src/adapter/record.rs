//! Parses the body of a response.

use super::DecodeError;
use crate::wire;

/// Parses the record of a response.
pub(super) fn record<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, DecodeError> {
    wire::read(body).map_err(|error| DecodeError::Record(error.to_string()))
}
