//! Speed of the journal: time from append to durable, blocks per second, bytes per market event,
//! and the recovery of a segment. Percentiles and sizes are printed first, because criterion does
//! not report them.

#![allow(
    missing_docs,
    clippy::expect_used,
    reason = "a bench may panic if its setup fails"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use windvane_journal::{AppendError, Directory, Event, Journal, Options, open};
use windvane_model::encode::record_market;
use windvane_model::record::{Block, Recorder};
use windvane_model::{Level, MarketEvent, Time};

/// A random walk of a market, as records.
struct Market {
    recorder: Recorder,
    seed: u64,
    time: i64,
    id: i64,
    price: i64,
}

impl Market {
    fn new(recorder: Recorder) -> Self {
        Self {
            recorder,
            seed: 7,
            time: 1_700_000_000_000_000_000,
            id: 4_000_000_000,
            price: 600_000,
        }
    }

    fn below(&mut self, limit: u64) -> i64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed % limit) as i64
    }

    /// Records a trade or, twice as often, a top of book.
    fn event(&mut self) {
        self.time += self.below(1_000_000);
        self.id += 1 + self.below(5);
        self.price += self.below(3) - 1;
        let (price, qty) = (self.price, 1 + self.below(20_000));
        let event = if self.below(3) == 0 {
            MarketEvent::Trade {
                price,
                qty,
                trade_id: self.id,
                buyer_is_maker: self.below(2) == 0,
            }
        } else {
            let ask_qty = 1 + self.below(20_000);
            MarketEvent::Top {
                update_id: self.id,
                bid: Level { price, qty },
                ask: Level {
                    price: price + 1,
                    qty: ask_qty,
                },
            }
        };
        record_market(&mut self.recorder, Time(self.time), 0, &event);
    }

    /// A block of about 200 bytes, like one that an intent seals.
    fn small_block(&mut self) -> Block {
        for _ in 0..4 {
            self.event();
        }
        self.recorder.seal();
        self.recorder.poll_block().expect("sealed")
    }

    fn blocks(&mut self, events: usize) -> Vec<Block> {
        (0..events).for_each(|_| self.event());
        self.recorder.seal();
        std::iter::from_fn(|| self.recorder.poll_block()).collect()
    }
}

struct Rig {
    journal: Journal,
    market: Market,
    events: Receiver<Event>,
}

fn rig(folder: &Path) -> Rig {
    let directory = Arc::new(Directory::lock(folder).expect("a folder of our own"));
    let (ready, recovered) = open(directory).expect("readable");
    let (sender, events) = mpsc::channel();
    let listener = Arc::new(move |event| drop(sender.send(event)));
    let journal = ready
        .begin(b"head", recovered.next, &Options::default(), listener)
        .expect("writable");
    Rig {
        journal,
        market: Market::new(Recorder::from_chain(recovered.next, true)),
        events,
    }
}

impl Rig {
    fn append(&mut self, block: Block) {
        let mut block = block;
        while let Err(error) = self.journal.append(block) {
            let AppendError::Full { block: back } = error else {
                panic!("{error}");
            };
            block = *back;
            std::thread::yield_now();
        }
    }

    fn wait(&self, record: u64) {
        while let Ok(event) = self.events.recv() {
            match event {
                Event::Durable { chain, .. } if chain.last_record >= record => return,
                Event::Failed(failure) => panic!("{failure}"),
                _ => {}
            }
        }
    }

    fn append_durably(&mut self) {
        let block = self.market.small_block();
        let record = block.last_record;
        self.append(block);
        self.wait(record);
    }
}

fn folder_bytes(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).expect("a folder");
    let sizes = entries.map(|entry| {
        let metadata = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)));
        let (path, metadata) = metadata.expect("an entry");
        if metadata.is_dir() {
            folder_bytes(&path)
        } else {
            metadata.len()
        }
    });
    sizes.sum()
}

fn percentiles(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut rig = rig(folder.path());
    let mut times: Vec<Duration> = (0..5_000)
        .map(|_| {
            let start = Instant::now();
            rig.append_durably();
            start.elapsed()
        })
        .collect();
    times.sort();
    println!(
        "append to durable, one block of 200 bytes: p50 {:?}, p99 {:?}, worst {:?}",
        times[times.len() / 2],
        times[times.len() * 99 / 100],
        times[times.len() - 1]
    );
    println!(
        "{} bytes on disk per block of 200 bytes that is written alone",
        folder_bytes(&folder.path().join("journal")) / times.len() as u64
    );
    let start = Instant::now();
    let chain = rig.journal.chain();
    rig.journal
        .roll(vec![7; 1_000_000], chain)
        .expect("a short queue");
    while !matches!(rig.events.recv(), Ok(Event::Rolled { .. })) {}
    println!(
        "a new segment with a checkpoint of 1 MB: {:?}",
        start.elapsed()
    );
    c.bench_function("append to durable, one block of 200 bytes", |b| {
        b.iter(|| rig.append_durably());
    });
}

fn group_commit(c: &mut Criterion) {
    const BLOCKS: usize = 20_000;
    let folder = tempfile::tempdir().expect("a folder");
    let mut rig = rig(folder.path());
    let mut group = c.benchmark_group("group commit");
    group
        .throughput(Throughput::Elements(BLOCKS as u64))
        .sample_size(10);
    group.bench_function("blocks of 200 bytes", |b| {
        b.iter_custom(|rounds| {
            let mut took = Duration::ZERO;
            for _ in 0..rounds {
                let blocks: Vec<_> = (0..BLOCKS).map(|_| rig.market.small_block()).collect();
                let last = blocks[BLOCKS - 1].last_record;
                let start = Instant::now();
                for block in blocks {
                    rig.append(block);
                }
                rig.wait(last);
                took += start.elapsed();
            }
            took
        });
    });
}

fn recovery(c: &mut Criterion) {
    const EVENTS: usize = 1_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let mut rig = rig(folder.path());
    let blocks = rig.market.blocks(EVENTS);
    let raw: usize = blocks.iter().map(Block::len).sum();
    let last = blocks[blocks.len() - 1].last_record;
    let start = Instant::now();
    for block in blocks {
        rig.append(block);
    }
    rig.wait(last);
    println!("{EVENTS} market events durable in {:?}", start.elapsed());
    drop(rig);
    let disk = folder_bytes(&folder.path().join("journal"));
    println!(
        "{:.1} bytes per market event as recorded, {:.1} on disk",
        raw as f64 / EVENTS as f64,
        disk as f64 / EVENTS as f64
    );
    let mut group = c.benchmark_group("recovery");
    group.sample_size(10);
    group.bench_function("a segment of 1,000,000 records, verified", |b| {
        b.iter(|| {
            let directory = Arc::new(Directory::lock(folder.path()).expect("ours"));
            open(directory).expect("readable").1.found
        });
    });
}

criterion_group!(benches, percentiles, group_commit, recovery);
criterion_main!(benches);
