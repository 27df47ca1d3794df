//! The stored form of blocks, with the data that is needed to verify the chain.
//!
//! Number, first record and previous hash are not stored: they follow from the block before, and
//! the hash covers them. All numbers are little endian. Format 3: form, length of the order part as
//! u32, last record as u64, the first 8 bytes of the hash, length of the market part as u32, its
//! digest if that length is not 0, and the order part. The market part is in a separate file.
//! Format 1: form, length of the records as u32, last record as u64, hash, records. In both formats
//! the bytes after the header may be compressed.

use std::io;

use windvane_model::record::{Block, Chain, ChainError, Format, Hash};
use zstd::bulk::{Compressor, Decompressor};

use crate::market::Parts;

/// Level 1 compresses records as well as level 3 does. Level 6 takes three times as long and gains
/// 4 %.
const LEVEL: i32 = 1;
/// Below this, compression costs more than it saves.
const PLAIN_BYTES: usize = 128;
/// Maximum size of a block, so that damage cannot cause a huge allocation.
const BLOCK_BYTES_MAX: usize = 64 << 20;
/// Bit of the first byte of a packed block, its form: the bytes after the header are compressed.
const SQUEEZED: u8 = 1;
/// Bit of the form: the block has format 3.
const PARTS: u8 = 2;
/// This much of a hash is stored, which is enough to detect damage.
const CHECK_BYTES: usize = 8;

/// A problem with a stored block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// The bytes are not a packed block.
    #[error("block {block} cannot be unpacked: {what}")]
    Form {
        /// Its number.
        block: u64,
        /// What is wrong.
        what: String,
    },
    /// It is a block, but not the one that belongs here.
    #[error(transparent)]
    Chain(#[from] ChainError),
}

/// Compresses blocks and checkpoints.
pub struct Packer(Compressor<'static>);

impl Packer {
    pub fn new() -> io::Result<Self> {
        Compressor::new(LEVEL).map(Self)
    }

    /// Compresses a block that was packed by [`plain`]. A block that would not shrink is returned
    /// unchanged.
    pub fn squeeze(&mut self, plain: &[u8]) -> io::Result<Vec<u8>> {
        let header_len =
            Header::read(plain).map_or(plain.len(), |(_, rest)| plain.len() - rest.len());
        let (header, records) = plain.split_at(header_len);
        if records.len() < PLAIN_BYTES {
            return Ok(plain.to_vec());
        }
        let squeezed = self.0.compress(records)?;
        if squeezed.len() >= records.len() {
            return Ok(plain.to_vec());
        }
        let mut packed = Vec::with_capacity(header_len + squeezed.len());
        packed.push(header[0] | SQUEEZED);
        packed.extend_from_slice(&header[1..]);
        packed.extend_from_slice(&squeezed);
        Ok(packed)
    }

    /// Compresses a checkpoint.
    pub fn pack_checkpoint(&mut self, checkpoint: &[u8]) -> io::Result<Vec<u8>> {
        self.0.compress(checkpoint)
    }
}

/// Packs a block without compression. Compression would take longer than all other steps on the way
/// to the disk.
pub fn plain(block: &Block) -> Vec<u8> {
    let mut packed = Vec::with_capacity(64 + block.orders.len());
    match block.format {
        Format::V1 => {
            packed.push(0);
            packed.extend_from_slice(&(block.orders.len() as u32).to_le_bytes());
            packed.extend_from_slice(&block.last_record.to_le_bytes());
            packed.extend_from_slice(&block.hash);
            packed.extend_from_slice(&block.orders);
        }
        Format::V3 => {
            packed.push(PARTS);
            packed.extend_from_slice(&(block.orders.len() as u32).to_le_bytes());
            packed.extend_from_slice(&block.last_record.to_le_bytes());
            packed.extend_from_slice(&block.hash[..CHECK_BYTES]);
            packed.extend_from_slice(&(block.market_len as u32).to_le_bytes());
            if block.has_market() {
                packed.extend_from_slice(&block.market_digest);
            }
            packed.extend_from_slice(&block.orders);
        }
    }
    packed
}

/// The header of a packed block.
struct Header<'a> {
    form: u8,
    orders: usize,
    last_record: u64,
    /// The hash, or its first bytes.
    hash: &'a [u8],
    market: usize,
    market_digest: Hash,
}

impl<'a> Header<'a> {
    /// The header and the bytes after it.
    fn read(packed: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (form, rest) = packed.split_first()?;
        if *form > (SQUEEZED | PARTS) {
            return None;
        }
        let (orders, rest) = rest.split_first_chunk()?;
        let (last_record, rest) = rest.split_first_chunk()?;
        let has_parts = form & PARTS != 0;
        let hash_len = if has_parts {
            CHECK_BYTES
        } else {
            size_of::<Hash>()
        };
        let (hash, mut rest) = rest.split_at_checked(hash_len)?;
        let (mut market, mut market_digest) = (0, Hash::default());
        if has_parts {
            let (len, behind) = rest.split_first_chunk()?;
            (market, rest) = (u32::from_le_bytes(*len) as usize, behind);
            if market > 0 {
                let (digest, behind) = rest.split_first_chunk()?;
                (market_digest, rest) = (*digest, behind);
            }
        }
        let header = Self {
            form: *form,
            orders: u32::from_le_bytes(*orders) as usize,
            last_record: u64::from_le_bytes(*last_record),
            hash,
            market,
            market_digest,
        };
        Some((header, rest))
    }
}

