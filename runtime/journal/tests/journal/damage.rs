//! Damaged, torn and rolled-back journals are reported as such, and are trusted only as far as they
//! verify.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use windvane_journal::{Mark, Options, Recovered, Verdict, open, verify};
use windvane_model::record::Block;

use super::support::{Rig, Rng, Source, copy, is_back, locked, times};

/// A journal of two segments as a crash leaves it, but with the newest mark, and the blocks of the
/// second segment. `early-mark` is the mark at the beginning of that segment. The sibling folder
/// `live` has the same journal, closed properly.
fn crashed(folder: &Path) -> (PathBuf, Vec<Block>) {
    let (live, left) = (folder.join("live"), folder.join("left"));
    let (mut rig, _) = Rig::start(&live, &Options::default());
    rig.append_durably(10);
    rig.roll();
    rig.wait_durable(rig.source.chain());
    fs::copy(live.join("mark"), live.join("early-mark")).unwrap();
    rig.append_durably(120);
    copy(&live, &left);
    drop(rig.journal); // writes the mark
    fs::copy(live.join("mark"), left.join("mark")).unwrap();
    (left, rig.appended.split_off(10))
}

fn reopened(path: &Path) -> Recovered {
    open(locked(path)).unwrap().1
}

/// Checks that a trusted journal reaches the mark, and that all returned blocks are blocks that
/// were appended.
fn assert_sound(mut recovered: Recovered, appended: &[Block], mark: &Mark, case: &str) {
    let verdict = recovered.verdict.clone();
    let found = recovered.found;
    if verdict.is_authority() {
        assert!(
            found.next_block >= mark.chain.next_block,
            "{case}: {verdict:?}"
        );
        assert_eq!(recovered.segment, Some(mark.segment), "{case}: {verdict:?}");
    }
    assert_ne!(verdict, Verdict::Fresh, "{case}");
    assert!(
        recovered.next.last_record >= mark.chain.last_record,
        "{case}"
    );
    if recovered.segment == Some(mark.segment) {
        let blocks: Vec<_> = recovered.blocks.by_ref().collect();
        let same = is_back(
            blocks.clone(),
            &appended[..blocks.len().min(appended.len())],
        );
        assert!(same, "{case}: other blocks");
    }
}

#[test]
fn random_damage_never_panics_or_hides_lost_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let (left, appended) = crashed(folder.path());
    let mark = reopened(&left).mark.unwrap();
    let mut rng = Rng(0x9e37_79b9);
    let mut verdicts = [0; 5];
    for case in 0..times("WINDVANE_DAMAGES", 120) {
        let path = folder.path().join("case");
        copy(&left, &path);
        let what = damage(&path.join("journal/00000002"), &mut rng);
        let case = format!("case {case}: {what}");
        let recovered = catch_unwind(|| reopened(&path)).unwrap_or_else(|_| panic!("{case}"));
        verdicts[match recovered.verdict {
            Verdict::Fresh => 0,
            Verdict::Clean => 1,
            Verdict::Torn { .. } => 2,
            Verdict::RolledBack { .. } => 3,
            Verdict::Damaged { .. } => 4,
        }] += 1;
        assert_sound(recovered, &appended, &mark, &case);
        // The remaining journal can be continued.
        let (mut rig, _) = Rig::start(&path, &Options::default());
        rig.append_durably(1);
        drop(rig.journal);
        assert_eq!(reopened(&path).verdict, Verdict::Clean, "{case}");
        fs::remove_dir_all(path).unwrap();
    }
    println!("fresh, clean, torn, rolled back, damaged: {verdicts:?}");
    assert!(
        verdicts[1] > 0 && verdicts[3] + verdicts[4] > 0,
        "{verdicts:?}"
    );
}

