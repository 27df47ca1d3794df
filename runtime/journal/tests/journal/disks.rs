//! Disks that are full, hang, fail or accept no writes.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use windvane_journal::{
    AppendError, Directory, Event, Failure, Hooks, LockError, Options, Verdict, open, verify,
};
use windvane_model::kill_switch::{StoredKillSwitch, StoredKillSwitches};

use super::support::{Rig, child, child_folder, locked};

/// Options whose sync fails with this system error while it is not 0.
fn failing() -> (Options, Arc<AtomicI32>) {
    let code = Arc::new(AtomicI32::new(0));
    let hook = Arc::clone(&code);
    let options = Options {
        hooks: Hooks {
            sync: Some(Arc::new(move || match hook.load(Ordering::SeqCst) {
                0 => Ok(()),
                code => Err(io::Error::from_raw_os_error(code)),
            })),
            ..Hooks::default()
        },
        ..Options::default()
    };
    (options, code)
}

#[test]
fn a_failed_sync_acknowledges_nothing_until_a_new_segment() {
    let folder = tempfile::tempdir().unwrap();
    let (options, code) = failing();
    let (mut rig, _) = Rig::start(folder.path(), &options);
    rig.append_durably(5);
    code.store(28, Ordering::SeqCst);
    rig.append().unwrap();
    assert!(matches!(rig.wait_failed(), Failure::DiskFull(_)));
    let refused = rig.append();
    assert!(matches!(
        refused,
        Err(AppendError::Failed(Failure::DiskFull(_)))
    ));

    // The disk is still full: the new segment fails too, with the same error.
    rig.roll();
    assert!(matches!(rig.wait_failed(), Failure::DiskFull(_)));
    code.store(0, Ordering::SeqCst);
    for _ in 0..3 {
        rig.source.block(); // blocks that the engine made meanwhile; the checkpoint contains them
    }
    rig.roll();
    let healed = rig.source.chain();
    rig.append_durably(5);
    let end = rig.source.chain();
    assert_eq!(rig.journal.close().unwrap(), end);

    let report = verify(folder.path()).unwrap();
    let problems = report.problems;
    assert_eq!(problems.len(), 1, "the gap must be reported: {problems:?}");
    assert!(problems[0].what.contains("are missing before it"));
    let numbers: Vec<_> = report.segments.iter().map(|s| s.number).collect();
    assert_eq!(numbers, [1, 3], "the failed segment must be removed");
    let (_, recovered) = open(locked(folder.path())).unwrap();
    assert_eq!(recovered.verdict, Verdict::Clean);
    assert_eq!((recovered.base, recovered.found), (healed, end));
}

#[test]
fn closing_a_failed_journal_returns_the_failure() {
    let folder = tempfile::tempdir().unwrap();
    let (options, code) = failing();
    let (mut rig, _) = Rig::start(folder.path(), &options);
    code.store(30, Ordering::SeqCst);
    rig.append().unwrap();
    assert!(matches!(rig.wait_failed(), Failure::ReadOnly(_)));
    assert!(matches!(rig.journal.close(), Err(Failure::ReadOnly(_))));
}

#[test]
fn a_hanging_sync_is_reported_while_it_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let (hang, hangs) = mpsc::channel::<mpsc::Receiver<()>>();
    let hangs = Mutex::new(hangs);
    let options = Options {
        stall_after: Duration::from_millis(20),
        hooks: Hooks {
            sync: Some(Arc::new(move || {
                if let Ok(sync_gate) = hangs.lock().unwrap().try_recv() {
                    let _ = sync_gate.recv();
                }
                Ok(())
            })),
            ..Hooks::default()
        },
        ..Options::default()
    };
    let (mut rig, _) = Rig::start(folder.path(), &options);
    for _ in 0..2 {
        let (sync_gate, opened) = mpsc::channel();
        hang.send(opened).unwrap();
        rig.append().unwrap();
        // An earlier write may have been slow without hanging, so only the present report counts.
        let waiting = loop {
            match rig.event() {
                Event::Stalled { waiting } if rig.journal.stalled() => break waiting,
                Event::Durable { .. } => panic!("durable while its sync hangs"),
                _ => {}
            }
        };
        assert!(waiting >= Duration::from_millis(20));
        assert!(
            rig.events.try_recv().is_err(),
            "no event is expected while the sync hangs"
        );
        drop(sync_gate);
        let Event::Healthy { stalled } = rig.event() else {
            panic!("the healthy event must come first");
        };
        assert!(stalled >= waiting);
        rig.wait_durable(rig.source.chain());
        assert!(!rig.journal.stalled());
    }
}

