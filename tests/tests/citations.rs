//! Every page, anchor and file that the repository cites exists, and no numbered document is cited.
//!
//! A citation is `docs/<page>.md` or `docs/<page>.md#<anchor>`, with the path from the root of the
//! repository. Anchors follow the rules of code hosts: a heading in lower case, spaces as hyphens,
//! punctuation dropped. Between Markdown pages, relative links are checked too.
//!
//! In `docs/` and in the pages beside the README, paths in backticks are checked. They are written
//! from the root too, several files of one folder as `runtime/model/src/{ids,order}.rs`. A path that
//! is relative to something else is a fault.
//!
//! `docs/promises.md` names tests, rules of the fault simulator and planted bugs in tables, each
//! row with its file. The file must have them (see [`promised`]). A promise that is named by its
//! number is cited with its anchor, as a link or in parentheses (see [`promises_without_anchor`]).
//! A comment cites a page of `docs/interface` with an anchor; that of the first heading is for the
//! whole page.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The files that are searched, by the end of their names.
const ENDINGS: [&str; 5] = ["rs", "toml", "md", "wit", "service"];
/// The pages outside of `docs/` whose paths in backticks are checked.
const PAGES: [&str; 4] = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
];
/// The first folders of the paths that pages cite in backticks.
const FOLDERS: [&str; 9] = [
    ".cargo/",
    ".ci/",
    "configs/",
    "docs/",
    "runtime/",
    "sdk/",
    "strategies/",
    "tests/",
    "xtask/",
];
/// The ends of names of source files, and the folders of sources within a crate.
const SOURCES: [&str; 2] = [".rs", ".wit"];
const CRATE_FOLDERS: [&str; 4] = ["src", "tests", "benches", "examples"];
/// Files that the reader of a page makes.
const OF_READERS: [&str; 1] = ["strategies/buy_once/"];
/// The page whose tables name tests, rules and planted bugs.
const PROMISES: &str = "docs/promises.md";
/// The page with the threat model. Each line of its tables names a test.
const SECURITY: &str = "SECURITY.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The tracked files with one of the endings, as paths from the root, with their texts.
fn files() -> BTreeMap<PathBuf, String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(listed.status.success(), "git ls-files failed: {listed:?}");
    let names = String::from_utf8(listed.stdout).unwrap();
    let mut files = BTreeMap::new();
    for name in names.split_terminator('\0') {
        let path = PathBuf::from(name);
        let ending = path.extension().and_then(|ending| ending.to_str());
        // A file that was deleted is listed until its deletion is staged.
        if ending.is_some_and(|ending| ENDINGS.contains(&ending))
            && let Ok(text) = fs::read_to_string(root().join(&path))
        {
            files.insert(path, text);
        }
    }
    assert!(files.len() > 100, "only {} files are tracked", files.len());
    files
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "md")
}

/// The lines of a page outside of code blocks.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchor of a heading.
fn anchor_of(heading: &str) -> String {
    let mut text = heading.trim().to_owned();
    // A link in a heading counts as its text.
    while let Some(start) = text.find("](") {
        let end = text[start..].find(')').map(|end| start + end);
        text.replace_range(start..end.map_or(start + 2, |end| end + 1), "");
    }
    let letters = text.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ if letter.is_alphanumeric() => Some(letter),
        _ => None,
    });
    letters.collect::<String>().to_lowercase()
}

/// The anchors of a page: one for each heading. A repeated heading gets a number.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in prose(page) {
        let level = line.len() - line.trim_start_matches('#').len();
        if !(1..=6).contains(&level) || !line[level..].starts_with(' ') {
            continue;
        }
        let anchor = anchor_of(&line[level..]);
        let numbers = (1..).map(|number| format!("{anchor}-{number}"));
        let mut names = std::iter::once(anchor.clone()).chain(numbers);
        anchors.insert(names.find(|name| !anchors.contains(name)).unwrap());
    }
    anchors
}

/// The path without `.` and `..`; `None` if it leaves the repository.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !normal.pop() {
                    return None;
                }
            }
            Component::Normal(name) => normal.push(name),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(normal)
}