/// Damages one file of a segment in a random way. Returns a description.
fn damage(segment: &Path, rng: &mut Rng) -> String {
    let mut files: Vec<PathBuf> = [segment.to_owned(), segment.join("blobs")]
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    // The log and the WAL contain the blocks, so most of the damage goes to them.
    let large = [segment.join("db"), segment.join("tail")];
    let file = match rng.below(5) {
        0 | 1 => &large[0],
        2 | 3 => &large[1],
        _ => &files[rng.below(files.len())],
    };
    let mut bytes = fs::read(file).unwrap();
    let at = rng.below(bytes.len() + 1);
    let what = match rng.below(4) {
        0 => {
            bytes.truncate(at);
            "cut"
        }
        1 => {
            let end = (at + rng.below(100_000)).min(bytes.len());
            bytes[at..end].fill(0);
            "zeroed"
        }
        2 => {
            for _ in 0..20 {
                let at = rng.below(bytes.len());
                bytes[at] ^= 1 << rng.below(8);
            }
            "bits flipped"
        }
        _ => {
            let end = (at + rng.below(20_000)).min(bytes.len());
            bytes[at..end].fill_with(|| rng.below(256) as u8);
            "garbled"
        }
    };
    fs::write(file, bytes).unwrap();
    format!("{} {what} at {at}", file.display())
}

type Change = fn(&sled::Db);

/// Changes rows so that the storage itself reports no error. The rows are written to a new
/// database, because a database that is opened twice may lose content.
fn tamper(left: &Path, change: Change) {
    let (segment, again) = (left.join("journal/00000002"), left.join("again"));
    let held = sled::open(&segment).unwrap();
    change(&held);
    let db = sled::open(&again).unwrap();
    db.import(held.export());
    db.flush().unwrap();
    drop((held, db));
    fs::copy(segment.join("market"), again.join("market")).unwrap();
    fs::remove_dir_all(&segment).unwrap();
    fs::rename(again, segment).unwrap();
}

fn key(block: u64) -> Vec<u8> {
    [&b"b"[..], &block.to_be_bytes(), &[0, 0]].concat()
}

#[test]
fn a_changed_or_missing_block_ends_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let (_, appended) = crashed(folder.path());
    let left = folder.path().join("live");
    let changes: [(&str, Change); 3] = [
        ("block 50", |db| {
            let mut value = db.get(key(50)).unwrap().unwrap().to_vec();
            let last = value.len() - 1;
            value[last] ^= 1;
            db.insert(key(50), value).unwrap();
        }),
        ("block 50", |db| {
            let other = db.get(key(49)).unwrap().unwrap();
            db.insert(key(50), other).unwrap();
        }),
        ("is missing", |db| drop(db.remove(key(50)).unwrap())),
    ];
    for (i, (words, change)) in changes.into_iter().enumerate() {
        let path = folder.path().join(format!("case-{i}"));
        copy(&left, &path);
        tamper(&path, change);
        // A change before the mark is a loss. After the mark it only affects records that were not
        // acknowledged.
        for mark in ["mark", "early-mark"] {
            fs::copy(left.join(mark), path.join("mark")).unwrap();
            let recovered = reopened(&path);
            let (Verdict::Torn { problem } | Verdict::Damaged { problem, .. }) = &recovered.verdict
            else {
                panic!("{:?}", recovered.verdict);
            };
            assert!(problem.contains(words), "{problem}");
            assert_eq!(recovered.verdict.is_authority(), mark == "early-mark");
            assert_eq!(recovered.found.next_block, 50);
            assert!(is_back(recovered.blocks, &appended[..40]));
        }
        let problem = verify(&path).unwrap().problems.swap_remove(0);
        assert_eq!(problem.segment, Some(2));
        assert!(problem.what.contains(words), "{problem:?}");
    }
}

#[test]
fn a_segment_without_a_wal_of_format_1_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (_, appended) = crashed(folder.path());
    let live = folder.path().join("live");
    tamper(&live, |db| drop(db.remove(b"z").unwrap()));
    let Verdict::Torn { problem } = reopened(&live).verdict else {
        panic!("an unsealed segment without a WAL must not be complete in this format");
    };
    assert_eq!(problem, "its WAL is missing");
    tamper(&live, |db| {
        let mut meta = db.get(b"m").unwrap().unwrap().to_vec();
        meta[..4].copy_from_slice(&1_u32.to_le_bytes());
        db.insert(b"m", meta).unwrap();
    });
    let recovered = reopened(&live);
    assert_eq!(recovered.verdict, Verdict::Clean);
    assert!(!recovered.sealed);
    assert!(is_back(recovered.blocks, &appended));
    tamper(&live, |db| {
        let mut meta = db.get(b"m").unwrap().unwrap().to_vec();
        meta[0] = 9;
        db.insert(b"m", meta).unwrap();
    });
    let problem = verify(&live).unwrap().problems.swap_remove(0).what;
    assert!(problem.starts_with("its format is 9"), "{problem}");
}

