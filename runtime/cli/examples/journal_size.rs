//! Measures the disk space of a live run's journal. It writes the records of a backtest as a live
//! run does, with one block per 100 ms and the segment sizes of the session's writer, and waits
//! until they are packed.
//!
//! ```sh
//! cargo run -p windvane --example journal_size -- 2150 configs/bench-maker.toml
//! cargo run -p windvane --example journal_size -- 100 configs/demo.toml --data var/demo/session.gz
//! ```
//!
//! The first argument is the rate in market events per second. It determines where blocks and
//! segments end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a measurement fails"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use windvane_backtest::{self as backtest, Options};
use windvane_config::{Config, Overrides};
use windvane_journal::{AppendError, Directory, Journal, open};
use windvane_model::codec::{RecordBody, RecordedEffect, RecordedInput};
use windvane_model::encode;
use windvane_model::event::Event;
use windvane_model::record::{Block, Recorder};
use windvane_model::{Effect, InstrumentId, Time};

/// The limits of a segment, as in `session/writer`.
const SEGMENT_BYTES: u64 = 8 << 20;
const SEGMENT_BLOCKS: u64 = 16_384;
const SEGMENT_S: f64 = 300.0;
/// Size of a segment header, bytes. It is mostly the engine's snapshot.
const HEAD_BYTES: usize = 20_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rate: f64 = arguments
        .next()
        .expect("the first argument is a rate")
        .parse()
        .expect("the rate must be a number");
    let file = arguments
        .next()
        .expect("the second argument is a configuration file");
    let mut overrides = Overrides::default();
    while let Some(word) = arguments.next() {
        assert_eq!(word, "--data", "the only option is --data FILE");
        let data = arguments.next().expect("--data needs a file");
        overrides.set.push(format!("backtest.data=[\"{data}\"]"));
    }
    let config = Config::load(Path::new(&file), &overrides).unwrap();
    let folder = tempfile::tempdir_in(".").unwrap();
    let directory = Arc::new(Directory::lock(folder.path()).unwrap());
    let (ready, recovered) = open(Arc::clone(&directory)).unwrap();
    let options = windvane_journal::Options::default();
    let journal = ready.begin(&checkpoint(0), recovered.next, &options, Arc::new(|_| {}));
    let mut run = Run {
        journal: journal.unwrap(),
        recorder: Recorder::new(true),
        rate,
        events: 0,
        sealed: 0.0,
        rolled: 0.0,
        segments: 1,
        bytes: 0,
    };
    let mut options = Options {
        out: None,
        progress: &mut |_| {},
        recorder: Recorder::new(true),
        block: &mut |block| run.block(&block),
    };
    backtest::run(&config, &mut options).unwrap();
    run.roll();
    let (events, segments, bytes) = (run.events, run.segments, run.bytes);
    run.journal.close().unwrap();
    let mut before = 0;
    // Ended segments are packed one after the other.
    loop {
        let numbers = windvane_journal::segments(folder.path()).unwrap();
        let packed = |number: &&u32| {
            let one = folder.path().join(format!("journal/{number:08x}"));
            one.join("records.zst").exists() && !one.join("db").exists()
        };
        let count = numbers.iter().filter(packed).count();
        if count + 1 >= numbers.len() {
            break;
        }
        if count != before {
            before = count;
            println!("{count} of {} segments are packed", numbers.len());
        }
        // A new start packs the remaining segments.
        drop(begin_again(&directory));
        std::thread::sleep(Duration::from_secs(1));
    }
    let disk = size(&folder.path().join("journal"));
    let orders: u64 = sum(&folder.path().join("journal"), "records.zst");
    let market: u64 = sum(&folder.path().join("journal"), "market.zst");
    let per_event = disk as f64 / events as f64;
    println!(
        "{events} market events at {rate}/s, {bytes} bytes as recorded, {segments} segments: {disk} bytes \
         on disk, of them records.zst {orders}, market.zst {market}"
    );
    println!(
        "{per_event:.2} bytes per market event; a day at this rate: {:.0} MB",
        per_event * rate * 86_400.0 / 1e6
    );
}

