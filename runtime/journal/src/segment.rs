//! A segment that is being written: its checkpoint, and its blocks, which become durable in groups.
//!
//! The order parts of a group first become durable in the WAL and are then acknowledged. After
//! that the store gets them and makes them durable in the background. Until then they may exist
//! only in the WAL. The store also gets the market parts, which no order waits for.
//!
//! Guard: the WAL is overwritten only after the store has made all of its content durable.

use std::fs;
use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};
use windvane_model::record::{Block, Chain};

use crate::failure::Failure;
use crate::layout::{FORMAT_VERSION, Meta, folder};
use crate::market;
use crate::options::Hooks;
use crate::packed;
use crate::store::{Store, StoreThread};
use crate::wal::Wal;
use windvane_files::sync_folder;

/// After this time without a message, the store gets the durable frames. By then the orders that
/// waited for them are on their way, and the processor is free.
const PAUSE: Duration = Duration::from_millis(2);
/// More than this many bytes of market parts do not wait for a pause.
const MARKET_BYTES: usize = 512 << 10;
/// After this time without a message, the store may use processors and disk for a sync.
const QUIET: Duration = Duration::from_millis(20);

/// A segment that accepts blocks.
pub struct Segment {
    wal: Wal,
    /// Frames of market parts that the store did not get yet.
    market: Vec<u8>,
    store: StoreThread,
    hooks: Hooks,
    chain: Chain,
}

/// Background work. Orders do not wait for it.
#[derive(Clone, Copy, Debug)]
pub enum Duty {
    /// Give the store the frames that are durable in the WAL.
    HandOver,
    /// Have the store make everything durable, so that the WAL can be overwritten.
    Sync,
    /// Check whether that sync has ended.
    Settle,
}

impl Segment {
    /// Creates a segment with its checkpoint; both are durable on return. If this fails, the folder
    /// is removed, because it would take space that the next attempt needs.
    pub fn create(
        journal: &Path,
        number: u32,
        checkpoint: &[u8],
        base: Chain,
        hooks: Hooks,
    ) -> Result<Self, Failure> {
        let folder = folder(journal, number);
        windvane_files::new_folder(&folder)?;
        let made = Self::create_in(&folder, number, checkpoint, base, hooks).and_then(|segment| {
            sync_folder(&folder)?;
            sync_folder(journal)?;
            Ok(segment)
        });
        if made.is_err()
            && let Err(error) = fs::remove_dir_all(&folder)
        {
            tracing::warn!(%error, folder = %folder.display(), "the folder of an unfinished segment could not be removed");
        }
        made
    }

    fn create_in(
        folder: &Path,
        number: u32,
        checkpoint: &[u8],
        base: Chain,
        hooks: Hooks,
    ) -> Result<Self, Failure> {
        let wal = Wal::create(folder)?;
        let mut store = Store::create(folder, hooks.clone())?;
        let meta = Meta {
            version: FORMAT_VERSION,
            number,
            base,
            checkpoint_len: checkpoint.len() as u64,
            checkpoint_hash: Sha256::digest(checkpoint).into(),
        };
        store.put_checkpoint(checkpoint, meta)?;
        store.sync()?;
        Ok(Self {
            wal,
            market: Vec::new(),
            store: StoreThread::start(store)?,
            hooks,
            chain: base,
        })
    }

    /// Appends blocks. All of their order parts are durable on return.
    pub fn append(&mut self, group: &[Block]) -> Result<Chain, Failure> {
        self.settle()?;
        let mut chain = self.chain;
        for block in group {
            chain = chain
                .follow(block)
                .map_err(|error| Failure::Storage(error.to_string()))?;
            self.wal.push(block.number, &packed::plain(block));
            if let Some(part) = block.market.as_deref().filter(|part| !part.is_empty()) {
                market::push_frame(&mut self.market, block.number, part);
            }
        }
        if self.wal.has_room() {
            self.wal.write()?;
            self.before_sync()?;
            self.wal.sync()?;
            self.chain = chain;
            if self.market.len() > MARKET_BYTES {
                self.hand_over();
            }
            if self.wal.is_crowded() && !self.store.is_syncing() {
                self.sync();
            }
        } else {
            // The group does not fit into the WAL, so the store makes it durable and the WAL is
            // not written.
            self.chain = chain;
            self.sync();
            self.store.wait(chain.next_block)?;
            self.wal.begin_again();
        }
        Ok(chain)
    }

    /// The next duty, and how long to wait for a message before it is carried out.
    pub fn duty(&self) -> Option<(Duration, Duty)> {
        if self.wal.has_frames() {
            return Some((PAUSE, Duty::HandOver));
        }
        if self.store.is_syncing() {
            return Some((QUIET, Duty::Settle));
        }
        self.wal.is_long().then_some((QUIET, Duty::Sync))
    }

    /// Carries out a duty.
    pub fn carry_out(&mut self, duty: Duty) -> Result<(), Failure> {
        match duty {
            Duty::HandOver => self.hand_over(),
            Duty::Sync => self.sync(),
            Duty::Settle => return self.settle(),
        }
        Ok(())
    }

    fn hand_over(&mut self) {
        if self.wal.has_frames() {
            let market = std::mem::take(&mut self.market);
            self.store.put(self.wal.take_frames(), market);
        }
    }

    fn sync(&mut self) {
        self.hand_over();
        self.store.sync(self.chain.next_block);
    }

    /// Lets the WAL start again if the store has made all of its content durable.
    fn settle(&mut self) -> Result<(), Failure> {
        if self.store.synced()? == Some(self.chain.next_block) {
            self.wal.begin_again();
        }
        Ok(())
    }

    /// Seals the segment.
    pub fn seal(mut self) -> Result<(), Failure> {
        self.hand_over();
        self.store.seal(self.chain)?;
        self.wal.remove();
        Ok(())
    }

    fn before_sync(&self) -> Result<(), Failure> {
        Ok(self.hooks.sync.as_ref().map_or(Ok(()), |hook| hook())?)
    }
}