/// Fills its disk, and recovers when there is space again. The surrounding script limits the disk.
#[test]
fn filler() {
    let Some(folder) = child_folder() else {
        return; // runs only as the child process of the tests below
    };
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![1; 2_000_000]).unwrap();
    let (mut rig, _) = Rig::start(&folder, &Options::default());
    let mut durable = rig.source.chain();
    let failure = loop {
        match rig.append() {
            // The event reports a failure, and must not remain in the queue for the next wait.
            Ok(()) | Err(AppendError::Full { .. } | AppendError::Failed(_)) => {}
            Err(error) => panic!("{error}"),
        }
        match rig.event() {
            Event::Durable { chain, .. } => durable = chain,
            Event::Failed(failure) => break failure,
            _ => {}
        }
    };
    assert!(matches!(failure, Failure::DiskFull(_)), "{failure}");
    assert!(durable.last_record > 10, "{durable:?}");
    rig.journal.directory().kill_switch();
    std::fs::remove_file(ballast).unwrap();
    rig.roll();
    rig.wait_durable(rig.source.chain());
    rig.append_durably(2);
    let end = rig.journal.close().unwrap();

    let positions = format!("{} {}", durable.last_record, end.last_record);
    std::fs::write(folder.join("said"), positions).unwrap();
}

/// Checks the journal that the filler left.
#[test]
fn checker() {
    let Some(folder) = child_folder() else {
        return; // runs only as the child process of the tests below
    };
    let positions = std::fs::read_to_string(folder.join("said")).unwrap();
    let (durable, end) = positions.split_once(' ').unwrap();
    let report = verify(&folder).unwrap();
    let mut gaps = report.problems.iter().map(|p| &p.what);
    assert!(
        gaps.all(|gap| gap.contains("are missing before it")),
        "{report:?}"
    );
    let kept = report.segments[0].end.last_record;
    assert!(kept >= durable.parse().unwrap(), "{kept} of {durable}");
    let (_, recovered) = open(locked(&folder)).unwrap();
    assert_eq!(recovered.verdict, Verdict::Clean);
    assert_eq!(recovered.found.last_record, end.parse().unwrap());
    println!("filled and recovered");
}

/// Runs a child in a script. Returns false if this machine does not permit the script.
fn run(test: &str, folder: &Path, script: &str) -> bool {
    let output = child(test, folder, script).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        return false;
    }
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(
        text.contains("filled and recovered") || text.contains("read and refused"),
        "{text}"
    );
    true
}

#[test]
fn a_full_disk_gives_its_error_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=5m,mode=0700 tmpfs \"$WINDVANE_JOURNAL_CHILD\" || exit 77; \
                  \"$@\" && exec \"$1\" disks::checker --exact --nocapture";
    if !in_own_mounts("disks::filler", folder.path(), script) {
        println!(
            "SKIPPED: this machine does not permit mounting a small disk; a file size limit is \
             tested"
        );
    }
}

#[test]
fn a_file_size_limit_gives_its_error_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    // In blocks of 512 bytes: large enough for the ballast, too small for many blocks.
    let script = "(trap '' XFSZ; ulimit -f 4000 && \"$@\") && \
                  exec \"$1\" disks::checker --exact --nocapture";
    assert!(run("disks::filler", folder.path(), script));
}

/// Runs a script with its own mounts. Returns false if that is not permitted.
fn in_own_mounts(test: &str, folder: &Path, script: &str) -> bool {
    let may = Command::new("unshare").args(["-rm", "true"]).status();
    if !may.is_ok_and(|status| status.success()) {
        return false;
    }
    run(
        test,
        folder,
        &format!(
            "exec unshare -rm sh -c '{}' sh \"$@\"",
            script.replace('\'', "'\\''")
        ),
    )
}

/// Works on a disk that accepts no writes. The surrounding script made it read-only.
#[test]
fn reader() {
    let Some(folder) = child_folder() else {
        return; // runs only as the child process of the test below
    };
    let error = Directory::lock(&folder).unwrap_err();
    assert!(matches!(error, LockError::Io { .. }), "{error}");
    assert!(
        error.to_string().contains("cannot be used as data_dir"),
        "{error}"
    );
    let report = verify(&folder).unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(report.segments.len(), 1);
    println!("read and refused");
}

#[test]
fn a_read_only_disk_can_be_verified_but_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let (mut rig, _) = Rig::start(folder.path(), &Options::default());
    rig.append_durably(5);
    drop(rig);
    let script = "mount --bind \"$WINDVANE_JOURNAL_CHILD\" \"$WINDVANE_JOURNAL_CHILD\" && \
                  mount -o remount,bind,ro \"$WINDVANE_JOURNAL_CHILD\" || exit 77; exec \"$@\"";
    if !in_own_mounts("disks::reader", folder.path(), script) {
        println!("SKIPPED: this machine does not permit mounting a read-only disk");
    }
}

#[test]
fn the_kill_switch_survives_a_lost_journal() {
    let folder = tempfile::tempdir().unwrap();
    let (rig, _) = Rig::start(folder.path(), &Options::default());
    let reason = "max_drawdown".to_owned();
    let halted = StoredKillSwitches {
        account: StoredKillSwitch::Halted { reason },
        ..StoredKillSwitches::default()
    };
    rig.journal.directory().set_kill_switch(&halted).unwrap();
    drop(rig);
    let journal: PathBuf = folder.path().join("journal");
    std::fs::remove_dir_all(journal).unwrap();
    assert_eq!(locked(folder.path()).kill_switch(), halted);
}
