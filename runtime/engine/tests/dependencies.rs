//! The engine may depend only on these crates. All modes rely on the engine. IO, a clock, or a crate
//! of the workspace other than `model`, `evidence` and `supervision` would make it unreliable.

use std::path::Path;

const ALLOWED: &[&str] = &[
    "windvane-model",
    "windvane-evidence",
    "windvane-supervision",
    "postcard",
    "serde",
    "thiserror",
];

/// Names in every table of the manifest that adds a crate to the library: `[dependencies]` and
/// `[build-dependencies]`, both also per target and as `[dependencies.name]`.
fn library_dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut listing = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let table = header.rsplit('.').next().unwrap_or(header);
            listing = table == "dependencies" || table == "build-dependencies";
            for table in ["dependencies.", "build-dependencies."] {
                let own = header.strip_prefix(table);
                let of_target = header.split_once(&format!(".{table}")).map(|split| split.1);
                names.extend(own.or(of_target).map(str::to_owned));
            }
        } else if listing && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or(line);
            names.push(name.trim_matches('"').to_owned());
        }
    }
    names
}

#[test]
fn the_engine_depends_on_the_allowed_crates_only() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let manifest = std::fs::read_to_string(path).unwrap();
    let names = library_dependencies(&manifest);
    assert_eq!(names, ALLOWED, "the engine may depend only on {ALLOWED:?}");
}

#[test]
fn dependencies_are_found_in_every_kind_of_table() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\n# no\n\
                    b = \"1\"\n[dependencies.c]\nversion = \"1\"\n[dev-dependencies]\nd = \"1\"\n\
                    [target.'cfg(unix)'.dependencies]\ne = \"1\"\n\
                    [target.'cfg(unix)'.dependencies.f]\npath = \"f\"\n\
                    [build-dependencies]\ng = \"1\"\n";
    assert_eq!(
        library_dependencies(manifest),
        ["a", "b", "c", "e", "f", "g"]
    );
}
