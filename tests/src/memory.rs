//! Searches the memory of another process, for tests of secrets.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of memory that are read at once.
const PART: usize = 1 << 20;
/// Bytes that are read beyond a part, so that nothing is missed at its end.
const OVERLAP: usize = 256;

/// Whether the writable memory of a process contains one of these texts.
///
/// # Panics
/// If the system does not show the memory, or shows nearly none of it.
#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
pub fn contains(pid: u32, wanted: &[&[u8]]) -> bool {
    let folder = Path::new("/proc").join(pid.to_string());
    let mut maps = String::new();
    let mut file = File::open(folder.join("maps")).expect("the process runs");
    file.read_to_string(&mut maps).expect("the ranges are text");
    let memory = File::open(folder.join("mem")).expect("this user may read the memory");
    let mut searched = 0;
    let mut bytes = vec![0; PART + OVERLAP];
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some(rights)) = (words.next(), words.next()) else {
            continue;
        };
        let (Some((from, to)), true) = (range.split_once('-'), rights.starts_with("rw")) else {
            continue;
        };
        let from = u64::from_str_radix(from, 16).expect("an address is hexadecimal");
        let to = u64::from_str_radix(to, 16).expect("an address is hexadecimal");
        for at in (from..to).step_by(PART) {
            let length = usize::try_from(to - at).map_or(bytes.len(), |left| left.min(bytes.len()));
            // Some pages, such as those of guests, cannot be read.
            let Ok(read) = memory.read_at(&mut bytes[..length], at) else {
                continue;
            };
            searched += read;
            let found = |one: &&[u8]| bytes[..read].windows(one.len()).any(|part| part == *one);
            if wanted.iter().any(found) {
                return true;
            }
        }
    }
    assert!(searched > PART, "only {searched} bytes could be read");
    false
}
