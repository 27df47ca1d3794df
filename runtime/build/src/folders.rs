//! The paths that the build of a strategy's folder uses. A confined process keeps access to them.

use std::path::{Path, PathBuf};

use super::cache;
use super::confinement::real_path;
use super::sources::{MANIFEST, Sources};

/// Files that cargo and rustup look for in every folder above a package.
const ABOVE: [&str; 5] = [
    MANIFEST,
    ".cargo/config",
    ".cargo/config.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
];

/// Cargo's home folder.
pub(super) fn cargo_home() -> Option<PathBuf> {
    home("CARGO_HOME", ".cargo")
}

/// The home folder of rustup.
pub(super) fn rustup_home() -> Option<PathBuf> {
    home("RUSTUP_HOME", ".rustup")
}

/// A home folder: that of the variable, or the default below the user's.
fn home(variable: &str, default: &str) -> Option<PathBuf> {
    let set = std::env::var_os(variable).map(PathBuf::from);
    let set = set.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(default)));
    set.map(|path| real_path(&path))
}

/// Toolchains outside the home of rustup, which `rustup toolchain link` named.
pub(super) fn linked_toolchains() -> Vec<PathBuf> {
    let folder = rustup_home().map(|home| home.join("toolchains"));
    let entries = folder.and_then(|folder| std::fs::read_dir(folder).ok());
    let entries = entries.into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.path().canonicalize().ok())
        .collect()
}

/// The paths that builds use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildFolders {
    /// Paths that are read.
    pub read: Vec<PathBuf>,
    /// Paths that are written.
    pub write: Vec<PathBuf>,
    /// Paths whose programs are started.
    pub execute: Vec<PathBuf>,
}

impl BuildFolders {
    /// The paths for builds of the packages in these folders. Environment variables say where the
    /// toolchain is.
    pub fn of(packages: &[PathBuf]) -> Self {
        let mut folders = Self::default();
        let cargo = cargo_home();
        let rustup = rustup_home();
        let cache = cache::folder().ok();
        let temporary = Some(std::env::temp_dir());
        folders
            .write
            .extend([&cargo, &cache, &temporary].into_iter().flatten().cloned());
        folders
            .execute
            .extend([&cargo, &rustup, &cache].into_iter().flatten().cloned());
        folders.execute.extend(linked_toolchains());
        let path = std::env::var_os("PATH").unwrap_or_default();
        folders
            .execute
            .extend(std::env::split_paths(&path).filter(|one| one.is_absolute()));
        folders
            .execute
            .extend(["/usr", "/bin", "/sbin", "/opt"].map(PathBuf::from));
        for package in packages {
            let package = package.canonicalize().unwrap_or_else(|_| package.clone());
            folders.read.extend(files_above(&package));
            for root in Sources::of(&package).roots {
                folders.read.extend(files_above(&root));
                // A build script of a package is built into its target folder and started there.
                folders.execute.push(root.clone());
                folders.write.push(root);
            }
        }
        folders
    }
}

/// The files that cargo and rustup look for in the folders above a package. They may not exist.
pub(super) fn files_above(package: &Path) -> impl Iterator<Item = PathBuf> {
    let names = |above: &Path| ABOVE.map(|name| above.join(name));
    package.ancestors().flat_map(names)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_pipe_as_manifest_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(folder.join("Cargo.toml"))
            .status();
        assert!(made.unwrap().success());
        let of = BuildFolders::of(std::slice::from_ref(&folder));
        assert!(of.write.contains(&folder), "{of:?}");
    }

    #[test]
    fn folders_of_a_build_include_workspace_and_path_dependencies() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        for name in ["work/strategy", "sdk/rust", "other"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("work/Cargo.toml"), "[workspace]\n").unwrap();
        fs::write(
            folder.join("work/strategy/Cargo.toml"),
            "[dependencies]\nsdk = { path = \"../../sdk/rust\" }\n\
             no = { path = \"../../other\" }\nroot = { path = \"/\" }\n",
        )
        .unwrap();
        fs::write(folder.join("sdk/rust/Cargo.toml"), "[package]\n").unwrap();
        fs::write(folder.join("Cargo.toml"), "[package]\n").unwrap();
        let folders = BuildFolders::of(&[folder.join("work/strategy")]);
        assert!(folders.write.contains(&folder.join("work")));
        assert!(folders.write.contains(&folder.join("sdk/rust")));
        assert!(
            !folders.write.contains(&folder.join("other")),
            "not a package"
        );
        assert!(
            !folders.write.contains(&PathBuf::from("/")),
            "not a package"
        );
        assert!(!folders.write.contains(&folder), "not a workspace");
        assert!(folders.read.contains(&folder.join("Cargo.toml")));
    }
}
