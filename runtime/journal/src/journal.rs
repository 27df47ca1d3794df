//! The journal as the runtime holds it: blocks go in without waiting, events come out.

use std::sync::mpsc::{self, Sender, SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use windvane_model::record::{Block, Chain, ChainError};

use crate::directory::Directory;
use crate::failure::Failure;
use crate::owner::{Listener, Message, Options, Owner};
use crate::packing::PackThread;
use crate::watch::{MarkKeeper, Watch, lock};

/// A journal that takes blocks. Dropping it ends it in order, as [`close`](Self::close) does.
pub struct Journal {
    directory: Arc<Directory>,
    inbox: Option<SyncSender<Message>>,
    base: Chain,
    next: Chain,
    bytes: u64,
    failure: Arc<Mutex<Option<Failure>>>,
    watch: Arc<Watch>,
    mark_alive: Option<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

/// A block was not taken.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// As many wait as may: try this one again after the next durable event.
    #[error("the journal's queue is full at block {}", block.number)]
    Full {
        /// The block, given back.
        block: Box<Block>,
    },
    /// It is not the next one: a bug of the caller.
    #[error("the journal does not take a block that does not continue its chain: {0}")]
    OutOfOrder(#[from] ChainError),
    /// The journal failed and waits for [`Journal::roll`].
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// A new segment was not asked for.
#[derive(Debug, thiserror::Error)]
pub enum RollError {
    /// As many wait as may: try again after the next durable event, with a head of then.
    #[error("the journal's queue is full")]
    Full,
    /// The head belongs to another place of the chain: a bug of the caller.
    #[error("the head stands at block {at}, the journal at block {next}: seal and append first")]
    OutOfPlace {
        /// Next block of the head.
        at: u64,
        /// Next block of the journal.
        next: u64,
    },
}

/// The first segment of this start could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The disk or the storage failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The head belongs to another place of the chain: a bug of the caller.
    #[error("the head stands at block {at}, the recovered journal goes on at block {next}")]
    OutOfPlace {
        /// Next block of the head.
        at: u64,
        /// Next block of what was recovered.
        next: u64,
    },
}

impl Journal {
    /// Begins segment `number + 1` and the threads that keep it.
    pub(crate) fn begin(
        directory: Arc<Directory>,
        number: u32,
        head: &[u8],
        base: Chain,
        options: &Options,
        listener: Listener,
    ) -> Result<Self, Failure> {
        let folder = directory.journal();
        let (marks, mark_alive, mark_thread) =
            MarkKeeper::start(directory.mark(), options.mark_every)?;
        let (watch, watch_thread) = Watch::start(options.stall_after, Arc::clone(&listener))?;
        let failure = Arc::new(Mutex::new(None));
        let (inbox, messages) = mpsc::sync_channel(options.queue_blocks.max(1));
        let mut journal = Self {
            directory,
            inbox: Some(inbox),
            base,
            next: base,
            bytes: 0,
            failure: Arc::clone(&failure),
            watch: Arc::clone(&watch),
            mark_alive: Some(mark_alive),
            threads: vec![mark_thread, watch_thread],
        };
        let mut owner = Owner {
            journal: folder,
            number,
            segment: None,
            chain: base,
            failure,
            marks,
            watch,
            listener,
            hooks: options.hooks.clone(),
            packing: None,
        };
        owner.begin(head, base)?;
        if options.packs {
            let listener = Arc::clone(&owner.listener);
            owner.packing = Some(PackThread::start(&owner.journal, number, listener)?);
        }
        let builder = std::thread::Builder::new().name("journal".to_owned());
        let thread = builder.spawn(move || owner.run(&messages))?;
        // First, so that the watch outlives it.
        journal.threads.insert(0, thread);
        Ok(journal)
    }

    /// The data directory, for epoch, latch and retention.
    pub const fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Where the chain of appended blocks stands, durable or not.
    pub const fn chain(&self) -> Chain {
        self.next
    }

    /// Records appended since the segment was begun or last asked for: one reason to roll.
    pub const fn segment_records(&self) -> u64 {
        self.next.last_record - self.base.last_record
    }

    /// Blocks appended since then. A start reads some 150,000 small ones in a second.
    pub const fn segment_blocks(&self) -> u64 {
        self.next.next_block - self.base.next_block
    }

    /// Bytes of the blocks appended since then, before compression: another reason.
    pub const fn segment_bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a write takes too long right now.
    pub fn stalled(&self) -> bool {
        self.watch.stalled()
    }

    /// Gives a block to be made durable, without waiting. The listener is told when it is.
    ///
    /// # Errors
    /// The block was not taken, and why.
    pub fn append(&mut self, block: Block) -> Result<(), AppendError> {
        if let Some(failure) = lock(&self.failure).clone() {
            return Err(failure.into());
        }
        let next = self.next.follow(&block)?;
        let (at, bytes) = (Instant::now(), block.len() as u64);
        match self.send(Message::Block { block, at }) {
            Ok(()) => {
                self.next = next;
                self.bytes += bytes;
                Ok(())
            }
            Err(TrySendError::Full(Message::Block { block, .. })) => Err(AppendError::Full {
                block: Box::new(block),
            }),
            Err(_) => Err(gone().into()),
        }
    }

    /// Ends the segment and begins another with this head, which stands at `at`: everything up to
    /// there must be in it. Does not wait; the listener is told. After a failure this is the way
    /// back, and `at` may then be beyond the blocks that were taken.
    ///
    /// # Errors
    /// It was not asked for, and why.
    pub fn roll(&mut self, head: Vec<u8>, at: Chain) -> Result<(), RollError> {
        let failed = lock(&self.failure).is_some();
        let in_place = if failed {
            at.next_block >= self.next.next_block
        } else {
            at == self.next
        };
        if !in_place {
            return Err(RollError::OutOfPlace {
                at: at.next_block,
                next: self.next.next_block,
            });
        }
        let message = Message::Roll {
            head,
            base: at,
            at: Instant::now(),
        };
        // Before the message: blocks after it belong to the new segment, and a failure to begin
        // that one must not be overwritten.
        let failure = lock(&self.failure).take();
        if self.send(message).is_err() {
            *lock(&self.failure) = failure;
            return Err(RollError::Full);
        }
        (self.base, self.next, self.bytes) = (at, at, 0);
        Ok(())
    }

    /// Makes everything durable, ends the segment in order and stops. Takes as long as the disk
    /// does: whoever has a deadline calls it from a thread that it may leave behind.
    ///
    /// # Errors
    /// Not everything is durable.
    pub fn close(mut self) -> Result<Chain, Failure> {
        let (answer, closed) = mpsc::sync_channel(1);
        let inbox = self.inbox.take().ok_or_else(gone)?;
        inbox.send(Message::Close(answer)).map_err(|_| gone())?;
        closed.recv().map_err(|_| gone())?
    }

    #[expect(
        clippy::result_large_err,
        reason = "the message is what the caller gets back"
    )]
    fn send(&self, message: Message) -> Result<(), TrySendError<Message>> {
        match &self.inbox {
            Some(inbox) => inbox.try_send(message),
            None => Err(TrySendError::Disconnected(message)),
        }
    }
}

fn gone() -> Failure {
    Failure::Storage("its thread has ended".to_owned())
}

impl Drop for Journal {
    fn drop(&mut self) {
        drop(self.inbox.take());
        drop(self.mark_alive.take());
        let mut threads = self.threads.drain(..);
        let owner = threads.next().map(JoinHandle::join);
        self.watch.stop();
        for thread in threads {
            let _ = thread.join();
        }
        if let Some(Err(_)) = owner {
            tracing::error!("the journal's thread panicked");
        }
    }
}
