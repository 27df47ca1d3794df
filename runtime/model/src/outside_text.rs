//! Text of a strategy, of the venue or of a file's name, made safe to show: no character of it can
//! control a terminal, begin a second line of a log, or reorder the letters of a page, and its
//! length is limited.
//!
//! Everything that prints such text uses this module. It must not be used on data that a program
//! compares or stores.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Longest message that is shown: a line of a log, a reason, an error of the venue. Bytes, before
/// the mark of the cut.
pub const MESSAGE_MAX: usize = 4096;
/// Longest name that is shown: a symbol, an asset, the name or version of a strategy. Bytes, before
/// the mark of the cut.
pub const NAME_MAX: usize = 256;

/// Whether a character acts on the reader's terminal or editor instead of being visible: control
/// characters (C0, DEL, C1), line separators, marks of the writing direction, and characters
/// without width.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// A message on one line: hidden characters are escaped, and it is cut at [`MESSAGE_MAX`].
///
/// ```
/// use windvane_model::outside_text::message;
///
/// assert_eq!(message("ok\u{1b}[2J\nerror: x"), r"ok\u{1b}[2J\nerror: x");
/// ```
pub fn message(text: &str) -> Cow<'_, str> {
    one_line(text, MESSAGE_MAX)
}

/// A name on one line: hidden characters are escaped, and it is cut at [`NAME_MAX`].
pub fn name(text: &str) -> Cow<'_, str> {
    one_line(text, NAME_MAX)
}

/// The text on one line: hidden characters are escaped, and after `max` bytes a mark follows that
/// states how many bytes of the text are missing.
pub fn one_line(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max && !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut line = OneLine::new(String::with_capacity(text.len().min(max) + 32), max);
    // A `String` takes everything.
    let _ = line.write_str(text);
    Cow::Owned(line.finish().unwrap_or_default())
}

/// Text of several lines: hidden characters other than the line feed are escaped. It is not cut.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| letter != '\n' && is_hidden(letter), escape)
}

/// JSON whose hidden characters are written as `\uXXXX`, so that it is the same value. White space
/// between values stays. The text must be valid JSON, in which such characters can only be inside
/// of strings.
pub fn json(text: &str) -> Cow<'_, str> {
    let is_space = |letter| matches!(letter, '\n' | '\r' | '\t');
    escaped(
        text,
        |letter| !is_space(letter) && is_hidden(letter),
        |out, letter| {
            let mut units = [0; 2];
            let mut units = letter.encode_utf16(&mut units).iter();
            units.try_for_each(|unit| write!(out, "\\u{unit:04x}"))
        },
    )
}

fn escaped(
    text: &str,
    is_escaped: impl Fn(char) -> bool,
    escape: impl Fn(&mut String, char) -> fmt::Result,
) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 32);
    for letter in text.chars() {
        if is_escaped(letter) {
            // A `String` takes everything.
            let _ = escape(&mut shown, letter);
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

fn escape(out: &mut impl Write, letter: char) -> fmt::Result {
    match letter {
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        other => write!(out, "{}", other.escape_unicode()),
    }
}

/// A writer that escapes and cuts what is written through it, without a copy of the whole text.
#[derive(Debug)]
pub struct OneLine<W> {
    out: W,
    left: usize,
    missing: usize,
}

impl<W: Write> OneLine<W> {
    /// A writer that passes on at most `max` bytes, and the escapes count as written.
    pub const fn new(out: W, max: usize) -> Self {
        Self {
            out,
            left: max,
            missing: 0,
        }
    }

    /// Writes the mark of the cut if text is missing, and returns the inner writer.
    ///
    /// # Errors
    /// The inner writer failed.
    pub fn finish(mut self) -> Result<W, fmt::Error> {
        if self.missing > 0 {
            write!(self.out, " [{} more bytes]", self.missing)?;
        }
        Ok(self.out)
    }
}

impl<W: Write> Write for OneLine<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut plain = 0;
        for (at, letter) in text.char_indices() {
            let is_hidden = is_hidden(letter);
            let size = if is_hidden {
                // `\u{e007f}` is the longest escape.
                letter.escape_unicode().len()
            } else {
                letter.len_utf8()
            };
            if self.missing > 0 || size > self.left {
                self.out.write_str(&text[plain..at])?;
                self.missing += text.len() - at;
                // Nothing after the cut is shown, also if it would fit.
                self.left = 0;
                return Ok(());
            }
            self.left -= size;
            if is_hidden {
                self.out.write_str(&text[plain..at])?;
                escape(&mut self.out, letter)?;
                plain = at + letter.len_utf8();
            }
        }
        self.out.write_str(&text[plain..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{0}\u{7}\u{1b}]0;x\u{7f}\u{9b}31m\r\n\t\u{202e}b\u{2066}c\u{200b}\u{feff}\u{e0041}\u{2028}é";

    #[test]
    fn no_hidden_character_is_left() {
        for shown in [message(HOSTILE), name(HOSTILE), one_line(HOSTILE, 1_000)] {
            assert!(!shown.chars().any(is_hidden), "{shown:?}");
            assert!(shown.starts_with("a\\u{0}\\u{7}\\u{1b}]0;x\\u{7f}\\u{9b}31m\\r\\n\\t"));
            assert!(shown.ends_with('é'), "{shown}");
        }
        assert_eq!(lines("a\r\nb\u{1b}"), "a\\r\nb\\u{1b}");
    }

    #[test]
    fn visible_text_is_borrowed() {
        for text in ["", "BTCUSDT", "Übermut 不 \u{1f600}"] {
            assert!(matches!(message(text), Cow::Borrowed(same) if same == text));
            assert!(matches!(lines(text), Cow::Borrowed(_)));
            assert!(matches!(json(text), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn a_long_text_is_cut_and_says_how_much_is_missing() {
        let long = "x".repeat(5_000);
        let shown = message(&long);
        assert_eq!(shown.len(), MESSAGE_MAX + " [904 more bytes]".len());
        assert!(shown.ends_with("x [904 more bytes]"));
        // An escape and a letter of several bytes are never cut in two.
        for max in 0..12 {
            let shown = one_line("é\u{1b}不", max);
            assert!(
                shown.len() <= max + " [8 more bytes]".len(),
                "{max}: {shown}"
            );
        }
        assert_eq!(one_line("é\u{1b}不", 2), "é [4 more bytes]");
        assert_eq!(one_line("ab", 2), "ab");
    }

    #[test]
    fn the_cut_counts_over_several_writes() {
        let mut line = OneLine::new(String::new(), 5);
        for part in ["abc", "\n", "d", "efg"] {
            line.write_str(part).unwrap();
        }
        assert_eq!(line.finish().unwrap(), "abc [5 more bytes]");
    }

    #[test]
    fn json_keeps_its_value() {
        let text = "{\"a\":\"\u{9b}\u{7f}\u{202e}\u{e0041}\",\n \"b\":1}";
        let shown = json(text);
        assert_eq!(
            shown,
            "{\"a\":\"\\u009b\\u007f\\u202e\\udb40\\udc41\",\n \"b\":1}"
        );
    }
}