/// The length and digest of the market part of a packed block; `None` if it has no market part.
pub fn market_of(packed: &[u8]) -> Option<(usize, Hash)> {
    let (header, _) = Header::read(packed)?;
    (header.market > 0).then_some((header.market, header.market_digest))
}

/// Decompresses a checkpoint that [`Packer::pack_checkpoint`] made.
pub fn unpack_checkpoint(packed: &[u8], len: usize) -> io::Result<Vec<u8>> {
    zstd::bulk::decompress(packed, len)
}

/// Unpacks blocks.
struct Unpacker(Decompressor<'static>);

impl Unpacker {
    /// The block that follows `chain`, not verified yet.
    fn unpack(
        &mut self,
        chain: &Chain,
        packed: &[u8],
        parts: &mut Parts,
    ) -> Result<Block, UnpackError> {
        let form = |what: &str| UnpackError::Form {
            block: chain.next_block,
            what: what.to_owned(),
        };
        let (header, behind) = Header::read(packed)
            .ok_or_else(|| form("its header is incomplete or has an unknown form"))?;
        let len = header.orders;
        if len > BLOCK_BYTES_MAX {
            return Err(form("its stated length is too large"));
        }
        let orders = if header.form & SQUEEZED == 0 {
            behind.to_vec()
        } else {
            let unpacked = self.0.decompress(behind, len);
            unpacked.map_err(|error| form(&error.to_string()))?
        };
        if orders.len() != len {
            return Err(form("its length is not the stated one"));
        }
        let market = if header.market == 0 {
            Some(Vec::new())
        } else {
            parts.get(chain.next_block)
        };
        let mut block = Block {
            format: Format::V1,
            number: chain.next_block,
            first_record: chain.last_record + 1,
            last_record: header.last_record,
            previous: chain.hash,
            hash: Hash::default(),
            orders,
            market_digest: header.market_digest,
            market_len: header.market,
            market,
        };
        if header.form & PARTS == 0 {
            block.hash = header.hash.try_into().map_err(|_| form("header"))?;
            return Ok(block);
        }
        block.format = Format::V3;
        block.hash = block.computed_hash();
        if !block.hash.starts_with(header.hash) {
            return Err(ChainError::Hash {
                block: block.number,
            }
            .into());
        }
        Ok(block)
    }
}

/// Verified blocks, in order. They are kept compressed, because a segment may be large.
pub struct Blocks {
    chain: Chain,
    packed: std::vec::IntoIter<Vec<u8>>,
    parts: Parts,
    unpacker: Unpacker,
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} blocks after {:?}", self.packed.len(), self.chain)
    }
}

/// Result of verifying a chain of packed blocks.
pub struct Verified {
    /// The blocks that verify, in order.
    pub blocks: Blocks,
    /// The end of the chain after each of them. The first element is the base.
    pub chains: Vec<Chain>,
    /// The problem of the first block that does not verify.
    pub problem: Option<UnpackError>,
}

impl Blocks {
    /// Verifies packed blocks that follow `base`: unpacks, hashes and decodes each block, with its
    /// market part if that was found.
    pub fn verify(base: Chain, mut packed: Vec<Vec<u8>>, mut parts: Parts) -> io::Result<Verified> {
        let mut unpacker = Unpacker(Decompressor::new()?);
        let mut chains = vec![base];
        let mut chain = base;
        let mut problem = None;
        for bytes in &packed {
            let next = unpacker
                .unpack(&chain, bytes, &mut parts)
                .and_then(|block| Ok(chain.verify(&block)?));
            match next {
                Ok(next) => chain = next,
                Err(error) => {
                    problem = Some(error);
                    break;
                }
            }
            chains.push(chain);
        }
        packed.truncate(chains.len() - 1);
        Ok(Verified {
            blocks: Self {
                chain: base,
                packed: packed.into_iter(),
                parts,
                unpacker,
            },
            chains,
            problem,
        })
    }
}

impl Iterator for Blocks {
    type Item = Block;

    #[expect(
        clippy::expect_used,
        reason = "`verify` has unpacked and followed these very bytes from this very chain"
    )]
    fn next(&mut self) -> Option<Block> {
        let packed = self.packed.next()?;
        let unpacked = self.unpacker.unpack(&self.chain, &packed, &mut self.parts);
        let block = unpacked.expect("bytes that unpacked once");
        self.chain = self.chain.follow(&block).expect("a block that followed");
        Some(block)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.packed.size_hint()
    }
}

impl ExactSizeIterator for Blocks {}
