//! The server reads the parameters of an order as the same terms that the engine sent.

use proptest::prelude::*;
use windvane_model::{AssetId, Request};
use windvane_protocol::adapter::{Adapter, EncodedCall, FuturesAccount, Names};

use super::*;

const FUTURES: InstrumentId = InstrumentId(0);
const SPOT: InstrumentId = InstrumentId(1);

fn instrument(surface: Surface, price_scale: u8, qty_scale: u8) -> Instrument {
    Instrument::unrestricted(
        surface,
        "BTCUSDT",
        [AssetId(1), AssetId(0)],
        [price_scale, qty_scale],
    )
}

/// Scales of prices and quantities, and orders with every field that their surface has.
#[derive(Clone, Debug)]
struct Case {
    scales: (u8, u8),
    spot: bool,
    hedge: bool,
    orders: Vec<NewOrder>,
}

fn pick<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(all)
}

fn terms() -> impl Strategy<Value = OrderTerms> {
    // The server reads at most 20 digits before the decimal point.
    let mantissa = || prop::option::of(1..i64::MAX);
    let values = (
        pick(Side::ALL),
        pick(OrderType::ALL),
        prop::option::of(pick(TimeInForce::ALL)),
        prop::option::of(pick(WorkingType::ALL)),
        pick(PositionSide::ALL),
    );
    let figures = (mantissa(), mantissa(), mantissa(), mantissa());
    let callback = prop::option::of(1_000_u32..50_001);
    let quote = prop::option::of(1_i128..1_000_000_000_000_000_000);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (values, figures, callback, quote, flags).prop_map(
        |(values, (qty, price, stop, activation), callback, quote, flags)| {
            let (side, order_type, time_in_force, working_type, position_side) = values;
            let (reduce_only, close_position, price_protect) = flags;
            OrderTerms {
                position_side,
                time_in_force,
                qty: qty.map(Qty),
                quote_qty: quote.map(Amount),
                price: price.map(Price),
                stop_price: stop.map(Price),
                activation_price: activation.map(Price),
                callback_ppm: callback,
                reduce_only,
                close_position,
                working_type,
                price_protect,
                ..OrderTerms::new(FUTURES, side, order_type)
            }
        },
    )
}

/// Keeps only the fields that the surface and the position mode have.
fn fit(mut terms: OrderTerms, spot: bool, hedge: bool) -> OrderTerms {
    if spot {
        return OrderTerms {
            instrument: SPOT,
            time_in_force: terms.time_in_force,
            qty: terms.qty,
            quote_qty: terms.quote_qty,
            price: terms.price,
            stop_price: terms.stop_price,
            ..OrderTerms::new(SPOT, terms.side, terms.order_type)
        };
    }
    terms.quote_qty = None;
    if !hedge {
        terms.position_side = PositionSide::Both;
    }
    terms.reduce_only &= !hedge && !terms.close_position;
    terms
}

prop_compose! {
    fn case()(
        scales in (0_u8..=12, 0_u8..=12),
        spot: bool,
        hedge: bool,
        mut all in prop::collection::vec(terms(), 1..9),
    ) -> Case {
        let orders = all.drain(..).enumerate().map(|(n, mut terms)| {
            if hedge && terms.position_side == PositionSide::Both {
                terms.position_side = PositionSide::Long;
            }
            NewOrder {
                client_order_id: ClientOrderId::new(&format!("mm.k2x.{n}")).unwrap(),
                terms: fit(terms, spot, hedge),
            }
        });
        Case { scales, spot, hedge, orders: orders.collect() }
    }
}

/// The orders of a request, as the server reads them.
fn read(call: &EncodedCall, rules: &Instrument, hedge: bool) -> Vec<NewOrder> {
    let instrument = if rules.surface == Surface::Spot {
        SPOT
    } else {
        FUTURES
    };
    let lists: Vec<Vec<(String, String)>> = match call.parameters.get("batchOrders") {
        None => {
            let pairs = call.parameters.iter();
            vec![pairs.map(|(n, v)| (n.to_owned(), v.to_owned())).collect()]
        }
        Some(list) => {
            let entries: Vec<std::collections::BTreeMap<String, String>> =
                serde_json::from_str(list).unwrap();
            entries
                .into_iter()
                .map(|entry| entry.into_iter().collect())
                .collect()
        }
    };
    let read = |pairs| {
        let params = Params::from_pairs(pairs).unwrap();
        assert_eq!(params.get("symbol"), Some("BTCUSDT"));
        let reading = Reading {
            params: &params,
            instrument,
            rules,
            hedge,
        };
        let fallback = ClientOrderId::new("not-named").unwrap();
        reading
            .order(fallback)
            .unwrap_or_else(|refusal| panic!("{}: {}", refusal.code, refusal.msg))
    };
    lists.into_iter().map(read).collect()
}

proptest! {
    #[test]
    fn a_sent_order_is_read_as_the_same_order(case in case()) {
        let (price, qty) = case.scales;
        let instruments = [
            instrument(Surface::Futures, price, qty),
            instrument(Surface::Spot, price, qty),
        ];
        let adapter = Adapter {
            names: Names::new(&instruments, &["USDT".to_owned(), "BTC".to_owned()]),
            futures_account: FuturesAccount::Routes,
            documented: false,
        };
        let rules = &instruments[usize::from(case.spot)];
        for order in &case.orders {
            let calls = adapter.encode_request(&Request::Place(*order)).unwrap();
            prop_assert_eq!(read(&calls[0], rules, case.hedge), vec![*order]);
        }
        let calls = adapter.encode_request(&Request::PlaceBatch(case.orders.clone())).unwrap();
        let read: Vec<_> = calls.iter().flat_map(|call| read(call, rules, case.hedge)).collect();
        prop_assert_eq!(read, case.orders);
    }
}
