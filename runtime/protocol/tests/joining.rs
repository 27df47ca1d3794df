//! Tests the join against a second implementation of the rules of
//! docs/interface/market-data.md#joining-a-local-book, and with broken streams.

use proptest::prelude::*;
use windvane_model::Surface;
use windvane_protocol::{DiffIds, DiffStep, Joiner, Pending, SnapshotStep};

fn futures(first: i64, last: i64, previous: i64) -> DiffIds {
    DiffIds {
        first,
        last,
        previous: Some(previous),
    }
}

fn spot(first: i64, last: i64) -> DiffIds {
    DiffIds {
        first,
        last,
        previous: None,
    }
}

fn fresh(surface: Surface, snapshot: i64) -> Joiner {
    let mut joiner = Joiner::new(surface);
    assert_eq!(joiner.on_snapshot(snapshot), SnapshotStep::Snapshot);
    joiner
}

#[test]
fn futures_join_where_the_ids_enclose_the_snapshot() {
    for (ids, step) in [
        (futures(90, 99, 89), DiffStep::Drop),
        (futures(90, 100, 89), DiffStep::Apply),
        (futures(100, 105, 99), DiffStep::Apply),
        (futures(101, 105, 100), DiffStep::Apply),
        (futures(102, 105, 101), DiffStep::Gap),
    ] {
        assert_eq!(fresh(Surface::Futures, 100).on_diff(ids), step, "{ids:?}");
    }
}

#[test]
fn spot_joins_where_the_ids_enclose_the_next_update() {
    for (ids, step) in [
        (spot(90, 100), DiffStep::Drop),
        (spot(90, 101), DiffStep::Apply),
        (spot(101, 105), DiffStep::Apply),
        (spot(102, 105), DiffStep::Gap),
    ] {
        assert_eq!(fresh(Surface::Spot, 100).on_diff(ids), step, "{ids:?}");
    }
}

#[test]
fn a_gap_invalidates_the_book_until_the_next_snapshot() {
    let mut joiner = fresh(Surface::Spot, 100);
    assert_eq!(joiner.on_diff(spot(101, 105)), DiffStep::Apply);
    assert_eq!(joiner.on_diff(spot(107, 108)), DiffStep::Gap);
    assert!(!joiner.has_book());
    assert_eq!(joiner.on_diff(spot(109, 110)), DiffStep::Buffer);
    assert_eq!(joiner.on_snapshot(108), SnapshotStep::Snapshot);
    assert_eq!(joiner.on_diff(spot(109, 110)), DiffStep::Apply);
    // An old snapshot does not move the book back, and a frame that is received twice changes
    // nothing.
    assert_eq!(joiner.on_snapshot(109), SnapshotStep::Drop);
    assert_eq!(joiner.on_diff(spot(109, 110)), DiffStep::Drop);
    assert_eq!(joiner.on_diff(spot(111, 111)), DiffStep::Apply);
}

#[test]
fn the_buffer_is_bounded_and_drops_the_oldest() {
    let mut pending = Pending::new(2);
    for id in 1..=3 {
        pending.push(spot(id, id), id);
    }
    assert!(!pending.encloses(1) && pending.encloses(2) && pending.encloses(3));
    let kept: Vec<i64> = pending.take().into_iter().map(|(_, frame)| frame).collect();
    assert_eq!(kept, [2, 3]);
}

/// The last update that the book contains, if there is a book.
type Book = Option<i64>;

proptest! {
    /// A stream is cut into frames at random. Some frames are lost or repeated, and one snapshot
    /// arrives at a random position. The applied updates must have no gap and start at the
    /// snapshot.
    #[test]
    fn applied_updates_have_no_gap(
        is_futures: bool,
        sizes in prop::collection::vec(1_i64..5, 1..40),
        fates in prop::collection::vec(0_u8..12, 40),
        snapshot_at in 0_usize..40, lag in 0_i64..12,
    ) {
        let surface = if is_futures { Surface::Futures } else { Surface::Spot };
        let mut joiner = Joiner::new(surface);
        let mut pending = Pending::new(8);
        let mut last = 1000;
        let mut book = None;
        let take = |joiner: &mut Joiner, pending: &mut Pending<()>, book: &mut Book, ids: DiffIds| {
            match joiner.on_diff(ids) {
                DiffStep::Apply => {
                    let before = book.expect("applied without a book");
                    assert!(ids.first <= before + 1, "gap: {before} then {ids:?}");
                    *book = Some(before.max(ids.last));
                }
                DiffStep::Drop => assert!(ids.last <= book.unwrap()),
                DiffStep::Buffer => {
                    assert!(book.is_none());
                    pending.push(ids, ());
                }
                DiffStep::Gap => {
                    assert!(ids.first > book.unwrap() + 1 || is_futures);
                    *book = None;
                    pending.push(ids, ());
                }
            }
            assert_eq!(joiner.has_book(), book.is_some());
        };
        for (at, size) in sizes.iter().enumerate() {
            let ids = DiffIds {
                first: last + 1,
                last: last + size,
                previous: is_futures.then_some(last),
            };
            last += size;
            if at == snapshot_at {
                let id = last - lag;
                if joiner.on_snapshot(id) == SnapshotStep::Snapshot {
                    book = Some(id);
                    for (ids, ()) in pending.take() {
                        take(&mut joiner, &mut pending, &mut book, ids);
                    }
                }
            }
            match fates[at] {
                0 => {}
                1 => {
                    take(&mut joiner, &mut pending, &mut book, ids);
                    take(&mut joiner, &mut pending, &mut book, ids);
                }
                _ => take(&mut joiner, &mut pending, &mut book, ids),
            }
        }
        if fates.iter().all(|&fate| fate > 1) && snapshot_at < sizes.len() && lag < 4 {
            prop_assert_eq!(book, Some(last));
        }
    }
}
