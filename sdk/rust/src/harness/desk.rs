//! The order desk in memory: orders, positions and market data as the tested strategy sees them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ctx::Level;
use crate::event::OrderState;
use crate::instrument::{Instrument, InstrumentId};
use crate::number::{Price, Qty, Time};
use crate::order::{Order, OrderId, Side};

/// An intent of the strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// An order, with the id that it got.
    Submit(OrderId, Order),
    /// A cancel of one order.
    Cancel(OrderId),
    /// A cancel of all orders, of one instrument or of all instruments.
    CancelAll(Option<InstrumentId>),
}

/// An order at the desk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeskOrder {
    /// Id.
    pub id: OrderId,
    /// The submitted order.
    pub order: Order,
    /// State.
    pub state: OrderState,
    /// Executed quantity.
    pub executed: Qty,
}

/// An own position. Cost and realized profit are in units of 1e-8.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position {
    pub(super) qty: i64,
    pub(super) cost: i64,
    pub(super) realized: i64,
}

/// The effects of a fill.
pub(super) struct Filled {
    pub(super) state: OrderState,
    pub(super) realized: i64,
    pub(super) position: i64,
    pub(super) cost: i64,
    pub(super) realized_total: i64,
}

/// Levels of one side, best first: price and quantity mantissas.
type Levels = Vec<(i64, i64)>;

#[derive(Debug, Default)]
pub(crate) struct Desk {
    orders: BTreeMap<OrderId, DeskOrder>,
    positions: BTreeMap<InstrumentId, Position>,
    books: BTreeMap<InstrumentId, [Levels; 2]>,
    last: BTreeMap<(InstrumentId, u32), i64>,
    timers: BTreeMap<i64, Time>,
    /// Instruments that are not trading.
    stopped: BTreeSet<InstrumentId>,
    pub(super) refusals: VecDeque<u16>,
    pub(super) intents: Vec<Intent>,
    pub(super) logs: Vec<(Level, String)>,
    pub(super) plots: Vec<(String, i64, u8)>,
}

impl Desk {
    pub(super) fn submit(&mut self, order: Order) -> i64 {
        if let Some(rule) = self.refusals.pop_front() {
            return -i64::from(rule);
        }
        let id = OrderId(self.orders.len() as i64 + 1);
        self.intents.push(Intent::Submit(id, order));
        let state = OrderState::Submitted;
        self.orders.insert(
            id,
            DeskOrder {
                id,
                order,
                state,
                executed: Qty(0),
            },
        );
        id.0
    }

    /// Returns 0, or -1 if there is no open order with this id.
    pub(super) fn cancel(&mut self, id: OrderId) -> i64 {
        match self.orders.get_mut(&id) {
            Some(order) if !order.state.is_final() => {
                order.state = OrderState::CancelRequested;
                self.intents.push(Intent::Cancel(id));
                0
            }
            _ => -1,
        }
    }

