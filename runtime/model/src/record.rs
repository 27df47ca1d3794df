//! The journal's record format: inputs and effects in order, in blocks that are chained by hash.
//!
//! A block holds up to 64 KiB of records. When it is sealed, it gets its hash and takes no more
//! records. That happens early after the record of an intent, so that the effects of the intent can
//! wait for a durable block. Since format 3, a block has two parts: the market part with market
//! data, and the order part with all other records. The order part stores the position of its
//! records among all records. The hash of a block covers the order part and the digest of the
//! market part. So there is one sequence and one chain, although the order part can be durable and
//! can be read without the market part. The last hash of a run is its fingerprint.
//! `docs/journal-format.md` describes the bytes.
//!
//! Records contain no clock time, memory address or map order, so that equal runs have equal bytes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use sha2::{Digest, Sha256};

use crate::codec::{DecodeError, Form, MarketWriter, Out, Records};

/// The size in bytes at which the recorder seals a block: it hashes the block and begins the next
/// one.
pub const BLOCK_BYTES: usize = 64 * 1024;

/// A SHA-256 hash of the chain.
pub type Hash = [u8; 32];

/// The format of records. Every hash covers its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One stream of records, with integers of fixed length.
    V1,
    /// An order part and a market part, with integers of variable length. A format 2 of records
    /// never existed.
    #[default]
    V3,
}

impl Format {
    /// Its version number.
    pub const fn version(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V3 => 3,
        }
    }
}

/// A sealed block: it has its hash and takes no more records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The format of its records.
    pub format: Format,
    /// Its number. The first block has 0.
    pub number: u64,
    /// Sequence of its first record.
    pub first_record: u64,
    /// Sequence of its last record.
    pub last_record: u64,
    /// Hash of the previous block.
    pub previous: Hash,
    /// Its own hash.
    pub hash: Hash,
    /// Its order part. In format 1, all of its records.
    pub orders: Vec<u8>,
    /// Digest of its market part; zeros if it has no market records.
    pub market_digest: Hash,
    /// Length of its market part in bytes, even if the part is lost.
    pub market_len: usize,
    /// Its market part; `None` if it is lost.
    pub market: Option<Vec<u8>>,
}

impl Block {
    /// Its records in order, each with its sequence. The records of a lost market part are missing.
    pub fn records(&self) -> Records<'_> {
        match self.format {
            Format::V1 => Records::fixed(&self.orders, self.first_record),
            Format::V3 => Records::parts(&self.orders, self.market.as_deref(), self.first_record),
        }
    }

    /// The length in bytes of the records that it still has.
    pub fn len(&self) -> usize {
        self.orders.len() + self.market.as_ref().map_or(0, Vec::len)
    }

    /// Whether it has a market part, which may be lost.
    pub fn has_market(&self) -> bool {
        self.market_digest != Hash::default()
    }

    /// Whether its market part is lost.
    pub const fn lacks_market(&self) -> bool {
        self.market.is_none()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hash computed from its content.
    pub fn computed_hash(&self) -> Hash {
        match self.format {
            Format::V1 => fixed_hash(self.number, &self.previous, &self.orders),
            Format::V3 => {
                let (digest, last) = (&self.market_digest, self.last_record);
                block_hash(self.number, &self.previous, last, &self.orders, digest)
            }
        }
    }
}

/// The end of a chain of blocks, which the next block must continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Number of the next block.
    pub next_block: u64,
    /// Sequence of the last record in the blocks so far; 0 before the first block.
    pub last_record: u64,
    /// Hash of the last block; zeros before the first block.
    pub hash: Hash,
}

/// Writes records into chained blocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recorder {
    orders: Vec<u8>,
    chain: Hash,
    blocks: u64,
    records: u64,
    first_record: u64,
    keep: bool,
    // Snapshots are taken between two blocks. The following fields are then empty, so they are not
    // serialized.
    #[serde(skip)]
    format: Format,
    #[serde(skip)]
    market: MarketWriter,
    /// Number of market records since the last order record of the block.
    #[serde(skip)]
    skipped: u64,
    /// Time of the last order record of the block.
    #[serde(skip)]
    time: i64,
    /// Sequence of the last event that the block's order part delivered.
    #[serde(skip)]
    event: i64,
    #[serde(skip)]
    sealed: VecDeque<Block>,
}

impl Recorder {
    /// Begins an empty chain. With `keep`, sealed blocks wait for [`Recorder::poll_block`]. Without
    /// it, they are hashed and dropped.
    pub fn new(keep: bool) -> Self {
        Self::from_chain(Chain::default(), keep)
    }

