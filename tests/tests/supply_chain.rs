//! What the program is built from: the bill of materials of a release names every crate, and the
//! fuzz targets are built from the same versions.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../../xtask/src/sbom.rs"]
mod sbom;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use toml::Table;
use windvane_tests::binary::root;

/// The fuzz targets' lock file, and their workspace.
const FUZZ_LOCK: &str = "runtime/protocol/fuzz/Cargo.lock";
const FUZZ_MANIFEST: &str = "runtime/protocol/fuzz/Cargo.toml";

/// The packages of a lock file: name and version, with the checksum of those from a registry.
fn locked(path: &str) -> BTreeMap<(String, String), Option<String>> {
    let lock: Table = std::fs::read_to_string(root().join(path))
        .unwrap()
        .parse()
        .unwrap();
    let packages = lock["package"].as_array().unwrap().iter();
    let packages = packages.map(|package| {
        let of = |key: &str| Some(package.get(key)?.as_str()?.to_owned());
        (
            (of("name").unwrap(), of("version").unwrap()),
            of("checksum"),
        )
    });
    packages.collect()
}

/// The crates that the program is built from, as `cargo tree` says: name and version.
fn tree() -> BTreeSet<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["tree", "--locked", "-p", "windvane", "--target", "all"])
        .args([
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8(output.stdout).unwrap();
    let crates = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, version) = (words.next()?, words.next()?);
        Some((name.to_owned(), version.strip_prefix('v')?.to_owned()))
    });
    crates.collect()
}

#[test]
fn the_bill_of_materials_names_every_crate_of_the_program() {
    let document = sbom::document(root()).unwrap();
    assert_eq!(document["bomFormat"], "CycloneDX");
    let of = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let program = &document["metadata"]["component"];
    assert_eq!(
        (of(program, "name"), of(program, "type")),
        ("windvane".into(), "application".into())
    );
    let components = document["components"].as_array().unwrap();
    let components: BTreeMap<_, _> = components
        .iter()
        .chain([program])
        .map(|one| ((of(one, "name"), of(one, "version")), one))
        .collect();

    let locked = locked("Cargo.lock");
    let tree = tree();
    assert!(tree.len() > 200, "{} crates were found", tree.len());
    for key in &tree {
        let component = components.get(key);
        let component = component.unwrap_or_else(|| panic!("{key:?} is missing"));
        let licence = component["licenses"][0]["expression"].as_str();
        assert!(licence.is_some_and(|text| !text.is_empty()), "{key:?}");
        let checksum = component["hashes"][0]["content"].as_str();
        assert_eq!(checksum, locked[key].as_deref(), "{key:?}");
        let is_ours = key.0.starts_with("windvane");
        assert!(
            checksum.is_some_and(|text| text.len() == 64) || is_ours,
            "{key:?}"
        );
    }
    // Crates of tests alone are not part of the program.
    for name in ["criterion", "proptest", "insta", "wat", "windvane-sdk"] {
        assert!(!components.keys().any(|(other, _)| other == name), "{name}");
    }
    // Each reference names a component.
    let references: BTreeSet<_> = components.values().map(|one| of(one, "bom-ref")).collect();
    assert_eq!(references.len(), components.len());
    for dependency in document["dependencies"].as_array().unwrap() {
        assert!(references.contains(&of(dependency, "ref")));
        for on in dependency["dependsOn"].as_array().unwrap() {
            assert!(references.contains(on.as_str().unwrap()), "{on}");
        }
    }
}

#[test]
fn the_same_sources_give_the_same_bill_of_materials() {
    let [first, second] = [0; 2].map(|_| sbom::document(root()).unwrap().to_string());
    assert_eq!(first, second);
}

#[test]
fn the_lock_file_of_the_fuzz_targets_is_fresh() {
    let output = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["metadata", "--locked", "--format-version", "1"])
        .args(["--manifest-path", FUZZ_MANIFEST])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{FUZZ_LOCK} is stale; runtime/protocol/fuzz/README.md says how to renew it: {error}"
    );
    // The targets test the code that the program has, not other versions.
    let program = locked("Cargo.lock");
    let only_there = ["windvane-protocol-fuzz", "libfuzzer-sys"];
    for (package, checksum) in locked(FUZZ_LOCK) {
        if !only_there.contains(&package.0.as_str()) {
            assert_eq!(program.get(&package), Some(&checksum), "{package:?}");
        }
    }
}

#[test]
fn the_checks_of_a_change_use_the_lock_file_as_it_is() {
    let script = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    let resolves = |line: &&str| {
        [
            "clippy",
            "deny --locked",
            "deny check",
            "test",
            "build",
            "run",
            "install",
        ]
        .iter()
        .any(|command| line.contains(&format!("cargo {command}")))
    };
    let commands: Vec<_> = script
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .filter(resolves)
        .collect();
    assert!(commands.len() >= 4, "{commands:?}");
    for command in commands {
        assert!(command.contains("--locked"), "{command}");
    }
}