/// Why a target does not exist: a path from the root, with an anchor or without.
fn fault(files: &BTreeMap<PathBuf, String>, target: &str) -> Option<String> {
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    let Some(path) = normal(Path::new(path)) else {
        return Some(format!("{target}: the path is outside of the repository"));
    };
    if !root().join(&path).exists() {
        return Some(format!("{target}: the file does not exist"));
    }
    let anchor = anchor.filter(|_| is_markdown(&path))?;
    let page = files.get(&path).map(String::as_str).unwrap_or_default();
    let is_heading = anchors(page).contains(anchor);
    (!is_heading).then(|| format!("{target}: the page has no such heading"))
}

const fn is_of_a_path(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/')
}

/// The cited pages in a text: `docs/<page>.md` with its anchor.
fn citations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("docs/") {
        let before = &text[..at];
        let start = before.rfind(|letter| !is_of_a_path(letter));
        let start = start.map_or(0, |start| {
            start + before[start..].chars().next().unwrap().len_utf8()
        });
        // A path of another place, or an address.
        if !before[start..]
            .split('/')
            .all(|part| ["", ".", ".."].contains(&part))
            || before[..start].ends_with(':')
        {
            continue;
        }
        let rest = &text[at..];
        let end = rest
            .find(|letter| !is_of_a_path(letter))
            .unwrap_or(rest.len());
        let Some(path) = rest[..end].rfind(".md").map(|md| &rest[..md + 3]) else {
            continue;
        };
        let after = &rest[path.len()..];
        let anchor = after.strip_prefix('#').map(|anchor| {
            let is_end = |letter: char| !letter.is_alphanumeric() && !"-_".contains(letter);
            &anchor[..anchor.find(is_end).unwrap_or(anchor.len())]
        });
        found.push(match anchor {
            Some(anchor) if !anchor.is_empty() => format!("{path}#{anchor}"),
            _ => path.to_owned(),
        });
    }
    found
}

/// The targets of a page's relative links, as paths from the root.
fn links(path: &Path, page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(page) {
        for (at, _) in line.match_indices("](") {
            let target = &line[at + 2..];
            let Some(end) = target.find(')') else {
                continue;
            };
            let target = &target[..end];
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let folder = path.parent().unwrap();
            found.push(match target.strip_prefix('#') {
                Some(anchor) => format!("{}#{anchor}", path.display()),
                None => folder.join(target).display().to_string(),
            });
        }
    }
    found
}

/// The texts that a page has in backticks. They may go on in the next line of their paragraph.
fn quoted(page: &str) -> Vec<String> {
    let lines: Vec<&str> = prose(page).collect();
    let paragraphs = lines.split(|line| line.trim().is_empty());
    let mut found = Vec::new();
    for paragraph in paragraphs {
        let text = paragraph.join(" ");
        found.extend(text.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    found
}

/// The texts that a text with one list in braces stands for.
fn expanded(text: &str) -> Vec<String> {
    let parts = text.split_once('{').and_then(|(before, rest)| {
        let (list, after) = rest.split_once('}')?;
        Some((before, list, after))
    });
    match parts {
        Some((before, list, after)) => list
            .split(',')
            .map(|one| format!("{before}{}{after}", one.trim()))
            .collect(),
        None => vec![text.to_owned()],
    }
}

/// Whether a text is meant as the path of a file or folder of this repository.
fn is_source(text: &str) -> bool {
    let has_folder = text
        .split_once('/')
        .is_some_and(|(_, rest)| !rest.is_empty())
        && text.split('/').any(|part| CRATE_FOLDERS.contains(&part));
    text.chars().all(is_of_a_path)
        && !OF_READERS.iter().any(|folder| text.starts_with(folder))
        && (has_folder
            || FOLDERS.iter().any(|folder| text.starts_with(folder))
            || SOURCES.iter().any(|ending| text.ends_with(ending)))
}

/// The paths of files and folders of this repository that a page has in backticks.
fn sources(page: &str) -> Vec<String> {
    let all = quoted(page);
    let all = all.iter().flat_map(|text| expanded(text));
    all.filter(|text| is_source(text)).collect()
}

/// Something that a row of `docs/promises.md` names.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    /// A name in backticks: a test.
    Test(String),
    /// A text in quotation marks, which is a rule of the fault simulator, or a name with hyphens in
    /// backticks, which is a planted bug. Either is a string of its file.
    Text(String),
}

impl Named {
    fn is_in(&self, source: &str) -> bool {
        match self {
            Self::Test(name) => source.contains(&format!("fn {name}(")),
            Self::Text(text) => source.contains(&format!("\"{text}\"")),
        }
    }
}

/// The rows of the tables of a page: what the last cell but one names, and the files of the last
/// cell. Rows that name nothing are headings.
fn promised(page: &str) -> Vec<(Vec<Named>, Vec<String>)> {
    let mut rows = Vec::new();
    for line in prose(page) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", .., names, files, ""] = cells.as_slice() else {
            continue;
        };
        let mut named = Vec::new();
        for name in names.split('`').skip(1).step_by(2) {
            named.push(if name.contains('-') {
                Named::Text(name.to_owned())
            } else {
                Named::Test(name.to_owned())
            });
        }
        let texts = names.split('"').skip(1).step_by(2);
        named.extend(texts.map(|text| Named::Text(text.to_owned())));
        if !named.is_empty() {
            rows.push((named, sources(files)));
        }
    }
    rows
}

