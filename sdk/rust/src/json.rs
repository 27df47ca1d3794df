//! A minimal JSON parser for the contract. Numbers stay text, so that 0.01 is exact. Common JSON
//! libraries convert numbers to binary fractions, and are larger than a whole strategy.

use std::fmt::Write as _;

/// A JSON value. Numbers keep their text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Deeper nesting is refused. The contract needs four levels.
const DEPTH_MAX: u32 = 32;

impl Json {
    /// Parses one value. An error states the position.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "JSON is not UTF-8".to_owned())?;
        let mut parser = Parser { text, at: 0 };
        let value = parser.value(0)?;
        parser.skip_space();
        if parser.at == text.len() {
            Ok(value)
        } else {
            Err(parser.error("end of text"))
        }
    }

    /// The value of a key in an object.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(entries) => entries.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The text of a number or of a string, because decimals may be either.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match self {
            Self::Number(text) | Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Appends `text` as a JSON string.
pub(crate) fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                // Writing to a `String` cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn error(&self, wanted: &str) -> String {
        format!("JSON: {wanted} expected at byte {}", self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Consumes `byte` after optional white space. Returns false and consumes nothing if another
    /// byte follows.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, String> {
        if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.error("a value"))
        }
    }

    fn value(&mut self, depth: u32) -> Result<Json, String> {
        if depth == DEPTH_MAX {
            return Err(self.error("less nesting"));
        }
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Json::Text),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(b'-' | b'0'..=b'9') => Ok(self.number()),
            _ => Err(self.error("a value")),
        }
    }

    fn number(&mut self) -> Json {
        let start = self.at;
        while matches!(
            self.peek(),
            Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')
        ) {
            self.at += 1;
        }
        Json::Number(self.text[start..self.at].to_owned())
    }

    fn object(&mut self, depth: u32) -> Result<Json, String> {
        self.at += 1;
        let mut entries = Vec::new();
        if self.take(b'}') {
            return Ok(Json::Object(entries));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.error("a key"));
            }
            let key = self.string()?;
            if !self.take(b':') {
                return Err(self.error("':'"));
            }
            entries.push((key, self.value(depth + 1)?));
            if self.take(b'}') {
                return Ok(Json::Object(entries));
            }
            if !self.take(b',') {
                return Err(self.error("',' or '}'"));
            }
        }
    }

    fn list(&mut self, depth: u32) -> Result<Json, String> {
        self.at += 1;
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Ok(Json::List(items));
            }
            if !self.take(b',') {
                return Err(self.error("',' or ']'"));
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(end) = rest.find(['"', '\\']) else {
                return Err(self.error("'\"'"));
            };
            out.push_str(&rest[..end]);
            self.at += end + 1;
            if rest.as_bytes()[end] == b'"' {
                return Ok(out);
            }
            out.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let byte = self.peek().ok_or_else(|| self.error("an escape"))?;
        let c = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return Err(self.error("an escape")),
        };
        self.at += 1;
        Ok(c)
    }

    /// Reads `uXXXX`, or a pair of surrogates.
    fn unicode(&mut self) -> Result<char, String> {
        let high = self.hex4()?;
        let code = if (0xd800..0xdc00).contains(&high) {
            if !self.text[self.at..].starts_with("\\u") {
                return Err(self.error("a low surrogate"));
            }
            self.at += 1;
            let low = self.hex4()?;
            0x1_0000 + ((high - 0xd800) << 10) + (low.wrapping_sub(0xdc00) & 0x3ff)
        } else {
            high
        };
        char::from_u32(code).ok_or_else(|| self.error("a character"))
    }

    fn hex4(&mut self) -> Result<u32, String> {
        let digits = self.text.get(self.at + 1..self.at + 5);
        let code = digits.and_then(|d| u32::from_str_radix(d, 16).ok());
        self.at += 5;
        code.ok_or_else(|| format!("JSON: four hex digits expected at byte {}", self.at - 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_keep_their_text() {
        let json = Json::parse(br#" {"qty": 0.010, "n": -1e5, "s": "0.01"} "#).unwrap();
        assert_eq!(json.get("qty").unwrap().scalar(), Some("0.010"));
        assert_eq!(json.get("n").unwrap().scalar(), Some("-1e5"));
        assert_eq!(json.get("s").unwrap().scalar(), Some("0.01"));
    }

    #[test]
    fn nested_values_and_escapes() {
        let json = Json::parse(br#"{"a":[1,true,null,{}],"b":"\u0041\n\ud83d\ude00\""}"#).unwrap();
        assert_eq!(
            json.get("b"),
            Some(&Json::Text("A\n\u{1f600}\"".to_owned()))
        );
        let Some(Json::List(items)) = json.get("a") else {
            panic!("`a` must be a list");
        };
        assert_eq!(items.len(), 4);
    }

    #[test]
    fn broken_text_is_refused_with_its_place() {
        for bad in [
            "",
            "{",
            "{\"a\"}",
            "[1,]",
            "tru",
            "\"a",
            "1 2",
            "\"\\x\"",
            "\"\\u12\"",
            "{1:2}",
        ] {
            assert!(Json::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(Json::parse("[".repeat(100_000).as_bytes()).is_err());
        assert!(Json::parse(&[b'"', 0xff, b'"']).is_err());
    }

    proptest! {
        #[test]
        fn written_text_reads_back(text: String) {
            let mut out = String::new();
            write_text(&mut out, &text);
            prop_assert_eq!(Json::parse(out.as_bytes()), Ok(Json::Text(text)));
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = Json::parse(&bytes);
        }

        #[test]
        fn no_almost_json_panics(text in "[\\[\\]{}\",:\\\\u0-9a-f ]{0,40}") {
            let _ = Json::parse(text.as_bytes());
        }
    }
}
