//! The symbols of the server's own market on both surfaces, and the default rules for any
//! instrument. Together the symbols have every filter of the documents. This module handles no
//! events.
//!
//! A recording without exchange information states only ticks and steps. [`complete`] adds the
//! rest: the documents' sample limits, and values of the server's own symbols on the surface.
//! Exchange information and the accounts' venues both use the completed instrument, so the
//! announced rules are the enforced ones.

use windvane_model::instrument::{
    Filters, LotSize, Notional, PercentPrice, PercentPriceBySide, PriceFilter,
};
use windvane_model::{Amount, Decimal, Instrument, OrderType, Surface, TimeInForce};
use windvane_protocol::Assets;

/// First price and order sizes of a symbol in the seeded market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Character {
    /// First mid price, as a mantissa.
    pub price: i64,
    /// Price step of the order flow, which is the tick, as a mantissa.
    pub tick: i64,
    /// Quantity unit of the order flow, as a mantissa. Orders have from 1 to some thousand units.
    pub unit: i64,
}

/// A symbol: its rules, and its behaviour in the seeded market.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its rules.
    pub instrument: Instrument,
    /// How its seeded market moves.
    pub character: Character,
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
pub fn own(assets: &mut Assets) -> Vec<Listed> {
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
    Amount(whole * windvane_model::decimal::AMOUNT_ONE)
}

/// Replaces `MIN_NOTIONAL` and `PERCENT_PRICE` by the newer pair of spot filters.
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
        let filters = Filters {
            price: Some(PriceFilter {
                min_price: self.tick,
                max_price: self.max_price,
                tick_size: self.tick,
            }),
            lot_size: Some(lot_size(self.max_qty)),
            market_lot_size: Some(lot_size(self.market_max_qty)),
            ..Filters::default()
        };
        let stated = Instrument {
            price_precision: Some(self.price_scale),
            qty_precision: Some(self.qty_scale),
            filters,
            ..Instrument::unrestricted(
                self.surface,
                &format!("{}USDT", self.base),
                [assets.id(self.base), assets.id("USDT")],
                [self.price_scale, self.qty_scale],
            )
        };
        Listed {
            instrument: complete(stated, assets),
            character: Character {
                price: self.price,
                tick: self.tick,
                unit: self.unit,
            },
        }
    }
}

/// The documents' samples of `MAX_NUM_ORDERS` and `MAX_NUM_ALGO_ORDERS`
/// (docs/interface/limits.md#other-bounds). They bound the number of open orders, and so the
/// memory.
const OPEN_ORDERS_MAX: u32 = 200;
const ALGO_ORDERS_MAX: u32 = 100;

/// Default of the largest order, in steps. Most of the server's own spot symbols have it too.
const MAX_STEPS: i64 = 90_000_000;

/// Adds the rules that an instrument does not state. Stated rules are kept. A price bound of 0
/// counts as stated, and means that the bound is disabled (docs/interface/orders.md#filters). A
/// largest quantity of 0 counts as missing, because a client that obeys it could send no order.
pub fn complete(mut instrument: Instrument, assets: &Assets) -> Instrument {
    let is_futures = instrument.surface == Surface::Futures;
    let quote = assets.name(instrument.quote);
    complete_filters(&mut instrument.filters, instrument.surface, quote);
    if instrument.order_types.is_empty() {
        instrument.order_types = order_types(instrument.surface);
    }
    if instrument.times_in_force.is_empty() {
        instrument.times_in_force = TimeInForce::ALL.to_vec();
    }
    let only_futures = |value: Decimal| is_futures.then_some(value);
    let Instrument {
        trigger_protect,
        market_take_bound,
        liquidation_fee,
        ..
    } = &mut instrument;
    *trigger_protect = trigger_protect.or(only_futures(Decimal::new(5, 2)));
    *market_take_bound = market_take_bound.or(only_futures(Decimal::new(5, 2)));
    *liquidation_fee = liquidation_fee.or(only_futures(Decimal::new(125, 4)));
    instrument
}

fn complete_filters(filters: &mut Filters, surface: Surface, quote: &str) {
    let is_futures = surface == Surface::Futures;
    filters.price.get_or_insert(PriceFilter {
        tick_size: 1,
        ..PriceFilter::default()
    });
    let lot = filters.lot_size.get_or_insert(lot_size(0));
    if lot.max_qty == 0 {
        let unit = lot.step_size.max(lot.min_qty).max(1);
        lot.max_qty = unit.saturating_mul(MAX_STEPS);
    }
    let lot = *lot;
    let market = filters.market_lot_size.get_or_insert(lot);
    if market.max_qty == 0 {
        market.max_qty = lot.max_qty.max(market.min_qty);
    }
    filters.max_num_orders.get_or_insert(OPEN_ORDERS_MAX);
    if is_futures {
        filters.max_num_algo_orders.get_or_insert(ALGO_ORDERS_MAX);
    }
    if filters.percent_price.is_none() && filters.percent_price_by_side.is_none() {
        let spread = if is_futures { 5 } else { 20 };
        filters.percent_price = Some(PercentPrice {
            multiplier_up: Decimal::new(100 + spread, 2),
            multiplier_down: Decimal::new(100 - spread, 2),
        });
    }
    // 5 is the documents' value for dollars. It would be wrong for an instrument that is quoted in
    // bitcoin.
    if quote.contains("USD") && filters.min_notional.is_none() && filters.notional.is_none() {
        filters.min_notional = Some(usdt(5));
    }
}

