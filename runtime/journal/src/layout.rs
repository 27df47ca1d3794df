//! The stored form of a segment: its folder, the settings of sled, the keys of its rows, and its
//! description.

use std::path::{Path, PathBuf};

use windvane_model::record::{Chain, Format};

/// Version of the segment format. Segments before version 2 have no WAL. Before version 3 blocks
/// had one part, and market data was in sled. Old versions can still be read.
pub const FORMAT_VERSION: u32 = 3;
const CACHE_BYTES: u64 = 64 << 20;
/// A longer file of a segment is not read. Segments end at some MiB; only a checkpoint may be much
/// longer.
pub const FILE_BYTES_MAX: u64 = 4 << 30;

/// Keys of the rows: a letter, then big-endian numbers.
pub mod key {
    /// Parts of blocks: block number, part number.
    pub const BLOCK: u8 = b'b';
    /// Parts of the checkpoint: part number.
    pub const CHECKPOINT: u8 = b'h';
    /// The description of the segment; written after the checkpoint.
    pub const META: [u8; 1] = *b"m";
    /// The seal: the end of the segment.
    pub const SEAL: [u8; 1] = *b"z";

    pub fn block(number: u64, part: u16) -> [u8; 11] {
        let mut key = [BLOCK; 11];
        key[1..9].copy_from_slice(&number.to_be_bytes());
        key[9..].copy_from_slice(&part.to_be_bytes());
        key
    }

    pub fn checkpoint(part: u32) -> [u8; 5] {
        let mut key = [CHECKPOINT; 5];
        key[1..].copy_from_slice(&part.to_be_bytes());
        key
    }
}

/// The folder of a segment.
pub fn folder(journal: &Path, number: u32) -> PathBuf {
    journal.join(format!("{number:08x}"))
}

/// The sled settings that are used everywhere.
pub fn sled_config(folder: &Path) -> sled::Config {
    sled::Config::new()
        .path(folder)
        .cache_capacity(CACHE_BYTES)
        .flush_every_ms(None)
}

/// The stored form of a chain position.
pub fn chain_bytes(chain: &Chain) -> [u8; 48] {
    let mut bytes = [0; 48];
    bytes[..8].copy_from_slice(&chain.next_block.to_le_bytes());
    bytes[8..16].copy_from_slice(&chain.last_record.to_le_bytes());
    bytes[16..].copy_from_slice(&chain.hash);
    bytes
}

/// The description of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Version of its format.
    pub version: u32,
    /// Its number.
    pub number: u32,
    /// The position that its first block continues.
    pub base: Chain,
    /// Length of its checkpoint, in bytes.
    pub checkpoint_len: u64,
    /// SHA-256 of its checkpoint.
    pub checkpoint_hash: [u8; 32],
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
        bytes[56..64].copy_from_slice(&self.checkpoint_len.to_le_bytes());
        bytes[64..].copy_from_slice(&self.checkpoint_hash);
        bytes
    }
}
