//! Builds strategies from source into components that the host accepts. The tests use an installed
//! compiler for WebAssembly. They do not create one, because that would need a network.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};

use windvane_build::{BuildError, Toolchain, build};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Whether there is a compiler. If not, prints that the test is skipped.
fn has_compiler(test: &str) -> bool {
    let found = Toolchain::find(&repository()).unwrap().is_some();
    if !found {
        println!(
            "{test}: skipped, no compiler for wasm32-unknown-unknown; `windvane build \
             strategies/market_maker` creates one"
        );
    }
    found
}

fn project(name: &str, source: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let manifest = format!(
        "[package]\nname = \"{name}\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n\
         [workspace]\n"
    );
    std::fs::write(dir.path().join("Cargo.toml"), manifest).unwrap();
    std::fs::create_dir(dir.path().join("src")).unwrap();
    std::fs::write(dir.path().join("src/lib.rs"), source).unwrap();
    dir
}

#[test]
fn the_sample_strategies_become_components() {
    if !has_compiler("the_sample_strategies_become_components") {
        return;
    }
    for name in ["market_maker", "ema_cross", "grid"] {
        let dir = repository().join("strategies").join(name);
        let built = build(&dir, &mut |line| println!("{line}")).unwrap();
        assert_eq!(built.component, std::fs::read(&built.path).unwrap());
        assert_eq!(built.bytes_len, built.component.len());
        assert!(
            built.bytes_len < 150_000,
            "{name}: {} bytes",
            built.bytes_len
        );
        let info = windvane_host::validate(&built.component).unwrap();
        assert!(info.direct, "{name}: the host cannot call it directly");
        let again = build(&dir, &mut |_| {}).unwrap();
        assert_eq!(built.sha256, again.sha256);
    }
}

/// The exports of a strategy with contract 0.1. A build reads no more than these.
const OLD: &str = r#"
#[unsafe(export_name = "describe")] pub extern "C" fn describe() -> i32 { 0 }
#[unsafe(export_name = "init")] pub extern "C" fn init(_: i32, _: i32, _: i32, _: i32) -> i32 { 0 }
#[unsafe(export_name = "save")] pub extern "C" fn save() -> i32 { 0 }
#[unsafe(export_name = "load")] pub extern "C" fn load(_: i32, _: i32) -> i32 { 0 }
#[unsafe(export_name = "cabi_realloc")]
pub extern "C" fn realloc(_: i32, _: i32, _: i32, _: i32) -> i32 { 0 }
#[unsafe(export_name = "on-event")]
pub extern "C" fn on_event(_: i64, _: i64, _: i32, _: i32, _: i32, _: i64, _: i64, _: i64, _: i64,
    _: i64, _: i64, _: i64) {}
"#;

#[test]
fn an_old_sdk_is_refused_with_the_path_of_its_manifest() {
    if !has_compiler("an_old_sdk_is_refused_with_the_path_of_its_manifest") {
        return;
    }
    let dir = project("old", OLD);
    let error = build(dir.path(), &mut |_| {}).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, BuildError::OldContract { .. }), "{text}");
    for part in ["contract 0.1", "contract 0.2", "windvane-sdk", "Cargo.toml"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_compile_error_shows_the_output_of_the_compiler() {
    if !has_compiler("a_compile_error_shows_the_output_of_the_compiler") {
        return;
    }
    let dir = project("broken", "pub fn f() -> u32 { \"no number\" }\n");
    let error = build(dir.path(), &mut |_| {}).unwrap_err();
    let BuildError::Compile { package, tail } = &error else {
        panic!("{error}");
    };
    assert_eq!(package, "broken");
    assert!(
        tail.contains("mismatched types") && tail.contains("src/lib.rs:1"),
        "{tail}"
    );
}

#[test]
fn a_module_without_the_contract_is_refused() {
    if !has_compiler("a_module_without_the_contract_is_refused") {
        return;
    }
    let dir = project(
        "foreign",
        "#[unsafe(no_mangle)]\npub extern \"C\" fn f() -> i32 { 1 }\n",
    );
    let error = build(dir.path(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, BuildError::NotAStrategy { .. }), "{error}");
    assert!(error.to_string().contains("foreign"), "{error}");
}
