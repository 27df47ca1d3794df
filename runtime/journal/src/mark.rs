//! The mark: the last position that was durable, in a file beside the segments. If the journal ends
//! before the mark, it was rolled back, even if its storage reports no error.

use std::path::Path;

use windvane_model::record::{Chain, Hash};

use crate::small_file::{self, SmallFileError};

/// The durable position when the mark was written. It may be older than the journal, but never
/// newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The number of the segment that was written.
    pub segment: u32,
    /// The end of the durable chain.
    pub chain: Chain,
}

const KIND: &str = "mark";

impl Mark {
    pub(crate) fn write(&self, path: &Path) -> Result<(), SmallFileError> {
        let Chain {
            next_block,
            last_record,
            hash,
        } = self.chain;
        let lines = format!(
            "segment {:08x}\nnext_block {next_block}\nlast_record {last_record}\nhash {}",
            self.segment,
            hex::encode(hash)
        );
        small_file::write(path, KIND, &lines)
    }

    pub(crate) fn read(path: &Path) -> Result<Option<Self>, SmallFileError> {
        small_file::read(path, KIND)?
            .map(|lines| parse(&lines).ok_or_else(|| small_file::damaged(path)))
            .transpose()
    }
}

fn parse(lines: &str) -> Option<Mark> {
    let mut lines = lines.lines();
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    Some(Mark {
        segment: u32::from_str_radix(field("segment")?, 16).ok()?,
        chain: Chain {
            next_block: field("next_block")?.parse().ok()?,
            last_record: field("last_record")?.parse().ok()?,
            hash: parse_hash(field("hash")?)?,
        },
    })
}

fn parse_hash(text: &str) -> Option<Hash> {
    let mut hash = Hash::default();
    hex::decode_to_slice(text, &mut hash).ok()?;
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mark");
        assert_eq!(Mark::read(&path).unwrap(), None);
        let mark = Mark {
            segment: 0x0000_abcd,
            chain: Chain {
                next_block: 7,
                last_record: u64::MAX,
                hash: std::array::from_fn(|i| i as u8 * 8),
            },
        };
        mark.write(&path).unwrap();
        assert_eq!(Mark::read(&path).unwrap(), Some(mark));
    }
}
