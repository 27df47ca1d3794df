//! Read access to the account. Everything is copied; nothing here changes the venue.

use windvane_model::decimal::{MARK_SCALE, div_half_even, pow10};
use windvane_model::{
    Amount, AssetId, ClientOrderId, InstrumentId, OrderType, PositionSide, Price, Qty, Time,
    VenueOrderId,
};

use crate::bracket::Bracket;
use crate::config::Rate;
use crate::market::Market;
use crate::order::Order;
use crate::order_key::OrderKey;
use crate::venue::Venue;
use crate::view::{FuturesBalance, OrderView, PositionView, SpotBalance};

/// Views of orders.
impl Venue {
    /// The order with this id of the venue, as long as it is kept.
    pub fn order(&self, id: VenueOrderId) -> Option<OrderView> {
        let key = self.orders.find_id(id)?;
        Some(self.view_of(self.orders.at(key)))
    }

    /// The newest order with this client order id.
    pub fn order_by_client(
        &self,
        instrument: InstrumentId,
        id: &ClientOrderId,
    ) -> Option<OrderView> {
        let key = self.find(instrument, id)?;
        Some(self.view_of(self.orders.at(key)))
    }

    /// Every open order of an instrument, or of all, oldest first.
    pub fn open(&self, instrument: Option<InstrumentId>) -> Vec<OrderView> {
        let keys = self.open_keys(instrument);
        let mut open: Vec<_> = keys.map(|key| self.view_of(self.orders.at(key))).collect();
        open.sort_unstable_by_key(|order| order.order_id);
        open
    }

    /// The keys of every open order of an instrument, or of all, in the book or waiting.
    pub(crate) fn open_keys(
        &self,
        instrument: Option<InstrumentId>,
    ) -> impl Iterator<Item = OrderKey> + '_ {
        let of = move |market: &&Market| instrument.is_none_or(|id| market.id == id);
        self.markets.iter().filter(of).flat_map(|market| {
            let resting = market.own.iter().flatten().map(|own| own.key);
            resting.chain(market.waiting.iter().copied())
        })
    }

    /// Every kept order, open or finished, oldest first.
    pub fn orders(&self) -> Vec<OrderView> {
        self.orders_where(|_| true)
    }

    /// The kept orders for which `wanted` returns true. There may be very many others.
    pub fn orders_where(&self, wanted: impl Fn(&OrderView) -> bool) -> Vec<OrderView> {
        let views = self.orders.all().map(|(_, order)| self.view_of(order));
        let mut all: Vec<_> = views.filter(wanted).collect();
        all.sort_unstable_by_key(|order| order.order_id);
        all
    }

    pub(crate) fn view_of(&self, order: &Order) -> OrderView {
        let market = self.at(order.terms.instrument);
        let order_type = match order.terms.order_type {
            sent if !order.triggered => sent,
            OrderType::Stop | OrderType::TakeProfit => OrderType::Limit,
            OrderType::StopMarket | OrderType::TakeProfitMarket | OrderType::TrailingStopMarket => {
                OrderType::Market
            }
            // These have no trigger.
            sent @ (OrderType::Limit | OrderType::Market | OrderType::Liquidation) => sent,
        };
        let trails = order.terms.order_type == OrderType::TrailingStopMarket;
        OrderView {
            client_order_id: order.client_order_id,
            order_id: order.id,
            surface: order.surface,
            terms: order.terms,
            order_type,
            time_in_force: order.time_in_force,
            status: order.status,
            qty: Qty(order.qty),
            executed: Qty(order.executed),
            cum_quote: order.cum_quote,
            average_price: per_unit(order.cum_quote, order.executed, market.instrument.qty_scale),
            activation_price: trails.then(|| Price(market.in_ticks(order.activation))),
            created: order.created,
            updated: order.updated,
        }
    }
}

/// Views of balances, positions and settings.
impl Venue {
    /// Free and locked spot balance of an asset.
    pub fn spot_balance(&self, asset: AssetId) -> SpotBalance {
        let balance = self.account.spot(asset);
        SpotBalance {
            asset,
            free: balance.free,
            locked: balance.locked,
        }
    }

    /// Every asset that the account knows.
    pub fn assets(&self) -> impl Iterator<Item = AssetId> + use<> {
        self.account.assets()
    }

    /// The futures account of one margin asset.
    pub fn futures_balance(&self, asset: AssetId) -> FuturesBalance {
        let mut balance = FuturesBalance {
            asset,
            wallet: self.account.wallet(asset),
            cross_wallet: self.account.wallet(asset),
            cross_unrealized: Amount::ZERO,
            unrealized: Amount::ZERO,
            position_margin: Amount::ZERO,
            open_order_margin: Amount::ZERO,
            maintenance_margin: Amount::ZERO,
            available: Amount::ZERO,
            max_withdraw: Amount::ZERO,
        };
        for market in self.markets.iter().filter(|m| m.margins(asset)) {
            let (mark, scale) = (market.mark_price(), market.instrument.qty_scale);
            for (slot, position) in market.positions.iter().enumerate() {
                let unrealized = position.unrealized(mark, scale);
                let own = market.position_margin(position);
                balance.unrealized += unrealized;
                balance.cross_wallet -= market.isolated_wallet[slot];
                balance.position_margin += own;
                balance.open_order_margin += market.side_margin(slot) - own;
                let notional = position.notional(mark, scale).abs();
                balance.maintenance_margin += market.brackets.maintenance(notional);
                if !market.isolated {
                    balance.cross_unrealized += unrealized;
                }
            }
        }
        let spare = balance.cross_wallet - self.initial_margins(asset);
        let losses = balance.cross_unrealized.min(Amount::ZERO);
        balance.available = (spare + balance.cross_unrealized).max(Amount::ZERO);
        balance.max_withdraw = (spare + losses).max(Amount::ZERO);
        balance
    }

