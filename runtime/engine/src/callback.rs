//! One callback of a strategy. It returns results at once and reads the engine without changing it.
//!
//! `submit` checks an order at once against the venue's rules and the risk limits. It gives the
//! order its final number and counts it in the exposure of the callback. After the callback
//! returns, its intents enter the engine as one input. If the callback fails, they are discarded.

use windvane_model::event::Intent;
use windvane_model::ids::{InstrumentId, OrderSeq, StrategyId, Time};
use windvane_model::order::{OrderTerms, OrderType, PositionSide, Qty, Side, Surface};
use windvane_model::order_state::OrderState;
use windvane_model::orders::Order;
use windvane_model::rules::{Rejection, Rule};

use crate::engine::{Engine, OpenOrders};

/// The maximum number of timers per strategy.
pub const TIMERS_MAX: usize = 64;

/// The largest quantity mantissa that may be open on one side of a holding.
const OPEN_QTY_MAX: i64 = i64::MAX / 4;

/// Working memory of one callback. Reused for the next callback.
#[derive(Debug, Default)]
pub struct Callback {
    strategy: StrategyId,
    intents: Vec<Intent>,
    next_order: u64,
    /// The open quantities that the orders of this callback add.
    added: Vec<Added>,
    pub(crate) submitted: u32,
}

/// The quantities and orders that a callback adds to one holding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Added {
    instrument: InstrumentId,
    position_side: PositionSide,
    buy: i64,
    sell: i64,
    orders: OpenOrders,
}

/// A strategy's own position as the strategy sees it. Quantities are mantissas, amounts are in
/// units of 1e-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PositionView {
    /// Signed quantity.
    pub qty: i64,
    /// Cost, with the sign of the quantity.
    pub cost: windvane_model::Amount,
    /// Realized profit before fees.
    pub realized_pnl: windvane_model::Amount,
    /// Unrealized profit; 0 until a price is known.
    pub unrealized_pnl: windvane_model::Amount,
    /// Fees paid.
    pub fees: windvane_model::Amount,
    /// Open buy quantity, including orders in flight and orders of unknown outcome.
    pub open_buy: i64,
    /// Open sell quantity, counted in the same way.
    pub open_sell: i64,
    /// Average entry price, scale 8.
    pub entry_price: i64,
}

/// An order as its strategy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderView {
    /// State.
    pub state: OrderState,
    /// The instrument.
    pub instrument: InstrumentId,
    /// Side.
    pub side: Side,
    /// Type.
    pub order_type: OrderType,
    /// Price mantissa; 0 without one.
    pub price: i64,
    /// Stop price mantissa; 0 without one.
    pub stop_price: i64,
    /// Quantity mantissa; 0 without one.
    pub qty: i64,
    /// Executed quantity mantissa.
    pub executed_qty: i64,
}

impl Callback {
    /// Begins a callback of a strategy, without intents.
    #[inline]
    pub fn begin(&mut self, engine: &Engine, strategy: StrategyId) {
        self.clear();
        self.strategy = strategy;
        self.next_order = engine.next_order().0;
    }

    /// Discards all intents.
    #[inline]
    pub fn clear(&mut self) {
        self.intents.clear();
        self.added.clear();
        self.submitted = 0;
    }

    /// The intents of this callback, in the order in which the strategy made them.
    #[inline]
    pub fn intents(&self) -> &[Intent] {
        &self.intents
    }

    /// Submits an order.
    ///
    /// # Errors
    /// Returns the rule or limit that the order breaks. The rejection also becomes an intent, so
    /// that it is recorded and counted.
    pub fn submit(&mut self, engine: &Engine, terms: OrderTerms) -> Result<OrderSeq, Rejection> {
        match self.check(engine, terms) {
            Ok((wire, worst_qty)) => {
                let order = OrderSeq(self.next_order);
                self.next_order += 1;
                self.submitted += 1;
                self.add(&wire, worst_qty);
                self.intents.push(Intent::Submit { order, terms: wire });
                Ok(order)
            }
            Err(rejection) => {
                self.intents.push(Intent::Rejected { terms, rejection });
                Err(rejection)
            }
        }
    }

