//! Requests and responses as types, one module per family. A request is a list of named texts in a
//! fixed order ([`Parameters`]). A response is parsed leniently
//! (docs/interface/README.md#10-numbers-and-flags-as-text): numbers may be numbers or text, unknown
//! fields are ignored, unknown enum values are kept as text.

pub mod answers;
pub mod chain;
pub mod common;
pub mod enums;
pub mod exchange;
pub mod futures;
pub mod info;
pub mod market;
pub mod scalar;
pub mod spot;

mod fields;

use std::borrow::Cow;

pub use common::{Empty, SimpleResult};
pub use scalar::{Exact, Flag, Json, List, OneOrMany, Text, UpperFlag, Whole, Word};

/// The business parameters of a request: names and plain (not yet encoded) texts, in the order in
/// which they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(Cow<'static, str>, String)>);

impl Parameters {
    /// An empty list.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a parameter at the end.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((Cow::Owned(name.into()), value.into()));
    }

    /// An empty list with capacity for `count` parameters.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// Adds a parameter whose name is a constant, so that the name is not copied.
    pub(crate) fn push_known(&mut self, name: &'static str, value: String) {
        self.0.push((Cow::Borrowed(name), value));
    }

    /// The value of the first parameter of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// All parameters, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_str()))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Parameters {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        Self(
            pairs
                .map(|(name, value)| (Cow::Owned(name.into()), value.into()))
                .collect(),
        )
    }
}

/// Parses the body of a successful response. An empty body is parsed as `null`. The records of
/// routes that may send an empty body ([`SimpleResult`], [`Empty`]) accept `null` as success
/// (docs/interface/README.md#11-html-and-empty-bodies).
pub fn read<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, serde_json::Error> {
    let body = body.trim();
    serde_json::from_str(if body.is_empty() { "null" } else { body })
}

/// A request of one route: its parameters and the type of its response.
pub trait Request {
    /// The route's name in the table ([`crate::route`]).
    const ROUTE: &'static str;
    /// Names of all parameters that the request can send, in the documents' order.
    const NAMES: &'static [&'static str];
    /// The type of a successful response; [`read`] parses it.
    type Answer: serde::de::DeserializeOwned;
    /// Business parameters in the documents' order, without those of the authentication.
    fn parameters(&self) -> Parameters;
}
