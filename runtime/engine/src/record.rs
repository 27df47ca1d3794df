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
    /// Sequence of its last record.
    pub last_record: u64,
    /// Hash of the block before it.
    pub previous: Hash,
    /// Its own hash.
    pub hash: Hash,
    /// Its records.
    pub bytes: Vec<u8>,
}

/// Where a chain of blocks stands: what its next block must continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Number of the next block.
    pub next_block: u64,
    /// Sequence of the last record in the blocks so far; 0 before the first.
    pub last_record: u64,
    /// Hash of the last block; zeros before the first.
    pub hash: Hash,
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
        Self::from_chain(Chain::default(), keep)
    }

    /// A recorder that goes on where a chain stands: after a restart on a journal.
    pub fn from_chain(chain: Chain, keep: bool) -> Self {
        Self {
            bytes: Vec::with_capacity(BLOCK_BYTES + 4096),
            chain: chain.hash,
            blocks: chain.next_block,
            records: chain.last_record,
            first_record: chain.last_record,
            keep,
            sealed: VecDeque::new(),
        }
    }

    /// Where the chain of sealed blocks stands.
    pub const fn chain(&self) -> Chain {
        Chain {
            next_block: self.blocks,
            last_record: self.first_record,
            hash: self.chain,
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
                last_record: self.records,
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
    /// It does not hold as many records as it says.
    #[error("block {block} says that it ends with record {found}, but it ends with {expected}")]
    LastRecord {
        /// Its number.
        block: u64,
        /// The sequence of the last record that it holds.
        expected: u64,
        /// The sequence that it says.
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

impl Chain {
    /// Where the chain stands after a block, if number, record and previous hash continue it. The
    /// records themselves are not looked at.
    ///
    /// # Errors
    /// What does not continue.
    pub fn follow(&self, block: &Block) -> Result<Self, ChainError> {
        if block.number != self.next_block {
            return Err(ChainError::Number {
                expected: self.next_block,
                found: block.number,
            });
        }
        if block.previous != self.hash {
            return Err(ChainError::Previous {
                block: block.number,
            });
        }
        if block.first_record != self.last_record + 1 {
            return Err(ChainError::FirstRecord {
                block: block.number,
                expected: self.last_record + 1,
                found: block.first_record,
            });
        }
        Ok(Self {
            next_block: block.number + 1,
            last_record: block.last_record,
            hash: block.hash,
        })
    }

    /// [`follow`](Self::follow), the block's hash and each of its records.
    ///
    /// # Errors
    /// What is wrong with the block.
    pub fn verify(&self, block: &Block) -> Result<Self, ChainError> {
        let number = block.number;
        let next = self.follow(block)?;
        if block.hash != block_hash(number, &self.hash, &block.bytes) {
            return Err(ChainError::Hash { block: number });
        }
        let mut last = self.last_record;
        for record in codec::decode(&block.bytes) {
            record.map_err(|error| ChainError::Records {
                block: number,
                error,
            })?;
            last += 1;
        }
        if block.last_record != last {
            return Err(ChainError::LastRecord {
                block: number,
                expected: last,
                found: block.last_record,
            });
        }
        Ok(next)
    }
}

/// Verifies a whole chain from block 0 and answers its last hash: the fingerprint.
///
/// # Errors
/// The first bad block and what is wrong with it.
pub fn verify<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> Result<Hash, ChainError> {
    let mut chain = Chain::default();
    for block in blocks {
        chain = chain.verify(block)?;
    }
    Ok(chain.hash)
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
    fn a_recorder_that_goes_on_makes_the_same_chain() {
        let mut whole = Recorder::new(true);
        let mut part = Recorder::new(true);
        for i in 0..10 {
            for recorder in [&mut whole, &mut part] {
                recorder.begin(1, i);
                recorder.seal();
            }
            part = Recorder::from_chain(part.chain(), true);
        }
        assert_eq!(whole.chain(), part.chain());
        assert_eq!(whole.last_record(), part.last_record());
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
