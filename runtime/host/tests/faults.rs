//! Every kind of guest failure has its own fault kind, hides its callback and ends only its own
//! instance. A restart continues from the last state.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod support;

use support::{Bench, IMPORTS, PATHS, SUBMIT, guest, text};
use windvane_host::{Capabilities, Fault, FaultKind, Limits};
use windvane_model::Intent;

/// Delivers one event on both paths, to a guest that submits an order and then misbehaves.
fn faults(on_event: &str, more: &str, limits: Limits) -> Vec<Fault> {
    let misbehaves = format!("(drop {SUBMIT}) {on_event}");
    let module = wat::parse_str(text(IMPORTS, &misbehaves, more)).unwrap();
    PATHS
        .iter()
        .map(|path| {
            let mut bench = Bench::new(*path, &module, limits);
            let fault = bench.deliver(1).unwrap_err();
            assert_eq!(
                bench.strategy.intents(),
                [],
                "{path:?}: intents of a failed callback"
            );
            assert!(
                !bench.strategy.has_output(),
                "{path:?}: output of a failed callback"
            );
            assert_eq!(bench.deliver(2).unwrap_err().kind, FaultKind::Dead);
            fault
        })
        .collect()
}

#[track_caller]
fn assert_kind(faults: &[Fault], kind: FaultKind, says: &str) {
    for fault in faults {
        assert_eq!(fault.kind, kind, "{fault}");
        assert!(fault.detail.contains(says), "{fault}");
    }
}

#[test]
fn an_endless_loop_runs_out_of_fuel() {
    let faults = faults("(loop $again (br $again))", "", Limits::default());
    assert_kind(&faults, FaultKind::Fuel, "fuel");
}

#[test]
fn fuel_ends_at_the_same_instruction_each_time() {
    let body = "(loop $again (drop (call $cancel_timer (i64.const 1))) (br $again))";
    let limits = Limits {
        fuel_per_event: 100_000,
        intents_per_event: usize::MAX,
        ..Limits::default()
    };
    let mut used = Vec::new();
    for _ in 0..3 {
        let mut bench = Bench::new(PATHS[0], &guest(body), limits);
        bench.deliver(1).unwrap_err();
        used.push(bench.strategy.fuel_used());
    }
    assert_eq!(used, [100_000; 3]);
}

#[test]
fn endless_allocation_stops_at_the_memory_limit() {
    let body = "(loop $again (br_if $again (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0))))";
    let faults = faults(body, "", Limits::default());
    assert_kind(&faults, FaultKind::Memory, "67108864");
}

#[test]
fn a_module_over_its_memory_limit_does_not_load() {
    let text = text(IMPORTS, "", "").replace("(export \"memory\") 1", "(export \"memory\") 100");
    let module = wat::parse_str(text).unwrap();
    for path in PATHS {
        let limits = Limits {
            memory_bytes: 1 << 20,
            ..Limits::default()
        };
        let error = support::host(path)
            .load(&module, limits, windvane_host::Capabilities::ALL)
            .unwrap_err();
        assert!(error.to_string().contains("1048576"), "{error}");
    }
}

#[test]
fn a_trap_does_not_affect_earlier_events() {
    let body = format!(
        "(drop {SUBMIT})
         (if (i64.eq (local.get $sequence) (i64.const 10)) (then (unreachable)))"
    );
    for path in PATHS {
        let mut bench = Bench::new(path, &guest(&body), Limits::default());
        for number in 1..10 {
            bench.deliver(number).unwrap();
            assert_eq!(bench.strategy.intents().len(), 1);
        }
        let fault = bench.deliver(10).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Trap);
        assert!(fault.detail.contains("unreachable"), "{fault}");
        assert_eq!(bench.strategy.intents(), []);
    }
}

#[test]
fn ten_thousand_intents_are_too_many() {
    let body = format!(
        "(loop $again
           (drop {SUBMIT})
           (local.set $i (i32.add (local.get $i) (i32.const 1)))
           (br_if $again (i32.lt_u (local.get $i) (i32.const 10000))))"
    );
    for path in PATHS {
        let mut bench = Bench::new(path, &guest(&body), Limits::default());
        let fault = bench.deliver(1).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Intents, "{fault}");
        assert!(fault.detail.contains("1000 intents"), "{fault}");
        assert_eq!(bench.strategy.intents(), []);
    }
}

#[test]
fn endless_recursion_exhausts_the_stack() {
    let more = "(func $deeper (param i64) (call $deeper (i64.add (local.get 0) (i64.const 1)))
        (global.set $count (local.get 0)))";
    let limits = Limits {
        fuel_per_event: u64::MAX >> 2,
        ..Limits::default()
    };
    let faults = faults("(call $deeper (i64.const 0))", more, limits);
    assert_kind(&faults, FaultKind::Stack, "stack");
}