#[test]
fn a_journal_that_differs_from_the_mark_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let (left, _) = crashed(folder.path());
    let other = folder.path().join("other");
    let (mut rig, _) = Rig::start(&other, &Options::default());
    rig.append_durably(1);
    rig.source = Source::new(rig.source.chain(), 999);
    rig.append_durably(9);
    rig.roll();
    rig.append_durably(130);
    drop(rig);
    fs::copy(left.join("early-mark"), other.join("mark")).unwrap();
    let verdict = reopened(&other).verdict;
    assert!(matches!(&verdict, Verdict::Damaged { .. }), "{verdict:?}");
}

#[test]
fn a_truncated_snapshot_or_settings_file_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (left, appended) = crashed(folder.path());
    let segment = left.join("journal/00000002");
    fs::write(segment.join("conf"), "").unwrap();
    fs::write(segment.join("snap.0000000000001000"), "").unwrap();
    let recovered = reopened(&left);
    assert_eq!(recovered.verdict, Verdict::Clean);
    assert!(is_back(recovered.blocks, &appended));
}

#[test]
fn reading_changes_nothing_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (left, _) = crashed(folder.path());
    let db = left.join("journal/00000002/db");
    let mut bytes = fs::read(&db).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 5_000].fill(7);
    fs::write(&db, &bytes).unwrap();
    verify(&left).unwrap();
    reopened(&left);
    let stands = [
        left.join("journal/00000002/db"),
        left.join("journal/00000002.damaged-1/db"),
    ];
    let after = stands.iter().find_map(|path| fs::read(path).ok()).unwrap();
    assert!(after == bytes, "the damaged log was changed");
}

#[test]
fn a_rolled_back_journal_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let live = folder.path().join("live");
    let old = folder.path().join("old");
    let (mut rig, _) = Rig::start(&live, &Options::default());
    rig.append_durably(10);
    let then = rig.source.chain();
    copy(&live.join("journal"), &old);
    rig.append_durably(10);
    let now = rig.journal.close().unwrap();
    fs::remove_dir_all(live.join("journal")).unwrap();
    copy(&old, &live.join("journal"));

    let recovered = reopened(&live);
    let mark = recovered.mark.unwrap();
    assert_eq!(mark.chain, now);
    let expected = Verdict::RolledBack { mark, found: then };
    assert_eq!(recovered.verdict, expected);
    assert_eq!(recovered.next, now, "no sequence is used twice");
    let report = verify(&live).unwrap();
    let problem = &report.first_problem().unwrap().what;
    assert!(
        problem.contains("was durable and is not there"),
        "{problem}"
    );

    // A missing journal folder must not look like a first start.
    fs::remove_dir_all(live.join("journal")).unwrap();
    assert!(matches!(
        reopened(&live).verdict,
        Verdict::RolledBack { .. }
    ));
}

#[test]
fn records_missing_between_segments_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let (mut rig, _) = Rig::start(folder.path(), &Options::default());
        rig.append_durably(4);
    }
    fs::remove_dir_all(folder.path().join("journal/00000002")).unwrap();
    let report = verify(folder.path()).unwrap();
    let problem = report.first_problem().unwrap();
    assert_eq!(problem.segment, Some(3));
    assert!(
        problem.what.starts_with("blocks 4 to 7 (records "),
        "{problem:?}"
    );
}

