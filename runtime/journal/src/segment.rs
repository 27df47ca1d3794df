//! One segment being written: its head and its blocks, made durable in groups.
//!
//! The order parts of a group are durable in the tail and acknowledged; then the store gets them,
//! and makes them durable beside the path of orders. Until then the tail alone may hold them. The
//! store also gets the market parts, which nobody waits for.
//!
//! Guard: the tail begins again only while the store has made durable all that stands in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use windvane_model::record::{Block, Chain, Format};

use crate::failure::Failure;
use crate::market;
use crate::owner::Hooks;
use crate::packed;
use crate::private;
use crate::small_file::sync_folder;
use crate::store::{Store, StoreThread};
use crate::tail::Tail;

/// Version of the format of segments. Before the second there was no tail, and before the third
/// blocks had one part, and market data was in sled; those are still read.
pub const FORMAT_VERSION: u32 = 3;
const CACHE_BYTES: u64 = 64 << 20;
/// After so long without a message the store is given what is durable: what waited for that is on
/// its way, and does not want this processor any more.
const PAUSE: Duration = Duration::from_millis(2);
/// So many bytes of market parts do not wait for a pause.
const MARKET_BYTES: usize = 512 << 10;
/// After so long without one, the store may take the processors and the disk for a sync.
const QUIET: Duration = Duration::from_millis(20);

/// Keys: a letter, then big-endian numbers.
pub mod key {
    /// Parts of blocks: number, part.
    pub const BLOCK: u8 = b'b';
    /// Parts of the head: part.
    pub const HEAD: u8 = b'h';
    /// What the segment is; written after the head.
    pub const META: [u8; 1] = *b"m";
    /// Where the segment ends, in order.
    pub const SEAL: [u8; 1] = *b"z";

    pub fn block(number: u64, part: u16) -> [u8; 11] {
        let mut key = [BLOCK; 11];
        key[1..9].copy_from_slice(&number.to_be_bytes());
        key[9..].copy_from_slice(&part.to_be_bytes());
        key
    }

    pub fn head(part: u32) -> [u8; 5] {
        let mut key = [HEAD; 5];
        key[1..].copy_from_slice(&part.to_be_bytes());
        key
    }
}

/// The folder of a segment.
pub fn folder(journal: &Path, number: u32) -> PathBuf {
    journal.join(format!("{number:08x}"))
}

/// sled as it is always opened here.
pub fn sled_config(folder: &Path) -> sled::Config {
    sled::Config::new()
        .path(folder)
        .cache_capacity(CACHE_BYTES)
        .flush_every_ms(None)
}

/// A chain as it is stored.
pub fn chain_bytes(chain: &Chain) -> [u8; 48] {
    let mut bytes = [0; 48];
    bytes[..8].copy_from_slice(&chain.next_block.to_le_bytes());
    bytes[8..16].copy_from_slice(&chain.last_record.to_le_bytes());
    bytes[16..].copy_from_slice(&chain.hash);
    bytes
}

/// What a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Version of its format.
    pub version: u32,
    /// Its number.
    pub number: u32,
    /// What its first block continues.
    pub base: Chain,
    /// Length of its head.
    pub head_len: u64,
    /// SHA-256 of its head.
    pub head_hash: [u8; 32],
}

impl Meta {
    /// The format of the segment's records.
    pub const fn record_format(&self) -> Format {
        if self.version < 3 {
            Format::V1
        } else {
            Format::V3
        }
    }

    pub fn to_bytes(self) -> [u8; 96] {
        let mut bytes = [0; 96];
        bytes[..4].copy_from_slice(&self.version.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..56].copy_from_slice(&chain_bytes(&self.base));
        bytes[56..64].copy_from_slice(&self.head_len.to_le_bytes());
        bytes[64..].copy_from_slice(&self.head_hash);
        bytes
    }
}

/// A segment that takes blocks.
pub struct Segment {
    tail: Tail,
    /// Frames of market parts, until the store takes them.
    market: Vec<u8>,
    store: StoreThread,
    hooks: Hooks,
    chain: Chain,
}

/// Work beside the path of orders.
#[derive(Clone, Copy, Debug)]
pub enum Duty {
    /// Give the store what the tail has made durable.
    HandOver,
    /// Ask the store to make everything durable, so that the tail can begin again.
    Sync,
    /// See whether that sync has ended.
    Settle,
}

