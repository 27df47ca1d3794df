//! From what the journal gives back to an engine that goes on: the head's snapshot, fed with the
//! inputs that came after it. What the engine then wanted done was done, or is found out.

use std::collections::VecDeque;

use windvane_engine::codec::{self, RecordBody};
use windvane_engine::config::EngineConfig;
use windvane_engine::engine::SuccessionError;
use windvane_engine::record::{Block, Hash};
use windvane_engine::rules::InstrumentError;
use windvane_engine::Engine;
use windvane_journal::Recovered;

use super::head::Head;

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
        tracing::error!(?verdict, "the journal is not believed: the venue is the authority");
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
        replay.block(&mut engine, &block);
    }
    if let Some(block) = replay.first_difference {
        // What happened is a fact all the same; what this program would have done differs.
        let version = &head.version;
        tracing::error!(block, version, "the replay of the journal differs from it");
    }
    Some(engine)
}

/// Compares what an engine records with what was recorded.
#[derive(Debug, Default)]
pub struct Replay {
    expected: VecDeque<(u64, Hash)>,
    /// The first block that came out otherwise.
    pub first_difference: Option<u64>,
}

impl Replay {
    /// Feeds the inputs of a block and takes away what follows from them.
    pub fn block(&mut self, engine: &mut Engine, block: &Block) {
        self.expected.push_back((block.number, block.hash));
        for record in codec::decode(&block.bytes).flatten() {
            if let RecordBody::Input(input) = &record.body {
                engine.handle(record.time, input.as_input());
                while engine.poll_effect().is_some() {}
                while engine.poll_notice().is_some() {}
            }
        }
        // A block that its driver ended; others end by themselves, at an intent or when full.
        if engine.chain().next_block == block.number {
            engine.seal();
        }
        while let Some(made) = engine.poll_block() {
            let Some((number, hash)) = self.expected.pop_front() else {
                break;
            };
            if (made.number, made.hash) != (number, hash) {
                self.first_difference.get_or_insert(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use windvane_engine::live::{LiveConfig, LiveInput, OnStart, OnStop};
    use windvane_engine::record::Chain;
    use windvane_engine::{Input, Surface, Time};

    use super::*;

    fn config() -> EngineConfig {
        EngineConfig {
            epoch: 7,
            keep_journal: true,
            live: Some(LiveConfig {
                surfaces: vec![Surface::Futures],
                countdown_ms: 30_000,
                renew_ms: 10_000,
                reconcile_ms: 15_000,
                absence_ms: 10_000,
                on_start: OnStart::Adopt,
                on_stop: OnStop::Cancel,
                multi_assets: false,
                fee_estimate_ppm: 400,
            }),
            ..EngineConfig::default()
        }
    }

    /// A run of some seconds: its head, and its blocks.
    fn lived() -> (Vec<u8>, Vec<Block>, Chain) {
        let mut engine = Engine::new(config()).unwrap();
        let head = engine.snapshot();
        let surface = Surface::Futures;
        let mut at = Time::from_millis(1_000);
        engine.handle(at, Input::Live(&LiveInput::Begin));
        engine.handle(at, Input::Live(&LiveInput::StreamUp { surface }));
        for _ in 0..20 {
            at = at.plus_ms(1_000);
            engine.handle(at, Input::Timeout);
            engine.seal();
        }
        let blocks = std::iter::from_fn(|| engine.poll_block()).collect();
        (head, blocks, engine.chain())
    }

    #[test]
    fn inputs_of_the_journal_make_the_journal_again() {
        let (head, blocks, end) = lived();
        assert_eq!(blocks.len(), 20);
        let mut engine = Engine::restore(&head).unwrap();
        let mut replay = Replay::default();
        blocks
            .iter()
            .for_each(|block| replay.block(&mut engine, block));
        assert_eq!(replay.first_difference, None);
        assert_eq!(engine.chain(), end);
    }

    #[test]
    fn a_journal_of_another_life_is_found_out() {
        let (head, blocks, _) = lived();
        let mut engine = Engine::restore(&head).unwrap();
        let at = Time::from_millis(1_000);
        engine.handle(at, Input::Live(&LiveInput::Journal { healthy: false }));
        let mut replay = Replay::default();
        blocks
            .iter()
            .for_each(|block| replay.block(&mut engine, block));
        assert_eq!(replay.first_difference, Some(0));
    }

    #[test]
    fn the_next_engine_begins_where_the_journal_goes_on_and_has_recorded_nothing() {
        let (head, ..) = lived();
        let chain = Chain {
            next_block: 30,
            last_record: 99,
            hash: [1; 32],
        };
        let mut next = config();
        next.epoch = 8;
        let old = Engine::restore(&head).unwrap();
        for mut engine in [
            old.succeed(next.clone(), chain).unwrap(),
            Engine::continuing(next, chain).unwrap(),
        ] {
            let restored = Engine::restore(&engine.snapshot()).unwrap();
            assert_eq!((engine.chain(), restored.chain()), (chain, chain));
            assert_eq!(restored.epoch(), 8);
        }
    }
}
