//! The only thread that writes the open segment: it takes blocks and acknowledges them once they
//! are durable.
//!
//! All waiting blocks go into one sync. After a failure nothing is acknowledged until a new segment
//! has begun. The checkpoint of the new segment contains everything that was lost with the old one.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use windvane_model::record::{Block, Chain};

use crate::event::{Event, Listener};
use crate::failure::{Failure, guarded};
use crate::mark::Mark;
use crate::options::Hooks;
use crate::packing::PackThread;
use crate::segment::Segment;
use crate::watch::{MarkKeeper, Watch, lock};

/// Maximum number of blocks in one sync.
const GROUP_BLOCKS: usize = 512;

/// A message to the owner thread.
pub enum Message {
    /// Make a block durable.
    Block {
        /// The block.
        block: Block,
        /// When it arrived.
        at: Instant,
    },
    /// End the segment and begin another.
    Roll {
        /// Checkpoint of the new segment.
        checkpoint: Vec<u8>,
        /// The position that its first block continues.
        base: Chain,
        /// When it arrived.
        at: Instant,
    },
    /// End the segment and stop.
    Close(SyncSender<Result<Chain, Failure>>),
}

/// The state of the owner thread.
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
    /// Runs until it receives a close message, or until all senders are gone.
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
                Message::Roll {
                    checkpoint,
                    base,
                    at,
                } => self.roll(&checkpoint, base, at),
                Message::Close(answer) => {
                    // The caller may have stopped waiting.
                    let _ = answer.send(self.close());
                    return;
                }
            }
        }
        if let Err(failure) = self.close() {
            tracing::error!(%failure, "the journal was not closed properly");
        }
    }

    /// The next message. While the queue is empty, the duties of the segment are carried out.
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

    /// Writes to the segment for a message that waits since `since`, and returns how long it took.
    /// `None` if the segment failed, now or before; the failure was reported.
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

    fn roll(&mut self, checkpoint: &[u8], base: Chain, at: Instant) {
        let ended = self.number;
        self.watch.begin(at);
        let started = self.seal().and_then(|()| self.begin(checkpoint, base));
        let took = self.watch.finish();
        match started {
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

    /// Seals the open segment. A failed segment is absent here, and that must not prevent the next
    /// one.
    fn seal(&mut self) -> Result<(), Failure> {
        self.segment
            .take()
            .map_or(Ok(()), |segment| guarded(|| segment.seal()))
    }

    /// Begins the next segment. Its checkpoint and the mark that names it are durable on return.
    pub fn begin(&mut self, checkpoint: &[u8], base: Chain) -> Result<(), Failure> {
        // A number is never used twice, even if the segment fails.
        self.number += 1;
        let (number, hook) = (self.number, self.hooks.clone());
        let segment = guarded(|| Segment::create(&self.journal, number, checkpoint, base, hook))?;
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
