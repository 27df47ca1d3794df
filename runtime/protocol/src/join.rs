//! Joins a depth snapshot and the stream of differences into one book
//! (docs/interface/market-data.md#joining-a-local-book). This state machine sees update ids only;
//! the caller keeps the levels and follows its decisions.

use std::collections::VecDeque;

use windvane_model::Surface;

use crate::frame::DiffIds;

/// The action for a depth difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffStep {
    /// The difference continues the book: apply it.
    Apply,
    /// The snapshot has not arrived yet: keep the difference until it does.
    Buffer,
    /// The book already contains the difference.
    Drop,
    /// Updates before this one are missing. The book is invalid until the next snapshot; keep the
    /// difference for that.
    Gap,
}

/// The action for a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotStep {
    /// Replace the book with the snapshot.
    Snapshot,
    /// The book is already newer than the snapshot.
    Drop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No book yet; differences are buffered.
    Waiting,
    /// A snapshot with this `lastUpdateId`; no difference has been applied to it yet.
    Fresh(i64),
    /// The last applied difference ended with this `u`.
    Joined(i64),
}

/// The state machine of one instrument's book.
///
/// Futures: drop `u < lastUpdateId`. The first applied difference has `U <= lastUpdateId <= u`, or
/// its `pu` equals `lastUpdateId`, which proves that it continues the snapshot. After that, each
/// `pu` equals the previous `u`.
///
/// Spot: drop `u <= lastUpdateId`. The first applied difference has `U <= lastUpdateId + 1 <= u`.
/// After that, each `U` equals the previous `u + 1`.
///
/// Anything else is a gap: start again from the next snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joiner {
    surface: Surface,
    state: State,
}

impl Joiner {
    /// Starts without a book.
    pub const fn new(surface: Surface) -> Self {
        Self {
            surface,
            state: State::Waiting,
        }
    }

    /// Whether there is a book.
    pub const fn has_book(&self) -> bool {
        !matches!(self.state, State::Waiting)
    }

    /// Takes the ids of the next difference.
    #[inline]
    pub fn on_diff(&mut self, ids: DiffIds) -> DiffStep {
        let step = match self.state {
            State::Waiting => return DiffStep::Buffer,
            State::Fresh(snapshot) => self.first(snapshot, ids),
            State::Joined(last) => self.next(last, ids),
        };
        match step {
            DiffStep::Apply => self.state = State::Joined(ids.last),
            DiffStep::Gap => self.state = State::Waiting,
            DiffStep::Buffer | DiffStep::Drop => {}
        }
        step
    }

    /// Takes the `lastUpdateId` of a snapshot. The caller then passes the buffered differences to
    /// [`Self::on_diff`], oldest first.
    pub fn on_snapshot(&mut self, last_update_id: i64) -> SnapshotStep {
        if let State::Joined(last) = self.state
            && last_update_id <= last
        {
            return SnapshotStep::Drop;
        }
        self.state = State::Fresh(last_update_id);
        SnapshotStep::Snapshot
    }

    fn first(&self, snapshot: i64, ids: DiffIds) -> DiffStep {
        let (is_old, joins) = match self.surface {
            Surface::Futures => (
                ids.last < snapshot,
                (ids.first <= snapshot && snapshot <= ids.last) || ids.previous == Some(snapshot),
            ),
            Surface::Spot => (
                ids.last <= snapshot,
                ids.first <= snapshot + 1 && snapshot < ids.last,
            ),
        };
        if is_old {
            DiffStep::Drop
        } else if joins {
            DiffStep::Apply
        } else {
            DiffStep::Gap
        }
    }

    fn next(&self, last: i64, ids: DiffIds) -> DiffStep {
        let continues = match self.surface {
            Surface::Futures => ids.previous == Some(last),
            Surface::Spot => ids.first == last + 1,
        };
        if continues {
            DiffStep::Apply
        } else if ids.last <= last {
            // Received twice. Quantities are absolute, and the book already has newer ones.
            DiffStep::Drop
        } else {
            DiffStep::Gap
        }
    }
}

/// Differences that wait for a snapshot, oldest first. The number is bounded: the oldest are
/// dropped. If a dropped difference was needed, the join finds a gap.
#[derive(Clone, Debug)]
pub struct Pending<T> {
    frames: VecDeque<(DiffIds, T)>,
    limit: usize,
}

impl<T> Pending<T> {
    /// Keeps at most `limit` differences.
    pub const fn new(limit: usize) -> Self {
        Self {
            frames: VecDeque::new(),
            limit,
        }
    }

    /// Keeps a difference.
    pub fn push(&mut self, ids: DiffIds, frame: T) {
        self.frames.push_back((ids, frame));
        if self.frames.len() > self.limit {
            self.frames.pop_front();
        }
    }

    /// Returns all kept differences, oldest first, and empties the buffer.
    pub fn take(&mut self) -> VecDeque<(DiffIds, T)> {
        std::mem::take(&mut self.frames)
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether an update id is between the first and the last kept id.
    pub fn encloses(&self, update_id: i64) -> bool {
        let first = self.frames.front().map(|(ids, _)| ids.first);
        let last = self.frames.back().map(|(ids, _)| ids.last);
        first.is_some_and(|first| first <= update_id) && last.is_some_and(|last| update_id <= last)
    }
}
