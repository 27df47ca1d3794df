//! Random instruments, terms and contexts. Numbers are small and close to the bounds. So they often
//! equal a bound, which is where rules tend to fail.

use proptest::option;
use proptest::prelude::*;
use windvane_model::instrument::{
    Filters, LotSize, Notional, PercentPrice, PercentPriceBySide, PriceFilter, SymbolStatus,
};
use windvane_model::rules::OrderContext;
use windvane_model::{
    Amount, AssetId, Decimal, Instrument, InstrumentId, OrderTerms, OrderType, PositionSide, Price,
    Qty, Side, Surface, TimeInForce, WorkingType,
};

/// An instrument, an order for it, and the context.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) instrument: Instrument,
    pub(crate) terms: OrderTerms,
    pub(crate) context: OrderContext,
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    instrument()
        .prop_flat_map(|instrument| {
            let terms = terms(&instrument);
            let context = context(&instrument);
            (Just(instrument), terms, context)
        })
        .prop_map(|(instrument, terms, mut context)| {
            // Most orders have the position side that the mode requires.
            if context.open_orders % 8 != 7 && instrument.surface == Surface::Futures {
                context.hedge_mode = terms.position_side != PositionSide::Both;
            }
            Case {
                instrument,
                terms,
                context,
            }
        })
}

fn pick<T: Copy + std::fmt::Debug + 'static>(values: &'static [T]) -> impl Strategy<Value = T> {
    proptest::sample::select(values)
}

fn instrument() -> impl Strategy<Value = Instrument> {
    let identity = (
        pick(Surface::ALL),
        prop_oneof![30 => Just("BTCUSDT"), 1 => Just("TESTBTCUSDT")],
        prop_oneof![
            30 => Just(SymbolStatus::Trading),
            1 => Just(SymbolStatus::Other("SETTLING".to_owned()))
        ],
    );
    let scales = (pick(&[0, 1, 2, 3, 5, 8, 9, 12]), pick(&[0, 1, 3, 4, 8, 11]));
    let precisions = (
        option::weighted(0.3, 0..4_u8),
        option::weighted(0.3, 0..4_u8),
    );
    let lists = (
        option::weighted(0.2, proptest::sample::subsequence(OrderType::ALL, 1..8)),
        option::weighted(0.2, proptest::sample::subsequence(TimeInForce::ALL, 1..5)),
    );
    let bound = option::weighted(0.5, fraction(&["0", "0.01", "0.05", "0.3", "1", "1.5"]));
    (identity, scales, precisions, lists, filters(), bound).prop_map(
        |(identity, scales, precisions, lists, filters, market_take_bound)| Instrument {
            surface: identity.0,
            symbol: identity.1.to_owned(),
            status: identity.2,
            base: AssetId(0),
            quote: AssetId(1),
            price_scale: scales.0,
            qty_scale: scales.1,
            // Usually as many decimals as the scale, sometimes more or fewer.
            price_precision: precisions
                .0
                .map(|fewer| (scales.0 + 1).saturating_sub(fewer)),
            qty_precision: precisions
                .1
                .map(|fewer| (scales.1 + 1).saturating_sub(fewer)),
            filters,
            order_types: lists.0.unwrap_or_default(),
            times_in_force: lists.1.unwrap_or_default(),
            trigger_protect: None,
            market_take_bound,
            liquidation_fee: None,
        },
    )
}

fn fraction(texts: &'static [&'static str]) -> impl Strategy<Value = Decimal> {
    pick(texts).prop_map(|text| text.parse().unwrap())
}

fn filters() -> impl Strategy<Value = Filters> {
    let ups = &["0", "1", "1.05", "1.1", "1.234567", "2"];
    let downs = &["0", "0.5", "0.9", "0.95", "0.987654", "1"];
    let percent = (fraction(ups), fraction(downs));
    let sides = (
        fraction(ups),
        fraction(downs),
        fraction(ups),
        fraction(downs),
    );
    (
        option::weighted(0.9, price_filter()),
        option::weighted(0.9, lot_size()),
        option::weighted(0.5, lot_size()),
        (
            option::weighted(0.2, 0..8_u32),
            option::weighted(0.3, 0..8_u32),
        ),
        option::weighted(0.4, percent),
        option::weighted(0.2, sides),
        (
            option::weighted(0.3, amount()),
            option::weighted(0.1, amount()),
        ),
        option::weighted(0.2, (amount(), amount(), any::<bool>(), any::<bool>())),
    )
        .prop_map(
            |(price, lot, market_lot, counts, percent, sides, bounds, notional)| Filters {
                price,
                lot_size: lot,
                market_lot_size: market_lot,
                max_num_orders: counts.0,
                max_num_algo_orders: counts.1,
                percent_price: percent.map(|(multiplier_up, multiplier_down)| PercentPrice {
                    multiplier_up,
                    multiplier_down,
                }),
                percent_price_by_side: sides.map(|sides| PercentPriceBySide {
                    bid_multiplier_up: sides.0,
                    bid_multiplier_down: sides.1,
                    ask_multiplier_up: sides.2,
                    ask_multiplier_down: sides.3,
                    avg_price_mins: 5,
                }),
                min_notional: bounds.0,
                max_notional: bounds.1,
                notional: notional.map(|notional| Notional {
                    min_notional: notional.0,
                    max_notional: notional.1,
                    apply_min_to_market: notional.2,
                    apply_max_to_market: notional.3,
                    avg_price_mins: 5,
                }),
            },
        )
}

