//! The journal's disk, in memory: blocks become durable after a while, in their order; a kill keeps
//! what was durable, some of what was on its way, and by a fault less than that. What is durable are
//! the order parts of blocks: their market parts follow seconds later, and a kill loses those of the
//! last moments, a loss of power any since their last sync.
//!
//! Not simulated: sled itself. Its verdicts on what it finds are taken over as `windvane-journal`
//! gives them: what lies behind the mark is not believed.

use std::collections::VecDeque;

use windvane_client_core::bans::WrittenBan;
use windvane_model::latches::Latches;
use windvane_model::record::{Block, Chain};
use windvane_session::recovery::Remembered;

use crate::random::Random;

/// The journal's verdict on one that ends before its mark.
pub const ROLLED_BACK: &str = "rolled back";

/// A segment: its head and the blocks that are durable.
#[derive(Clone, Debug)]
struct Segment {
    head: Vec<u8>,
    base: Chain,
    blocks: Vec<Block>,
    /// Market parts of so many blocks are durable too.
    synced: usize,
}

/// Market parts are synced once so many blocks wait for it: some two seconds.
const UNSYNCED_BLOCKS: usize = 20;

impl Segment {
    const fn new(head: Vec<u8>, base: Chain) -> Self {
        Self {
            head,
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

    /// Loses market parts that were not durable, as chance has it.
    fn lose_market(&mut self, random: &mut Random) {
        let (synced, len) = (self.synced.min(self.blocks.len()), self.blocks.len());
        // A kill of the process alone, or of the machine.
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

/// What is on its way to the disk.
#[derive(Clone, Debug)]
enum Pending {
    Block(Block),
    Head(Vec<u8>, Chain),
}

/// What became durable.
#[derive(Clone, Debug)]
pub enum Written {
    /// A block.
    Block(Block),
    /// A new segment, which holds everything up to here.
    Head(Chain),
}

/// What a kill does to what is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Nothing.
    None,
    /// What was being written is cut inside. The journal gives back the whole blocks before it and
    /// says so; that it finds the cut is tested on real folders, in `windvane-journal`.
    Torn,
    /// Durable blocks are gone.
    RolledBack,
}

/// The disk.
#[derive(Debug)]
pub struct Disk {
    last: Option<Segment>,
    pending: VecDeque<Pending>,
    /// Where the journal stood when something became durable last.
    mark: Chain,
    verdict: &'static str,
    /// The last epoch that was reserved.
    pub epoch: u64,
    /// What is latched, by the file beside the journal.
    pub latches: Latches,
    /// The end of each ban by the wall clock, milliseconds, by the file beside the journal.
    pub bans: Vec<WrittenBan>,
    /// It takes nothing until a new segment is begun.
    pub failed: bool,
}

impl Disk {
    /// An empty disk.
    #[expect(
        clippy::new_without_default,
        reason = "an empty disk is said, not meant"
    )]
    pub fn new() -> Self {
        Self {
            last: None,
            pending: VecDeque::new(),
            mark: Chain::default(),
            verdict: "fresh",
            epoch: 0,
            latches: Latches::default(),
            bans: Vec::new(),
            failed: false,
        }
    }

    /// A block is on its way.
    pub fn append(&mut self, block: Block) {
        if !self.failed {
            self.pending.push_back(Pending::Block(block));
        }
    }

    /// Whether a head at this place follows what is on its way, or stands for what was lost.
    pub fn goes_on_at(&self, base: Chain) -> bool {
        let last = self.pending.back();
        let at = match last {
            Some(Pending::Block(block)) => end_of(block),
            Some(Pending::Head(_, at)) => *at,
            None => self.mark,
        };
        self.failed || at == base
    }

    /// A new segment is on its way: it holds whatever was lost before.
    pub fn roll(&mut self, head: Vec<u8>, base: Chain) {
        if self.failed {
            self.pending.clear();
        }
        self.failed = false;
        self.pending.push_back(Pending::Head(head, base));
    }

    /// The first segment of a start, durable at once: nothing goes on before it is.
    pub fn begin(&mut self, head: Vec<u8>, base: Chain) {
        self.pending.clear();
        self.failed = false;
        self.mark = base;
        self.last = Some(Segment::new(head, base));
    }

    /// Whether anything is on its way.
    pub fn is_busy(&self) -> bool {
        !self.pending.is_empty()
    }

    /// How many blocks are on their way.
    pub fn waiting(&self) -> usize {
        let is_block = |one: &&Pending| matches!(one, Pending::Block(_));
        self.pending.iter().filter(is_block).count()
    }

    /// The process ended in order: it waited for what was on its way.
    pub fn close(&mut self) {
        while self.sync().is_some() {}
        self.verdict = "clean";
    }

    /// The oldest thing on its way becomes durable.
    pub fn sync(&mut self) -> Option<Written> {
        match self.pending.pop_front()? {
            Pending::Block(block) => {
                self.mark = end_of(&block);
                if let Some(segment) = &mut self.last {
                    segment.push(block.clone());
                }
                Some(Written::Block(block))
            }
            Pending::Head(head, base) => {
                self.mark = base;
                self.last = Some(Segment::new(head, base));
                Some(Written::Head(base))
            }
        }
    }

    /// The process was killed: what was on its way reached the disk as far as chance has it.
    pub fn crash(&mut self, damage: Damage, random: &mut Random) {
        let kept = random.below(self.pending.len() as u64 + 1);
        for _ in 0..kept {
            // The kernel wrote it, though nobody heard of it: no mark was set.
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

    /// The last record that is there.
    pub fn last_record(&self) -> u64 {
        self.found().last_record
    }

    /// What it was found to be: the words of the journal's verdict.
    pub const fn verdict(&self) -> &'static str {
        self.verdict
    }

    /// What a start is given.
    pub fn recover(&self) -> Remembered<Vec<Block>> {
        let found = self.found();
        let behind = found.last_record < self.mark.last_record;
        let segment = self.last.as_ref();
        Remembered {
            is_authority: !behind,
            head: segment
                .map(|segment| segment.head.clone())
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

    /// Reserves an epoch, durably.
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
