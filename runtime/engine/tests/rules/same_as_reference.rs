//! Random orders: check and reference must name the same rule, or none.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use windvane_engine::rules::{CompiledRules, Rule, check};

use crate::generators::{Case, case};
use crate::reference::broken_rules;

fn verdict(case: &Case) -> Option<Rule> {
    let rules = CompiledRules::new(&case.instrument).unwrap();
    let verdict = check(&rules, &case.terms, &case.context);
    verdict.err().map(|rejection| rejection.rule)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn check_and_reference_name_the_same_rule(case in case()) {
        let expected = broken_rules(&case.instrument, &case.terms, &case.context);
        prop_assert_eq!(verdict(&case), expected.first().copied(), "all broken: {:?}", expected);
    }
}

/// A generator that never breaks a rule proves nothing about it.
#[test]
fn the_random_orders_break_every_rule_of_the_documents_and_many_break_none() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<Option<Rule>, u32> = BTreeMap::new();
    for _ in 0..40_000 {
        let case = case().new_tree(&mut runner).unwrap().current();
        *seen.entry(verdict(&case)).or_default() += 1;
    }
    // These judge what only the engine knows: its states, its limits, a strategy's own position.
    let engine_alone = |rule: Rule| {
        !(20..200).contains(&rule.number())
            || matches!(rule, Rule::ReduceOnlyPosition | Rule::ClosePositionShared)
    };
    let unseen: Vec<_> = Rule::ALL
        .iter()
        .filter(|rule| !engine_alone(**rule) && !seen.contains_key(&Some(**rule)))
        .collect();
    assert!(unseen.is_empty(), "never broken: {unseen:?}");
    assert!(
        seen[&None] > 4_000,
        "only {} of 40000 orders pass",
        seen[&None]
    );
}
