//! Segments and records of a journal, for replay and for people.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use windvane_model::codec::{DecodeError, Record};

use crate::directory;
use crate::packed::Blocks;
use crate::reading::{self, StoredSegment};

/// A record with its segment and sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Number of its segment.
    pub segment: u32,
    /// Its sequence.
    pub sequence: u64,
    /// The record.
    pub record: Record,
}

/// A part of the journal cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The journal's folder cannot be read.
    #[error("{}: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A segment cannot be read.
    #[error("segment {segment:08x}: {problem}; run `windvane journal verify` for details")]
    Segment {
        /// Its number.
        segment: u32,
        /// The problem.
        problem: String,
    },
    /// A record cannot be read.
    #[error("segment {segment:08x}: {error}")]
    Record {
        /// Number of its segment.
        segment: u32,
        /// Why.
        error: DecodeError,
    },
}

/// Numbers of the segments of a data directory, oldest first.
///
/// # Errors
/// The folder cannot be read.
pub fn segments(data_dir: &Path) -> Result<Vec<u32>, ExportError> {
    let journal = data_dir.join("journal");
    directory::segments(&journal).map_err(|error| ExportError::Folder {
        path: journal,
        error,
    })
}

/// A whole segment, checkpoint and blocks, as far as it verifies. No process may be writing it.
///
/// # Errors
/// No part of the segment can be read.
pub fn segment(data_dir: &Path, number: u32) -> Result<StoredSegment, ExportError> {
    let read = reading::read(&data_dir.join("journal"), number, |_| true);
    read.map_err(|error| ExportError::Segment {
        segment: number,
        problem: error.to_string(),
    })
}

/// The records with these sequences, segment by segment. No process may be writing the journal.
/// After an error, the next segment is tried.
///
/// # Errors
/// The folder cannot be read.
pub fn export(data_dir: &Path, sequences: Range<u64>) -> Result<Export, ExportError> {
    Ok(Export {
        data_dir: data_dir.to_owned(),
        numbers: segments(data_dir)?.into_iter(),
        sequences,
        segment: 0,
        blocks: None,
        records: Vec::new().into_iter(),
        tear: None,
    })
}

/// The records of a journal; made by [`export`].
#[derive(Debug)]
pub struct Export {
    data_dir: PathBuf,
    numbers: std::vec::IntoIter<u32>,
    sequences: Range<u64>,
    segment: u32,
    blocks: Option<Blocks>,
    records: std::vec::IntoIter<Result<Exported, ExportError>>,
    tear: Option<String>,
}

impl Export {
    fn fill(&mut self) -> Option<Result<(), ExportError>> {
        let segment = self.segment;
        let problem = |problem| ExportError::Segment { segment, problem };
        if let Some(block) = self.blocks.as_mut().and_then(Iterator::next) {
            let inside = block.last_record >= self.sequences.start
                && block.first_record < self.sequences.end;
            if inside {
                let records = block
                    .records()
                    .filter(|(sequence, _)| self.sequences.contains(sequence))
                    .map(|(sequence, record)| match record {
                        Ok(record) => Ok(Exported {
                            segment,
                            sequence,
                            record,
                        }),
                        Err(error) => Err(ExportError::Record { segment, error }),
                    });
                self.records = records.collect::<Vec<_>>().into_iter();
            }
            return Some(Ok(()));
        }
        if let Some(tear) = self.tear.take() {
            return Some(Err(problem(tear)));
        }
        self.segment = self.numbers.next()?;
        let read = crate::export::segment(&self.data_dir, self.segment);
        Some(read.map(|stored| {
            self.tear = stored.tear;
            self.blocks = Some(stored.blocks);
        }))
    }
}

impl Iterator for Export {
    type Item = Result<Exported, ExportError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.records.next() {
                return Some(record);
            }
            if let Err(error) = self.fill()? {
                return Some(Err(error));
            }
        }
    }
}
