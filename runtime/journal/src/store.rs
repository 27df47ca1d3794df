//! The sled database of a segment, on its own thread. A flush of sled takes many times as long as a
//! write to the WAL, and an order must not wait for it.
//!
//! The owner of the segment passes blocks to this thread and requests syncs. It continues with the
//! WAL until a sync is acknowledged. The thread also writes market parts, which do not go into
//! sled.
//!
//! Guards against faults of sled:
//! - On Linux, `flush` leaves the data in the page cache. So the `db` file is synced after it.
//!   sled's own timer and subscribers are not used.
//! - A page of sled holds up to 17 values. Above 128 KiB it becomes a separate file, which is slow
//!   and needs syncs that sled does not do. So values are split into parts that are small enough
//!   for a page of 17.

use std::fs::File;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::JoinHandle;

use sled::{Batch, Db};
use windvane_model::record::Chain;

use crate::failure::{Failure, guarded};
use crate::layout::{Meta, chain_bytes, key, sled_config};
use crate::market::MarketFile;
use crate::options::Hooks;
use crate::packed::Packer;
use crate::wal::split_frames;

/// Maximum size of a value, in bytes.
const PART_BYTES: usize = 6 * 1024;

/// The database of a segment.
pub struct Store {
    db: Db,
    file: File,
    market: MarketFile,
    packer: Packer,
    hooks: Hooks,
    /// A failed sync of market parts that was not reported yet.
    market_failure: Option<Failure>,
}

impl Store {
    /// Creates an empty database in the folder of a segment.
    pub fn create(folder: &Path, hooks: Hooks) -> Result<Self, Failure> {
        let db = sled_config(folder).open()?;
        windvane_files::close_files(folder)?;
        Ok(Self {
            file: File::open(folder.join("db"))?,
            market: MarketFile::create(folder, hooks.market.clone())?,
            db,
            packer: Packer::new()?,
            hooks,
            market_failure: None,
        })
    }

    /// Writes the checkpoint of the segment, then its description.
    pub fn put_checkpoint(&mut self, checkpoint: &[u8], meta: Meta) -> Result<(), Failure> {
        let packed = self.packer.pack_checkpoint(checkpoint)?;
        for (part, bytes) in (0..).zip(packed.chunks(PART_BYTES)) {
            self.db.insert(key::checkpoint(part), bytes)?;
        }
        self.db.insert(key::META, &meta.to_bytes()[..])?;
        Ok(())
    }

    /// Makes everything durable.
    pub fn sync(&self) -> Result<(), Failure> {
        self.db.flush()?;
        if let Some(hook) = &self.hooks.sync {
            hook()?;
        }
        Ok(self.file.sync_all()?)
    }

    /// Writes blocks, given as frames of the WAL, and market parts.
    fn put(&mut self, frames: &[u8], market: &[u8]) -> Result<(), Failure> {
        self.market.append(market)?;
        let mut batch = Batch::default();
        for (number, plain) in split_frames(frames) {
            let packed = self.packer.squeeze(plain)?;
            for (part, bytes) in (0..).zip(packed.chunks(PART_BYTES)) {
                batch.insert(&key::block(number, part), bytes);
            }
        }
        Ok(self.db.apply_batch(batch)?)
    }

    fn seal(&mut self, end: &Chain) -> Result<(), Failure> {
        // A seal states that everything is there, so the market parts must be durable first.
        self.market.sync()?;
        self.db.insert(key::SEAL, &chain_bytes(end)[..])?;
        self.sync()
    }

