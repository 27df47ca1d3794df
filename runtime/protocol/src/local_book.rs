//! A local order book with its levels: snapshot and differences, joined by the rules of
//! docs/interface/market-data.md#joining-a-local-book ([`Joiner`]). It is for programs that watch a
//! market outside the engine; the engine keeps its own books.

use std::collections::BTreeMap;

use windvane_model::{Level, Surface};

use crate::frame::{BookLevels, DepthDiff, DepthSnapshot, DiffIds};
use crate::join::{DiffStep, Joiner, Pending, SnapshotStep};
use crate::number::Number;

/// The effect of a frame on the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookStep {
    /// The book has changed. It equals the venue's book at [`LocalBook::update_id`].
    Applied,
    /// The book already contained the frame.
    Dropped,
    /// The book does not exist yet: the frame waits for a snapshot.
    Waiting,
    /// Updates are missing: the book is invalid. Fetch a snapshot (GET depth, limit 1000).
    Resync,
}

/// The levels of a frame that waits for a snapshot.
#[derive(Clone, Debug, Default)]
struct Waiting {
    bids: Vec<(Number, Number)>,
    asks: Vec<(Number, Number)>,
}

/// The order book of one symbol.
///
/// Subscribe first, then fetch the snapshot: differences that arrive before it wait. A book of
/// partial depth frames needs no join: each frame replaces the previous one.
///
/// ```
/// use windvane_model::Surface;
/// use windvane_protocol::local_book::{BookStep, LocalBook};
/// use windvane_protocol::{BookLevels, Frame, decode};
///
/// let mut book = LocalBook::new(Surface::Spot);
/// let mut levels = BookLevels::default();
/// for (text, step) in [
///     (r#"{"e":"depthUpdate","E":1,"s":"A","U":4,"u":6,"b":[["9.5","2"]],"a":[]}"#, BookStep::Waiting),
///     (r#"{"lastUpdateId":4,"bids":[["9","1"]],"asks":[["10","1"]]}"#, BookStep::Applied),
///     (r#"{"e":"depthUpdate","E":2,"s":"A","U":9,"u":9,"b":[],"a":[]}"#, BookStep::Resync),
/// ] {
///     let done = match decode(text.as_bytes(), &mut levels)?.frame {
///         Frame::Depth(diff) => book.on_diff(&diff, &levels),
///         Frame::Snapshot(snapshot) => book.on_snapshot(&snapshot, &levels),
///         _ => unreachable!(),
///     };
///     assert_eq!(done, step);
///     if step == BookStep::Applied {
///         let best = book.bids().next().map(|(price, _)| price.to_string());
///         assert_eq!((best.as_deref(), book.update_id()), (Some("9.5"), Some(6)));
///     }
/// }
/// # Ok::<(), windvane_protocol::FrameError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LocalBook {
    joiner: Joiner,
    pending: Pending<Waiting>,
    /// Price and quantity, keyed by [`Number::key`] of the price.
    bids: BTreeMap<i128, (Number, Number)>,
    asks: BTreeMap<i128, (Number, Number)>,
    update_id: Option<i64>,
}

/// How many differences may wait for a snapshot: at ten a second, more than a minute of them.
const PENDING_FRAMES_MAX: usize = 1000;

impl LocalBook {
    /// Starts without a book.
    pub const fn new(surface: Surface) -> Self {
        Self {
            joiner: Joiner::new(surface),
            pending: Pending::new(PENDING_FRAMES_MAX),
            bids: BTreeMap::new(),
            asks: BTreeMap::new(),
            update_id: None,
        }
    }

    /// The last update id of the venue that the book contains; `None` without a book.
    pub const fn update_id(&self) -> Option<i64> {
        self.update_id
    }

    /// Bids, best first: price and quantity.
    pub fn bids(&self) -> impl Iterator<Item = (Number, Number)> {
        self.bids.values().rev().copied()
    }

    /// Asks, best first: price and quantity.
    pub fn asks(&self) -> impl Iterator<Item = (Number, Number)> {
        self.asks.values().copied()
    }

