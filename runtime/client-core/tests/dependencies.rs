//! The crate depends only on the allowed crates, none of which brings sockets or an async runtime.
//! Its sources contain no name that gives access to IO or a clock, because the fault simulator runs
//! the crate in virtual time.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates of others. `tests/tests/layout.rs` has the table of our own.
const ALLOWED: &[&str] = &["serde", "serde_json", "thiserror"];

/// Crates that do IO. None of them may appear among the normal dependencies, direct or indirect.
const IO_CRATES: &[&str] = &["tokio", "mio", "reqwest", "hyper"];

/// No source file may contain these texts. A grouped import (`std::{`) is forbidden because it
/// would hide the others.
const FORBIDDEN: &[&str] = &[
    "std::net",
    "std::fs",
    "std::thread",
    "std::process",
    "std::env",
    "std::{",
    "Instant::now",
    "SystemTime::now",
    "tokio",
];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Names in every manifest table that adds a crate to the library: `[dependencies]` and
/// `[build-dependencies]`, both also per target and as `[dependencies.name]`.
fn library_dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut listing = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let table = header.rsplit('.').next().unwrap_or(header);
            listing = table == "dependencies" || table == "build-dependencies";
            for table in ["dependencies.", "build-dependencies."] {
                let own = header.strip_prefix(table);
                let of_target = header.split_once(&format!(".{table}")).map(|split| split.1);
                names.extend(own.or(of_target).map(str::to_owned));
            }
        } else if listing && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or(line);
            names.push(name.trim_matches('"').to_owned());
        }
    }
    names
}

/// The crates in the output of `cargo tree --prefix none --format {p}`.
fn names(tree: &str) -> Vec<&str> {
    let lines = tree.lines();
    lines.filter_map(|line| line.split(' ').next()).collect()
}

fn is_io(name: &str) -> bool {
    IO_CRATES.iter().any(|io| {
        let rest = name.strip_prefix(io);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

fn forbidden_in(text: &str) -> Vec<&'static str> {
    let words = FORBIDDEN.iter().copied();
    words.filter(|word| text.contains(word)).collect()
}

#[test]
fn the_crate_depends_on_the_allowed_crates_only() {
    let manifest = std::fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    let mut names = library_dependencies(&manifest);
    names.retain(|name| !name.starts_with("windvane-"));
    assert_eq!(names, ALLOWED, "the crate may depend on {ALLOWED:?} alone");
}

#[test]
fn no_dependency_does_io() {
    let output = Command::new(env!("CARGO"))
        .current_dir(folder())
        .args(["tree", "--offline", "--locked", "--edges", "normal"])
        .args(["--package", env!("CARGO_PKG_NAME")])
        .args(["--prefix", "none", "--format", "{p}"])
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree failed: {words}");
    let tree = String::from_utf8(output.stdout).unwrap();
    let names = names(&tree);
    for expected in [env!("CARGO_PKG_NAME"), "windvane-model", "serde_json"] {
        assert!(names.contains(&expected), "{expected} is missing: {tree}");
    }
    let io: Vec<_> = names.into_iter().filter(|name| is_io(name)).collect();
    assert!(io.is_empty(), "these dependencies do IO: {io:?}");
}

#[test]
fn no_source_file_names_io_or_a_clock() {
    let files = sources(&folder().join("src"));
    assert!(files.len() > 10, "sources were not found: {files:?}");
    for file in files {
        let words = forbidden_in(&std::fs::read_to_string(&file).unwrap());
        assert!(words.is_empty(), "{} names {words:?}", file.display());
    }
}

#[test]
fn crates_that_do_io_are_recognised() {
    let tree = "serde v1.0.0\ntokio v1.0.0\ntokio-tungstenite v0.29.0 (*)\nmiow v1.0.0\n";
    let io: Vec<_> = names(tree).into_iter().filter(|name| is_io(name)).collect();
    assert_eq!(io, ["tokio", "tokio-tungstenite"]);
    assert_eq!(forbidden_in("use std::net::TcpStream;"), ["std::net"]);
}

#[test]
fn dependencies_are_found_in_every_kind_of_table() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\n# no\n\
                    b = \"1\"\n[dependencies.c]\nversion = \"1\"\n[dev-dependencies]\nd = \"1\"\n\
                    [target.'cfg(unix)'.dependencies]\ne = \"1\"\n\
                    [target.'cfg(unix)'.dependencies.f]\npath = \"f\"\n\
                    [build-dependencies]\ng = \"1\"\n";
    assert_eq!(
        library_dependencies(manifest),
        ["a", "b", "c", "e", "f", "g"]
    );
}
