//! A journal without failures: blocks are read back in order, across segments.

use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use windvane_journal::{
    AppendError, Event, Hooks, Keep, Options, RollError, SegmentState, Verdict, export, open,
    verify,
};
use windvane_model::record::{Block, Chain, Recorder};

use super::support::{Rig, Source, copy, is_back, listener, locked};

#[test]
fn a_new_directory_is_fresh_and_later_starts_continue() {
    let folder = tempfile::tempdir().unwrap();
    let mut all: Vec<Block> = Vec::new();
    for start in 0..4 {
        let (mut rig, mut recovered) = Rig::start(folder.path(), &Options::default());
        let expected = if start == 0 {
            Verdict::Fresh
        } else {
            Verdict::Clean
        };
        assert_eq!(recovered.verdict, expected);
        assert_eq!(recovered.sealed, start != 0);
        assert_eq!(recovered.segment, (start > 0).then_some(start));
        let last = all.len().saturating_sub(20);
        assert_eq!(recovered.blocks.len(), all.len() - last);
        assert!(recovered.blocks.by_ref().eq(all[last..].iter().cloned()));
        rig.append_durably(20);
        all.append(&mut rig.appended);
        assert_eq!(rig.journal.close().unwrap(), rig.source.chain());
    }
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.problems, []);
    let states: Vec<_> = report.segments.iter().map(|s| s.state).collect();
    assert_eq!(states, [SegmentState::Sealed; 4]);
}

#[test]
fn a_segment_ends_on_request_and_the_chain_continues() {
    let folder = tempfile::tempdir().unwrap();
    let (mut rig, _) = Rig::start(folder.path(), &Options::default());
    for _ in 0..3 {
        rig.append_durably(5);
        assert!(rig.journal.segment_records() > 5);
        assert!(rig.journal.segment_blocks() >= 5);
        assert!(rig.journal.segment_bytes() > 50);
        rig.roll();
        let started = (rig.journal.segment_records(), rig.journal.segment_bytes());
        assert_eq!(started, (0, 0));
        // The test does not wait for the new segment, but these blocks belong to it.
        rig.append_durably(5);
    }
    let misplaced = rig.journal.roll(Vec::new(), Chain::default());
    assert!(matches!(misplaced, Err(RollError::OutOfPlace { .. })));
    drop(rig.journal);
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(report.segments.len(), 4);
    let (_, recovered) = open(locked(folder.path())).unwrap();
    assert_eq!(recovered.checkpoint, b"next head");
    assert!(recovered.blocks.eq(rig.appended[25..].iter().cloned()));
}

#[test]
fn large_checkpoints_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut seed = 9_u64;
    let mut checkpoint = vec![0; 5_000_000];
    for byte in &mut checkpoint {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (seed >> 33) as u8;
    }
    for checkpoint in [checkpoint, Vec::new()] {
        let (ready, recovered) = open(locked(folder.path())).unwrap();
        let (listener, _events) = listener();
        let journal = ready.begin(&checkpoint, recovered.next, &Options::default(), listener);
        drop(journal.unwrap());
        let (_, recovered) = open(locked(folder.path())).unwrap();
        assert!(recovered.checkpoint == checkpoint);
        assert_eq!(recovered.verdict, Verdict::Clean);
    }
}

#[test]
fn blocks_that_do_not_continue_the_chain_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut rig, _) = Rig::start(folder.path(), &Options::default());
    let (first, second) = (rig.source.block(), rig.source.block());
    let refused = rig.journal.append(second);
    assert!(matches!(refused, Err(AppendError::OutOfOrder(_))));
    rig.journal.append(first).unwrap();
}

