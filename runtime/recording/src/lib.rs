//! Recordings: lines of `<receive time ns> <frame as received>`, compressed with gzip or zstd, or
//! plain. A recording is decoded once into a cache of fixed-size records, and then read from it as
//! a [`Tape`].
//!
//! `backtest`, `live` (paper runs on recordings), `replay`, `report` and `cli` (`windvane data`)
//! use this crate. It must not contain orders, strategies or decisions: a recording contains only
//! what the venue sent.

mod cache;
mod chunk;
mod chunking;
mod decoding;
mod depth;
mod listing;
mod reader;
pub mod rules;
mod survey;
pub mod synthetic;
mod tape;
mod tape_event;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use chunk::Chunk;
pub use rules::{ResolveError, RulesSource, resolve_instrument};
pub use survey::{Cut, Faults, InstrumentSurvey, Survey};
pub use synthetic::SyntheticSession;
pub use tape::{Chunks, Tape};
pub use tape_event::TapeEvent;
use windvane_model::Surface;

/// Action for a line that cannot be decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDamage {
    /// Report the line number and go on.
    #[default]
    Skip,
    /// Refuse the recording.
    Fail,
}

/// Options for opening a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Folder of decoded caches. `None`: beside the recording if its folder is writable, otherwise
    /// in the user's cache folder.
    pub cache_dir: Option<PathBuf>,
    /// Action for damaged lines.
    pub on_damage: OnDamage,
    /// The surface of frames whose keys do not show it (see [`windvane_protocol::surface`]).
    /// `None`: the surface of the first frame in the recording that shows it, or spot.
    pub surface: Option<Surface>,
}

/// Called while a recording is decoded, with the bytes read so far and the total bytes.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// A recording whose decoded cache is ready.
#[derive(Clone, Debug)]
pub struct Recording {
    path: PathBuf,
    options: Options,
    cache: PathBuf,
    survey: Survey,
    from_cache: bool,
    notices: Vec<String>,
}

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
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

impl Recording {
    /// Opens a recording. It uses a valid decoded cache, or decodes the text into a new one.
    ///
    /// # Errors
    /// [`RecordingError::Io`] for a file that cannot be read or a cache that cannot be written,
    /// [`RecordingError::NoCache`] for a cache folder that cannot be created,
    /// [`RecordingError::Damaged`] for a damaged line if `on_damage` is `fail`.
    pub fn open(
        path: &Path,
        options: &Options,
        progress: Progress<'_>,
    ) -> Result<Self, RecordingError> {
        let key = cache::Key::of(path, options.surface)?;
        let home = cache::locate(path, options.cache_dir.as_deref())?;
        let mut notices = Vec::new();
        let mut from_cache = true;
        let survey = match cache::read_survey(&home, &key) {
            Ok(survey) => survey,
            Err(absence) => {
                from_cache = false;
                if let Some(notice) = absence.notice(&home) {
                    notices.push(notice);
                }
                decoding::decode(path, &key, &home, options, progress)?
            }
        };
        let recording = Self {
            path: path.to_owned(),
            options: options.clone(),
            cache: home,
            survey,
            from_cache,
            notices,
        };
        recording.refuse_damage()?;
        Ok(recording)
    }

    /// The recording's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of its decoded cache.
    pub fn cache_path(&self) -> &Path {
        &self.cache
    }

    /// Whether a valid decoded cache already existed.
    pub fn from_cache(&self) -> bool {
        self.from_cache
    }

    /// The contents of the recording.
    pub fn survey(&self) -> &Survey {
        &self.survey
    }

    /// Messages for the user, one sentence each: stale or damaged caches, damaged lines, gaps, a
    /// text that breaks off.
    pub fn notices(&self) -> Vec<String> {
        let name = self.path.display();
        let survey = self.survey.notices();
        let survey = survey.into_iter().map(|notice| format!("{name}: {notice}"));
        self.notices.iter().cloned().chain(survey).collect()
    }

    /// Decodes the text again, because the cache is damaged.
    fn rebuild(&self) -> Result<(), RecordingError> {
        let key = cache::Key::of(&self.path, self.options.surface)?;
        let survey =
            decoding::decode(&self.path, &key, &self.cache, &self.options, &mut |_, _| {})?;
        if survey == self.survey {
            return Ok(());
        }
        Err(RecordingError::Cache {
            path: self.cache.clone(),
            reason: format!("{} changed while it was read", self.path.display()),
        })
    }

    fn refuse_damage(&self) -> Result<(), RecordingError> {
        if self.options.on_damage == OnDamage::Skip {
            return Ok(());
        }
        match self.survey.first_damage() {
            Some((line, reason)) => Err(RecordingError::Damaged {
                path: self.path.clone(),
                line,
                reason,
            }),
            None => Ok(()),
        }
    }
}
