//! One side's quote: never more than one live order.

use windvane_sdk::prelude::*;

/// An order that rests, or is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    /// Its id.
    pub(crate) id: OrderId,
    /// Its price.
    pub(crate) price: Price,
    /// Twice the mid, with skew, that it was placed at.
    pub(crate) anchor: i64,
}

/// What a side has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Nothing: free to place.
    Empty,
    /// Nothing, and not before the timer.
    Resting,
    /// A quote.
    Live(Live),
    /// A quote whose cancel is on its way; it may still be filled.
    Leaving(Live),
}

/// One side of the market.
#[derive(Debug)]
pub(crate) struct Quote {
    side: Side,
    slot: Slot,
}

impl Quote {
    pub(crate) const fn new(side: Side) -> Self {
        Self {
            side,
            slot: Slot::Empty,
        }
    }

    pub(crate) const fn side(&self) -> Side {
        self.side
    }

    pub(crate) const fn slot(&self) -> Slot {
        self.slot
    }

    pub(crate) const fn id(&self) -> Option<OrderId> {
        match self.slot {
            Slot::Live(live) | Slot::Leaving(live) => Some(live.id),
            Slot::Empty | Slot::Resting => None,
        }
    }

    /// Where the market was when the quote was placed; `None` if no move of it matters now.
    pub(crate) const fn anchor(&self) -> Option<i64> {
        match self.slot {
            Slot::Live(live) => Some(live.anchor),
            _ => None,
        }
    }

    pub(crate) const fn place(&mut self, id: OrderId, price: Price, anchor: i64) {
        self.slot = Slot::Live(Live { id, price, anchor });
    }

    /// The quote stands where it should: measure moves from here.
    pub(crate) const fn anchor_at(&mut self, anchor: i64) {
        if let Slot::Live(live) = &mut self.slot {
            live.anchor = anchor;
        }
    }

    pub(crate) fn cancel(&mut self, ctx: &Ctx) {
        let Slot::Live(live) = self.slot else {
            return;
        };
        self.slot = Slot::Leaving(live);
        if let Err(rejection) = ctx.cancel(live.id) {
            // It ended meanwhile: then no update is left to come.
            debug!(ctx, "cancel of {}: {rejection}", live.id.0);
            if ctx.order(live.id).state().is_none_or(OrderState::is_final) {
                self.slot = Slot::Empty;
            }
        }
    }

    /// Nothing until [`Quote::wake`].
    pub(crate) const fn rest(&mut self) {
        self.slot = Slot::Resting;
    }

    pub(crate) const fn wake(&mut self) {
        if matches!(self.slot, Slot::Resting) {
            self.slot = Slot::Empty;
        }
    }

    pub(crate) const fn on_update(&mut self, state: OrderState) {
        match self.slot {
            _ if state.is_final() => self.slot = Slot::Empty,
            // New once more after a cancel was asked for: the venue refused it, the quote stands.
            Slot::Leaving(live) if matches!(state, OrderState::New) => {
                self.slot = Slot::Live(live);
            }
            _ => {}
        }
    }
}
