//! `sdk/wit/RULES.md`, the table that strategy authors read, is written from the enum.

use std::fmt::Write as _;
use std::path::Path;

use windvane_model::rules::Rule;

const HEAD: &str = "\
# Rules that an intent can break

Intents of the strategy contract (`submit`, `cancel`, `set` and others) answer minus the number of the rule that an
intent breaks. The numbers never change their meaning; new rules get new numbers. The code is the
venue's own for the same fault, or the nearest one that it has; 0 marks limits of the runtime. Of
several broken rules the first is told, in the order that `windvane_model::rules::check` states.

This file is written from `windvane_model::rules::Rule`; a test fails when it differs. To write it
again: `WINDVANE_WRITE_RULES=1 cargo test -p windvane-model --test rules`.

| number | rule | venue code | meaning |
|---:|---|---:|---|
";

fn table() -> String {
    let mut text = HEAD.to_owned();
    for rule in Rule::ALL {
        let (number, code) = (rule.number(), rule.code());
        writeln!(
            text,
            "| {number} | `{rule}` | {code} | {} |",
            rule.describe()
        )
        .unwrap();
    }
    text
}

#[test]
fn the_table_of_rules_is_the_enum() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/wit/RULES.md");
    let expected = table();
    if std::env::var_os("WINDVANE_WRITE_RULES").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "sdk/wit/RULES.md differs from the enum Rule: write it again with \
         WINDVANE_WRITE_RULES=1 cargo test -p windvane-model --test rules"
    );
}
