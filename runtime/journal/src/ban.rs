//! Bans by the venue: until when a host accepts no requests from this address. They are stored so
//! that the next process need not send a request to find out.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::small_file::{self, SmallFileError};

const KIND: &str = "bans";

/// A ban by one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ban {
    /// The host, with its port if that is not the default one. It contains no space.
    pub host: String,
    /// End of the ban, in Unix milliseconds by the wall clock of this machine.
    pub until_ms: i64,
}

impl Ban {
    /// The bans in a data directory. A damaged file counts as no bans, with an error in the log.
    pub fn read(data_dir: &Path) -> Vec<Self> {
        let path = path(data_dir);
        let lines = small_file::read(&path, KIND);
        let bans = lines.and_then(|lines| {
            let bans: Option<Vec<Self>> =
                lines.iter().flat_map(|it| it.lines()).map(parse).collect();
            bans.ok_or_else(|| small_file::damaged(&path))
        });
        bans.unwrap_or_else(|error| {
            tracing::error!(%error, "the file of the venue's bans cannot be read: bans from earlier processes are unknown");
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
    fn bans_are_read_back_and_a_damaged_file_counts_as_empty() {
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
