//! Bans that the venue told of: until when a host takes nothing from this address, so that the next
//! process does not find it out by asking.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::small_file::{self, SmallFileError};

const KIND: &str = "bans";

/// What a host said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ban {
    /// The host, with its port where that is not the usual one; no space is in it.
    pub host: String,
    /// Its end, Unix milliseconds by the wall clock of this machine.
    pub until_ms: i64,
}

impl Ban {
    /// The bans in a data directory. A file that is damaged counts as none, and the log says so.
    pub fn read(data_dir: &Path) -> Vec<Self> {
        let path = path(data_dir);
        let lines = small_file::read(&path, KIND);
        let bans = lines.and_then(|lines| {
            let bans: Option<Vec<Self>> =
                lines.iter().flat_map(|it| it.lines()).map(parse).collect();
            bans.ok_or_else(|| small_file::damaged(&path))
        });
        bans.unwrap_or_else(|error| {
            tracing::error!(%error, "bans that the venue told of before are not known");
            Vec::new()
        })
    }

    pub(crate) fn write(bans: &[Self], data_dir: &Path) -> Result<(), SmallFileError> {
        let mut lines = String::new();
        for ban in bans {
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "{} {}", ban.until_ms, ban.host);
        }
        small_file::write(&path(data_dir), KIND, lines.trim_end())
    }
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(KIND)
}

fn parse(line: &str) -> Option<Ban> {
    let (until_ms, host) = line.split_once(' ')?;
    Some(Ban {
        host: host.to_owned(),
        until_ms: until_ms.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bans_come_back_and_a_damaged_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let ban = |host: &str, until_ms| Ban {
            host: host.to_owned(),
            until_ms,
        };
        let bans = [ban("a.example", 5), ban("127.0.0.1:80", -7)];
        assert_eq!(Ban::read(folder.path()), []);
        Ban::write(&[], folder.path()).unwrap();
        assert_eq!(Ban::read(folder.path()), []);
        Ban::write(&bans, folder.path()).unwrap();
        assert_eq!(Ban::read(folder.path()), bans);
        std::fs::write(path(folder.path()), "bans").unwrap();
        assert_eq!(Ban::read(folder.path()), []);
    }
}
