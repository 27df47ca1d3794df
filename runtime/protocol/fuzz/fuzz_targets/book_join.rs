//! Joins a book from a stream that loses, repeats, reorders and overlaps frames. After every frame
//! the book equals the venue's book at its update id, or it reports that there is no book.
//! `reference_book::play` defines how bytes become a stream.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/reference_book/mod.rs"]
mod reference_book;

fuzz_target!(|data: &[u8]| {
    reference_book::play(data);
});
