//! The journal at a start: the last segment, verified and compared with the mark.
//!
//! Nothing is deleted. Files that cannot be read are renamed aside, and the caller learns how far
//! the journal can be trusted.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use windvane_model::record::{Chain, Format};

use crate::directory::{Directory, highest, segments};
use crate::event::Listener;
use crate::failure::Failure;
use crate::journal::{BeginError, Journal};
use crate::layout;
use crate::mark::Mark;
use crate::market::Parts;
use crate::options::Options;
use crate::packed::Blocks;
use crate::reading::{self, ReadError, SCRATCH, StoredSegment};
use crate::small_file::{SmallFileError, put_aside};

/// How far the journal can be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The journal does not exist, and there is no sign that it ever did.
    Fresh,
    /// The journal is complete and reaches the mark.
    Clean,
    /// The journal reaches the mark, but something after the returned blocks could not be read.
    /// Records of the last moments may be missing.
    Torn {
        /// The part that could not be read.
        problem: String,
    },
    /// The journal looks complete, but it ends before a point that was durable. The venue is the
    /// authority.
    RolledBack {
        /// The point that was durable.
        mark: Mark,
        /// The end of the journal.
        found: Chain,
    },
    /// A part could not be read, and durable records are missing or may be missing. The venue is
    /// the authority.
    Damaged {
        /// The end of the journal.
        found: Chain,
        /// The part that could not be read.
        problem: String,
    },
}

impl Verdict {
    /// Whether state may be restored from the journal. Otherwise the journal is only a hint.
    pub const fn is_authority(&self) -> bool {
        matches!(self, Self::Fresh | Self::Clean | Self::Torn { .. })
    }
}

/// A file or folder that was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Its new path.
    pub aside: PathBuf,
    /// The reason.
    pub problem: String,
}

/// The journal that a start found.
#[derive(Debug)]
pub struct Recovered {
    /// How far it can be trusted.
    pub verdict: Verdict,
    /// Number of the segment that is returned.
    pub segment: Option<u32>,
    /// Its checkpoint; empty without a segment.
    pub checkpoint: Vec<u8>,
    /// The verified blocks after the checkpoint.
    pub blocks: Blocks,
    /// The position that the first of them continues.
    pub base: Chain,
    /// The end of the blocks.
    pub found: Chain,
    /// The position at which the next segment continues: the end of the blocks, or the mark if it
    /// is further. So no sequence is used twice.
    pub next: Chain,
    /// Whether the segment has its seal: its writer ended it in order, and its last block is there.
    /// Without a seal, the process was killed, or its writing failed.
    pub sealed: bool,
    /// Ranges of blocks whose market parts are lost: first and last number of each.
    pub lost: Vec<(u64, u64)>,
    /// The mark.
    pub mark: Option<Mark>,
    /// Files and folders that were put aside.
    pub repairs: Vec<Repair>,
}

/// The journal cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The disk failed. This says nothing about the state of the journal.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// A recovered journal that waits for the checkpoint of its next segment.
#[derive(Debug)]
pub struct Ready {
    directory: Arc<Directory>,
    number: u32,
    next: Chain,
}

impl Ready {
    /// Begins the segment of this start. Its checkpoint is durable on return. `at` must be
    /// [`Recovered::next`].
    ///
    /// # Errors
    /// The segment could not be created.
    pub fn begin(
        self,
        checkpoint: &[u8],
        at: Chain,
        options: &Options,
        listener: Listener,
    ) -> Result<Journal, BeginError> {
        if at != self.next {
            return Err(BeginError::OutOfPlace {
                at: at.next_block,
                next: self.next.next_block,
            });
        }
        let (directory, number) = (self.directory, self.number);
        Ok(Journal::begin(
            directory, number, checkpoint, at, options, listener,
        )?)
    }
}

/// Finds and verifies the last segment of a data directory.
///
/// # Errors
/// The disk failed. Damage is not an error; it gives a [`Verdict`].
pub fn open(directory: Arc<Directory>) -> Result<(Ready, Recovered), OpenError> {
    let mut search = Search::new(directory)?;
    let contents = search.last_segment()?;
    search.recovered(contents)
}

struct Search {
    directory: Arc<Directory>,
    journal: PathBuf,
    mark: Option<Mark>,
    repairs: Vec<Repair>,
    /// The problems that were found, except those that lose nothing.
    problems: Vec<String>,
    /// The mark cannot be compared: it is damaged, or it is missing although there are blocks.
    mark_lost: bool,
}

impl Search {
    fn new(directory: Arc<Directory>) -> Result<Self, OpenError> {
        let journal = directory.journal();
        for entry in fs::read_dir(&journal)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(SCRATCH) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        let mut search = Self {
            directory,
            journal,
            mark: None,
            repairs: Vec::new(),
            problems: Vec::new(),
            mark_lost: false,
        };
        match Mark::read(&search.directory.mark()) {
            Ok(mark) => search.mark = mark,
            Err(error @ SmallFileError::Damaged { .. }) => {
                let path = search.directory.mark();
                search.put_aside(&path, "damaged", error.to_string())?;
                search.problems.push(error.to_string());
                search.mark_lost = true;
            }
            Err(error) => return Err(Failure::from(error).into()),
        }
        Ok(search)
    }

