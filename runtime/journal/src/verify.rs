//! A whole journal verified: every segment, and the chain across them.

use std::fmt;
use std::io;
use std::path::Path;

use windvane_model::record::Chain;

use crate::directory::{self, Directory, LockError, segments};
use crate::mark::Mark;
use crate::reading;
use crate::retention::segment_bytes;

/// What a segment turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentState {
    /// Ended in order.
    Sealed,
    /// The process that wrote it was killed; whole as far as it goes.
    Unsealed,
    /// A running instance writes it: not looked at.
    InUse,
    /// Not whole.
    Damaged,
}

/// One segment.
#[derive(Clone, Debug)]
pub struct SegmentReport {
    /// Its number.
    pub number: u32,
    /// What it is.
    pub state: SegmentState,
    /// What its first block continues.
    pub base: Chain,
    /// Where it ends.
    pub end: Chain,
    /// Bytes on disk.
    pub bytes: u64,
    /// Runs of blocks whose market records are lost: the first and the last number of each. A kill
    /// may lose those of its last moments.
    pub lost: Vec<(u64, u64)>,
    /// Retention dropped the market records.
    pub market_dropped: bool,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The segment.
    pub segment: Option<u32>,
    /// What is wrong, with numbers of blocks and records.
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

/// What a journal turned out to be.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Its segments, oldest first.
    pub segments: Vec<SegmentReport>,
    /// What is wrong, oldest first.
    pub problems: Vec<Problem>,
    /// The mark.
    pub mark: Option<Mark>,
}

/// Verifies the journal of a data directory. It changes nothing; while it runs, no instance can
/// start there. The segment that a running instance writes is left out.
///
/// # Errors
/// The folder cannot be read.
pub fn verify(data_dir: &Path) -> io::Result<Report> {
    match Directory::lock(data_dir) {
        Ok(directory) => directory.verify(),
        Err(LockError::Held { .. }) => look(data_dir, true),
        // A disk that takes no lock, and so no writer.
        Err(LockError::Io { .. }) => look(data_dir, false),
    }
}

impl Directory {
    /// Verifies the journal of this directory, which nobody else can be writing.
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
    /// The first thing that is wrong.
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

    /// The joint between a segment and the one before it.
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
                "it continues block {} with another history than the segment before it, which \
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