/// The first citation of a document by its number, such as a word for document and a digit. Line
/// breaks inside of comments do not hide it.
fn numbered(text: &str) -> Option<String> {
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|word| !matches!(*word, "//" | "///" | "//!" | "#" | ">"))
        .collect();
    let singular = ["document", "doc", "spec"];
    words.windows(2).find_map(|pair| {
        let [name, number] = pair else { return None };
        let name = name
            .rsplit(|letter: char| !letter.is_alphanumeric())
            .next()?;
        let name = name.to_lowercase();
        let is_name = singular
            .iter()
            .any(|known| name.strip_suffix('s').unwrap_or(&name) == *known);
        let mut letters = number.chars();
        let is_number = letters
            .next()
            .is_some_and(|digit| ('1'..='5').contains(&digit))
            && letters.next().is_none_or(|next| !next.is_alphanumeric());
        (is_name && is_number).then(|| format!("{name} {number}"))
    })
}

/// Promises that a text names by their number without the anchor of the page right after it. Line
/// breaks inside of comments do not matter.
fn promises_without_anchor(text: &str) -> Vec<String> {
    let words = text.split_whitespace();
    let words = words.filter(|word| !matches!(*word, "//" | "///" | "//!" | "#" | ">"));
    let text = words.collect::<Vec<_>>().join(" ");
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for (at, name) in lower.match_indices("promise ") {
        let rest = &lower[at + name.len()..];
        let end = rest.find(|letter: char| !letter.is_ascii_digit());
        let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
        // A link or parentheses, with the page in the same folder or in another one.
        let target = after.trim_start_matches("](").trim_start_matches(" (");
        let folders = target.find("promises.md#").unwrap_or(target.len());
        let anchor = target[folders..].strip_prefix("promises.md#");
        let is_cited = target[..folders].chars().all(is_of_a_path)
            && anchor.is_some_and(|anchor| anchor.starts_with(&format!("{number}-")));
        if !number.is_empty() && !is_cited {
            found.push(format!("promise {number}"));
        }
    }
    found
}