    fn put_aside(
        &mut self,
        path: &std::path::Path,
        why: &str,
        problem: String,
    ) -> Result<(), OpenError> {
        let aside = put_aside(path, why)?;
        tracing::warn!(aside = %aside.display(), problem, "a part of the journal was put aside");
        self.repairs.push(Repair { aside, problem });
        Ok(())
    }

    /// The newest segment that can be read. Newer ones are put aside.
    fn last_segment(&mut self) -> Result<Option<StoredSegment>, OpenError> {
        for number in segments(&self.journal)?.into_iter().rev() {
            let mark = self.mark;
            let read = reading::read(&self.journal, number, |end| {
                mark.is_none_or(|mark| mark.segment != number || reaches(end, &mark.chain))
            });
            let problem = match read {
                Ok(contents) => return Ok(Some(contents)),
                Err(ReadError::Failed(failure)) => return Err(failure.into()),
                Err(problem) => problem,
            };
            let path = layout::folder(&self.journal, number);
            // The mark names a segment before the segment accepts a block. So this segment never
            // accepted one.
            let unused = !self.mark_lost && mark.is_none_or(|mark| mark.segment < number);
            if unused && matches!(problem, ReadError::Empty) {
                self.put_aside(&path, "unfinished", problem.to_string())?;
            } else {
                let problem = format!("segment {number:08x}: {problem}");
                self.problems.push(problem.clone());
                self.put_aside(&path, "damaged", problem)?;
            }
        }
        Ok(None)
    }

    fn recovered(
        mut self,
        contents: Option<StoredSegment>,
    ) -> Result<(Ready, Recovered), OpenError> {
        let highest = highest(&self.journal)?.max(self.mark.map(|mark| mark.segment));
        let some = contents.is_some();
        let contents = match contents {
            Some(contents) => contents,
            None => empty()?,
        };
        let found = contents.end();
        if let Some(tear) = &contents.tear {
            self.problems.push(tear.clone());
        }
        if self.mark.is_none() && found.next_block > 0 && !self.mark_lost {
            self.mark_lost = true;
            self.problems.push("the mark is missing".to_owned());
        }
        let verdict = self.verdict(some, &contents);
        let next = match self.mark {
            Some(mark) if !reaches(&found, &mark.chain) => mark.chain,
            _ => found,
        };
        if !matches!(verdict, Verdict::Fresh | Verdict::Clean) {
            tracing::warn!(?verdict, "the journal was recovered, but not completely");
        }
        let ready = Ready {
            directory: self.directory,
            number: highest.unwrap_or(0),
            next,
        };
        let recovered = Recovered {
            verdict,
            segment: some.then_some(contents.number),
            base: contents.base(),
            found,
            next,
            sealed: contents.sealed,
            lost: contents.lost,
            checkpoint: contents.checkpoint,
            blocks: contents.blocks,
            mark: self.mark,
            repairs: self.repairs,
        };
        Ok((ready, recovered))
    }

    fn verdict(&self, some: bool, contents: &StoredSegment) -> Verdict {
        let found = contents.end();
        let problem = self.problems.join("; ");
        if self.mark_lost {
            return Verdict::Damaged { found, problem };
        }
        if let Some(mark) = self.mark {
            let behind = !some || mark.segment > contents.number || !reaches(&found, &mark.chain);
            if behind && problem.is_empty() {
                return Verdict::RolledBack { mark, found };
            }
            if behind {
                return Verdict::Damaged { found, problem };
            }
            let there = |chain: &&Chain| chain.next_block == mark.chain.next_block;
            if contents
                .chains
                .iter()
                .find(there)
                .is_some_and(|chain| *chain != mark.chain)
            {
                let problem = format!(
                    "block {} is not the block that was durable",
                    mark.chain.next_block.saturating_sub(1)
                );
                return Verdict::Damaged { found, problem };
            }
        }
        match (problem.is_empty(), some) {
            (false, _) => Verdict::Torn { problem },
            (true, true) => Verdict::Clean,
            (true, false) => Verdict::Fresh,
        }
    }
}

fn reaches(end: &Chain, mark: &Chain) -> bool {
    end.next_block >= mark.next_block && end.last_record >= mark.last_record
}

/// The contents of a journal without segments.
fn empty() -> io::Result<StoredSegment> {
    let verified = Blocks::verify(Chain::default(), Vec::new(), Parts::default())?;
    Ok(StoredSegment {
        number: 0,
        format: Format::default(),
        checkpoint: Vec::new(),
        blocks: verified.blocks,
        chains: verified.chains,
        sealed: false,
        lost: Vec::new(),
        market_dropped: false,
        meta: None,
        tear: None,
    })
}
