//! Errors in a configuration. Each message is one sentence that names the place and the fix.

use std::fmt;
use std::path::PathBuf;

/// The place where a setting was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of the configuration file, counted from 1.
    Line {
        /// The file's path, as the user gave it.
        file: String,
        /// The line number.
        line: usize,
    },
    /// An environment variable.
    Env(String),
    /// A command-line argument, such as `--set sim.seed`.
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
        /// The operating system's error text.
        reason: String,
    },
    /// The file is not valid TOML.
    #[error("{place}: not valid TOML: {reason}")]
    Syntax {
        /// The place of the error.
        place: Place,
        /// The parser's error text.
        reason: String,
    },
    /// A key that no section defines.
    #[error("{place}: unknown key `{key}`{}", hint(nearest.as_deref()))]
    UnknownKey {
        /// The place of the key.
        place: Place,
        /// The key with its path.
        key: String,
        /// The most similar known key, with its path.
        nearest: Option<String>,
    },
    /// A value that breaks a rule.
    #[error("{place}: `{key}`{} {rule}", shown(value.as_deref()))]
    Value {
        /// The place of the value.
        place: Place,
        /// The key with its path.
        key: String,
        /// The value, unless it may be a secret or is too long to show.
        value: Option<String>,
        /// The rule that the value breaks.
        rule: String,
    },
    /// An override that cannot be applied.
    #[error("{place}: {reason}")]
    Override {
        /// The place of the override.
        place: Place,
        /// Why it cannot be applied, and what to write instead.
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

/// Returns the entry of `known` with the smallest edit distance to `word`.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .copied()
        .min_by_key(|candidate| strsim::damerau_levenshtein(word, candidate))
}
