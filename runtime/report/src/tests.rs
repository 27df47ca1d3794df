//! Tests of the result files.

use std::fs;
use std::path::Path;

use super::*;

const FILES: [&str; 5] = [
    "equity.csv",
    "fills.csv",
    "orders.csv",
    "report.html",
    "summary.json",
];

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_finished_run_leaves_complete_files() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("a/b");
    let mut writer = ResultWriter::create(&out, &[sample::INSTRUMENT.to_owned()]).unwrap();
    let summary = sample::write(&mut writer, 60, "sample");
    writer.finish(&summary).unwrap();
    assert_eq!(names(&out), FILES);
    let equity = fs::read_to_string(out.join("equity.csv")).unwrap();
    assert_eq!(equity.lines().count(), 61);
    let fills = fs::read_to_string(out.join("fills.csv")).unwrap();
    assert_eq!(fills.lines().count() as u64, 1 + summary.fills);
    assert!(fills.starts_with(FILLS_HEADER));
    let orders = fs::read_to_string(out.join("orders.csv")).unwrap();
    assert!(orders.starts_with(ORDERS_HEADER));
}

#[test]
fn the_summary_has_every_documented_key() {
    let summary = sample::write(&mut ResultWriter::discard(), 60, "sample");
    let json: serde_json::Value = serde_json::from_str(&summary.to_json().unwrap()).unwrap();
    for key in [
        "events",
        "events_per_second",
        "orders_submitted",
        "orders_rejected",
        "orders_canceled",
        "fills",
        "volume_quote",
        "fees",
        "realized_pnl",
        "unrealized_pnl",
        "funding",
        "start_equity",
        "final_equity",
        "max_drawdown",
        "sharpe",
        "start_time",
        "end_time",
        "module_sha256",
        "engine",
        "fingerprint",
        "rules",
    ] {
        assert!(json.get(key).is_some(), "{key} is missing in summary.json");
    }
    assert_eq!(json["start_equity"], "10000");
    assert_eq!(json["rules"], "configured");
    assert_eq!(json["start_time"], "2024-08-08T23:54:15.000000000Z");
    assert!(json["volume_quote"].is_string());
}

#[test]
fn an_unfinished_run_leaves_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = ResultWriter::create(dir.path(), &[]).unwrap();
    sample::write(&mut writer, 60, "sample");
    assert!(
        names(dir.path())
            .iter()
            .all(|name| name.ends_with(".partial"))
    );
    drop(writer);
    assert!(names(dir.path()).is_empty());
}

#[test]
fn a_second_run_replaces_the_first() {
    let dir = tempfile::tempdir().unwrap();
    for seconds in [60, 30] {
        let mut writer = ResultWriter::create(dir.path(), &[]).unwrap();
        let summary = sample::write(&mut writer, seconds, "sample");
        writer.finish(&summary).unwrap();
    }
    assert_eq!(names(dir.path()), FILES);
    let equity = fs::read_to_string(dir.path().join("equity.csv")).unwrap();
    assert_eq!(equity.lines().count(), 31);
}

#[test]
fn a_folder_that_cannot_be_created_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = ResultWriter::create(&file.join("out"), &[]).unwrap_err();
    assert!(error.to_string().contains("file/out"), "{error}");
}
