//! Writes the software bill of materials of the program `windvane`, in the CycloneDX format: every
//! crate that it is built from, with version, licence, source and checksum.
//!
//! The same sources give the same document, so it has no date and no serial number.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use toml::Table;

/// The package of the program.
const PROGRAM: &str = "windvane";
/// The version of CycloneDX.
const SPEC: &str = "1.6";

/// The document for the program, on all platforms. Crates of tests alone are not in it; crates that
/// run while it is built are, because they decide what it contains.
///
/// # Errors
/// Cargo fails, the lock file is stale, or a crate has no licence or no checksum.
pub fn document(root: &Path) -> Result<Value, String> {
    let metadata = cargo(root, &["metadata", "--locked", "--format-version", "1"])?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    // Cargo's metadata has optional crates that no feature enables, so the tree decides.
    let tree = ["tree", "--locked", "-p", PROGRAM, "--target", "all"];
    let form = [
        "--edges",
        "normal,build",
        "--prefix",
        "depth",
        "--format",
        "{p}",
    ];
    let tree = cargo(root, &[&tree[..], &form[..]].concat())?;
    let edges = edges(&tree)?;
    let checksums = checksums(root)?;
    let packages: BTreeMap<Key, &Value> = list(&metadata["packages"])
        .map(|package| {
            (
                key(text(&package["name"]), text(&package["version"])),
                package,
            )
        })
        .collect();

    let mut program = Value::Null;
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for (key, on) in &edges {
        let reference = reference(key);
        let package = packages.get(key);
        let package = package.ok_or_else(|| format!("cargo metadata lacks {reference}"))?;
        let component = component(key, package, &checksums)?;
        if key.0 == PROGRAM {
            program = component;
            program["type"] = "application".into();
        } else {
            components.push(component);
        }
        let on: Vec<_> = on.iter().map(self::reference).collect();
        dependencies.push(json!({"ref": reference, "dependsOn": on}));
    }
    Ok(json!({
        "$schema": format!("http://cyclonedx.org/schema/bom-{SPEC}.schema.json"),
        "bomFormat": "CycloneDX",
        "specVersion": SPEC,
        "version": 1,
        "metadata": {"component": program},
        "components": components,
        "dependencies": dependencies,
    }))
}

/// Name and version of a package.
type Key = (String, String);

fn key(name: &str, version: &str) -> Key {
    (name.to_owned(), version.to_owned())
}

fn reference((name, version): &Key) -> String {
    format!("{name}@{version}")
}

/// The output of cargo.
fn cargo(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .current_dir(root)
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "cargo {} failed: {}",
            arguments.join(" "),
            why.trim()
        ));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("cargo {}: {error}", arguments[0]))
}

/// The packages of a tree with the depth before each line, and what each is built with. A package
/// that occurs again has no lines below it.
fn edges(tree: &str) -> Result<BTreeMap<Key, BTreeSet<Key>>, String> {
    let mut edges: BTreeMap<Key, BTreeSet<Key>> = BTreeMap::new();
    let mut path: Vec<Key> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let wrong = || format!("cargo tree printed a line of another form: {line}");
        let name_at = line.find(|letter: char| !letter.is_ascii_digit());
        let (depth, package) = line.split_at(name_at.ok_or_else(wrong)?);
        let depth: usize = depth.parse().map_err(|_| wrong())?;
        let mut words = package.split(' ');
        let (name, version) = (words.next(), words.next());
        let version = version.and_then(|version| version.strip_prefix('v'));
        let one = key(name.ok_or_else(wrong)?, version.ok_or_else(wrong)?);
        path.truncate(depth);
        if let Some(parent) = path.last() {
            edges.entry(parent.clone()).or_default().insert(one.clone());
        }
        edges.entry(one.clone()).or_default();
        path.push(one);
    }
    Ok(edges)
}

/// SHA-256 of each crate by name and version, from the lock file.
fn checksums(root: &Path) -> Result<BTreeMap<Key, String>, String> {
    let path = root.join("Cargo.lock");
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let lock = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
    let lock: Table = lock.parse().map_err(|error| failed(&error))?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let entries = packages.into_iter().flatten().filter_map(|package| {
        let of = |key: &str| Some(package.get(key)?.as_str()?.to_owned());
        Some(((of("name")?, of("version")?), of("checksum")?))
    });
    Ok(entries.collect())
}

fn component(
    key: &Key,
    package: &Value,
    checksums: &BTreeMap<Key, String>,
) -> Result<Value, String> {
    let (name, version) = key;
    // Before SPDX, a slash was the sign for `OR`.
    let licence = text(&package["license"]).replace('/', " OR ");
    if licence.is_empty() {
        return Err(format!("{name} {version} states no licence"));
    }
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(key),
        "name": name,
        "version": version,
        "purl": format!("pkg:cargo/{name}@{version}"),
        "licenses": [{"expression": licence}],
    });
    if let Some(address) = package["repository"].as_str() {
        component["externalReferences"] = json!([{"type": "vcs", "url": address}]);
    }
    // Our own crates come with the repository and have no checksum.
    if !package["source"].is_null() {
        let checksum = checksums.get(key);
        let checksum = checksum.ok_or_else(|| format!("{name} {version} has no checksum"))?;
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    Ok(component)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