#[test]
fn a_flood_of_log_lines_or_points_is_a_fault() {
    let log = "(loop $again
        (call $log (i32.const 3) (i32.const 0) (i32.const 4096)) (br $again))";
    assert_kind(
        &faults(log, "", Limits::default()),
        FaultKind::Output,
        "65536 bytes",
    );
    let empty = "(loop $again (call $log (i32.const 3) (i32.const 0) (i32.const 0)) (br $again))";
    let limits = Limits {
        fuel_per_event: 1_000_000_000,
        ..Limits::default()
    };
    assert_kind(&faults(empty, "", limits), FaultKind::Output, "65536 bytes");
    let plot = "(loop $again
        (call $plot (i32.const 2048) (i32.const 6) (i64.const 1) (i32.const 0)) (br $again))";
    assert_kind(
        &faults(plot, "", Limits::default()),
        FaultKind::Output,
        "1000 points",
    );
}

#[test]
fn bad_pointers_and_values_break_the_contract() {
    let pointer = "(call $log (i32.const 3) (i32.const -16) (i32.const 64))";
    assert_kind(
        &faults(pointer, "", Limits::default()),
        FaultKind::Contract,
        "out of bounds",
    );
    let length = "(call $plot (i32.const 0) (i32.const -1) (i64.const 0) (i32.const 0))";
    assert_kind(
        &faults(length, "", Limits::default()),
        FaultKind::Contract,
        "out of bounds",
    );
    let level = "(call $log (i32.const 9) (i32.const 0) (i32.const 1))";
    assert_kind(
        &faults(level, "", Limits::default()),
        FaultKind::Contract,
        "log level 9",
    );
}

#[test]
fn bad_answers_break_the_contract() {
    let good = "(call $answer (i32.const 32) (i32.const 8))";
    for (bad, says) in [
        (
            "(call $answer (i32.const -8) (i32.const 64))",
            "out of bounds",
        ),
        ("(i32.const -4)", "out of bounds"),
        ("(i32.const 18)", "aligned"),
        ("(call $answer (i32.const 0) (i32.const 65536))", "65536"),
    ] {
        let text = text(IMPORTS, "", "").replace(good, bad);
        let module = wat::parse_str(text).unwrap();
        for path in PATHS {
            let limits = Limits {
                answer_bytes: 4096,
                ..Limits::default()
            };
            let mut bench = Bench::new(path, &module, limits);
            let fault = bench.strategy.save().unwrap_err();
            assert_eq!(fault.kind, FaultKind::Contract, "{path:?} {bad}: {fault}");
            if path == PATHS[0] {
                assert!(fault.detail.contains(says), "{fault}");
            }
        }
    }
}

#[test]
fn an_import_during_allocation_is_a_breach_on_both_paths() {
    let text = text(IMPORTS, "", "").replace(
        "(i32.store (i32.const 16) (i32.const -1))",
        "(drop (call $cancel_timer (i64.const 1)))",
    );
    let module = wat::parse_str(text).unwrap();
    for path in PATHS {
        let mut bench = Bench::new(path, &module, Limits::default());
        let fault = bench.strategy.save().unwrap_err();
        assert!(
            matches!(fault.kind, FaultKind::Contract | FaultKind::Trap),
            "{fault}"
        );
    }
}

#[test]
fn a_trap_includes_the_last_logged_error() {
    let body = "(call $log (i32.const 1) (i32.const 2048) (i32.const 6)) (unreachable)";
    for fault in faults(body, "", Limits::default()) {
        assert!(fault.detail.ends_with("it last logged: spread"), "{fault}");
    }
}

/// A guest that reports a fault at each event, like a panic in the SDK.
fn panicking() -> Vec<u8> {
    let words = "panicked at src/lib.rs:7:5: the spread is negative";
    let body = format!(
        "(call $report (i32.const 4096) (i32.const {}))",
        words.len()
    );
    let data = format!("(data (i32.const 4096) \"{words}\")");
    wat::parse_str(text(IMPORTS, &body, &data)).unwrap()
}

#[test]
fn a_reported_fault_keeps_its_message() {
    for path in PATHS {
        let mut bench = Bench::new(path, &panicking(), Limits::default());
        assert_eq!(
            bench.deliver(1).unwrap_err().to_string(),
            "trap: panicked at src/lib.rs:7:5: the spread is negative"
        );
        assert_eq!(bench.deliver(2).unwrap_err().kind, FaultKind::Dead);
    }
}

#[test]
fn a_fault_can_be_reported_without_capabilities() {
    for path in PATHS {
        let module = wat::parse_str(text(
            r#"(import "windvane:strategy/fault@0.2.0" "report" (func $report (param i32 i32)))"#,
            "(call $report (i32.const 2048) (i32.const 6))",
            "",
        ));
        let mut bench = Bench::granted(
            path,
            &module.unwrap(),
            Limits::default(),
            Capabilities::NONE,
        );
        assert_eq!(bench.deliver(1).unwrap_err().to_string(), "trap: spread");
    }
}