    /// Returns the order parameters to send to the venue, and the quantity that they add in the
    /// worst case. An order that closes a side in hedge mode is treated like one with
    /// `reduce_only`, so that a strategy cannot close the `LONG` or `SHORT` holding of another
    /// strategy.
    fn check(&self, engine: &Engine, terms: OrderTerms) -> Result<(OrderTerms, i64), Rejection> {
        if !engine.grants(self.strategy, terms.instrument) {
            return Err(Rule::UnknownInstrument.plain());
        }
        let terms = OrderTerms {
            reduce_only: terms.reduce_only || engine.closes_side_of(&terms),
            ..terms
        };
        let wire = self.wire_terms(engine, terms)?;
        let pending = self.orders_added_to(wire.instrument);
        engine
            .check_venue_rules(&wire, pending)
            .map_err(|rejection| engine.of_block(&wire, terms.reduce_only, rejection))?;
        let worst_qty = engine.worst_qty(&wire);
        self.check_size(engine, &wire, worst_qty)?;
        engine.check_limits(self.strategy, &wire, terms.reduce_only, worst_qty, self)?;
        Ok((wire, worst_qty))
    }

    /// Keeps open quantities far from overflow, even where the venue states no maximum lot.
    fn check_size(
        &self,
        engine: &Engine,
        terms: &OrderTerms,
        worst_qty: i64,
    ) -> Result<(), Rejection> {
        let (id, side) = (terms.instrument, terms.position_side);
        let holding = engine.ledgers().account.at(id, side);
        let (buy, sell) = self.added_to(id, side);
        let open = match terms.side {
            Side::Buy => holding.open_buy + buy,
            Side::Sell => holding.open_sell + sell,
        };
        let left = OPEN_QTY_MAX - open;
        if worst_qty > left {
            return Err(engine.qty_rejection(Rule::LotMax, id, worst_qty, left));
        }
        Ok(())
    }

    /// `reduce_only` is checked against the strategy's own position, including its orders in
    /// flight. The check also uses at most the quantity that the account still holds, so that a
    /// quantity closed by outside orders is not closed again. The flag is sent only in one-way
    /// mode, and only where the account's net position covers the order. At the venue the positions
    /// of all strategies are netted, and hedge mode and spot forbid the flag.
    fn wire_terms(&self, engine: &Engine, terms: OrderTerms) -> Result<OrderTerms, Rejection> {
        let mut wire = terms;
        let (id, side) = (terms.instrument, terms.position_side);
        if terms.close_position {
            return engine
                .check_sole_owner(self.strategy, id, side)
                .map(|()| wire);
        }
        if !terms.reduce_only {
            let (buy, sell) = self.added_to(id, side);
            let added = match terms.side {
                Side::Buy => buy,
                Side::Sell => sell,
            };
            return engine.exit_terms(self.strategy, terms, added);
        }
        let Some(Qty(qty)) = terms.qty else {
            // Without a quantity, the venue's rules find the error.
            wire.reduce_only &= !engine.hedge_mode();
            return Ok(wire);
        };
        let own = engine.ledgers().strategies[usize::from(self.strategy.0)].at(id, side);
        let closable = engine.closable(self.strategy, id, side, terms.side);
        let covered = windvane_model::risk::Exposure {
            position: -terms.side.sign() * closable,
            ..own.exposure()
        };
        let left = self.reducible(covered, id, side, terms.side);
        if qty > left {
            return Err(engine.qty_rejection(Rule::ReduceOnlyPosition, id, qty, left));
        }
        let account = engine.ledgers().account.at(id, side);
        let futures = engine
            .instrument(id)
            .is_some_and(|i| i.surface == Surface::Futures);
        wire.reduce_only = futures
            && !engine.hedge_mode()
            && qty <= self.reducible(account.exposure(), id, side, terms.side);
        Ok(wire)
    }