impl Segment {
    /// Makes a segment and its head; both are durable on return. One that cannot be made whole
    /// leaves nothing behind: it would take the space of the next try.
    pub fn create(
        journal: &Path,
        number: u32,
        head: &[u8],
        base: Chain,
        hooks: Hooks,
    ) -> Result<Self, Failure> {
        let folder = folder(journal, number);
        private::new_folder(&folder)?;
        let made = Self::create_in(&folder, number, head, base, hooks).and_then(|segment| {
            sync_folder(&folder)?;
            sync_folder(journal)?;
            Ok(segment)
        });
        if made.is_err()
            && let Err(error) = fs::remove_dir_all(&folder)
        {
            tracing::warn!(%error, folder = %folder.display(), "an unfinished segment stays");
        }
        made
    }

    fn create_in(
        folder: &Path,
        number: u32,
        head: &[u8],
        base: Chain,
        hooks: Hooks,
    ) -> Result<Self, Failure> {
        let tail = Tail::create(folder)?;
        let mut store = Store::create(folder, hooks.clone())?;
        let meta = Meta {
            version: FORMAT_VERSION,
            number,
            base,
            head_len: head.len() as u64,
            head_hash: Sha256::digest(head).into(),
        };
        store.put_head(head, meta)?;
        store.sync()?;
        Ok(Self {
            tail,
            market: Vec::new(),
            store: StoreThread::start(store)?,
            hooks,
            chain: base,
        })
    }

    /// Appends blocks; their order parts are durable on return, all of them.
    pub fn append(&mut self, group: &[Block]) -> Result<Chain, Failure> {
        self.settle()?;
        let mut chain = self.chain;
        for block in group {
            chain = chain
                .follow(block)
                .map_err(|error| Failure::Storage(error.to_string()))?;
            self.tail.push(block.number, &packed::plain(block));
            if let Some(part) = block.market.as_deref().filter(|part| !part.is_empty()) {
                market::push_frame(&mut self.market, block.number, part);
            }
        }
        if self.tail.has_room() {
            self.tail.write()?;
            self.before_sync()?;
            self.tail.sync()?;
            self.chain = chain;
            if self.market.len() > MARKET_BYTES {
                self.hand_over();
            }
            if self.tail.is_crowded() && !self.store.is_syncing() {
                self.sync();
            }
        } else {
            // The store makes the group durable itself, and the tail is not written.
            self.chain = chain;
            self.sync();
            self.store.wait(chain.next_block)?;
            self.tail.begin_again();
        }
        Ok(chain)
    }

    /// What to do once no message came for so long.
    pub fn duty(&self) -> Option<(Duration, Duty)> {
        if self.tail.has_frames() {
            return Some((PAUSE, Duty::HandOver));
        }
        if self.store.is_syncing() {
            return Some((QUIET, Duty::Settle));
        }
        self.tail.is_long().then_some((QUIET, Duty::Sync))
    }

    /// Does that.
    pub fn carry_out(&mut self, duty: Duty) -> Result<(), Failure> {
        match duty {
            Duty::HandOver => self.hand_over(),
            Duty::Sync => self.sync(),
            Duty::Settle => return self.settle(),
        }
        Ok(())
    }

    fn hand_over(&mut self) {
        if self.tail.has_frames() {
            let market = std::mem::take(&mut self.market);
            self.store.put(self.tail.take_frames(), market);
        }
    }

    fn sync(&mut self) {
        self.hand_over();
        self.store.sync(self.chain.next_block);
    }

    /// Has the tail begin again if the store has made durable all that stands in it.
    fn settle(&mut self) -> Result<(), Failure> {
        if self.store.synced()? == Some(self.chain.next_block) {
            self.tail.begin_again();
        }
        Ok(())
    }

    /// Ends the segment in order.
    pub fn seal(mut self) -> Result<(), Failure> {
        self.hand_over();
        self.store.seal(self.chain)?;
        self.tail.remove();
        Ok(())
    }

    fn before_sync(&self) -> Result<(), Failure> {
        Ok(self.hooks.sync.as_ref().map_or(Ok(()), |hook| hook())?)
    }
}
