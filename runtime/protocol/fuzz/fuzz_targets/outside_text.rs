//! Escaping and cutting of any text. There is no panic, no hidden character is left, the length is
//! limited, and a text in several parts gives the same line as the whole one.
//!
//! Input: two bytes for the limit, one for the place of the split, then the text.

#![no_main]

use std::fmt::Write;

use libfuzzer_sys::fuzz_target;
use windvane_model::outside_text::{OneLine, is_hidden, lines, message, name, one_line};

fuzz_target!(|data: &[u8]| {
    let [high, low, split, text @ ..] = data else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    let max = usize::from(u16::from_be_bytes([*high, *low]));
    let shown = one_line(&text, max);
    assert!(!shown.chars().any(is_hidden));
    assert!(shown.len() <= max + " [18446744073709551615 more bytes]".len());
    if !text.chars().any(is_hidden) {
        // A text can be the mark of its own cut, so a cut text may look whole.
        assert!(shown == text || text.len() > max);
    }
    assert!(!message(&text).chars().any(is_hidden));
    assert!(!name(&text).chars().any(is_hidden));
    assert!(!lines(&text).chars().any(|letter| letter != '\n' && is_hidden(letter)));

    let mut at = usize::from(*split).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let mut line = OneLine::new(String::new(), max);
    for part in [&text[..at], &text[at..]] {
        // A `String` takes everything.
        let _ = line.write_str(part);
    }
    assert_eq!(line.finish().unwrap_or_default(), shown);
});
