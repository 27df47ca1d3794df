//! Strategies' answers: the engine turns intents into orders, cancels and timers.

use windvane_model::effect::{Effect, Notice};
use windvane_model::event::Intent;
use windvane_model::ids::{ClientOrderId, InstrumentId, OrderSeq, StrategyId, Time};
use windvane_model::order::OrderTerms;
use windvane_model::order_state::{OrderMove, OrderState};
use windvane_model::orders::Order;
use windvane_model::planted;
use windvane_model::protocol::Request;
use windvane_model::run_state::KillSwitch;
use windvane_model::timer::Timer;
use windvane_supervision::blocks::code_of;

use super::Engine;
use super::replies::ASK_AFTER_MS;

impl Engine {
    /// Handles all intents of one callback. [`Callback`] checked them against this state. A replay
    /// reads the same intents from the journal.
    ///
    /// [`Callback`]: crate::callback::Callback
    pub(super) fn handle_answer(&mut self, strategy: StrategyId, intents: &[Intent]) {
        let Some(state) = self.strategies.get(usize::from(strategy.0)) else {
            return;
        };
        if state.fault.is_some() {
            return;
        }
        let record = self.recorder.last_record();
        if intents.iter().any(adds_exposure) {
            // Orders wait until the block with their intent is durable.
            self.recorder.seal();
        }
        for intent in intents {
            self.take_intent(strategy, record, intent);
        }
    }

    fn take_intent(&mut self, strategy: StrategyId, record: u64, intent: &Intent) {
        match *intent {
            Intent::Submit { order, terms } => {
                self.submit(strategy, record, order, terms);
            }
            Intent::Rejected { terms, rejection } => {
                // A strategy may name any number as its instrument.
                if let Some(rules) = self.instrument(terms.instrument) {
                    let code = code_of(Some(rules), rejection.rule);
                    self.note_withheld(&terms, rejection.rule);
                    // The venue may have relaxed the rule since the engine read it.
                    self.note_refusal(terms.instrument, code);
                }
                self.notices.push_back(Notice::Rejected {
                    time: self.now,
                    strategy,
                    terms,
                    rejection,
                });
            }
            // Cancels are ignored in two cases. At a stop that keeps orders, strategies also see
            // the stop and must not cancel those orders. While a strategy is being closed, its open
            // orders are the closing orders; its own orders were cancelled before.
            Intent::Cancel { .. } | Intent::CancelAll { .. }
                if self.keeps_orders() || self.is_flattening(strategy) => {}
            Intent::Cancel { order } => self.request_cancel(strategy, order),
            Intent::CancelAll { instrument } => {
                self.request_cancel_all(strategy, instrument);
            }
            Intent::SetTimer { time, token } => {
                // Without a shortest delay, a strategy that sets a timer in each timer event would
                // stop the clock.
                let time = self.timers.earliest(strategy, token, self.now, time);
                self.timers.set(time, Timer::Strategy { strategy, token });
            }
            Intent::CancelTimer { token } => {
                self.timers.cancel(Timer::Strategy { strategy, token });
            }
        }
    }

    pub(super) fn submit(
        &mut self,
        strategy: StrategyId,
        record: u64,
        seq: OrderSeq,
        terms: OrderTerms,
    ) {
        let reserved_qty = self.worst_qty(&terms);
        let now = self.now;
        let shares = self.strategies.len() > 1;
        let state = &mut self.strategies[usize::from(strategy.0)];
        let client_order_id = ClientOrderId::own(&state.config.name, self.epoch, seq);
        let is_shared = shares && self.limits.max_orders_per_minute.is_some();
        if is_shared || state.config.limits.max_orders_per_minute.is_some() {
            state.rate.count(now);
        }
        if self.limits.max_orders_per_minute.is_some() {
            self.rate.count(now);
        }
        self.next_order = OrderSeq(self.next_order.0.max(seq.0 + 1));
        let order = Order::new(seq, client_order_id, strategy, terms, now, reserved_qty);
        self.note_trial(&terms);
        self.count_open(&order);
        self.orders.insert(order);
        self.send_or_hold(seq, record);
    }

