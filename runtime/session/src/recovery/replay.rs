//! Replays recorded inputs. If they are fed to the engine of their segment's checkpoint, it must
//! make exactly the recorded blocks. The answers of strategies are inputs too, so no module is
//! needed.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use windvane_engine::Engine;
use windvane_model::codec::{Record, RecordBody, RecordedEffect, RecordedInput};
use windvane_model::input::StartPhase;
use windvane_model::record::Block;
use windvane_model::{Notice, StrategyId, Time};

use crate::checkpoint::{SavedStrategy, instances};
use crate::engine_loop::{EngineLoop, NoticesOnly};
use crate::paper::{Paper, UnexpectedMessage};

/// The first record that differs in a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The block of the record.
    pub block: u64,
    /// Its sequence.
    pub record: u64,
    /// The recorded text; `None` if the replay has an additional record.
    pub recorded: Option<String>,
    /// The replayed text; `None` if the replay lacks the record.
    pub made: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(
            f,
            "block {}, record {}: recorded {}, replayed {}",
            self.block,
            self.record,
            word(&self.recorded),
            word(&self.made)
        )
    }
}

/// Compares the records of a replay with the recorded ones. For a paper run it also compares the
/// messages of the simulated venue.
#[derive(Debug, Default)]
pub struct Replay {
    pairs: Pairs,
    /// States that strategies saved after the checkpoint, by strategy.
    pub states: BTreeMap<StrategyId, Vec<u8>>,
    /// Instances that began to start after the checkpoint, by strategy.
    pub started: BTreeMap<StrategyId, SavedStrategy>,
    /// The instances of the last reload.
    reloaded: Vec<SavedStrategy>,
    /// The simulated account.
    pub paper: Option<Paper>,
    /// The first record that differs.
    pub difference: Option<Difference>,
    /// The first block whose market records are lost. Nothing after it can be compared.
    pub lost: Option<u64>,
    /// The notices of the engine, if they are kept.
    notices: Option<Vec<Notice>>,
}

impl Replay {
    /// A replay with the simulated account of a paper run.
    pub fn of(paper: Option<Paper>) -> Self {
        Self {
            paper,
            ..Self::default()
        }
    }

    /// Keeps the engine's notices for [`notices`](Self::notices).
    #[must_use]
    pub fn keeping_notices(mut self) -> Self {
        self.notices = Some(Vec::new());
        self
    }

    /// The engine's notices since the last call.
    pub fn notices(&mut self) -> Vec<Notice> {
        self.notices
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Drops the engine's effects and keeps its notices.
    fn drain(&mut self, core: &mut EngineLoop, now: Time) {
        let notices = &mut self.notices;
        let mut keep = NoticesOnly(|_: &Engine, notice| {
            if let Some(notices) = notices {
                notices.push(notice);
            }
        });
        core.drain(now, &mut keep);
    }

    /// Replays only the order records of a block. Used from the first block whose market records
    /// are lost, up to the end of the journal.
    fn block_without_market(&mut self, core: &mut EngineLoop, block: &Block) {
        self.lost.get_or_insert(block.number);
        let mut input: Option<(Time, RecordedInput)> = None;
        let mut followed = Vec::new();
        for (_, record) in block.records() {
            let Ok(record) = record else { break };
            match record.body {
                RecordBody::Input(next) => {
                    self.input_without_market(core, input.as_ref(), &followed);
                    followed.clear();
                    self.note(&next);
                    input = Some((record.time, next));
                }
                RecordBody::Effect(effect) => followed.push((record.time, effect)),
                RecordBody::Config(_) | RecordBody::Notice(_) => {}
            }
        }
        self.input_without_market(core, input.as_ref(), &followed);
    }

    fn input_without_market(
        &mut self,
        core: &mut EngineLoop,
        input: Option<&(Time, RecordedInput)>,
        followed: &[(Time, RecordedEffect)],
    ) {
        let now = input.map_or_else(|| core.engine().now(), |(time, _)| *time);
        let fed = input.map(|(_, input)| input.as_input());
        core.engine_mut().handle_without_market(now, fed, followed);
        self.drain(core, now);
        while core.poll_block().is_some() {}
    }

    /// Notes saved states and new instances, which the engine does not know.
    fn note(&mut self, input: &RecordedInput) {
        match input {
            RecordedInput::Saved {
                strategy,
                state: Some(state),
                ..
            } => {
                self.states.insert(*strategy, state.clone());
            }
            RecordedInput::Reconfigure(next) => {
                self.reloaded = instances(&next.circumstances).unwrap_or_default();
            }
            RecordedInput::Start {
                strategy,
                phase: StartPhase::Begins,
            } => {
                if let Some(instance) = self.reloaded.get(usize::from(strategy.0)) {
                    self.started.insert(*strategy, instance.clone());
                }
            }
            _ => {}
        }
    }

    /// Feeds the inputs of a block and compares the results.
    pub fn block(&mut self, core: &mut EngineLoop, block: Block) {
        if self.lost.is_some() || block.lacks_market() {
            return self.block_without_market(core, &block);
        }
        core.engine_mut().record_as(block.format);
        for (sequence, record) in block.records() {
            let Ok(record) = record else { break };
            let otherwise = compare_paper(&mut self.paper, (block.number, sequence), &record);
            self.difference = self.difference.take().or(otherwise);
            if let RecordBody::Input(input) = record.body {
                core.handle(record.time, input.as_input());
                self.note(&input);
                self.drain(core, record.time);
            }
        }
        // The event loop ended this block because of its age. Other blocks end by themselves, at an
        // intent or when they are full.
        if core.engine().chain().next_block == block.number {
            core.seal();
        }
        self.pairs.recorded(block);
        self.pairs.made(std::iter::from_fn(|| core.poll_block()));
        let difference = self.pairs.difference();
        self.difference = self.difference.take().or(difference);
    }
}

/// For a paper run: the difference if the simulated venue sends another message than the recorded
/// one. `place` is the block and the record.
pub fn compare_paper(
    paper: &mut Option<Paper>,
    place: (u64, u64),
    record: &Record,
) -> Option<Difference> {
    let UnexpectedMessage(message) = paper.as_mut()?.replay(record).err()?;
    Some(Difference {
        block: place.0,
        record: place.1,
        recorded: Some(format!("{record:?}")),
        made: message.map(|message| format!("{message:?}")),
    })
}

/// Recorded and replayed blocks, compared one by one. One input may end several blocks, so some are
/// replayed before the recorded ones are read. Blocks that are left at the end were not written
/// before the kill.
#[derive(Debug, Default)]
pub struct Pairs {
    recorded: VecDeque<Block>,
    made: VecDeque<Block>,
    /// Only the records are compared. After a difference, all hashes of the chain differ.
    records_alone: bool,
}

impl Pairs {
    /// Compares the blocks as a chain, or only by their records.
    #[must_use]
    pub fn compared(as_chain: bool) -> Self {
        Self {
            records_alone: !as_chain,
            ..Self::default()
        }
    }