    /// `availableBalance` of a margin asset.
    pub(crate) fn available(&self, asset: AssetId) -> Amount {
        let equity = self.standing(asset).equity;
        (equity - self.initial_margins(asset)).max(Amount::ZERO)
    }

    /// Every position side of every futures symbol in the present position mode, with or without a
    /// position.
    pub fn position_views(&self) -> impl Iterator<Item = PositionView> + '_ {
        let sides = || {
            let sides = PositionSide::ALL.iter().copied();
            sides.filter(|side| (*side == PositionSide::Both) != self.hedge)
        };
        let futures = self.markets.iter().filter(|market| market.is_futures());
        futures.flat_map(move |market| sides().map(|side| self.position_of(market.id, side)))
    }

    /// One position side; `None` if the futures symbol does not exist.
    pub fn position_view(
        &self,
        instrument: InstrumentId,
        position_side: PositionSide,
    ) -> Option<PositionView> {
        let market = self.known(instrument).filter(|m| m.is_futures())?;
        Some(self.position_of(market.id, position_side))
    }

    pub(crate) fn position_of(
        &self,
        instrument: InstrumentId,
        position_side: PositionSide,
    ) -> PositionView {
        let market = self.at(instrument);
        let (mark, scale) = (market.mark_price(), market.instrument.qty_scale);
        let (slot, position) = (position_side as usize, market.position(position_side));
        let notional = position.notional(mark, scale);
        let unrealized = position.unrealized(mark, scale);
        let own = market.position_margin(position);
        PositionView {
            instrument,
            position_side,
            qty: Qty(position.qty),
            cost: position.cost,
            entry_price: per_unit(position.cost, position.qty, scale),
            mark_price: mark,
            liquidation_price: self.liquidation_price(instrument, position_side),
            notional,
            unrealized,
            realized: market.realized[slot],
            leverage: market.leverage,
            notional_max: market.brackets.notional_max(market.leverage),
            isolated: market.isolated,
            isolated_wallet: market.isolated_wallet[slot],
            position_margin: own,
            open_order_margin: market.side_margin(slot) - own,
            maintenance_margin: market.brackets.maintenance(notional.abs()),
            adl_quantile: adl_quantile(unrealized, own),
            updated: market.touched[slot],
        }
    }

    /// The mark price p at which equity equals the maintenance margin:
    /// `E + q (p - mark) = M + r |q| p - cum`. E is the present equity, M the present maintenance
    /// margin of the other positions.
    fn liquidation_price(&self, instrument: InstrumentId, position_side: PositionSide) -> i64 {
        let market = self.at(instrument);
        let (mark, scale) = (market.mark_price(), market.instrument.qty_scale);
        let position = market.position(position_side);
        if position.qty == 0 || mark == 0 {
            return 0;
        }
        let notional = position.notional(mark, scale);
        let (rate, cum) = market.brackets.terms(notional.abs());
        let (equity, others) = if market.isolated {
            let own = market.isolated_wallet[position_side as usize];
            (own + position.unrealized(mark, scale), Amount::ZERO)
        } else {
            let standing = self.standing(market.instrument.quote);
            let own = market.brackets.maintenance(notional.abs());
            (standing.equity, standing.maintenance - own)
        };
        let q = i128::from(position.qty);
        let net = q * i128::from(Rate::ONE) - q.abs() * i128::from(rate.0);
        let owed = notional + others - cum - equity;
        // owed is in 1e-8 of the quote asset, net in 1e-8 of a quantity unit.
        let unit = i128::from(pow10(scale)) * i128::from(Rate::ONE);
        let price = owed.0.checked_mul(unit).map(|owed| owed / net);
        price
            .and_then(|p| i64::try_from(p).ok())
            .unwrap_or(0)
            .max(0)
    }

    /// Whether hedge mode is on.
    pub const fn hedge_mode(&self) -> bool {
        self.hedge
    }

    /// Whether multi-assets mode is on.
    pub const fn multi_assets_mode(&self) -> bool {
        self.multi_assets
    }

    /// The end of an instrument's countdown; [`Time::NEVER`] if none is armed.
    pub fn countdown(&self, instrument: InstrumentId) -> Time {
        self.known(instrument).map_or(Time::NEVER, |m| m.countdown)
    }

    /// The leverage brackets of an instrument.
    pub fn brackets(&self, instrument: InstrumentId) -> Vec<Bracket> {
        let market = self.known(instrument);
        market.map_or_else(Vec::new, |m| m.brackets.list().collect())
    }

    /// The present rules of an instrument.
    pub fn instrument(&self, instrument: InstrumentId) -> Option<&windvane_model::Instrument> {
        self.known(instrument).map(|market| &market.instrument)
    }
}

/// `amount / qty` as a price of scale 8, rounded half to even; 0 for a quantity of 0.
fn per_unit(amount: Amount, qty: i64, qty_scale: u8) -> i64 {
    if qty == 0 {
        return 0;
    }
    let scaled = amount.0 * i128::from(pow10(qty_scale)) * i128::from(qty.signum());
    let price = div_half_even(scaled, i128::from(qty.abs()));
    i64::try_from(price).unwrap_or(i64::MAX)
}

/// [`per_unit`] relies on amounts and prices having the same scale.
const _: () = assert!(MARK_SCALE == windvane_model::decimal::AMOUNT_SCALE);

fn adl_quantile(unrealized: Amount, margin: Amount) -> u8 {
    if unrealized.0 <= 0 || margin.0 <= 0 {
        return 0;
    }
    (1 + unrealized.0 / margin.0).min(4) as u8
}
