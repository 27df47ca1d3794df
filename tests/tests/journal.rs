//! Tests `windvane journal` of the real binary on the journal of a real run.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use windvane_tests::binary;
use windvane_tests::instance::Instance;
use windvane_tests::segment::damage;
use windvane_tests::venue::Venue;

fn journal(verb: &str, data: &Path, arguments: &[&str]) -> Output {
    let data = data.to_str().unwrap();
    let all = ["journal", verb, data].into_iter();
    binary::run(all.chain(arguments.iter().copied()))
}

fn answer(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn segments(data: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(data.join("journal")).unwrap();
    let mut folders: Vec<_> = folders.map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.file_name().unwrap().len() == 8);
    folders.sort();
    folders
}

#[test]
fn a_journal_is_verified_exported_and_pruned() {
    let venue = Venue::start(&["--seed", "41"]);
    let data = venue.folder().join("data");
    for _ in 0..4 {
        let mut instance = Instance::start(&venue, &data);
        instance.ready();
        instance.until("orders", &|orders| *orders != json!([]));
        let report = journal("verify", &data, &["--json"]);
        assert_eq!(report.status.code(), Some(0));
        let report = answer(&report);
        let last = report["segments"].as_array().unwrap().last().unwrap();
        assert_eq!(last["state"], "in use, left out", "{report}");
        assert_eq!(journal("prune", &data, &[]).status.code(), Some(1));
        instance.kill();
    }
    let report = answer(&journal("verify", &data, &["--json"]));
    assert_eq!(report["whole"], json!(true), "{report}");
    let whole = report["segments"].as_array().unwrap().len();
    assert_eq!(whole, 4);

    let all = lines(&journal("export", &data, &[]));
    let heads: Vec<_> = all.iter().filter(|line| line["head"].is_object()).collect();
    assert_eq!(heads.len(), 4);
    assert_eq!(heads[0]["head"]["strategies"][0]["id"], "maker");
    let records: Vec<_> = all
        .iter()
        .filter(|line| line["sequence"].is_u64())
        .collect();
    // A kill may lose market records that waited for a pause. The export reports the loss at their
    // place.
    let (mut last, mut is_said) = (None, false);
    for line in &all {
        is_said |= line["market_records"] == "lost";
        if let Some(sequence) = line["sequence"].as_u64() {
            let follows = last.is_none_or(|last| sequence == last + 1);
            assert!(
                follows || is_said,
                "records before {sequence} are missing and the export does not report it"
            );
            (last, is_said) = (Some(sequence), false);
        }
    }
    let submitted = records
        .iter()
        .any(|line| line["input"]["intents"][0]["kind"] == "submit");
    let sent = records
        .iter()
        .any(|line| line["effect"]["request"]["Place"].is_object());
    assert!(submitted && sent);

    let some = lines(&journal("export", &data, &["--from", "10", "--to", "20"]));
    let some: Vec<_> = some
        .iter()
        .filter_map(|line| line["sequence"].as_u64())
        .collect();
    assert_eq!(some, (10..20).collect::<Vec<_>>());
    let time = records[records.len() / 2]["time"].as_str().unwrap()[..19].to_owned();
    let out = venue.folder().join("export.jsonl");
    let late = journal(
        "export",
        &data,
        &["--from", &time, "--out", out.to_str().unwrap()],
    );
    assert_eq!(late.status.code(), Some(0));
    let late = std::fs::read_to_string(out).unwrap();
    let late = late
        .lines()
        .filter(|line| line.contains("\"sequence\""))
        .count();
    assert!(late > 0 && late < records.len());

    let beyond = ["--set", "journal.retain_bytes=0", "--json"];
    let dry = answer(&journal(
        "prune",
        &data,
        &[&beyond[..], &["--dry-run"]].concat(),
    ));
    assert_eq!(dry["segments"].as_array().unwrap().len(), whole - 2);
    assert_eq!(segments(&data).len(), whole);
    assert_eq!(journal("prune", &data, &beyond).status.code(), Some(0));
    assert_eq!(segments(&data).len(), 2);

    damage(&segments(&data)[0]);
    let damaged = journal("verify", &data, &[]);
    assert_eq!(damaged.status.code(), Some(4));
    let printed = String::from_utf8_lossy(&damaged.stderr).into_owned();
    assert!(printed.starts_with("differs: segment 0000000"), "{printed}");
}

#[test]
fn unknown_retention_and_a_folder_without_journal_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = journal("verify", folder.path(), &[]);
    assert_eq!(refused.status.code(), Some(2));
    std::fs::create_dir(folder.path().join("journal")).unwrap();
    let refused = journal("prune", folder.path(), &["--set", "journal.retain_weeks=1"]);
    assert_eq!(refused.status.code(), Some(2));
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(printed.contains("retain_weeks"), "{printed}");
}
