//! Frames of user and market streams, from any bytes: no panic, an envelope changes nothing, and
//! the fast scanner agrees with the general parser.
//!
//! Input: the frame as text. The first byte selects the surface and is not part of the frame.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windvane_model::Surface;
use windvane_protocol::user_stream::{self, UserStreamEvent};
use windvane_protocol::{BookLevels, Frame, decode, market_stream};

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    let surface = if first % 2 == 0 {
        Surface::Spot
    } else {
        Surface::Futures
    };
    user(surface, text);
    market(text);
});

fn user(surface: Surface, text: &str) {
    let event = user_stream::decode(surface, text);
    let Ok(event) = event else {
        return;
    };
    let _ = event.event_ms();
    if !matches!(event, UserStreamEvent::Other(_)) {
        let wrapped = format!("{{\"stream\":\"key\",\"data\":{}}}", text.trim());
        // A frame that is itself an envelope is not unwrapped twice.
        if !text.contains("data") && !text.contains('\\') {
            assert_eq!(user_stream::decode(surface, &wrapped), Ok(event));
        }
    }
}

fn market(text: &str) {
    let (mut fast_levels, mut slow_levels) = (BookLevels::default(), BookLevels::default());
    let _ = market_stream::decode(text, &mut fast_levels);
    let fast = decode(text.as_bytes(), &mut fast_levels);
    // White space at the start makes the scanner refuse the frame.
    let spaced = format!(" {text}");
    let slow = decode(spaced.as_bytes(), &mut slow_levels);
    match (fast, slow) {
        (Ok(fast), Ok(slow)) => {
            // Exchange information is passed on as text, with its white space, so the texts differ.
            if !matches!(fast.frame, Frame::ExchangeInfo(_)) {
                assert_eq!((fast, fast_levels), (slow, slow_levels));
            }
        }
        (Err(_), Err(_)) => {}
        (fast, slow) => panic!("{fast:?} against {slow:?}"),
    }
}
