//! A module that cannot be loaded gets an error that names the problem and the remedy.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod support;

use support::{IMPORTS, SUBMIT, guest, host, text};
use windvane_host::{
    Capabilities, Capability, Format, Grant, Limits, LoadError, PathChoice, validate, wrap,
};

fn refusal(module: &[u8]) -> String {
    let checked = validate(module).unwrap_err().to_string();
    let loaded = host(PathChoice::Fastest)
        .load(module, Limits::default(), Capabilities::ALL)
        .unwrap_err()
        .to_string();
    assert_eq!(
        checked, loaded,
        "`validate` and `load` must give the same error"
    );
    checked
}

fn parse(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

#[track_caller]
fn assert_refused(text: &str, says: &[&str]) {
    let message = refusal(&parse(text));
    for part in says {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_foreign_import_is_named() {
    let wasi = r#"(import "wasi_snapshot_preview1" "clock_time_get"
        (func (param i32 i64 i32) (result i32)))"#;
    assert_refused(
        &text(wasi, "", ""),
        &[
            "`wasi_snapshot_preview1.clock_time_get`",
            "not part of the strategy contract",
        ],
    );
    let env = r#"(import "env" "memory" (memory 1))"#;
    assert_refused(&text(env, "", ""), &["`env.memory`"]);
}

#[test]
fn a_component_with_a_foreign_import_is_refused_too() {
    let component = r#"(component
        (import "wasi:clocks/wall-clock@0.2.0" (instance
            (export "now" (func (result u64))))))"#;
    assert_refused(component, &["`wasi:clocks/wall-clock@0.2.0`"]);
}

#[test]
fn a_component_without_the_exports_of_the_world_is_refused() {
    assert_refused("(component)", &["does not export `describe`"]);
    let other = r#"(component
        (core module $m (func (export "describe") (result i32) (i32.const 0)))
        (core instance $i (instantiate $m))
        (func (export "describe") (result u32) (canon lift (core func $i "describe"))))"#;
    assert_refused(other, &["`describe`", "() -> u32", "() -> list<u8>"]);
}

#[test]
fn an_interface_of_another_version_is_named() {
    let newer = IMPORTS.replace("@0.2.0", "@0.3.0");
    assert_refused(
        &text(&newer, "", ""),
        &["windvane:strategy/orders@0.3.0", "build it again"],
    );
    let unknown = r#"(import "windvane:strategy/orders@0.2.0" "hedge" (func))"#;
    assert_refused(
        &text(unknown, "", ""),
        &["windvane:strategy/orders@0.2.0.hedge"],
    );
    // All imports of a module must have the same version.
    let mixed = IMPORTS.replace("plot@0.2.0", "plot@0.1.0");
    assert_refused(&text(&mixed, "", ""), &["windvane:strategy/plot@0.1.0"]);
}

#[test]
fn a_missing_export_is_named() {
    for export in [
        "describe",
        "start",
        "save",
        "load",
        "on-event",
        "cabi_realloc",
        "memory",
    ] {
        let text = text(IMPORTS, "", "")
            .replace(&format!("(export \"{export}\")"), "(export \"something\")");
        assert_refused(&text, &[&format!("does not export `{export}`")]);
    }
}

#[test]
fn a_wrong_signature_is_shown_with_the_right_one() {
    let import = r#"(import "windvane:strategy/timers@0.2.0" "cancel"
        (func (param i32) (result i64)))"#;
    assert_refused(
        &text(import, "", ""),
        &["`cancel`", "(i32) -> (i64)", "(i64) -> (i64)"],
    );
    let export = text(IMPORTS, "", "").replace("(param $ms i64)", "(param $ms i32)");
    assert_refused(&export, &["`on-event`", "(i32, i32, i64"]);
}

#[test]
fn proposals_that_differ_between_machines_are_off() {
    let relaxed = r"(func (param v128 v128) (result v128)
        (i8x16.relaxed_swizzle (local.get 0) (local.get 1)))";
    assert_refused(&text(IMPORTS, "", relaxed), &["relaxed SIMD"]);
    let wide =
        text(IMPORTS, "", "").replace("(memory (export", "(memory $m i64 1) (memory (export");
    assert_refused(&wide, &["memory64"]);
    let shared = text(IMPORTS, "", "(memory 1 1 shared)");
    assert_refused(&shared, &["threads"]);
}

#[test]
fn an_invalid_module_is_refused() {
    assert!(refusal(b"").contains("not a valid WebAssembly"));
    assert!(refusal(b"\0asm\x01\0\0").contains("not a valid WebAssembly"));
    let module = guest("");
    assert!(refusal(&module[..module.len() - 3]).contains("not a valid WebAssembly"));
}

#[test]
fn an_ungranted_import_names_the_capability_and_the_key() {
    let module = guest(&format!("(drop {SUBMIT})"));
    for path in support::PATHS {
        let granted = Capabilities::ALL.without(Capability::Orders);
        let error = host(path)
            .load(&module, Limits::default(), granted)
            .unwrap_err();
        assert!(
            matches!(
                error,
                LoadError::NotGranted {
                    capability: Capability::Orders,
                    ..
                }
            ),
            "{error}"
        );
        let message = error.to_string();
        assert!(
            message.contains("add \"orders\" to strategy.capabilities"),
            "{message}"
        );
    }
}

