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
mod error;
mod listing;
mod options;
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
pub use error::RecordingError;
pub use options::{OnDamage, Options, Progress};
pub use rules::{ResolveError, RulesSource, resolve_instrument};
pub use survey::{Cut, Faults, InstrumentSurvey, Survey};
pub use synthetic::SyntheticSession;
pub use tape::{Chunks, Tape};
pub use tape_event::TapeEvent;

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
