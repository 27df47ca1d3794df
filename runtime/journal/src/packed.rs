//! Blocks as they are stored: compressed, with what the chain needs to be verified.
//!
//! Number, first record and previous hash are not stored: they follow from the block before, and
//! the hash covers them. Little endian: form (0 plain, 1 zstd), length of the records as u32, last
//! record as u64, hash, records.

use std::io;

use windvane_engine::record::{Block, Chain, ChainError};
use zstd::bulk::{Compressor, Decompressor};

/// Level 1 compresses records as well as level 3 does; level 6 takes three times as long for 4 %.
const LEVEL: i32 = 1;
/// Below this, compression costs more than it saves.
const PLAIN_BYTES: usize = 128;
/// No block is larger: damage must not make us allocate without end.
const BLOCK_BYTES_MAX: usize = 64 << 20;
const HEADER_BYTES: usize = 1 + 4 + 8 + 32;

/// What is wrong with a stored block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// Its bytes are not a packed block.
    #[error("block {block} cannot be unpacked: {what}")]
    Form {
        /// Its number.
        block: u64,
        /// What is wrong.
        what: String,
    },
    /// It is one, but not the one that belongs here.
    #[error(transparent)]
    Chain(#[from] ChainError),
}

/// Compresses blocks and heads.
pub struct Packer(Compressor<'static>);

impl Packer {
    pub fn new() -> io::Result<Self> {
        Compressor::new(LEVEL).map(Self)
    }

    /// Compresses a block that was packed [`plain`]; without gain it stays as it is.
    pub fn squeeze(&mut self, plain: &[u8]) -> io::Result<Vec<u8>> {
        let (header, records) = plain.split_at(HEADER_BYTES.min(plain.len()));
        if records.len() < PLAIN_BYTES {
            return Ok(plain.to_vec());
        }
        let squeezed = self.0.compress(records)?;
        if squeezed.len() >= records.len() {
            return Ok(plain.to_vec());
        }
        let mut packed = Vec::with_capacity(HEADER_BYTES + squeezed.len());
        packed.push(1);
        packed.extend_from_slice(&header[1..]);
        packed.extend_from_slice(&squeezed);
        Ok(packed)
    }

    /// Compresses a head.
    pub fn pack_head(&mut self, head: &[u8]) -> io::Result<Vec<u8>> {
        self.0.compress(head)
    }
}

/// Packs a block without compressing it: that takes longer than all else on the way to the disk.
pub fn plain(block: &Block) -> Vec<u8> {
    let mut packed = Vec::with_capacity(HEADER_BYTES + block.bytes.len());
    packed.push(0);
    packed.extend_from_slice(&(block.bytes.len() as u32).to_le_bytes());
    packed.extend_from_slice(&block.last_record.to_le_bytes());
    packed.extend_from_slice(&block.hash);
    packed.extend_from_slice(&block.bytes);
    packed
}

/// Unpacks what [`Packer::pack_head`] made.
pub fn unpack_head(packed: &[u8], len: usize) -> io::Result<Vec<u8>> {
    zstd::bulk::decompress(packed, len)
}

/// Unpacks blocks.
struct Unpacker(Decompressor<'static>);

impl Unpacker {
    /// The block that follows `chain`, not yet verified.
    fn unpack(&mut self, chain: &Chain, packed: &[u8]) -> Result<Block, UnpackError> {
        let form = |what: &str| UnpackError::Form {
            block: chain.next_block,
            what: what.to_owned(),
        };
        let (header, records) = packed
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or_else(|| form("its header is cut"))?;
        let (form_byte, header) = (header[0], &header[1..]);
        let (len, header) = header.split_first_chunk().ok_or_else(|| form("header"))?;
        let (last_record, hash) = header.split_first_chunk().ok_or_else(|| form("header"))?;
        let len = u32::from_le_bytes(*len) as usize;
        let bytes = match form_byte {
            0 => records.to_vec(),
            1 if len <= BLOCK_BYTES_MAX => self
                .0
                .decompress(records, len)
                .map_err(|error| form(&error.to_string()))?,
            _ => return Err(form("unknown form or length")),
        };
        if bytes.len() != len {
            return Err(form("its length differs"));
        }
        Ok(Block {
            number: chain.next_block,
            first_record: chain.last_record + 1,
            last_record: u64::from_le_bytes(*last_record),
            previous: chain.hash,
            hash: hash.try_into().map_err(|_| form("header"))?,
            bytes,
        })
    }
}

/// Verified blocks in order. They are kept compressed, for a segment may hold a day.
pub struct Blocks {
    chain: Chain,
    packed: std::vec::IntoIter<Vec<u8>>,
    unpacker: Unpacker,
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} blocks after {:?}", self.packed.len(), self.chain)
    }
}

/// What a chain of packed blocks turned out to be.
pub struct Verified {
    /// The blocks that verify, in order.
    pub blocks: Blocks,
    /// Where the chain stands after each of them, the base first.
    pub chains: Vec<Chain>,
    /// What is wrong with the first one that does not.
    pub problem: Option<UnpackError>,
}

impl Blocks {
    /// Verifies packed blocks that follow `base`: unpacks, hashes and decodes each of them.
    pub fn verify(base: Chain, mut packed: Vec<Vec<u8>>) -> io::Result<Verified> {
        let mut unpacker = Unpacker(Decompressor::new()?);
        let mut chains = vec![base];
        let mut chain = base;
        let mut problem = None;
        for bytes in &packed {
            let next = unpacker
                .unpack(&chain, bytes)
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
        let block = self.unpacker.unpack(&self.chain, &packed);
        let block = block.expect("bytes that unpacked once");
        self.chain = self.chain.follow(&block).expect("a block that followed");
        Some(block)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.packed.size_hint()
    }
}

impl ExactSizeIterator for Blocks {}
