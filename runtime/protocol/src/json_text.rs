//! JSON as text, for people: indentation, with bounds. A response may be hostile: 200 KB of nested
//! brackets would need 20 GB of spaces.

/// Deepest nesting of arrays and objects that is accepted. The decoder of the typed responses has
/// the same limit.
pub const DEPTH_MAX: usize = 128;

/// Indented text may be this many times longer than the text itself, and [`GROWTH_FREE`] bytes more.
const GROWTH_MAX: usize = 8;
const GROWTH_FREE: usize = 64 << 10;

/// The deepest nesting of arrays and objects in JSON. The text needs not be valid. Memory use does
/// not depend on it.
pub fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut state = InText::default();
    for byte in text.bytes() {
        if state.is_inside(char::from(byte)) {
            continue;
        }
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Whether a position is inside of a string.
#[derive(Default)]
struct InText {
    inside: bool,
    escaped: bool,
}

impl InText {
    /// Takes the next letter, and returns whether it belongs to a string or is a quote.
    const fn is_inside(&mut self, letter: char) -> bool {
        if !self.inside {
            self.inside = letter == '"';
            return self.inside;
        }
        self.inside = letter != '"' || self.escaped;
        self.escaped = letter == '\\' && !self.escaped;
        true
    }
}

/// Adds line breaks and indentation to valid JSON. Numbers keep their text. `None` if it is nested
/// deeper than [`DEPTH_MAX`], or if the result would be far longer than the text.
///
/// ```
/// use windvane_protocol::json_text::indented;
///
/// assert_eq!(indented(r#"{"a":[1.10]}"#).as_deref(), Some("{\n  \"a\": [\n    1.10\n  ]\n}"));
/// assert_eq!(indented(&"[".repeat(200_000)), None);
/// ```
pub fn indented(text: &str) -> Option<String> {
    let length_max = text.len().saturating_mul(GROWTH_MAX) + GROWTH_FREE;
    let mut indented = String::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let mut state = InText::default();
    let mut letters = text.chars().peekable();
    let new_line = |indented: &mut String, depth: usize| {
        indented.push('\n');
        indented.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(letter) = letters.next() {
        if depth > DEPTH_MAX || indented.len() > length_max {
            return None;
        }
        if state.is_inside(letter) {
            indented.push(letter);
            continue;
        }
        match letter {
            '{' | '[' => {
                indented.push(letter);
                while letters.next_if(|next| next.is_whitespace()).is_some() {}
                if let Some(end) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    indented.push(end);
                } else {
                    depth += 1;
                    new_line(&mut indented, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut indented, depth);
                indented.push(letter);
            }
            ',' => {
                indented.push(letter);
                new_line(&mut indented, depth);
            }
            ':' => indented.push_str(": "),
            blank if blank.is_whitespace() => {}
            other => indented.push(other),
        }
    }
    Some(indented)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indentation_keeps_every_token() {
        let text = r#"{"a":[1.10,{"b":"x,\"{}:\\"}],"c":{},"d":[ ], "e":12345678901234567890.000}"#;
        let indented = indented(text).unwrap();
        assert!(indented.contains("12345678901234567890.000"), "{indented}");
        assert!(indented.contains(r#""b": "x,\"{}:\\""#), "{indented}");
        assert!(indented.contains("\"c\": {},\n  \"d\": []"), "{indented}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&indented), read(text));
    }

    #[test]
    fn depth_ignores_brackets_in_strings() {
        assert_eq!(depth(""), 0);
        assert_eq!(depth("1"), 0);
        assert_eq!(depth(r#"{"a":[[],"[[[[\"[[[\\"],"b":{}}"#), 3);
        assert_eq!(depth(r#"["\\",[]]"#), 2);
        assert_eq!(depth("]]]]["), 1);
    }

    #[test]
    fn nested_brackets_are_not_indented() {
        for count in [DEPTH_MAX + 2, 100_000] {
            let text = "[".repeat(count) + &"]".repeat(count);
            assert_eq!((depth(&text), indented(&text)), (count, None));
        }
    }

    #[test]
    fn a_flat_list_far_inside_does_not_grow_without_bound() {
        let text = "[".repeat(100) + &"1,".repeat(1_000_000) + "1" + &"]".repeat(100);
        assert_eq!(indented(&text), None);
    }
}
