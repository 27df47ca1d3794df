//! Recorded inputs again: fed to the engine of their segment's head, they must make the very blocks
//! that were recorded. The answers of strategies are inputs too, so that no module is needed.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use windvane_engine::Engine;
use windvane_model::codec::{Record, RecordBody, RecordedEffect, RecordedInput};
use windvane_model::record::Block;
use windvane_model::{Notice, StrategyId, Time};

use crate::engine_loop::{EngineLoop, NoticesOnly};
use crate::paper::{Otherwise, Paper};

/// The first record that came out otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The block that it is in.
    pub block: u64,
    /// Its sequence.
    pub record: u64,
    /// As it was recorded; `None` where there is none.
    pub recorded: Option<String>,
    /// As it came out; `None` where there is none.
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

/// Compares what an engine records with what was recorded, and on paper what the simulated venue
/// says with what was heard of it.
#[derive(Debug, Default)]
pub struct Replay {
    pairs: Pairs,
    /// What strategies saved after the head, by their place.
    pub states: BTreeMap<StrategyId, Vec<u8>>,
    /// The simulated account.
    pub paper: Option<Paper>,
    /// The first record that came out otherwise.
    pub difference: Option<Difference>,
    /// The first block whose market records are lost. From there on nothing can be compared.
    pub lost: Option<u64>,
    /// What the engine told people, where that is kept.
    notices: Option<Vec<Notice>>,
}

impl Replay {
    /// With the simulated account of a paper run.
    pub fn of(paper: Option<Paper>) -> Self {
        Self {
            paper,
            ..Self::default()
        }
    }

    /// The same, and [`notices`](Self::notices) gives what the engine told people.
    #[must_use]
    pub fn keeping_notices(mut self) -> Self {
        self.notices = Some(Vec::new());
        self
    }

    /// What the engine told people since the last call.
    pub fn notices(&mut self) -> Vec<Notice> {
        self.notices
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Takes away what the engine wants done, and keeps what it tells people.
    fn drain(&mut self, core: &mut EngineLoop, now: Time) {
        let notices = &mut self.notices;
        let mut keep = NoticesOnly(|_: &Engine, notice| {
            if let Some(notices) = notices {
                notices.push(notice);
            }
        });
        core.drain(now, &mut keep);
    }

    /// The order records of a block, from the first one on whose market records are lost.
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
                    self.note_saved(&next);
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

    fn note_saved(&mut self, input: &RecordedInput) {
        if let RecordedInput::Saved {
            strategy,
            state: Some(state),
            ..
        } = input
        {
            self.states.insert(*strategy, state.clone());
        }
    }

    /// Feeds the inputs of a block and takes away what follows from them.
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
                self.note_saved(&input);
                self.drain(core, record.time);
            }
        }
        // A block that its driver ended; others end by themselves, at an intent or when full.
        if core.engine().chain().next_block == block.number {
            core.seal();
        }
        self.pairs.recorded(block);
        self.pairs.made(std::iter::from_fn(|| core.poll_block()));
        let difference = self.pairs.difference();
        self.difference = self.difference.take().or(difference);
    }
}

/// On paper: where the simulated venue says something else than was heard of it. `place` is the
/// block and the record.
pub fn compare_paper(
    paper: &mut Option<Paper>,
    place: (u64, u64),
    record: &Record,
) -> Option<Difference> {
    let Otherwise(said) = paper.as_mut()?.replay(record).err()?;
    Some(Difference {
        block: place.0,
        record: place.1,
        recorded: Some(format!("{record:?}")),
        made: said.map(|said| format!("{said:?}")),
    })
}

/// Recorded blocks and those made again, one against the other in their order. One input may end
/// several blocks, so that some are made before the recorded ones are read. What is left at the
/// end was kept from the disk by a kill.
#[derive(Debug, Default)]
pub struct Pairs {
    recorded: VecDeque<Block>,
    made: VecDeque<Block>,
    /// After a difference all hashes of the chain differ: only the records are compared.
    records_alone: bool,
}

impl Pairs {
    /// Blocks are compared as a chain, or by their records alone.
    #[must_use]
    pub fn compared(as_chain: bool) -> Self {
        Self {
            records_alone: !as_chain,
            ..Self::default()
        }
    }

    /// A block of the journal.
    pub fn recorded(&mut self, block: Block) {
        self.recorded.push_back(block);
    }

    /// Blocks that the engine made again.
    pub fn made(&mut self, blocks: impl IntoIterator<Item = Block>) {
        self.made.extend(blocks);
    }

    /// The first difference between those that are there on both sides, which are taken away.
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
    let (recorded_words, made_words) = (read(recorded), read(made));
    let most = recorded_words.len().max(made_words.len());
    let place = (0..most).find(|at| recorded_words.get(*at) != made_words.get(*at));
    let place = place.unwrap_or_default();
    Difference {
        block: recorded.number,
        record: recorded.first_record + place as u64,
        recorded: recorded_words.get(place).cloned(),
        made: made_words.get(place).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use windvane_model::live::{LiveConfig, LiveInput, OnStart, OnStop};
    use windvane_model::record::Chain;
    use windvane_model::{Input, Surface};

    use super::*;
    use windvane_model::config::EngineConfig;

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
                copy_ms: 6_000,
                on_start: OnStart::Adopt,
                on_stop: OnStop::Cancel,
                multi_assets: false,
                fee_estimate_ppm: 400,
                watchdog: false,
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
        let mut core = EngineLoop::new(Engine::restore(&head).unwrap());
        let mut replay = Replay::default();
        for block in blocks {
            replay.block(&mut core, block);
        }
        assert_eq!(replay.difference, None);
        assert_eq!(core.engine().chain(), end);
    }

    #[test]
    fn blocks_that_were_made_ahead_wait_for_the_recorded_ones() {
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
    fn a_journal_of_another_life_is_found_out() {
        let (head, blocks, _) = lived();
        let mut core = EngineLoop::new(Engine::restore(&head).unwrap());
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
