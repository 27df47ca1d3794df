//! Joins a book from a stream that loses, repeats, reorders and overlaps frames. After every frame
//! the book equals the venue's book at its update id, or it reports that there is no book.
//! `truth::play` defines how bytes become a stream.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/truth/mod.rs"]
mod truth;

fuzz_target!(|data: &[u8]| {
    truth::play(data);
});
