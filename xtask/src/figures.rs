//! Figures of the repository, as Markdown.

use std::path::Path;

use crate::lines::{self, Lines};
use crate::manifest::Manifest;

#[derive(Default)]
struct Crate {
    lines: Lines,
    files: usize,
    longest: usize,
}

pub(crate) fn print() -> Result<(), String> {
    let root = crate::root();
    println!(
        "| Crate | Files | Code | Comments | Tests | Longest file |\n|---|---:|---:|---:|---:|---:|"
    );
    let mut total = Crate::default();
    let manifests = Manifest::all(&root)?;
    for manifest in &manifests {
        let one = crate_in(&manifest.folder, &manifests)?;
        row(&manifest.name(), &one);
        add(&mut total.lines, one.lines);
        total.files += one.files;
        total.longest = total.longest.max(one.longest);
    }
    row("all", &total);
    println!("\n| Documentation | Files | Sentences | Words |\n|---|---:|---:|---:|");
    let (mut sentences, mut words, mut count) = (0, 0, 0);
    for file in lines::files(&root, "md")? {
        let (more_sentences, more_words) = prose(&read(&file)?);
        sentences += more_sentences;
        words += more_words;
        count += 1;
    }
    println!("| Markdown | {count} | {sentences} | {words} |");
    let lock = read(&root.join("Cargo.lock"))?;
    let packages = lock.matches("[[package]]").count();
    println!(
        "\nCrates in `Cargo.lock`: {packages}, of which {} are ours.",
        manifests.len()
    );
    Ok(())
}

const fn add(sum: &mut Lines, more: Lines) {
    sum.code += more.code;
    sum.tests += more.tests;
    sum.comments += more.comments;
    sum.blank += more.blank;
}

fn row(name: &str, one: &Crate) {
    let Lines {
        code,
        tests,
        comments,
        ..
    } = one.lines;
    let (files, longest) = (one.files, one.longest);
    println!("| `{name}` | {files} | {code} | {comments} | {tests} | {longest} |");
}

/// The figures of one crate, without the crates in its subfolders.
fn crate_in(folder: &Path, all: &[Manifest]) -> Result<Crate, String> {
    let mut one = Crate::default();
    let mut files = lines::files(folder, "rs")?;
    files.retain(|file| Manifest::owner(all, file).is_some_and(|owner| owner.folder == folder));
    for (_, counted) in lines::count_all(folder, files)? {
        one.longest = one.longest.max(counted.all());
        add(&mut one.lines, counted);
        one.files += 1;
    }
    Ok(one)
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Sentences and words of a page, without code blocks, tables and headings.
fn prose(text: &str) -> (usize, usize) {
    let (mut sentences, mut words) = (0, 0);
    let mut is_code = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if !is_code && !line.starts_with(['|', '#']) {
            let ends = |word: &&str| word.ends_with(['.', '?', '!', ':']);
            sentences += line.split_whitespace().filter(ends).count();
            words += line.split_whitespace().count();
        }
    }
    (sentences, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_counted_without_code_and_tables() {
        let text = "# Title\n\nOne. Two words.\n```sh\nno. no.\n```\n| a. |\n";
        assert_eq!(prose(text), (2, 3));
    }
}
