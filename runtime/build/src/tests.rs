//! Tests that need no compiler for WebAssembly. `runtime/cli/tests/build.rs` tests the builds themselves.

use super::*;

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

fn error(dir: &Path) -> BuildError {
    build(dir, &BuildRules::default(), &mut |_| {}).unwrap_err()
}

#[test]
fn a_folder_without_a_manifest_is_named() {
    let dir = project(&[]);
    let message = error(dir.path()).to_string();
    assert!(message.contains("has no Cargo.toml"), "{message}");
    assert!(
        message.contains(&*dir.path().to_string_lossy()),
        "{message}"
    );
}

#[test]
fn a_workspace_is_refused() {
    let dir = project(&[("Cargo.toml", "[workspace]\nresolver = \"3\"\n")]);
    assert!(matches!(error(dir.path()), BuildError::NoPackage(_)));
}

#[test]
fn a_package_must_be_a_dynamic_library() {
    let manifest = "[package]\nname = \"plain\"\nedition = \"2024\"\n[workspace]\n";
    let dir = project(&[("Cargo.toml", manifest), ("src/lib.rs", "")]);
    let error = error(dir.path());
    assert!(
        matches!(&error, BuildError::NotAModule(name) if name == "plain"),
        "{error}"
    );
    assert!(error.to_string().contains("cdylib"));
}

#[test]
fn a_broken_manifest_shows_the_error_of_cargo() {
    let dir = project(&[("Cargo.toml", "[package\n")]);
    let message = error(dir.path()).to_string();
    assert!(message.contains("unclosed table"), "{message}");
}

#[test]
fn a_build_sees_only_the_permitted_variables() {
    let command = command::clean("cargo", Path::new("/"));
    let names: Vec<_> = command
        .get_envs()
        .filter(|(_, value)| value.is_some())
        .collect();
    let passed = |name: &str| names.iter().any(|(n, _)| *n == name);
    // Cargo sets these two for every test.
    assert!(!passed("CARGO_PKG_NAME") && !passed("CARGO_MANIFEST_DIR"));
    assert!(passed("PATH"));
}

#[test]
fn variables_with_keys_and_tokens_are_not_permitted() {
    let kept = command::is_kept;
    for name in [
        "WINDVANE_SIGNER_KEY",
        "WINDVANE_API_SECRET",
        "CARGO_REGISTRY_TOKEN",
        "CARGO_REGISTRIES_PRIVATE_TOKEN",
        "CARGO_REGISTRIES_PRIVATE_CREDENTIAL_PROVIDER",
        "AWS_SECRET_ACCESS_KEY",
        "RUSTUP_TOOLCHAIN",
        "RUSTC_WRAPPER",
        "CARGO_TARGET_DIR",
    ] {
        assert!(!kept(name), "{name}");
    }
    for name in ["PATH", "HOME", "HTTPS_PROXY", "CARGO_NET_OFFLINE", "LC_ALL"] {
        assert!(kept(name), "{name}");
    }
}

#[test]
fn a_file_is_written_whole_over_an_older_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/module.wasm");
    cache::write_whole(&path, b"old").unwrap();
    cache::write_whole(&path, b"new").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    assert_eq!(
        std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
        1
    );
}

#[test]
fn the_lock_is_held_until_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let held = cache::lock(dir.path(), &mut |_| {}).unwrap();
    let other = std::fs::File::open(dir.path().join("lock")).unwrap();
    assert!(other.try_lock().is_err());
    drop(held);
    assert!(other.try_lock().is_ok());
}

#[test]
fn a_failed_command_shows_the_end_of_its_output() {
    let mut shell = command::clean("sh", Path::new("/"));
    shell.args([
        "-c",
        "for i in $(seq 100); do echo line $i >&2; done; exit 1",
    ]);
    let mut count = 0;
    let failure = command::watch(shell, &mut |_| count += 1)
        .unwrap_err()
        .to_string();
    assert_eq!(count, 100);
    assert!(
        failure.contains("line 100") && !failure.contains("line 40\n"),
        "{failure}"
    );
}

/// A macro or a build script writes to the error output of cargo.
#[test]
fn a_command_that_writes_without_a_line_end_needs_little_memory() {
    let mut shell = command::clean("sh", Path::new("/"));
    shell.args(["-c", "head -c 50000000 /dev/zero >&2; exit 1"]);
    let mut longest = 0;
    let failure = command::watch(shell, &mut |line| longest = longest.max(line.len()));
    assert_eq!(longest, 16 << 10);
    assert!(failure.unwrap_err().to_string().len() < 20_000);
}

#[test]
fn a_command_with_endless_output_is_an_error() {
    let mut shell = command::clean("sh", Path::new("/"));
    shell.args(["-c", "cat /dev/zero"]);
    let failure = command::output(shell).unwrap_err().to_string();
    assert!(failure.contains("it wrote more than"), "{failure}");
}
