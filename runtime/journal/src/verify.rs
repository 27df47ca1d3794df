//! Verifies a whole journal: every segment, and the chain across them.

use std::fmt;
use std::io;
use std::path::Path;

use windvane_model::record::Chain;

use crate::directory::{self, Directory, LockError, segments};
use crate::mark::Mark;
use crate::reading;
use crate::retention::segment_bytes;

/// The state of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentState {
    /// It has its seal: the row that its writer adds at an orderly end. It is complete, except for
    /// market data that retention deleted.
    Sealed,
    /// It has no seal: the process that wrote it was killed, or its writing failed. It is complete
    /// up to that point.
    Unsealed,
    /// A running instance is writing it, so it was not read.
    InUse,
    /// It is not complete.
    Damaged,
}

/// One segment.
#[derive(Clone, Debug)]
pub struct SegmentReport {
    /// Its number.
    pub number: u32,
    /// Its state.
    pub state: SegmentState,
    /// The position that its first block continues.
    pub base: Chain,
    /// The end of its chain.
    pub end: Chain,
    /// Its size on disk, in bytes.
    pub bytes: u64,
    /// Ranges of blocks whose market records are lost: first and last number of each. A kill may
    /// lose those of the last moments.
    pub lost: Vec<(u64, u64)>,
    /// Whether retention dropped the market records.
    pub market_dropped: bool,
}

/// A problem of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The segment, if the problem belongs to one.
    pub segment: Option<u32>,
    /// The problem, with numbers of blocks and records.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.segment {
            Some(segment) => write!(f, "segment {segment:08x}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// The result of a verification.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Its segments, oldest first.
    pub segments: Vec<SegmentReport>,
    /// The problems, oldest first.
    pub problems: Vec<Problem>,
    /// The mark.
    pub mark: Option<Mark>,
}

/// Verifies the journal of a data directory without changing anything. Meanwhile no instance can
/// start there. The segment that a running instance is writing is left out.
///
/// # Errors
/// The folder cannot be read.
pub fn verify(data_dir: &Path) -> io::Result<Report> {
    match Directory::lock(data_dir) {
        Ok(directory) => directory.verify(),
        Err(LockError::Held { .. }) => look(data_dir, true),
        // An instance runs only while it holds the lock. If the lock file cannot be opened or
        // locked, for example on a read-only disk, no segment counts as in use.
        // A folder that others may change can still be looked at.
        Err(
            LockError::Io { .. } | LockError::NotPrivate { .. } | LockError::NotAJournal { .. },
        ) => look(data_dir, false),
    }
}

impl Directory {
    /// Verifies the journal of this directory, which no other process can be writing.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn verify(&self) -> io::Result<Report> {
        look(self.path(), false)
    }
}

fn look(data_dir: &Path, is_written: bool) -> io::Result<Report> {
    let journal = data_dir.join("journal");
    let numbers = segments(&journal)?;
    let in_use = numbers.last().copied().filter(|_| is_written);
    let mut report = Report::default();
    let mut end: Option<Chain> = None;
    for number in numbers {
        let bytes = segment_bytes(&journal, number)?;
        let (mut lost, mut market_dropped) = (Vec::new(), false);
        let (state, range) = if in_use == Some(number) {
            (SegmentState::InUse, None)
        } else {
            report.segment(&journal, number, &mut lost, &mut market_dropped)
        };
        let (base, last) = range.unwrap_or_default();
        if range.is_some() {
            report.joint(number, end, base);
        }
        end = range.map(|(_, end)| end);
        report.segments.push(SegmentReport {
            number,
            state,
            base,
            end: last,
            bytes,
            lost,
            market_dropped,
        });
    }
    report.mark(data_dir, in_use.is_some());
    Ok(report)
}

impl Report {
    /// The first problem.
    pub fn first_problem(&self) -> Option<&Problem> {
        self.problems.first()
    }

    fn problem(&mut self, segment: Option<u32>, what: String) {
        self.problems.push(Problem { segment, what });
    }

    fn segment(
        &mut self,
        journal: &Path,
        number: u32,
        lost: &mut Vec<(u64, u64)>,
        market_dropped: &mut bool,
    ) -> (SegmentState, Option<(Chain, Chain)>) {
        match reading::read(journal, number, |_| true) {
            Err(error) => {
                self.problem(Some(number), error.to_string());
                (SegmentState::Damaged, None)
            }
            Ok(contents) => {
                let range = Some((contents.base(), contents.end()));
                lost.clone_from(&contents.lost);
                *market_dropped = contents.market_dropped;
                if let Some(tear) = contents.tear {
                    self.problem(Some(number), tear);
                    return (SegmentState::Damaged, range);
                }
                let states = [SegmentState::Unsealed, SegmentState::Sealed];
                (states[usize::from(contents.sealed)], range)
            }
        }
    }

    /// Checks that a segment continues the one before it.
    fn joint(&mut self, number: u32, end: Option<Chain>, base: Chain) {
        let Some(end) = end.filter(|end| *end != base) else {
            return;
        };
        let what = if base.next_block > end.next_block {
            format!(
                "blocks {} to {} (records {} to {}) are missing before it",
                end.next_block,
                base.next_block - 1,
                end.last_record + 1,
                base.last_record
            )
        } else {
            format!(
                "it continues after block {} of a different chain; the segment before it \
                 ends with block {}",
                base.next_block.saturating_sub(1),
                end.next_block.saturating_sub(1)
            )
        };
        self.problem(Some(number), what);
    }

    fn mark(&mut self, data_dir: &Path, in_use: bool) {
        match Mark::read(&directory::mark(data_dir)) {
            Ok(mark) => self.mark = mark,
            Err(error) => self.problem(None, error.to_string()),
        }
        let (Some(mark), false) = (self.mark, in_use) else {
            return;
        };
        let last = self.segments.last();
        let behind = last.is_none_or(|last| {
            last.number < mark.segment
                || (last.number == mark.segment && last.end.last_record < mark.chain.last_record)
        });
        if behind {
            let what = format!(
                "record {} of segment {:08x} was durable and is not there: the journal was \
                 rolled back or damaged",
                mark.chain.last_record, mark.segment
            );
            self.problem(None, what);
        }
    }
}
