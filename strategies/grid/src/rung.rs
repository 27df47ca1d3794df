//! The space between two lines of the grid. It has one order at a time: a buy at the lower line or
//! a sell at the upper line.

use windvane_sdk::prelude::*;

/// The state of a rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// No order: one can be placed.
    Free,
    /// No order until the timer.
    Resting,
    /// A live order.
    Live(OrderId),
}

/// One rung.
#[derive(Debug)]
pub(crate) struct Rung {
    low: Price,
    high: Price,
    /// The side of its first order.
    first: Side,
    side: Side,
    remaining: Qty,
    slot: Slot,
}

impl Rung {
    pub(crate) const fn new(low: Price, high: Price, side: Side, qty: Qty) -> Self {
        Self {
            low,
            high,
            first: side,
            side,
            remaining: qty,
            slot: Slot::Free,
        }
    }

    pub(crate) const fn side(&self) -> Side {
        self.side
    }

    /// Price of its current or next order.
    pub(crate) const fn price(&self) -> Price {
        match self.side {
            Side::Buy => self.low,
            Side::Sell => self.high,
        }
    }

    /// Quantity of its next order.
    pub(crate) const fn remaining(&self) -> Qty {
        self.remaining
    }

    /// The position that its ended orders built up. `qty` is the quantity of a whole order.
    pub(crate) fn held(&self, qty: Qty) -> Qty {
        let done = if self.side == self.first {
            qty.0 - self.remaining.0
        } else {
            self.remaining.0
        };
        Qty(self.first.sign() * done)
    }

    pub(crate) const fn slot(&self) -> Slot {
        self.slot
    }

    pub(crate) const fn id(&self) -> Option<OrderId> {
        match self.slot {
            Slot::Live(id) => Some(id),
            _ => None,
        }
    }

    pub(crate) const fn place(&mut self, id: OrderId) {
        self.slot = Slot::Live(id);
    }

    /// Places no order until [`Rung::wake`].
    pub(crate) const fn rest(&mut self) {
        self.slot = Slot::Resting;
    }

    pub(crate) fn wake(&mut self) {
        if self.slot == Slot::Resting {
            self.slot = Slot::Free;
        }
    }

    /// Handles the end of its order. If the whole quantity is executed, the other side is next. The
    /// rest of a cancelled order is ordered again, unless it is below the minimum quantity.
    pub(crate) fn ended(&mut self, executed: Qty, qty: Qty, instrument: &Instrument) {
        self.slot = Slot::Free;
        self.remaining.0 -= executed.0;
        if instrument.floor_qty(self.remaining).is_none() {
            self.side = self.side.opposite();
            // A rest that was too small to order was not executed, so the other side must not
            // include it.
            self.remaining = Qty(qty.0 - self.remaining.0.max(0));
        }
    }

    pub(crate) fn save(&self, state: StateWriter) -> StateWriter {
        state.put(self.side.sign()).put(self.remaining.0)
    }

    pub(crate) fn load(&mut self, state: &mut StateReader<'_>) -> Result<(), String> {
        self.side = if state.take()? > 0 {
            Side::Buy
        } else {
            Side::Sell
        };
        self.remaining = Qty(state.take()?);
        Ok(())
    }
}
