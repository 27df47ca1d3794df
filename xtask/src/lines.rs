//! Counts lines of Rust sources: code, tests, comments, blank lines.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Lines of one or more files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Lines with code, without tests.
    pub code: usize,
    /// Lines of tests: with code or a comment, in `#[cfg(test)]` items and in test files.
    pub tests: usize,
    /// Lines with a comment alone, without tests.
    pub comments: usize,
    /// Empty lines.
    pub blank: usize,
}

impl Lines {
    /// All lines.
    pub const fn all(&self) -> usize {
        self.code + self.tests + self.comments + self.blank
    }
}

/// All files with this extension in a folder and below, sorted. Build output is left out.
///
/// # Errors
/// A folder cannot be read.
pub fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder);
    let entries = entries.map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                found.extend(files(&path, extension)?);
            }
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Counts these files, which must be all files of the crate in `folder`: a file is a test if another
/// one declares it, or a module around it, with `#[cfg(test)]`.
///
/// # Errors
/// A file cannot be read.
pub fn count_all(folder: &Path, files: Vec<PathBuf>) -> Result<Vec<(PathBuf, Lines)>, String> {
    let read = |file: PathBuf| match std::fs::read_to_string(&file) {
        Ok(source) => Ok((file, source)),
        Err(error) => Err(format!("{}: {error}", file.display())),
    };
    let sources: Vec<(PathBuf, String)> = files.into_iter().map(read).collect::<Result<_, _>>()?;
    let tests: BTreeSet<PathBuf> = sources
        .iter()
        .flat_map(|(file, source)| test_modules(file, source))
        .collect();
    let counted = sources.into_iter().map(|(file, source)| {
        let relative = file.strip_prefix(folder).unwrap_or(&file);
        let is_declared = file.ancestors().any(|path| tests.contains(path));
        let is_test = is_declared || is_test(relative);
        let lines = count(&source, is_test);
        (file, lines)
    });
    Ok(counted.collect())
}

/// Whether a file has tests, benchmarks or examples alone, by its path in its crate. Folders of
/// these names below `src` are ordinary modules.
fn is_test(path: &Path) -> bool {
    let names = ["tests", "benches", "examples", "fuzz"];
    names.iter().any(|name| path.starts_with(name))
}

/// The files and the folders of the modules that `#[cfg(test)] mod name;` declares in this file.
fn test_modules(file: &Path, source: &str) -> Vec<PathBuf> {
    let folder = file.parent().unwrap_or(file);
    let stem = file.file_stem().unwrap_or_default();
    let is_root = ["lib", "main", "mod"].iter().any(|name| stem == *name);
    let folder = if is_root {
        folder.to_owned()
    } else {
        folder.join(stem)
    };
    let items = source.split("#[cfg(test)]").skip(1);
    let names = items.filter_map(|item| {
        let (_, name) = item.trim_start().lines().next()?.split_once("mod ")?;
        name.strip_suffix(';')
    });
    names
        .flat_map(|name| [folder.join(format!("{name}.rs")), folder.join(name)])
        .collect()
}

/// Counts one file. `is_test`: everything in it is a test.
fn count(source: &str, is_test: bool) -> Lines {
    let mut lines = Lines::default();
    let mut scanner = Scanner::default();
    let mut in_test = InTest::No;
    for line in source.lines() {
        let code = scanner.code_of(line);
        let code = code.trim();
        in_test = in_test.at(code);
        if line.trim().is_empty() {
            lines.blank += 1;
        } else if is_test || !matches!(in_test, InTest::No) {
            lines.tests += 1;
        } else if code.is_empty() {
            lines.comments += 1;
        } else {
            lines.code += 1;
        }
        in_test = in_test.after(code);
    }
    lines
}

/// Whether the scan is in an item under `#[cfg(test)]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InTest {
    No,
    /// After the attribute, before the item's first brace.
    Begins,
    /// In the item, with this many open braces.
    Inside(i64),
}

impl InTest {
    fn at(self, code: &str) -> Self {
        match self {
            Self::No if code.starts_with("#[cfg(test)]") => Self::Begins,
            other => other,
        }
    }

