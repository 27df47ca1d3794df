//! `records.zst`, the file of a packed segment with the rows of sled in their order: length of the
//! key as u32, length of the value as u32, key, value. `packing` writes it.

use std::io;
use std::path::Path;

use crate::groups;
use crate::layout::FILE_BYTES_MAX;

/// The file with the rows of sled.
pub const NAME: &str = "records.zst";
/// Its first bytes.
pub const MAGIC: [u8; 4] = *b"WVRC";

/// Keys and values of a segment, in order.
pub type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// The rows of a packed segment, and why some may be missing.
pub struct Packed {
    pub rows: Rows,
    pub problem: Option<String>,
}

/// The rows of a packed segment; `None` if it is not packed.
pub fn read(folder: &Path) -> io::Result<Option<Packed>> {
    let bytes = match windvane_files::read_bounded(&folder.join(NAME), FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            let reason = format!("its file {NAME} {error}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        Err(error) => return Err(error),
    };
    Ok(Some(parse(&bytes)))
}

/// The rows in the bytes of the file.
pub fn parse(bytes: &[u8]) -> Packed {
    let groups = groups::read(bytes, MAGIC);
    let (mut rows, mut problem) = (Rows::new(), groups.problem);
    for (packed, len) in groups.groups {
        let plain = zstd::bulk::decompress(packed, len).unwrap_or_default();
        let mut rest = &plain[..];
        while let Some((row, behind)) = split(rest) {
            rows.push(row);
            rest = behind;
        }
        if !rest.is_empty() || plain.len() != len {
            problem = Some("a group of its file contains an incomplete row".to_owned());
            break;
        }
    }
    Packed { rows, problem }
}

/// Key and value.
type Row = (Vec<u8>, Vec<u8>);

/// The first row, and the bytes after it.
fn split(bytes: &[u8]) -> Option<(Row, &[u8])> {
    let (key_len, rest) = bytes.split_first_chunk()?;
    let (value_len, rest) = rest.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*key_len) as usize)?;
    let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*value_len) as usize)?;
    Some(((key.to_vec(), value.to_vec()), rest))
}

/// Appends a row.
pub fn push_row(rows: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    rows.extend_from_slice(&(key.len() as u32).to_le_bytes());
    rows.extend_from_slice(&(value.len() as u32).to_le_bytes());
    rows.extend_from_slice(key);
    rows.extend_from_slice(value);
}
