//! Liquidation and the other ways in which the venue closes a position itself.
//!
//! - Cross margin: every open futures order of the margin asset ends EXPIRED. Then each crossed
//!   position is closed by an order `autoclose-<digits>` of type LIQUIDATION with executions
//!   CALCULATED. It trades against the book; the quantity that the book lacks is closed against the
//!   insurance fund at the mark price. In that case the order starts as `NEW_INSURANCE`, else as
//!   NEW. The fee is the symbol's liquidationFee, or the taker fee. A wallet that ends below zero
//!   stays negative: a shortfall is shown, not forgiven.
//! - Isolated margin: the same for one symbol's orders and one position. The insurance fund pays
//!   back the loss beyond the isolated wallet (`INSURANCE_CLEAR`), because isolated margin limits
//!   the loss to that wallet.
//! - Auto-deleveraging closes a part of a winning position at the mark price, by an order
//!   `adl_autoclose` that starts as `NEW_ADL`. Nothing in this crate causes it;
//!   [`crate::Venue::deleverage`] triggers it.

use windvane_model::decimal::{MARK_SCALE, div_half_even, pow10};
use windvane_model::{
    Amount, AssetId, ClientOrderId, ExecutionType, InstrumentId, OrderStatus, OrderTerms,
    OrderType, PositionSide, Side, Surface, TimeInForce, VenueOrderId,
};

use crate::config::Rate;
use crate::market::Market;
use crate::order::{Order, Stage};
use crate::order_key::OrderKey;
use crate::stream::Met;
use crate::venue::Venue;

impl Venue {
    pub(crate) fn liquidate(&mut self, asset: AssetId) {
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
                let market = self.at(instrument);
                if !market.isolated && market.position(*side).qty != 0 {
                    self.close_out(instrument, *side);
                }
            }
        }
    }

    pub(crate) fn close_out(&mut self, instrument: InstrumentId, position_side: PositionSide) {
        let market = self.at(instrument);
        let held = market.position(position_side).qty;
        let insured_price = market.mark_in_ticks();
        let id = autoclose_id(self.order_id + 1);
        let key = self.taking_order(instrument, position_side, id, held.abs());
        if self.reachable(key, held.abs()) < held.abs() {
            self.orders.at_mut(key).status = OrderStatus::NewInsurance;
        }
        self.emit_order(key, ExecutionType::New, None);
        self.take(key);
        let rest = self.orders.at(key).remaining();
        if rest > 0 {
            self.fill(key, insured_price, rest, false, Met::Fund);
        }
    }

    /// Closes `qty` of a position at the mark price with an order of the venue.
    pub(crate) fn close_by_adl(
        &mut self,
        instrument: InstrumentId,
        position_side: PositionSide,
        qty: i64,
    ) {
        let price = self.at(instrument).mark_in_ticks();
        let key = self.taking_order(instrument, position_side, adl_id(), qty);
        self.orders.at_mut(key).status = OrderStatus::NewAdl;
        self.emit_order(key, ExecutionType::New, None);
        self.fill(key, price, qty, false, Met::Fund);
    }

    /// An order of the venue that closes `qty` of a position.
    fn taking_order(
        &mut self,
        instrument: InstrumentId,
        position_side: PositionSide,
        client_order_id: ClientOrderId,
        qty: i64,
    ) -> OrderKey {
        let held = self.at(instrument).position(position_side).qty;
        let side = if held > 0 { Side::Sell } else { Side::Buy };
        self.order_id += 1;
        let mut terms = OrderTerms::new(instrument, side, OrderType::Liquidation);
        terms.position_side = position_side;
        self.orders.insert(Order {
            id: VenueOrderId(self.order_id),
            client_order_id,
            surface: Surface::Futures,
            terms,
            time_in_force: TimeInForce::Ioc,
            stage: Stage::Active,
            status: OrderStatus::New,
            qty,
            executed: 0,
            cum_quote: Amount::ZERO,
            reserved: Amount::ZERO,
            surcharge: Rate(0),
            closing: true,
            activation: 0,
            extreme: 0,
            triggered: false,
            created: self.now,
            updated: self.now,
        })
    }
}

impl Market {
    /// The mark price as a price mantissa, half to even.
    fn mark_in_ticks(&self) -> i64 {
        self.in_ticks(self.mark_price())
    }

    /// A price at the mark's scale as a price mantissa, half to even.
    pub(crate) fn in_ticks(&self, price: i64) -> i64 {
        let (mark, scale) = (i128::from(price), self.instrument.price_scale);
        let price = if scale <= MARK_SCALE {
            div_half_even(mark, i128::from(pow10(MARK_SCALE - scale)))
        } else {
            mark * i128::from(pow10(scale - MARK_SCALE))
        };
        price as i64
    }
}

/// `autoclose-<digits>` (docs/interface/user-stream.md#order_trade_update).
#[expect(
    clippy::expect_used,
    reason = "a prefix of 10 letters and a hyphen, and at most 19 digits, all of them allowed"
)]
fn autoclose_id(order_id: i64) -> ClientOrderId {
    ClientOrderId::new(&format!("autoclose-{order_id}")).expect("an allowed id")
}

/// `adl_autoclose`, the same for every such order (docs/interface/README.md#13-forced-orders).
#[expect(
    clippy::expect_used,
    reason = "a constant of 13 letters and `_`, all of them allowed"
)]
fn adl_id() -> ClientOrderId {
    ClientOrderId::new("adl_autoclose").expect("an allowed id")
}
