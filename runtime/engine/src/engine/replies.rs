//! The venue's answers to requests, and the life of own orders.

use crate::config::OnFault;
use crate::effect::{Effect, Notice};
use crate::event::EventKind;
use crate::ids::{ClientOrderId, OrderSeq, StrategyId};
use crate::order::OrderStatus;
use crate::order_state::{OrderMove, OrderState};
use crate::protocol::{OrderReport, Outcome, Reply, Request};
use crate::timer::Timer;

use super::{Engine, narrow};

/// How long to wait before an order of unknown outcome is asked for (again).
const ASK_AFTER_MS: i64 = 1_000;

impl Engine {
    pub(super) fn handle_reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Placed {
                client_order_id,
                outcome,
            } => self.handle_placed(client_order_id, outcome),
            Reply::Canceled {
                client_order_id,
                outcome,
            } => self.handle_canceled(client_order_id, outcome),
            Reply::Queried {
                client_order_id,
                outcome,
            } => self.handle_queried(client_order_id, outcome),
            // The engine cancels by id and leaves mode and leverage alone; countdowns belong to
            // the dead man of live trading.
            Reply::CanceledAll { .. }
            | Reply::Countdown { .. }
            | Reply::PositionMode { .. }
            | Reply::Leverage { .. } => {}
        }
    }

    /// The own order with exactly this id, live or lately ended.
    fn known(&mut self, id: &ClientOrderId) -> Option<OrderSeq> {
        let (_, _, seq) = id.parse_own()?;
        let order = self.orders.known_mut(seq)?;
        (order.client_order_id == *id).then_some(seq)
    }

    fn handle_placed(&mut self, id: &ClientOrderId, outcome: &Outcome<OrderReport>) {
        let Some(seq) = self.known(id) else { return };
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let before = order.state;
        match outcome {
            Outcome::Done(report) => self.take_report(seq, report),
            Outcome::Refused(refusal) => {
                if before.after(OrderMove::Reject).is_some() {
                    order.refusal_code = refusal.code;
                }
                self.move_order(seq, OrderMove::Reject, before, false);
            }
            Outcome::Unknown => {
                self.ask_later(seq);
                self.move_order(seq, OrderMove::LoseTrack, before, false);
            }
        }
    }

    fn handle_canceled(&mut self, id: &ClientOrderId, outcome: &Outcome<OrderReport>) {
        let Some(seq) = self.known(id) else { return };
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let before = order.state;
        match outcome {
            Outcome::Done(report) => self.take_report(seq, report),
            Outcome::Refused(_) | Outcome::Unknown => {
                // -2011: most often it just filled. Its end is learned from the stream or asked
                // for; until then it may rest on, and can be cancelled again.
                if !before.is_final() {
                    self.ask_later(seq);
                }
                self.move_order(seq, OrderMove::CancelRefused, before, false);
            }
        }
    }

    fn handle_queried(&mut self, id: &ClientOrderId, outcome: &Outcome<OrderReport>) {
        let Some(seq) = self.known(id) else { return };
        match outcome {
            Outcome::Done(report) => {
                self.take_report(seq, report);
                self.cancel_what_must_not_rest(seq);
            }
            // Absence alone settles nothing (promise 2).
            Outcome::Refused(_) | Outcome::Unknown => {
                if self.orders.live(seq).is_some() {
                    self.ask_later(seq);
                }
            }
        }
    }

    /// A cancel may have been lost on its way: while the account is halted, or its strategy in
    /// quarantine, an order that rests is cancelled again.
    fn cancel_what_must_not_rest(&mut self, seq: OrderSeq) {
        let Some(order) = self.orders.live(seq) else {
            return;
        };
        let strategy = order.strategy;
        let state = &self.strategies[usize::from(strategy.0)];
        let quarantined = state.fault.is_some() && state.config.on_fault != OnFault::Keep;
        if order.state.is_final() || !(self.halted() || quarantined) {
            return;
        }
        let record = self.recorder.last_record();
        self.recorder.seal();
        self.request_cancel(strategy, record, seq);
    }

    /// Takes the venue's state of an order. Its fills come with the stream; until they have, the
    /// order stays open for what is missing.
    fn take_report(&mut self, seq: OrderSeq, report: &OrderReport) {
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        order.venue_order_id = Some(report.order_id);
        order.reported_qty = order.reported_qty.max(report.executed_qty.0);
        let before = order.state;
        let mv = match report.status {
            OrderStatus::Canceled => OrderMove::Cancel,
            OrderStatus::Rejected => OrderMove::Reject,
            OrderStatus::Expired => OrderMove::Expire,
            OrderStatus::Filled if order.executed_qty >= order.reported_qty => OrderMove::FillAll,
            _ => OrderMove::Accept,
        };
        self.move_order(seq, mv, before, false);
        let missing = |order: &crate::orders::Order| order.reported_qty > order.executed_qty;
        if self.orders.live(seq).is_some_and(missing) {
            self.ask_later(seq);
        }
    }

    /// Moves an order along its table, tells its strategy, and ends it once nothing is missing.
    pub(super) fn move_order(
        &mut self,
        seq: OrderSeq,
        mv: OrderMove,
        before: OrderState,
        filled: bool,
    ) {
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let moved = order.apply(mv);
        let (state, strategy) = (order.state, order.strategy);
        if moved && (state != before || filled) {
            self.tell_order(seq, strategy);
        }
        let settled = self.orders.live(seq).is_some_and(|order| {
            order.state.is_final() && order.executed_qty >= order.reported_qty
        });
        if settled {
            self.end_order(seq, strategy);
        }
    }

    fn tell_order(&mut self, seq: OrderSeq, strategy: StrategyId) {
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let id = order.instrument();
        let average = order.average_price(&self.instruments[usize::from(id.0)]);
        let fields = [
            order.state as i64,
            order.executed_qty,
            order.remaining_qty(),
            average.map_or(0, narrow),
            i64::from(order.refusal_code),
            0,
        ];
        let event = self.event(EventKind::OrderUpdate, id, 0, fields, seq.0 as i64);
        self.deliver(strategy, event);
    }

    /// Takes an order off the books: what it reserved is free again.
    fn end_order(&mut self, seq: OrderSeq, strategy: StrategyId) {
        self.release(seq, i64::MAX);
        let Some(order) = self.orders.live(seq) else {
            return;
        };
        let order = order.clone();
        let open = &mut self.open_orders[usize::from(order.instrument().0)];
        open.all -= 1;
        open.conditional -= u32::from(order.terms.order_type.is_conditional());
        self.strategies[usize::from(strategy.0)].open_orders -= 1;
        self.timers.cancel(Timer::AskForOrder { order: seq });
        self.orders.end(seq);
        self.notices.push_back(Notice::Ended {
            time: self.now,
            order,
        });
        self.continue_flattening(strategy);
    }

    /// Frees up to `qty` of what an order reserved, in the account's and the strategy's ledger.
    pub(super) fn release(&mut self, seq: OrderSeq, qty: i64) {
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let freed = qty.min(order.reserved_qty);
        order.reserved_qty -= freed;
        let (id, terms, strategy) = (order.instrument(), order.terms, order.strategy);
        for ledger in [
            &mut self.ledgers.account,
            &mut self.ledgers.strategies[usize::from(strategy.0)],
        ] {
            ledger
                .at_mut(id, terms.position_side)
                .reserve(terms.side, -freed);
        }
    }

    fn ask_later(&mut self, order: OrderSeq) {
        let timer = Timer::AskForOrder { order };
        self.timers.set(self.now.plus_ms(ASK_AFTER_MS), timer);
    }

    /// Asks the venue for an order by its client order id, until it is settled.
    pub(super) fn ask_for_order(&mut self, seq: OrderSeq) {
        let Some(order) = self.orders.live(seq) else {
            return;
        };
        let request = Request::Query {
            instrument: order.instrument(),
            client_order_id: order.client_order_id,
        };
        let record = self.recorder.last_record();
        self.emit(Effect::Send {
            record,
            request: Box::new(request),
        });
        self.ask_later(seq);
    }
}
