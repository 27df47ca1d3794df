//! Margin of the futures account: what an order needs, when a position is in danger, liquidation.
//!
//! Cross margin per margin asset. Equity is the wallet plus unrealized profit at the mark price.
//! - Initial margin of a position side with position P, open buys B and open sells S (notionals):
//!   `max(|P + B|, |P - S|) / leverage`. An order that raises the sum over equity is refused.
//! - Maintenance margin: `maintenance_rate * |P|`. `MARGIN_CALL` is sent once when equity falls
//!   below 5/4 of it, and again only after equity recovered.
//! - Equity below the maintenance margin: every open futures order of the margin asset ends
//!   EXPIRED, then each position is closed by an order `autoclose-<digits>` of type LIQUIDATION
//!   with executions CALCULATED, against the book and for what the book lacks against the
//!   insurance fund at the mark price; in the latter case the order starts as `NEW_INSURANCE`, else
//!   as NEW. The fee is the symbol's liquidationFee, or the taker fee. A wallet that ends below
//!   zero stays there: a shortfall is shown, not forgiven.
//!
//! Marks move with every quote, so each market keeps a price range inside which the account is
//! safe whatever the other markets do inside theirs: the slack is shared evenly between them.

use windvane_engine::decimal::{MARK_SCALE, div_half_even, pow10};
use windvane_engine::protocol::UserEvent;
use windvane_engine::{
    Amount, AssetId, ClientOrderId, ExecutionType, InstrumentId, OrderStatus, OrderTerms,
    OrderType, PositionSide, Side, Surface, TimeInForce, VenueOrderId,
};

use crate::config::Rate;
use crate::market::{Market, SAFE};
use crate::order::{Order, Stage};
use crate::venue::Venue;

/// What is watched between fills.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// A margin asset whose account changed, or whose market left its safe range.
    pub(crate) dirty: Option<AssetId>,
    /// Margin assets with a margin call that equity has not recovered from.
    called: Vec<AssetId>,
}

/// Sums over the positions of one margin asset.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    equity: Amount,
    maintenance: Amount,
    markets: i128,
}

impl Market {
    /// Initial margin of all position sides.
    fn initial_margin(&self) -> Amount {
        self.initial_margin_with(0, Side::Buy, Amount::ZERO)
    }

    /// The same with `added` open notional on one side.
    fn initial_margin_with(&self, slot: usize, side: Side, added: Amount) -> Amount {
        let mark = self.mark_price();
        let mut total = Amount::ZERO;
        for (n, (position, open)) in self.positions.iter().zip(&self.open_notional).enumerate() {
            let mut open = open.0;
            if n == slot {
                open[side as usize] += added;
            }
            if position.qty == 0 && open == [Amount::ZERO; 2] {
                continue;
            }
            let held = position.notional(mark, self.instrument.qty_scale);
            let exposure = (held + open[0]).abs().max((held - open[1]).abs());
            total += Amount(div_half_even(exposure.0, i128::from(self.leverage)));
        }
        total
    }

    fn has_position(&self) -> bool {
        self.positions.iter().any(|position| position.qty != 0)
    }

    fn margins(&self, asset: AssetId) -> bool {
        self.is_futures() && self.instrument.quote == asset
    }
}

impl Venue {
    /// Whether equity carries the initial margins with this order among them. An order that does
    /// not raise them always passes.
    pub(crate) fn margin_allows(&self, order: &Order) -> bool {
        let terms = &order.terms;
        let market = self.at(terms.instrument);
        let notional = match order.limit() {
            Some(price) => market.instrument.notional(price, order.remaining()),
            None => market.cost(terms.side, order.remaining()),
        };
        let slot = terms.position_side as usize;
        let raise =
            market.initial_margin_with(slot, terms.side, notional) - market.initial_margin();
        let asset = market.instrument.quote;
        raise.0 <= 0 || self.initial_margins(asset) + raise <= self.standing(asset).equity
    }

    /// Whether equity carries the initial margins as they are.
    pub(crate) fn margin_suffices(&self, asset: AssetId) -> bool {
        self.initial_margins(asset) <= self.standing(asset).equity
    }

    fn initial_margins(&self, asset: AssetId) -> Amount {
        let markets = self.markets.iter().filter(|market| market.margins(asset));
        markets.map(Market::initial_margin).sum()
    }

    fn standing(&self, asset: AssetId) -> Standing {
        let mut standing = Standing {
            equity: self.account.wallet(asset),
            ..Standing::default()
        };
        for market in &self.markets {
            if !market.margins(asset) || !market.has_position() {
                continue;
            }
            standing.markets += 1;
            let (mark, scale) = (market.mark_price(), market.instrument.qty_scale);
            for position in &market.positions {
                standing.equity += position.unrealized(mark, scale);
                let notional = position.notional(mark, scale).abs();
                standing.maintenance += self.rates.maintenance.of(notional);
            }
        }
        standing
    }