    fn after(self, code: &str) -> Self {
        let open = match self {
            Self::No => return self,
            Self::Begins => 0,
            Self::Inside(open) => open,
        };
        let braces = code.matches('{').count() as i64 - code.matches('}').count() as i64;
        let is_over = open + braces <= 0;
        match self {
            Self::Begins if !code.contains('{') && !code.ends_with(';') => self,
            _ if is_over => Self::No,
            _ => Self::Inside(open + braces),
        }
    }
}

/// Removes comments and the contents of strings, across lines.
#[derive(Default)]
struct Scanner {
    /// Depth of block comments.
    comment: usize,
    /// The end of an open string: `"` and its number of `#`; an ordinary string has escapes.
    string: Option<(usize, bool)>,
}

impl Scanner {
    fn code_of(&mut self, line: &str) -> String {
        let letters: Vec<char> = line.chars().collect();
        let mut code = String::new();
        let mut at = 0;
        while at < letters.len() {
            let next = |offset: usize| letters.get(at + offset).copied();
            if self.comment > 0 {
                match (letters[at], next(1)) {
                    ('*', Some('/')) => (self.comment, at) = (self.comment - 1, at + 2),
                    ('/', Some('*')) => (self.comment, at) = (self.comment + 1, at + 2),
                    _ => at += 1,
                }
                continue;
            }
            if let Some((hashes, has_escapes)) = self.string {
                if has_escapes && letters[at] == '\\' {
                    at += 2;
                    continue;
                }
                let is_end =
                    letters[at] == '"' && (1..=hashes).all(|offset| next(offset) == Some('#'));
                if is_end {
                    code.push('"');
                    self.string = None;
                    at += 1 + hashes;
                } else {
                    at += 1;
                }
                continue;
            }
            match letters[at] {
                '/' if next(1) == Some('/') => break,
                '/' if next(1) == Some('*') => {
                    self.comment = 1;
                    at += 2;
                }
                '"' => {
                    let hashes = code
                        .chars()
                        .rev()
                        .take_while(|letter| *letter == '#')
                        .count();
                    let before = code.trim_end_matches('#');
                    let is_raw = before.ends_with('r');
                    self.string = Some((if is_raw { hashes } else { 0 }, !is_raw));
                    code.push('"');
                    at += 1;
                }
                // A character, not a lifetime.
                '\'' if next(1) == Some('\\') => {
                    let rest = letters[at + 2..].iter().skip(1);
                    let end = rest.take_while(|letter| **letter != '\'').count();
                    at += end + 4;
                }
                '\'' if next(2) == Some('\'') => at += 3,
                letter => {
                    code.push(letter);
                    at += 1;
                }
            }
        }
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "//! Doc.\n\nuse a;\nconst S: &str = \"// { no\n  comment\";\n\
        /* a { \n b */\nfn f<'a>(c: &'a str) -> char { '{' } // end\n\
        const R: &str = r#\"}\"#; const E: char = '\\'';\n\
        #[cfg(test)]\nmod tests {\n    // c\n    fn g() { \"}\"; }\n}\nfn h() {}\n\
        #[cfg(test)]\nmod more;\nfn i() {}\n";

    #[test]
    fn tests_comments_and_blank_lines_are_not_code() {
        assert_eq!(
            count(SOURCE, false),
            Lines {
                code: 7,
                tests: 7,
                comments: 3,
                blank: 1,
            }
        );
        let all = count(SOURCE, true);
        assert_eq!((all.tests, all.all()), (17, 18));
    }

    #[test]
    fn test_files_are_recognised() {
        for path in ["tests/x/y.rs", "benches/b.rs", "examples/e.rs"] {
            assert!(is_test(Path::new(path)), "{path}");
        }
        for path in ["src/examples/mod.rs", "src/tests.rs", "src/latest.rs"] {
            assert!(!is_test(Path::new(path)), "{path}");
        }
        let declared = test_modules(Path::new("a/mod.rs"), "#[cfg(test)]\npub(crate) mod x;\n");
        assert_eq!(declared, [Path::new("a/x.rs"), Path::new("a/x")]);
    }
}
