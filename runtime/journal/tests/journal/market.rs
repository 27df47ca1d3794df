//! Market parts: no order waits for them, their loss loses nothing else, and ended segments are
//! packed with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use windvane_journal::{Event, Hooks, Keep, Options, SegmentState, Verdict, open, segment, verify};
use windvane_model::record::Block;

use super::support::{PATIENCE, Rig, copy, is_back, locked};

fn folder_of(data: &Path, number: u32) -> PathBuf {
    data.join(format!("journal/{number:08x}"))
}

/// Waits until a file exists.
fn wait_for(path: &Path) {
    let started = Instant::now();
    while !path.exists() {
        assert!(
            started.elapsed() < PATIENCE,
            "{} is missing",
            path.display()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn has_market(block: &Block) -> bool {
    block.market.as_ref().is_some_and(|part| !part.is_empty())
}

/// The files after a crash in which all market parts were written, and the blocks.
fn crashed(folder: &Path) -> (PathBuf, Vec<Block>) {
    let (live, left) = (folder.join("live"), folder.join("left"));
    let (mut rig, _) = Rig::start(&live, &Options::default());
    rig.append_durably(60);
    let bytes: usize = rig.appended.iter().map(|block| block.market_len).sum();
    let frames = rig
        .appended
        .iter()
        .filter(|block| has_market(block))
        .count();
    let file = folder_of(&live, 1).join("market");
    let started = Instant::now();
    while fs::metadata(&file).unwrap().len() != (bytes + 12 * frames) as u64 {
        assert!(started.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(2));
    }
    copy(&live, &left);
    drop(rig.journal);
    fs::copy(live.join("mark"), left.join("mark")).unwrap();
    (left, rig.appended)
}

#[test]
fn order_parts_survive_any_loss_of_market_parts() {
    let folder = tempfile::tempdir().unwrap();
    let (left, appended) = crashed(folder.path());
    let file = folder_of(&left, 1).join("market");
    let whole = fs::read(&file).unwrap();
    let (_, recovered) = open(locked(&left)).unwrap();
    assert_eq!(recovered.verdict, Verdict::Clean);
    assert_eq!(recovered.lost, []);
    assert!(
        recovered.blocks.eq(appended.iter().cloned()),
        "all blocks must be complete"
    );
    for cut in [0, 1, whole.len() / 3, whole.len() - 1] {
        fs::write(&file, &whole[..cut]).unwrap();
        let (_, recovered) = open(locked(&left)).unwrap();
        assert_eq!(recovered.verdict, Verdict::Clean, "cut at {cut}");
        let with_market = appended.iter().filter(|block| has_market(block));
        let last = with_market.clone().next_back().unwrap().number;
        assert_eq!(recovered.lost.last().unwrap().1, last);
        let kept = recovered.blocks.filter(has_market).count();
        assert!(kept < with_market.count());
        let (_, recovered) = open(locked(&left)).unwrap();
        assert!(is_back(recovered.blocks, &appended));
    }
    fs::remove_file(&file).unwrap();
    let (_, recovered) = open(locked(&left)).unwrap();
    assert_eq!(recovered.verdict, Verdict::Clean);
    assert!(is_back(recovered.blocks, &appended));
    let report = verify(&left).unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(report.segments[0].state, SegmentState::Unsealed);
    assert!(!report.segments[0].lost.is_empty());
}

#[test]
fn a_sealed_segment_must_have_all_market_parts() {
    let folder = tempfile::tempdir().unwrap();
    let (mut rig, _) = Rig::start(folder.path(), &Options::default());
    rig.append_durably(30);
    drop(rig.journal);
    let file = folder_of(folder.path(), 1).join("market");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    let problem = verify(folder.path()).unwrap().problems.swap_remove(0).what;
    assert!(
        problem.starts_with("the market records of blocks"),
        "{problem}"
    );
    let (_, recovered) = open(locked(folder.path())).unwrap();
    assert!(
        recovered.verdict.is_authority(),
        "the order parts must be complete"
    );
    assert_eq!(recovered.lost.len(), 1);
    assert!(is_back(recovered.blocks, &rig.appended));
}

#[test]
fn a_packed_segment_has_the_same_content() {
    let folder = tempfile::tempdir().unwrap();
    let (mut rig, _) = Rig::start_as(folder.path(), &Options::default());
    for _ in 0..3 {
        rig.append_durably(40);
        rig.roll();
        rig.wait_durable(rig.source.chain());
    }
    while !matches!(rig.event(), Event::Packed { segment: 3 }) {}
    rig.append_durably(1);
    for number in 1..=3 {
        let names = fs::read_dir(folder_of(folder.path(), number)).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["market.zst", "records.zst"]);
    }
    drop(rig.journal);
    for number in 1..=3_u32 {
        let read = segment(folder.path(), number).unwrap();
        assert!(read.sealed && read.tear.is_none());
        let from = (number as usize - 1) * 40;
        let appended = &rig.appended[from..from + 40];
        assert!(read.blocks.eq(appended.iter().cloned()), "segment {number}");
    }
    assert_eq!(verify(folder.path()).unwrap().problems, []);
}

/// Names and bytes of the files of a folder.
type Files = Vec<(PathBuf, Vec<u8>)>;

fn files(folder: &Path) -> Files {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    all
}

/// Segment 1 of a journal of two: its files in sled's form and in packed form, and its blocks.
fn both_forms(folder: &Path) -> (PathBuf, Files, Files, Vec<Block>) {
    let (mut rig, _) = Rig::start(folder, &Options::default());
    rig.append_durably(40);
    drop(rig.journal);
    let one = folder_of(folder, 1);
    let before = files(&one);
    let appended = rig.appended;
    let (rig, _) = Rig::start_as(folder, &Options::default());
    wait_for(&one.join("records.zst"));
    drop(rig);
    let after = files(&one);
    assert_eq!(after.len(), 2);
    (one, before, after, appended)
}

#[test]
fn a_kill_during_packing_leaves_a_complete_segment() {
    let folder = tempfile::tempdir().unwrap();
    let (one, before, after, appended) = both_forms(folder.path());
    let write = |files: &[(PathBuf, Vec<u8>)]| {
        fs::remove_dir_all(&one).unwrap();
        fs::create_dir_all(one.join("blobs")).unwrap();
        for (path, bytes) in files {
            fs::write(path, bytes).unwrap();
        }
    };
    let of = |name: &str| {
        after
            .iter()
            .find(|(path, _)| path.ends_with(name))
            .unwrap()
            .clone()
    };
    let (market, records) = (of("market.zst"), of("records.zst"));
    let aside = |(path, bytes): &(PathBuf, Vec<u8>), len: usize| {
        let path = path.with_extension("zst.new");
        (path, bytes[..len.min(bytes.len())].to_vec())
    };
    let mut images: Vec<Files> = Vec::new();
    for len in [0, 30, usize::MAX] {
        let mut files = before.clone();
        files.extend([aside(&market, len), aside(&records, len)]);
        images.push(files);
    }
    let mut renamed = before.clone();
    renamed.extend([market.clone(), aside(&records, usize::MAX)]);
    images.push(renamed.clone());
    for gone in 0..=before.len() {
        let mut files = before[gone..].to_vec();
        files.extend([market.clone(), records.clone()]);
        images.push(files);
    }
    for (at, image) in images.iter().enumerate() {
        write(image);
        let read = segment(folder.path(), 1).unwrap();
        assert!(
            read.sealed && read.tear.is_none(),
            "image {at}: {:?}",
            read.tear
        );
        assert!(read.blocks.eq(appended.iter().cloned()), "image {at}");
        // The next start finishes the packing.
        let (rig, _) = Rig::start_as(folder.path(), &Options::default());
        let started = Instant::now();
        let count = || {
            let entries = fs::read_dir(&one).unwrap().map(|entry| entry.unwrap());
            entries.filter(|entry| entry.path().is_file()).count()
        };
        while count() != 2 {
            assert!(started.elapsed() < PATIENCE, "image {at}");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(rig);
        let read = segment(folder.path(), 1).unwrap();
        assert!(
            read.sealed && read.blocks.eq(appended.iter().cloned()),
            "image {at}"
        );
        assert_eq!(files(&one).len(), 2, "image {at}");
    }
}

#[test]
fn damage_of_a_packed_segment_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (one, _, after, appended) = both_forms(folder.path());
    for (path, bytes) in &after {
        for at in (0..bytes.len()).step_by(1 + bytes.len() / 150) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            fs::write(path, damaged).unwrap();
            match segment(folder.path(), 1) {
                Err(_) => assert!(path.ends_with("records.zst"), "{at}"),
                Ok(read) => {
                    let only_times = (8..24).contains(&at);
                    assert_eq!(read.tear.is_none(), only_times, "{} {at}", path.display());
                    let len = read.blocks.len();
                    assert!(is_back(read.blocks, &appended[..len]));
                }
            }
        }
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(verify(folder.path()).unwrap().problems, []);
    assert!(one.join("records.zst").exists());
}

#[test]
fn old_market_data_is_dropped_before_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let (mut rig, _) = Rig::start_as(folder.path(), &Options::default());
    for _ in 0..4 {
        rig.append_durably(20);
        rig.roll();
        rig.wait_durable(rig.source.chain());
    }
    for number in 1..=4 {
        wait_for(&folder_of(folder.path(), number).join("records.zst"));
    }
    drop(rig.journal);
    let directory = locked(folder.path());
    let keep = Keep {
        bytes: u64::MAX,
        age: Duration::MAX,
        market_age: Duration::from_hours(1),
    };
    let now = SystemTime::now();
    let later = now + Duration::from_hours(2);
    directory.ledger().unwrap().enter(3, b"").unwrap();
    assert_eq!(directory.prune(keep, now).unwrap().markets, []);
    let pruned = directory.prune(keep, later).unwrap();
    assert_eq!((pruned.markets, pruned.segments), (vec![1, 2, 3], vec![]));
    assert_eq!(directory.prune(keep, later).unwrap().markets, []);
    drop(directory);
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.problems, []);
    for number in 1..=3_u32 {
        let read = segment(folder.path(), number).unwrap();
        assert!(read.market_dropped && read.sealed && read.tear.is_none());
        let from = (number as usize - 1) * 20;
        let appended = &rig.appended[from..from + 20];
        assert!(is_back(read.blocks, appended), "segment {number}");
    }
}

#[test]
fn an_order_is_durable_while_the_sync_of_market_parts_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let (began, begins) = mpsc::channel();
    let (release_syncs, sync_gate) = mpsc::channel::<()>();
    let sync_gate = Mutex::new(sync_gate);
    let options = Options {
        hooks: Hooks {
            market: Some(Arc::new(move || {
                let _ = began.send(());
                let _ = sync_gate.lock().unwrap().recv();
                Ok(())
            })),
            ..Hooks::default()
        },
        ..Options::default()
    };
    let (mut rig, _) = Rig::start(folder.path(), &options);
    while !rig.appended.last().is_some_and(has_market) {
        rig.append().unwrap();
    }
    rig.wait_durable(rig.source.chain());
    begins.recv_timeout(PATIENCE).unwrap();
    for _ in 0..20 {
        rig.append().unwrap();
        rig.wait_durable(rig.source.chain());
    }
    drop(release_syncs);
}
