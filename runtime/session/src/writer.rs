//! Decides in which order the journal is written and when its segments end. Blocks wait here while
//! the journal has no room, so that the event loop never waits for a disk.

use std::collections::VecDeque;

use windvane_model::record::Block;
use windvane_model::{Time, constant, planted};

/// Records become durable within this time, even without orders.
pub const SEAL_EVERY_MS: i64 = 100;
/// A segment ends at this many bytes of records, market data included. A small segment keeps
/// restarts short, and packing it needs little memory.
pub const SEGMENT_BYTES: u64 = 8 << 20;
/// A segment ends at this many blocks. sled needs some hundred bytes for each block in addition to
/// its content.
pub const SEGMENT_BLOCKS: u64 = 16_384;
/// A segment ends at this age, so that the saved states in its checkpoint are not too old.
pub const SEGMENT_AGE_MS: i64 = 300_000;
/// Factor for the size limits when a recording is played. A segment's end depends on wall time and
/// shows in the fingerprint, so it should be rare.
const PLAYED: u64 = 8;
/// A write that takes longer stops new exposure and heartbeats:
/// [`JournalEvent::Stalled`](crate::JournalEvent).
pub const JOURNAL_STALL_MS: i64 = 250;
/// Minimum time between two attempts to begin a segment, for example after a disk failure.
pub const ROLL_AGAIN_MS: i64 = 1_000;
/// See [`SEGMENT_BLOCKS`].
fn segment_blocks() -> u64 {
    constant!(SegmentBlocks, SEGMENT_BLOCKS, changed: 4)
}

/// Maximum number of blocks that the journal may hold before they are durable. More blocks wait
/// here.
pub const BLOCKS_UNDER_WAY: usize = 4_000;

/// A block that is not durable yet.
#[derive(Debug)]
struct Recorded {
    last_record: u64,
    at: Time,
    /// Arrival of the public frame that caused the block.
    since: Option<Time>,
}

/// How far the journal on disk is behind the records of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurabilityLag {
    /// The last record that is durable.
    pub durable: u64,
    /// Age of the oldest record that is not durable, in nanoseconds.
    pub behind_ns: i64,
}

/// The write order of the journal.
#[derive(Debug)]
pub(crate) struct Writer {
    /// Largest number of blocks in `under_way`.
    room: usize,
    /// Blocks that the journal did not receive yet.
    backlog: VecDeque<Block>,
    /// Last record of each block that the journal received and that is not durable yet.
    under_way: VecDeque<u64>,
    /// All blocks that are not durable yet.
    recorded: VecDeque<Recorded>,
    durable: u64,
    /// Size of the present segment: bytes and blocks, given to the journal or not.
    bytes: u64,
    blocks: u64,
    /// Size of its checkpoint; 0 for the first segment.
    checkpoint_bytes: u64,
    sealed: Time,
    rolled: Time,
    is_rolling: bool,
    /// The next segment must begin as soon as possible.
    is_wanted: bool,
    /// No segment is requested before this time.
    again: Time,
    has_failed: bool,
    times: u64,
}

impl Writer {
    /// Whether a segment begins: its checkpoint was made, and the journal has not answered.
    pub(crate) const fn is_rolling(&self) -> bool {
        self.is_rolling
    }

    /// A segment began at `now`. `room` is the maximum number of blocks that are not durable in the
    /// journal.
    pub(crate) fn new(now: Time, is_played: bool, room: usize) -> Self {
        Self {
            room,
            backlog: VecDeque::new(),
            under_way: VecDeque::new(),
            recorded: VecDeque::new(),
            durable: 0,
            bytes: 0,
            blocks: 0,
            checkpoint_bytes: 0,
            sealed: now,
            rolled: now,
            is_rolling: false,
            is_wanted: false,
            again: now,
            has_failed: false,
            times: if is_played { PLAYED } else { 1 },
        }
    }

    /// Queues a block. `since` is the arrival of the public frame that caused it.
    pub(crate) fn push(&mut self, now: Time, block: Block, since: Option<Time>) {
        self.recorded.push_back(Recorded {
            last_record: block.last_record,
            at: now,
            since,
        });
        self.bytes += block.len() as u64;
        self.blocks += 1;
        self.backlog.push_back(block);
    }

    /// The next block, if the journal has room for it. A journal that failed also gets blocks, and
    /// refuses them: the checkpoint of the next segment contains their content.
    pub(crate) fn next_block(&mut self) -> Option<Block> {
        if self.has_failed && !self.is_rolling {
            return self.backlog.pop_front();
        }
        if self.under_way.len() >= self.room && !planted!(BackpressureIgnored) {
            return None;
        }
        let block = self.backlog.pop_front()?;
        self.under_way.push_back(block.last_record);
        Some(block)
    }

