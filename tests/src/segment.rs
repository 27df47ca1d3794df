//! Segments of a journal, as files.

use std::path::Path;

/// Overwrites the files of a segment that hold its blocks.
///
/// # Panics
/// If the segment has no such file, or a file cannot be changed.
#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
pub fn damage(segment: &Path) {
    // An ended segment is one packed file. In any other segment the WAL may still hold all blocks
    // of sled.
    let files = ["records.zst", "db", "tail"].map(|name| segment.join(name));
    let there: Vec<_> = files.iter().filter(|file| file.exists()).collect();
    assert!(!there.is_empty(), "{} has no blocks", segment.display());
    for file in there {
        let mut bytes = std::fs::read(file).expect("the file can be read");
        let length = bytes.len();
        bytes[length / 256..].fill(0x5a);
        std::fs::write(file, bytes).expect("the file can be written");
    }
}
