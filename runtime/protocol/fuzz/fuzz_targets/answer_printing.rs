//! The printing of responses, as `windvane call` and `windvane watch` do it, from any bytes. There
//! is no panic, the printed text is not much longer than the response, it has no character that
//! controls a terminal, and it is the same JSON value.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use windvane_model::outside_text::{self, is_hidden};
use windvane_protocol::json_text::{DEPTH_MAX, depth, indented};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let indented = indented(&text);
    if let Some(indented) = &indented {
        assert!(indented.len() <= text.len() * 8 + (64 << 10) + 2 * DEPTH_MAX + 8);
    }
    let Ok(value) = serde_json::from_str::<Value>(&text) else {
        return;
    };
    assert!(depth(&text) <= DEPTH_MAX);
    for shown in [Some(&*text), indented.as_deref()].into_iter().flatten() {
        let shown = outside_text::json(shown);
        let is_space = |letter| matches!(letter, '\n' | '\r' | '\t');
        assert!(!shown.chars().any(|letter| !is_space(letter) && is_hidden(letter)));
        assert_eq!(serde_json::from_str::<Value>(&shown).ok().as_ref(), Some(&value));
    }
});
