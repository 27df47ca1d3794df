//! The symbols of the server's own market on both surfaces, and the rules of any instrument as
//! exchange information needs them. Between them the symbols carry every filter of the documents.

use windvane_engine::instrument::{
    Filters, LotSize, Notional, PercentPrice, PercentPriceBySide, PriceFilter, SymbolStatus,
};
use windvane_engine::{Amount, Decimal, Instrument, OrderType, Surface, TimeInForce};
use windvane_venue::Assets;

/// Where a symbol of the seeded market starts and how large its orders are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Character {
    /// First mid price, mantissa.
    pub(crate) price: i64,
    /// Price step of the order flow, mantissa: the tick.
    pub(crate) tick: i64,
    /// Quantity unit of the order flow, mantissa; orders have 1 to some thousand.
    pub(crate) unit: i64,
}

/// A symbol: its rules and its character.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) instrument: Instrument,
    pub(crate) character: Character,
}

struct Recipe {
    surface: Surface,
    base: &'static str,
    price_scale: u8,
    qty_scale: u8,
    price: i64,
    tick: i64,
    max_price: i64,
    unit: i64,
    max_qty: i64,
    market_max_qty: i64,
}

const RECIPES: &[Recipe] = &[
    Recipe {
        surface: Surface::Spot,
        base: "BTC",
        price_scale: 2,
        qty_scale: 5,
        price: 6_000_000,
        tick: 10,
        max_price: 100_000_000,
        unit: 100,
        max_qty: 900_000_000,
        market_max_qty: 10_000_000,
    },
    Recipe {
        surface: Surface::Spot,
        base: "ETH",
        price_scale: 2,
        qty_scale: 4,
        price: 300_000,
        tick: 1,
        max_price: 10_000_000,
        unit: 200,
        max_qty: 90_000_000,
        market_max_qty: 20_000_000,
    },
    Recipe {
        surface: Surface::Spot,
        base: "DOGE",
        price_scale: 5,
        qty_scale: 0,
        price: 12_000,
        tick: 1,
        max_price: 100_000_000,
        unit: 500,
        max_qty: 90_000_000,
        market_max_qty: 10_000_000,
    },
    Recipe {
        surface: Surface::Futures,
        base: "BTC",
        price_scale: 2,
        qty_scale: 3,
        price: 6_000_000,
        tick: 10,
        max_price: 452_976_400,
        unit: 1,
        max_qty: 1_000_000,
        market_max_qty: 120_000,
    },
    Recipe {
        surface: Surface::Futures,
        base: "ETH",
        price_scale: 2,
        qty_scale: 3,
        price: 300_000,
        tick: 1,
        max_price: 30_617_700,
        unit: 20,
        max_qty: 10_000_000,
        market_max_qty: 2_000_000,
    },
    Recipe {
        surface: Surface::Futures,
        base: "DOGE",
        price_scale: 6,
        qty_scale: 0,
        price: 120_000,
        tick: 10,
        max_price: 30_000_000,
        unit: 500,
        max_qty: 50_000_000,
        market_max_qty: 10_000_000,
    },
];

/// The symbols of the server's own market, spot first.
pub(crate) fn own(assets: &mut Assets) -> Vec<Listed> {
    let mut listed: Vec<_> = RECIPES.iter().map(|recipe| recipe.listed(assets)).collect();
    for listed in &mut listed {
        match (listed.instrument.surface, listed.instrument.symbol.as_str()) {
            (Surface::Spot, "ETHUSDT") => by_side(&mut listed.instrument.filters),
            (Surface::Spot, "DOGEUSDT") => {
                listed.instrument.filters.max_notional = Some(usdt(1_000_000));
            }
            _ => {}
        }
    }
    listed
}

const fn usdt(whole: i128) -> Amount {
    Amount(whole * windvane_engine::decimal::AMOUNT_ONE)
}