    /// Continues an existing chain, for example after a restart with a journal.
    pub fn from_chain(chain: Chain, keep: bool) -> Self {
        Self {
            orders: Vec::new(),
            chain: chain.hash,
            blocks: chain.next_block,
            records: chain.last_record,
            first_record: chain.last_record,
            keep,
            format: Format::default(),
            market: MarketWriter::default(),
            skipped: 0,
            time: 0,
            event: 0,
            sealed: VecDeque::new(),
        }
    }

    /// The end of the chain of sealed blocks.
    pub const fn chain(&self) -> Chain {
        Chain {
            next_block: self.blocks,
            last_record: self.first_record,
            hash: self.chain,
        }
    }

    /// Seals the current block and uses another format from now on.
    pub fn set_format(&mut self, format: Format) {
        if self.format != format {
            self.seal();
            self.format = format;
        }
    }

    /// Seals the current block if it is full.
    #[inline]
    fn make_room(&mut self) {
        if self.orders.len() + self.market.bytes.len() >= BLOCK_BYTES {
            self.seal();
        }
    }

    /// Counts a record, and seals the current block first if it is full.
    #[inline]
    fn count(&mut self) {
        self.make_room();
        self.records += 1;
    }

    /// Begins a record of the order part.
    #[inline]
    pub(crate) fn begin(&mut self, kind: u8, time: i64) -> Out<'_> {
        self.count();
        match self.format {
            Format::V1 => {
                let mut out = Out::new(&mut self.orders, Form::Fixed);
                out.put(&[kind]);
                out.put_i64(time);
                out
            }
            Format::V3 => {
                let elapsed = time.wrapping_sub(self.time) as u64;
                self.time = time;
                let mut out = Out::new(&mut self.orders, Form::Short);
                out.put(&[kind]);
                out.put_u64(std::mem::take(&mut self.skipped));
                out.put_u64(elapsed);
                out
            }
        }
    }

    /// The difference between the sequence of an event and that of the order part's previous event.
    /// The caller writes it in the record that [`begin`](Self::begin) begins next. `None` in format
    /// 1, which does not have it.
    #[inline]
    pub(crate) fn event_step(&mut self, sequence: i64) -> Option<i64> {
        self.make_room();
        (self.format != Format::V1).then(|| {
            let step = sequence.wrapping_sub(self.event);
            self.event = sequence;
            step
        })
    }

    /// Begins a record of the market part; `None` in format 1, which has no market part.
    #[inline]
    pub(crate) fn market(&mut self) -> Option<&mut MarketWriter> {
        if self.format == Format::V1 {
            return None;
        }
        self.count();
        self.skipped += 1;
        Some(&mut self.market)
    }

    /// Sequence of the last record. The first record has 1.
    #[inline]
    pub const fn last_record(&self) -> u64 {
        self.records
    }

    /// Seals the current block.
    pub fn seal(&mut self) {
        if self.records == self.first_record {
            return;
        }
        let previous = self.chain;
        let mut market_digest = Hash::default();
        self.chain = match self.format {
            Format::V1 => fixed_hash(self.blocks, &previous, &self.orders),
            Format::V3 => {
                market_digest = digest_of(&self.market.bytes);
                let (orders, last) = (&self.orders, self.records);
                block_hash(self.blocks, &previous, last, orders, &market_digest)
            }
        };
        if self.keep {
            self.sealed.push_back(Block {
                format: self.format,
                number: self.blocks,
                first_record: self.first_record + 1,
                last_record: self.records,
                previous,
                hash: self.chain,
                orders: self.orders.clone(),
                market_digest,
                market_len: self.market.bytes.len(),
                market: Some(self.market.bytes.clone()),
            });
        }
        self.orders.clear();
        self.market.clear();
        (self.skipped, self.time, self.event) = (0, 0, 0);
        self.blocks += 1;
        self.first_record = self.records;
    }

    /// The next sealed block, which the caller makes durable.
    pub fn poll_block(&mut self) -> Option<Block> {
        self.sealed.pop_front()
    }

    /// Seals the current block. Returns the hash over all records so far.
    pub fn fingerprint(&mut self) -> Hash {
        self.seal();
        self.chain
    }
}

/// The hash of a block of format 1.
pub fn fixed_hash(number: u64, previous: &Hash, bytes: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update(b"windvane");
    hasher.update(Format::V1.version().to_le_bytes());
    hasher.update(number.to_le_bytes());
    hasher.update(previous);
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
    hasher.finalize().into()
}

/// A flag in the length of the order part in the hash input. It means that the digest of a market
/// part follows.
const HAS_MARKET: u64 = 1 << 63;

