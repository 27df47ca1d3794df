//! The session must have no IO: its crates and sources must not use sockets, files, threads, clocks
//! or an async runtime. With such a dependency, the fault simulator would not test the program that
//! trades.

use std::path::Path;
use std::process::Command;

/// Crates of others. `tests/tests/layout.rs` has the table of our own.
const ALLOWED: &[&str] = &["postcard", "serde", "serde_json", "thiserror", "tracing"];
/// Crates that wait, or that access the outside world.
const ABSENT: &[&str] = &["tokio", "mio", "reqwest", "hyper", "sled", "wasmtime"];
/// Names of the standard library that read a clock or access the outside world.
const FORBIDDEN: &[&str] = &[
    "std::net",
    "std::fs",
    "std::thread",
    "std::process",
    "std::env",
    "std::os",
    "Instant",
    "SystemTime",
    "tokio",
    "async fn",
];

#[test]
fn the_session_depends_on_the_allowed_crates_only() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let manifest = std::fs::read_to_string(path).unwrap();
    let begin = manifest.find("[dependencies]").unwrap();
    let table = manifest[begin..].lines().skip(1);
    let names = table
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split(['.', ' ', '=']).next().unwrap())
        .filter(|name| !name.starts_with("windvane-"));
    let names: Vec<_> = names.collect();
    assert_eq!(names, ALLOWED);
}

#[test]
fn no_dependency_of_the_session_waits_or_does_io() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal"])
        .args(["--prefix", "none", "--package", "windvane-session"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{tree:?}");
    let tree = String::from_utf8(tree.stdout).unwrap();
    assert!(tree.contains("windvane-engine"), "{tree}");
    for line in tree.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        assert!(!ABSENT.contains(&name), "the session depends on {name}");
    }
}

#[test]
fn no_source_of_the_session_uses_a_clock_or_io() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let source = std::fs::read_to_string(&path).unwrap();
            let code = source.lines().filter(|line| !line.trim().starts_with("//"));
            for (line, word) in code.flat_map(|line| FORBIDDEN.iter().map(move |word| (line, word)))
            {
                assert!(!line.contains(word), "{}: {line}", path.display());
            }
        }
    }
    assert!(files > 15, "only {files} sources were found");
}

/// Names that only the exchange interface (`src/exchange`) may use.
const OF_AN_EXCHANGE: &[&str] = &[
    "Documented::",
    "route::named",
    "Adapter",
    "exchange_info::entries",
    "user_stream::decode",
    "market_stream::decode",
    "windvane_protocol::decode",
    "MarketReader",
    "FeedMachine",
    ".prepare(",
    "serverTime",
    "listenKey",
];

#[test]
fn only_the_exchange_folder_depends_on_an_exchange() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![sources.clone()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path == sources.join("exchange") || path.ends_with("tests.rs") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let source = std::fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]").next().unwrap_or_default();
            for word in OF_AN_EXCHANGE {
                assert!(!code.contains(word), "{} names {word}", path.display());
            }
        }
    }
    assert!(files > 15, "only {files} sources were found");
}
