//! The journal's disk, in memory. Blocks become durable after a while, in their order. A kill keeps
//! the durable blocks and some of those in flight; with a fault it keeps fewer. Only the order
//! parts of blocks are durable in this way: the market parts follow seconds later. A kill loses the
//! market parts of the last moments. A power loss may lose any of them since their last sync.
//!
//! sled itself is not simulated. The simulation uses the verdicts that `windvane-journal` gives:
//! records after the mark are not trusted.

use std::collections::VecDeque;

use windvane_client_core::bans::WrittenBan;
use windvane_model::kill_switch::StoredKillSwitches;
use windvane_model::record::{Block, Chain};
use windvane_session::recovery::JournalContent;

use crate::random::Random;

/// The journal's verdict if it ends before its mark.
pub const ROLLED_BACK: &str = "rolled back";

/// A segment: its checkpoint and its durable blocks.
#[derive(Clone, Debug)]
struct Segment {
    checkpoint: Vec<u8>,
    base: Chain,
    blocks: Vec<Block>,
    /// Number of blocks whose market parts are durable too.
    synced: usize,
}

/// Market parts are synced once this many blocks wait for it, about two seconds.
const UNSYNCED_BLOCKS: usize = 20;

impl Segment {
    const fn new(checkpoint: Vec<u8>, base: Chain) -> Self {
        Self {
            checkpoint,
            base,
            blocks: Vec::new(),
            synced: 0,
        }
    }

    fn push(&mut self, block: Block) {
        if self.blocks.len() - self.synced >= UNSYNCED_BLOCKS {
            self.synced = self.blocks.len();
        }
        self.blocks.push(block);
    }

    /// Loses random market parts that were not durable.
    fn lose_market(&mut self, random: &mut Random) {
        let (synced, len) = (self.synced.min(self.blocks.len()), self.blocks.len());
        // Either only the process is killed, or the machine loses power.
        let first = if random.below(2) == 0 {
            len.saturating_sub(2).max(synced)
        } else {
            synced + random.below((len - synced) as u64 + 1) as usize
        };
        // The system writes pages in any order.
        let keeps_later = random.below(4) == 0;
        for block in &mut self.blocks[first..] {
            let is_kept = keeps_later && random.below(2) == 0;
            if block.market_len > 0 && !is_kept {
                block.market = None;
            }
        }
    }
}

/// Data in flight to the disk.
#[derive(Clone, Debug)]
enum Pending {
    Block(Block),
    Checkpoint(Vec<u8>, Chain),
}

/// Data that became durable.
#[derive(Clone, Debug)]
pub enum Written {
    /// A block.
    Block(Block),
    /// A new segment, which holds everything up to this point.
    Checkpoint(Chain),
}

/// The effect of a kill on durable data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// No damage.
    None,
    /// The block that was being written is cut. The journal returns the whole blocks before it and
    /// reports the cut. `windvane-journal` tests on real folders that it finds the cut.
    Torn,
    /// Durable blocks are lost.
    RolledBack,
}

/// The disk.
#[derive(Debug)]
pub struct Disk {
    last: Option<Segment>,
    pending: VecDeque<Pending>,
    /// The position of the journal when data became durable last.
    mark: Chain,
    verdict: &'static str,
    /// The last epoch that was reserved.
    pub epoch: u64,
    /// The kill switches, from the file beside the journal.
    pub kill_switches: StoredKillSwitches,
    /// The end of each ban by the wall clock, milliseconds, from the file beside the journal.
    pub bans: Vec<WrittenBan>,
    /// The disk accepts nothing until a new segment begins.
    pub failed: bool,
}

