//! Both paths into a guest give the same intents, output, state and faults.

#![allow(
    clippy::unwrap_used,
    clippy::format_push_string,
    clippy::format_collect,
    clippy::many_single_char_names,
    reason = "a panic is how a test fails, and texts here are short"
)]

mod support;

use support::{Bench, IMPORTS, PATHS, SUBMIT, event, guest, text};
use windvane_host::{CallPath, Fault, Limits, Output, PathChoice, wrap};
use windvane_model::{Event, Intent};

/// Calls every import at each event, and turns the answers into intents. The token of each
/// cancelled timer contains the answer and the number of the query.
fn curious() -> Vec<u8> {
    let mut questions = Vec::new();
    for field in 0..11 {
        questions.push(format!(
            "(call $position (i32.const 0) (i32.const 0) (i32.const {field}))"
        ));
        questions.push(format!("(call $order (i64.const 1) (i32.const {field}))"));
    }
    for field in 0..15 {
        questions.push(format!("(call $rule (i32.const 0) (i32.const {field}))"));
    }
    for field in 0..6 {
        questions.push(format!("(call $last (i32.const 0) (i32.const {field}))"));
    }
    for side in 0..3 {
        for level in 0..2 {
            for field in 0..3 {
                questions.push(format!(
                    "(call $book (i32.const 0) (i32.const {side}) (i32.const {level}) \
                     (i32.const {field}))"
                ));
            }
        }
    }
    for (surface, asset) in [(0, 0), (1, 0), (1, 7), (2, 0)] {
        questions.push(format!(
            "(call $balance (i32.const {surface}) (i32.const {asset}) (i32.const 0))"
        ));
    }
    // Instruments that do not exist, and positions with an invalid side.
    for instrument in [1, 65_535, 65_536, -1] {
        questions.push(format!(
            "(call $rule (i32.const {instrument}) (i32.const 0))"
        ));
        questions.push(format!(
            "(call $book (i32.const {instrument}) (i32.const 0) (i32.const 0) (i32.const 0))"
        ));
        questions.push(format!("(call $open_orders (i32.const {instrument}))"));
        questions.push(format!(
            "(call $position (i32.const {instrument}) (i32.const 9) (i32.const 0))"
        ));
    }
    // Functions that are not supported yet.
    questions.push("(call $open_groups (i32.const -1))".to_owned());
    questions.push("(call $open_group (i32.const -1) (i32.const 0))".to_owned());
    questions.push("(call $group (i64.const 1) (i32.const 0))".to_owned());
    questions.push("(call $history (i32.const 0) (i64.const 60000) (i32.const 9))".to_owned());
    questions.push("(call $begin_group (i32.const 2) (i32.const 0) (i32.const 0))".to_owned());
    questions.push("(call $cancel_group (i64.const 1) (i32.const 0))".to_owned());
    let zeros = "(i64.const 0) ".repeat(4);
    questions.push(format!("(call $amend (i64.const 1) {zeros})"));
    questions.push("(call $open_orders (i32.const -1))".to_owned());
    questions.push("(call $open_order (i32.const -1) (i32.const 0))".to_owned());
    questions.push("(call $open_order (i32.const 0) (i32.const 9))".to_owned());
    questions.push("(call $cancel (i64.const 1))".to_owned());
    questions.push("(call $cancel (i64.const -5))".to_owned());
    questions.push("(call $cancel_all (i32.const -1))".to_owned());
    questions.push(SUBMIT.to_owned());
    // Refused: an unknown instrument, and then a zero quantity.
    questions.push(SUBMIT.replace(
        "(i32.const 0) (i32.const 0x40)",
        "(i32.const 9) (i32.const 0)",
    ));
    questions.push(SUBMIT.replace("(i64.const 2)", "(i64.const 0)"));
    // Flags without a meaning.
    questions.push(SUBMIT.replace("0x40", "0x0e"));

    let mut body = format!("(drop {SUBMIT})");
    for (token, question) in questions.iter().enumerate() {
        body.push_str(&format!(
            "(drop (call $cancel_timer (i64.add (i64.mul {question} (i64.const 1000)) \
             (i64.const {token}))))"
        ));
    }
    body.push_str(
        "(drop (call $set_timer (i64.add (local.get $ms) (i64.const 5)) (local.get $ns)
           (local.get $a)))
         (drop (call $cancel_timer (local.get $id)))
         (call $log (i32.const 3) (i32.const 2048) (i32.const 6))
         (call $log (i32.const 4) (i32.const 0) (i32.const 0))
         (call $plot (i32.const 2048) (i32.const 6) (local.get $b) (i32.const 3))",
    );
    guest(&body)
}