    /// Adds a block of the journal.
    pub fn recorded(&mut self, block: Block) {
        self.recorded.push_back(block);
    }

    /// Adds blocks that the engine made in the replay.
    pub fn made(&mut self, blocks: impl IntoIterator<Item = Block>) {
        self.made.extend(blocks);
    }

    /// The first difference among the blocks that both sides have. These blocks are removed.
    pub fn difference(&mut self) -> Option<Difference> {
        let both = self.recorded.len().min(self.made.len());
        let mut pairs = self.recorded.drain(..both).zip(self.made.drain(..both));
        let records_alone = self.records_alone;
        let differ = |(recorded, made): &(Block, Block)| {
            if records_alone {
                (&recorded.orders, &recorded.market) != (&made.orders, &made.market)
            } else {
                recorded.hash != made.hash
            }
        };
        let first = pairs.find(differ);
        first.map(|(recorded, made)| difference(&recorded, &made))
    }
}

fn difference(recorded: &Block, made: &Block) -> Difference {
    let read = |block: &Block| -> Vec<String> {
        let records = block.records().filter_map(|(_, record)| record.ok());
        records.map(|record| format!("{record:?}")).collect()
    };
    let (recorded_text, made_text) = (read(recorded), read(made));
    let most = recorded_text.len().max(made_text.len());
    let place = (0..most).find(|at| recorded_text.get(*at) != made_text.get(*at));
    let place = place.unwrap_or_default();
    Difference {
        block: recorded.number,
        record: recorded.first_record + place as u64,
        recorded: recorded_text.get(place).cloned(),
        made: made_text.get(place).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use windvane_model::live::LiveInput;
    use windvane_model::record::Chain;
    use windvane_model::{Input, Surface};

    use super::*;
    use crate::testing::live_config;
    use windvane_model::config::EngineConfig;

    fn config() -> EngineConfig {
        EngineConfig {
            epoch: 7,
            keep_journal: true,
            live: Some(live_config()),
            ..EngineConfig::default()
        }
    }

    /// A run of some seconds: its checkpoint, its blocks and the end of its chain.
    fn lived() -> (Vec<u8>, Vec<Block>, Chain) {
        let mut engine = Engine::new(config()).unwrap();
        let checkpoint = engine.snapshot();
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
        (checkpoint, blocks, engine.chain())
    }

    #[test]
    fn replayed_inputs_give_the_same_journal() {
        let (checkpoint, blocks, end) = lived();
        assert_eq!(blocks.len(), 20);
        let mut core = EngineLoop::new(Engine::restore(&checkpoint).unwrap());
        let mut replay = Replay::default();
        for block in blocks {
            replay.block(&mut core, block);
        }
        assert_eq!(replay.difference, None);
        assert_eq!(core.engine().chain(), end);
    }

    #[test]
    fn replayed_blocks_wait_for_the_recorded_ones() {
        let (_, blocks, _) = lived();
        let mut pairs = Pairs::default();
        let mut made = blocks.clone();
        pairs.recorded(blocks[0].clone());
        pairs.made(made.drain(..3));
        assert_eq!(pairs.difference(), None);
        for block in &blocks[1..3] {
            pairs.recorded(block.clone());
            assert_eq!(pairs.difference(), None);
        }
        pairs.recorded(blocks[3].clone());
        pairs.made(made.drain(1..2));
        assert_eq!(pairs.difference().map(|it| it.block), Some(3));
    }

    #[test]
    fn a_journal_of_another_process_is_detected() {
        let (checkpoint, blocks, _) = lived();
        let mut core = EngineLoop::new(Engine::restore(&checkpoint).unwrap());
        let at = Time::from_millis(1_000);
        core.handle(at, Input::Live(&LiveInput::Journal { healthy: false }));
        let mut replay = Replay::default();
        for block in blocks {
            replay.block(&mut core, block);
        }
        let difference = replay.difference.unwrap();
        assert_eq!((difference.block, difference.record), (0, 1));
        assert!(difference.recorded.unwrap().contains("Begin"));
        assert!(difference.made.unwrap().contains("healthy: false"));
    }

    #[test]
    fn the_next_engine_continues_the_chain_with_no_records() {
        let (checkpoint, ..) = lived();
        let chain = Chain {
            next_block: 30,
            last_record: 99,
            hash: [1; 32],
        };
        let mut next = config();
        next.epoch = 8;
        let old = Engine::restore(&checkpoint).unwrap();
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
