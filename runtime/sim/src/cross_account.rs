//! Several accounts in one market. Each has its own [`Venue`], which sees the orders of the others
//! as part of the book. The owner of the venues uses this module to get the orders that an account
//! shows to the others, and to let its resting orders trade with theirs.
//!
//! - An account shows the open quantity of its orders in the book, except HIDDEN orders. Orders
//!   that can only close show no more than they can close.
//! - An order that meets an order of another account is filled regardless of the estimated quantity
//!   before it, because the other account has chosen it. It is the maker, at its own price, unless
//!   it met a HIDDEN order.

use windvane_model::{InstrumentId, Level, Price, Qty, Side, Time, TimeInForce};

use crate::queue::Resting;
use crate::stream::{Deal, Met};
use crate::venue::Venue;

impl Venue {
    /// An instrument whose orders in the book may have changed since the last call for it. Call it
    /// until it returns `None`.
    pub fn poll_rested(&mut self) -> Option<InstrumentId> {
        let market = self.markets.iter_mut().find(|market| market.rested)?;
        market.rested = false;
        Some(market.id)
    }

    /// The orders in the book that the account shows: best price first, then oldest.
    pub fn shown(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Level> + '_ {
        let own = self.known(instrument).map(|market| &market.own);
        let own = own.into_iter().flat_map(move |own| &own[side as usize]);
        own.filter(|own| self.is_shown(own)).map(|own| Level {
            price: own.price,
            qty: self.executable(own.key),
        })
    }

    fn is_shown(&self, own: &Resting) -> bool {
        self.orders.at(own.key).time_in_force != TimeInForce::Hidden
    }

    /// Fills the oldest shown order at a price by at most `qty`, in a trade with another account
    /// whose price is at least as good. Returns the filled quantity, 0 if no shown order is left
    /// there.
    pub fn meet(
        &mut self,
        now: Time,
        instrument: InstrumentId,
        (side, price): (Side, Price),
        qty: Qty,
        deal: Deal,
    ) -> Qty {
        self.advance(now);
        let Some(market) = self.known(instrument) else {
            return Qty(0);
        };
        let own = &market.own[side as usize];
        let found = own
            .iter()
            .position(|own| own.price == price.0 && self.is_shown(own));
        let Some(n) = found else {
            return Qty(0);
        };
        let met = Met::Order(deal);
        let (filled, _) = self.fill_resting(instrument, side, n, qty.0, met);
        self.settle();
        Qty(filled)
    }
}
