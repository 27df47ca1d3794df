//! One segment being written: a sled directory, its head and its blocks, made durable in groups.
//!
//! A group is durable in the tail and acknowledged; then sled gets it, and makes it durable when the
//! tail has no more room, or in a quiet moment. Until then the tail alone may hold it.
//!
//! Guards: one thread owns it; `flush` alone leaves the data in the page cache on Linux, so that a
//! sync of the `db` file follows; sled's own timer and subscribers are not used. A page of sled
//! holds up to 17 values and becomes a file of its own above 128 KiB, which is slow and needs
//! syncs that sled does not do: parts are small enough for a page of 17 to stay below.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use sled::{Batch, Db};
use windvane_engine::record::{Block, Chain};

use crate::failure::Failure;
use crate::owner::SyncHook;
use crate::packed::{self, Packer};
use crate::private;
use crate::small_file::sync_folder;
use crate::tail::Tail;

/// Version of the format of segments. Before the second there was no tail; those are still read.
pub const FORMAT_VERSION: u32 = 2;
/// Bytes of a value at most.
const PART_BYTES: usize = 6 * 1024;
const CACHE_BYTES: u64 = 64 << 20;

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
    db: Db,
    file: File,
    tail: Tail,
    packer: Packer,
    sync_hook: Option<SyncHook>,
    chain: Chain,
}

impl Segment {
    /// Makes a segment and its head; both are durable on return. One that cannot be made whole
    /// leaves nothing behind: it would take the space of the next try.
    pub fn create(
        journal: &Path,
        number: u32,
        head: &[u8],
        base: Chain,
        sync_hook: Option<SyncHook>,
    ) -> Result<Self, Failure> {
        let folder = folder(journal, number);
        private::new_folder(&folder)?;
        let made = Self::create_in(&folder, number, head, base, sync_hook).and_then(|segment| {
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
        sync_hook: Option<SyncHook>,
    ) -> Result<Self, Failure> {
        let tail = Tail::create(folder)?;
        let db = sled_config(folder).open()?;
        private::close_files(folder)?;
        let mut segment = Self {
            file: File::open(folder.join("db"))?,
            db,
            tail,
            packer: Packer::new()?,
            sync_hook,
            chain: base,
        };
        let packed = segment.packer.pack_head(head)?;
        for (part, bytes) in (0..).zip(packed.chunks(PART_BYTES)) {
            segment.db.insert(key::head(part), bytes)?;
        }
        let meta = Meta {
            version: FORMAT_VERSION,
            number,
            base,
            head_len: head.len() as u64,
            head_hash: Sha256::digest(head).into(),
        };
        segment.db.insert(key::META, &meta.to_bytes()[..])?;
        segment.sync()?;
        Ok(segment)
    }

    /// Appends blocks; they are durable on return, all of them.
    pub fn append(&mut self, group: &[Block]) -> Result<Chain, Failure> {
        let mut chain = self.chain;
        for block in group {
            chain = chain
                .follow(block)
                .map_err(|error| Failure::Storage(error.to_string()))?;
            self.tail.push(block.number, &packed::plain(block));
        }
        if self.tail.has_room() {
            self.tail.write()?;
            self.before_sync()?;
            self.tail.sync()?;
        } else {
            self.sync()?;
        }
        self.chain = chain;
        Ok(chain)
    }

    /// Whether the tail has made something durable that sled was not given.
    pub const fn wants_store(&self) -> bool {
        self.tail.has_frames()
    }

    /// Gives sled what the tail has made durable: when nobody waits, for it takes time.
    pub fn store(&mut self) -> Result<(), Failure> {
        if !self.tail.has_frames() {
            return Ok(());
        }
        let mut batch = Batch::default();
        for (number, plain) in self.tail.frames() {
            let packed = self.packer.squeeze(plain)?;
            for (part, bytes) in (0..).zip(packed.chunks(PART_BYTES)) {
                batch.insert(&key::block(number, part), bytes);
            }
        }
        self.db.apply_batch(batch)?;
        self.tail.forget_frames();
        Ok(())
    }

    /// Whether a quiet moment should be used for [`sync`](Self::sync).
    pub const fn wants_sync(&self) -> bool {
        self.tail.is_long()
    }

    /// Makes everything durable in sled, so that the tail can begin again.
    pub fn sync(&mut self) -> Result<(), Failure> {
        self.store()?;
        self.db.flush()?;
        self.before_sync()?;
        self.file.sync_all()?;
        self.tail.begin_again();
        Ok(())
    }

    /// Ends the segment in order.
    pub fn seal(mut self) -> Result<(), Failure> {
        self.db.insert(key::SEAL, &chain_bytes(&self.chain)[..])?;
        self.sync()?;
        self.tail.remove();
        Ok(())
    }

    fn before_sync(&self) -> Result<(), Failure> {
        Ok(self.sync_hook.as_ref().map_or(Ok(()), |hook| hook())?)
    }
}
