//! What the programs of a build may use and what they must not read, and whether a build without this
//! protection is refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use windvane_config::{Compile, Config};

use super::confinement::{StepPlan, real_path};
use super::folders::{cargo_home, files_above, rustup_home};
use super::reachable::{self, CargoHome, holds_home};
use super::sources::{MANIFEST, NOT_SEARCHED, Sources};
use super::{BuildError, cache};

/// Folders of the system. A secret file directly in one of them is denied alone, not with its
/// folder. None of them can be the folder of sources.
const SYSTEM: [&str; 12] = [
    "/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/run", "/tmp", "/usr", "/var",
];

/// The folder with the credentials of a systemd service.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// The files and folders that builds must not read or write.
#[derive(Clone, Debug, Default)]
pub struct BuildRules {
    /// Folders that are denied in any case.
    folders: Vec<PathBuf>,
    /// Secret files. Each is denied with its folder, if the build needs nothing else there.
    files: Vec<PathBuf>,
    /// Whether a build that cannot be confined is refused.
    required: bool,
    /// The limits of the process that checks the built module.
    compile: Compile,
}

impl BuildRules {
    /// The rules of this configuration: its data folder and its secret files are denied. If it has
    /// keys of an exchange that is not on loopback, a build that cannot be confined is refused.
    pub fn of(config: &Config) -> Self {
        Self {
            folders: vec![config.run.data_dir.clone()],
            files: config.secret_files(),
            required: config.has_keys() && !config.venue.is_on_this_machine(),
            compile: config.compile,
        }
    }

    /// The same rules, with one more folder that is denied.
    #[must_use]
    pub fn with_denied(mut self, folder: PathBuf) -> Self {
        self.folders.push(folder);
        self
    }

    /// Whether a build that cannot be confined is refused.
    pub(super) const fn is_required(&self) -> bool {
        self.required
    }

    /// The limits of the process that checks the built module.
    pub(super) const fn compile(&self) -> Compile {
        self.compile
    }

    /// The denied paths of a build that needs `needed`, and of its sources `packages`, without links. They
    /// count where they are in a folder that the build may use.
    fn denied(
        &self,
        needed: &[PathBuf],
        packages: &BTreeSet<PathBuf>,
    ) -> Result<Vec<PathBuf>, BuildError> {
        let mut denied = Vec::new();
        for folder in &self.folders {
            let folder = real_path(folder);
            if let Some(inside) = needed.iter().find(|path| path.starts_with(&folder)) {
                return Err(BuildError::InDenied {
                    inside: inside.clone(),
                    denied: folder,
                });
            }
            denied.push(folder);
        }
        let system = SYSTEM.map(PathBuf::from);
        for file in &self.files {
            let file = real_path(file);
            let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
            let is_needed = |path: &PathBuf| path.starts_with(&folder);
            let in_use = needed.iter().chain(packages).any(is_needed);
            let shared = in_use || system.contains(&folder);
            denied.push(if shared { file } else { folder });
        }
        denied.extend(std::env::var_os(CREDENTIALS).map(|folder| real_path(Path::new(&folder))));
        // A build that could write there would decide which native code the trading process runs.
        denied.extend(cache::compiled().map(|folder| real_path(&folder)));
        Ok(denied)
    }
}

/// A strategy's folder, and what the programs that run in it may use.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) dir: &'a Path,
    pub(super) rules: &'a BuildRules,
}

/// A kind of program of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Asks for the package or the compiler. Rustup may download a toolchain. No code of the sources
    /// runs, and nothing in their folders may be started.
    Query,
    /// Downloads what the package needs. Nothing in the folders of the sources may be started.
    Fetch,
    /// Compiles. Build scripts and macros run.
    Compile,
}

impl Source<'_> {
    /// The permissions of a program that may write `writable`.
    pub(super) fn plan(&self, step: Step, writable: &[&Path]) -> Result<StepPlan, BuildError> {
        let dir = real_path(self.dir);
        let Sources { roots, packages } = Sources::of(&dir);
        for root in &roots {
            check_root(root)?;
        }
        let homes = [cargo_home(), rustup_home()];
        let mut write: Vec<PathBuf> = writable.iter().map(|path| real_path(path)).collect();
        let mut needed: Vec<PathBuf> = homes.iter().flatten().cloned().collect();
        needed.extend(cache::folder().ok().map(|folder| real_path(&folder)));
        needed.push(dir.clone());
        needed.extend(write.iter().cloned());
        needed.extend(roots.iter().cloned());
        let mut denied = self.rules.denied(&needed, &packages)?;
        for root in &roots {
            add_data_folders(root, DATA_DEPTH_MAX, &mut denied);
        }

        let mut read = reachable::facts();
        read.extend(files_above(&dir));
        for root in &roots {
            read.extend(files_above(root));
        }
        let mut execute = reachable::programs();
        let cargo = homes[0].as_deref().map(CargoHome);
        if let Some(cargo) = &cargo {
            read.extend(cargo.settings());
            read.extend(cargo.named_in_settings());
            execute.push(cargo.programs());
        }
        match step {
            Step::Query => {
                read.extend(roots.iter().cloned());
                write.extend(homes[1].clone());
            }
            Step::Fetch => {
                read.extend(roots.iter().cloned());
                if let Some(cargo) = &cargo {
                    read.extend(cargo.credentials());
                    write.extend(cargo.make_downloads());
                }
            }
            Step::Compile => {
                // Build scripts start scripts of their packages, and programs that they compile.
                execute.extend(roots.iter().cloned());
                execute.extend(write.iter().cloned());
                execute.extend(cargo.iter().flat_map(CargoHome::downloads));
            }
        }
        if step != Step::Compile {
            read.extend(reachable::network());
        }
        if step != Step::Fetch {
            denied.extend(cargo.iter().flat_map(CargoHome::credentials));
        }
        // The roots share the folders above them. The plan is an argument, whose length is limited.
        read.sort();
        read.dedup();
        // Cargo lists the folders of packages, which have a manifest.
        let above = |path: &&Path| denied.iter().any(|one| one.starts_with(path));
        let folders: BTreeSet<&Path> = packages.iter().flat_map(|one| one.ancestors()).collect();
        let listed = folders.into_iter().filter(above);
        let listed = listed.filter(|path| path.join(MANIFEST).is_file());
        Ok(StepPlan {
            listed: listed.map(Path::to_owned).collect(),
            read,
            execute,
            write,
            denied,
            network: step != Step::Compile,
        })
    }
}

