//! The layout of the workspace: which crate may depend on which, which crates have no IO, and how
//! large files and crates may be. The rules are the tables below; `docs/architecture.md` shows the
//! first one to readers.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../../xtask/src/lines.rs"]
mod lines;
#[path = "../../xtask/src/manifest.rs"]
mod manifest;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use manifest::Manifest;
use windvane_tests::binary;

/// Every crate of the workspace, and the crates of the workspace that it may depend on. A crate is
/// named as in [`short`]. Dependencies of tests are not restricted.
const DEPENDENCIES: &[(&str, &str)] = &[
    ("model", ""),
    ("files", ""),
    ("sandbox", ""),
    ("evidence", "model"),
    ("supervision", "model"),
    ("engine", "evidence model supervision"),
    ("protocol", "model"),
    ("journal", "files model"),
    ("host", "engine files model"),
    ("sim", "model"),
    ("sim-market", "model protocol sim"),
    ("sim-server", "model protocol sim sim-market"),
    ("client-core", "model protocol"),
    ("client", "client-core files protocol"),
    ("signer", "client-core files protocol"),
    ("session", "client-core engine model protocol sim"),
    ("config", "files model protocol session sim"),
    ("recording", "config files model protocol"),
    ("report", "model recording"),
    ("build", "config engine files host model sandbox session"),
    (
        "backtest",
        "build config engine host model protocol recording report session sim",
    ),
    (
        "replay",
        "backtest build config engine host journal model recording report session",
    ),
    ("admin", "files"),
    (
        "live",
        "admin backtest build client client-core config engine files host journal model protocol recording replay report sandbox session signer",
    ),
    (
        "cli",
        "admin backtest build client config engine files journal live model protocol recording replay report session signer sim-server",
    ),
    ("sdk", ""),
    ("ema-cross", "sdk"),
    ("grid", "sdk"),
    ("market-maker", "sdk"),
    ("greedy", "sdk"),
    ("quoter", "sdk"),
    ("panics", "sdk"),
    ("wire-examples", "model protocol"),
    // The checker must prove the engine's results independently.
    ("tests", ""),
    (
        "faults",
        "build cli client-core config engine host live model protocol session sim-server",
    ),
    ("xtask", ""),
];

/// Crates without IO, and the crates of others that they may use. All modes rely on them, and the
/// fault simulator runs them in virtual time. With sockets, files, threads, clocks or an async
/// runtime they could not be repeated, and the simulator would not test the program that trades.
const WITHOUT_IO: &[(&str, &str)] = &[
    ("model", "postcard rust_decimal serde sha2 thiserror"),
    ("evidence", "serde"),
    ("supervision", "serde"),
    ("engine", "postcard serde thiserror"),
    ("client-core", "serde serde_json thiserror"),
    ("session", "postcard serde serde_json thiserror tracing"),
];
/// Crates that wait or do IO. A crate without IO must not be built with one of them, also not
/// through another crate.
const IO_CRATES: &[&str] = &["tokio", "mio", "reqwest", "hyper", "sled", "wasmtime"];
/// Names that give access to IO, threads or a clock. A grouped import (`std::{`) is forbidden
/// because it would hide the others.
const IO_NAMES: &[&str] = &[
    "std::net",
    "std::fs",
    "std::thread",
    "std::process",
    "std::env",
    "std::os",
    "std::{",
    "Instant",
    "SystemTime",
    "tokio",
    "async fn",
];

/// What the simulated exchange must not be built with: that both sides of a test agree would prove
/// nothing.
const CLIENT_SIDE: &[&str] = &[
    "windvane-engine",
    "windvane-session",
    "windvane-client",
    "windvane-client-core",
    "windvane-host",
];

