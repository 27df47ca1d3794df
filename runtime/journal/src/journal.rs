//! The journal as the runtime uses it: it takes blocks without waiting and returns events.

use std::sync::mpsc::{self, Sender, SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use windvane_model::record::{Block, Chain, ChainError};

use crate::directory::Directory;
use crate::event::Listener;
use crate::failure::Failure;
use crate::options::Options;
use crate::owner::{Message, Owner};
use crate::packing::PackThread;
use crate::watch::{MarkKeeper, Watch, lock};

/// A journal that accepts blocks. Dropping it closes it in the same way as [`close`](Self::close).
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

/// A block was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The queue is full: try this block again after the next durable event.
    #[error("the journal's queue is full at block {}", block.number)]
    Full {
        /// The block, returned to the caller.
        block: Box<Block>,
    },
    /// The block is not the next one. This is a bug of the caller.
    #[error("the block does not continue the journal's chain: {0}")]
    OutOfOrder(#[from] ChainError),
    /// The journal failed and waits for [`Journal::roll`].
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// A new segment was not requested.
#[derive(Debug, thiserror::Error)]
pub enum RollError {
    /// The queue is full: try again after the next durable event, with a new checkpoint.
    #[error("the journal's queue is full")]
    Full,
    /// The checkpoint belongs to another position of the chain. This is a bug of the caller.
    #[error(
        "the checkpoint is for block {at}, but the journal is at block {next}: seal and append first"
    )]
    OutOfPlace {
        /// Next block of the checkpoint.
        at: u64,
        /// Next block of the journal.
        next: u64,
    },
}

/// The first segment of this start could not be created.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The disk or the storage failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The checkpoint belongs to another position of the chain. This is a bug of the caller.
    #[error(
        "the checkpoint is for block {at}, but the recovered journal continues at block {next}"
    )]
    OutOfPlace {
        /// Next block of the checkpoint.
        at: u64,
        /// Next block of the recovered journal.
        next: u64,
    },
}

impl Journal {
    /// Begins segment `number + 1` and starts the threads of the journal.
    pub(crate) fn begin(
        directory: Arc<Directory>,
        number: u32,
        checkpoint: &[u8],
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
        owner.begin(checkpoint, base)?;
        if options.packs {
            let listener = Arc::clone(&owner.listener);
            owner.packing = Some(PackThread::start(&owner.journal, number, listener)?);
        }
        let builder = std::thread::Builder::new().name("journal".to_owned());
        let thread = builder.spawn(move || owner.run(&messages))?;
        // This thread is joined first, so that the watch thread ends after it.
        journal.threads.insert(0, thread);
        Ok(journal)
    }

    /// The data directory, for epoch, kill switches and retention.
    pub const fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// The end of the chain of appended blocks, durable or not.
    pub const fn chain(&self) -> Chain {
        self.next
    }

    /// Records that were appended since the segment began or was last requested.
    pub const fn segment_records(&self) -> u64 {
        self.next.last_record - self.base.last_record
    }

    /// Blocks that were appended since the segment began or was last requested. A start reads about
    /// 150,000 small blocks in a second.
    pub const fn segment_blocks(&self) -> u64 {
        self.next.next_block - self.base.next_block
    }

    /// Bytes of the blocks that were appended since the segment began or was last requested, before
    /// compression.
    pub const fn segment_bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the present write takes too long.
    pub fn stalled(&self) -> bool {
        self.watch.stalled()
    }

    /// Queues a block to be made durable, without waiting. The listener gets an event when it is
    /// durable.
    ///
    /// # Errors
    /// The reason why the block was not accepted.
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

    /// Ends the segment and begins another one with this checkpoint. `at` is the position of the
    /// checkpoint, which must contain everything before it. Does not wait; the listener gets an
    /// event. After a failure this is the way to recover, and `at` may then be beyond the accepted
    /// blocks.
    ///
    /// # Errors
    /// The reason why no segment was requested.
    pub fn roll(&mut self, checkpoint: Vec<u8>, at: Chain) -> Result<(), RollError> {
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
            checkpoint,
            base: at,
            at: Instant::now(),
        };
        // The failure is taken before the message is sent. Blocks after the message belong to the
        // new segment, and a failure to begin that segment must not be overwritten.
        let failure = lock(&self.failure).take();
        if self.send(message).is_err() {
            *lock(&self.failure) = failure;
            return Err(RollError::Full);
        }
        (self.base, self.next, self.bytes) = (at, at, 0);
        Ok(())
    }

    /// Makes everything durable, seals the segment and stops. This waits for the disk. A caller
    /// with a deadline must use a thread that it can abandon.
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
    Failure::Storage("the journal's thread has ended".to_owned())
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
