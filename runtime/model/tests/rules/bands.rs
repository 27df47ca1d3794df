//! For each band: the price that it checks, its reference, and its code.
//!
//! The table is derived only from the documents, and shares nothing with the table of the simulated
//! venue:
//! - docs/interface/orders.md#filters: `PERCENT_PRICE` compares `price`, where `PRICE_FILTER` names
//!   price and stopPrice, and it exempts no order type (docs/interface/orders.md#price-bands).
//! - docs/interface/errors.md#40xx: -4016 and -4024 are the cap and floor of the mark price. -4183
//!   and -4184 have the same names with STOP: the cap and floor of the stop price. -4131 is about
//!   the counterparty's best price.

use windvane_model::rules::{CompiledRules, OrderContext, check};
use windvane_model::{
    InstrumentId, OrderTerms, OrderType, PositionSide, Price, Qty, Side, Surface, TimeInForce,
};

use crate::examples::instrument;

/// An order's type, side, stop price and limit price in whole quote units, and the code from the
/// documents (0 if they accept the order). Mark and last price are 100, the multipliers 0.95 and
/// 1.05.
type Row = (OrderType, Side, i64, i64, i32);

const FUTURES: &[Row] = {
    use OrderType::{Stop, StopMarket, TakeProfit};
    use Side::{Buy, Sell};
    &[
        // 93 is 0.959 of the stop price and 0.93 of the mark price.
        (Stop, Sell, 97, 93, -4024),
        (Stop, Sell, 97, 95, 0),
        // 94 is under 0.95 of both: the mark price is checked first.
        (Stop, Sell, 99, 94, -4024),
        // 95 is 0.95 of the mark price and 0.931 of the stop price.
        (TakeProfit, Sell, 102, 95, -4184),
        (TakeProfit, Sell, 110, 104, -4184),
        (TakeProfit, Sell, 110, 105, 0),
        // A SELL has no cap.
        (TakeProfit, Sell, 110, 200, 0),
        // 106 is 1.029 of the stop price and 1.06 of the mark price.
        (Stop, Buy, 103, 106, -4016),
        (Stop, Buy, 103, 105, 0),
        // 95 is under the mark price's cap and 1.055 of the stop price.
        (TakeProfit, Buy, 90, 95, -4183),
        (TakeProfit, Buy, 90, 94, 0),
        // A BUY has no floor.
        (TakeProfit, Buy, 90, 10, 0),
        // stopPrice itself has no band.
        (StopMarket, Sell, 60, 0, 0),
        (StopMarket, Buy, 190, 0, 0),
    ]
};

/// On spot both bounds apply to both sides. No route returns its index price, so only the stop
/// price is checked here.
const SPOT: &[Row] = {
    use OrderType::{Stop, TakeProfit};
    use Side::{Buy, Sell};
    &[
        (Stop, Sell, 97, 93, 0),
        (Stop, Sell, 97, 92, -4184),
        (Stop, Sell, 97, 102, -4183),
        (Stop, Buy, 103, 109, -4183),
        (Stop, Buy, 103, 97, -4184),
        (TakeProfit, Buy, 90, 94, 0),
    ]
};

fn code(surface: Surface, (order_type, side, stop, price, _): Row) -> i32 {
    let mut rules = instrument(surface);
    rules.filters.percent_price = instrument(Surface::Futures).filters.percent_price;
    rules.filters.price = None;
    let terms = OrderTerms {
        price: (price > 0).then_some(Price(price * 100)),
        stop_price: Some(Price(stop * 100)),
        qty: Some(Qty(1_000)),
        time_in_force: (price > 0).then_some(TimeInForce::Gtc),
        position_side: PositionSide::Both,
        ..OrderTerms::new(InstrumentId(0), side, order_type)
    };
    let context = OrderContext {
        mark: Some(10_000_000_000),
        last: Some(10_000),
        ..OrderContext::default()
    };
    let rules = CompiledRules::new(&rules).unwrap();
    check(&rules, &terms, &context).map_or_else(|rejection| rejection.rule.code(), |()| 0)
}

#[test]
fn stop_limit_prices_are_checked_against_mark_and_stop_price() {
    for (surface, rows) in [(Surface::Futures, FUTURES), (Surface::Spot, SPOT)] {
        for &row in rows {
            assert_eq!(code(surface, row), row.4, "{surface} {row:?}");
        }
    }
}