    /// Equity of a margin asset against its maintenance margin; then new safe ranges.
    pub(crate) fn check_margin(&mut self) {
        while let Some(asset) = self.margin.dirty.take() {
            let standing = self.standing(asset);
            if standing.markets > 0 && standing.equity < standing.maintenance {
                self.liquidate(asset);
                continue;
            }
            let called = self.margin.called.contains(&asset);
            let call_level = Amount(standing.maintenance.0 * 5 / 4);
            let in_danger = standing.markets > 0 && standing.equity < call_level;
            if in_danger && !called {
                self.margin.called.push(asset);
                self.tell(UserEvent::MarginCall);
            } else if called && !in_danger {
                self.margin.called.retain(|other| *other != asset);
            }
            let level = if in_danger {
                standing.maintenance
            } else {
                call_level
            };
            self.watch_margin(asset, standing.equity - level, standing.markets);
        }
    }

    fn watch_margin(&mut self, asset: AssetId, slack: Amount, sharers: i128) {
        let rate = self.rates.maintenance;
        for market in &mut self.markets {
            if !market.margins(asset) {
                continue;
            }
            let held: i128 = market
                .positions
                .iter()
                .map(|position| i128::from(position.qty.abs()))
                .sum();
            market.safe = if held == 0 {
                SAFE
            } else {
                // Equity moves by q per unit of price; the level that it is held against by at
                // most 5/4 of the maintenance rate, taken as twice the rate here.
                let scale = i128::from(pow10(market.instrument.qty_scale));
                let per_unit = held * i128::from(Rate::ONE + 2 * rate.0);
                let room =
                    (slack.0 / sharers).saturating_mul(scale * i128::from(Rate::ONE)) / per_unit;
                let room = i64::try_from(room).unwrap_or(i64::MAX);
                let mark = market.mark_price();
                (mark.saturating_sub(room), mark.saturating_add(room))
            };
            market.watch_mid();
        }
    }

    /// The mark of an instrument may have moved: is the account still safe?
    #[inline]
    pub(crate) fn watch_mark(&mut self, instrument: InstrumentId) {
        let market = self.at(instrument);
        if market.safe != SAFE {
            let mark = market.mark_price();
            if mark <= market.safe.0 || mark >= market.safe.1 {
                self.margin.dirty = Some(market.instrument.quote);
            }
        }
    }

    fn liquidate(&mut self, asset: AssetId) {
        let affected: Vec<InstrumentId> = self
            .markets
            .iter()
            .filter(|market| market.margins(asset))
            .map(|market| market.id)
            .collect();
        for instrument in &affected {
            self.close_all(*instrument, OrderStatus::Expired);
        }
        for instrument in affected {
            for side in PositionSide::ALL {
                if self.at(instrument).position(*side).qty != 0 {
                    self.close_out(instrument, *side);
                }
            }
        }
    }

    fn close_out(&mut self, instrument: InstrumentId, position_side: PositionSide) {
        let market = self.at(instrument);
        let held = market.position(position_side).qty;
        let side = if held > 0 { Side::Sell } else { Side::Buy };
        let insured_price = market.mark_in_ticks();
        self.order_id += 1;
        let mut terms = OrderTerms::new(instrument, side, OrderType::Liquidation);
        terms.position_side = position_side;
        let key = self.orders.insert(Order {
            id: VenueOrderId(self.order_id),
            client_order_id: autoclose_id(self.order_id),
            surface: Surface::Futures,
            terms,
            time_in_force: TimeInForce::Ioc,
            stage: Stage::Active,
            status: OrderStatus::New,
            qty: held.abs(),
            executed: 0,
            cum_quote: Amount::ZERO,
            reserved: Amount::ZERO,
            closing: true,
            activation: 0,
            extreme: 0,
            updated: self.now,
        });
        if self.reachable(key, held.abs()) < held.abs() {
            self.orders.at_mut(key).status = OrderStatus::NewInsurance;
        }
        self.tell_order(key, ExecutionType::New, None);
        self.take(key);
        let rest = self.orders.at(key).remaining();
        if rest > 0 {
            self.fill(key, insured_price, rest, false);
        }
    }
}

impl Market {
    /// The mark price as a price mantissa, half to even.
    fn mark_in_ticks(&self) -> i64 {
        let (mark, scale) = (i128::from(self.mark_price()), self.instrument.price_scale);
        let price = if scale <= MARK_SCALE {
            div_half_even(mark, i128::from(pow10(MARK_SCALE - scale)))
        } else {
            mark * i128::from(pow10(scale - MARK_SCALE))
        };
        price as i64
    }
}

/// `autoclose-<digits>` (spec 2, `ORDER_TRADE_UPDATE`).
#[expect(
    clippy::expect_used,
    reason = "a prefix of 10 letters and a hyphen, and at most 19 digits, all of them allowed"
)]
fn autoclose_id(order_id: i64) -> ClientOrderId {
    ClientOrderId::new(&format!("autoclose-{order_id}")).expect("an allowed id")
}
