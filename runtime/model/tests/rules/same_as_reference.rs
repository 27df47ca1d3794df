//! Random orders: the check and the reference must return the same rule, or both none.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use windvane_model::instrument::{Filters, LotSize, PriceFilter};
use windvane_model::rules::{CompiledRules, OrderContext, Rule, check};
use windvane_model::{OrderTerms, OrderType, Price, Qty, Surface, TimeInForce};

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
    fn check_and_reference_return_the_same_rule(case in case()) {
        let expected = broken_rules(&case.instrument, &case.terms, &case.context);
        prop_assert_eq!(verdict(&case), expected.first().copied(), "all broken: {:?}", expected);
    }

    #[test]
    fn wide_numbers_have_the_same_ticks_and_steps(case in wide_case()) {
        let expected = broken_rules(&case.instrument, &case.terms, &case.context);
        prop_assert_eq!(verdict(&case), expected.first().copied(), "all broken: {:?}", expected);
    }
}

/// Only tick and step rules, so that numbers may be wide: no product has to fit a decimal.
fn wide_case() -> impl Strategy<Value = Case> {
    let wide = || {
        prop_oneof![
            1..10_i64.pow(18),
            (0..5_i64, 31..60_u32).prop_map(|(off, bits)| (1 << bits) + off)
        ]
    };
    let step = || {
        prop_oneof![
            Just(0),
            1..100_i64,
            (0..18_u32).prop_map(|e| 10_i64.pow(e)),
            wide()
        ]
    };
    let bounds = || (prop_oneof![Just(0), 1..100_i64, wide()], step());
    let numbers = (bounds(), bounds(), wide(), wide(), any::<bool>());
    (case(), numbers).prop_map(|(mut case, (p, q, price, qty, on_step))| {
        let snapped = |value: i64, (min, step): (i64, i64)| {
            if on_step && step > 0 {
                min + value / 4 / step * step
            } else {
                value
            }
        };
        case.instrument = crate::examples::instrument(Surface::Futures);
        case.instrument.filters = Filters {
            price: Some(PriceFilter {
                min_price: p.0,
                max_price: 0,
                tick_size: p.1,
            }),
            lot_size: Some(LotSize {
                min_qty: q.0,
                max_qty: 0,
                step_size: q.1,
            }),
            ..Filters::default()
        };
        case.terms = OrderTerms {
            price: Some(Price(snapped(price, p))),
            qty: Some(Qty(snapped(qty, q))),
            time_in_force: Some(TimeInForce::Gtc),
            ..OrderTerms::new(case.terms.instrument, case.terms.side, OrderType::Limit)
        };
        case.context = OrderContext::default();
        case
    })
}

/// A generator that never breaks a rule would not test it.
#[test]
fn random_orders_break_every_documented_rule_and_many_pass() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<Option<Rule>, u32> = BTreeMap::new();
    for _ in 0..40_000 {
        let case = case().new_tree(&mut runner).unwrap().current();
        *seen.entry(verdict(&case)).or_default() += 1;
    }
    // These rules depend on the engine: its states, its limits, or a strategy's own position.
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
