//! A book of which every state is known, for whoever joins one: the property test and the fuzz
//! target. It writes frames and snapshots, and judges a joined book.

use std::collections::BTreeMap;

use windvane_engine::Surface;
use windvane_venue::local_book::{BookStep, LocalBook};
use windvane_venue::{BookLevels, Frame, Number, decode};

/// Quantities by price.
type Side = BTreeMap<u32, u32>;

/// A market of which everything is known.
pub struct Feed {
    surface: Surface,
    /// The book after update `i` (bids and asks), from update 0: empty.
    truth: Vec<(Side, Side)>,
}

/// The venue's id of the state before every update.
pub const FIRST_ID: i64 = 100;

impl Feed {
    /// The market of these updates: side is bid, price, quantity.
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

    /// The difference of the updates after `from` up to `to`.
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

    /// The book after `at` updates.
    pub fn snapshot(&self, at: usize) -> String {
        let (bids, asks) = &self.truth[at];
        let id = FIRST_ID + at as i64;
        format!(
            r#"{{"lastUpdateId":{id},"bids":{},"asks":{}}}"#,
            list(bids),
            list(asks)
        )
    }

    /// The book is the truth at its own update id, or there is none.
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

/// Gives one frame to the book.
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
