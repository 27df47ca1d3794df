//! A book whose every state is known. The property test, the fuzz target and its seeds use it. It
//! writes frames and snapshots, and checks a joined book.

use std::collections::BTreeMap;

use windvane_model::Surface;
use windvane_protocol::local_book::{BookStep, LocalBook};
use windvane_protocol::{BookLevels, Frame, Number, decode};

/// Quantities by price.
type Side = BTreeMap<u32, u32>;

/// A market whose every state is known.
pub struct Feed {
    surface: Surface,
    /// The book (bids and asks) after update `i`; index 0 is the empty book.
    truth: Vec<(Side, Side)>,
}

/// The venue's update id of the state before the first update.
pub const FIRST_ID: i64 = 100;

impl Feed {
    /// The market of these updates. Each update is: whether it is a bid, price, quantity.
    pub fn new(surface: Surface, updates: &[(bool, u32, u32)]) -> Self {
        let mut truth = vec![(Side::new(), Side::new())];
        for &(is_bid, price, qty) in updates {
            let (mut bids, mut asks) = truth.last().cloned().unwrap_or_default();
            let side = if is_bid { &mut bids } else { &mut asks };
            if qty == 0 {
                side.remove(&price);
            } else {
                side.insert(price, qty);
            }
            truth.push((bids, asks));
        }
        Self { surface, truth }
    }

    /// The depth difference of the updates after `from` up to `to`.
    pub fn frame(&self, updates: &[(bool, u32, u32)], from: usize, to: usize) -> String {
        let side = |wanted: bool| {
            let mut last = BTreeMap::new();
            for &(is_bid, price, qty) in &updates[from..to] {
                if is_bid == wanted {
                    last.insert(price, qty);
                }
            }
            list(&last)
        };
        let id = |at: usize| FIRST_ID + at as i64;
        let link = match self.surface {
            Surface::Futures => format!(",\"pu\":{}", id(from)),
            Surface::Spot => String::new(),
        };
        format!(
            r#"{{"e":"depthUpdate","E":1,"s":"A","U":{},"u":{}{link},"b":{},"a":{}}}"#,
            id(from + 1),
            id(to),
            side(true),
            side(false),
        )
    }

    /// The snapshot of the book after `at` updates.
    pub fn snapshot(&self, at: usize) -> String {
        let (bids, asks) = &self.truth[at];
        let id = FIRST_ID + at as i64;
        format!(
            r#"{{"lastUpdateId":{id},"bids":{},"asks":{}}}"#,
            list(bids),
            list(asks)
        )
    }

    /// Checks that the book equals the true book at its update id, or that it is empty without an
    /// id.
    pub fn check(&self, book: &LocalBook, step: BookStep) {
        let Some(id) = book.update_id() else {
            assert_eq!((book.bids().count(), book.asks().count()), (0, 0));
            assert_ne!(step, BookStep::Applied);
            return;
        };
        assert!(!matches!(step, BookStep::Waiting | BookStep::Resync));
        let (bids, asks) = &self.truth[(id - FIRST_ID) as usize];
        let text = |levels: Vec<(Number, Number)>| {
            let text = levels.iter().map(|(price, qty)| format!("{price} {qty}"));
            text.collect::<Vec<_>>()
        };
        let expected = |side: &Side| {
            let text = side.iter().map(|(price, qty)| format!("{price}.5 {qty}"));
            text.collect::<Vec<_>>()
        };
        assert_eq!(
            text(book.bids().collect()),
            expected(bids).into_iter().rev().collect::<Vec<_>>()
        );
        assert_eq!(text(book.asks().collect()), expected(asks));
    }
}

fn list(side: &Side) -> String {
    let levels: Vec<String> = side
        .iter()
        .map(|(price, qty)| format!(r#"["{price}.5","{qty}"]"#))
        .collect();
    format!("[{}]", levels.join(","))
}

/// Passes one frame to the book.
pub fn feed(book: &mut LocalBook, text: &str) -> BookStep {
    let mut levels = BookLevels::default();
    let decoded =
        decode(text.as_bytes(), &mut levels).unwrap_or_else(|error| panic!("{text}: {error}"));
    match decoded.frame {
        Frame::Depth(diff) => book.on_diff(&diff, &levels),
        Frame::Snapshot(snapshot) => book.on_snapshot(&snapshot, &levels),
        other => panic!("{other:?}"),
    }
}

/// How often a joined book took each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    pub applied: usize,
    pub dropped: usize,
    pub waiting: usize,
    pub resync: usize,
}

impl Steps {
    fn count(&mut self, step: BookStep) {
        let counter = match step {
            BookStep::Applied => &mut self.applied,
            BookStep::Dropped => &mut self.dropped,
            BookStep::Waiting => &mut self.waiting,
            BookStep::Resync => &mut self.resync,
        };
        *counter += 1;
    }
}

/// Plays a stream that is encoded as bytes, and checks the book after every frame. The first byte
/// selects the surface. After it, every three bytes encode an update and a frame. The first two
/// bytes hold the update (side and price, quantity) and the number of updates of the frame minus
/// one. The third byte holds the fate of the frame in its lower three bits and an age in the
/// others.
pub fn play(bytes: &[u8]) -> Steps {
    let (surface, rest) = match bytes.split_first() {
        Some((byte, rest)) if byte % 2 == 0 => (Surface::Spot, rest),
        Some((_, rest)) => (Surface::Futures, rest),
        None => return Steps::default(),
    };
    let chunks = || rest.chunks_exact(3).take(200);
    let update = |chunk: &[u8]| {
        (
            chunk[0] >= 128,
            u32::from(chunk[0] % 8),
            u32::from(chunk[1] % 4),
        )
    };
    let updates: Vec<(bool, u32, u32)> = chunks().map(update).collect();
    let truth = Feed::new(surface, &updates);
    let mut book = LocalBook::new(surface);
    let mut steps = Steps::default();
    let mut late: Vec<String> = Vec::new();
    let mut from = 0;
    for chunk in chunks() {
        let (size, fate, age) = (1 + usize::from(chunk[1] / 64), chunk[2] % 8, chunk[2] >> 3);
        let to = (from + size).min(updates.len());
        if from == to {
            break;
        }
        let frame = truth.frame(&updates, from, to);
        let overlapping = truth.frame(&updates, from.saturating_sub(usize::from(age)), to);
        let snapshot = truth.snapshot(to.saturating_sub(usize::from(age)));
        from = to;
        let arriving = match fate {
            0 => vec![],
            1 => {
                late.push(frame);
                vec![]
            }
            2 => vec![frame.clone(), frame],
            3 => vec![snapshot, frame],
            4 => std::iter::once(frame).chain(late.drain(..).rev()).collect(),
            5 => vec![overlapping],
            _ => vec![frame],
        };
        for text in arriving {
            let step = feed(&mut book, &text);
            truth.check(&book, step);
            steps.count(step);
        }
    }
    // A fresh snapshot always restores the book, whatever happened before.
    let step = feed(&mut book, &truth.snapshot(from));
    truth.check(&book, step);
    assert_eq!(book.update_id(), Some(FIRST_ID + from as i64));
    steps
}
