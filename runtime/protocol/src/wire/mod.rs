//! Requests and answers as types, one module per family. What is sent is a list of named texts in
//! a fixed order ([`Parameters`]); what is received is read leniently (spec 4, section 6): numbers
//! as numbers or text, unknown fields left out, unknown words carried.

pub mod answers;
pub mod chain;
pub mod common;
pub mod examples;
pub mod exchange;
pub mod futures;
pub mod info;
pub mod market;
pub mod scalar;
pub mod spot;
pub mod words;

mod fields;

use std::borrow::Cow;

pub use common::{Empty, SimpleResult};
pub use scalar::{Exact, Flag, Json, List, OneOrMany, Text, UpperFlag, Whole, Word};

/// The business parameters of a request: names and plain (not yet encoded) texts, in the order in
/// which they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(Cow<'static, str>, String)>);

impl Parameters {
    /// None yet.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds one at the end.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((Cow::Owned(name.into()), value.into()));
    }

    /// None yet, with room for so many.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// Adds one whose name is the documents', which is not copied.
    pub(crate) fn push_known(&mut self, name: &'static str, value: String) {
        self.0.push((Cow::Borrowed(name), value));
    }

    /// The value of the first parameter of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// All, in order.
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

/// Reads the body of a successful answer. An empty body is read as `null`, which the records of
/// routes that may answer nothing ([`SimpleResult`], [`Empty`]) take for success (spec 4,
/// section 6, point 11).
pub fn read<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, serde_json::Error> {
    let body = body.trim();
    serde_json::from_str(if body.is_empty() { "null" } else { body })
}

/// A request of one route: what is sent, and the type of what comes back.
pub trait Request {
    /// The route's name in the table ([`crate::route`]).
    const ROUTE: &'static str;
    /// Names of all parameters that it can send, in the documents' order.
    const NAMES: &'static [&'static str];
    /// The answer of a successful request; [`read`] decodes it.
    type Answer: serde::de::DeserializeOwned;
    /// Business parameters in the documents' order. Authentication is not among them.
    fn parameters(&self) -> Parameters;
}