/// The settings of cargo outside the sources that every program of their build must read.
pub(super) fn settings(dir: &Path) -> Vec<PathBuf> {
    let roots = Sources::of(dir).roots;
    let home = cargo_home();
    let files = home.iter().flat_map(|home| CargoHome(home).settings());
    let outside = files.chain(files_above(dir));
    outside
        .filter(|file| file.is_file() && !roots.iter().any(|root| file.starts_with(root)))
        .collect()
}

/// Refuses sources whose folder has more than sources: a build may read the whole folder.
fn check_root(root: &Path) -> Result<(), BuildError> {
    let is_system = SYSTEM.iter().any(|folder| root == Path::new(folder));
    if is_system || holds_home(root) {
        return Err(BuildError::TooWide(root.to_owned()));
    }
    Ok(())
}

/// How many folders deep data folders are looked for.
const DATA_DEPTH_MAX: u32 = 4;

/// Adds the data folders of runs in a folder, also those of other configurations.
fn add_data_folders(folder: &Path, depth: u32, denied: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_searched = NOT_SEARCHED.iter().all(|name| entry.file_name() != *name);
        if !is_searched || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let inner = entry.path();
        if is_data_folder(&inner) {
            denied.push(inner);
        } else if depth > 1 {
            add_data_folders(&inner, depth - 1, denied);
        }
    }
}

/// Whether a run keeps its state in this folder.
fn is_data_folder(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    let has_state = || ["epoch", "mark", "latch"].into_iter().any(has);
    has("admin.sock") || has("admin.token") || has("journal") && has_state()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_folders_of_any_run_in_the_sources_are_found() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["var/run", "var/old/journal", "src/journal", "target/run"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for file in [
            "var/run/admin.token",
            "var/old/epoch",
            "target/run/admin.token",
        ] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let mut found = Vec::new();
        add_data_folders(dir.path(), DATA_DEPTH_MAX, &mut found);
        found.sort();
        assert_eq!(
            found,
            ["var/old", "var/run"].map(|name| dir.path().join(name))
        );
    }

    /// A strategy that depends on a package in a clone, whose folder also has secret files.
    fn beside_a_clone() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let place = real_path(dir.path());
        for (folder, manifest) in [
            ("clone", "[workspace]\n"),
            ("clone/sdk/rust", "[package]\n"),
            (
                "strategy",
                "[dependencies]\nsdk = { path = \"../clone/sdk/rust\" }\n",
            ),
        ] {
            std::fs::create_dir_all(place.join(folder)).unwrap();
            std::fs::write(place.join(folder).join(MANIFEST), manifest).unwrap();
        }
        (dir, place)
    }

    #[test]
    fn a_secret_file_beside_a_dependency_is_denied_alone() {
        let (_dir, place) = beside_a_clone();
        let secrets = ["clone/key", "clone/sdk/key"].map(|name| place.join(name));
        let rules = BuildRules {
            files: [&secrets[..], &[place.join("clone/keys/key")]].concat(),
            ..BuildRules::default()
        };
        let dir = &place.join("strategy");
        let source = Source { dir, rules: &rules };
        let plan = source.plan(Step::Query, &[]).unwrap();
        assert!(plan.read.contains(&place.join("clone")), "{plan:?}");
        for denied in [&secrets[0], &secrets[1], &place.join("clone/keys")] {
            assert!(plan.denied.contains(denied), "{denied:?} {plan:?}");
        }
        for used in ["clone", "clone/sdk", "clone/sdk/rust"] {
            assert!(!plan.denied.contains(&place.join(used)), "{plan:?}");
        }
        assert!(plan.listed.contains(&place.join("clone")), "{plan:?}");
    }

    #[test]
    fn a_dependency_in_the_data_folder_is_refused() {
        let (_dir, place) = beside_a_clone();
        let rules = BuildRules::default().with_denied(place.join("clone"));
        let dir = &place.join("strategy");
        let source = Source { dir, rules: &rules };
        let error = source.plan(Step::Query, &[]).unwrap_err();
        assert!(matches!(error, BuildError::InDenied { .. }), "{error}");
    }

    #[test]
    fn a_folder_around_the_home_or_the_system_is_no_folder_of_sources() {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap());
        for root in [Path::new("/"), Path::new("/etc"), &real_path(&home)] {
            let error = check_root(root).unwrap_err();
            assert!(matches!(error, BuildError::TooWide(_)), "{error}");
        }
        let dir = tempfile::tempdir().unwrap();
        check_root(&real_path(dir.path())).unwrap();
    }
}
