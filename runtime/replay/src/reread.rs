//! The inputs of one segment in their order, with a look at the one that comes next, and the
//! blocks that they must make again.

use std::collections::VecDeque;

use windvane_engine::Engine;
use windvane_journal::Blocks;
use windvane_model::Time;
use windvane_model::codec::{RecordBody, RecordedInput};
use windvane_model::live::LiveInput;

use super::segments::ReplayError;
use windvane_session::paper::Paper;
use windvane_session::recovery::{Difference, Pairs, compare_paper};

/// An input with its place.
#[derive(Clone, Debug)]
pub struct Next {
    /// Number of its block.
    pub block: u64,
    /// Its sequence.
    pub record: u64,
    /// When it was handled.
    pub time: Time,
    /// The input.
    pub input: RecordedInput,
}

/// A segment being read.
#[derive(Debug)]
pub struct Reading {
    blocks: Blocks,
    ready: VecDeque<Next>,
    pairs: Pairs,
    paper: Option<Paper>,
    last_block: Option<u64>,
    counts: (u64, u64),
    /// The block where reading ended early: its market records are lost.
    pub lost: Option<u64>,
    /// The first record that came out otherwise.
    pub difference: Option<Difference>,
}

impl Reading {
    /// Nothing read yet; `paper` is the simulated account of a paper run. Where a program with other
    /// engine rules wrote the segment, blocks are compared one by one, not as a chain.
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

    /// Blocks and records so far.
    pub const fn counts(&self) -> (u64, u64) {
        self.counts
    }

    /// Reads one more block; `false` at the end.
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
                self.ready.push_back(Next {
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

    /// The next input, which stays.
    pub fn peek(&mut self) -> Option<Next> {
        while self.ready.is_empty() {
            if !self.load() {
                return None;
            }
        }
        self.ready.front().cloned()
    }

    /// Takes the next input.
    pub fn pop(&mut self) -> Option<Next> {
        self.pop_if(|_| true)
    }

    /// Takes the next input if it is such a one.
    pub fn pop_if(&mut self, is_it: impl FnOnce(&RecordedInput) -> bool) -> Option<Next> {
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

    /// Whether a process began with this segment: its first inputs say so.
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

    /// Ends the last block of the segment, if its driver did.
    pub fn seal_last(&self, engine: &mut Engine) {
        if self.last_block == Some(engine.chain().next_block) {
            engine.seal();
        }
    }

    /// Holds the blocks that were made against those that were recorded.
    pub fn compare(&mut self, engine: &mut Engine) {
        self.pairs.made(std::iter::from_fn(|| engine.poll_block()));
        let difference = self.pairs.difference();
        self.difference = self.difference.take().or(difference);
    }
}

/// Ends the block that its driver ended before this one began; others end by themselves, at an
/// intent or when full.
pub fn seal_before(block: u64, engine: &mut Engine) {
    if engine.chain().next_block < block {
        engine.seal();
    }
}
