//! The joined book against the truth: whatever is lost, doubled or reordered on the way, it is
//! the venue's book at its update id, or it says that it is none.

use std::collections::BTreeMap;

use proptest::prelude::*;
use windvane_engine::Surface;
use windvane_venue::local_book::{BookStep, LocalBook};
use windvane_venue::{BookLevels, Frame, decode};

/// Quantities by price, and the venue's book after every update.
type Side = BTreeMap<u32, u32>;

/// What happens to a frame on its way.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Lost,
    Twice,
    /// After the next one.
    Late,
    /// A snapshot of this age, in updates, arrives first.
    AfterSnapshot(usize),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        8 => Just(Fate::Arrives),
        1 => Just(Fate::Lost),
        1 => Just(Fate::Twice),
        1 => Just(Fate::Late),
        2 => (0_usize..12).prop_map(Fate::AfterSnapshot),
    ]
}

struct Feed {
    surface: Surface,
    /// The book after update `i` (bids and asks), from update 0: empty.
    truth: Vec<(Side, Side)>,
}

const FIRST_ID: i64 = 100;

impl Feed {
    fn new(surface: Surface, updates: &[(bool, u32, u32)]) -> Self {
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

    /// The frame of the updates after `from` up to `to`.
    fn frame(&self, updates: &[(bool, u32, u32)], from: usize, to: usize) -> String {
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

    fn snapshot(&self, at: usize) -> String {
        let (bids, asks) = &self.truth[at];
        let id = FIRST_ID + at as i64;
        format!(
            r#"{{"lastUpdateId":{id},"bids":{},"asks":{}}}"#,
            list(bids),
            list(asks)
        )
    }

    /// The book is the truth at its own update id, or there is none.
    fn check(&self, book: &LocalBook, step: BookStep) {
        let Some(id) = book.update_id() else {
            assert_eq!((book.bids().count(), book.asks().count()), (0, 0));
            assert_ne!(step, BookStep::Applied);
            return;
        };
        assert!(!matches!(step, BookStep::Waiting | BookStep::Resync));
        let (bids, asks) = &self.truth[(id - FIRST_ID) as usize];
        let text = |levels: Vec<(windvane_venue::Number, windvane_venue::Number)>| {
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

fn feed(book: &mut LocalBook, text: &str) -> BookStep {
    let mut levels = BookLevels::default();
    let decoded =
        decode(text.as_bytes(), &mut levels).unwrap_or_else(|error| panic!("{text}: {error}"));
    match decoded.frame {
        Frame::Depth(diff) => book.on_diff(&diff, &levels),
        Frame::Snapshot(snapshot) => book.on_snapshot(&snapshot, &levels),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_joined_book_is_the_venues_or_none(
        is_futures: bool,
        updates in prop::collection::vec((any::<bool>(), 0_u32..6, 0_u32..4), 1..80),
        sizes in prop::collection::vec(1_usize..5, 80),
        fates in prop::collection::vec(fate(), 80),
    ) {
        let surface = if is_futures { Surface::Futures } else { Surface::Spot };
        let truth = Feed::new(surface, &updates);
        let mut book = LocalBook::new(surface);
        let (mut from, mut late) = (0, None::<String>);
        for (size, fate) in sizes.into_iter().zip(fates) {
            if from == updates.len() {
                break;
            }
            let to = (from + size).min(updates.len());
            let frame = truth.frame(&updates, from, to);
            let mut arrive = |text: &str| {
                let step = feed(&mut book, text);
                truth.check(&book, step);
            };
            match fate {
                Fate::Lost => {}
                Fate::Late => {
                    if let Some(earlier) = late.replace(frame) {
                        arrive(&earlier);
                    }
                    from = to;
                    continue;
                }
                Fate::Arrives => arrive(&frame),
                Fate::Twice => {
                    arrive(&frame);
                    arrive(&frame);
                }
                Fate::AfterSnapshot(age) => {
                    arrive(&truth.snapshot(to.saturating_sub(age)));
                    arrive(&frame);
                }
            }
            if let Some(earlier) = late.take() {
                arrive(&earlier);
            }
            from = to;
        }
        // Whatever went before, a fresh snapshot always brings the book back.
        let step = feed(&mut book, &truth.snapshot(from));
        truth.check(&book, step);
        prop_assert_eq!(book.update_id(), Some(FIRST_ID + from as i64));
    }
}

#[test]
fn a_partial_depth_frame_replaces_the_book() {
    let mut book = LocalBook::new(Surface::Spot);
    let frame = |id: i64, bid: &str| {
        format!(
            r#"{{"stream":"a@depth5","data":{{"lastUpdateId":{id},"bids":[["{bid}","1"]],"asks":[]}}}}"#
        )
    };
    assert_eq!(feed(&mut book, &frame(7, "1.5")), BookStep::Applied);
    assert_eq!(feed(&mut book, &frame(8, "1.25")), BookStep::Applied);
    assert_eq!(feed(&mut book, &frame(6, "9")), BookStep::Dropped);
    let bids: Vec<String> = book.bids().map(|(price, _)| price.to_string()).collect();
    assert_eq!((bids, book.update_id()), (vec!["1.25".to_owned()], Some(8)));
}
