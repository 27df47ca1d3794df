//! Why a recording cannot be read.

use std::path::{Path, PathBuf};

/// Why a recording could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A file could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A line is damaged, and `on_damage` is `fail`.
    #[error(
        "{} line {line}: {reason}; set `on_damage = \"skip\"` to go on without it",
        path.display()
    )]
    Damaged {
        /// The recording.
        path: PathBuf,
        /// The line number, counted from 1.
        line: u64,
        /// The reason.
        reason: String,
    },
    /// A price or quantity has more decimals than the instrument's scale.
    #[error(
        "{} line {line}: {what} {value} of {instrument} does not fit {scale} decimal places; \
         set a smaller {rule} for it in [[instrument]]",
        path.display()
    )]
    Unfit {
        /// The recording.
        path: PathBuf,
        /// The line number, counted from 1.
        line: u64,
        /// `spot:SYMBOL` or `futures:SYMBOL`.
        instrument: String,
        /// `price` or `quantity`.
        what: &'static str,
        /// The value.
        value: windvane_model::Decimal,
        /// The instrument's scale.
        scale: u8,
        /// `tick` or `step`.
        rule: &'static str,
    },
    /// A decoded cache cannot be written.
    #[error(
        "cannot write a decoded cache to {}: {reason}; name a writable folder with \
         --cache DIR",
        path.display()
    )]
    NoCache {
        /// The folder.
        path: PathBuf,
        /// The operating system's error text.
        reason: String,
    },
    /// A cache is damaged and could not be created again, or the recording changed meanwhile.
    #[error("decoded cache {}: {reason}; remove it and try again", path.display())]
    Cache {
        /// The cache.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl RecordingError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