    /// The quantity of a position that further orders of this side may still close.
    fn reducible(
        &self,
        exposure: windvane_model::risk::Exposure,
        instrument: InstrumentId,
        position_side: PositionSide,
        side: Side,
    ) -> i64 {
        let (buy, sell) = self.added_to(instrument, position_side);
        match side {
            Side::Sell => exposure.position - exposure.open_sell - sell,
            Side::Buy => -exposure.position - exposure.open_buy - buy,
        }
        .max(0)
    }

    pub(crate) fn added_to(
        &self,
        instrument: InstrumentId,
        position_side: PositionSide,
    ) -> (i64, i64) {
        self.added
            .iter()
            .find(|a| a.instrument == instrument && a.position_side == position_side)
            .map_or((0, 0), |a| (a.buy, a.sell))
    }

    /// The number of orders that the callback adds to the open orders of an instrument.
    pub(crate) fn orders_added_to(&self, instrument: InstrumentId) -> OpenOrders {
        let mut orders = OpenOrders::default();
        for added in self.added.iter().filter(|a| a.instrument == instrument) {
            orders.all += added.orders.all;
            orders.conditional += added.orders.conditional;
        }
        orders
    }

    fn add(&mut self, terms: &OrderTerms, qty: i64) {
        let (instrument, position_side) = (terms.instrument, terms.position_side);
        let known = self
            .added
            .iter()
            .position(|a| a.instrument == instrument && a.position_side == position_side);
        let index = known.unwrap_or_else(|| {
            self.added.push(Added {
                instrument,
                position_side,
                buy: 0,
                sell: 0,
                orders: OpenOrders::default(),
            });
            self.added.len() - 1
        });
        let added = &mut self.added[index];
        match terms.side {
            Side::Buy => added.buy += qty,
            Side::Sell => added.sell += qty,
        }
        added.orders.all += 1;
        added.orders.conditional += u32::from(terms.order_type.is_conditional());
    }

    /// Requests the cancel of one of the strategy's orders, which this callback may have submitted.
    ///
    /// # Errors
    /// Fails if the order does not belong to the strategy or is in a terminal state. Every other
    /// cancel passes.
    pub fn cancel(&mut self, engine: &Engine, order: OrderSeq) -> Result<(), Rejection> {
        let own = engine
            .order(order)
            .filter(|known| known.strategy == self.strategy);
        match own {
            Some(known) if known.state.is_final() => return Err(Rule::OrderFinal.plain()),
            Some(_) => {}
            None if self.submits(order) => {}
            None => return Err(Rule::UnknownOrder.plain()),
        }
        self.intents.push(Intent::Cancel { order });
        Ok(())
    }

    fn submits(&self, order: OrderSeq) -> bool {
        self.own_terms(order).is_some()
    }

    fn own_terms(&self, order: OrderSeq) -> Option<&OrderTerms> {
        self.intents.iter().find_map(|intent| match intent {
            Intent::Submit { order: seq, terms } if *seq == order => Some(terms),
            _ => None,
        })
    }

    /// Requests the cancel of all orders of the strategy, of one instrument or of all. Returns
    /// their number.
    pub fn cancel_all(&mut self, engine: &Engine, instrument: Option<InstrumentId>) -> u64 {
        let count = self.open_order_count(engine, instrument);
        if count > 0 {
            self.intents.push(Intent::CancelAll { instrument });
        }
        count
    }

