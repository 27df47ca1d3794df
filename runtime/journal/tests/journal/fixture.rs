//! Files that earlier programs of each format left: a packed segment, a segment that was killed and
//! packed without some market parts, an open segment, and a ledger.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use windvane_journal::{Options, Verdict, ledger, open, segment, segments, verify};

use super::support::{Rig, copy, locked};

fn stored() -> PathBuf {
    stored_in(3)
}

/// The folder that a program of this format left.
fn stored_in(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixture-{format}"))
}

/// A description of the content of a journal.
fn content(data: &Path) -> String {
    let mut content = String::new();
    for number in segments(data).unwrap() {
        let read = segment(data, number).unwrap();
        let (sealed, lost, tear) = (read.sealed, read.lost.clone(), read.tear.clone());
        let blocks: Vec<_> = read.blocks.collect();
        let market: usize = blocks
            .iter()
            .filter_map(|block| block.market.as_ref())
            .map(Vec::len)
            .sum();
        let hash = hex::encode(blocks.last().unwrap().hash);
        writeln!(
            content,
            "segment {number}: sealed {sealed}, {} blocks, {market} bytes of market parts, lost {lost:?}, \
             tear {tear:?}, last hash {hash}",
            blocks.len()
        )
        .unwrap();
    }
    for entry in ledger(data).unwrap() {
        let lines = String::from_utf8(entry.lines).unwrap();
        writeln!(content, "ledger {}: {lines:?}", entry.segment).unwrap();
    }
    content
}

#[test]
fn the_files_of_this_version_stay_readable() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    copy(&stored().join("data"), &data);
    let expected = fs::read_to_string(stored().join("words.txt")).unwrap();
    assert_eq!(content(&data), expected);
    let problems = verify(&data).unwrap().problems;
    assert_eq!(problems, []);
    let (_, recovered) = open(locked(&data)).unwrap();
    assert_eq!(recovered.verdict, Verdict::Clean);
    assert_eq!(locked(&data).ledger().unwrap().last(), Some(2));
    // The journal can be continued.
    let (mut rig, _) = Rig::start(&data, &Options::default());
    rig.append_durably(3);
    drop(rig.journal);
    assert_eq!(verify(&data).unwrap().problems, []);
}

/// Recorded with the journal of the parent of commit ca2d05f: two segments that are only in sled,
/// without a WAL. The first has its seal, so it ended in order; the second was open when its
/// process was killed. Folders of format 2 are in `tests/fixtures` of the repository.
#[test]
fn a_journal_of_format_1_can_be_read_and_continued() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    copy(&stored_in(1).join("data"), &data);
    let blocks = |number| segment(&data, number).unwrap().blocks.len();
    assert_eq!(
        [blocks(1), blocks(2)],
        [6, 6],
        "block counts of the program that recorded the fixture"
    );
    let expected = fs::read_to_string(stored_in(1).join("words.txt")).unwrap();
    assert_eq!(content(&data), expected);
    assert_eq!(verify(&data).unwrap().problems, []);
    let (mut rig, recovered) = Rig::start(&data, &Options::default());
    assert_eq!(recovered.verdict, Verdict::Clean);
    assert_eq!((recovered.segment, recovered.blocks.len()), (Some(2), 6));
    rig.append_durably(3);
    drop(rig.journal);
    assert_eq!(segments(&data).unwrap(), [1, 2, 3]);
    assert_eq!(verify(&data).unwrap().problems, []);
}

/// Records the fixture again: `cargo test -p windvane-journal record_the_fixture -- --ignored`.
#[test]
#[ignore = "writes the fixture"]
fn record_the_fixture() {
    let folder = tempfile::tempdir().unwrap();
    let (live, left) = (folder.path().join("live"), stored().join("data"));
    let (mut rig, _) = Rig::start(&live, &Options::default());
    rig.append_durably(12);
    rig.roll();
    rig.append_durably(12);
    // Simulates a kill and a loss of power.
    let killed = folder.path().join("killed");
    copy(&live, &killed);
    fs::write(killed.join("journal/00000002/market"), []).unwrap();
    drop(rig.journal);
    fs::copy(live.join("mark"), killed.join("mark")).unwrap();
    let (mut rig, _) = Rig::start_as(&killed, &Options::default());
    rig.append_durably(12);
    for number in 1..=2 {
        while killed.join(format!("journal/{number:08x}/db")).exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
    let mut book = rig.journal.directory().ledger().unwrap();
    book.enter(1, b"{\"row\":\"order\"}\n{\"row\":\"fill\"}\n")
        .unwrap();
    book.enter(2, b"").unwrap();
    let _ = fs::remove_dir_all(&left);
    copy(&killed, &left);
    drop(rig.journal);
    fs::copy(killed.join("mark"), left.join("mark")).unwrap();
    fs::remove_file(left.join("lock")).unwrap();
    fs::write(stored().join("words.txt"), content(&left)).unwrap();
}
