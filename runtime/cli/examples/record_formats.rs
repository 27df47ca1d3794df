//! Runs a backtest with both record formats. It checks that both contain the same records, and
//! prints their fingerprints. The fingerprint of format 1 is the one that programs printed before
//! format 3.
//!
//! ```sh
//! cargo run -p windvane --example record_formats -- configs/bench-maker.toml
//! cargo run -p windvane --example record_formats -- configs/demo.toml --data var/demo/session.gz
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a check fails"
)]

use std::collections::BTreeMap;
use std::path::Path;

use windvane_backtest::{self as backtest, Options, Progress};
use windvane_config::{Config, Overrides};
use windvane_model::codec::{Record, RecordBody, RecordedEffect, RecordedInput};
use windvane_model::record::{self, Block, Format, Recorder};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments
        .next()
        .expect("the first argument is a configuration file");
    let mut overrides = Overrides::default();
    while let Some(word) = arguments.next() {
        assert_eq!(word, "--data", "the only option is --data FILE");
        let data = arguments.next().expect("--data needs a file");
        overrides.set.push(format!("backtest.data=[\"{data}\"]"));
    }
    let config = Config::load(Path::new(&file), &overrides).unwrap();
    let old = play(&config, Format::V1);
    let new = play(&config, Format::V3);
    let records = compare(&old, &new);
    println!("{records} records are equal in both formats");
    by_kind(&old);
}

/// Runs the backtest and prints the size of its records.
fn play(config: &Config, format: Format) -> Vec<Block> {
    let mut recorder = Recorder::new(true);
    recorder.set_format(format);
    let mut blocks = Vec::new();
    let mut options = Options {
        out: None,
        progress: &mut |progress| {
            if let Progress::Notice(notice) = progress {
                println!("note: {notice}");
            }
        },
        recorder,
        block: &mut |block| blocks.push(block),
    };
    let summary = backtest::run(config, &mut options).unwrap();
    let verified = record::verify(&blocks).unwrap();
    let hex = |hash: [u8; 32]| hash.map(|byte| format!("{byte:02x}")).concat();
    assert_eq!(hex(verified), summary.fingerprint);
    let orders: usize = blocks.iter().map(|block| block.orders.len()).sum();
    let bytes: usize = blocks.iter().map(Block::len).sum();
    println!(
        "format {}: {bytes} bytes in {} blocks, market parts {}; fingerprint {}",
        format.version(),
        blocks.len(),
        bytes - orders,
        summary.fingerprint
    );
    blocks
}

fn records(blocks: &[Block]) -> impl Iterator<Item = (u64, Record)> {
    let records = blocks.iter().flat_map(Block::records);
    records.map(|(sequence, record)| {
        let mut record = record.unwrap();
        // Format 1 does not contain the sequence.
        if let RecordBody::Effect(RecordedEffect::Deliver { sequence, .. }) = &mut record.body {
            *sequence = None;
        }
        (sequence, record)
    })
}

fn compare(old: &[Block], new: &[Block]) -> u64 {
    let mut count = 0;
    let mut new = records(new);
    for old in records(old) {
        assert_eq!(Some(old), new.next());
        count += 1;
    }
    assert_eq!(new.next(), None);
    count
}

/// Prints the bytes in format 1, by kind of record.
fn by_kind(blocks: &[Block]) {
    let mut kinds: BTreeMap<String, (u64, usize)> = BTreeMap::new();
    for block in blocks {
        let mut rest = block.orders.len();
        let mut records = block.records();
        while let Some((_, record)) = records.next() {
            let left = records.left();
            let (count, bytes) = kinds.entry(kind(&record.unwrap())).or_default();
            (*count, *bytes) = (*count + 1, *bytes + rest - left);
            rest = left;
        }
    }
    for (kind, (count, bytes)) in kinds {
        println!("{kind:24} {count:10} records {bytes:12} bytes in format 1");
    }
}

fn kind(record: &Record) -> String {
    match &record.body {
        RecordBody::Effect(RecordedEffect::Deliver { kind, .. }) => format!("deliver {kind:?}"),
        RecordBody::Input(RecordedInput::Market { event, .. }) => word(&event.market()),
        RecordBody::Input(input) => word(input),
        RecordBody::Effect(effect) => word(effect),
        RecordBody::Notice(notice) => word(notice),
        RecordBody::Config(_) => "Config".to_owned(),
    }
}

/// The name of a variant.
fn word(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    let end = text.find(|c: char| !c.is_alphanumeric());
    text[..end.unwrap_or(text.len())].to_owned()
}
