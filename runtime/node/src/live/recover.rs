//! From what the journal gives back to an engine that goes on: the head's snapshot, fed with the
//! inputs that came after it. What the engine then wanted done was done, or is found out.

use windvane_engine::Engine;
use windvane_engine::config::EngineConfig;
use windvane_engine::engine::SuccessionError;
use windvane_engine::rules::InstrumentError;
use windvane_journal::Recovered;

use super::head::Head;
use super::replay::Replay;

/// Why no engine can go on.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The present configuration cannot take over.
    #[error(transparent)]
    Succession(#[from] SuccessionError),
    /// The venue's rules cannot be used.
    #[error(transparent)]
    Rules(#[from] InstrumentError),
}

/// An engine that goes on, and what the strategies saved.
pub struct Restored {
    /// The engine; nothing was recorded by it yet.
    pub engine: Engine,
    /// The head that the journal gave back.
    pub head: Option<Head>,
}

/// The engine of this start.
///
/// # Errors
/// The present configuration or the venue's rules cannot be used.
pub fn restore(recovered: Recovered, config: EngineConfig) -> Result<Restored, RecoverError> {
    let (verdict, next) = (recovered.verdict.clone(), recovered.next);
    tracing::info!(
        ?verdict,
        segment = recovered.segment,
        blocks = recovered.blocks.len(),
        "the journal"
    );
    let head = Head::from_bytes(&recovered.head);
    let old = if verdict.is_authority() {
        head.as_ref().and_then(|head| replayed(head, recovered))
    } else {
        tracing::error!(
            ?verdict,
            "the journal is not believed: the venue is the authority"
        );
        None
    };
    let engine = match old {
        Some(old) => old.succeed(config, next)?,
        None => Engine::continuing(config, next)?,
    };
    Ok(Restored { engine, head })
}

/// The engine of the process before, where its journal ends.
fn replayed(head: &Head, recovered: Recovered) -> Option<Engine> {
    let mut engine = match Engine::restore(&head.engine) {
        Ok(engine) => engine,
        Err(error) => {
            let version = &head.version;
            tracing::error!(%error, version, "the snapshot is not used: the venue is the authority");
            return None;
        }
    };
    if engine.chain() != recovered.base {
        tracing::error!("the snapshot is of another place: the venue is the authority");
        return None;
    }
    let mut replay = Replay::default();
    for block in recovered.blocks {
        replay.block(&mut engine, block);
    }
    if let Some(difference) = &replay.difference {
        // What happened is a fact all the same; what this program would have done differs.
        let version = &head.version;
        tracing::error!(%difference, version, "the replay of the journal differs from it");
    }
    Some(engine)
}
