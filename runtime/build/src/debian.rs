//! Creates a private toolchain from Debian's packages, for machines whose rustup cannot download.
//!
//! Debian's `rustc-web` is a current compiler that includes the sources of its standard library.
//! The packages conflict with rustup, so they are never installed. They are unpacked into a folder
//! of the cache, and the standard library for WebAssembly is built once. No root rights are needed,
//! because apt uses its own lists here. A toolchain is created in a temporary folder under a lock
//! and renamed when it is complete, so that no process sees an incomplete one.

use std::path::{Path, PathBuf};

use super::rules::Source;
use super::toolchain::{Private, TARGET, Toolchain, linker};
use super::{BuildError, cache, command};

/// Increase it when the steps below change: toolchains of other recipes are not used.
const RECIPE: &str = "1";

/// Name of the file that marks a complete toolchain. It is written last and contains the output of
/// `rustc -vV`.
const STAMP: &str = "whole";
/// The stamp has some hundred bytes.
const STAMP_BYTES_MAX: u64 = 64 << 10;

/// Packages that are always unpacked. Missing libraries that they need are added.
const PACKAGES: [&str; 2] = ["rustc-web", "rust-web-src"];

/// The compiler needs this package and its dependencies to run.
const LIBRARY: &str = "libstd-rust-web-dev";

/// Finds a complete toolchain of this recipe. Its compiler must run and still be the same version.
pub(super) fn find(source: Source<'_>) -> Result<Option<Toolchain>, BuildError> {
    let Ok(entries) = std::fs::read_dir(cache::toolchains()?) else {
        return Ok(None);
    };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    Ok(folders
        .iter()
        .rev()
        .find_map(|folder| open(folder, source).ok()))
}

/// Opens the toolchain in a folder, if it is complete.
fn open(root: &Path, source: Source<'_>) -> Result<Toolchain, String> {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    if !name.starts_with(&format!("{RECIPE}-")) {
        return Err(format!(
            "{} was created with another recipe",
            root.display()
        ));
    }
    let stamp = windvane_files::read_text_bounded(&root.join(STAMP), STAMP_BYTES_MAX);
    let stamp = stamp.map_err(|error| format!("{} is not complete: {error}", root.display()))?;
    let private = private(root, source)?;
    let printed = verbose_version(&private)?;
    if printed == stamp {
        Ok(Toolchain::new(&printed, Some(private)))
    } else {
        Err(format!(
            "{} contains another compiler than when it was created",
            root.display()
        ))
    }
}

fn private(root: &Path, source: Source<'_>) -> Result<Private, String> {
    let rustc = root.join("usr/bin/rustc");
    // `usr/lib/<architecture>-linux-gnu`, or any other folder that contains the compiler's library.
    let folders = std::fs::read_dir(root.join("usr/lib")).map_err(|error| error.to_string())?;
    let has_driver = |folder: &PathBuf| {
        std::fs::read_dir(folder).is_ok_and(|files| {
            let mut names = files.flatten().map(|file| file.file_name());
            names.any(|name| name.to_string_lossy().starts_with("librustc_driver"))
        })
    };
    let libraries = folders.flatten().map(|entry| entry.path()).find(has_driver);
    let libraries = libraries.ok_or_else(|| format!("{} contains no compiler", root.display()))?;
    let linker = linker(source).ok_or("no rust-lld or lld for WebAssembly is installed")?;
    Ok(Private {
        rustc,
        libraries,
        linker,
    })
}

fn verbose_version(private: &Private) -> Result<String, String> {
    let mut query = command::clean(&private.rustc, Path::new("/"));
    query.arg("-vV");
    private.apply(&mut query);
    query.env_remove("RUSTC");
    command::output(query).map_err(|failure| failure.to_string())
}

