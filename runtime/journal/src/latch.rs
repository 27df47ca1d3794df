//! The latch: whether the operator or a limit stopped the runtime, kept apart from the journal so
//! that a halt outlives even a lost one.

use std::path::Path;

use crate::small_file::{self, SmallFileError};

const KIND: &str = "latch";

/// What must hold across restarts until it is taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Latch {
    /// Nothing is latched.
    #[default]
    Clear,
    /// No new exposure.
    Paused {
        /// Why, in words, on one line.
        reason: String,
    },
    /// Own orders cancelled, nothing sent.
    Halted {
        /// Why, in words, on one line.
        reason: String,
    },
}

impl Latch {
    /// Makes the latch durable. Control characters of the reason become spaces.
    pub(crate) fn write(&self, path: &Path) -> Result<(), SmallFileError> {
        let (state, reason) = match self {
            Self::Clear => ("clear", ""),
            Self::Paused { reason } => ("paused", reason.as_str()),
            Self::Halted { reason } => ("halted", reason.as_str()),
        };
        let reason = reason.replace(char::is_control, " ");
        small_file::write(path, KIND, &format!("state {state}\nreason {reason}"))
    }

    /// The latch; clear where there is no file. One that cannot be read is a halt: whoever wrote
    /// it may have meant one.
    pub(crate) fn read(path: &Path) -> Self {
        let lines = match small_file::read(path, KIND) {
            Ok(None) => return Self::Clear,
            Ok(Some(lines)) => lines,
            Err(error) => return Self::unreadable(&error),
        };
        parse(&lines).unwrap_or_else(|| Self::unreadable(&small_file::damaged(path)))
    }

    fn unreadable(error: &SmallFileError) -> Self {
        Self::Halted {
            reason: format!("the latch could not be read, which counts as a halt: {error}"),
        }
    }
}

fn parse(lines: &str) -> Option<Latch> {
    let (state, reason) = lines.split_once('\n')?;
    let reason = reason.strip_prefix("reason ")?.to_owned();
    match state.strip_prefix("state ")? {
        "clear" => Some(Latch::Clear),
        "paused" => Some(Latch::Paused { reason }),
        "halted" => Some(Latch::Halted { reason }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latch_comes_back_and_what_cannot_be_read_is_a_halt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latch");
        assert_eq!(Latch::read(&path), Latch::Clear);
        let halted = Latch::Halted {
            reason: "max_daily_loss: -501 of 500, \u{e4}\ncheck 00".to_owned(),
        };
        halted.write(&path).unwrap();
        let reason = "max_daily_loss: -501 of 500, \u{e4} check 00".to_owned();
        assert_eq!(Latch::read(&path), Latch::Halted { reason });
        for latch in [
            Latch::Paused {
                reason: String::new(),
            },
            Latch::Clear,
        ] {
            latch.write(&path).unwrap();
            assert_eq!(Latch::read(&path), latch);
        }
        std::fs::write(&path, "state clear").unwrap();
        assert!(matches!(Latch::read(&path), Latch::Halted { .. }));
    }
}