    /// Whether blocks wait because the journal has no room.
    pub(crate) fn is_behind(&self) -> bool {
        !self.backlog.is_empty() && self.under_way.len() >= self.room
    }

    /// Everything up to this record is durable. Returns the arrival of the first public frame that
    /// waited for it.
    pub(crate) fn settle(&mut self, record: u64) -> Option<Time> {
        let mut first = None;
        self.durable = self.durable.max(record);
        while let Some(block) = self.recorded.pop_front_if(|one| one.last_record <= record) {
            first = first.or(block.since);
        }
        while self
            .under_way
            .pop_front_if(|last| *last <= record)
            .is_some()
        {}
        first
    }

    /// When the newest block that is not durable yet was recorded.
    pub(crate) fn newest(&self) -> Option<Time> {
        self.recorded.back().map(|block| block.at)
    }

    pub(crate) fn durability_lag(&self, now: Time) -> DurabilityLag {
        let oldest = self.recorded.front();
        DurabilityLag {
            durable: self.durable,
            behind_ns: oldest.map_or(0, |block| now.0.saturating_sub(block.at.0).max(0)),
        }
    }

    /// When the open block must end.
    pub(crate) const fn seal_at(&self) -> Time {
        self.sealed.plus_ms(SEAL_EVERY_MS)
    }

    pub(crate) const fn seal(&mut self, now: Time) {
        self.sealed = now;
    }

    /// The journal failed to write.
    pub(crate) fn fail(&mut self, now: Time) {
        if !self.has_failed && !self.is_rolling {
            // At most one segment a second.
            self.again = self.rolled.plus_ms(ROLL_AGAIN_MS).max(now);
        }
        (self.has_failed, self.is_rolling) = (true, false);
        // None of these blocks will become durable.
        self.under_way.clear();
    }

    pub(crate) const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// The next segment must begin as soon as possible.
    pub(crate) const fn want_roll(&mut self) {
        self.is_wanted = true;
    }

    /// When the segment must end; `None` while a new one is being started or the journal is full.
    pub(crate) fn roll_at(&self) -> Option<Time> {
        if self.is_rolling {
            return None;
        }
        if self.has_failed {
            return Some(self.again);
        }
        let is_long = self.bytes >= self.segment_bytes()
            || self.blocks >= segment_blocks() * self.times
            || self.is_wanted;
        let at = if is_long {
            self.again
        } else {
            self.rolled.plus_ms(SEGMENT_AGE_MS).max(self.again)
        };
        (!self.is_behind()).then_some(at)
    }

    /// The size at which the segment ends. A checkpoint with large states must not follow fewer bytes
    /// of records than it has itself, or the journal would consist of checkpoints.
    const fn segment_bytes(&self) -> u64 {
        let least = SEGMENT_BYTES * self.times;
        if self.checkpoint_bytes > least {
            self.checkpoint_bytes
        } else {
            least
        }
    }

    /// Whether the segment must end now.
    pub(crate) fn is_roll_due(&self, now: Time) -> bool {
        self.roll_at().is_some_and(|at| at <= now)
    }

    /// Whether a checkpoint may follow the recorded blocks. The journal has room for all of them,
    /// or it failed and the checkpoint replaces them.
    pub(crate) fn may_roll(&self) -> bool {
        self.has_failed || self.under_way.len() + self.backlog.len() < self.room
    }

    /// A new segment is requested, with a checkpoint of this size. All blocks before the call,
    /// including those with the states that the checkpoint contains, belong to the old segment.
    pub(crate) fn roll(&mut self, now: Time, checkpoint_bytes: usize) {
        if planted!(RollLosesBlock) {
            self.backlog.clear();
        }
        (self.is_rolling, self.is_wanted, self.rolled) = (true, false, now);
        self.again = now.plus_ms(ROLL_AGAIN_MS);
        (self.bytes, self.blocks) = (0, 0);
        self.checkpoint_bytes = checkpoint_bytes as u64;
    }

    /// The new segment did not begin; it is requested again later.
    pub(crate) const fn not_rolled(&mut self, now: Time) {
        (self.is_rolling, self.is_wanted) = (false, true);
        self.again = now.plus_ms(ROLL_AGAIN_MS);
    }

