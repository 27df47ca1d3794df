//! Modules are compiled in a process of their own, under limits of memory and time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]
#![allow(
    clippy::format_push_string,
    reason = "a test may allocate for each piece of text"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use windvane_build::modules::{Guest, Loader};
use windvane_build::use_program;
use windvane_config::Compile;
use windvane_host::LoadError;
use windvane_session::Made;

fn loader(memory_mb: u32, seconds: u32) -> Loader {
    use_program(PathBuf::from(env!("CARGO_BIN_EXE_windvane")));
    Loader::new(Compile {
        memory_mb,
        seconds,
        ..Compile::default()
    })
    .unwrap()
}

fn load(loader: &Loader, module: &[u8]) -> Result<Guest, LoadError> {
    let made = Made {
        params: b"{}".to_vec(),
        instruments: Vec::new(),
        fuel_per_event: 1_000_000,
        memory_bytes: 16 << 20,
        capabilities: Vec::new(),
    };
    Guest::load(loader, "big", Arc::from(module), made)
}

/// A strategy that imports nothing. `functions` are further functions, as text.
fn module(functions: &str) -> Vec<u8> {
    let event = "(param i64 i32 i64 i32 i32 i32 i64 i64 i64 i64 i64 i64 i64)";
    let answer = r#"{\"name\":\"big\",\"version\":\"1\",\"state_schema\":1,\"capabilities\":[]}"#;
    let length = answer.replace('\\', "").len();
    let text = format!(
        r#"(module
  (memory (export "memory") 1)
  (data (i32.const 1024) "{answer}")
  (data (i32.const 8) "\00\04\00\00")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 4096)
  (func (export "describe") (result i32) (i32.store (i32.const 12) (i32.const {length})) i32.const 8)
  (func (export "start") (param i32 i32 i32 i32) (result i32) i32.const 16)
  (func (export "save") (result i32) i32.const 16)
  (func (export "load") (param i32 i32) (result i32) i32.const 16)
  (func (export "on-event") {event})
  {functions})"#
    );
    wat::parse_str(text).unwrap()
}

/// Functions that cost the compiler much: `locals` values that live across `blocks` branches.
fn costly(functions: usize, locals: usize, blocks: usize) -> String {
    let mut text = String::new();
    for _ in 0..functions {
        text += "(func (param i32) (result i64) (local";
        text += &" i64".repeat(locals);
        text += ")";
        for block in 0..blocks {
            let a = 1 + block % locals;
            let b = 1 + (block * 7 + 3) % locals;
            text += &format!(
                "(if (i32.and (local.get 0) (i32.const {block})) (then (local.set {a} (i64.add (local.get {b}) (local.get {a})))))"
            );
        }
        text += "(local.get 1)";
        for local in 2..=locals {
            text += &format!("(i64.xor (local.get {local}))");
        }
        text += ")";
    }
    text
}

fn error(result: Result<Guest, LoadError>) -> LoadError {
    result.err().expect("the module was loaded")
}

#[test]
fn a_small_module_compiles_within_small_limits() {
    let loaded = load(&loader(256, 60), &module(""));
    let guest = loaded.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(guest.strategy.describe().name, "big");
}

#[test]
fn an_invalid_module_is_refused_with_the_reason() {
    let refused = error(load(&loader(256, 60), b"\0asm\x01\0\0\0\xff"));
    let text = refused.to_string();
    assert!(text.contains("not a valid WebAssembly module"), "{text}");
}

#[test]
fn a_module_that_needs_more_memory_than_the_limit_is_refused() {
    let big = module(&costly(1, 2_000, 4_000));
    let counter = Arc::new(AtomicU64::new(0));
    let others = Arc::clone(&counter);
    let stop = Arc::new(AtomicU64::new(0));
    let stopped = Arc::clone(&stop);
    // The work of this process goes on meanwhile.
    let work = std::thread::spawn(move || {
        while stopped.load(Ordering::Relaxed) == 0 {
            others.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let refused = error(load(&loader(64, 120), &big));
    stop.store(1, Ordering::Relaxed);
    work.join().unwrap();
    assert!(
        matches!(refused, LoadError::CompileMemory { limit_mb: 64 }),
        "{refused}"
    );
    let text = refused.to_string();
    assert!(
        text.contains("64 MiB") && text.contains("compile.memory_mb"),
        "{text}"
    );
    assert!(counter.load(Ordering::Relaxed) > 10);
    assert!(own_memory_mb() < 500, "{} MiB", own_memory_mb());
}

#[test]
fn a_module_that_compiles_longer_than_the_limit_is_refused() {
    let long = module(&costly(40, 2_000, 4_000));
    let refused = error(load(&loader(8_192, 1), &long));
    assert!(
        matches!(refused, LoadError::CompileTime { limit: 1 }),
        "{refused}"
    );
    assert!(refused.to_string().contains("compile.seconds"), "{refused}");
}

/// The largest memory that this process ever used, MiB.
fn own_memory_mb() -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc/self/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.unwrap().trim().trim_end_matches("kB").trim();
    kb.parse::<u64>().unwrap() / 1024
}
