//! Modules of contract 0.1 run as before: journals of old programs name them, and a replay calls
//! them.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod support;

use support::{Bench, PATHS, SUBMIT, event, guest, guest_0_1, text_0_1};
use windvane_host::{
    Capabilities, Capability, ContractVersion, FaultKind, Limits, LoadError, validate, wrap,
};
use windvane_model::{Event, EventKind, Intent};

#[test]
fn the_version_of_a_module_is_detected() {
    assert_eq!(
        validate(&guest("")).unwrap().contract,
        ContractVersion::V0_2
    );
    let old = guest_0_1("");
    assert_eq!(validate(&old).unwrap().contract, ContractVersion::V0_1);
    let component = wrap(&old).unwrap();
    let info = validate(&component).unwrap();
    assert_eq!(info.contract, ContractVersion::V0_1);
    assert!(info.direct, "the wrapped module must have a direct path");
    // Without imports, the name of an export decides.
    let text = text_0_1("", "").replace(&support::imports_0_1(), "");
    let alone = wat::parse_str(text).unwrap();
    assert_eq!(validate(&alone).unwrap().contract, ContractVersion::V0_1);
    assert_eq!(
        validate(&wrap(&alone).unwrap()).unwrap().contract,
        ContractVersion::V0_1
    );
}

#[test]
fn times_are_nanoseconds_and_orders_have_eight_parameters() {
    let body = format!(
        "(drop {SUBMIT})
         (drop (call $cancel_timer (local.get $time)))
         (drop (call $set_timer (i64.add (local.get $time) (i64.const 5)) (local.get $id)))"
    );
    for path in PATHS {
        let mut bench = Bench::new(path, &guest_0_1(&body), Limits::default());
        bench.deliver(3).unwrap();
        let sent = event(3);
        let intents = bench.strategy.intents();
        assert!(matches!(intents[0], Intent::Submit { .. }), "{intents:?}");
        assert_eq!(intents[1], Intent::CancelTimer { token: sent.time.0 });
        let Intent::SetTimer { time, token } = intents[2] else {
            panic!("{intents:?}");
        };
        assert_eq!((time.0, token), (sent.time.0 + 5, sent.id));
    }
}

#[test]
fn events_that_0_1_does_not_have_are_not_delivered() {
    for path in PATHS {
        let body = format!("(drop {SUBMIT})");
        let mut bench = Bench::new(path, &guest_0_1(&body), Limits::default());
        bench.deliver(1).unwrap();
        assert_eq!(bench.strategy.intents().len(), 1);
        for kind in [EventKind::Rules, EventKind::ForcedClose] {
            let new = Event { kind, ..event(2) };
            bench.deliver_event(&new).unwrap();
            assert_eq!(
                bench.strategy.intents(),
                [],
                "no intents may remain from the event before"
            );
        }
        let state = bench.strategy.save().unwrap();
        assert_eq!(
            state,
            1_i64.to_le_bytes(),
            "only one event must be delivered"
        );
    }
}

#[test]
fn flags_and_fields_of_0_2_are_unknown_in_0_1() {
    let role = SUBMIT.replace("0x40", "0x4040");
    let body = format!(
        "(drop (call $cancel_timer {role}))
         (drop (call $cancel_timer (call $rule (i32.const 0) (i32.const 13))))"
    );
    let body = body.replace(
        "(i64.const 0) (i64.const 0)\n    (i64.const 0))",
        "(i64.const 0))",
    );
    for path in PATHS {
        let mut bench = Bench::new(path, &guest_0_1(&body), Limits::default());
        bench.deliver(1).unwrap();
        let tokens = [-3, i64::MIN].map(|token| Intent::CancelTimer { token });
        assert_eq!(bench.strategy.intents(), tokens);
    }
}

/// A guest that logs a panic like the SDK of 0.1, and traps.
fn panicking() -> Vec<u8> {
    let words = "panicked at src/lib.rs:7:5: the spread is negative";
    let body = format!(
        "(call $log (i32.const 1) (i32.const 4096) (i32.const {})) (unreachable)",
        words.len()
    );
    let data = format!("(data (i32.const 4096) \"{words}\")");
    wat::parse_str(text_0_1(&body, &data)).unwrap()
}

#[test]
fn a_panic_is_the_last_error_of_the_log() {
    for path in PATHS {
        for granted in [
            Capabilities::ALL,
            Capabilities::ALL.without(Capability::Log),
        ] {
            let mut bench = Bench::granted(path, &panicking(), Limits::default(), granted);
            let fault = bench.deliver(1).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Trap);
            assert_eq!(
                fault.detail,
                "panicked at src/lib.rs:7:5: the spread is negative"
            );
        }
    }
}

#[test]
fn log_lines_are_dropped_without_the_grant() {
    let granted = Capabilities::ALL.without(Capability::Log);
    let body = "(call $log (i32.const 1) (i32.const 2048) (i32.const 6))";
    for path in PATHS {
        let mut bench = Bench::granted(path, &guest_0_1(body), Limits::default(), granted);
        bench.deliver(1).unwrap();
        assert!(!bench.strategy.has_output(), "the line must be dropped");
        // In 0.2, `log` is a capability like any other.
        let new = support::host(path).load(&guest(body), Limits::default(), granted);
        let capability = Capability::Log;
        assert!(
            matches!(new, Err(LoadError::NotGranted { capability: of, .. }) if of == capability)
        );
    }
}
