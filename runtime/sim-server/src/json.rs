//! Writes JSON member by member, in the order in which a service writes it. Values are numbers,
//! words of the interface and symbols, which need no escaping. Text from elsewhere must go through
//! `serde_json` first.

use std::fmt::{Display, Write as _};

/// An object being written.
#[derive(Debug)]
pub(crate) struct Json(String);

impl Json {
    /// An object without members.
    pub(crate) fn new() -> Self {
        Self("{".to_owned())
    }

    /// An object with this capacity in bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        text.push('{');
        Self(text)
    }

    /// A member in quotes.
    #[must_use]
    pub(crate) fn text(mut self, key: &str, value: impl Display) -> Self {
        self.key(key);
        // Writing to a String cannot fail. This applies to all writes below.
        let _ = write!(self.0, "\"{value}\"");
        self
    }

    /// A member without quotes: a number, a boolean, or JSON.
    #[must_use]
    pub(crate) fn plain(mut self, key: &str, value: impl Display) -> Self {
        self.key(key);
        let _ = write!(self.0, "{value}");
        self
    }

    /// A member that is a list of JSON values.
    #[must_use]
    pub(crate) fn list<T: Display>(
        mut self,
        key: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        self.key(key);
        write_list(&mut self.0, values);
        self
    }

    /// The finished text.
    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
    }
}

/// A list of JSON values.
pub(crate) fn list<T: Display>(values: impl IntoIterator<Item = T>) -> String {
    let mut text = String::new();
    write_list(&mut text, values);
    text
}

fn write_list<T: Display>(text: &mut String, values: impl IntoIterator<Item = T>) {
    text.push('[');
    for (n, value) in values.into_iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        let _ = write!(text, "{value}");
    }
    text.push(']');
}

/// A value in quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quoted<T>(pub(crate) T);

impl<T: Display> Display for Quoted<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order() {
        let text = Json::new()
            .text("s", "BTCUSDT")
            .plain("u", 5)
            .list("b", [Quoted(1), Quoted(2)])
            .plain("m", true)
            .end();
        assert_eq!(text, r#"{"s":"BTCUSDT","u":5,"b":["1","2"],"m":true}"#);
        assert_eq!(Json::new().end(), "{}");
        assert_eq!(list::<u8>([]), "[]");
    }
}