    /// Counts a new order, with the quantity that it may add to the position at worst.
    pub(super) fn count_open(&mut self, order: &Order) {
        let (terms, strategy) = (&order.terms, usize::from(order.strategy.0));
        self.strategies[strategy].open_orders += 1;
        let open = &mut self.open_orders[usize::from(terms.instrument.0)];
        open.all += 1;
        open.conditional += u32::from(terms.order_type.is_conditional());
        for ledger in [
            &mut self.ledgers.account,
            &mut self.ledgers.strategies[strategy],
        ] {
            ledger
                .at_mut(terms.instrument, terms.position_side)
                .reserve(terms.side, order.reserved_qty);
        }
    }

    pub(super) fn request_cancel(&mut self, strategy: StrategyId, seq: OrderSeq) {
        let now = self.now;
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        if order.strategy != strategy {
            return;
        }
        if order.held {
            self.take_back(seq, OrderMove::Cancel);
            return;
        }
        // The venue would refuse the same cancel again, as often as the strategy repeats it. The
        // engine queries the order first, and cancels it afterwards if it still rests.
        let asked_for = |refused: Time| now < refused.plus_ms(ASK_AFTER_MS);
        if !order.state.is_final() && order.cancel_refused.is_some_and(asked_for) {
            order.cancel_wanted = true;
            return;
        }
        let (instrument, is_final) = (order.instrument(), order.state.is_final());
        if !is_final && self.venue_wait(self.surface_of(instrument)).is_some() {
            if let Some(order) = self.orders.known_mut(seq) {
                order.cancel_wanted = true;
            }
            return;
        }
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        if !order.apply(OrderMove::RequestCancel) {
            return;
        }
        order.cancel_wanted = true;
        let request = Request::Cancel {
            instrument: order.instrument(),
            client_order_id: order.client_order_id,
        };
        self.emit(Effect::Send {
            record: 0,
            request: Box::new(request),
        });
        let is_stopped = self
            .orders
            .live(seq)
            .is_some_and(|order| self.is_stopped(order));
        if is_stopped && self.live.is_some() {
            // An order of a stopped strategy must not fill if a cancel can prevent it. The early
            // query notices a lost cancel.
            let timer = Timer::AskForOrder { order: seq };
            self.timers.set(now.plus_ms(ASK_AFTER_MS), timer);
        }
        if planted!(CancelIsDone) {
            self.move_order(seq, OrderMove::Cancel, OrderState::CancelRequested, false);
        }
    }

    pub(super) fn request_cancel_all(
        &mut self,
        strategy: StrategyId,
        instrument: Option<InstrumentId>,
    ) {
        let own: Vec<_> = self
            .orders
            .of(strategy, instrument)
            .map(|order| order.seq)
            .collect();
        for seq in own {
            self.request_cancel(strategy, seq);
        }
    }

    /// The quantity mantissa that an order may add to its side of the position at worst.
    ///
    /// A quote quantity is converted at the best ask, or at the last price without one, and rounded
    /// up. An order with `close_position` adds nothing.
    pub(crate) fn worst_qty(&self, terms: &OrderTerms) -> i64 {
        if let Some(qty) = terms.qty {
            return qty.0;
        }
        let Some(quote) = terms.quote_qty else {
            return 0;
        };
        let market = &self.markets[usize::from(terms.instrument.0)];
        let instrument = &self.instruments[usize::from(terms.instrument.0)];
        let price = match market.book.ask() {
            ask if ask.qty > 0 => ask.price,
            _ => market.last.unwrap_or(0),
        };
        let one = instrument.notional(price, 1).0.max(1);
        i64::try_from(quote.0 / one + 1).unwrap_or(i64::MAX / 4)
    }

    pub(super) const fn halted(&self) -> bool {
        matches!(self.kill_switch, KillSwitch::Halted)
    }
}

const fn adds_exposure(intent: &Intent) -> bool {
    matches!(intent, Intent::Submit { .. })
}