/// Names that only the session's exchange interface (`runtime/session/src/exchange`) may use.
const EXCHANGE_NAMES: &[&str] = &[
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

/// Longest source file, lines.
const FILE_LINES: usize = 800;
/// Largest crate: lines of code, without tests, comments and blank lines.
const CRATE_LINES: usize = 12_000;
/// Crates that may be larger, and the reason.
const LARGE: &[(&str, &str)] = &[(
    "faults",
    "a test program: the fault simulator with its checkers is not part of the product",
)];
/// What the documentation at the top of a library must state, each with the words of which one must
/// be in a sentence.
const STATEMENTS: &[(&str, &[&str])] = &[
    ("who uses it", &["use", "uses", "used by"]),
    ("what it must not contain", &["must not", "must never"]),
];

/// The page with the table of crates for readers.
const PAGE: &str = "docs/architecture.md";
/// The lines around the table.
const MARKS: [&str; 2] = ["<!-- crates:begin -->", "<!-- crates:end -->"];

/// The short name of a crate: its name without `windvane-`. The crate `windvane` is `cli`, after
/// its folder.
fn short(name: &str) -> &str {
    match name.strip_prefix("windvane-") {
        Some(short) => short,
        None if name == "windvane" => "cli",
        None => name,
    }
}

fn allowed() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let rows = DEPENDENCIES.iter();
    rows.map(|(name, on)| (*name, on.split_whitespace().collect()))
        .collect()
}

fn manifests() -> Vec<Manifest> {
    Manifest::all(binary::root()).unwrap()
}

/// The Rust sources of a crate, without those of crates in its subfolders.
fn sources(own: &Manifest, all: &[Manifest]) -> Vec<PathBuf> {
    let mut files = lines::files(&own.folder, "rs").unwrap();
    files.retain(|file| Manifest::owner(all, file).is_some_and(|owner| owner.folder == own.folder));
    files
}

#[test]
fn crates_depend_on_the_allowed_crates_only() {
    let all = manifests();
    let names: BTreeSet<String> = all.iter().map(Manifest::name).collect();
    let mut found = BTreeMap::new();
    for manifest in &all {
        let on = manifest.dependencies();
        let ours = on.iter().filter(|name| names.contains(*name));
        let ours: BTreeSet<String> = ours.map(|name| short(name).to_owned()).collect();
        found.insert(short(&manifest.name()).to_owned(), ours);
    }
    let mut allowed = allowed();
    for (name, on) in &found {
        let allowed = allowed.remove(name.as_str());
        let allowed = allowed.unwrap_or_else(|| panic!("{name} is missing in DEPENDENCIES"));
        let on: BTreeSet<&str> = on.iter().map(String::as_str).collect();
        assert_eq!(
            on, allowed,
            "the crates that {name} depends on, and those that it may"
        );
    }
    assert!(allowed.is_empty(), "no such crate: {:?}", allowed.keys());
}

/// The package with this short name.
fn package(short: &str) -> Manifest {
    let name = format!("windvane-{short}");
    let mut all = manifests().into_iter();
    all.find(|manifest| manifest.name() == name).unwrap()
}

#[test]
fn crates_without_io_use_the_allowed_crates_of_others() {
    for (name, allowed) in WITHOUT_IO {
        let mut on = package(name).dependencies();
        on.retain(|name| !name.starts_with("windvane-"));
        let allowed: Vec<_> = allowed.split(' ').collect();
        assert_eq!(on, allowed, "the crates of others that {name} may use");
    }
}

