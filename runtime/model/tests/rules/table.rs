//! `sdk/wit/RULES.md`, the table for strategy authors, is generated from the enum.

use std::fmt::Write as _;
use std::path::Path;

use windvane_model::rules::Rule;

const HEAD: &str = "\
# Rules that an intent can break

Intents of the strategy contract (`submit`, `cancel`, `set` and others) return minus the number of the rule that an
intent breaks. The numbers never change their meaning; new rules get new numbers. The code is the
venue's own code for the same fault, or the most similar one; 0 marks limits of the runtime. If an intent
breaks several rules, the first one is returned, in the order of `windvane_model::rules::check`.

This file is generated from `windvane_model::rules::Rule`; a test fails if it differs. To generate it
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
fn the_table_of_rules_matches_the_enum() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/wit/RULES.md");
    let expected = table();
    if std::env::var_os("WINDVANE_WRITE_RULES").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "sdk/wit/RULES.md differs from the enum Rule: generate it again with \
         WINDVANE_WRITE_RULES=1 cargo test -p windvane-model --test rules"
    );
}
