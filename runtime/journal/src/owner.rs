//! The one thread that owns the open segment: blocks in, durable acknowledgements out.
//!
//! Everything that waits goes into one sync. After a failure nothing is acknowledged any more
//! until a new segment was begun: its head covers what was lost with the old one.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use windvane_model::record::{Block, Chain};

use crate::failure::{Failure, guarded};
use crate::mark::Mark;
use crate::packing::PackThread;
use crate::segment::Segment;
use crate::watch::{MarkKeeper, Watch, lock};

/// Blocks in one sync at most.
const GROUP_BLOCKS: usize = 512;
/// Called before a sync; an error is that of the sync.
pub type SyncHook = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// Where tests let a disk fail or hang.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Called before the sync that orders wait for, and before that of the database.
    pub sync: Option<SyncHook>,
    /// Called before the sync of market parts.
    pub market: Option<SyncHook>,
}

/// Who is told what happens; called on the journal's threads and must not block.
pub type Listener = Arc<dyn Fn(Event) + Send + Sync>;

/// How a journal works.
#[derive(Clone)]
pub struct Options {
    /// Blocks that may wait to be written; more are refused.
    pub queue_blocks: usize,
    /// A write that takes longer is reported while it still does.
    pub stall_after: Duration,
    /// How often the mark is written, off the path of orders.
    pub mark_every: Duration,
    /// The seam for tests.
    pub hooks: Hooks,
    /// Ended segments are packed, on a thread of its own.
    pub packs: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queue_blocks: 4096,
            stall_after: Duration::from_millis(250),
            mark_every: Duration::from_secs(1),
            hooks: Hooks::default(),
            packs: true,
        }
    }
}

/// What the journal tells.
#[derive(Clone, Debug)]
pub enum Event {
    /// All records up to this place are durable, but for market data: that follows within some
    /// seconds.
    Durable {
        /// Where the durable chain stands; [`Chain::last_record`] is the last durable record.
        chain: Chain,
        /// Blocks in this sync.
        blocks: usize,
        /// From the arrival of the first of them to this event.
        took: Duration,
    },
    /// A new segment was begun; its head, and so everything before it, is durable.
    Rolled {
        /// Its number.
        segment: u32,
        /// Where it begins.
        chain: Chain,
        /// From the request to this event.
        took: Duration,
    },
    /// A write takes too long and has not ended: no new exposure until [`Event::Healthy`].
    Stalled {
        /// For how long something waits already.
        waiting: Duration,
    },
    /// The write that took too long is over.
    Healthy {
        /// How long it took.
        stalled: Duration,
    },
    /// An ended segment was packed, or is left as it is; told on the thread that packs, which read all of it.
    Packed {
        /// Its number.
        segment: u32,
    },
    /// Nothing is durable any more until [`Event::Rolled`]; roll the journal when that can help.
    Failed(Failure),
}

/// What the owner is asked.
pub enum Message {
    /// Make a block durable.
    Block {
        /// The block.
        block: Block,
        /// When it came.
        at: Instant,
    },
    /// End the segment and begin another.
    Roll {
        /// Head of the new one.
        head: Vec<u8>,
        /// What its first block continues.
        base: Chain,
        /// When it came.
        at: Instant,
    },
    /// End the segment and stop.
    Close(SyncSender<Result<Chain, Failure>>),
}

/// The thread's state.
pub struct Owner {
    pub journal: PathBuf,
    pub number: u32,
    pub segment: Option<Segment>,
    pub chain: Chain,
    pub failure: Arc<Mutex<Option<Failure>>>,
    pub marks: Arc<MarkKeeper>,
    pub watch: Arc<Watch>,
    pub listener: Listener,
    pub hooks: Hooks,
    pub packing: Option<PackThread>,
}

