//! From what the journal gives back to an engine that goes on: the head's snapshot, fed with the
//! inputs that came after it. What the engine then wanted done was done, or is found out. On paper
//! the same gives the simulated account.

use windvane_engine::Engine;
use windvane_engine::config::EngineConfig;
use windvane_engine::engine::SuccessionError;
use windvane_engine::record::Chain;
use windvane_engine::rules::InstrumentError;
use windvane_journal::Recovered;

use super::head::Head;
use super::paper::Paper;
use super::replay::Replay;
use crate::config::Mode;

/// Why no engine can go on.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The present configuration cannot take over.
    #[error(transparent)]
    Succession(#[from] SuccessionError),
    /// The venue's rules cannot be used.
    #[error(transparent)]
    Rules(#[from] InstrumentError),
    /// The journal is one of the other mode.
    #[error(
        "run.data_dir holds the journal of a {left} run, and run.mode is \"{mode}\": give each mode \
         a folder of its own"
    )]
    Mode {
        /// The journal's.
        left: Mode,
        /// The configuration's.
        mode: Mode,
    },
}

/// What the process before left.
pub struct Left {
    /// Its engine, where its journal ends; `None` if there is none, or none to be believed.
    engine: Option<Engine>,
    /// Its simulated account.
    pub paper: Option<Paper>,
    /// The head that the journal gave back.
    pub head: Option<Head>,
    /// Where the journal goes on.
    next: Chain,
}

/// Reads what the journal gives back.
pub fn left(recovered: Recovered) -> Left {
    let (verdict, next) = (recovered.verdict.clone(), recovered.next);
    tracing::info!(
        ?verdict,
        segment = recovered.segment,
        blocks = recovered.blocks.len(),
        "the journal"
    );
    let head = Head::from_bytes(&recovered.head);
    let (engine, paper) = match &head {
        Some(head) => replayed(head, recovered),
        None => (None, None),
    };
    let engine = engine.filter(|_| verdict.is_authority());
    if !verdict.is_authority() {
        let paper = paper.is_some();
        tracing::error!(
            ?verdict,
            paper,
            "the journal is not believed: the venue, or the simulated account as far as it was \
             found, is the authority"
        );
    }
    Left {
        engine,
        paper,
        head,
        next,
    }
}

impl Left {
    /// A simulated account and a venue's are never mixed up.
    ///
    /// # Errors
    /// The folder is one of the other mode.
    pub fn must_be_of(&self, mode: Mode) -> Result<(), RecoverError> {
        let left = match &self.head {
            None => return Ok(()),
            Some(head) if head.paper.is_some() => Mode::Paper,
            Some(_) => Mode::Live,
        };
        if left == mode {
            Ok(())
        } else {
            Err(RecoverError::Mode { left, mode })
        }
    }

    /// The engine of this start; nothing was recorded by it yet.
    ///
    /// # Errors
    /// The present configuration or the venue's rules cannot be used.
    pub fn succeed(self, config: EngineConfig) -> Result<Engine, RecoverError> {
        Ok(match self.engine {
            Some(engine) => engine.succeed(config, self.next)?,
            None => Engine::continuing(config, self.next)?,
        })
    }
}

/// Engine and simulated account of the process before, where its journal ends.
fn replayed(head: &Head, recovered: Recovered) -> (Option<Engine>, Option<Paper>) {
    let version = &head.version;
    let paper = head.paper.as_deref().and_then(Paper::from_bytes);
    if head.paper.is_some() && paper.is_none() {
        tracing::error!(
            version,
            "the simulated account cannot be read: it begins anew"
        );
    }
    let mut engine = match Engine::restore(&head.engine) {
        Ok(engine) => engine,
        Err(error) => {
            tracing::error!(%error, version, "the snapshot is not used: the venue is the authority");
            return (None, paper);
        }
    };
    if engine.chain() != recovered.base {
        tracing::error!("the snapshot is of another place: the venue is the authority");
        return (None, paper);
    }
    let mut replay = Replay::of(paper);
    for block in recovered.blocks {
        replay.block(&mut engine, block);
    }
    if let Some(difference) = &replay.difference {
        // What happened is a fact all the same; what this program would have done differs.
        tracing::error!(%difference, version, "the replay of the journal differs from it");
    }
    (Some(engine), replay.paper)
}