/// A segment header that compresses to about one third.
fn checkpoint(seed: usize) -> Vec<u8> {
    let byte = |at: usize| (at.wrapping_mul(at + seed) >> 3) as u8;
    (0..HEAD_BYTES)
        .map(|at| if at % 3 == 0 { byte(at) } else { 0 })
        .collect()
}

fn begin_again(directory: &Arc<Directory>) -> Journal {
    let (ready, recovered) = open(Arc::clone(directory)).unwrap();
    let options = windvane_journal::Options::default();
    let journal = ready.begin(&checkpoint(1), recovered.next, &options, Arc::new(|_| {}));
    std::thread::sleep(Duration::from_secs(20));
    journal.unwrap()
}

struct Run {
    journal: Journal,
    recorder: Recorder,
    rate: f64,
    events: u64,
    sealed: f64,
    rolled: f64,
    segments: u64,
    bytes: u64,
}

impl Run {
    fn block(&mut self, block: &Block) {
        for (_, record) in block.records() {
            let record = record.unwrap();
            let now = record.time;
            match &record.body {
                RecordBody::Input(input) => {
                    if matches!(input, RecordedInput::Market { .. }) {
                        self.events += 1;
                        self.pass();
                    }
                    encode::record_input(&mut self.recorder, now, &input.as_input());
                    if matches!(input, RecordedInput::Answer { .. }) {
                        self.recorder.seal();
                    }
                }
                RecordBody::Effect(effect) => {
                    encode::record_effect(&mut self.recorder, now, &effect_of(effect, now));
                }
                RecordBody::Config(_) | RecordBody::Notice(_) => {}
            }
            self.append();
        }
    }

    /// Advances the time by one event, and ends blocks and segments at their limits.
    fn pass(&mut self) {
        let now = self.events as f64 / self.rate;
        if now - self.sealed >= 0.1 {
            self.recorder.seal();
            self.append();
            self.sealed = now;
        }
        let is_long = self.journal.segment_bytes() >= SEGMENT_BYTES
            || self.journal.segment_blocks() >= SEGMENT_BLOCKS
            || now - self.rolled >= SEGMENT_S;
        if is_long {
            self.rolled = now;
            self.roll();
        }
    }

    fn roll(&mut self) {
        self.recorder.seal();
        self.append();
        self.segments += 1;
        let checkpoint = checkpoint(self.segments as usize);
        while self
            .journal
            .roll(checkpoint.clone(), self.recorder.chain())
            .is_err()
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn append(&mut self) {
        while let Some(mut block) = self.recorder.poll_block() {
            self.bytes += block.len() as u64;
            loop {
                match self.journal.append(block) {
                    Ok(()) => break,
                    Err(AppendError::Full { block: back }) => block = *back,
                    Err(error) => panic!("{error}"),
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

fn effect_of(effect: &RecordedEffect, time: Time) -> Effect {
    match effect.clone() {
        RecordedEffect::Deliver {
            strategy,
            kind,
            sequence,
        } => Effect::Deliver {
            strategy,
            event: Event {
                time,
                sequence: sequence.unwrap_or(0),
                kind,
                instrument: InstrumentId(0),
                flags: 0,
                fields: [0; 6],
                id: 0,
            },
        },
        RecordedEffect::Send { record, request } => Effect::Send {
            record,
            request: Box::new(request),
        },
        RecordedEffect::Reconnect { surface } => Effect::Reconnect { surface },
        RecordedEffect::Heartbeat { number } => Effect::Heartbeat { number },
    }
}

fn size(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                size(&entry.path())
            } else {
                metadata.len()
            }
        })
        .sum()
}

/// Total size of the files with this name, bytes.
fn sum(path: &Path, name: &str) -> u64 {
    let entries = std::fs::read_dir(path).unwrap().map(Result::unwrap);
    let files = entries.map(|entry| entry.path().join(name));
    files
        .map(|file| std::fs::metadata(file).map_or(0, |file| file.len()))
        .sum()
}