    pub(super) fn cancel_all(&mut self, instrument: Option<InstrumentId>) -> i64 {
        self.intents.push(Intent::CancelAll(instrument));
        let wanted = |o: &&mut DeskOrder| {
            !o.state.is_final() && instrument.is_none_or(|i| o.order.instrument == i)
        };
        let mut count = 0;
        for order in self.orders.values_mut().filter(wanted) {
            order.state = OrderState::CancelRequested;
            count += 1;
        }
        count
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &DeskOrder> {
        self.orders.values().filter(|order| !order.state.is_final())
    }

    /// An open order.
    ///
    /// # Panics
    /// If no order with this id is open, because the test is then wrong.
    pub(super) fn order(&self, id: OrderId) -> DeskOrder {
        let found = self.open().find(|order| order.id == id);
        found
            .unwrap_or_else(|| panic!("order {} is not open", id.0))
            .clone()
    }

    pub(super) fn find(&self, id: OrderId) -> Option<&DeskOrder> {
        self.orders.get(&id)
    }

    pub(super) fn set_state(&mut self, id: OrderId, state: OrderState) -> DeskOrder {
        let order = self.orders.get_mut(&id);
        let order = order.unwrap_or_else(|| panic!("order {} does not exist", id.0));
        order.state = state;
        order.clone()
    }

    /// The oldest order with a request that the venue has not answered yet.
    pub(super) fn under_way(&self) -> Option<(OrderId, OrderState)> {
        let waits =
            |o: &&DeskOrder| matches!(o.state, OrderState::Submitted | OrderState::CancelRequested);
        self.orders
            .values()
            .find(waits)
            .map(|order| (order.id, order.state))
    }

    pub(super) fn fill(&mut self, id: OrderId, i: &Instrument, price: i64, qty: i64) -> Filled {
        let mut order = self.order(id);
        order.executed.0 += qty;
        let by_quantity = order.order.qty > 0;
        assert!(
            !by_quantity || order.executed.0 <= order.order.qty,
            "order {} overfilled",
            id.0
        );
        let done = !by_quantity || order.executed.0 == order.order.qty;
        let state = if done {
            OrderState::Filled
        } else {
            OrderState::PartiallyFilled
        };
        order.state = state;
        let side = order.order.side();
        self.orders.insert(id, order);

        let position = self.positions.entry(i.id).or_default();
        let realized = position.apply(i, side, price, qty);
        let (realized_total, cost) = (position.realized, position.cost);
        Filled {
            state,
            realized,
            position: position.qty,
            cost,
            realized_total,
        }
    }

    pub(super) fn position(&self, instrument: InstrumentId) -> Position {
        self.positions.get(&instrument).copied().unwrap_or_default()
    }

    pub(super) fn set_position(&mut self, instrument: InstrumentId, qty: i64, cost: i64) {
        self.positions.insert(
            instrument,
            Position {
                qty,
                cost,
                realized: 0,
            },
        );
    }

    /// Quantity that the open orders of a side may still execute.
    pub(super) fn open_qty(&self, instrument: InstrumentId, side: Side) -> i64 {
        let of = |o: &&DeskOrder| o.order.instrument == instrument && o.order.side() == side;
        self.open()
            .filter(of)
            .map(|o| o.order.qty - o.executed.0)
            .sum()
    }

    pub(super) fn set_book(&mut self, i: InstrumentId, bids: &[(i64, i64)], asks: &[(i64, i64)]) {
        self.books.insert(i, [bids.to_vec(), asks.to_vec()]);
    }

    pub(super) fn level(&self, i: InstrumentId, side: usize, level: usize) -> Option<(i64, i64)> {
        self.books.get(&i)?.get(side)?.get(level).copied()
    }

    pub(super) fn set_last(&mut self, instrument: InstrumentId, field: u32, value: i64) {
        self.last.insert((instrument, field), value);
    }

    pub(super) fn last(&self, instrument: InstrumentId, field: u32) -> Option<i64> {
        self.last.get(&(instrument, field)).copied()
    }

    pub(super) fn set_trading(&mut self, instrument: InstrumentId, trading: bool) {
        if trading {
            self.stopped.remove(&instrument);
        } else {
            self.stopped.insert(instrument);
        }
    }

    pub(super) fn is_stopped(&self, instrument: InstrumentId) -> bool {
        self.stopped.contains(&instrument)
    }

    /// Closes a part of the position on behalf of the exchange.
    pub(super) fn close(&mut self, i: &Instrument, side: Side, price: i64, qty: i64) -> Filled {
        let position = self.positions.entry(i.id).or_default();
        let realized = position.apply(i, side, price, qty);
        Filled {
            state: OrderState::Filled,
            realized,
            position: position.qty,
            cost: position.cost,
            realized_total: position.realized,
        }
    }

    pub(super) fn set_timer(&mut self, time: Time, token: i64) {
        self.timers.insert(token, time);
    }

    pub(super) fn cancel_timer(&mut self, token: i64) {
        self.timers.remove(&token);
    }

    /// Removes and returns the next timer that is due by `until`. Timers with equal times come in
    /// the order of their tokens.
    pub(super) fn take_timer(&mut self, until: Time) -> Option<(Time, i64)> {
        let next = self
            .timers
            .iter()
            .map(|(token, time)| (*time, *token))
            .min()?;
        (next.0 <= until).then(|| {
            self.timers.remove(&next.1);
            next
        })
    }
}

impl Position {
    /// Updates the position at average cost. Returns the profit that the fill realized.
    fn apply(&mut self, i: &Instrument, side: Side, price: i64, qty: i64) -> i64 {
        let notional = |qty: i64| i.notional(Price(price), Qty(qty)).0;
        let signed = qty * side.sign();
        let closing = if self.qty.signum() == -signed.signum() {
            qty.min(self.qty.abs())
        } else {
            0
        };
        let mut realized = 0;
        if closing > 0 {
            let part = i128::from(self.cost) * i128::from(closing) / i128::from(self.qty.abs());
            let part = part as i64;
            realized = self.qty.signum() * notional(closing) - part;
            self.cost -= part;
        }
        self.cost += side.sign() * notional(qty - closing);
        self.qty += signed;
        self.realized += realized;
        realized
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::instrument;

    #[test]
    fn a_position_is_accounted_at_average_cost() {
        let i = instrument("futures:BTCUSDT", "1", "1");
        let mut position = Position::default();
        assert_eq!(position.apply(&i, Side::Buy, 100, 2), 0);
        assert_eq!(position.apply(&i, Side::Buy, 110, 2), 0);
        assert_eq!(position.apply(&i, Side::Sell, 115, 1), 10 * 100_000_000);
        assert_eq!(
            position.apply(&i, Side::Sell, 105, 5),
            0,
            "closes three at their cost and opens two short"
        );
        assert_eq!((position.qty, position.cost), (-2, -210 * 100_000_000));
        assert_eq!(position.apply(&i, Side::Buy, 100, 2), 10 * 100_000_000);
        assert_eq!((position.qty, position.cost), (0, 0));
    }
}
