//! The record formats: records are read as they were written, damage is reported, and the bytes of
//! formats 1 and 3 never change.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod chain;
mod format;
mod generators;
mod round_trip;

use windvane_model::codec::{Record, RecordBody, RecordedEffect, RecordedInput};
use windvane_model::encode;
use windvane_model::record::{Block, Format, Recorder};
use windvane_model::{Effect, Input, Time};

/// The block with the records that a function writes.
fn recorded(format: Format, write: impl FnOnce(&mut Recorder)) -> Block {
    let mut recorder = Recorder::new(true);
    recorder.set_format(format);
    write(&mut recorder);
    recorder.seal();
    let block = recorder.poll_block().unwrap_or_default();
    assert_eq!(recorder.poll_block(), None, "one block");
    block
}

fn input_block(format: Format, now: Time, input: &Input<'_>) -> Block {
    recorded(format, |recorder| {
        encode::record_input(recorder, now, input);
    })
}

fn effect_block(format: Format, now: Time, effect: &Effect) -> Block {
    recorded(format, |recorder| {
        encode::record_effect(recorder, now, effect);
    })
}

/// A block of arbitrary bytes.
fn block_of(format: Format, orders: &[u8], market: &[u8]) -> Block {
    Block {
        format,
        first_record: 1,
        orders: orders.to_vec(),
        market: Some(market.to_vec()),
        ..Block::default()
    }
}

/// The records of a block. The sequence of deliveries is removed, because format 1 does not have
/// it.
fn decode_all(block: &Block) -> Vec<Record> {
    let records = block.records().map(|(_, record)| record.unwrap());
    records
        .map(|mut record| {
            if let RecordBody::Effect(RecordedEffect::Deliver { sequence, .. }) = &mut record.body {
                *sequence = None;
            }
            record
        })
        .collect()
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
