//! A book joined from a stream that loses, doubles and reorders: after every frame it is the
//! venue's book at its update id, or it says that it is none.
//!
//! Input: one byte for the surface; then two bytes for each update (side and price, quantity) and
//! the number of updates a frame has; then one byte for each frame's fate.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windvane_engine::Surface;
use windvane_venue::local_book::LocalBook;

#[path = "../../tests/truth/mod.rs"]
mod truth;

use truth::{FIRST_ID, Feed, feed};

fuzz_target!(|data: &[u8]| {
    let Some((surface, rest)) = data.split_first() else {
        return;
    };
    let surface = if surface % 2 == 0 {
        Surface::Spot
    } else {
        Surface::Futures
    };
    // Two bytes of every three are an update, the third is the fate of a frame.
    let chunks = rest.chunks_exact(3).take(200);
    let updates: Vec<(bool, u32, u32)> = chunks
        .clone()
        .map(|chunk| {
            (
                chunk[0] >= 128,
                u32::from(chunk[0] % 8),
                u32::from(chunk[1] % 4),
            )
        })
        .collect();
    let fates: Vec<(usize, u8)> = chunks
        .map(|chunk| (1 + usize::from(chunk[1] / 64), chunk[2]))
        .collect();
    if !updates.is_empty() {
        play(surface, &updates, &fates);
    }
});

fn play(surface: Surface, updates: &[(bool, u32, u32)], fates: &[(usize, u8)]) {
    let truth = Feed::new(surface, updates);
    let mut book = LocalBook::new(surface);
    let mut late: Vec<String> = Vec::new();
    let mut from = 0;
    for &(size, fate) in fates {
        let to = (from + size).min(updates.len());
        if from == to {
            break;
        }
        let frame = truth.frame(updates, from, to);
        from = to;
        let mut arrive = |text: &str| {
            let step = feed(&mut book, text);
            truth.check(&book, step);
        };
        let age = usize::from(fate >> 3);
        match fate % 8 {
            0 => {}
            1 => late.push(frame),
            2 => {
                arrive(&frame);
                arrive(&frame);
            }
            3 => {
                arrive(&truth.snapshot(to.saturating_sub(age)));
                arrive(&frame);
            }
            4 => {
                arrive(&frame);
                for earlier in late.drain(..).rev() {
                    arrive(&earlier);
                }
            }
            _ => arrive(&frame),
        }
    }
    let step = feed(&mut book, &truth.snapshot(from));
    truth.check(&book, step);
    assert_eq!(book.update_id(), Some(FIRST_ID + from as i64));
}
