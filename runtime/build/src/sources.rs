//! The packages that cargo reads for a strategy, and the folders around them. Cargo resolves every member of
//! a workspace, so the dependencies of members that the strategy does not use count too.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use super::reachable::holds_home;

/// The name of a manifest.
pub(super) const MANIFEST: &str = "Cargo.toml";
/// Folders with very many entries that are not searched.
pub(super) const NOT_SEARCHED: [&str; 3] = ["target", ".git", "node_modules"];

/// The start of a dependency on a folder, in a manifest.
const PATH_KEY: &str = "path";
/// The start of the folder of the workspace, in a manifest.
const WORKSPACE_KEY: &str = "workspace";
/// The start of the list of members, in the manifest of a workspace.
const MEMBERS_KEY: &str = "members";
/// A longer manifest is not searched for dependencies.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// How many folders below a root manifests are looked for.
const DEPTH_MAX: u32 = 6;
/// How many folders of one root are searched.
const FOLDERS_MAX: usize = 4096;
/// How many packages are searched for dependencies.
const PACKAGES_MAX: usize = 4096;

/// The sources of a strategy. The paths have no links.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// The folder of the package or of its workspace, and those of the packages on which a manifest in a
    /// root depends by path. No root is in an earlier one.
    pub(super) roots: BTreeSet<PathBuf>,
    /// The folders of the packages in the roots.
    pub(super) packages: BTreeSet<PathBuf>,
}

impl Sources {
    /// The sources of the package in this folder. A package outside a workspace is its own root.
    pub(super) fn of(package: &Path) -> Self {
        let package = package
            .canonicalize()
            .unwrap_or_else(|_| package.to_owned());
        let mut sources = Self::default();
        let mut open = VecDeque::from([package]);
        while let Some(package) = open.pop_front() {
            if sources.packages.len() < PACKAGES_MAX && sources.packages.insert(package.clone()) {
                sources.add(&package, &mut open);
            }
        }
        sources
    }

    /// Adds the root of a package if it is new, and the packages that their manifests name to `open`.
    fn add(&mut self, package: &Path, open: &mut VecDeque<PathBuf>) {
        let root = workspace(package).unwrap_or_else(|| package.to_owned());
        if !self.roots.iter().any(|known| root.starts_with(known)) {
            self.roots.insert(root.clone());
            open.extend(members(&root));
            // A folder around the home folder is refused later.
            if !holds_home(&root) {
                open.extend(packages_below(&root));
            }
            open.push_back(root);
        }
        // A member may be outside the folder of its workspace.
        if !self.roots.iter().any(|known| package.starts_with(known)) {
            self.roots.insert(package.to_owned());
        }
        let text = manifest(package);
        let named = values(&text, PATH_KEY).map(|path| package.join(path));
        open.extend(named.filter_map(|folder| package_in(&folder)));
    }
}

/// The folder without links, if it is one of a package. Only a package gives its folder to a build.
fn package_in(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    folder.join(MANIFEST).is_file().then_some(folder)
}

/// The root of the package's workspace: the one that its manifest names, or the next one above it.
fn workspace(package: &Path) -> Option<PathBuf> {
    if let Some(named) = values(&manifest(package), WORKSPACE_KEY).next() {
        let root = package.join(named).canonicalize().ok()?;
        return is_workspace(&root).then_some(root);
    }
    let root = package.ancestors().find(|above| is_workspace(above));
    root.map(Path::to_owned)
}

fn is_workspace(folder: &Path) -> bool {
    let text = manifest(folder);
    let mut lines = text.lines();
    lines.any(|line| line.trim_start().starts_with("[workspace"))
}

/// The members that the manifest of a workspace names. Of the patterns, only `folder/*` is known; those in
/// the root are found with its other packages.
fn members(root: &Path) -> Vec<PathBuf> {
    let text = manifest(root);
    let mut folders = Vec::new();
    for name in lists(&text, MEMBERS_KEY) {
        match name.strip_suffix("/*") {
            Some(above) => folders.extend(folders_in(&root.join(above))),
            None => folders.push(root.join(name)),
        }
    }
    let packages = folders.iter().filter_map(|folder| package_in(folder));
    packages.collect()
}

