//! Joining a depth snapshot and the stream of differences into one book (spec 4, Local book).
//! Ids only: who keeps levels feeds them as this machine says.

use std::collections::VecDeque;

use windvane_model::Surface;

use crate::frame::DiffIds;

/// What to do with a depth difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffStep {
    /// It continues the book: apply it.
    Apply,
    /// There is no snapshot yet: keep it until there is one.
    Buffer,
    /// The book already holds it.
    Drop,
    /// Updates are missing before it: the book is void until the next snapshot; keep it for that.
    Gap,
}

/// What to do with a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotStep {
    /// Replace the book by it.
    Snapshot,
    /// The book is already further.
    Drop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No book; differences wait.
    Waiting,
    /// A snapshot with this `lastUpdateId`, and no difference applied to it yet.
    Fresh(i64),
    /// The last applied difference ended with this `u`.
    Joined(i64),
}

/// The state machine of one instrument's book.
///
/// Futures: drop `u < lastUpdateId`; the first applied has `U <= lastUpdateId <= u` (or its `pu`
/// is `lastUpdateId` itself, which proves the same); then each `pu` is the previous `u`.
/// Spot: drop `u <= lastUpdateId`; the first applied has `U <= lastUpdateId + 1 <= u`; then each
/// `U` is the previous `u + 1`. Anything else is a gap: start again from the next snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joiner {
    surface: Surface,
    state: State,
}

impl Joiner {
    /// Without a book.
    pub const fn new(surface: Surface) -> Self {
        Self {
            surface,
            state: State::Waiting,
        }
    }

    /// There is a book.
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

    /// Takes the `lastUpdateId` of a snapshot. The differences that were kept follow it, oldest
    /// first, through [`Self::on_diff`].
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
            // Received twice: absolute quantities that the book has already left behind.
            DiffStep::Drop
        } else {
            DiffStep::Gap
        }
    }
}

/// Differences that wait for a snapshot, the oldest first. Bounded: the oldest give way, and if
/// they turn out to be needed the join finds a gap.
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

    /// All that is kept, oldest first; afterwards nothing is.
    pub fn take(&mut self) -> VecDeque<(DiffIds, T)> {
        std::mem::take(&mut self.frames)
    }

    /// Nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// An update id lies between the first and the last that is kept.
    pub fn encloses(&self, update_id: i64) -> bool {
        let first = self.frames.front().map(|(ids, _)| ids.first);
        let last = self.frames.back().map(|(ids, _)| ids.last);
        first.is_some_and(|first| first <= update_id) && last.is_some_and(|last| update_id <= last)
    }
}
