//! Reads the inputs of one segment in order, with a view of the next one, and compares the blocks
//! that they produce with the recorded blocks.

use std::collections::VecDeque;

use windvane_engine::Engine;
use windvane_journal::Blocks;
use windvane_model::Time;
use windvane_model::codec::{RecordBody, RecordedInput};
use windvane_model::live::LiveInput;

use super::segments::ReplayError;
use windvane_session::paper::Paper;
use windvane_session::recovery::{Difference, Pairs, compare_paper};

/// An input with its position.
#[derive(Clone, Debug)]
pub struct NextInput {
    /// The number of its block.
    pub block: u64,
    /// The sequence number of its record.
    pub record: u64,
    /// When it was handled.
    pub time: Time,
    /// The input.
    pub input: RecordedInput,
}

/// The reader of a segment.
#[derive(Debug)]
pub struct SegmentReader {
    blocks: Blocks,
    ready: VecDeque<NextInput>,
    pairs: Pairs,
    paper: Option<Paper>,
    last_block: Option<u64>,
    counts: (u64, u64),
    /// The block at which reading stopped early, because its market records are missing.
    pub lost: Option<u64>,
    /// The first record that differs from the recorded one.
    pub difference: Option<Difference>,
}

impl SegmentReader {
    /// A reader at the start of the segment. `paper` is the simulated account of a paper run. If a
    /// program with other engine rules wrote the segment, blocks are compared one by one, not as a
    /// chain.
    ///
    /// # Errors
    /// The simulated account cannot be read.
    pub fn new(
        segment: u32,
        blocks: Blocks,
        paper: Option<&[u8]>,
        same_rules: bool,
    ) -> Result<Self, ReplayError> {
        let read = |bytes| Paper::from_bytes(bytes).ok_or(ReplayError::Paper { segment });
        Ok(Self {
            blocks,
            ready: VecDeque::new(),
            pairs: Pairs::compared(same_rules),
            paper: paper.map(read).transpose()?,
            last_block: None,
            counts: (0, 0),
            lost: None,
            difference: None,
        })
    }

    /// The number of blocks and of records so far.
    pub const fn counts(&self) -> (u64, u64) {
        self.counts
    }

    /// Reads one more block. Returns `false` at the end.
    fn load(&mut self) -> bool {
        if self.lost.is_some() {
            return false;
        }
        let Some(block) = self.blocks.next() else {
            return false;
        };
        if block.lacks_market() {
            self.lost = Some(block.number);
            return false;
        }
        self.counts.0 += 1;
        self.counts.1 += block.last_record + 1 - block.first_record;
        for (sequence, record) in block.records() {
            let Ok(record) = record else { break };
            let otherwise = compare_paper(&mut self.paper, (block.number, sequence), &record);
            self.difference = self.difference.take().or(otherwise);
            if let RecordBody::Input(input) = record.body {
                self.ready.push_back(NextInput {
                    block: block.number,
                    record: sequence,
                    time: record.time,
                    input,
                });
            }
        }
        self.last_block = Some(block.number);
        self.pairs.recorded(block);
        true
    }

    /// The next input, without taking it.
    pub fn peek(&mut self) -> Option<NextInput> {
        while self.ready.is_empty() {
            if !self.load() {
                return None;
            }
        }
        self.ready.front().cloned()
    }

    /// Whether there is a next input that `is_it` accepts.
    pub fn next_is(&mut self, is_it: impl FnOnce(&RecordedInput) -> bool) -> bool {
        while self.ready.is_empty() {
            if !self.load() {
                return false;
            }
        }
        self.ready.front().is_some_and(|next| is_it(&next.input))
    }

    /// Takes the next input.
    pub fn pop(&mut self) -> Option<NextInput> {
        self.pop_if(|_| true)
    }

    /// Takes the next input if `is_it` accepts it.
    pub fn pop_if(&mut self, is_it: impl FnOnce(&RecordedInput) -> bool) -> Option<NextInput> {
        while self.ready.is_empty() {
            if !self.load() {
                return None;
            }
        }
        let first = self.ready.front()?;
        if is_it(&first.input) {
            self.ready.pop_front()
        } else {
            None
        }
    }

    /// Whether a process started with this segment. Its first inputs show that.
    pub fn begins_a_process(&mut self) -> bool {
        let mut at = 0;
        loop {
            while at >= self.ready.len() {
                if !self.load() {
                    return false;
                }
            }
            match &self.ready[at].input {
                RecordedInput::Live(LiveInput::Begin) => return true,
                RecordedInput::Answer { .. }
                | RecordedInput::Fault { .. }
                | RecordedInput::Command(_)
                | RecordedInput::Steer { .. } => at += 1,
                _ => return false,
            }
        }
    }

    /// Seals the last block of the segment, if the recorded run did.
    pub fn seal_last(&self, engine: &mut Engine) {
        if self.last_block == Some(engine.chain().next_block) {
            engine.seal();
        }
    }

    /// Compares the produced blocks with the recorded ones.
    pub fn compare(&mut self, engine: &mut Engine) {
        self.pairs.made(std::iter::from_fn(|| engine.poll_block()));
        let difference = self.pairs.difference();
        self.difference = self.difference.take().or(difference);
    }
}

/// Seals (ends) the current block if the recorded run ended it because of time. The engine itself
/// ends blocks after an intent and full blocks.
pub fn seal_before(block: u64, engine: &mut Engine) {
    if engine.chain().next_block < block {
        engine.seal();
    }
}
