//! Recordings: `<receive time ns> <frame as received>` lines, gzip, zstd or plain, decoded once
//! into a cache of fixed-size records and read from there as a [`Tape`].
//!
//! What may not enter: orders, strategies, decisions. A recording is what the venue said.

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

/// What to do with a line that cannot be decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDamage {
    /// Report its number and go on.
    #[default]
    Skip,
    /// Refuse the recording.
    Fail,
}

/// How recordings are opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Where decoded caches are kept. `None`: beside the recording if its folder is writable,
    /// else in the user's cache folder.
    pub cache_dir: Option<PathBuf>,
    /// What to do with damaged lines.
    pub on_damage: OnDamage,
    /// The surface of frames whose keys do not tell it (see [`windvane_protocol::surface`]). `None`:
    /// that of the first frame of the recording that does, else spot.
    pub surface: Option<Surface>,
}

/// Called with the bytes read and the bytes there are, while a recording is decoded.
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
        /// Why.
        source: std::io::Error,
    },
    /// A damaged line, and damage is fatal by setting.
    #[error(
        "{} line {line}: {reason}; `on_damage = \"skip\"` would go on without it",
        path.display()
    )]
    Damaged {
        /// The recording.
        path: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A price or quantity that the instrument's scale cannot hold.
    #[error(
        "{} line {line}: {what} {value} of {instrument} does not fit {scale} decimal places; \
         set a finer {rule} for it in [[instrument]]",
        path.display()
    )]
    Unfit {
        /// The recording.
        path: PathBuf,
        /// Its line, from 1.
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
    /// There is no folder that a decoded cache could be written to.
    #[error(
        "no decoded cache can be kept in {}: {reason}; name a folder that can be written with \
         --cache DIR",
        path.display()
    )]
    NoCache {
        /// The folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A cache that is damaged, could not be made again, or is not what it was.
    #[error("decoded cache {}: {reason}; remove it and try again", path.display())]
    Cache {
        /// The cache.
        path: PathBuf,
        /// Why.
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
    /// Opens a recording: reuses its decoded cache, or decodes the text into one.
    ///
    /// # Errors
    /// [`RecordingError::Io`] for a file that cannot be read or a cache that cannot be written,
    /// [`RecordingError::Damaged`] for a damaged line when damage is fatal.
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

    /// Whether its decoded cache was there already.
    pub fn from_cache(&self) -> bool {
        self.from_cache
    }

    /// What is in it.
    pub fn survey(&self) -> &Survey {
        &self.survey
    }

    /// What its reader should be told, one sentence each: stale or damaged caches, damaged lines,
    /// gaps, a cut end.
    pub fn notices(&self) -> Vec<String> {
        let name = self.path.display();
        let survey = self.survey.notices();
        let survey = survey.into_iter().map(|notice| format!("{name}: {notice}"));
        self.notices.iter().cloned().chain(survey).collect()
    }

    /// Decodes the text again, because the cache turned out to be damaged.
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
