//! The WAL of a segment: blocks that exist only in it, and how it starts again at its beginning.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use windvane_journal::{
    Event, Failure, Hooks, Options, SegmentState, Verdict, export, open, verify,
};
use windvane_model::record::Block;

use super::support::{PATIENCE, Rig, copy, is_back, locked};

fn segment(data: &Path) -> PathBuf {
    data.join("journal/00000001")
}

/// Number of the block in the first frame of the WAL.
fn first_number(data: &Path) -> u64 {
    let bytes = fs::read(segment(data).join("tail")).unwrap();
    u64::from_le_bytes(bytes[4..12].try_into().unwrap())
}

/// Checks that a crash at this moment loses none of these blocks.
fn assert_crash_proof(data: &Path, appended: &[Block]) {
    let left = tempfile::tempdir().unwrap();
    copy(data, left.path());
    let (_, recovered) = open(locked(left.path())).unwrap();
    assert_eq!(recovered.verdict, Verdict::Clean);
    assert!(is_back(recovered.blocks, appended));
}

#[test]
fn blocks_that_sled_lost_are_in_the_wal() {
    let folder = tempfile::tempdir().unwrap();
    let (live, left) = (folder.path().join("live"), folder.path().join("left"));
    let (mut rig, _) = Rig::start(&live, &Options::default());
    let early = fs::read(segment(&live).join("db")).unwrap();
    rig.append_durably(30);
    copy(&live, &left);
    drop(rig.journal);
    assert!(!segment(&live).join("tail").exists(), "sealed");
    fs::copy(live.join("mark"), left.join("mark")).unwrap();
    fs::write(segment(&left).join("db"), early).unwrap();
    // Market parts may not have been written yet.
    fs::copy(segment(&live).join("market"), segment(&left).join("market")).unwrap();

    let report = verify(&left).unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(report.segments[0].state, SegmentState::Unsealed);
    let records = export(&left, 0..u64::MAX).unwrap().map(Result::unwrap);
    assert_eq!(records.count() as u64, rig.source.chain().last_record);
    let (_, recovered) = open(locked(&left)).unwrap();
    assert_eq!(recovered.verdict, Verdict::Clean);
    assert_eq!(recovered.found, rig.source.chain());
    assert!(is_back(recovered.blocks, &rig.appended));

    // A missing WAL does not mean that the WAL was empty.
    fs::remove_file(segment(&left).join("tail")).unwrap();
    let (_, recovered) = open(locked(&left)).unwrap();
    let Verdict::Damaged { problem, .. } = recovered.verdict else {
        panic!("{:?}", recovered.verdict);
    };
    assert_eq!(problem, "its WAL is missing");
    assert_eq!(recovered.blocks.len(), 0);
}

#[test]
fn a_wal_that_was_not_removed_after_a_seal_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let (mut rig, _) = Rig::start(folder.path(), &Options::default());
    rig.append_durably(10);
    let wal = segment(folder.path()).join("tail");
    let kept = fs::read(&wal).unwrap();
    let end = rig.journal.close().unwrap();
    for bytes in [kept.clone(), kept[..kept.len() / 2].to_vec(), Vec::new()] {
        fs::write(&wal, bytes).unwrap();
        let (_, recovered) = open(locked(folder.path())).unwrap();
        assert_eq!(recovered.verdict, Verdict::Clean);
        assert_eq!((recovered.sealed, recovered.found), (true, end));
        assert!(recovered.blocks.eq(rig.appended.iter().cloned()));
    }
}

#[test]
fn a_gap_between_sled_and_the_wal_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (mut rig, _) = Rig::start(folder.path(), &Options::default());
    let db = segment(folder.path()).join("db");
    let early = fs::read(&db).unwrap();
    while first_number(folder.path()) == 0 {
        rig.append_durably(1);
    }
    let left = folder.path().join("left");
    copy(&folder.path().join("journal"), &left.join("journal"));
    fs::copy(folder.path().join("mark"), left.join("mark")).unwrap();
    fs::write(segment(&left).join("db"), early).unwrap();
    let problem = verify(&left).unwrap().problems.swap_remove(0).what;
    let begin = first_number(&left);
    let expected = format!("its WAL begins with block {begin}, but block 0 is missing");
    assert_eq!(problem, expected);
}

#[test]
fn a_full_wal_starts_again_without_losing_a_block() {
    let folder = tempfile::tempdir().unwrap();
    let (mut rig, _) = Rig::start(folder.path(), &Options::default());
    let mut rounds = 0;
    while rounds < 3 {
        let first = first_number(folder.path());
        rig.append_durably(20);
        rounds += u32::from(first_number(folder.path()) != first);
        assert_crash_proof(folder.path(), &rig.appended);
    }
}