#[test]
fn without_a_configured_list_a_module_gets_what_its_description_asks_for() {
    let submit = r#"(import "windvane:strategy/orders@0.2.0" "cancel"
        (func (param i64) (result i64)))"#;
    let modest = parse(&text(submit, "", ""));
    let orders = Capabilities::NONE.with(Capability::Orders);
    for path in support::PATHS {
        let strategy = host(path).load(&modest, Limits::default(), Grant::Described);
        assert_eq!(strategy.unwrap().granted(), orders);
        // Its description asks for orders only.
        let greedy = guest("");
        let error = host(path)
            .load(&greedy, Limits::default(), Grant::Described)
            .unwrap_err();
        let message = error.to_string();
        for part in [
            "imports the capability `account`",
            "its description asks for orders only",
            "set strategy.capabilities",
        ] {
            assert!(message.contains(part), "{message}");
        }
        let strategy = host(path).load(&greedy, Limits::default(), Capabilities::ALL);
        assert_eq!(strategy.unwrap().granted(), Capabilities::ALL);
    }
}

#[test]
fn a_too_large_module_is_refused_before_it_is_read() {
    let limits = Limits {
        module_bytes: 100,
        ..Limits::default()
    };
    let error = host(PathChoice::Fastest)
        .load(&[0; 101], limits, Capabilities::ALL)
        .unwrap_err();
    assert!(matches!(
        error,
        LoadError::TooLarge {
            size: 101,
            limit: 100
        }
    ));
}

#[test]
fn a_description_that_is_not_json_is_shown() {
    let module = parse(&text(IMPORTS, "", "").replace("{\\22name", "[\\22name"));
    let error = host(PathChoice::Fastest)
        .load(&module, Limits::default(), Capabilities::ALL)
        .unwrap_err();
    assert!(matches!(error, LoadError::Describe { .. }), "{error}");
    assert!(error.to_string().contains("[\\\"name"), "{error}");
}

#[test]
fn a_description_of_megabytes_is_refused() {
    // The JSON is valid: only spaces follow it.
    let answer = "(call $answer (i32.const 1024) (i32.const 77))";
    let with_spaces = "(memory.fill (i32.const 1101) (i32.const 32) (i32.const 2097152))
    (call $answer (i32.const 1024) (i32.const 2000000))";
    let short = text(IMPORTS, "", "");
    assert!(short.contains(answer), "{short}");
    let long = short
        .replace(answer, with_spaces)
        .replace("(export \"memory\") 1)", "(export \"memory\") 64)");
    let error = host(PathChoice::Direct)
        .load(&parse(&long), Limits::default(), Capabilities::ALL)
        .unwrap_err();
    assert!(
        error.to_string().contains("at most 1048576 bytes"),
        "{error}"
    );
}

#[test]
fn an_invalid_parameter_schema_is_refused() {
    let with_params = |params: &str| {
        let capabilities = "\\22capabilities\\22:[\\22orders\\22]";
        let escaped = params.replace('"', "\\22");
        // The text keeps its length, so that the length of the answer stays valid.
        let name = "\\22version\\22:\\220.1.0\\22";
        let shorter = "\\22version\\22:\\2201\\22";
        let with = format!("\\22capabilities\\22:[],{escaped}");
        text(IMPORTS, "", "")
            .replace(capabilities, &with)
            .replace(name, shorter)
    };
    let module = parse(&with_params("\"params\":7"));
    let error = host(PathChoice::Fastest)
        .load(&module, Limits::default(), Capabilities::ALL)
        .unwrap_err();
    let LoadError::Describe { reason, .. } = &error else {
        panic!("{error}");
    };
    assert!(reason.starts_with("params: "), "{error}");
}

#[test]
fn a_start_function_that_loops_fails_at_load() {
    let more = "(func $spin (loop $again (br $again))) (start $spin)";
    let module = parse(&text(IMPORTS, "", more));
    for path in support::PATHS {
        let limits = Limits {
            fuel_per_setup: 1_000_000,
            ..Limits::default()
        };
        let error = host(path)
            .load(&module, limits, Capabilities::ALL)
            .unwrap_err();
        assert!(matches!(error, LoadError::Start(_)), "{error}");
        assert!(error.to_string().contains("fuel"), "{error}");
    }
}

#[test]
fn validation_reports_format_capabilities_and_path() {
    let some = r#"(import "windvane:strategy/market@0.2.0" "last"
        (func (param i32 i32) (result i64)))"#;
    let module = parse(&text(some, "", ""));
    let info = validate(&module).unwrap();
    assert_eq!(info.format, Format::Core);
    assert_eq!(info.size, module.len());
    assert!(info.direct);
    let market = Capabilities::NONE.with(Capability::Market);
    assert_eq!(info.capabilities, market);

    let component = wrap(&module).unwrap();
    let info = validate(&component).unwrap();
    assert_eq!(info.format, Format::Component);
    assert!(info.direct);
    assert_eq!(info.capabilities, market);
}

#[test]
fn a_component_that_does_more_than_wrap_has_no_direct_path() {
    // The same component with a second module that has its own memory.
    let component = wrap(&guest("")).unwrap();
    let extra = parse("(component (core module (memory 1)))");
    let mut both = component;
    both.extend_from_slice(&extra[8..]);
    assert!(!validate(&both).unwrap().direct);
    let error = host(PathChoice::Direct)
        .load(&both, Limits::default(), Capabilities::ALL)
        .unwrap_err();
    assert!(matches!(error, LoadError::NoDirectPath));
    host(PathChoice::Fastest)
        .load(&both, Limits::default(), Capabilities::ALL)
        .unwrap();
}