    /// Applies, buffers or drops a difference with its levels.
    pub fn on_diff(&mut self, diff: &DepthDiff<'_>, levels: &BookLevels) -> BookStep {
        let sides = || {
            (
                numbers(levels.bids(), levels),
                numbers(levels.asks(), levels),
            )
        };
        match self.joiner.on_diff(diff.ids) {
            DiffStep::Apply => {
                let (bids, asks) = sides();
                self.apply(diff.ids, bids, asks);
                BookStep::Applied
            }
            DiffStep::Drop => BookStep::Dropped,
            DiffStep::Buffer => {
                let (bids, asks) = sides();
                self.keep(diff.ids, bids.collect(), asks.collect());
                BookStep::Waiting
            }
            DiffStep::Gap => {
                self.clear();
                let (bids, asks) = sides();
                self.keep(diff.ids, bids.collect(), asks.collect());
                BookStep::Resync
            }
        }
    }

    /// Takes a snapshot with its levels. After a REST response, the waiting differences are applied
    /// to it. A partial depth frame replaces the whole book.
    pub fn on_snapshot(&mut self, snapshot: &DepthSnapshot<'_>, levels: &BookLevels) -> BookStep {
        if snapshot.partial {
            if self
                .update_id
                .is_some_and(|id| snapshot.last_update_id < id)
            {
                return BookStep::Dropped;
            }
            self.replace(snapshot.last_update_id, levels);
            return BookStep::Applied;
        }
        if self.joiner.on_snapshot(snapshot.last_update_id) == SnapshotStep::Drop {
            return BookStep::Dropped;
        }
        self.replace(snapshot.last_update_id, levels);
        let mut step = BookStep::Applied;
        for (ids, waiting) in self.pending.take() {
            match self.joiner.on_diff(ids) {
                DiffStep::Apply => self.apply(ids, waiting.bids, waiting.asks),
                DiffStep::Drop => {}
                DiffStep::Buffer => self.keep(ids, waiting.bids, waiting.asks),
                DiffStep::Gap => {
                    self.clear();
                    self.keep(ids, waiting.bids, waiting.asks);
                    step = BookStep::Resync;
                }
            }
        }
        step
    }

    fn keep(&mut self, ids: DiffIds, bids: Vec<(Number, Number)>, asks: Vec<(Number, Number)>) {
        self.pending.push(ids, Waiting { bids, asks });
    }

    fn clear(&mut self) {
        self.bids.clear();
        self.asks.clear();
        self.update_id = None;
    }

    fn replace(&mut self, update_id: i64, levels: &BookLevels) {
        self.clear();
        set(&mut self.bids, numbers(levels.bids(), levels));
        set(&mut self.asks, numbers(levels.asks(), levels));
        self.update_id = Some(update_id);
    }

    fn apply(
        &mut self,
        ids: DiffIds,
        bids: impl IntoIterator<Item = (Number, Number)>,
        asks: impl IntoIterator<Item = (Number, Number)>,
    ) {
        set(&mut self.bids, bids);
        set(&mut self.asks, asks);
        self.update_id = Some(ids.last);
    }
}

/// Converts the levels of a frame into numbers.
fn numbers(side: &[Level], levels: &BookLevels) -> impl Iterator<Item = (Number, Number)> {
    let (price_scale, qty_scale) = (levels.price_scale(), levels.qty_scale());
    side.iter().map(move |level| {
        let price = Number {
            mantissa: level.price,
            scale: price_scale,
        };
        let qty = Number {
            mantissa: level.qty,
            scale: qty_scale,
        };
        (price, qty)
    })
}

/// Sets levels to absolute quantities; 0 removes the level.
fn set(
    side: &mut BTreeMap<i128, (Number, Number)>,
    levels: impl IntoIterator<Item = (Number, Number)>,
) {
    for (price, qty) in levels {
        if qty.mantissa == 0 {
            side.remove(&price.key());
        } else {
            side.insert(price.key(), (price, qty));
        }
    }
}