struct Seen {
    results: Vec<Result<(), Fault>>,
    intents: Vec<Vec<Intent>>,
    output: Output,
    state: Option<Vec<u8>>,
}

fn run(path: PathChoice, module: &[u8], events: i64) -> Seen {
    let mut bench = Bench::new(path, module, Limits::default());
    let mut results = Vec::new();
    let mut intents = Vec::new();
    for number in 1..=events {
        results.push(bench.deliver(number));
        intents.push(bench.strategy.intents().to_vec());
    }
    Seen {
        results,
        intents,
        output: bench.strategy.take_output(),
        state: bench.strategy.save().ok(),
    }
}

#[test]
fn both_paths_give_the_same_intents_output_and_state() {
    let module = curious();
    let direct = run(PathChoice::Direct, &module, 5);
    let component = run(PathChoice::Component, &module, 5);
    assert_eq!(direct.results, vec![Ok(()); 5]);
    assert_eq!(direct.results, component.results);
    assert!(
        direct.intents[0].len() > 70,
        "the guest must have made queries and intents"
    );
    assert_eq!(direct.intents, component.intents);
    assert_eq!(direct.output.logs.len(), 10);
    assert_eq!(direct.output.plots[4].value, 25);
    assert_eq!(direct.output, component.output);
    assert_eq!(direct.state, Some(5_i64.to_le_bytes().to_vec()));
    assert_eq!(direct.state, component.state);
}

#[test]
fn a_wrapped_core_module_is_found_and_called_directly() {
    let module = guest(&format!("(drop {SUBMIT})"));
    let component = wrap(&module).unwrap();
    let mut bench = Bench::new(PathChoice::Fastest, &component, Limits::default());
    assert_eq!(bench.strategy.path(), CallPath::Direct);
    bench.deliver(1).unwrap();
    assert_eq!(bench.strategy.intents().len(), 1);

    let mut forced = Bench::new(PathChoice::Component, &component, Limits::default());
    assert_eq!(forced.strategy.path(), CallPath::Component);
    forced.deliver(1).unwrap();
    assert_eq!(bench.strategy.intents(), forced.strategy.intents());
}

#[test]
fn wrapping_gives_the_same_bytes_each_time() {
    let module = guest("");
    assert_eq!(wrap(&module).unwrap(), wrap(&module).unwrap());
}

#[test]
fn every_field_of_an_event_arrives() {
    // One timer for each parameter: its token is the value.
    let names = "ms sequence a b c d e f id";
    let mut body: String = names
        .split(' ')
        .map(|name| format!("(drop (call $cancel_timer (local.get ${name})))"))
        .collect();
    for name in ["ns", "kind", "instrument", "flags"] {
        body.push_str(&format!(
            "(drop (call $cancel_timer (i64.extend_i32_u (local.get ${name}))))"
        ));
    }
    let sent = Event {
        flags: u32::MAX,
        fields: [i64::MIN, i64::MAX, -1, 0, 7, 8],
        ..event(3)
    };
    for path in PATHS {
        let module = guest(&body);
        let mut strategy = Bench::new(path, &module, Limits::default()).strategy;
        let (_, result) = strategy.deliver(support::engine(), &sent);
        result.unwrap();
        let tokens: Vec<i64> = strategy
            .intents()
            .iter()
            .map(|intent| match intent {
                Intent::CancelTimer { token } => *token,
                other => panic!("{other:?}"),
            })
            .collect();
        let [a, b, c, d, e, f] = sent.fields;
        let expected = [
            1_003,
            3,
            a,
            b,
            c,
            d,
            e,
            f,
            sent.id,
            7,
            1,
            0,
            i64::from(u32::MAX),
        ];
        assert_eq!(tokens, expected, "{path:?}");
    }
}

#[test]
fn an_initialiser_runs_before_everything_else_on_both_paths() {
    let more = r#"(func (export "_initialize") (global.set $count (i64.const 100)))"#;
    let module = wat::parse_str(text(IMPORTS, "", more)).unwrap();
    for path in PATHS {
        let seen = run(path, &module, 1);
        assert_eq!(seen.state, Some(101_i64.to_le_bytes().to_vec()), "{path:?}");
    }
}
