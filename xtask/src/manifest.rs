//! Reads the manifests of the workspace, as far as the tasks and the test of the layout need them.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// A `Cargo.toml`.
#[derive(Debug)]
pub struct Manifest {
    /// Folder of the package.
    pub folder: PathBuf,
    content: Table,
}

impl Manifest {
    /// The manifests of all members of the workspace.
    ///
    /// # Errors
    /// A manifest cannot be read.
    pub fn all(root: &Path) -> Result<Vec<Self>, String> {
        let workspace = Self::read(root)?;
        let mut folders = Vec::new();
        for member in workspace.members() {
            match member.strip_suffix("/*") {
                Some(parent) => {
                    let entries = std::fs::read_dir(root.join(parent));
                    let entries = entries.map_err(|error| format!("{parent}: {error}"))?;
                    let mut found: Vec<PathBuf> =
                        entries.flatten().map(|entry| entry.path()).collect();
                    found.sort();
                    folders.extend(
                        found
                            .into_iter()
                            .filter(|path| path.join("Cargo.toml").is_file()),
                    );
                }
                None => folders.push(root.join(member)),
            }
        }
        folders.iter().map(|folder| Self::read(folder)).collect()
    }

    /// The package that a file belongs to: the one with the innermost folder.
    pub fn owner<'a>(all: &'a [Self], file: &Path) -> Option<&'a Self> {
        let owners = all.iter().filter(|one| file.starts_with(&one.folder));
        owners.max_by_key(|one| one.folder.components().count())
    }

    fn read(folder: &Path) -> Result<Self, String> {
        let path = folder.join("Cargo.toml");
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
        Ok(Self {
            folder: folder.to_owned(),
            content: text.parse::<Table>().map_err(|error| failed(&error))?,
        })
    }

    /// The package's name.
    pub fn name(&self) -> String {
        let package = self.content.get("package");
        let name = package.and_then(|package| package.get("name")?.as_str());
        name.unwrap_or_default().to_owned()
    }

    /// The names of the crates that the library or the program depends on, on every platform,
    /// sorted.
    #[allow(dead_code, reason = "only the test of the layout needs it")]
    pub fn dependencies(&self) -> Vec<String> {
        let targets = self.content.get("target").and_then(Value::as_table);
        let targets = targets.into_iter().flat_map(Table::values);
        let tables = targets.filter_map(Value::as_table).chain([&self.content]);
        let lists = tables.flat_map(|table| {
            ["dependencies", "build-dependencies"].map(|kind| table.get(kind)?.as_table())
        });
        let mut names: Vec<String> = lists.flatten().flat_map(Table::keys).cloned().collect();
        names.sort();
        names
    }

    /// The names in `[[bench]]`.
    #[allow(dead_code, reason = "only the task `bench` needs it")]
    pub fn benches(&self) -> Vec<String> {
        let benches = self.content.get("bench").and_then(Value::as_array);
        let benches = benches.into_iter().flatten();
        let names = benches.filter_map(|bench| bench.get("name")?.as_str());
        names.map(str::to_owned).collect()
    }

    /// The folders of the workspace's members. One may end with `/*`.
    fn members(&self) -> Vec<&str> {
        let workspace = self.content.get("workspace");
        let members = workspace.and_then(|workspace| workspace.get("members")?.as_array());
        let members = members.into_iter().flatten();
        members.filter_map(Value::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_found_in_every_kind_of_table() {
        let text = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\n# no\n\
                    b = \"1\"\n[dependencies.c]\nversion = \"1\"\n[dev-dependencies]\nd = \"1\"\n\
                    [target.'cfg(unix)'.dependencies]\ne = \"1\"\n\
                    [target.'cfg(unix)'.dependencies.f]\npath = \"f\"\n\
                    [build-dependencies]\ng = \"1\"\n[[bench]]\nname = \"h\"\n";
        let manifest = Manifest {
            folder: PathBuf::new(),
            content: text.parse().unwrap(),
        };
        assert_eq!(manifest.name(), "x");
        assert_eq!(manifest.dependencies(), ["a", "b", "c", "e", "f", "g"]);
        assert_eq!(manifest.benches(), ["h"]);
    }
}
