//! Reads the manifests of the workspace, as far as the tasks and the test of the layout need them.

use std::path::{Path, PathBuf};

/// A `Cargo.toml`.
#[derive(Debug)]
pub struct Manifest {
    /// Folder of the package.
    pub folder: PathBuf,
    text: String,
}

impl Manifest {
    /// The manifests of all members of the workspace.
    ///
    /// # Errors
    /// A manifest cannot be read.
    pub fn all(root: &Path) -> Result<Vec<Self>, String> {
        let workspace = Self::read(root)?;
        let mut folders = Vec::new();
        for member in workspace.list("[workspace]", "members") {
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
        let text = std::fs::read_to_string(&path);
        Ok(Self {
            folder: folder.to_owned(),
            text: text.map_err(|error| format!("{}: {error}", path.display()))?,
        })
    }

    /// The package's name.
    pub fn name(&self) -> String {
        self.value("[package]", "name").unwrap_or_default()
    }

    /// The names of the crates that the library or the program depends on, on every platform.
    #[allow(dead_code, reason = "only the test of the layout needs it")]
    pub fn dependencies(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut is_inside = false;
        for line in self.text.lines().map(str::trim) {
            if let Some(header) = line.strip_prefix('[') {
                let header = header.trim_end_matches(']');
                let last = header.rsplit('.').next().unwrap_or(header);
                is_inside = last == "dependencies" || last == "build-dependencies";
                for table in ["dependencies.", "build-dependencies."] {
                    let own = header.strip_prefix(table);
                    let of_target = header.split_once(&format!(".{table}")).map(|split| split.1);
                    names.extend(own.or(of_target).map(str::to_owned));
                }
            } else if is_inside && !line.is_empty() && !line.starts_with('#') {
                let name = line.split(['.', '=', ' ']).next().unwrap_or(line);
                names.push(name.trim_matches('"').to_owned());
            }
        }
        names
    }

    /// The names in `[[bench]]`.
    #[allow(dead_code, reason = "only the task `bench` needs it")]
    pub fn benches(&self) -> Vec<String> {
        let tables = self.text.split("[[bench]]").skip(1);
        tables.filter_map(|table| value(table, "name")).collect()
    }

    fn value(&self, header: &str, key: &str) -> Option<String> {
        value(self.text.split_once(header)?.1, key)
    }

    /// The strings of a list with one entry per line.
    fn list(&self, header: &str, key: &str) -> Vec<String> {
        let table = self.text.split_once(header).map_or("", |split| split.1);
        let list = table
            .split_once(&format!("{key} = ["))
            .map_or("", |split| split.1);
        let list = list.split(']').next().unwrap_or_default();
        list.split('"')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    }
}

/// The string of a key in the first table of a text.
fn value(table: &str, key: &str) -> Option<String> {
    let lines = table.lines().take_while(|line| !line.starts_with('['));
    let mut values = lines.filter_map(|line| line.strip_prefix(key)?.trim().strip_prefix('='));
    values
        .next()
        .map(|value| value.trim().trim_matches('"').to_owned())
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
            text: text.to_owned(),
        };
        assert_eq!(manifest.name(), "x");
        assert_eq!(manifest.dependencies(), ["a", "b", "c", "e", "f", "g"]);
        assert_eq!(manifest.benches(), ["h"]);
    }
}
