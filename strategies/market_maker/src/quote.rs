//! The quote of one side, with at most one live order.

use windvane_sdk::prelude::*;

/// An order that rests or is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    /// Id of the order.
    pub(crate) id: OrderId,
    /// Price of the order.
    pub(crate) price: Price,
    /// Twice the mid, including the skew, at the time of its placement.
    pub(crate) anchor: i64,
}

/// The state of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// No order: one can be placed.
    Empty,
    /// No order until the timer.
    Resting,
    /// A live order.
    Live(Live),
    /// An order whose cancel is in flight. It may still fill.
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

    /// The market's level when the quote was placed. `None` if moves of the market do not matter
    /// now.
    pub(crate) const fn anchor(&self) -> Option<i64> {
        match self.slot {
            Slot::Live(live) => Some(live.anchor),
            _ => None,
        }
    }

    pub(crate) const fn place(&mut self, id: OrderId, price: Price, anchor: i64) {
        self.slot = Slot::Live(Live { id, price, anchor });
    }

    /// Measures moves from here, because the quote already has the right price.
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
            // The order may have ended meanwhile. Then no further update comes.
            debug!(ctx, "cancel of {}: {rejection}", live.id.0);
            if ctx.order(live.id).state().is_none_or(OrderState::is_final) {
                self.slot = Slot::Empty;
            }
        }
    }

    /// Places no order until [`Quote::wake`].
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
            // A second `New` after a cancel request means that the venue refused the cancel. The
            // quote still rests.
            Slot::Leaving(live) if matches!(state, OrderState::New) => {
                self.slot = Slot::Live(live);
            }
            _ => {}
        }
    }
}
