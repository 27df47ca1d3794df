//! Strategies built from source into components the host takes. Needs a compiler for WebAssembly
//! that is there already: tests make none, which would need a network.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};

use windvane_build::{BuildError, Toolchain, build};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Whether there is a compiler; says so when there is none.
fn has_compiler(test: &str) -> bool {
    let found = Toolchain::find(&repository()).unwrap().is_some();
    if !found {
        println!(
            "{test}: passed over, no compiler for wasm32-unknown-unknown; `windvane build \
             strategies/market_maker` makes one"
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
        assert!(info.direct, "{name}: the host calls it directly");
        let again = build(&dir, &mut |_| {}).unwrap();
        assert_eq!(built.sha256, again.sha256);
    }
}

/// A strategy of contract 0.1, as far as a build looks at it.
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
fn a_package_with_an_sdk_of_contract_0_1_says_where_its_sdk_is_named() {
    if !has_compiler("a_package_with_an_sdk_of_contract_0_1_says_where_its_sdk_is_named") {
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
fn a_compile_error_is_told_as_the_compiler_says_it() {
    if !has_compiler("a_compile_error_is_told_as_the_compiler_says_it") {
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
fn a_module_that_is_no_strategy_is_refused() {
    if !has_compiler("a_module_that_is_no_strategy_is_refused") {
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
