//! Several accounts in one market. Each has a [`Venue`] of its own, which is told of the others'
//! orders as part of the book; whoever holds the venues sees here what an account shows to the
//! others, and lets its resting orders meet theirs.
//!
//! - Shown is the open quantity of orders in the book that are not HIDDEN; of orders that can only
//!   close, no more than they can close.
//! - An order that meets another account's is filled whatever is estimated to stand before it: the
//!   other has chosen it. It is the maker, at its own price, unless it came to a HIDDEN order.

use windvane_model::{InstrumentId, Level, Price, Qty, Side, Time, TimeInForce};

use crate::queue::Resting;
use crate::stream::{Deal, Met};
use crate::venue::Venue;

impl Venue {
    /// An instrument of which the orders in the book may have changed since it was answered last,
    /// until there is none.
    pub fn poll_rested(&mut self) -> Option<InstrumentId> {
        let market = self.markets.iter_mut().find(|market| market.rested)?;
        market.rested = false;
        Some(market.id)
    }

    /// What the account shows of its orders in the book: best price first, then oldest.
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

    /// Fills the oldest shown order at a price by at most `qty` in a trade with another account,
    /// whose price is at least as good; answers how much it was, 0 where none is left there.
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
