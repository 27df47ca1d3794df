//! The page of the rules that an intent can break, `sdk/wit/RULES.md`.

use std::fmt::Write as _;

use windvane_model::rules::Rule;

const HEAD: &str = "\
# Rules that an intent can break

Intents of the strategy contract (`submit`, `cancel`, `set` and others) return minus the number of the rule that an
intent breaks. The numbers never change their meaning; new rules get new numbers. The code is the
venue's own code for the same fault, or the most similar one; 0 marks limits of the runtime. If an intent
breaks several rules, the first one is returned, in the order of `windvane_model::rules::check`.

This file is generated from `windvane_model::rules::Rule`; a test fails if it differs. To generate it
again: `cargo xtask docs`.

| number | rule | venue code | meaning |
|---:|---|---:|---|
";

pub(super) fn page() -> String {
    let mut text = HEAD.to_owned();
    for rule in Rule::ALL {
        let (number, code) = (rule.number(), rule.code());
        let meaning = rule.describe();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {number} | `{rule}` | {code} | {meaning} |");
    }
    text
}