/// The names of all crates that a package is built with, direct or indirect.
fn built_with(short: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(package(short).folder)
        .args(["tree", "--offline", "--locked", "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{p}"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree failed: {errors}");
    let names = names_in(&String::from_utf8(output.stdout).unwrap());
    let own = format!("windvane-{short}");
    for expected in [own.as_str(), "windvane-model"] {
        assert!(names.contains(expected), "{expected} is missing: {names:?}");
    }
    names
}

/// The crates in the output of `cargo tree --prefix none --format {p}`.
fn names_in(tree: &str) -> BTreeSet<String> {
    let lines = tree.lines();
    let names = lines.filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

/// Also `tokio-tungstenite`, but not `miow`.
fn is_io(name: &str) -> bool {
    IO_CRATES.iter().any(|io| {
        let rest = name.strip_prefix(io);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

#[test]
fn crates_without_io_are_built_without_crates_that_do_io() {
    for (name, _) in WITHOUT_IO {
        let mut names = built_with(name);
        names.retain(|name| is_io(name));
        assert!(names.is_empty(), "{name} is built with {names:?}");
    }
}

#[test]
fn the_simulated_exchange_is_built_without_the_client_side() {
    let mut names = built_with("sim-server");
    assert!(names.contains("windvane-sim"), "{names:?}");
    names.retain(|name| CLIENT_SIDE.contains(&name.as_str()));
    assert!(names.is_empty(), "the exchange is built with {names:?}");
}

/// The lines of code, without comments, that contain one of the names.
fn lines_with<'a>(code: &'a str, names: &[&str]) -> Vec<&'a str> {
    let lines = code.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with("//"));
    lines
        .filter(|line| names.iter().any(|name| line.contains(name)))
        .collect()
}

#[test]
fn no_source_of_a_crate_without_io_names_io_or_a_clock() {
    for (name, _) in WITHOUT_IO {
        let files = lines::files(&package(name).folder.join("src"), "rs").unwrap();
        assert!(files.len() > 5, "sources of {name} were not found");
        for file in files {
            let source = std::fs::read_to_string(&file).unwrap();
            let found = lines_with(&source, IO_NAMES);
            assert!(found.is_empty(), "{}: {found:?}", file.display());
        }
    }
}

#[test]
fn only_the_exchange_folder_of_the_session_depends_on_an_exchange() {
    let sources = package("session").folder.join("src");
    let mut files = lines::files(&sources, "rs").unwrap();
    files.retain(|file| {
        let is_test = file.ends_with("tests.rs") || file.ends_with("testing.rs");
        !is_test && !file.starts_with(sources.join("exchange"))
    });
    assert!(files.len() > 15, "sources were not found: {files:?}");
    for file in files {
        let source = std::fs::read_to_string(&file).unwrap();
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        let found = EXCHANGE_NAMES.iter().filter(|name| code.contains(**name));
        let found: Vec<_> = found.collect();
        assert!(found.is_empty(), "{} names {found:?}", file.display());
    }
}

#[test]
fn crates_and_names_of_io_are_recognised() {
    let tree = "serde v1.0.0\ntokio v1.0.0\ntokio-tungstenite v0.29.0 (*)\nmiow v1.0.0\n";
    let mut names = names_in(tree);
    names.retain(|name| is_io(name));
    assert_eq!(
        names,
        BTreeSet::from(["tokio", "tokio-tungstenite"].map(str::to_owned))
    );
    let code = "use std::net::TcpStream;\n// tokio\nlet now = 1;\n";
    assert_eq!(lines_with(code, IO_NAMES), ["use std::net::TcpStream;"]);
}

/// The cells of the table's rows: name, purpose, dependencies, what it must not contain.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let [begin, end] = MARKS;
    let (_, table) = page
        .split_once(begin)
        .unwrap_or_else(|| panic!("{PAGE} has no line {begin}"));
    let (table, _) = table
        .split_once(end)
        .unwrap_or_else(|| panic!("{PAGE} has no line {end}"));
    let lines = table
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('|'));
    // The first two lines are the headings and the rule below them.
    lines
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

/// The crates that a cell names, in backticks: `` `engine` ``, `` [`engine`](../runtime/engine) ``.
fn named(cell: &str) -> BTreeSet<&str> {
    cell.split('`').skip(1).step_by(2).map(short).collect()
}

#[test]
fn the_page_shows_the_same_table() {
    let page = std::fs::read_to_string(binary::root().join(PAGE)).unwrap_or_default();
    let allowed = allowed();
    let mut shown = BTreeSet::new();
    for row in rows(&page) {
        let [name, purpose, on, must_not] = row.as_slice() else {
            panic!("{PAGE}: a row needs four cells: {row:?}");
        };
        let names = named(name);
        assert_eq!(
            names.len(),
            1,
            "{PAGE}: the first cell names one crate in backticks: {row:?}"
        );
        for name in names {
            let allowed = allowed.get(name);
            let allowed = allowed.unwrap_or_else(|| panic!("{PAGE}: no crate is named {name}"));
            assert_eq!(
                &named(on),
                allowed,
                "{PAGE}: the crates that {name} may depend on"
            );
            let is_described = !purpose.is_empty() && !must_not.is_empty();
            assert!(
                is_described,
                "{PAGE}: {name} needs a purpose, and what it must not contain"
            );
            assert!(shown.insert(name), "{PAGE}: {name} is listed twice");
        }
    }
    for manifest in manifests() {
        let folder = manifest.folder.strip_prefix(binary::root()).unwrap();
        let is_product = folder.starts_with("runtime") || folder.starts_with("sdk");
        let name = manifest.name();
        assert!(
            !is_product || shown.contains(short(&name)),
            "{PAGE}: {} is missing in the table",
            short(&name)
        );
    }
}

#[test]
fn no_source_file_is_long() {
    let files = lines::files(binary::root(), "rs").unwrap();
    assert!(files.len() > 500, "only {} sources were found", files.len());
    for file in files {
        let count = std::fs::read_to_string(&file).unwrap().lines().count();
        assert!(
            count <= FILE_LINES,
            "{} has {count} lines; split it below {FILE_LINES}",
            file.display()
        );
    }
}

#[test]
fn no_crate_is_large() {
    let all = manifests();
    for manifest in &all {
        let counted = lines::count_all(&manifest.folder, sources(manifest, &all)).unwrap();
        let code: usize = counted.iter().map(|(_, lines)| lines.code).sum();
        let name = manifest.name();
        let name = short(&name);
        let exception = LARGE.iter().find(|(large, _)| *large == name);
        match exception {
            None => assert!(
                code <= CRATE_LINES,
                "{name} has {code} lines of code; split it below {CRATE_LINES}"
            ),
            Some(_) => assert!(
                code > CRATE_LINES,
                "{name} has only {code} lines of code; remove it from LARGE"
            ),
        }
    }
}

#[test]
fn every_library_begins_with_its_documentation() {
    for manifest in manifests() {
        let library = manifest.folder.join("src/lib.rs");
        let Ok(source) = std::fs::read_to_string(&library) else {
            continue;
        };
        let missing = missing_statements(&source);
        assert!(
            missing.is_empty(),
            "the documentation at the top of {} does not say {missing:?}",
            library.display()
        );
    }
}

/// The statements that are missing in the documentation at the top of a library. Examples do not
/// count. The first sentence says what the crate is, so it cannot be another statement.
fn missing_statements(source: &str) -> Vec<&'static str> {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let text: Vec<&str> = lines.collect();
    let text = text.join(" ");
    let prose: Vec<&str> = text.split("```").step_by(2).collect();
    let prose = prose.join(" ");
    let words: Vec<&str> = prose.split_whitespace().collect();
    let prose = words.join(" ");
    let Some((first, rest)) = prose.split_once('.') else {
        return vec!["what it is, and more"];
    };
    let has = |word: &str| {
        rest.match_indices(word).any(|(at, _)| {
            let is_border = |letter: Option<char>| !letter.is_some_and(char::is_alphanumeric);
            let after = rest[at + word.len()..].chars().next();
            is_border(rest[..at].chars().next_back()) && is_border(after)
        })
    };
    let missing = STATEMENTS.iter();
    let missing = missing.filter(|(_, words)| !words.iter().any(|word| has(word)));
    let is_described = first.split(' ').count() > 2;
    let what = (!is_described).then_some("what it is");
    what.into_iter()
        .chain(missing.map(|(statement, _)| *statement))
        .collect()
}

#[test]
fn missing_statements_of_a_library_are_found() {
    let whole =
        "//! The engine of runs.\n//!\n//! `cli` uses it. It must\n//! not do IO.\nuse a;\n";
    assert!(missing_statements(whole).is_empty());
    let other = whole.replace("uses", "abuses");
    assert_eq!(missing_statements(&other), ["who uses it"]);
    let example = "//! The engine of runs.\n//! ```\n//! use a; // must not\n//! ```\n";
    assert_eq!(
        missing_statements(example),
        ["who uses it", "what it must not contain"]
    );
    assert_eq!(missing_statements("use a;\n"), ["what it is, and more"]);
}

#[test]
fn rows_of_the_table_are_read() {
    let page = "text\n<!-- crates:begin -->\n| crate | what | on | not |\n|---|---|---|---|\n\
                | [`host`](../runtime/host) | runs modules | `engine`, `windvane-sim` | IO |\n\
                | `cli` | the program | - | logic |\n<!-- crates:end -->\n| `x` |\n";
    let rows = rows(page);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(named(rows[0][0]), BTreeSet::from(["host"]));
    assert_eq!(named(rows[0][2]), BTreeSet::from(["engine", "sim"]));
    assert!(named(rows[1][2]).is_empty());
    assert_eq!(short("windvane"), "cli");
    assert!(Path::new("runtime/host").starts_with("runtime"));
}