#[test]
fn a_reported_fault_is_truncated_and_may_be_empty() {
    let report = |length: u32| format!("(call $report (i32.const 0) (i32.const {length}))");
    for fault in faults(&report(60_000), "", Limits::default()) {
        assert!(fault.detail.len() <= 4_096, "{}", fault.detail.len());
    }
    for fault in faults(&report(0), "", Limits::default()) {
        assert!(fault.detail.contains("without a message"), "{fault}");
    }
    let beyond = "(call $report (i32.const -16) (i32.const 64))";
    assert_kind(
        &faults(beyond, "", Limits::default()),
        FaultKind::Contract,
        "out of bounds",
    );
}

#[test]
fn a_log_line_does_not_hide_a_trap() {
    let words = "panicked at src/lib.rs:7:5: but it went on";
    let body = format!(
        "(call $log (i32.const 1) (i32.const 4096) (i32.const {})) (unreachable)",
        words.len()
    );
    let data = format!("(data (i32.const 4096) \"{words}\")");
    for fault in faults(&body, &data, Limits::default()) {
        assert!(fault.detail.contains("unreachable"), "{fault}");
        assert!(fault.detail.ends_with(words), "{fault}");
    }
}

#[test]
fn a_restart_continues_from_the_saved_state() {
    let body = "(if (i64.eq (local.get $sequence) (i64.const 4)) (then (unreachable)))
        (drop (call $cancel_timer (global.get $count)))";
    for path in PATHS {
        let mut bench = Bench::new(path, &guest(body), Limits::default());
        for number in 1..4 {
            bench.deliver(number).unwrap();
        }
        let state = bench.strategy.save().unwrap();
        assert_eq!(
            bench.strategy.intents(),
            [],
            "`save` must clear the intents"
        );
        assert_eq!(bench.deliver(4).unwrap_err().kind, FaultKind::Trap);
        assert!(!bench.strategy.is_live());
        bench.restart(Some(&state)).unwrap();
        bench.deliver(5).unwrap();
        assert_eq!(bench.strategy.intents(), [Intent::CancelTimer { token: 4 }]);
    }
}

#[test]
fn output_of_earlier_callbacks_survives_a_fault() {
    let body = "(call $log (i32.const 3) (i32.const 2048) (i32.const 6))
        (if (i64.eq (local.get $sequence) (i64.const 2)) (then (unreachable)))";
    for path in PATHS {
        let mut bench = Bench::new(path, &guest(body), Limits::default());
        bench.deliver(1).unwrap();
        bench.deliver(2).unwrap_err();
        assert_eq!(bench.strategy.take_output().logs.len(), 1);
        assert!(!bench.strategy.has_output());
    }
}

#[test]
fn a_refusal_of_start_or_load_keeps_the_instance() {
    let refuses = text(IMPORTS, "", "").replace(
        "(global.set $count (i64.load (local.get 0)))\n    (call $answer (i32.const 0) (i32.const 0))",
        "(call $answer (i32.const 2048) (i32.const 6))",
    );
    let module = wat::parse_str(refuses).unwrap();
    for path in PATHS {
        let mut bench = Bench::new(path, &module, Limits::default());
        let fault = bench.strategy.load(b"12345678").unwrap_err();
        assert_eq!(fault.kind, FaultKind::Refused);
        assert_eq!(fault.detail, "load: spread");
        bench.deliver(1).unwrap();
    }
}

/// The reason of a refusal is stored with the quarantine.
#[test]
fn a_long_reason_of_a_refusal_is_cut() {
    let refuses = text(IMPORTS, "", "").replace(
        "(global.set $count (i64.load (local.get 0)))\n    (call $answer (i32.const 0) (i32.const 0))",
        "(call $answer (i32.const 2048) (i32.const 60000))",
    );
    let module = wat::parse_str(refuses).unwrap();
    for path in PATHS {
        let mut bench = Bench::new(path, &module, Limits::default());
        let fault = bench.strategy.load(b"12345678").unwrap_err();
        assert!(fault.detail.starts_with("load: spread"));
        assert_eq!(fault.detail.len(), 4_096 + "load: ".len());
    }
}

#[test]
fn market_queries_fail_outside_start_and_events() {
    let asks = text(IMPORTS, "", "").replace(
        "(i64.store (i32.const 32) (global.get $count))",
        "(drop (call $last (i32.const 0) (i32.const 0)))",
    );
    let module = wat::parse_str(asks).unwrap();
    for path in PATHS {
        let mut bench = Bench::new(path, &module, Limits::default());
        let fault = bench.strategy.save().unwrap_err();
        assert_eq!(fault.kind, FaultKind::Contract);
        assert!(fault.detail.contains("only start and on-event"), "{fault}");
    }
}
