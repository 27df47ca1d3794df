//! The journal's record format: inputs and effects in order, in blocks that are chained by hash.
//!
//! A block holds up to 64 KiB of records and is sealed early when an intent was recorded, so that
//! what the intent causes can wait for a durable block. The hash of a block is SHA-256 over the
//! format version, its number, the hash of the block before it and its records; the last hash of
//! a run is its fingerprint. A hash for each record would cost several times as much.
//!
//! All integers are little endian. A record is one byte of kind, eight of time and its fields.
//! Records carry no clock, no address and no map order: equal runs have equal bytes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use sha2::{Digest, Sha256};

use crate::codec::{self, DecodeError};

/// Version of the record format; part of every hash.
pub const FORMAT_VERSION: u32 = 1;
/// Size at which a block is sealed.
pub const BLOCK_BYTES: usize = 64 * 1024;

/// A hash of the chain.
pub type Hash = [u8; 32];

/// A sealed block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its number, from 0.
    pub number: u64,
    /// Sequence of its first record.
    pub first_record: u64,
    /// Hash of the block before it.
    pub previous: Hash,
    /// Its own hash.
    pub hash: Hash,
    /// Its records.
    pub bytes: Vec<u8>,
}

/// Writes records into chained blocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recorder {
    bytes: Vec<u8>,
    chain: Hash,
    blocks: u64,
    records: u64,
    first_record: u64,
    keep: bool,
    #[serde(skip)]
    sealed: VecDeque<Block>,
}

impl Recorder {
    /// An empty chain. With `keep`, sealed blocks wait for [`Recorder::poll_block`]; without,
    /// they are hashed and forgotten.
    pub fn new(keep: bool) -> Self {
        Self {
            bytes: Vec::with_capacity(BLOCK_BYTES + 4096),
            chain: [0; 32],
            blocks: 0,
            records: 0,
            first_record: 0,
            keep,
            sealed: VecDeque::new(),
        }
    }

    /// Goes on where another recorder ended: one chain over all processes of a journal.
    pub fn continuing(other: &Self, keep: bool) -> Self {
        Self {
            chain: other.chain,
            blocks: other.blocks,
            records: other.records,
            first_record: other.records,
            ..Self::new(keep)
        }
    }

    /// Begins a record and answers its sequence.
    #[inline]
    pub(crate) fn begin(&mut self, kind: u8, time: i64) -> &mut Vec<u8> {
        if self.bytes.len() >= BLOCK_BYTES {
            self.seal();
        }
        self.records += 1;
        let mut head = [kind; 9];
        head[1..].copy_from_slice(&time.to_le_bytes());
        self.bytes.extend_from_slice(&head);
        &mut self.bytes
    }

    /// Sequence of the last record; the first has 1.
    #[inline]
    pub const fn last_record(&self) -> u64 {
        self.records
    }

    /// Ends the running block.
    pub fn seal(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        let previous = self.chain;
        self.chain = block_hash(self.blocks, &previous, &self.bytes);
        if self.keep {
            self.sealed.push_back(Block {
                number: self.blocks,
                first_record: self.first_record + 1,
                previous,
                hash: self.chain,
                bytes: self.bytes.clone(),
            });
        }
        self.bytes.clear();
        self.blocks += 1;
        self.first_record = self.records;
    }

    /// The next sealed block to be made durable.
    pub fn poll_block(&mut self) -> Option<Block> {
        self.sealed.pop_front()
    }

    /// Seals what is left and answers the hash over everything recorded so far.
    pub fn fingerprint(&mut self) -> Hash {
        self.seal();
        self.chain
    }
}

/// The hash of a block of records.
pub fn block_hash(number: u64, previous: &Hash, bytes: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update(b"windvane");
    hasher.update(FORMAT_VERSION.to_le_bytes());
    hasher.update(number.to_le_bytes());
    hasher.update(previous);
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
    hasher.finalize().into()
}

/// Where a chain of blocks is broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// A block is missing, or one is out of place.
    #[error("block {found} stands where block {expected} belongs")]
    Number {
        /// The number that belongs here.
        expected: u64,
        /// The number found.
        found: u64,
    },
    /// The block does not continue the one before it.
    #[error("block {block} does not continue the block before it: its previous hash differs")]
    Previous {
        /// Its number.
        block: u64,
    },
    /// The records are not those that were hashed.
    #[error("block {block} is damaged: its records do not have its hash")]
    Hash {
        /// Its number.
        block: u64,
    },
    /// The sequence of its first record does not follow the records before it.
    #[error("block {block} starts with record {found} where record {expected} belongs")]
    FirstRecord {
        /// Its number.
        block: u64,
        /// The sequence that belongs here.
        expected: u64,
        /// The sequence found.
        found: u64,
    },
    /// Its records cannot be read, although they are those that were hashed.
    #[error("block {block}: {error}")]
    Records {
        /// Its number.
        block: u64,
        /// What is wrong with them.
        error: DecodeError,
    },
}

/// Verifies a whole chain from block 0 and answers its last hash: the fingerprint.
///
/// # Errors
/// The first bad block and what is wrong with it.
pub fn verify<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> Result<Hash, ChainError> {
    let mut chain = [0; 32];
    let mut first_record = 1;
    for (expected, block) in (0..).zip(blocks) {
        if block.number != expected {
            return Err(ChainError::Number {
                expected,
                found: block.number,
            });
        }
        let number = block.number;
        if block.previous != chain {
            return Err(ChainError::Previous { block: number });
        }
        if block.hash != block_hash(number, &chain, &block.bytes) {
            return Err(ChainError::Hash { block: number });
        }
        if block.first_record != first_record {
            return Err(ChainError::FirstRecord {
                block: number,
                expected: first_record,
                found: block.first_record,
            });
        }
        for record in codec::decode(&block.bytes) {
            record.map_err(|error| ChainError::Records {
                block: number,
                error,
            })?;
            first_record += 1;
        }
        chain = block.hash;
    }
    Ok(chain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_covers_order_content_and_block_borders() {
        let run = |records: &[u8], seal_after: usize| {
            let mut recorder = Recorder::new(false);
            for (i, kind) in records.iter().enumerate() {
                recorder.begin(*kind, 7);
                if i == seal_after {
                    recorder.seal();
                }
            }
            recorder.fingerprint()
        };
        let whole = run(&[1, 2, 3], 9);
        assert_eq!(whole, run(&[1, 2, 3], 9));
        assert_ne!(whole, run(&[2, 1, 3], 9));
        assert_ne!(whole, run(&[1, 2], 9));
        assert_ne!(whole, run(&[1, 2, 3], 0));
    }

    #[test]
    fn kept_blocks_verify_one_after_the_other() {
        let mut recorder = Recorder::new(true);
        for i in 0..20_000 {
            recorder.begin(1, i);
        }
        let fingerprint = recorder.fingerprint();
        let (mut chain, mut next) = ([0; 32], 1);
        while let Some(block) = recorder.poll_block() {
            assert_eq!(block.previous, chain);
            assert_eq!(block.first_record, next);
            assert!(block.bytes.len() < BLOCK_BYTES + 9);
            chain = block_hash(block.number, &chain, &block.bytes);
            assert_eq!(block.hash, chain);
            next += block.bytes.len() as u64 / 9;
        }
        assert_eq!((chain, next), (fingerprint, 20_001));
    }
}
