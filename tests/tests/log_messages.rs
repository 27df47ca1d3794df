//! `docs/operating.md` explains every warning and error of the log: each message that the crates of
//! `runtime` write is in its tables, with its level, and the tables have no message that no crate
//! writes.
//!
//! A message counts by its constant beginning, up to the first changing part, semicolon, colon or
//! end of a sentence. A message without a constant part (`"{words}"`) cannot be found this way: its
//! texts are entries of the tables, and only the second test sees them.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/operating.md";
const HEADING: &str = "\n## Warnings and errors in the log\n";
/// The macros, with the level on the page.
const MACROS: [(&str, &str); 2] = [("warn!(", "WARN"), ("error!(", "ERROR")];
/// Stands for a changing part in a table.
const CHANGING: char = '…';

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The part of the page with the tables.
fn section() -> String {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let (_, section) = page.split_once(HEADING).unwrap();
    section.split("\n## ").next().unwrap().to_owned()
}

/// The sources of the crates, without unit tests, with their paths. Texts of several lines are
/// joined.
fn sources() -> Vec<(PathBuf, String)> {
    let crates = fs::read_dir(root().join("runtime")).unwrap();
    let mut folders: Vec<PathBuf> = crates
        .map(|entry| entry.unwrap().path().join("src"))
        .filter(|folder| folder.is_dir())
        .collect();
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("tests") || path.ends_with("tests.rs") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                sources.push((path, joined(code)));
            }
        }
    }
    assert!(sources.len() > 300, "only {} sources", sources.len());
    sources
}

/// The source with each text of several lines in one line.
fn joined(source: &str) -> String {
    let mut parts = source.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |joined, part| joined + part.trim_start())
}

/// The last text among the arguments of a macro: its message. Fields are before it, and their texts
/// and nested calls do not count. `arguments` begins after the opening parenthesis.
fn message(arguments: &str) -> String {
    let mut last = String::new();
    let mut depth = 1;
    let mut letters = arguments.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '"' => {
                let text = text(&mut letters);
                if depth == 1 {
                    last = text;
                }
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    last
}

/// A text up to its closing quotation mark.
fn text(letters: &mut impl Iterator<Item = char>) -> String {
    let mut text = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => text.extend(letters.next()),
            _ => text.push(letter),
        }
    }
    text
}

/// The messages of a source, with their levels.
fn messages(source: &str) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for (name, level) in MACROS {
        let mut parts = source.split(name);
        let mut before = parts.next().unwrap_or_default();
        let mut rest = source;
        for part in parts {
            rest = &rest[before.len() + name.len()..];
            if !before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_') {
                found.push((level, message(rest)));
            }
            before = part;
        }
    }
    found
}

/// The entry that the tables must have for a message: its level and its constant beginning. If the
/// message begins with a changing part, it is the first constant part, without the level. `None` if
/// it has no constant part of two words.
fn entry(level: &str, message: &str) -> Option<String> {
    let mut parts = vec![message.split('{').next().unwrap_or_default()];
    let after = message.split('{').skip(1);
    parts.extend(after.filter_map(|part| part.split_once('}').map(|(_, part)| part)));
    let is_constant = parts.len() == 1;
    let parts = parts
        .iter()
        .map(|part| part.trim_matches([' ', ':', ';', ',', '.']));
    let mut long = parts.filter(|part| part.contains(' ') || is_constant);
    let part = long.next().filter(|part| !part.is_empty())?;
    let ends = ["; ", ": ", ". "].map(|end| part.find(end).unwrap_or(part.len()));
    let part = &part[..ends.into_iter().min()?];
    let is_beginning = !message.starts_with('{');
    Some(if is_beginning {
        format!("{level} {part}")
    } else {
        part.to_owned()
    })
}

/// The entries in the first column of the tables, without level. Those with a changing part are left
/// out.
fn entries(section: &str) -> Vec<&str> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split(" |").next());
    let entries = cells.flat_map(|cell| cell.split("; "));
    entries
        .filter(|entry| !entry.contains(CHANGING))
        .filter_map(|entry| {
            let mut levels = MACROS.iter().map(|(_, level)| level);
            levels.find_map(|level| entry.strip_prefix(*level)?.strip_prefix(' '))
        })
        .collect()
}

#[test]
fn every_warning_and_error_is_explained() {
    let section = section();
    let mut count = 0;
    let mut faults = Vec::new();
    for (path, source) in sources() {
        for (level, message) in messages(&source) {
            count += 1;
            let entry = entry(level, &message);
            let absent = entry.filter(|entry| !section.contains(entry.as_str()));
            faults.extend(absent.map(|entry| format!("{}: {entry}", path.display())));
        }
    }
    assert!(count > 100, "only {count} messages were found");
    assert!(faults.is_empty(), "{PAGE} lacks:\n{}", faults.join("\n"));
}

#[test]
fn every_explained_message_exists() {
    let section = section();
    let entries = entries(&section);
    assert!(entries.len() > 100, "only {} entries", entries.len());
    let sources: Vec<String> = sources()
        .into_iter()
        .map(|(_, source)| source.replace("\\\"", "\""))
        .collect();
    let absent: Vec<&str> = entries
        .into_iter()
        .filter(|entry| !sources.iter().any(|source| source.contains(entry)))
        .collect();
    assert!(absent.is_empty(), "no crate writes:\n{}", absent.join("\n"));
}

#[test]
fn messages_are_found_whatever_their_form() {
    let source = "tracing::warn!(\"a b; c\");\nerror!(\n    what = f(\"x\"), note = \"y\",\n    %z,\n    \
                  \"one \\\n     \\\"two\\\": {three}\"\n);\nshow_warn!(\"no\");";
    let expected = [
        ("WARN", "a b; c".to_owned()),
        ("ERROR", "one \"two\": {three}".to_owned()),
    ];
    assert_eq!(messages(&joined(source)), expected);
    let entry = |message| entry("WARN", message);
    assert_eq!(entry("a b; c").unwrap(), "WARN a b");
    assert_eq!(entry("halted").unwrap(), "WARN halted");
    assert_eq!(
        entry("under rules {a}, and {b}").unwrap(),
        "WARN under rules"
    );
    assert_eq!(entry("{a}: the run stops").unwrap(), "the run stops");
    assert_eq!(entry("{words}"), None);
    let section = "| WARN a b; ERROR c, d | meaning; x | y |\n| WARN … e | f | g |\ntext\n";
    assert_eq!(entries(section), ["a b", "c, d"]);
}