#[test]
fn every_cited_page_and_heading_exists() {
    let files = files();
    let mut faults = Vec::new();
    for (path, text) in &files {
        let mut targets = citations(text);
        if is_markdown(path) {
            targets.extend(links(path, text));
        }
        if is_markdown(path)
            && (path.starts_with("docs") || PAGES.iter().any(|page| path == Path::new(page)))
        {
            targets.extend(sources(text));
        }
        let found = targets.iter().filter_map(|target| fault(&files, target));
        faults.extend(found.map(|fault| format!("{}: {fault}", path.display())));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn promises_name_tests_and_rules_that_exist() {
    let files = files();
    let rows = promised(&files[Path::new(PROMISES)]);
    assert!(rows.len() > 50, "{PROMISES} has only {} rows", rows.len());
    let faults = missing_tests(&files, rows);
    assert!(faults.is_empty(), "{PROMISES}:\n{}", faults.join("\n"));
}

#[test]
fn every_line_of_the_threat_model_names_its_test() {
    let files = files();
    let model = section(&files[Path::new(SECURITY)], "## Threat model");
    let lines = rows_below_headings(model);
    assert!(
        lines.len() > 20,
        "{SECURITY} has only {} lines",
        lines.len()
    );
    let rows = promised(model);
    let mut faults = missing_tests(&files, rows);
    let untested = lines.iter().filter(|line| promised(line).is_empty());
    faults.extend(untested.map(|line| format!("names no test: {line}")));
    assert!(faults.is_empty(), "{SECURITY}:\n{}", faults.join("\n"));
}

#[test]
fn every_known_limit_says_what_it_costs_and_how_it_is_noticed() {
    let files = files();
    let page = &files[Path::new("docs/known-limits.md")];
    let (limits, _) = page.split_once("## The fault simulator").unwrap();
    let rows = rows_below_headings(limits);
    assert!(rows.len() > 50, "only {} limits", rows.len());
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let ["", limit, cost, notice, ""] = cells.as_slice() else {
            panic!("not three cells: {row}");
        };
        assert!(!limit.is_empty() && !cost.is_empty(), "{row}");
        // A limit that costs nothing needs no notice.
        assert!(!notice.is_empty() || cost.starts_with("Nothing"), "{row}");
    }
    let findings = rows_below_headings(section(page, "## Findings of independent exchanges"));
    assert!(!findings.is_empty());
    for row in findings {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert!(cells.len() == 6, "not four cells: {row}");
        assert!(cells[1..5].iter().all(|cell| !cell.is_empty()), "{row}");
    }
}

/// The section of a page with this heading, up to the next heading of its level.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = page.find(heading).unwrap() + heading.len();
    let rest = &page[start..];
    rest.find("\n## ").map_or(rest, |end| &rest[..end])
}

/// The rows of all tables of a text, without the rows of headings.
fn rows_below_headings(text: &str) -> Vec<&str> {
    let mut rows = Vec::new();
    let mut below = false;
    for line in text.lines() {
        if !line.starts_with('|') {
            below = false;
        } else if line.starts_with("|---") {
            below = true;
        } else if below {
            rows.push(line);
        }
    }
    rows
}

/// The tests and texts of rows that their files do not have, as sentences.
fn missing_tests(
    files: &BTreeMap<PathBuf, String>,
    rows: Vec<(Vec<Named>, Vec<String>)>,
) -> Vec<String> {
    let mut faults = Vec::new();
    for (named, paths) in rows {
        let texts: Vec<&str> = paths
            .iter()
            .filter_map(|path| files.get(Path::new(path)))
            .map(String::as_str)
            .collect();
        if texts.is_empty() || texts.len() < paths.len() {
            faults.push(format!("{named:?}: one of {paths:?} is no file"));
            continue;
        }
        let absent = named
            .iter()
            .filter(|one| !texts.iter().any(|text| one.is_in(text)));
        faults.extend(absent.map(|one| format!("{one:?} is not in {paths:?}")));
    }
    faults
}