#[test]
fn a_full_queue_returns_the_block() {
    let folder = tempfile::tempdir().unwrap();
    let (sync_gate, opened) = std::sync::mpsc::channel::<()>();
    let opened = std::sync::Mutex::new(opened);
    let options = Options {
        queue_blocks: 1,
        // The sync of the checkpoint passes. Each later sync waits until the gate is dropped.
        hooks: Hooks {
            sync: Some(std::sync::Arc::new({
                let checkpoint = std::sync::atomic::AtomicBool::new(true);
                move || {
                    if !checkpoint.swap(false, std::sync::atomic::Ordering::SeqCst) {
                        let _ = opened.lock().unwrap().recv();
                    }
                    Ok(())
                }
            })),
            ..Hooks::default()
        },
        ..Options::default()
    };
    let (mut rig, _) = Rig::start(folder.path(), &options);
    let mut block = rig.source.block();
    loop {
        match rig.journal.append(block.clone()) {
            Ok(()) => block = rig.source.block(),
            Err(AppendError::Full { block: back }) => {
                assert_eq!(*back, block);
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(rig.journal.chain().next_block, block.number);
    drop(sync_gate);
    rig.wait_durable(rig.journal.chain());
    rig.journal.append(block).unwrap();
    rig.wait_durable(rig.source.chain());
}

#[test]
fn records_are_exported_by_sequence_across_segments() {
    let folder = tempfile::tempdir().unwrap();
    let (mut rig, _) = Rig::start(folder.path(), &Options::default());
    rig.append_durably(10);
    rig.roll();
    rig.append_durably(10);
    let last = rig.source.chain().last_record;
    drop(rig.journal);
    let all: Vec<_> = export(folder.path(), 0..u64::MAX)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(all.len() as u64, last);
    assert!(
        all.iter()
            .zip(1..)
            .all(|(r, sequence)| r.sequence == sequence)
    );
    assert_eq!(windvane_journal::segments(folder.path()).unwrap(), [1, 2]);
    let second = windvane_journal::segment(folder.path(), 2).unwrap();
    assert_eq!(
        (second.checkpoint.as_slice(), second.blocks.len()),
        (&b"next head"[..], 10)
    );
    assert_eq!((all[0].segment, all[all.len() - 1].segment), (1, 2));
    let some: Vec<_> = export(folder.path(), 5..9)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(some, all[4..8]);
}

#[test]
fn pruning_drops_the_oldest_segments_and_keeps_the_last_two() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..6 {
        let (mut rig, _) = Rig::start(folder.path(), &Options::default());
        rig.append_durably(3);
    }
    let directory = locked(folder.path());
    let now = SystemTime::now();
    let all = Keep {
        bytes: u64::MAX,
        age: Duration::MAX,
        market_age: Duration::MAX,
    };
    assert_eq!(directory.prune(all, now).unwrap().segments, []);
    let none = Keep { bytes: 0, ..all };
    assert_eq!(
        directory.prune(none, now).unwrap().segments,
        [],
        "segments that are not in the ledger must stay"
    );
    directory.ledger().unwrap().enter(4, b"").unwrap();
    let bytes = {
        let sizes = std::fs::read_dir(folder.path().join("journal/00000001")).unwrap();
        sizes
            .map(|e| e.unwrap().metadata().unwrap().len())
            .sum::<u64>()
            * 5
    };
    let pruned = directory
        .prune(Keep { bytes, ..all }, now)
        .unwrap()
        .segments;
    assert!(!pruned.is_empty() && pruned.len() < 4, "{pruned:?}");
    assert_eq!(pruned[0], 1);
    let age = Duration::from_hours(1);
    let young = directory.prune(Keep { age, ..all }, now).unwrap().segments;
    assert_eq!(young, []);
    let later = now + age * 2;
    let old = directory
        .prune(Keep { age, ..all }, later)
        .unwrap()
        .segments;
    assert_eq!(old.last(), Some(&4));
    drop(directory);
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.problems, []);
    let left: Vec<_> = report.segments.iter().map(|s| s.number).collect();
    assert_eq!(left, [5, 6]);
    let (_, recovered) = open(locked(folder.path())).unwrap();
    assert_eq!(recovered.verdict, Verdict::Clean);
}

#[test]
fn a_verification_skips_the_segment_of_a_running_instance() {
    let folder = tempfile::tempdir().unwrap();
    let (mut rig, _) = Rig::start(folder.path(), &Options::default());
    rig.append_durably(3);
    rig.roll();
    rig.append_durably(3);
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.problems, []);
    let states: Vec<_> = report.segments.iter().map(|s| s.state).collect();
    assert_eq!(states, [SegmentState::Sealed, SegmentState::InUse]);
}

#[test]
fn an_acknowledgement_has_its_duration_and_block_count() {
    let folder = tempfile::tempdir().unwrap();
    let (mut rig, _) = Rig::start(folder.path(), &Options::default());
    rig.append().unwrap();
    let Event::Durable {
        chain,
        blocks,
        took,
    } = rig.event()
    else {
        panic!("not durable");
    };
    assert_eq!((chain, blocks), (rig.source.chain(), 1));
    assert!(took > Duration::ZERO);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn appended_blocks_are_read_back_unchanged(
        seed in 1_u64..,
        blocks in 0_usize..60,
        sealed: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (mut rig, _) = Rig::start(&folder.path().join("a"), &Options::default());
        rig.source = Source::new(Recorder::new(true).chain(), seed);
        rig.append_durably(blocks.max(1));
        let path = folder.path().join(if sealed { "a" } else { "b" });
        if !sealed {
            copy(&folder.path().join("a"), &path);
        }
        drop(rig.journal);
        let (_, recovered) = open(locked(&path)).unwrap();
        prop_assert_eq!(recovered.verdict, Verdict::Clean);
        prop_assert_eq!(recovered.sealed, sealed);
        prop_assert_eq!(recovered.checkpoint, b"head");
        prop_assert_eq!(recovered.found, rig.source.chain());
        if sealed {
            prop_assert!(recovered.blocks.eq(rig.appended));
        } else {
            prop_assert!(is_back(recovered.blocks, &rig.appended));
        }
    }
}
