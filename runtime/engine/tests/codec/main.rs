//! The record format: what is written is read back, damage is told, and version 1 stays as it is.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod chain;
mod format;
mod generators;
mod round_trip;

use windvane_engine::codec::{self, Record, RecordBody, RecordedEffect, RecordedInput};
use windvane_engine::record::{Block, Recorder};
use windvane_engine::{Effect, Input, Time};

/// The bytes of the records that a function writes.
fn recorded(write: impl FnOnce(&mut Recorder)) -> Vec<u8> {
    let mut recorder = Recorder::new(true);
    write(&mut recorder);
    recorder.seal();
    let bytes = recorder
        .poll_block()
        .map_or(Vec::new(), |block| block.bytes);
    assert_eq!(recorder.poll_block(), None, "one block");
    bytes
}

fn input_bytes(now: Time, input: &Input<'_>) -> Vec<u8> {
    recorded(|recorder| codec::record_input(recorder, now, input))
}

fn effect_bytes(now: Time, effect: &Effect) -> Vec<u8> {
    recorded(|recorder| codec::record_effect(recorder, now, effect))
}

fn decode_all(bytes: &[u8]) -> Vec<Record> {
    codec::decode(bytes).map(Result::unwrap).collect()
}

fn of_input(time: Time, input: RecordedInput) -> Record {
    Record {
        time,
        body: RecordBody::Input(input),
    }
}

fn of_effect(time: Time, effect: RecordedEffect) -> Record {
    Record {
        time,
        body: RecordBody::Effect(effect),
    }
}

fn blocks(recorder: &mut Recorder) -> Vec<Block> {
    std::iter::from_fn(|| recorder.poll_block()).collect()
}
