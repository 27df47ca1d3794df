//! Why a write could not be made durable, classified by what the operator must do.

use std::io;
use std::sync::Arc;

use crate::small_file::SmallFileError;

/// A failed write. None of its content was acknowledged.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// The disk is full, or a quota or a limit of file size was reached.
    #[error(
        "the disk of the journal is full ({0}); free space or prune old segments, then a new \
         segment can begin"
    )]
    DiskFull(Arc<io::Error>),
    /// The file system accepts no writes.
    #[error(
        "the journal cannot be written ({0}); make its folder writable, then a new segment can \
         begin"
    )]
    ReadOnly(Arc<io::Error>),
    /// Any other disk error.
    #[error("the journal failed ({0}); check the disk, then a new segment can begin")]
    Io(Arc<io::Error>),
    /// The storage engine failed or panicked.
    #[error("the journal's storage failed ({0}); a new segment may help, otherwise restart")]
    Storage(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem};
        match error.kind() {
            io::ErrorKind::StorageFull | QuotaExceeded | FileTooLarge => {
                Self::DiskFull(Arc::new(error))
            }
            ReadOnlyFilesystem | PermissionDenied => Self::ReadOnly(Arc::new(error)),
            _ => Self::Io(Arc::new(error)),
        }
    }
}

impl From<SmallFileError> for Failure {
    fn from(error: SmallFileError) -> Self {
        match error {
            SmallFileError::Io { path, error } if error.kind() == io::ErrorKind::InvalidInput => {
                Self::Storage(format!("{} {error}", path.display()))
            }
            SmallFileError::Io { error, .. } => Self::from(error),
            SmallFileError::Damaged { .. } => Self::Storage(error.to_string()),
        }
    }
}

impl From<sled::Error> for Failure {
    fn from(error: sled::Error) -> Self {
        match error {
            sled::Error::Io(error) => Self::from(error),
            other => Self::Storage(other.to_string()),
        }
    }
}

/// Runs a call into sled, and turns a panic in it into a failure.
///
/// # Errors
/// The failure of the call, or its panic as [`Failure::Storage`].
pub fn guarded<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // This is unwind safe: after a failure the called store is dropped and never used again.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("panic without a message");
        Err(Failure::Storage(format!("panic: {text}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_classified_by_what_must_be_done() {
        let class = |code| Failure::from(io::Error::from_raw_os_error(code));
        assert!(matches!(class(28), Failure::DiskFull(_)), "ENOSPC");
        assert!(matches!(class(122), Failure::DiskFull(_)), "EDQUOT");
        assert!(matches!(class(27), Failure::DiskFull(_)), "EFBIG");
        assert!(matches!(class(30), Failure::ReadOnly(_)), "EROFS");
        assert!(matches!(class(13), Failure::ReadOnly(_)), "EACCES");
        assert!(matches!(class(5), Failure::Io(_)), "EIO");
    }

    #[test]
    fn a_panic_becomes_a_failure_with_its_message() {
        let failure = guarded::<()>(|| panic!("torn {}", 7)).unwrap_err();
        assert!(failure.to_string().contains("panic: torn 7"), "{failure}");
    }
}