#[test]
fn an_unreadable_segment_is_put_aside() {
    let folder = tempfile::tempdir().unwrap();
    let (left, _) = crashed(folder.path());
    fs::write(left.join("journal/00000002/db"), [7; 4096]).unwrap();
    let recovered = reopened(&left);
    assert!(matches!(recovered.verdict, Verdict::Damaged { .. }));
    assert_eq!(recovered.segment, Some(1));
    assert_eq!(recovered.repairs.len(), 1);
    assert!(left.join("journal/00000002.damaged-1/db").is_file());
    let (rig, _) = Rig::start(&left, &Options::default());
    drop(rig);
    assert!(
        left.join("journal/00000003").is_dir(),
        "the number of the segment must not be used again"
    );
}

#[test]
fn without_a_valid_mark_a_journal_counts_as_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let (left, appended) = crashed(folder.path());
    for content in [Some("garbage"), None] {
        match content {
            Some(content) => fs::write(left.join("mark"), content).unwrap(),
            None => assert!(
                !left.join("mark").exists(),
                "the damaged mark was put aside before"
            ),
        }
        let recovered = reopened(&left);
        assert!(matches!(recovered.verdict, Verdict::Damaged { .. }));
        assert_eq!(recovered.blocks.len(), appended.len());
    }
}

#[test]
fn an_interrupted_start_keeps_the_segment_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let (left, appended) = crashed(folder.path());
    for leftover in ["00000003", "scratch-xyz"] {
        fs::create_dir(left.join("journal").join(leftover)).unwrap();
    }
    let recovered = reopened(&left);
    assert_eq!(recovered.verdict, Verdict::Clean);
    assert!(is_back(recovered.blocks, &appended));
    assert!(left.join("journal/00000003.unfinished-1").is_dir());
    assert!(!left.join("journal/scratch-xyz").exists());
}

/// The way to put something else in the place of a file.
type Replace = fn(&Path);

fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

fn endless_device(path: &Path) {
    std::os::unix::fs::symlink("/dev/zero", path).unwrap();
}

/// A file that needs no space on the disk, and would fill the memory.
fn sparse_file(path: &Path) {
    fs::File::create(path).unwrap().set_len(1 << 40).unwrap();
}

/// Reading a pipe without a writer would wait forever, and the other two would fill the memory.
#[test]
fn a_file_that_is_no_file_of_ours_never_holds_the_start() {
    const KINDS: [(&str, Replace); 3] = [
        ("pipe", pipe),
        ("device", endless_device),
        ("sparse", sparse_file),
    ];
    let folder = tempfile::tempdir().unwrap();
    let (left, _) = crashed(folder.path());
    let segment = "journal/00000002";
    let in_segment = [
        "tail",
        "db",
        "market",
        "blobs/7",
        "records.zst",
        "market.zst",
    ];
    let mut names: Vec<_> = in_segment.map(|it| format!("{segment}/{it}")).to_vec();
    names.extend(["lock", "epoch", "mark", "latch", "bans", "ledger"].map(str::to_owned));
    for name in names {
        for (kind, replace) in KINDS {
            let path = folder
                .path()
                .join(format!("{}-{kind}", name.replace('/', "-")));
            copy(&left, &path);
            let file = path.join(&name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&file);
            replace(&file);
            let (done, ended) = std::sync::mpsc::channel();
            let opened = path.clone();
            std::thread::spawn(move || {
                let verdict = windvane_journal::Directory::lock(&opened)
                    .map_err(|error| error.to_string())
                    .and_then(|own| {
                        let open = open(std::sync::Arc::new(own));
                        open.map(|(_, it)| it.verdict)
                            .map_err(|error| error.to_string())
                    });
                done.send(verdict).unwrap();
            });
            let verdict = ended.recv_timeout(super::support::PATIENCE);
            let verdict = verdict.unwrap_or_else(|_| panic!("{name} as a {kind} holds the start"));
            let text = format!("{verdict:?}");
            if ["mark", "records.zst", "lock"]
                .iter()
                .any(|it| name.ends_with(it))
            {
                let is_whole = kind == "sparse" && name == "lock";
                let named = text.contains(name.rsplit('/').next().unwrap());
                assert!(named || is_whole, "{name} as a {kind}: {text}");
            }
        }
    }
}
