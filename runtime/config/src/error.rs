//! What may be wrong with a configuration, each in one sentence that says where and what to do.

use std::fmt;
use std::path::PathBuf;

/// Where a setting was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of the configuration file, from 1.
    Line {
        /// The file, as it was named.
        file: String,
        /// The line.
        line: usize,
    },
    /// An environment variable.
    Env(String),
    /// An argument of the command line, such as `--set sim.seed`.
    Argument(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{file} line {line}"),
            Self::Env(name) => write!(f, "environment variable {name}"),
            Self::Argument(argument) => f.write_str(argument),
        }
    }
}

/// A configuration that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read configuration {}: {reason}; check --config", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The file is no TOML.
    #[error("{place}: not valid TOML: {reason}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the parser said.
        reason: String,
    },
    /// A key that nobody reads.
    #[error("{place}: unknown key `{key}`{}", hint(nearest.as_deref()))]
    UnknownKey {
        /// Where.
        place: Place,
        /// The key with its path.
        key: String,
        /// The known key that is nearest to it, with its path.
        nearest: Option<String>,
    },
    /// A value that breaks a rule.
    #[error("{place}: `{key}`{} {rule}", shown(value.as_deref()))]
    Value {
        /// Where.
        place: Place,
        /// The key with its path.
        key: String,
        /// The value, unless it may be a secret or has no short form.
        value: Option<String>,
        /// What it must be.
        rule: String,
    },
    /// An override that cannot be applied.
    #[error("{place}: {reason}")]
    Override {
        /// Where.
        place: Place,
        /// Why, and what to write instead.
        reason: String,
    },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |key| {
        format!("; the nearest known key is `{key}`")
    })
}

fn shown(value: Option<&str>) -> String {
    value.map_or_else(String::new, |value| format!(" = {value}:"))
}

/// The word of `known` that is nearest to `word` in edits.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .copied()
        .min_by_key(|candidate| strsim::damerau_levenshtein(word, candidate))
}