fn price_filter() -> impl Strategy<Value = PriceFilter> {
    let min = pick(&[0, 0, 0, 1, 1, 3, 10, 37, 100]);
    let max = pick(&[0, 0, 990, 1_000, 1_003, 100_000]);
    let tick = pick(&[0, 1, 1, 1, 1, 1, 2, 3, 7, 10]);
    (min, max, tick).prop_map(|(min_price, max_price, tick_size)| PriceFilter {
        min_price,
        max_price,
        tick_size,
    })
}

fn lot_size() -> impl Strategy<Value = LotSize> {
    let min = pick(&[0, 0, 1, 1, 1, 2, 7]);
    let max = pick(&[0, 0, 0, 500, 2_000]);
    let step = pick(&[0, 1, 1, 1, 1, 2, 10]);
    (min, max, step).prop_map(|(min_qty, max_qty, step_size)| LotSize {
        min_qty,
        max_qty,
        step_size,
    })
}

/// From zero to the notionals of the larger scales, including odd digits.
fn amount() -> impl Strategy<Value = Amount> {
    let digits = pick(&[0_i128, 1, 5, 50, 123, 4_999]);
    (digits, 0..10_u32).prop_map(|(digits, exponent)| Amount(digits * 10_i128.pow(exponent)))
}

/// A number from zero to beyond the bounds, often a multiple of 100.
fn mantissa() -> impl Strategy<Value = i64> {
    prop_oneof![
        8 => 1..1_200_i64,
        8 => (1..12_i64).prop_map(|hundreds| hundreds * 100),
        2 => (1..120_i64).prop_map(|tens| tens * 10 + 7),
        1 => -2..2_i64,
    ]
}

fn terms(instrument: &Instrument) -> impl Strategy<Value = OrderTerms> + use<> {
    let surface = instrument.surface;
    let numbers = (mantissa(), mantissa(), mantissa(), mantissa(), amount());
    let words = (
        pick(Side::ALL),
        pick(OrderType::ALL),
        pick(TimeInForce::ALL),
        pick(&[
            PositionSide::Both,
            PositionSide::Both,
            PositionSide::Long,
            PositionSide::Short,
        ]),
        option::of(pick(WorkingType::ALL)),
        pick(&[0, 999, 1_000, 1_001, 10_000, 50_000, 50_001]),
    );
    // Each bit changes one parameter from the one that the type requires to its opposite. Usually
    // no bit is set.
    let flips = prop_oneof![
        12 => Just(0_u16),
        3 => (0..12_u16).prop_map(|bit| 1 << bit),
        1 => any::<u16>(),
    ];
    (numbers, words, flips, any::<bool>(), any::<bool>()).prop_map(
        move |(numbers, words, flips, close, reduce)| {
            build(surface, numbers, words, flips, close, reduce)
        },
    )
}

type Words = (
    Side,
    OrderType,
    TimeInForce,
    PositionSide,
    Option<WorkingType>,
    u32,
);

fn build(
    surface: Surface,
    numbers: (i64, i64, i64, i64, Amount),
    words: Words,
    flips: u16,
    close: bool,
    reduce: bool,
) -> OrderTerms {
    use OrderType as T;
    let (side, order_type, time, position_side, working, ppm) = words;
    let futures = surface == Surface::Futures;
    let flip = |bit: u16, wanted: bool| wanted != (flips & (1 << bit) != 0);
    let stop = !matches!(order_type, T::Limit | T::Market | T::TrailingStopMarket);
    let trailing = order_type == T::TrailingStopMarket;
    let stop_market = matches!(order_type, T::StopMarket | T::TakeProfitMarket);
    let priced = matches!(order_type, T::Limit | T::Stop | T::TakeProfit);
    let by_quote = !futures && order_type == T::Market && side == Side::Buy;
    let closing = futures && stop_market && close;
    let one_way = position_side == PositionSide::Both;

    let mut terms = OrderTerms::new(InstrumentId(0), side, order_type);
    terms.position_side = match (futures, flip(0, true)) {
        (true, true) => position_side,
        (false, true) => PositionSide::Both,
        (_, false) => PositionSide::Long,
    };
    terms.price = flip(1, priced).then_some(Price(numbers.0));
    terms.qty = flip(2, !by_quote && !closing).then_some(Qty(numbers.1));
    terms.quote_qty = flip(3, by_quote).then_some(numbers.4);
    terms.stop_price = flip(4, stop).then_some(Price(numbers.2));
    terms.activation_price = flip(5, trailing).then_some(Price(numbers.3));
    terms.callback_ppm = flip(6, trailing).then_some(ppm);
    terms.time_in_force = flip(7, priced).then_some(time);
    terms.working_type = if futures || flips & (1 << 8) != 0 {
        working
    } else {
        None
    };
    terms.price_protect = flip(9, futures && stop && reduce);
    terms.reduce_only = flip(10, futures && one_way && reduce && !closing);
    terms.close_position = flip(11, closing);
    terms
}

fn context(instrument: &Instrument) -> impl Strategy<Value = OrderContext> + use<> {
    let scale = u32::from(instrument.price_scale);
    // A mark price at scale 8 that is often a round number at the price scale.
    let mark = (mantissa(), -1..2_i64).prop_map(move |(mantissa, off)| {
        if scale <= 8 {
            mantissa * 10_i64.pow(8 - scale) + off / 2
        } else {
            mantissa / 10_i64.pow(scale - 8) + 1
        }
    });
    (
        any::<bool>(),
        option::weighted(0.8, mark),
        option::weighted(0.8, mantissa()),
        option::weighted(0.8, mantissa()),
        option::weighted(0.8, mantissa()),
        0..9_u32,
        0..9_u32,
    )
        .prop_map(
            |(hedge_mode, mark, last, bid, ask, orders, algo)| OrderContext {
                hedge_mode,
                mark,
                last,
                best_bid: bid,
                best_ask: ask,
                open_orders: orders,
                open_algo_orders: algo,
            },
        )
}