impl Disk {
    /// An empty disk.
    #[expect(
        clippy::new_without_default,
        reason = "a test must ask for an empty disk explicitly"
    )]
    pub fn new() -> Self {
        Self {
            last: None,
            pending: VecDeque::new(),
            mark: Chain::default(),
            verdict: "fresh",
            epoch: 0,
            kill_switches: StoredKillSwitches::default(),
            bans: Vec::new(),
            failed: false,
        }
    }

    /// Adds a block to the data in flight.
    pub fn append(&mut self, block: Block) {
        if !self.failed {
            self.pending.push_back(Pending::Block(block));
        }
    }

    /// Whether a checkpoint at this position follows the data in flight, or replaces what was lost.
    pub fn goes_on_at(&self, base: Chain) -> bool {
        let last = self.pending.back();
        let at = match last {
            Some(Pending::Block(block)) => end_of(block),
            Some(Pending::Checkpoint(_, at)) => *at,
            None => self.mark,
        };
        self.failed || at == base
    }

    /// Begins a new segment; its checkpoint replaces everything that was lost before.
    pub fn roll(&mut self, checkpoint: Vec<u8>, base: Chain) {
        if self.failed {
            self.pending.clear();
        }
        self.failed = false;
        self.pending
            .push_back(Pending::Checkpoint(checkpoint, base));
    }

    /// Writes the first segment of a start. It is durable at once, because the start waits for it.
    pub fn begin(&mut self, checkpoint: Vec<u8>, base: Chain) {
        self.pending.clear();
        self.failed = false;
        self.mark = base;
        self.last = Some(Segment::new(checkpoint, base));
    }

    /// Whether data is in flight.
    pub fn is_busy(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Number of blocks in flight.
    pub fn waiting(&self) -> usize {
        let is_block = |one: &&Pending| matches!(one, Pending::Block(_));
        self.pending.iter().filter(is_block).count()
    }

    /// The process ended in order: it waited for the data in flight.
    pub fn close(&mut self) {
        while self.sync().is_some() {}
        self.verdict = "clean";
    }

    /// Makes the oldest data in flight durable.
    pub fn sync(&mut self) -> Option<Written> {
        match self.pending.pop_front()? {
            Pending::Block(block) => {
                self.mark = end_of(&block);
                if let Some(segment) = &mut self.last {
                    segment.push(block.clone());
                }
                Some(Written::Block(block))
            }
            Pending::Checkpoint(checkpoint, base) => {
                self.mark = base;
                self.last = Some(Segment::new(checkpoint, base));
                Some(Written::Checkpoint(base))
            }
        }
    }

    /// The process was killed: a random part of the data in flight reached the disk.
    pub fn crash(&mut self, damage: Damage, random: &mut Random) {
        let kept = random.below(self.pending.len() as u64 + 1);
        for _ in 0..kept {
            // The kernel wrote it, but no process was notified, so that no mark was set.
            let mark = self.mark;
            self.sync();
            self.mark = mark;
        }
        self.pending.clear();
        if let Some(segment) = &mut self.last {
            segment.lose_market(random);
        }
        self.failed = false;
        self.verdict = "clean";
        match damage {
            Damage::None => {}
            Damage::Torn => self.verdict = "torn",
            Damage::RolledBack => {
                if let Some(segment) = &mut self.last {
                    let most = segment.blocks.len() as u64;
                    let lost = random.below(most + 1).min(1 + random.below(50));
                    segment.blocks.truncate((most - lost) as usize);
                }
            }
        }
        if self.found().last_record < self.mark.last_record {
            self.verdict = ROLLED_BACK;
        }
    }

    fn found(&self) -> Chain {
        let Some(segment) = &self.last else {
            return Chain::default();
        };
        segment.blocks.last().map_or(segment.base, end_of)
    }

    /// The number of the last record on the disk.
    pub fn last_record(&self) -> u64 {
        self.found().last_record
    }

    /// The journal's verdict on its last state.
    pub const fn verdict(&self) -> &'static str {
        self.verdict
    }

    /// The data that a start gets.
    pub fn recover(&self) -> JournalContent<Vec<Block>> {
        let found = self.found();
        let behind = found.last_record < self.mark.last_record;
        let segment = self.last.as_ref();
        JournalContent {
            is_authority: !behind,
            checkpoint: segment
                .map(|segment| segment.checkpoint.clone())
                .unwrap_or_default(),
            blocks: segment
                .map(|segment| segment.blocks.clone())
                .unwrap_or_default(),
            base: segment.map(|segment| segment.base).unwrap_or_default(),
            next: if behind { self.mark } else { found },
        }
    }

    /// The epoch that was reserved last.
    pub fn last_epoch(&self) -> Option<u64> {
        (self.epoch > 0).then_some(self.epoch)
    }

    /// Reserves an epoch durably.
    pub fn reserve_epoch(&mut self, unix_s: u64) -> u64 {
        self.epoch = (self.epoch + 1).max(unix_s);
        self.epoch
    }
}

const fn end_of(block: &Block) -> Chain {
    Chain {
        next_block: block.number + 1,
        last_record: block.last_record,
        hash: block.hash,
    }
}