impl Owner {
    /// Works until it is told to close, or nobody can tell it anything any more.
    pub fn run(mut self, inbox: &Receiver<Message>) {
        let mut held = None;
        while let Some(message) = held.take().or_else(|| self.next(inbox)) {
            match message {
                Message::Block { block, at } => {
                    let mut group = vec![block];
                    while group.len() < GROUP_BLOCKS
                        && let Ok(message) = inbox.try_recv()
                    {
                        if let Message::Block { block, .. } = message {
                            group.push(block);
                        } else {
                            held = Some(message);
                            break;
                        }
                    }
                    self.append(&group, at);
                }
                Message::Roll { head, base, at } => self.roll(&head, base, at),
                Message::Close(answer) => {
                    // Whoever closes may have stopped waiting.
                    let _ = answer.send(self.close());
                    return;
                }
            }
        }
        if let Err(failure) = self.close() {
            tracing::error!(%failure, "the journal was not ended in order");
        }
    }

    /// The next message. Quiet moments before it are used for the duties of the segment.
    fn next(&mut self, inbox: &Receiver<Message>) -> Option<Message> {
        while let Some((quiet, duty)) = self.segment.as_ref().and_then(Segment::duty) {
            match inbox.recv_timeout(quiet) {
                Err(RecvTimeoutError::Timeout) => {
                    self.write(Instant::now(), |segment| segment.carry_out(duty));
                }
                received => return received.ok(),
            }
        }
        inbox.recv().ok()
    }

    fn append(&mut self, group: &[Block], at: Instant) {
        let Some((chain, took)) = self.write(at, |segment| segment.append(group)) else {
            return;
        };
        self.durable(chain);
        (self.listener)(Event::Durable {
            chain,
            blocks: group.len(),
            took,
        });
    }

    /// Writes to the segment for something that waits since `since`, and answers how long it took.
    /// Nothing comes of it where the segment failed, now or before, which was said.
    fn write<T>(
        &mut self,
        since: Instant,
        work: impl FnOnce(&mut Segment) -> Result<T, Failure>,
    ) -> Option<(T, Duration)> {
        let mut segment = self.segment.take()?;
        self.watch.begin(since);
        let written = guarded(|| work(&mut segment));
        let took = self.watch.finish();
        match written {
            Ok(answer) => {
                self.segment = Some(segment);
                Some((answer, took))
            }
            Err(failure) => {
                self.fail(failure);
                None
            }
        }
    }

    fn roll(&mut self, head: &[u8], base: Chain, at: Instant) {
        let ended = self.number;
        self.watch.begin(at);
        let begun = self.seal().and_then(|()| self.begin(head, base));
        let took = self.watch.finish();
        match begun {
            Ok(()) => {
                (self.listener)(Event::Rolled {
                    segment: self.number,
                    chain: base,
                    took,
                });
                if let Some(packing) = &self.packing {
                    packing.ended(ended);
                }
            }
            Err(failure) => self.fail(failure),
        }
    }

    /// Ends the open segment in order. A failed one has none, and that is no reason to stop.
    fn seal(&mut self) -> Result<(), Failure> {
        self.segment
            .take()
            .map_or(Ok(()), |segment| guarded(|| segment.seal()))
    }

    /// Begins the next segment; its head and the mark that names it are durable on return.
    pub fn begin(&mut self, head: &[u8], base: Chain) -> Result<(), Failure> {
        // A number is used once, whatever becomes of it.
        self.number += 1;
        let (number, hook) = (self.number, self.hooks.clone());
        let segment = guarded(|| Segment::create(&self.journal, number, head, base, hook))?;
        self.durable(base);
        self.marks.write()?;
        self.segment = Some(segment);
        Ok(())
    }

    fn durable(&mut self, chain: Chain) {
        self.chain = chain;
        self.marks.set(Mark {
            segment: self.number,
            chain,
        });
    }

    fn fail(&self, failure: Failure) {
        *lock(&self.failure) = Some(failure.clone());
        (self.listener)(Event::Failed(failure));
    }

    fn close(&mut self) -> Result<Chain, Failure> {
        self.watch.begin(Instant::now());
        let sealed = self.seal();
        let marked = self.marks.write().map_err(Failure::from);
        self.watch.finish();
        if let Some(failure) = lock(&self.failure).clone() {
            return Err(failure);
        }
        sealed.and(marked).map(|()| self.chain)
    }
}
