//! Strategies may ask for any order, also one that makes no sense: it is accepted or refused, and the
//! run goes on.

use proptest::prelude::*;
use windvane_model::rules::Rule;
use windvane_model::{
    Amount, Input, InstrumentId, Notice, OrderSeq, OrderTerms, OrderType, PositionSide, Price, Qty,
    Side, TimeInForce, UserEvent, WorkingType,
};

use super::support::{Account, MM, OTHER, limit};
use super::watchdog::watched;
use super::world::ready;

#[test]
fn an_order_for_an_unknown_instrument_is_refused() {
    for instrument in [1, 2, u16::MAX] {
        let mut account = ready();
        let terms = OrderTerms {
            instrument: InstrumentId(instrument),
            ..limit(Side::Buy, 990, 1)
        };
        let result = account.call(MM, |callback, engine| callback.submit(engine, terms));
        assert_eq!(result.unwrap_err().rule, Rule::UnknownInstrument);
        let refused = |notice: &Notice| matches!(notice, Notice::Rejected { strategy: MM, .. });
        assert!(account.notices.iter().any(refused));
        // The run goes on.
        account.submit(OTHER, limit(Side::Buy, 990, 1));
    }
}

/// Numbers around zero, around sensible values, and at the ends of the type.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        -2..3_i64,
        900..1_100_i64,
        any::<i64>(),
        Just(i64::MAX),
        Just(i64::MIN),
    ]
}

fn sent(value: i64) -> Option<i64> {
    (value != 0).then_some(value)
}

prop_compose! {
    fn instrument()(id in prop_oneof![4 => Just(0), 1 => 1..4_u16, 1 => any::<u16>()]) -> InstrumentId {
        InstrumentId(id)
    }
}

prop_compose! {
    /// The terms as the host makes them of any arguments of `submit`.
    fn terms()(
        instrument in instrument(),
        (sell, order_type, time_in_force) in (any::<bool>(), 0..7_u8, 0..8_u8),
        (position_side, working_type) in (0..3_u8, 0..3_u8),
        (reduce_only, close_position, price_protect) in (any::<bool>(), any::<bool>(), any::<bool>()),
        (qty, price, stop_price) in (number(), number(), number()),
        (activation_price, callback_ppm, quote_qty) in (number(), any::<u32>(), number()),
    ) -> OrderTerms {
        let side = if sell { Side::Sell } else { Side::Buy };
        let order_type = OrderType::from_code(order_type);
        let order_type = order_type.filter(|one| *one != OrderType::Liquidation);
        let mut terms = OrderTerms::new(instrument, side, order_type.unwrap_or(OrderType::Limit));
        terms.time_in_force = time_in_force.checked_sub(1).and_then(TimeInForce::from_code);
        terms.position_side = PositionSide::from_code(position_side).unwrap_or(PositionSide::Both);
        terms.working_type = working_type.checked_sub(1).and_then(WorkingType::from_code);
        terms.reduce_only = reduce_only;
        terms.close_position = close_position;
        terms.price_protect = price_protect;
        terms.qty = sent(qty).map(Qty);
        terms.price = sent(price).map(Price);
        terms.stop_price = sent(stop_price).map(Price);
        terms.activation_price = sent(activation_price).map(Price);
        terms.callback_ppm = (callback_ppm != 0).then_some(callback_ppm);
        terms.quote_qty = sent(quote_qty).map(|value| Amount(value.into()));
        terms
    }
}

/// A call of a strategy.
#[derive(Clone, Debug)]
enum Call {
    Submit(OrderTerms),
    Cancel(u64),
    CancelAll(Option<InstrumentId>),
    Position(InstrumentId, PositionSide),
    OpenOrder(Option<InstrumentId>, usize),
    Order(u64),
}

fn call() -> impl Strategy<Value = Call> {
    let side = (0..3_u8).prop_map(|code| PositionSide::from_code(code).unwrap());
    let order = || prop_oneof![0..6_u64, any::<u64>()];
    prop_oneof![
        6 => terms().prop_map(Call::Submit),
        1 => order().prop_map(Call::Cancel),
        1 => prop::option::of(instrument()).prop_map(Call::CancelAll),
        1 => (instrument(), side).prop_map(|(id, side)| Call::Position(id, side)),
        1 => (prop::option::of(instrument()), any::<usize>())
            .prop_map(|(id, place)| Call::OpenOrder(id, place)),
        1 => order().prop_map(Call::Order),
    ]
}

/// On futures, there in hedge mode, and on spot.
const RUNS: [fn() -> Account; 3] = [ready, in_hedge_mode, watched];

fn in_hedge_mode() -> Account {
    let mut account = ready();
    account.handle(Input::User(&UserEvent::PositionMode { hedge: true }));
    account
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_call_of_a_strategy_ends_the_run(
        run in prop::sample::select(&RUNS[..]),
        callbacks in prop::collection::vec(prop::collection::vec(call(), 1..8), 1..6),
    ) {
        let mut account = run();
        for calls in callbacks {
            account.call(MM, |callback, engine| {
                for one in calls {
                    match one {
                        Call::Submit(terms) => drop(callback.submit(engine, terms)),
                        Call::Cancel(order) => drop(callback.cancel(engine, OrderSeq(order))),
                        Call::CancelAll(id) => drop(callback.cancel_all(engine, id)),
                        Call::Position(id, side) => drop(callback.position(engine, id, side)),
                        Call::OpenOrder(id, place) => drop(callback.open_order(engine, id, place)),
                        Call::Order(order) => drop(callback.order(engine, OrderSeq(order))),
                    }
                }
            });
            account.confirm_countdowns();
            account.pass(300);
        }
        account.wait(1);
    }
}
