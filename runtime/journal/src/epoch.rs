//! The epoch of client order ids. It is durable before its first use and is never used twice
//! (`docs/promises.md#1-order-ids`).

use std::path::Path;

use crate::small_file::{self, SmallFileError};

const KIND: &str = "epoch";

/// No epoch could be reserved, so no order may be sent.
#[derive(Debug, thiserror::Error)]
#[error("no epoch could be reserved, so no order can be numbered: {0}")]
pub struct EpochError(#[from] pub SmallFileError);

/// Reserves max(last + 1, `now_seconds`); durable on return.
///
/// A damaged file is put aside and counts as lost. Then only the clock keeps the epoch above all
/// earlier ones.
pub fn reserve(path: &Path, now_seconds: u64) -> Result<u64, EpochError> {
    let last = match last(path) {
        Err(SmallFileError::Damaged { path }) => {
            tracing::error!(
                path = %path.display(),
                "the epoch file is damaged and was put aside; this start takes its epoch from the \
                 clock"
            );
            small_file::put_aside(&path, "damaged")
                .map_err(|error| SmallFileError::Io { path, error })?;
            None
        }
        other => other?,
    };
    let epoch = last.map_or(now_seconds, |last| now_seconds.max(last + 1));
    small_file::write(path, KIND, &format!("epoch {epoch}"))?;
    Ok(epoch)
}

/// The epoch that was reserved last.
pub fn last(path: &Path) -> Result<Option<u64>, SmallFileError> {
    small_file::read(path, KIND)?
        .map(|lines| {
            let number = lines.strip_prefix("epoch ").and_then(|n| n.parse().ok());
            number.ok_or_else(|| small_file::damaged(path))
        })
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_rise_even_if_the_clock_is_set_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("epoch");
        assert_eq!(reserve(&path, 100).unwrap(), 100);
        assert_eq!(reserve(&path, 100).unwrap(), 101);
        assert_eq!(reserve(&path, 5).unwrap(), 102);
        assert_eq!(reserve(&path, 1_000).unwrap(), 1_000);
        assert_eq!(last(&path).unwrap(), Some(1_000));
    }

    #[test]
    fn a_damaged_file_is_put_aside_and_the_clock_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("epoch");
        std::fs::write(&path, "epoch 99999").unwrap();
        assert_eq!(reserve(&path, 100).unwrap(), 100);
        let aside = folder.path().join("epoch.damaged-1");
        assert_eq!(std::fs::read_to_string(aside).unwrap(), "epoch 99999");
    }
}