/// The packages in the folders below this one.
fn packages_below(root: &Path) -> Vec<PathBuf> {
    let mut packages = Vec::new();
    let mut open = VecDeque::from([(root.to_owned(), DEPTH_MAX)]);
    let mut searched = 0;
    while let Some((folder, depth)) = open.pop_front() {
        searched += 1;
        if searched > FOLDERS_MAX {
            break;
        }
        for inner in folders_in(&folder) {
            if inner.join(MANIFEST).is_file() {
                packages.push(inner.clone());
            }
            if depth > 1 {
                open.push_back((inner, depth - 1));
            }
        }
    }
    packages
}

/// The folders in this one, without links, in the order of their names.
fn folders_in(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| {
        let is_searched = NOT_SEARCHED.iter().all(|name| entry.file_name() != *name);
        is_searched && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    folders.map(|entry| entry.path()).collect()
}

fn manifest(folder: &Path) -> String {
    windvane_files::read_text_bounded(&folder.join(MANIFEST), MANIFEST_BYTES_MAX)
        .unwrap_or_default()
}

/// The values of `key = "..."` in a text of TOML. A value with another meaning does no harm.
pub(super) fn values<'a>(text: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
    text.match_indices(key).filter_map(|(at, key)| {
        let rest = text[at + key.len()..].trim_start().strip_prefix('=')?;
        quoted(rest)
    })
}

/// The values of `key = ["...", "..."]` in a text of TOML.
pub(super) fn lists<'a>(text: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
    let lists = text.match_indices(key).filter_map(|(at, key)| {
        let rest = text[at + key.len()..].trim_start().strip_prefix('=')?;
        rest.trim_start().strip_prefix('[')?.split(']').next()
    });
    lists.flat_map(|list| list.split([',', '\n']).filter_map(quoted))
}

/// The text in quotes at the start of this one.
fn quoted(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let quote = text
        .chars()
        .next()
        .filter(|one| matches!(one, '"' | '\''))?;
    text[1..].split(quote).next()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Writes manifests, and returns the folder around them.
    fn place(manifests: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for (folder, text) in manifests {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join(MANIFEST), text).unwrap();
        }
        (dir, root)
    }

    fn roots(place: &Path, package: &str) -> Vec<PathBuf> {
        let sources = Sources::of(&place.join(package));
        let inner = sources.roots.iter();
        inner
            .map(|root| root.strip_prefix(place).unwrap().to_owned())
            .collect()
    }

    #[test]
    fn dependencies_of_a_dependency_in_the_workspace_are_found() {
        let (_dir, place) = place(&[
            ("work", "[workspace]\nmembers = [\"a\", \"b\"]\n"),
            ("work/a", "[dependencies]\nb = { path = \"../b\" }\n"),
            ("work/b", "[dependencies]\nc = { path = \'../../c\' }\n"),
            ("c", "[dependencies]\nd = { path = \"../d\" }\n"),
            ("d", "[package]\n"),
            ("e", "[package]\n"),
        ]);
        let expected = ["c", "d", "work"].map(PathBuf::from);
        assert_eq!(roots(&place, "work/a"), expected);
    }

    #[test]
    fn dependencies_of_other_members_are_found() {
        let (_dir, place) = place(&[
            (
                "work",
                "[workspace]\nmembers = [\n  'a', # first\n  \"../side/*\", \"../one\"\n]\n",
            ),
            ("work/a", "[package]\n"),
            (
                "work/deep/er/b",
                "[dependencies]\nc = { path = \"../../../../c\" }\n",
            ),
            (
                "work/target/x",
                "[dependencies]\nd = { path = \"../../../d\" }\n",
            ),
            ("side/s", "[package]\nworkspace = \"../../work\"\n"),
            ("one", "[package]\nworkspace = \"../work\"\n"),
            ("c", "[package]\n"),
            ("d", "[package]\n"),
        ]);
        let sources = Sources::of(&place.join("work/a"));
        for folder in ["c", "side/s", "one", "work"] {
            let is_usable = |root: &PathBuf| place.join(folder).starts_with(root);
            assert!(sources.roots.iter().any(is_usable), "{folder} {sources:?}");
        }
        assert!(!sources.roots.contains(&place.join("d")), "{sources:?}");
    }

    #[test]
    fn packages_that_depend_on_each_other_end_the_search() {
        let (_dir, place) = place(&[
            ("a", "[dependencies]\nb = { path = \"../b\" }\n"),
            ("b", "[dev-dependencies]\na = { path = \"../a\" }\n"),
        ]);
        assert_eq!(roots(&place, "a"), ["a", "b"].map(PathBuf::from));
    }
}
