//! The limits of the number range: the check returns a result, without a panic or an overflow.
//! (Tests are built with overflow checks, so an overflow would panic.)

use proptest::option;
use proptest::prelude::*;
use windvane_model::instrument::{LotSize, PercentPrice, PriceFilter};
use windvane_model::rules::{CompiledRules, OrderContext, check};
use windvane_model::{Amount, Decimal, Instrument, OrderTerms, Price, Qty, Surface};

use crate::examples::instrument;
use crate::generators::{Case, case};

fn extreme() -> impl Strategy<Value = i64> {
    prop_oneof![
        Just(i64::MIN),
        Just(i64::MAX),
        Just(i64::MAX - 1),
        Just(0),
        Just(1),
        Just(-1),
        any::<i64>(),
        1..1_000_000_000_000_i64,
    ]
}

fn bound() -> impl Strategy<Value = i64> {
    extreme().prop_map(|value| value.checked_abs().unwrap_or(i64::MAX))
}

fn multiplier() -> impl Strategy<Value = Decimal> {
    (0..=999_999_999_999_i64, 0..=10_u32)
        .prop_map(|(mantissa, scale)| Decimal::new(mantissa, scale))
}

fn huge_amount() -> impl Strategy<Value = Amount> {
    prop_oneof![
        Just(i128::MAX),
        Just(i128::MIN),
        any::<i128>(),
        any::<i64>().prop_map(i128::from)
    ]
    .prop_map(Amount)
}

/// A random case with its numbers replaced by extremes.
fn extreme_case() -> impl Strategy<Value = Case> {
    let filters = (
        option::of((bound(), bound(), bound())),
        option::of((bound(), bound(), bound())),
        option::of((multiplier(), multiplier())),
        (huge_amount(), huge_amount()),
    );
    let numbers = (
        extreme(),
        extreme(),
        extreme(),
        extreme(),
        huge_amount(),
        any::<u32>(),
    );
    let prices = (
        option::of(extreme()),
        option::of(extreme()),
        option::of(extreme()),
        option::of(extreme()),
    );
    (case(), filters, numbers, prices).prop_map(|(mut case, filters, numbers, prices)| {
        let ((p, q, percent, notional), terms) = (filters, &mut case.terms);
        let own = &mut case.instrument.filters;
        own.price = p.map(|(min_price, max_price, tick_size)| PriceFilter {
            min_price,
            max_price,
            tick_size,
        });
        own.lot_size = q.map(|(min_qty, max_qty, step_size)| LotSize {
            min_qty,
            max_qty,
            step_size,
        });
        own.percent_price = percent.map(|(multiplier_up, multiplier_down)| PercentPrice {
            multiplier_up,
            multiplier_down,
        });
        own.min_notional = Some(notional.0);
        own.max_notional = Some(notional.1);
        terms.price = terms.price.map(|_| Price(numbers.0));
        terms.qty = terms.qty.map(|_| Qty(numbers.1));
        terms.stop_price = terms.stop_price.map(|_| Price(numbers.2));
        terms.activation_price = terms.activation_price.map(|_| Price(numbers.3));
        terms.quote_qty = terms.quote_qty.map(|_| numbers.4);
        terms.callback_ppm = terms.callback_ppm.map(|_| numbers.5);
        case.context.mark = prices.0;
        case.context.last = prices.1;
        case.context.best_bid = prices.2;
        case.context.best_ask = prices.3;
        case.context.open_orders = numbers.5;
        case
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn extreme_numbers_return_a_result(case in extreme_case()) {
        if let Ok(rules) = CompiledRules::new(&case.instrument)
            && let Err(rejection) = check(&rules, &case.terms, &case.context)
        {
            prop_assert!(rejection.to_string().contains(rejection.rule.name()));
        }
    }
}

/// Disables all other filters, so that only the notional is checked.
fn only_notional(min: Option<i128>, max: Option<i128>) -> Instrument {
    let mut instrument = instrument(Surface::Futures);
    instrument.filters = windvane_model::instrument::Filters {
        min_notional: min.map(Amount),
        max_notional: max.map(Amount),
        ..Default::default()
    };
    (instrument.price_scale, instrument.qty_scale) = (12, 12);
    (instrument.price_precision, instrument.qty_precision) = (None, None);
    instrument
}

fn largest_order() -> OrderTerms {
    OrderTerms {
        price: Some(Price(i64::MAX)),
        qty: Some(Qty(i64::MAX)),
        time_in_force: Some(windvane_model::TimeInForce::Gtc),
        ..OrderTerms::new(
            windvane_model::InstrumentId(0),
            windvane_model::Side::Buy,
            windvane_model::OrderType::Limit,
        )
    }
}

#[test]
fn the_largest_notional_is_compared_exactly() {
    // (2^63 - 1)^2 at scale 24 is 85,070,591,730,234.615847396907784... units.
    let floor = 8_507_059_173_023_461_584_739_i128;
    let context = OrderContext::default();
    let verdict = |min, max| {
        let rules = CompiledRules::new(&only_notional(min, max)).unwrap();
        check(&rules, &largest_order(), &context).map_err(|rejection| rejection.to_string())
    };
    assert_eq!(verdict(Some(floor), None), Ok(()));
    assert!(verdict(Some(floor + 1), None).is_err());
    assert_eq!(verdict(None, Some(floor + 1)), Ok(()));
    assert!(verdict(None, Some(floor)).is_err());
    assert!(verdict(Some(i128::MAX), None).is_err());
    assert_eq!(verdict(None, Some(i128::MAX)), Ok(()));
}
