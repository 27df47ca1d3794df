//! A book joined from a stream that loses, doubles, reorders and overlaps: after every frame it is
//! the venue's book at its update id, or it says that it is none. `truth::play` says how bytes are
//! a stream.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/truth/mod.rs"]
mod truth;

fuzz_target!(|data: &[u8]| {
    truth::play(data);
});