/// The newer pair of spot filters in place of `MIN_NOTIONAL` and `PERCENT_PRICE`.
fn by_side(filters: &mut Filters) {
    filters.min_notional = None;
    filters.percent_price = None;
    filters.notional = Some(Notional {
        min_notional: usdt(5),
        max_notional: usdt(9_000_000),
        apply_min_to_market: true,
        apply_max_to_market: false,
        avg_price_mins: 5,
    });
    filters.percent_price_by_side = Some(PercentPriceBySide {
        bid_multiplier_up: Decimal::new(12, 1),
        bid_multiplier_down: Decimal::new(2, 1),
        ask_multiplier_up: Decimal::new(5, 0),
        ask_multiplier_down: Decimal::new(8, 1),
        avg_price_mins: 5,
    });
}

impl Recipe {
    fn listed(&self, assets: &mut Assets) -> Listed {
        let is_futures = self.surface == Surface::Futures;
        let spread = if is_futures { 5 } else { 20 };
        let filters = Filters {
            price: Some(PriceFilter {
                min_price: self.tick,
                max_price: self.max_price,
                tick_size: self.tick,
            }),
            lot_size: Some(lot_size(self.max_qty)),
            market_lot_size: Some(lot_size(self.market_max_qty)),
            max_num_orders: Some(200),
            max_num_algo_orders: is_futures.then_some(100),
            percent_price: Some(PercentPrice {
                multiplier_up: Decimal::new(100 + spread, 2),
                multiplier_down: Decimal::new(100 - spread, 2),
            }),
            min_notional: Some(usdt(5)),
            ..Filters::default()
        };
        let only_futures = |value: Decimal| is_futures.then_some(value);
        let instrument = Instrument {
            surface: self.surface,
            symbol: format!("{}USDT", self.base),
            status: SymbolStatus::Trading,
            base: assets.id(self.base),
            quote: assets.id("USDT"),
            price_scale: self.price_scale,
            qty_scale: self.qty_scale,
            price_precision: Some(self.price_scale),
            qty_precision: Some(self.qty_scale),
            filters,
            order_types: order_types(self.surface),
            times_in_force: TimeInForce::ALL.to_vec(),
            trigger_protect: only_futures(Decimal::new(5, 2)),
            market_take_bound: only_futures(Decimal::new(5, 2)),
            liquidation_fee: only_futures(Decimal::new(125, 4)),
        };
        Listed {
            instrument,
            character: Character {
                price: self.price,
                tick: self.tick,
                unit: self.unit,
            },
        }
    }
}

const fn lot_size(max_qty: i64) -> LotSize {
    LotSize {
        min_qty: 1,
        max_qty,
        step_size: 1,
    }
}

/// The order types of a surface (specs 1 and 2, Enumerations).
pub(crate) fn order_types(surface: Surface) -> Vec<OrderType> {
    let all = OrderType::ALL.iter().copied();
    all.filter(|kind| match kind {
        // Only the venue itself makes these.
        OrderType::Liquidation => false,
        OrderType::TrailingStopMarket => surface == Surface::Futures,
        _ => true,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_symbols_carry_every_filter_and_start_on_the_tick() {
        let listed = own(&mut Assets::default());
        let any = |has: fn(&Filters) -> bool| listed.iter().any(|l| has(&l.instrument.filters));
        assert!(any(|f| f.price.is_some() && f.lot_size.is_some()));
        assert!(any(
            |f| f.market_lot_size.is_some() && f.max_num_orders.is_some()
        ));
        assert!(any(|f| f.max_num_algo_orders.is_some()));
        assert!(any(
            |f| f.percent_price.is_some() && f.min_notional.is_some()
        ));
        assert!(any(|f| f.percent_price_by_side.is_some()));
        assert!(any(|f| f.max_notional.is_some()));
        assert!(any(|f| f.notional.is_some()));
        for l in &listed {
            assert_eq!(l.character.price % l.character.tick, 0);
        }
    }
}
