//! Helpers: a source of blocks, a journal to append them to, and its events.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use windvane_journal::{
    AppendError, Directory, Event, Failure, Journal, Listener, Options, Recovered, open,
};
use windvane_model::encode::{record_input, record_market};
use windvane_model::record::{Block, Chain, Recorder};
use windvane_model::{Input, Level, MarketEvent, StrategyId, Time};

/// Far longer than any test step takes. Only a failing test waits this long.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A random number generator with a fixed seed.
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// Makes blocks that continue a chain, of random sizes: most are small, some are over 64 KiB. Most
/// have an order part and a market part, some have only one of them.
pub struct Source {
    recorder: Recorder,
    rng: Rng,
}

impl Source {
    pub fn new(chain: Chain, seed: u64) -> Self {
        Self {
            recorder: Recorder::from_chain(chain, true),
            rng: Rng(seed | 1),
        }
    }

    pub fn block(&mut self) -> Block {
        let levels_max = [2, 2, 2, 40, 400, 6_000][self.rng.below(6)];
        for _ in 0..=self.rng.below(8) {
            if self.rng.below(2) == 0 {
                let state: Vec<_> = (0..self.rng.below(levels_max) * 24)
                    .map(|_| self.rng.below(256) as u8)
                    .collect();
                let saved = Input::Saved {
                    strategy: StrategyId(0),
                    handled: 3,
                    state: Some(&state),
                };
                record_input(&mut self.recorder, Time(4), &saved);
                if let Some(full) = self.recorder.poll_block() {
                    return full;
                }
                continue;
            }
            let count = self.rng.below(levels_max);
            let mut level = || Level {
                price: self.rng.below(1_000_000) as i64,
                qty: self.rng.below(usize::MAX >> 1) as i64,
            };
            let bids: Vec<_> = (0..count).map(|_| level()).collect();
            let depth = MarketEvent::Depth {
                update_id: 7,
                snapshot: true,
                bids: &bids,
                asks: &[],
            };
            record_market(&mut self.recorder, Time(5), 0, &depth);
            if let Some(full) = self.recorder.poll_block() {
                return full; // the last record begins the next block
            }
        }
        self.recorder.seal();
        self.recorder.poll_block().unwrap()
    }

    pub fn chain(&self) -> Chain {
        self.recorder.chain()
    }
}

/// How often to repeat something: the number in the environment variable, or `usual`.
pub fn times(variable: &str, usual: usize) -> usize {
    std::env::var(variable).map_or(usual, |text| text.parse().expect("a number"))
}

pub fn locked(path: &Path) -> Arc<Directory> {
    Arc::new(Directory::lock(path).unwrap())
}

pub fn listener() -> (Listener, Receiver<Event>) {
    let (events, seen) = mpsc::channel();
    // A test that has seen enough events drops the receiver.
    let listener: Listener = Arc::new(move |event| drop(events.send(event)));
    (listener, seen)
}

/// A journal, its source of blocks, and its events.
pub struct Rig {
    pub journal: Journal,
    pub source: Source,
    pub events: Receiver<Event>,
    pub appended: Vec<Block>,
}

impl Rig {
    /// Opens the journal of a folder and begins a segment. Ended segments are not packed.
    pub fn start(path: &Path, options: &Options) -> (Self, Recovered) {
        let packs = false;
        Self::start_as(
            path,
            &Options {
                packs,
                ..options.clone()
            },
        )
    }

    /// Opens the journal of a folder and begins a segment with these options, unchanged.
    pub fn start_as(path: &Path, options: &Options) -> (Self, Recovered) {
        let (ready, recovered) = open(locked(path)).unwrap();
        let (listener, events) = listener();
        let journal = ready
            .begin(b"head", recovered.next, options, listener)
            .unwrap();
        let rig = Self {
            journal,
            source: Source::new(recovered.next, 77),
            events,
            appended: Vec::new(),
        };
        (rig, recovered)
    }

    pub fn append(&mut self) -> Result<(), AppendError> {
        let block = self.source.block();
        self.journal.append(block.clone())?;
        self.appended.push(block);
        Ok(())
    }

    /// Appends blocks and waits until all of them are durable.
    pub fn append_durably(&mut self, count: usize) {
        for _ in 0..count {
            self.append().unwrap();
        }
        self.wait_durable(self.source.chain());
    }

    pub fn event(&self) -> Event {
        self.events.recv_timeout(PATIENCE).expect("an event")
    }

    pub fn wait_durable(&self, until: Chain) {
        loop {
            match self.event() {
                Event::Durable { chain, .. } | Event::Rolled { chain, .. } if chain == until => {
                    return;
                }
                Event::Failed(failure) => panic!("{failure}"),
                _ => {}
            }
        }
    }

    pub fn wait_failed(&self) -> Failure {
        loop {
            if let Event::Failed(failure) = self.event() {
                return failure;
            }
        }
    }

    pub fn roll(&mut self) {
        let chain = self.source.chain();
        self.journal.roll(b"next head".to_vec(), chain).unwrap();
    }
}

/// Whether the read blocks are the appended ones. Market parts may be missing, because a kill may
/// lose them.
pub fn is_back(read: impl IntoIterator<Item = Block>, appended: &[Block]) -> bool {
    let mut read = read.into_iter();
    let same = |block: &Block| {
        read.next().is_some_and(|mut read| {
            if read.lacks_market() {
                read.market.clone_from(&block.market);
            }
            read == *block
        })
    };
    appended.iter().all(same) && read.next().is_none()
}

/// Copies a folder with its content: the state that a crash would leave of a journal in use.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            // The temporary file of the mark may have been renamed meanwhile.
            if let Err(error) = fs::copy(entry.path(), to) {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            }
        }
    }
}

/// Environment variable that turns a test into the child process of another test.
const CHILD: &str = "WINDVANE_JOURNAL_CHILD";

/// The folder of the child, if this process is a child.
pub fn child_folder() -> Option<std::path::PathBuf> {
    std::env::var_os(CHILD).map(Into::into)
}

/// The command that runs one test of this program as a child, through a shell script in which
/// `"$@"` is that test.
pub fn child(test: &str, folder: &Path, script: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// Kills a child process when a test fails.
pub struct Guard(pub Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