    /// The next order. Market parts are synced while the queue is empty. `None` once the sender is
    /// gone.
    fn next(&mut self, orders: &Receiver<Order>) -> Option<Order> {
        loop {
            let Some(wait) = self.market.sync_in() else {
                return orders.recv().ok();
            };
            if wait.is_zero() {
                self.sync_market();
                continue;
            }
            match orders.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) => self.sync_market(),
                received => return received.ok(),
            }
        }
    }

    /// A failed sync is reported with the next order, because no order waits for this sync.
    fn sync_market(&mut self) {
        if let Err(error) = self.market.sync() {
            self.market_failure = Some(error.into());
        }
    }

    /// Carries out one order. Returns the end of the blocks that are durable now, if the order
    /// waits for a result.
    fn carry_out(&mut self, order: Order) -> Result<Option<u64>, Failure> {
        if let Some(failure) = self.market_failure.take() {
            return Err(failure);
        }
        match order {
            Order::Put { frames, market } => self.put(&frames, &market).map(|()| None),
            Order::Sync { next_block } => self.sync().map(|()| Some(next_block)),
            Order::Seal(end) => self.seal(&end).map(|()| Some(end.next_block)),
        }
    }
}

/// An order to the thread of a store.
enum Order {
    /// Write these frames of the WAL and of market parts. They need not be durable yet.
    Put { frames: Vec<u8>, market: Vec<u8> },
    /// Make all blocks before this number durable.
    Sync { next_block: u64 },
    /// Write the end of the segment, and make everything durable.
    Seal(Chain),
}

/// The thread that works on a store.
pub struct StoreThread {
    orders: Sender<Order>,
    /// After each sync: the block before which everything is durable.
    answers: Receiver<Result<u64, Failure>>,
    thread: JoinHandle<()>,
    is_syncing: bool,
}

impl StoreThread {
    pub fn start(mut store: Store) -> Result<Self, Failure> {
        let (orders, received) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let builder = std::thread::Builder::new().name("journal-store".to_owned());
        let thread = builder.spawn(move || {
            while let Some(order) = store.next(&received) {
                let answered = match guarded(|| store.carry_out(order)) {
                    Ok(None) => continue,
                    Ok(Some(next_block)) => Ok(next_block),
                    Err(failure) => Err(failure),
                };
                let failed = answered.is_err();
                // If the segment was abandoned, the receiver is gone.
                if answer.send(answered).is_err() || failed {
                    break;
                }
            }
        })?;
        Ok(Self {
            orders,
            answers,
            thread,
            is_syncing: false,
        })
    }

    /// Passes frames of the WAL and of market parts to the thread, which writes them later.
    pub fn put(&self, frames: Vec<u8>, market: Vec<u8>) {
        // If the thread has ended, `synced` returns the reason.
        let _ = self.orders.send(Order::Put { frames, market });
    }

    /// Requests to make all blocks before this number durable; see [`synced`](Self::synced).
    pub fn sync(&mut self, next_block: u64) {
        self.is_syncing = true;
        let _ = self.orders.send(Order::Sync { next_block });
    }

    /// Whether a sync was requested whose result was not read yet.
    pub const fn is_syncing(&self) -> bool {
        self.is_syncing
    }

    /// The block before which everything is durable, if a sync ended since the last call.
    ///
    /// # Errors
    /// The store failed and does nothing any more.
    pub fn synced(&mut self) -> Result<Option<u64>, Failure> {
        match self.answers.try_recv() {
            Ok(answer) => self.answered(answer).map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(ended()),
        }
    }

    /// Waits until all blocks before this number are durable.
    pub fn wait(&mut self, next_block: u64) -> Result<(), Failure> {
        loop {
            let answer = self.answers.recv().map_err(|_| ended())?;
            if self.answered(answer)? >= next_block {
                return Ok(());
            }
        }
    }

    /// Seals the segment. The store is closed on return.
    pub fn seal(self, end: Chain) -> Result<(), Failure> {
        let sent = self.orders.send(Order::Seal(end)).map_err(|_| ended());
        // A sync that is running is acknowledged first; the seal is acknowledged last.
        let mut last = sent.and_then(|()| self.answers.recv().map_err(|_| ended())?);
        if self.is_syncing && last.is_ok() {
            last = self.answers.recv().map_err(|_| ended())?;
        }
        drop(self.orders);
        let closed = self.thread.join().map_err(|_| ended());
        last.and(closed)
    }

    fn answered(&mut self, answer: Result<u64, Failure>) -> Result<u64, Failure> {
        self.is_syncing = false;
        answer
    }
}

fn ended() -> Failure {
    Failure::Storage("the thread of the store has ended".to_owned())
}
