//! Every type with every time in force, position mode, position side and combination of sent
//! parameters, compared with the tables of the documents.

use windvane_model::rules::{CompiledRules, OrderContext, check};
use windvane_model::{
    Amount, Instrument, InstrumentId, OrderTerms, OrderType, PositionSide, Price, Qty, Side,
    Surface, TimeInForce, WorkingType,
};

use crate::examples::instrument;
use crate::reference::{parameter_rules, position_rules};

/// An order with the ten optional parameters that the bits of `sent` select.
fn order(side: Side, order_type: OrderType, time: Option<TimeInForce>, sent: u16) -> OrderTerms {
    let bit = |bit: u16| sent & (1 << bit) != 0;
    OrderTerms {
        time_in_force: time,
        price: bit(0).then_some(Price(100_000)),
        qty: bit(1).then_some(Qty(100)),
        quote_qty: bit(2).then_some(Amount(10_000_000_000)),
        stop_price: bit(3).then_some(Price(100_000)),
        activation_price: bit(4).then_some(Price(100_000)),
        callback_ppm: bit(5).then_some(10_000),
        working_type: bit(6).then_some(WorkingType::MarkPrice),
        price_protect: bit(7),
        reduce_only: bit(8),
        close_position: bit(9),
        ..OrderTerms::new(InstrumentId(0), side, order_type)
    }
}

fn compare(instrument: &Instrument, rules: &CompiledRules, terms: &OrderTerms, hedge: bool) {
    let mut expected = parameter_rules(instrument, terms);
    expected.extend(position_rules(instrument, terms, hedge));
    let context = OrderContext {
        hedge_mode: hedge,
        ..OrderContext::default()
    };
    let verdict = check(rules, terms, &context).err();
    assert_eq!(
        verdict.map(|rejection| rejection.rule),
        expected.first().copied(),
        "{} {terms:?}, hedge mode {hedge}",
        instrument.name()
    );
}

#[test]
fn every_combination_of_parameters_matches_the_tables() {
    let mut times: Vec<Option<TimeInForce>> = vec![None];
    times.extend(TimeInForce::ALL.iter().copied().map(Some));
    for &surface in Surface::ALL {
        let instrument = instrument(surface);
        let rules = CompiledRules::new(&instrument).unwrap();
        for (&order_type, &side) in OrderType::ALL
            .iter()
            .flat_map(|t| Side::ALL.iter().map(move |s| (t, s)))
        {
            for &time in &times {
                for sent in 0..1 << 10 {
                    let mut terms = order(side, order_type, time, sent);
                    for &position_side in PositionSide::ALL {
                        terms.position_side = position_side;
                        compare(&instrument, &rules, &terms, false);
                        compare(&instrument, &rules, &terms, true);
                    }
                }
            }
        }
    }
}
