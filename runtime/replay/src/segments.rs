//! Replays all segments of a data folder, each with [`Replay`].

use std::path::Path;

use windvane_engine::Engine;
use windvane_engine::engine::SnapshotError;
use windvane_journal::{Directory, ExportError, LockError};

use windvane_session::paper::Paper;
use windvane_session::recovery::{Difference, Replay};
use windvane_session::{Checkpoint, EngineLoop};

/// Why a journal cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A running instance writes it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// It cannot be read.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// This machine cannot run WebAssembly.
    #[error(transparent)]
    Host(#[from] windvane_host::HostError),
    /// The checkpoint of a segment cannot be read.
    #[error(
        "segment {segment:08x}: its checkpoint cannot be read: it is damaged, or another version \
         wrote it"
    )]
    Checkpoint {
        /// The segment.
        segment: u32,
    },
    /// The simulated account of a segment cannot be read.
    #[error(
        "segment {segment:08x}: its simulated account cannot be read: another version may have \
         written it"
    )]
    Paper {
        /// The segment.
        segment: u32,
    },
    /// The engine's snapshot of a segment cannot be restored.
    #[error("segment {segment:08x}: {error}")]
    Snapshot {
        /// The segment.
        segment: u32,
        /// Why.
        error: SnapshotError,
    },
}

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// The number of segments.
    pub segments: u64,
    /// The number of blocks in them.
    pub blocks: u64,
    /// The number of records in them.
    pub records: u64,
    /// The first difference, with its segment.
    pub difference: Option<(u32, Difference)>,
    /// Segments that end early, each with the first block whose market records are lost.
    pub lost: Vec<(u32, u64)>,
}

/// Replays every segment of a data folder, up to the first difference.
///
/// # Errors
/// The journal is in use or cannot be read.
pub fn verify(data_dir: &Path) -> Result<Verified, ReplayError> {
    let _ours = Directory::lock(data_dir)?;
    let mut verified = Verified::default();
    for segment in windvane_journal::segments(data_dir)? {
        let stored = windvane_journal::segment(data_dir, segment)?;
        let checkpoint = Checkpoint::from_bytes(&stored.checkpoint)
            .ok_or(ReplayError::Checkpoint { segment })?;
        let engine = Engine::restore(&checkpoint.engine);
        let engine = engine.map_err(|error| ReplayError::Snapshot { segment, error })?;
        let mut core = EngineLoop::new(engine);
        let paper = checkpoint.paper.as_deref();
        let paper =
            paper.map(|bytes| Paper::from_bytes(bytes).ok_or(ReplayError::Paper { segment }));
        let mut replay = Replay::of(paper.transpose()?);
        verified.segments += 1;
        for block in stored.blocks {
            if block.lacks_market() {
                verified.lost.push((segment, block.number));
                break;
            }
            verified.blocks += 1;
            verified.records += block.last_record + 1 - block.first_record;
            replay.block(&mut core, block);
            if let Some(difference) = replay.difference {
                verified.difference = Some((segment, difference));
                return Ok(verified);
            }
        }
    }
    Ok(verified)
}