    /// A new segment began. Returns whether the journal had failed before.
    pub(crate) const fn rolled(&mut self, now: Time) -> bool {
        (self.is_rolling, self.rolled, self.again) = (false, now, now);
        std::mem::replace(&mut self.has_failed, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u64) -> Block {
        Block {
            number,
            first_record: number,
            last_record: number,
            orders: vec![0; 100],
            ..Block::default()
        }
    }

    fn writer(blocks: usize) -> Writer {
        let mut writer = Writer::new(Time(0), false, BLOCKS_UNDER_WAY);
        for number in 1..=blocks as u64 {
            writer.push(Time(0), block(number), None);
        }
        writer
    }

    #[test]
    fn blocks_wait_while_the_journal_has_no_room() {
        let mut writer = writer(BLOCKS_UNDER_WAY + 2);
        let given = std::iter::from_fn(|| writer.next_block()).count();
        assert_eq!(given, BLOCKS_UNDER_WAY);
        assert!(writer.is_behind());
        assert!(
            !writer.may_roll(),
            "the checkpoint must come after its blocks"
        );
        writer.settle(1);
        assert_eq!(writer.next_block().map(|block| block.number), Some(4_001));
        writer.settle(3);
        assert_eq!(writer.next_block().map(|block| block.number), Some(4_002));
        assert!(writer.next_block().is_none());
        assert!(!writer.is_behind());
    }

    #[test]
    fn a_segment_ends_by_blocks_age_or_on_request() {
        let now = Time::from_millis(1);
        let mut long = writer(0);
        for number in 1.. {
            assert!(!long.is_roll_due(now), "after {number} blocks");
            long.push(now, block(number), None);
            assert!(long.next_block().is_some());
            long.settle(number);
            if number == SEGMENT_BLOCKS {
                break;
            }
        }
        assert!(long.is_roll_due(now));
        long.roll(now, 100);
        assert!(!long.is_roll_due(now));
        long.rolled(now);
        assert!(!long.is_roll_due(now));
        assert!(long.is_roll_due(now.plus_ms(SEGMENT_AGE_MS)));
        long.want_roll();
        assert!(long.is_roll_due(now));
    }

    #[test]
    fn blocks_before_a_checkpoint_do_not_fill_the_next_segment() {
        let now = Time::from_millis(1);
        let mut writer = writer(0);
        let large = |number| Block {
            orders: vec![0; SEGMENT_BYTES as usize],
            ..block(number)
        };
        writer.push(now, large(1), None);
        assert!(writer.is_roll_due(now));
        // The states of the checkpoint are recorded in the old segment.
        writer.push(now, large(2), None);
        writer.roll(now, 100);
        while writer.next_block().is_some() {}
        writer.rolled(now);
        assert!(!writer.is_roll_due(now));
        writer.push(now, large(3), None);
        assert!(writer.is_roll_due(now));
    }

    #[test]
    fn a_segment_has_as_many_bytes_as_its_checkpoint() {
        let now = Time::from_millis(1);
        let mut writer = writer(0);
        writer.roll(now, 3 * SEGMENT_BYTES as usize);
        writer.rolled(now);
        for number in 1..=3 {
            assert!(!writer.is_roll_due(now), "{number}");
            let orders = vec![0; SEGMENT_BYTES as usize];
            writer.push(
                now,
                Block {
                    orders,
                    ..block(number)
                },
                None,
            );
        }
        assert!(writer.is_roll_due(now));
    }

    #[test]
    fn blocks_do_not_wait_for_a_failed_journal() {
        let mut writer = writer(BLOCKS_UNDER_WAY + 2);
        while writer.next_block().is_some() {}
        writer.fail(Time(0));
        assert_eq!(writer.next_block().map(|block| block.number), Some(4_001));
        assert_eq!(writer.next_block().map(|block| block.number), Some(4_002));
        assert!(writer.is_roll_due(Time::from_millis(ROLL_AGAIN_MS)));
        writer.roll(Time(0), 100);
        writer.push(Time(0), block(5_000), None);
        assert_eq!(writer.next_block().map(|block| block.number), Some(5_000));
        assert!(writer.rolled(Time(0)), "the journal writes again");
        assert!(!writer.rolled(Time(0)));
    }

    #[test]
    fn the_lag_is_the_age_of_the_oldest_record() {
        let mut writer = writer(0);
        writer.push(Time(10), block(1), Some(Time(7)));
        writer.push(Time(20), block(2), Some(Time(9)));
        assert_eq!(writer.durability_lag(Time(50)).behind_ns, 40);
        assert_eq!(writer.settle(2), Some(Time(7)));
        let durability_lag = writer.durability_lag(Time(50));
        assert_eq!((durability_lag.durable, durability_lag.behind_ns), (2, 0));
    }
}
