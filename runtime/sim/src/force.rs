//! Events that a test triggers: fills, ends, liquidations, funding, new rules. Each takes the path
//! of a real market event, so that its user events and sums are those of one.
//!
//! Forced fills are maker fills at the order's own price. They take nothing from the recorded book.

use windvane_model::protocol::Refusal;
use windvane_model::{
    Instrument, InstrumentId, OrderStatus, PositionSide, Qty, Surface, Time, VenueOrderId,
};

use crate::bracket::{Bracket, Brackets};
use crate::code::Code;
use crate::config::VenueConfigError;
use crate::filter::Fractions;
use crate::order::Stage;
use crate::order_key::OrderKey;
use crate::stream::Met;
use crate::venue::Venue;

/// Forced events of orders.
impl Venue {
    /// Fills at most `qty` of an order that is in the book. Returns the filled quantity.
    ///
    /// # Errors
    /// -2013 for an unknown or finished order, -4000 for one that is not in the book.
    pub fn fill_order(&mut self, now: Time, id: VenueOrderId, qty: Qty) -> Result<Qty, Refusal> {
        self.advance(now);
        let key = self.open_key(id)?;
        let order = self.orders.at(key);
        let (Stage::Active, Some(price)) = (order.stage, order.limit()) else {
            return Err(Code::InvalidOrderStatus.refusal());
        };
        let filled = self.executable(key).min(qty.0).max(0);
        if filled > 0 {
            self.fill(key, price, filled, true, Met::Outside);
            if self.orders.at(key).stage == Stage::Finished {
                self.withdraw(key);
            }
        }
        self.settle();
        Ok(Qty(filled))
    }

    /// Cancels an open order by the venue's id.
    ///
    /// # Errors
    /// -2011 if it is not open.
    pub fn cancel_order(&mut self, now: Time, id: VenueOrderId) -> Result<(), Refusal> {
        self.end_order(now, id, OrderStatus::Canceled)
    }

    /// Expires an open order as the matching engine would (`EXPIRED`), for example in maintenance.
    ///
    /// # Errors
    /// -2011 if it is not open.
    pub fn expire_order(&mut self, now: Time, id: VenueOrderId) -> Result<(), Refusal> {
        self.end_order(now, id, OrderStatus::Expired)
    }

    fn end_order(
        &mut self,
        now: Time,
        id: VenueOrderId,
        status: OrderStatus,
    ) -> Result<(), Refusal> {
        self.advance(now);
        let key = self
            .open_key(id)
            .map_err(|_| Code::CancelRejected.refusal())?;
        self.close(key, status);
        self.settle();
        Ok(())
    }

    fn open_key(&self, id: VenueOrderId) -> Result<OrderKey, Refusal> {
        let key = self.orders.find_id(id);
        key.filter(|key| self.orders.at(*key).stage != Stage::Finished)
            .ok_or_else(|| Code::NoSuchOrder.refusal())
    }
}

/// Forced events of positions.
impl Venue {
    /// Liquidates now: in cross margin all crossed positions of the symbol's margin asset, in
    /// isolated margin the positions of the symbol.
    ///
    /// # Errors
    /// -2024 without a position, -1112 without a mark price, -1020 on spot.
    pub fn liquidate_now(&mut self, now: Time, instrument: InstrumentId) -> Result<(), Refusal> {
        self.advance(now);
        let market = self.futures_mut(instrument).map_err(Code::refusal)?;
        let (asset, isolated) = (market.instrument.quote, market.isolated);
        if !market.has_position() {
            return Err(Code::PositionNotSufficient.refusal());
        }
        if market.mark_price() == 0 {
            return Err(Code::NoDepth.refusal());
        }
        if isolated {
            for side in PositionSide::ALL {
                if self.at(instrument).position(*side).qty != 0 {
                    self.liquidate_isolated(instrument, *side);
                }
            }
        } else {
            self.liquidate(asset);
        }
        self.settle();
        Ok(())
    }

    /// Sends a margin call now: in cross margin for the crossed positions of the symbol's margin
    /// asset, in isolated margin for the positions of the symbol.
    ///
    /// # Errors
    /// -2024 without a position, -1020 on spot.
    pub fn call_margin(&mut self, now: Time, instrument: InstrumentId) -> Result<(), Refusal> {
        self.advance(now);
        let market = self.futures_mut(instrument).map_err(Code::refusal)?;
        if !market.has_position() {
            return Err(Code::PositionNotSufficient.refusal());
        }
        let (asset, isolated) = (market.instrument.quote, market.isolated);
        self.emit_margin_call(asset, isolated.then_some(instrument));
        Ok(())
    }