/// Creates the toolchain, or returns the one that another process created meanwhile.
pub(super) fn make(
    source: Source<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Toolchain, String> {
    for program in ["apt-get", "apt-cache", "dpkg-deb"] {
        let mut query = command::clean(program, Path::new("/"));
        query.arg("--version");
        command::output(query)
            .map_err(|_| format!("this is not a Debian system: {program} is missing"))?;
    }
    let folder = cache::toolchains().map_err(|error| error.to_string())?;
    let _lock = cache::lock(&folder, progress).map_err(|error| error.to_string())?;
    if let Ok(Some(found)) = find(source) {
        return Ok(found);
    }
    remove_leftovers(&folder);
    let staging = tempfile::Builder::new()
        .prefix("making-")
        .tempdir_in(&folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let version = unpack(staging.path(), progress)?;
    let root = staging.path().join("root");
    let private = private(&root, source)?;
    let printed = verbose_version(&private)?;
    check_release(&printed)?;
    build_library(staging.path(), &root, &private, source.dir, progress)?;
    for unneeded in [
        "usr/src",
        "usr/share",
        "usr/lib/rustlib/src",
        "usr/bin/rustdoc",
    ] {
        let path = root.join(unneeded);
        let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
    }
    std::fs::write(root.join(STAMP), &printed).map_err(|error| error.to_string())?;
    let place = folder.join(format!("{RECIPE}-{version}"));
    // An existing folder here is incomplete: a complete one would have been found above.
    let _ = std::fs::remove_dir_all(&place);
    std::fs::rename(&root, &place).map_err(|error| format!("{}: {error}", place.display()))?;
    progress(&format!("Created the toolchain {}", place.display()));
    open(&place, source)
}

/// Removes folders of processes that were killed. The lock guarantees that no process uses them.
fn remove_leftovers(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("making-") {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Downloads and unpacks the packages into `root`. Returns the version of the compiler's package.
fn unpack(staging: &Path, progress: &mut dyn FnMut(&str)) -> Result<String, String> {
    let debs = staging.join("debs");
    for folder in [
        "apt/lists/partial",
        "apt/cache/archives/partial",
        "debs",
        "root",
    ] {
        let path = staging.join(folder);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    progress("Reading Debian's package lists");
    apt(staging, "apt-get", &["update"])?;
    let about = apt(
        staging,
        "apt-cache",
        &["show", "--no-all-versions", PACKAGES[0]],
    )?;
    let version = about
        .lines()
        .find_map(|line| line.strip_prefix("Version: "))
        .ok_or("Debian's package lists do not contain rustc-web")?
        .to_owned();
    let mut download = vec!["download"];
    download.extend(PACKAGES);
    let libraries = missing_libraries(staging)?;
    download.extend(libraries.iter().map(String::as_str));
    progress(&format!(
        "Downloading Debian's compiler {version} (about 140 MB, only once)"
    ));
    apt(staging, "apt-get", &download)?;
    progress("Unpacking the compiler");
    let files = std::fs::read_dir(&debs).map_err(|error| error.to_string())?;
    for file in files.flatten() {
        let mut extract = command::clean("dpkg-deb", staging);
        extract.arg("-x").arg(file.path()).arg("root");
        command::output(extract).map_err(|failure| failure.to_string())?;
    }
    Ok(version)
}

/// The compiler's library and its dependencies, without packages that are installed.
fn missing_libraries(staging: &Path) -> Result<Vec<String>, String> {
    let options = ["depends", "--recurse", "--important", LIBRARY];
    let tree = apt(staging, "apt-cache", &options)?;
    let names = tree
        .lines()
        .filter(|line| !line.starts_with([' ', '<', '|']) && !line.is_empty());
    let is_installed = |name: &&str| {
        let mut query = command::clean("dpkg-query", Path::new("/"));
        query.args(["-W", "-f", "${db:Status-Status}", name]);
        command::output(query).is_ok_and(|status| status.starts_with("installed"))
    };
    Ok(names
        .filter(|name| !is_installed(name))
        .map(str::to_owned)
        .collect())
}

/// Runs an apt program with its own lists and cache, so that it needs no root rights.
fn apt(staging: &Path, program: &str, arguments: &[&str]) -> Result<String, String> {
    let state = format!("Dir::State::lists={}", staging.join("apt/lists").display());
    let cache = format!("Dir::Cache={}", staging.join("apt/cache").display());
    let mut command = command::clean(program, &staging.join("debs"));
    command
        .env("LC_ALL", "C.UTF-8")
        .args(["-o", &state, "-o", &cache]);
    // If apt runs as root, it downloads as another user by default. That user cannot write to our
    // folder.
    command.args([
        "-o",
        "APT::Sandbox::User=root",
        "-o",
        "Acquire::Languages=none",
    ]);
    command.args([
        "-o",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
    ]);
    command.args(arguments);
    command::output(command).map_err(|failure| format!("{failure}"))
}

/// Refuses a compiler that is older than our sources need.
fn check_release(verbose_version: &str) -> Result<(), String> {
    let release = verbose_version
        .lines()
        .find_map(|line| line.strip_prefix("release: "));
    let parts = |text: &str| -> Vec<u32> {
        text.split(['.', '-'])
            .map_while(|part| part.parse().ok())
            .collect()
    };
    let wanted = env!("CARGO_PKG_RUST_VERSION");
    match release {
        Some(release) if parts(release) >= parts(wanted) => Ok(()),
        Some(release) => Err(format!(
            "Debian's compiler is {release}; version {wanted} or later is needed"
        )),
        None => Err("Debian's compiler does not print its release".to_owned()),
    }
}

/// Builds the standard library for WebAssembly and copies it into the toolchain.
fn build_library(
    staging: &Path,
    root: &Path,
    private: &Private,
    dir: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), String> {
    progress("Building the standard library for WebAssembly (about a minute, only once)");
    let io = |error: std::io::Error| error.to_string();
    let seed = staging.join("seed");
    std::fs::create_dir_all(seed.join("src")).map_err(io)?;
    let manifest = "[package]\nname = \"seed\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
                    [lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n";
    std::fs::write(seed.join("Cargo.toml"), manifest).map_err(io)?;
    std::fs::write(seed.join("src/lib.rs"), "").map_err(io)?;

    // Run in the strategy's folder, so that its `rust-toolchain.toml` selects cargo.
    let mut build = command::clean("cargo", dir);
    private.apply(&mut build);
    build
        .args([
            "build",
            "--release",
            "--target",
            TARGET,
            "-Zbuild-std=std,panic_abort",
        ])
        .arg("--manifest-path")
        .arg(seed.join("Cargo.toml"))
        // The sources of the standard library use features of the nightly compiler.
        .env("RUSTC_BOOTSTRAP", "1")
        // Settings in the folder may name programs to run instead of the compiler.
        .env("RUSTC_WRAPPER", "")
        .env("RUSTC_WORKSPACE_WRAPPER", "")
        // Without bitcode, strategies cannot be optimised together with the standard library.
        .env("RUSTFLAGS", "-Cembed-bitcode=yes")
        .env("CARGO_TARGET_DIR", staging.join("target"));
    command::watch(build, &mut |_| {}).map_err(|failure| failure.to_string())?;

    let library = root.join("usr/lib/rustlib").join(TARGET).join("lib");
    std::fs::create_dir_all(&library).map_err(io)?;
    let built = staging.join("target").join(TARGET).join("release/deps");
    for file in std::fs::read_dir(built).map_err(io)?.flatten() {
        let name = file.file_name();
        let is_library = Path::new(&name)
            .extension()
            .is_some_and(|extension| extension == "rlib");
        if is_library && !name.to_string_lossy().starts_with("libseed-") {
            std::fs::copy(file.path(), library.join(name)).map_err(io)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::rules::BuildRules;
    use super::*;

    fn here(rules: &BuildRules) -> Source<'_> {
        Source {
            dir: Path::new(env!("CARGO_MANIFEST_DIR")),
            rules,
        }
    }

    #[test]
    fn only_a_complete_toolchain_of_this_recipe_is_opened() {
        let cache = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = cache.path().join(name);
            std::fs::create_dir_all(path.join("usr/lib/arch")).unwrap();
            std::fs::write(path.join("usr/lib/arch/librustc_driver.so"), "").unwrap();
            path
        };
        let rules = BuildRules::default();
        let here = here(&rules);
        let other = folder("0-1.96.0");
        std::fs::write(other.join(STAMP), "rustc 1.96.0").unwrap();
        assert!(open(&other, here).unwrap_err().contains("another recipe"));
        let half = folder(&format!("{RECIPE}-1.96.0"));
        assert!(open(&half, here).unwrap_err().contains("not complete"));
        std::fs::write(half.join(STAMP), "rustc 1.96.0").unwrap();
        assert!(open(&half, here).unwrap_err().contains("cannot run rustc"));
    }

    #[cfg(unix)]
    #[test]
    fn a_compiler_that_changed_is_not_opened() {
        use std::os::unix::fs::PermissionsExt as _;
        let cache = tempfile::tempdir().unwrap();
        let root = cache.path().join(format!("{RECIPE}-1.96.0"));
        for folder in ["usr/bin", "usr/lib/arch"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("usr/lib/arch/librustc_driver.so"), "").unwrap();
        let rustc = root.join("usr/bin/rustc");
        std::fs::write(&rustc, "#!/bin/sh\necho rustc 1.96.0\n").unwrap();
        std::fs::set_permissions(&rustc, std::fs::Permissions::from_mode(0o700)).unwrap();
        let rules = BuildRules::default();
        let here = here(&rules);
        std::fs::write(root.join(STAMP), "rustc 1.95.0\n").unwrap();
        assert!(open(&root, here).unwrap_err().contains("another compiler"));
        std::fs::write(root.join(STAMP), "rustc 1.96.0\n").unwrap();
        assert_eq!(open(&root, here).unwrap().version, "rustc 1.96.0");
    }

    #[test]
    fn leftovers_of_killed_processes_are_removed() {
        let cache = tempfile::tempdir().unwrap();
        for name in ["making-abc", "1-1.96.0"] {
            std::fs::create_dir(cache.path().join(name)).unwrap();
        }
        remove_leftovers(cache.path());
        assert!(!cache.path().join("making-abc").exists());
        assert!(cache.path().join("1-1.96.0").exists());
    }

    #[test]
    fn an_old_compiler_is_refused() {
        assert!(
            check_release("rustc 1.85.0\nrelease: 1.85.0\n")
                .unwrap_err()
                .contains("1.85.0")
        );
        assert!(check_release("release: 1.96.0\n").is_ok());
        assert!(check_release("release: 2.0.0-nightly\n").is_ok());
        assert!(check_release("").is_err());
    }
}