#[test]
fn every_numbered_promise_has_its_anchor() {
    let mut faults = Vec::new();
    for (path, text) in files() {
        let found = promises_without_anchor(&text);
        faults.extend(found.iter().map(|one| format!("{}: {one}", path.display())));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn comments_cite_the_interface_with_an_anchor() {
    let mut faults = Vec::new();
    for (path, text) in files() {
        if path.extension().is_none_or(|ending| ending != "rs") {
            continue;
        }
        let comments = text.lines().map(str::trim_start);
        let comments = comments.filter(|line| line.starts_with("//"));
        let cited = comments.flat_map(citations);
        let bare = cited.filter(|page| page.starts_with("docs/interface/") && !page.contains('#'));
        faults.extend(bare.map(|page| format!("{}: {page}", path.display())));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_numbered_document_is_cited() {
    let mut faults = Vec::new();
    for (path, text) in files() {
        faults.extend(numbered(&text).map(|found| format!("{}: {found}", path.display())));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn headings_become_anchors_as_on_code_hosts() {
    let page = "# Signing, with a wallet\n## `ORDER_TRADE_UPDATE`\n## 429, 418 and bans\n\
                ```sh\n# no heading\n```\n## [Links](x.md) count\n# Twice\n# Twice\n#none\n";
    let expected = [
        "429-418-and-bans",
        "links-count",
        "order_trade_update",
        "signing-with-a-wallet",
        "twice",
        "twice-1",
    ];
    assert_eq!(Vec::from_iter(anchors(page)), expected);
}

#[test]
fn citations_are_found_in_comments_texts_and_links() {
    let folder = "docs";
    let text = format!(
        "({folder}/a.md#b-c). `{folder}/d/e.md`; ../../{folder}/f.md, https://x/{folder}/g.md \
         other{folder}/h.md {folder}/i.toml {folder}/j.md."
    );
    let expected = ["a.md#b-c", "d/e.md", "f.md", "j.md"].map(|page| format!("{folder}/{page}"));
    assert_eq!(citations(&text), expected);
}

#[test]
fn paths_in_backticks_are_found_whatever_their_base() {
    let page = "`runtime/x/src/{a, b}.rs`, `lag.rs`, `session/src/start`, `tests/faults`, a `long\n\
                name.rs`. `strategies/buy_once/src/lib.rs`, `journal/`, `admin.addr`, `{ env = \"A\" }`\n\
                ```sh\n`c.rs`\n```\n";
    let expected = [
        "runtime/x/src/a.rs",
        "runtime/x/src/b.rs",
        "lag.rs",
        "session/src/start",
        "tests/faults",
    ];
    assert_eq!(sources(page), expected);
}

#[test]
fn rows_of_promises_name_tests_rules_and_bugs() {
    let page = "| test | file |\n|---|---|\n| `a_b`, \"a rule\" | `tests/{a,b}.rs` |\n\
                | `a-bug` | `tests/c.rs` |\n`a_c` | `tests/d.rs`\n";
    let [first, second] = promised(page).try_into().unwrap();
    let text = |text: &str| Named::Text(text.to_owned());
    let test = Named::Test("a_b".to_owned());
    assert_eq!(first.0, [test, text("a rule")]);
    assert_eq!(first.1, ["tests/a.rs", "tests/b.rs"]);
    assert_eq!(second, (vec![text("a-bug")], vec!["tests/c.rs".to_owned()]));
    assert!(first.0[0].is_in("fn a_b() {") && !first.0[0].is_in("fn a_bc() {"));
    assert!(second.0[0].is_in("Bug \"a-bug\"") && !second.0[0].is_in("a-bug"));
}

#[test]
fn a_promise_without_its_anchor_is_found() {
    let name = "Promise";
    let page = "docs/promises.md";
    for cited in [
        format!("//! {name} 4 ({page}#4-a): b"),
        format!("//! {name}\n//! 4\n//! ({page}#4-a)"),
        format!("[{name} 12](../promises.md#12-a)"),
        "a promise to 4 people; promises 4".to_owned(),
    ] {
        assert_eq!(promises_without_anchor(&cited), [""; 0], "{cited}");
    }
    for bare in [
        format!("//! {name} 4: b ({page}#4-a)"),
        format!("({name}\n    /// 4)."),
        format!("{name} 4 ({page}#5-a)"),
    ] {
        let found = promises_without_anchor(&bare);
        assert_eq!(found, [format!("promise {}", 4)], "{bare}");
    }
}

#[test]
fn a_numbered_document_is_found_across_a_line_break() {
    let word = "spec";
    assert!(numbered(&format!("/// ({word}\n    /// 2, Errors)")).is_some());
    assert!(numbered(&format!("{word}s 1 and 2")).is_some());
    assert!(numbered("documents, 1,200 of them; document 12; documented 1").is_none());
}