    /// Auto-deleverages at most `qty` of a position at the mark price. Returns the closed quantity.
    ///
    /// # Errors
    /// -2024 without a position, -1112 without a mark price, -1020 on spot.
    pub fn deleverage(
        &mut self,
        now: Time,
        instrument: InstrumentId,
        side: PositionSide,
        qty: Qty,
    ) -> Result<Qty, Refusal> {
        self.advance(now);
        let market = self.futures_mut(instrument).map_err(Code::refusal)?;
        let closed = market.position(side).qty.abs().min(qty.0).max(0);
        if closed == 0 {
            return Err(Code::PositionNotSufficient.refusal());
        }
        if market.mark_price() == 0 {
            return Err(Code::NoDepth.refusal());
        }
        self.close_by_adl(instrument, side, closed);
        self.settle();
        Ok(Qty(closed))
    }

    /// Pays funding now, `rate` (scale 8) times the value at the mark price.
    ///
    /// # Errors
    /// -1020 on spot, -1121 for an unknown instrument.
    pub fn fund_now(
        &mut self,
        now: Time,
        instrument: InstrumentId,
        rate: i64,
    ) -> Result<(), Refusal> {
        self.advance(now);
        self.futures_mut(instrument).map_err(Code::refusal)?;
        let mark = self.at(instrument).mark_price();
        self.pay_funding_at(instrument, mark, rate);
        Ok(())
    }
}

/// Changes of rules and leverage brackets, and settings of order ids and finished orders.
impl Venue {
    /// Gives an instrument new rules: status, filters, precisions, fractions. Open orders stay.
    ///
    /// # Errors
    /// Names the field that cannot change (surface, symbol, assets, scales), or a fraction that
    /// does not fit.
    pub fn set_rules(
        &mut self,
        instrument: InstrumentId,
        rules: Instrument,
    ) -> Result<(), VenueConfigError> {
        let Some(market) = self.markets.get_mut(usize::from(instrument.0)) else {
            return Err(VenueConfigError::Fixed {
                instrument: rules.name(),
                field: "instrument",
            });
        };
        let old = &market.instrument;
        let fixed = [
            ("surface", old.surface == rules.surface),
            ("symbol", old.symbol == rules.symbol),
            ("base", old.base == rules.base),
            ("quote", old.quote == rules.quote),
            ("price_scale", old.price_scale == rules.price_scale),
            ("qty_scale", old.qty_scale == rules.qty_scale),
        ];
        if let Some((field, _)) = fixed.iter().find(|(_, same)| !same) {
            return Err(VenueConfigError::Fixed {
                instrument: rules.name(),
                field,
            });
        }
        market.fractions = Fractions::new(&rules)?;
        market.instrument = rules;
        Ok(())
    }

    /// Gives a futures instrument leverage brackets. A leverage above the first bracket is lowered
    /// to it.
    ///
    /// # Errors
    /// Names the rule that the brackets break, or reports that this is not a futures instrument.
    pub fn set_brackets(
        &mut self,
        instrument: InstrumentId,
        brackets: &[Bracket],
    ) -> Result<(), VenueConfigError> {
        let market = self.markets.get_mut(usize::from(instrument.0));
        let futures = market.filter(|market| market.instrument.surface == Surface::Futures);
        let Some(market) = futures else {
            return Err(VenueConfigError::Fixed {
                instrument: format!("instrument {}", instrument.0),
                field: "brackets",
            });
        };
        market.brackets = Brackets::new(&market.instrument.name(), brackets)?;
        market.leverage = market.leverage.min(market.brackets.leverage_max());
        self.margin.dirty = Some(self.at(instrument).instrument.quote);
        self.settle();
        Ok(())
    }

    /// Continues the order ids after this one, if it is above the newest id. So several accounts
    /// can share one sequence.
    pub fn order_ids_after(&mut self, id: VenueOrderId) {
        self.order_id = self.order_id.max(id.0);
    }

    /// The newest order id that was used.
    pub const fn newest_order_id(&self) -> VenueOrderId {
        VenueOrderId(self.order_id)
    }

    /// Sets how many finished orders of each surface are kept, separately for orders with and
    /// without a trade. The default is [`crate::FINISHED_MAX`] for each.
    pub fn remember_finished(&mut self, traded: usize, untraded: usize) {
        self.orders
            .remember_finished(traded.max(1), untraded.max(1));
    }
}