#[test]
fn a_group_larger_than_the_wal_is_durable_too() {
    let folder = tempfile::tempdir().unwrap();
    let (hang, hangs) = mpsc::channel::<mpsc::Receiver<()>>();
    let (sender, hung) = mpsc::channel();
    let hangs = Mutex::new(hangs);
    let options = Options {
        hooks: Hooks {
            sync: Some(Arc::new(move || {
                if let Ok(sync_gate) = hangs.lock().unwrap().try_recv() {
                    sender.send(()).unwrap();
                    let _ = sync_gate.recv();
                }
                Ok(())
            })),
            ..Hooks::default()
        },
        ..Options::default()
    };
    let (mut rig, _) = Rig::start(folder.path(), &options);
    let (sync_gate, opened) = mpsc::channel();
    hang.send(opened).unwrap();
    rig.append().unwrap();
    hung.recv_timeout(PATIENCE).unwrap();
    // All these blocks wait behind the first one, so they form one group.
    for _ in 1..400 {
        rig.append().unwrap();
    }
    drop(sync_gate);
    // On a slow disk, other events may come in between.
    let mut largest = 0;
    loop {
        if let Event::Durable { blocks, chain, .. } = rig.event() {
            largest = largest.max(blocks);
            if chain == rig.source.chain() {
                break;
            }
        }
    }
    assert_eq!(largest, 399);
    assert_crash_proof(folder.path(), &rig.appended);
    rig.append_durably(1);
    assert_eq!(first_number(folder.path()), 400);
    assert_crash_proof(folder.path(), &rig.appended);
}

/// Appends blocks, with pauses, until a sync starts that no block waits for. `then` runs before
/// that sync. Returns the event that arrived meanwhile.
fn until_a_quiet_sync(
    data: &Path,
    then: impl Fn() -> io::Result<()> + Send + Sync + 'static,
) -> (Rig, Option<Event>) {
    let syncs_requested = Arc::new(AtomicBool::new(true));
    let quiet = Arc::new(AtomicBool::new(false));
    let (hook_syncs, hook_quiet) = (Arc::clone(&syncs_requested), Arc::clone(&quiet));
    let options = Options {
        stall_after: Duration::from_millis(20),
        hooks: Hooks {
            sync: Some(Arc::new(move || {
                if hook_syncs.load(Ordering::SeqCst) || hook_quiet.swap(true, Ordering::SeqCst) {
                    return Ok(());
                }
                then()
            })),
            ..Hooks::default()
        },
        ..Options::default()
    };
    let (mut rig, _) = Rig::start(data, &options);
    let started = Instant::now();
    loop {
        assert!(
            started.elapsed() < PATIENCE,
            "the store never used a quiet moment"
        );
        syncs_requested.store(true, Ordering::SeqCst);
        rig.append_durably(1);
        syncs_requested.store(false, Ordering::SeqCst);
        let event = rig.events.recv_timeout(Duration::from_millis(60)).ok();
        if quiet.load(Ordering::SeqCst) {
            return (rig, event);
        }
    }
}

#[test]
fn a_quiet_moment_is_used_to_start_the_wal_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mut rig, _) = until_a_quiet_sync(folder.path(), || Ok(()));
    let bytes = fs::read(segment(folder.path()).join("tail")).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    assert!(used > 1 << 19, "{used}");
    assert_eq!(
        first_number(folder.path()),
        0,
        "the first frame must not be overwritten yet"
    );
    assert_crash_proof(folder.path(), &rig.appended);
    // The sync ends at some time. The first block after it is written at the beginning.
    while first_number(folder.path()) == 0 {
        rig.append_durably(1);
        assert_crash_proof(folder.path(), &rig.appended);
    }
    assert_eq!(
        first_number(folder.path()),
        rig.source.chain().next_block - 1
    );
}

#[test]
fn a_hanging_store_delays_blocks_only_if_the_wal_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let (sync_gate, opened) = mpsc::channel::<()>();
    let opened = Mutex::new(opened);
    let hang = move || {
        let _ = opened.lock().unwrap().recv();
        Ok(())
    };
    let (mut rig, event) = until_a_quiet_sync(folder.path(), hang);
    assert!(event.is_none(), "{event:?}");
    rig.append_durably(5);
    assert_crash_proof(folder.path(), &rig.appended);
    let mut events = Vec::new();
    while !events
        .iter()
        .any(|event| matches!(event, Event::Stalled { .. }))
    {
        rig.append().unwrap();
        events.extend(rig.events.recv_timeout(Duration::from_millis(60)));
    }
    assert!(rig.journal.stalled());
    let mut event = None;
    drop(sync_gate);
    while !matches!(event, Some(Event::Healthy { .. })) {
        event = Some(rig.event());
    }
    rig.wait_durable(rig.source.chain());
    rig.append_durably(1);
    assert_crash_proof(folder.path(), &rig.appended);
}

#[test]
fn acknowledged_blocks_survive_a_later_failure_of_sled() {
    let folder = tempfile::tempdir().unwrap();
    let full = || Err(io::Error::from_raw_os_error(28));
    let (mut rig, event) = until_a_quiet_sync(folder.path(), full);
    let failure = match event {
        Some(Event::Failed(failure)) => failure,
        _ => rig.wait_failed(),
    };
    assert!(matches!(failure, Failure::DiskFull(_)), "{failure:?}");
    assert_crash_proof(folder.path(), &rig.appended);
    rig.roll();
    rig.append_durably(1);
    drop(rig.journal);
    assert!(
        segment(folder.path()).join("tail").exists(),
        "the WAL of the failed segment is still needed"
    );
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.problems, []);
    let states: Vec<_> = report.segments.iter().map(|s| s.state).collect();
    assert_eq!(states, [SegmentState::Unsealed, SegmentState::Sealed]);
}
