//! The compile cache: a second load compiles nothing, and only complete and private files are used.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use support::{PATHS, guest};
use windvane_host::{CacheUse, Capabilities, Host, HostOptions, Limits, PathChoice};

fn load(folder: &Path, path: PathChoice) -> CacheUse {
    let host = Host::new(HostOptions {
        compile_cache: Some(folder.to_owned()),
        path,
        ..HostOptions::default()
    })
    .unwrap();
    let strategy = host
        .load(&guest(""), Limits::default(), Capabilities::ALL)
        .unwrap();
    assert_eq!(strategy.describe().name, "guest");
    strategy.cache_use().clone()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_second_load_comes_from_a_private_file() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("deep/native");
    for path in PATHS {
        assert_eq!(load(&folder, path), CacheUse::Stored);
        assert_eq!(load(&folder, path), CacheUse::Hit);
    }
    assert_eq!(mode(&folder), 0o700);
    let files = files(&folder);
    assert_eq!(
        files.len(),
        2,
        "one file for each path, and no temporary files"
    );
    assert!(files.iter().all(|file| mode(file) == 0o600));
}

#[test]
fn a_damaged_file_is_detected_and_made_again() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("native");
    load(&folder, PathChoice::Direct);
    let file = files(&folder).remove(0);
    let good = fs::read(&file).unwrap();
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for damaged in [&flipped[..], &good[..good.len() - 1], &good[..20], b""] {
        fs::write(&file, damaged).unwrap();
        let used = load(&folder, PathChoice::Direct);
        assert!(
            matches!(&used, CacheUse::Rebuilt(reason) if reason.contains("checksum")),
            "{used:?}"
        );
        assert_eq!(load(&folder, PathChoice::Direct), CacheUse::Hit);
    }
}

#[test]
fn a_foreign_file_with_a_valid_checksum_is_refused() {
    use sha2::{Digest, Sha256};
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("native");
    load(&folder, PathChoice::Direct);
    let file = files(&folder).remove(0);
    let payload = b"not native code";
    let mut bytes = b"WVNATIV1".to_vec();
    bytes.extend_from_slice(&Sha256::digest(payload));
    bytes.extend_from_slice(payload);
    fs::write(&file, bytes).unwrap();
    assert!(matches!(
        load(&folder, PathChoice::Direct),
        CacheUse::Rebuilt(_)
    ));
}

#[test]
fn a_file_that_others_may_write_is_not_used() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("native");
    load(&folder, PathChoice::Direct);
    let file = files(&folder).remove(0);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let used = load(&folder, PathChoice::Direct);
    assert!(
        matches!(&used, CacheUse::Rebuilt(reason) if reason.contains("private")),
        "{used:?}"
    );
    assert_eq!(mode(&files(&folder)[0]), 0o600);
}

#[test]
fn a_folder_that_others_may_enter_is_not_used() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("native");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let used = load(&folder, PathChoice::Direct);
    assert!(
        matches!(&used, CacheUse::Unusable(reason) if reason.contains("0700")),
        "{used:?}"
    );
    assert!(files(&folder).is_empty());
}

#[test]
fn a_folder_that_others_can_replace_is_not_used() {
    let temp = tempfile::tempdir().unwrap();
    let shared = temp.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    let folder = shared.join("native");
    let used = load(&folder, PathChoice::Direct);
    assert!(
        matches!(&used, CacheUse::Unusable(reason) if reason.contains("shared")),
        "{used:?}"
    );
    assert!(files(&folder).is_empty());
}

#[test]
fn temporary_files_of_a_killed_process_are_replaced() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("native");
    load(&folder, PathChoice::Direct);
    let file = files(&folder).remove(0);
    fs::remove_file(&file).unwrap();
    for serial in 0..20 {
        let aside = file.with_extension(format!("{}-{serial}.tmp", std::process::id()));
        fs::write(aside, "half").unwrap();
    }
    assert_eq!(load(&folder, PathChoice::Direct), CacheUse::Stored);
    assert_eq!(load(&folder, PathChoice::Direct), CacheUse::Hit);
}

/// Opening a pipe would wait for its writer.
#[test]
fn a_pipe_in_the_cache_is_replaced() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("native");
    load(&folder, PathChoice::Direct);
    let file = files(&folder).remove(0);
    fs::remove_file(&file).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&file).status();
    assert!(made.unwrap().success());
    let used = load(&folder, PathChoice::Direct);
    assert!(
        matches!(&used, CacheUse::Rebuilt(reason) if reason.contains("private")),
        "{used:?}"
    );
    assert_eq!(load(&folder, PathChoice::Direct), CacheUse::Hit);
}