const fn lot_size(max_qty: i64) -> LotSize {
    LotSize {
        min_qty: 1,
        max_qty,
        step_size: 1,
    }
}

/// The order types of a surface (docs/interface/orders.md#enumerations).
fn order_types(surface: Surface) -> Vec<OrderType> {
    let all = OrderType::ALL.iter().copied();
    all.filter(|kind| match kind {
        // Only the venue itself creates these.
        OrderType::Liquidation => false,
        OrderType::TrailingStopMarket => surface == Surface::Futures,
        OrderType::Limit
        | OrderType::Market
        | OrderType::Stop
        | OrderType::StopMarket
        | OrderType::TakeProfit
        | OrderType::TakeProfitMarket => true,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_symbols_have_every_filter_and_start_on_the_tick() {
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

    /// An instrument from a recording without exchange information, which has only tick and step.
    fn inferred(own: &Instrument) -> Instrument {
        Instrument {
            filters: Filters {
                price: Some(PriceFilter {
                    tick_size: 10,
                    ..PriceFilter::default()
                }),
                lot_size: Some(lot_size(0)),
                market_lot_size: Some(lot_size(0)),
                ..Filters::default()
            },
            order_types: Vec::new(),
            times_in_force: Vec::new(),
            trigger_protect: None,
            market_take_bound: None,
            liquidation_fee: None,
            ..own.clone()
        }
    }

    fn bitcoin(surface: Surface) -> (Instrument, Assets) {
        let mut assets = Assets::default();
        let mut listed = own(&mut assets).into_iter().map(|l| l.instrument);
        (listed.find(|i| i.surface == surface).unwrap(), assets)
    }

    #[test]
    fn tick_and_step_are_completed_with_rules_of_own_symbols() {
        for surface in [Surface::Spot, Surface::Futures] {
            let (own, assets) = bitcoin(surface);
            let stated = inferred(&own);
            let mut completed = complete(stated.clone(), &assets);
            let filters = &mut completed.filters;
            assert_eq!(filters.price, stated.filters.price);
            assert_eq!(filters.lot_size, Some(lot_size(MAX_STEPS)));
            assert_eq!(filters.market_lot_size, Some(lot_size(MAX_STEPS)));
            // All other rules are equal. Only the rules of prices and quantities belong to each
            // symbol.
            filters.price = own.filters.price;
            filters.lot_size = own.filters.lot_size;
            filters.market_lot_size = own.filters.market_lot_size;
            assert_eq!(completed, own);
        }
    }

    #[test]
    fn an_instrument_without_filters_is_completed() {
        let (own, assets) = bitcoin(Surface::Futures);
        let mut stated = inferred(&own);
        stated.filters = Filters::default();
        let filters = complete(stated, &assets).filters;
        assert_eq!(filters.price.unwrap().tick_size, 1);
        assert_eq!(filters.lot_size, Some(lot_size(MAX_STEPS)));
        assert_eq!(filters.market_lot_size, filters.lot_size);
    }

    #[test]
    fn stated_rules_are_kept() {
        let mut assets = Assets::default();
        for listed in own(&mut assets) {
            let again = complete(listed.instrument.clone(), &assets);
            assert_eq!(again, listed.instrument);
        }
        let mut stated = inferred(&bitcoin(Surface::Futures).0);
        stated.filters.lot_size = Some(lot_size(7_000));
        stated.filters.market_lot_size = None;
        stated.filters.min_notional = Some(usdt(20));
        stated.filters.max_num_orders = Some(3);
        stated.order_types = vec![OrderType::Limit];
        stated.liquidation_fee = Some(Decimal::new(1, 2));
        let completed = complete(stated.clone(), &assets);
        assert_eq!(completed.filters.lot_size, Some(lot_size(7_000)));
        assert_eq!(completed.filters.market_lot_size, Some(lot_size(7_000)));
        assert_eq!(completed.filters.min_notional, Some(usdt(20)));
        assert_eq!(completed.filters.max_num_orders, Some(3));
        assert_eq!(completed.order_types, [OrderType::Limit]);
        assert_eq!(completed.liquidation_fee, stated.liquidation_fee);
    }

    #[test]
    fn the_minimum_notional_in_dollars_applies_to_dollars_only() {
        let (own, mut assets) = bitcoin(Surface::Spot);
        let quote = assets.id("BTC");
        let stated = Instrument {
            quote,
            ..inferred(&own)
        };
        assert_eq!(complete(stated, &assets).filters.min_notional, None);
    }
}
