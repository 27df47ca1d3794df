//! For any integers that a guest passes, the host returns an answer: no panic, no fault, and the
//! same answer on both paths.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod support;

use proptest::prelude::*;
use support::{Bench, PATHS, guest};
use windvane_host::Limits;

fn any_i64() -> impl Strategy<Value = i64> {
    prop_oneof![
        Just(i64::MIN),
        Just(i64::MAX),
        -3_i64..700_000,
        any::<i64>()
    ]
}

fn any_i32() -> impl Strategy<Value = i32> {
    prop_oneof![Just(i32::MIN), Just(i32::MAX), -2_i32..16, any::<i32>()]
}

/// Calls of every import that takes only integers.
fn call() -> impl Strategy<Value = String> {
    let call64 = |name: &'static str| {
        any_i64().prop_map(move |a| format!("(drop (call ${name} (i64.const {a})))"))
    };
    let call32 = |name: &'static str, count: usize| {
        prop::collection::vec(any_i32(), count).prop_map(move |args| {
            let args: Vec<String> = args.iter().map(|a| format!("(i32.const {a})")).collect();
            format!("(drop (call ${name} {}))", args.join(" "))
        })
    };
    let flags = prop_oneof![5 => 0_i32..0x4000, 1 => 0_i32..0x2_0000, 1 => any_i32()];
    // Mostly without a group, because an order with a group is refused.
    let group = prop_oneof![4 => Just(0), 1 => any_i64()];
    let submit = (
        any_i32(),
        flags,
        prop::collection::vec(any_i64(), 5),
        any_i32(),
        prop::collection::vec(group, 2),
    )
        .prop_map(|(instrument, flags, v, ppm, g)| {
            let instrument = if instrument % 3 == 0 { instrument } else { 0 };
            format!(
                "(drop (call $submit (i32.const {instrument}) (i32.const {flags}) \
                 (i64.const {}) (i64.const {}) (i64.const {}) (i64.const {}) (i32.const {ppm}) \
                 (i64.const {}) (i64.const {}) (i64.const {})))",
                v[0], v[1], v[2], v[3], v[4], g[0], g[1]
            )
        });
    prop_oneof![
        5 => submit,
        1 => call64("cancel"),
        1 => call32("cancel_all", 1),
        1 => call32("position", 3),
        1 => call32("open_orders", 1),
        1 => call32("open_order", 2),
        1 => (any_i64(), any_i32()).prop_map(|(order, field)| {
            format!("(drop (call $order (i64.const {order}) (i32.const {field})))")
        }),
        1 => call32("balance", 3),
        1 => call32("book", 4),
        1 => call32("last", 2),
        1 => call32("rule", 2),
        1 => (any_i64(), any_i32(), any_i64()).prop_map(|(ms, ns, token)| {
            format!(
                "(drop (call $set_timer (i64.const {ms}) (i32.const {ns}) (i64.const {token})))"
            )
        }),
        1 => prop::collection::vec(any_i64(), 5).prop_map(|v| {
            let v: Vec<String> = v.iter().map(|v| format!("(i64.const {v})")).collect();
            format!("(drop (call $amend {}))", v.join(" "))
        }),
        1 => call32("begin_group", 3),
        1 => call32("open_groups", 1),
        1 => call32("open_group", 2),
        1 => (any_i64(), any_i32()).prop_map(|(group, what)| {
            format!("(drop (call $cancel_group (i64.const {group}) (i32.const {what})))")
        }),
        1 => (any_i64(), any_i32()).prop_map(|(group, field)| {
            format!("(drop (call $group (i64.const {group}) (i32.const {field})))")
        }),
        1 => (any_i32(), any_i64(), any_i32()).prop_map(|(instrument, interval, count)| {
            format!(
                "(drop (call $history (i32.const {instrument}) (i64.const {interval}) \
                 (i32.const {count})))"
            )
        }),
        1 => call64("cancel_timer"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn any_integers_give_equal_answers(calls in prop::collection::vec(call(), 1..40)) {
        let module = guest(&calls.join("\n"));
        let mut seen = Vec::new();
        for path in PATHS {
            let mut bench = Bench::new(path, &module, Limits::default());
            for number in 1..3 {
                prop_assert_eq!(bench.deliver(number), Ok(()));
                seen.push(bench.strategy.intents().to_vec());
            }
        }
        prop_assert_eq!(&seen[0..2], &seen[2..4]);
    }
}