    /// Sets a timer of the strategy.
    ///
    /// # Errors
    /// Fails if the strategy already has [`TIMERS_MAX`] timers.
    pub fn set_timer(&mut self, engine: &Engine, time: Time, token: i64) -> Result<(), Rejection> {
        let set = engine.timers_of(self.strategy)
            + self
                .intents
                .iter()
                .filter(|intent| matches!(intent, Intent::SetTimer { .. }))
                .count();
        if set >= TIMERS_MAX && !engine.has_timer(self.strategy, token) {
            return Err(Rule::TooManyTimers.with((set as u64 + 1).into(), TIMERS_MAX.into()));
        }
        self.intents.push(Intent::SetTimer { time, token });
        Ok(())
    }

    /// Cancels a timer.
    pub fn cancel_timer(&mut self, token: i64) {
        self.intents.push(Intent::CancelTimer { token });
    }

    /// The strategy's own position, including the open quantities of this callback.
    pub fn position(
        &self,
        engine: &Engine,
        instrument: InstrumentId,
        side: PositionSide,
    ) -> Option<PositionView> {
        let rules = engine.instrument(instrument)?;
        let holding =
            engine.ledgers().strategies[usize::from(self.strategy.0)].at(instrument, side);
        let position = &holding.position;
        let (buy, sell) = self.added_to(instrument, side);
        Some(PositionView {
            qty: position.qty,
            cost: position.cost,
            realized_pnl: position.realized_pnl,
            unrealized_pnl: engine
                .mark(instrument)
                .map_or(windvane_model::Amount::ZERO, |mark| {
                    position.unrealized_pnl(rules, mark.mark)
                }),
            fees: position.fees,
            open_buy: holding.open_buy + buy,
            open_sell: holding.open_sell + sell,
            entry_price: position.entry_price(rules),
        })
    }

    /// The number of the strategy's open orders, including those of this callback.
    pub fn open_order_count(&self, engine: &Engine, instrument: Option<InstrumentId>) -> u64 {
        self.open(engine, instrument).count() as u64
    }

    /// The strategy's open order at an index, oldest first.
    pub fn open_order(
        &self,
        engine: &Engine,
        instrument: Option<InstrumentId>,
        index: usize,
    ) -> Option<OrderSeq> {
        self.open(engine, instrument).nth(index)
    }

    fn open<'a>(
        &'a self,
        engine: &'a Engine,
        instrument: Option<InstrumentId>,
    ) -> impl Iterator<Item = OrderSeq> + 'a {
        let live = engine
            .orders()
            .of(self.strategy, instrument)
            .filter(|order| !order.state.is_final())
            .map(|order| order.seq);
        let own = self.intents.iter().filter_map(move |intent| match intent {
            Intent::Submit { order, terms }
                if instrument.is_none_or(|wanted| wanted == terms.instrument) =>
            {
                Some(*order)
            }
            _ => None,
        });
        live.chain(own)
    }

    /// An order of the strategy that is open, was submitted in this callback, or ended recently. So
    /// a strategy can look up the order of an update that it receives.
    pub fn order(&self, engine: &Engine, order: OrderSeq) -> Option<OrderView> {
        let canceled = self.intents.iter().any(|intent| match intent {
            Intent::Cancel { order: seq } => *seq == order,
            _ => false,
        });
        let view = match engine.known_order(order) {
            Some(known) if known.strategy == self.strategy => view_of(known),
            Some(_) => return None,
            None => view(OrderState::Submitted, self.own_terms(order)?, 0),
        };
        Some(OrderView {
            state: match view.state {
                state if state.is_final() || !canceled => state,
                _ => OrderState::CancelRequested,
            },
            ..view
        })
    }
}

fn view_of(order: &Order) -> OrderView {
    view(order.state, &order.terms, order.executed_qty)
}

fn view(state: OrderState, terms: &OrderTerms, executed_qty: i64) -> OrderView {
    OrderView {
        state,
        instrument: terms.instrument,
        side: terms.side,
        order_type: terms.order_type,
        price: terms.price.map_or(0, |price| price.0),
        stop_price: terms.stop_price.map_or(0, |price| price.0),
        qty: terms.qty.map_or(0, |qty| qty.0),
        executed_qty,
    }
}
