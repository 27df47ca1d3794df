//! The journal's record format: inputs and effects in order, in blocks that are chained by hash.
//!
//! A block holds up to 64 KiB of records and is sealed early when an intent was recorded, so that
//! what the intent causes can wait for a durable block. Since format 3 it has two parts: market data
//! in bulk, and everything else. The order part says where its records stand among the others, and
//! the hash of a block covers it with the digest of the market part. So there is one order and one
//! chain, and the order part can be durable, and be followed, without the market part. The last hash
//! of a run is its fingerprint. `docs/journal-format.md` has the bytes.
//!
//! Records carry no clock, no address and no map order: equal runs have equal bytes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use sha2::{Digest, Sha256};

use crate::codec::{DecodeError, Form, MarketWriter, Out, Records};

/// Size at which a block is sealed.
pub const BLOCK_BYTES: usize = 64 * 1024;

/// A hash of the chain.
pub type Hash = [u8; 32];

/// The format of records; part of every hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One stream, integers with all of their bytes.
    V1,
    /// An order part and a market part, integers as short as they can be. There was no format 2
    /// of records.
    #[default]
    V3,
}

impl Format {
    /// Its number.
    pub const fn version(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V3 => 3,
        }
    }
}

/// A sealed block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The format of its records.
    pub format: Format,
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
    /// Its order part; in format 1, all of its records.
    pub orders: Vec<u8>,
    /// Digest of its market part; zeros where it has no market record.
    pub market_digest: Hash,
    /// Length of its market part, lost or not.
    pub market_len: usize,
    /// Its market part; `None` where it is lost.
    pub market: Option<Vec<u8>>,
}

impl Block {
    /// Its records in their order, each with its sequence; without those of a lost market part.
    pub fn records(&self) -> Records<'_> {
        match self.format {
            Format::V1 => Records::fixed(&self.orders, self.first_record),
            Format::V3 => Records::parts(&self.orders, self.market.as_deref(), self.first_record),
        }
    }

    /// Bytes of its records, as far as they are there.
    pub fn len(&self) -> usize {
        self.orders.len() + self.market.as_ref().map_or(0, Vec::len)
    }

    /// Whether market records belong to it, lost or not.
    pub fn has_market(&self) -> bool {
        self.market_digest != Hash::default()
    }

    /// Whether it has market records, and they are lost.
    pub const fn lacks_market(&self) -> bool {
        self.market.is_none()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hash that its content should have.
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
    orders: Vec<u8>,
    chain: Hash,
    blocks: u64,
    records: u64,
    first_record: u64,
    keep: bool,
    // A snapshot is taken between two blocks, where all of these are empty.
    #[serde(skip)]
    format: Format,
    #[serde(skip)]
    market: MarketWriter,
    /// Market records since the last order record of the block.
    #[serde(skip)]
    skipped: u64,
    /// Time of the last order record of the block.
    #[serde(skip)]
    time: i64,
    /// Sequence of the event that the block's order part delivered last.
    #[serde(skip)]
    event: i64,
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

    /// Where the chain of sealed blocks stands.
    pub const fn chain(&self) -> Chain {
        Chain {
            next_block: self.blocks,
            last_record: self.first_record,
            hash: self.chain,
        }
    }

    /// Records in another format from here on; ends the running block.
    pub fn set_format(&mut self, format: Format) {
        if self.format != format {
            self.seal();
            self.format = format;
        }
    }

    /// Ends a block that is full.
    #[inline]
    fn make_room(&mut self) {
        if self.orders.len() + self.market.bytes.len() >= BLOCK_BYTES {
            self.seal();
        }
    }

    /// Counts a record and makes room for it.
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

    /// The difference of an event's sequence to that of the order part's event before it, to be
    /// written in the record that [`begin`](Self::begin) begins next; `None` in a format without.
    #[inline]
    pub(crate) fn event_step(&mut self, sequence: i64) -> Option<i64> {
        self.make_room();
        (self.format != Format::V1).then(|| {
            let step = sequence.wrapping_sub(self.event);
            self.event = sequence;
            step
        })
    }

    /// Begins a record of the market part; `None` in a format that has none.
    #[inline]
    pub(crate) fn market(&mut self) -> Option<&mut MarketWriter> {
        if self.format == Format::V1 {
            return None;
        }
        self.count();
        self.skipped += 1;
        Some(&mut self.market)
    }

    /// Sequence of the last record; the first has 1.
    #[inline]
    pub const fn last_record(&self) -> u64 {
        self.records
    }

    /// Ends the running block.
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

/// Added to the length of the order part in a hash, where the digest of a market part follows.
const HAS_MARKET: u64 = 1 << 63;

/// The hash of a block of format 3.
pub fn block_hash(
    number: u64,
    previous: &Hash,
    last_record: u64,
    orders: &[u8],
    market_digest: &Hash,
) -> Hash {
    // A block of an order alone is short, and hashing the rest of it would cost more than it says.
    let has_market = *market_digest != Hash::default();
    let flag = if has_market { HAS_MARKET } else { 0 };
    // One update of the whole head costs less than one for each field.
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

/// The digest of a market part: zeros where it is empty.
pub fn digest_of(market: &[u8]) -> Hash {
    if market.is_empty() {
        return Hash::default();
    }
    Sha256::digest(market).into()
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
    /// Its market part is not the one that its digest is of.
    #[error("block {block} is damaged: its market part does not have its digest")]
    Market {
        /// Its number.
        block: u64,
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

    /// [`follow`](Self::follow), the block's hash and each of its records. Of a block whose market
    /// part is lost, the order part is verified.
    ///
    /// # Errors
    /// What is wrong with the block.
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
