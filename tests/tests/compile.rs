//! Modules are compiled in a process of their own, and a run on a real exchange accepts no sources.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fmt::Write as _;
use std::path::Path;

use windvane_tests::binary;
use windvane_tests::guest::Guest;
use windvane_tests::launch::Launch;
use windvane_tests::venue::Venue;

/// Functions whose many values live across many branches, which costs the compiler much.
fn costly(functions: usize) -> String {
    const LOCALS: usize = 2_000;
    let mut text = String::new();
    for _ in 0..functions {
        text += "(func (param i32) (result i64) (local";
        text += &" i64".repeat(LOCALS);
        text += ")";
        for block in 0..2 * LOCALS {
            let (to, from) = (1 + block % LOCALS, 1 + (block * 7 + 3) % LOCALS);
            let _ = write!(
                text,
                "(if (i32.and (local.get 0) (i32.const {block})) (then (local.set {to} (i64.add \
                 (local.get {from}) (local.get {to})))))"
            );
        }
        text += "(local.get 1)";
        for local in 2..=LOCALS {
            let _ = write!(text, "(i64.xor (local.get {local}))");
        }
        text += ")";
    }
    text
}

/// Writes a configuration with one strategy and these limits of the compiler.
fn configure(file: &Path, module: &Path, compile: &str) {
    let base = include_str!("../../configs/live-sim.toml");
    let base = base.split("[[strategy]]").next().unwrap();
    let text = format!(
        "{base}\n[compile]\n{compile}\n[[strategy]]\nid = \"calm\"\nmodule = \"{}\"\n\
         instruments = [\"futures:BTCUSDT\"]\n",
        module.display()
    );
    std::fs::write(file, text).unwrap();
}

/// The largest memory that a process ever used, MiB.
fn memory_mb(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.unwrap().trim().trim_end_matches("kB").trim();
    kb.parse::<u64>().unwrap() / 1024
}

#[test]
fn a_run_goes_on_while_a_hostile_module_is_refused() {
    let venue = Venue::start(&["--seed", "31"]);
    let (file, module) = (
        venue.folder().join("own.toml"),
        venue.folder().join("own.wasm"),
    );
    Guest::default().write(&module);
    configure(&file, &module, "seconds = 60");
    let data = venue.folder().join("data");
    let mut instance = Launch::new(&venue, &data).config(&file).start();
    instance.ready();
    let before = memory_mb(instance.pid());
    let functions = costly(12);
    Guest {
        more: &functions,
        ..Guest::EMPTY
    }
    .write(&module);
    for (limits, reason) in [
        ("seconds = 1", "compile.seconds"),
        ("memory_mb = 64", "compile.memory_mb"),
    ] {
        configure(&file, &module, limits);
        let output = std::thread::scope(|scope| {
            let reload = scope.spawn(|| instance.run_verb(&["reload"]));
            while !reload.is_finished() {
                assert_eq!(instance.answer("status")["state"], "ready");
            }
            reload.join().unwrap()
        });
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(printed.contains(reason), "{printed}");
        assert!(printed.contains("nothing was changed"), "{printed}");
    }
    let after = memory_mb(instance.pid());
    assert!(
        after < before + 100,
        "{before} MiB before, {after} MiB after"
    );
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_start_with_a_module_over_the_limit_ends_with_code_2() {
    let venue = Venue::start(&["--seed", "32"]);
    let (file, module) = (
        venue.folder().join("own.toml"),
        venue.folder().join("own.wasm"),
    );
    let functions = costly(2);
    Guest {
        more: &functions,
        ..Guest::EMPTY
    }
    .write(&module);
    configure(&file, &module, "memory_mb = 64");
    let data = venue.folder().join("data");
    let output = Launch::new(&venue, &data).config(&file).output();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("64 MiB"), "{printed}");
}

#[test]
fn sources_are_refused_on_an_exchange_that_is_not_on_loopback() {
    let dir = tempfile::tempdir().unwrap();
    let (file, source) = (dir.path().join("own.toml"), dir.path().join("source"));
    std::fs::create_dir(&source).unwrap();
    configure(&file, &source, "");
    let attempt = |verb: &str, settings: &[&str]| {
        let mut arguments = vec![verb, "--config", file.to_str().unwrap()];
        let data = format!("run.data_dir={}", dir.path().join("data").display());
        let paper = ["run.mode=paper", data.as_str()];
        for setting in paper.iter().chain(settings) {
            arguments.extend(["--set", *setting]);
        }
        let output = binary::run(arguments);
        let printed = [output.stdout, output.stderr].concat();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&printed).into_owned()
    };
    let elsewhere = "venue.futures.ws=wss://exchange.invalid:1";
    for verb in ["run", "check"] {
        let printed = attempt(verb, &[elsewhere]);
        assert!(
            printed.contains("accepts only built modules"),
            "{verb}: {printed}"
        );
        assert!(printed.contains("windvane build"), "{verb}: {printed}");
        // With the key, and on loopback, the folder is accepted. It is no strategy.
        for accepted in [&[elsewhere, "run.allow_source=true"][..], &[]] {
            let printed = attempt(verb, accepted);
            assert!(printed.contains("has no Cargo.toml"), "{verb}: {printed}");
        }
    }
}