/// The hash of a block of format 3.
pub fn block_hash(
    number: u64,
    previous: &Hash,
    last_record: u64,
    orders: &[u8],
    market_digest: &Hash,
) -> Hash {
    // A block without market data is often short. Hashing an empty digest would add cost and no
    // information.
    let has_market = *market_digest != Hash::default();
    let flag = if has_market { HAS_MARKET } else { 0 };
    // One update with the whole head is faster than one update for each field.
    let mut head = [0; 68];
    head[..8].copy_from_slice(b"windvane");
    head[8..12].copy_from_slice(&Format::V3.version().to_le_bytes());
    head[12..20].copy_from_slice(&number.to_le_bytes());
    head[20..52].copy_from_slice(previous);
    head[52..60].copy_from_slice(&last_record.to_le_bytes());
    head[60..].copy_from_slice(&(orders.len() as u64 | flag).to_le_bytes());
    let mut hasher = Sha256::new();
    hasher.update(head);
    hasher.update(orders);
    if has_market {
        hasher.update(market_digest);
    }
    hasher.finalize().into()
}

/// The digest of a market part; zeros if it is empty.
pub fn digest_of(market: &[u8]) -> Hash {
    if market.is_empty() {
        return Hash::default();
    }
    Sha256::digest(market).into()
}

/// A chain of blocks is broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// A block is missing or out of order.
    #[error("found block {found} where block {expected} was expected")]
    Number {
        /// The expected number.
        expected: u64,
        /// The number that was found.
        found: u64,
    },
    /// The block does not continue the previous block.
    #[error("block {block} does not continue the previous block: its previous hash differs")]
    Previous {
        /// The number of the block.
        block: u64,
    },
    /// The records do not match the hash.
    #[error("block {block} is damaged: its records do not match its hash")]
    Hash {
        /// The number of the block.
        block: u64,
    },
    /// The sequence of its first record does not follow the previous records.
    #[error("block {block} starts with record {found}, but record {expected} was expected")]
    FirstRecord {
        /// The number of the block.
        block: u64,
        /// The expected sequence.
        expected: u64,
        /// The sequence that was found.
        found: u64,
    },
    /// The number of its records does not match its header.
    #[error("block {block} states {found} as its last record, but its last record is {expected}")]
    LastRecord {
        /// The number of the block.
        block: u64,
        /// The sequence of its last record.
        expected: u64,
        /// The sequence in its header.
        found: u64,
    },
    /// Its market part does not match its digest.
    #[error("block {block} is damaged: its market part does not match its digest")]
    Market {
        /// The number of the block.
        block: u64,
    },
    /// Its records cannot be decoded, although they match the hash.
    #[error("block {block}: {error}")]
    Records {
        /// The number of the block.
        block: u64,
        /// The decoding error.
        error: DecodeError,
    },
}

impl Chain {
    /// The end of the chain after a block, if the block's number, first record and previous hash
    /// continue the chain. The records are not read.
    ///
    /// # Errors
    /// Returns the field that does not continue the chain.
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

    /// Checks [`follow`](Self::follow), the block's hash and each of its records. If the market
    /// part of a block is lost, only the order part is checked.
    ///
    /// # Errors
    /// Returns the first error in the block.
    pub fn verify(&self, block: &Block) -> Result<Self, ChainError> {
        let number = block.number;
        let next = self.follow(block)?;
        if block.hash != block.computed_hash() {
            return Err(ChainError::Hash { block: number });
        }
        if let Some(market) = &block.market
            && block.market_digest != digest_of(market)
        {
            return Err(ChainError::Market { block: number });
        }
        let mut last = self.last_record;
        for (sequence, record) in block.records() {
            record.map_err(|error| ChainError::Records {
                block: number,
                error,
            })?;
            last = sequence;
        }
        let is_whole = block.market.is_some();
        if last > block.last_record || (is_whole && last < block.last_record) {
            return Err(ChainError::LastRecord {
                block: number,
                expected: last,
                found: block.last_record,
            });
        }
        Ok(next)
    }
}

/// Verifies a whole chain from block 0. Returns its last hash, the fingerprint.
///
/// # Errors
/// Returns the first bad block and its error.
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
    fn a_continued_recorder_makes_the_same_chain() {
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
        for format in [Format::V1, Format::V3] {
            let mut recorder = Recorder::new(true);
            recorder.set_format(format);
            for i in 0..30_000 {
                recorder.begin(crate::codec::kind::TIMEOUT, i);
            }
            let fingerprint = recorder.fingerprint();
            let (mut chain, mut blocks) = (Chain::default(), 0);
            while let Some(block) = recorder.poll_block() {
                assert!(block.len() < BLOCK_BYTES + 20);
                chain = chain.verify(&block).unwrap();
                blocks += 1;
            }
            assert_eq!((chain.hash, chain.last_record), (fingerprint, 30_000));
            assert!(blocks > 1);
        }
    }
}
