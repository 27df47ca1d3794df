//! The venue's responses to requests, and the life of own orders.

use windvane_evidence::fills_from_totals::OrderTotals;
use windvane_evidence::lag::READ_LAG_MS;
use windvane_evidence::outside_closes::REDUCES_NOTHING;
use windvane_model::config::OnFault;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::{Adjustment, Cause, Effect, Notice};
use windvane_model::event::EventKind;
use windvane_model::ids::{ClientOrderId, InstrumentId, OrderSeq, StrategyId, Time};
use windvane_model::order::{OrderStatus, Side, Surface};
use windvane_model::order_state::{OrderMove, OrderState};
use windvane_model::orders::Order;
use windvane_model::planted;
use windvane_model::protocol::{OrderReport, OrderUpdate, Outcome, Reply, Request};
use windvane_model::run_state::KillSwitch;
use windvane_model::state_report::Subject;
use windvane_model::timer::Timer;

use super::{Engine, narrow};

/// Wait before an order with an unknown outcome is queried, or queried again.
pub(super) const ASK_AFTER_MS: i64 = 1_000;
/// Queries are sent this much later than more urgent requests after a wait that the venue demanded.
pub(super) const AFTER_WAIT_MS: i64 = 1;
/// A fill in the venue's totals that no event reported within this time was missed.
const MISSED_MS: i64 = 3_000;
/// The time after which the fill was missed if an event of the order already counts it: then only
/// an event that was overtaken can still report it.
const SKIPPED_MS: i64 = 250;
/// If the venue's list of the account's trades does not contain a missing fill, the engine reads it
/// at least this often, with growing pauses, and for as long as the list may be behind. After that,
/// it derives the fill from the order's totals.
const TRADE_READS_MIN: u32 = 5;
/// An order of this age that was cancelled or expired without a fill is no longer found
/// (docs/interface/orders.md#query-an-order).
const FORGOTTEN_MS: i64 = 7 * 24 * 60 * 60 * 1_000;
/// Codes of a query for an order that is not found: `NO_SUCH_ORDER`, and -2011 ("unknown order").
/// The documents do not name the code of this response (docs/interface/orders.md#query-an-order).
const NOT_FOUND: [i32; 2] = [-2013, -2011];
/// `INVALID_TIMESTAMP` (docs/interface/errors.md#10xx).
const INVALID_TIMESTAMP: i32 = -1021;

/// Whether the code of a refused query means that the order is not found.
fn is_absence(code: i32) -> bool {
    NOT_FOUND.contains(&code) && !(planted!(UnknownOrderUnread) && code != NOT_FOUND[0])
}

impl Engine {
    pub(super) fn handle_reply(&mut self, reply: &Reply) {
        if let Some(surface) = self.refused_for_its_time(reply) {
            self.degrade_for_clock(surface);
        }
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
            Reply::Read { subject, outcome } => self.handle_state_report(subject, outcome),
            Reply::Countdown {
                instrument,
                outcome,
            } => {
                self.note_countdown(*instrument, outcome);
                self.handle_countdown(*instrument, outcome);
            }
            Reply::Margins(reported) => {
                for terms in reported {
                    self.note_margin(terms, false);
                }
            }
            Reply::Stated(positions) => self.note_all_positions(positions),
            // The engine cancels by id, and never changes mode or leverage.
            Reply::CanceledAll { .. } | Reply::PositionMode { .. } | Reply::Leverage { .. } => {}
        }
    }

    /// The surface whose clock is wrong, if the reply is a refusal for the request's time.
    fn refused_for_its_time(&mut self, reply: &Reply) -> Option<Surface> {
        const fn code<T>(outcome: &Outcome<T>) -> Option<i32> {
            match outcome {
                Outcome::Refused(refusal) => Some(refusal.code),
                _ => None,
            }
        }
        let (code, instrument) = match reply {
            Reply::Placed {
                client_order_id,
                outcome,
            }
            | Reply::Canceled {
                client_order_id,
                outcome,
            }
            | Reply::Queried {
                client_order_id,
                outcome,
            } => {
                let code = code(outcome)?;
                let seq = self.known(client_order_id)?;
                (code, self.orders.known_mut(seq)?.instrument())
            }
            Reply::Countdown {
                instrument,
                outcome,
            } => (code(outcome)?, *instrument),
            Reply::Read { subject, outcome } => match subject {
                Subject::OpenOrders { surface }
                | Subject::Account { surface }
                | Subject::Rules { surface } => {
                    let is_time = code(outcome)? == INVALID_TIMESTAMP;
                    return is_time.then_some(*surface);
                }
                // This request has no timestamp.
                Subject::AssetPrice { .. } => return None,
                Subject::Income { .. } => {
                    let is_time = code(outcome)? == INVALID_TIMESTAMP;
                    return is_time.then_some(Surface::Futures);
                }
                Subject::Trades { instrument, .. }
                | Subject::ForcedOrders { instrument }
                | Subject::OutsideOrder { instrument, .. }
                | Subject::TradedOrder { instrument, .. }
                | Subject::NewestOrders { instrument } => (code(outcome)?, *instrument),
            },
            Reply::CanceledAll { .. }
            | Reply::PositionMode { .. }
            | Reply::Leverage { .. }
            | Reply::Margins(_)
            | Reply::Stated(_) => return None,
        };
        (code == INVALID_TIMESTAMP).then(|| self.surface_of(instrument))
    }

    /// The live or recently ended own order with exactly this id.
    pub(super) fn known(&self, id: &ClientOrderId) -> Option<OrderSeq> {
        let order = self.orders.own(id, self.epoch)?;
        Some(order.seq)
    }

    fn handle_placed(&mut self, id: &ClientOrderId, outcome: &Outcome<OrderReport>) {
        let Some(seq) = self.known(id) else { return };
        let now = self.now;
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let before = order.state;
        match outcome {
            Outcome::Done(report) => {
                order.confirmed = order.confirmed.or(Some(now));
                self.take_report(seq, report);
            }
            // The stream has already shown the order, so the refusal belongs to another copy of the
            // request. The order is queried.
            Outcome::Refused(_)
                if self.live.is_some() && order.is_confirmed() && !before.is_final() =>
            {
                self.ask_later(seq);
            }
            Outcome::Refused(refusal) => {
                let instrument = order.instrument();
                if REDUCES_NOTHING.contains(&refusal.code) {
                    self.note_refused_close(seq);
                }
                let Some(order) = self.orders.known_mut(seq) else {
                    return;
                };
                if before.after(OrderMove::Reject).is_some() {
                    order.refusal_code = refusal.code;
                    self.note_not_placed(seq, refusal);
                }
                self.move_order(seq, OrderMove::Reject, before, false);
                self.note_refusal(instrument, refusal.code);
            }
            Outcome::Unknown => {
                order.lost = order.lost.or(Some(now));
                let lost = order.clone();
                self.notices.push_back(Notice::Unknown {
                    time: now,
                    order: lost,
                });
                if planted!(ResendOnTimeout) {
                    let (strategy, terms) = (order.strategy, order.terms);
                    let record = self.recorder.last_record();
                    self.submit(strategy, record, self.next_order, terms);
                }
                if planted!(TimeoutIsRejected) {
                    self.move_order(seq, OrderMove::Reject, before, false);
                    return;
                }
                self.forget_exposure(seq);
                self.ask_later(seq);
                self.move_order(seq, OrderMove::OutcomeUnknown, before, false);
            }
        }
    }

    /// For the planted bugs under which orders with an unknown outcome reserve nothing.
    fn forget_exposure(&mut self, seq: OrderSeq) {
        let is_sell = |order: &Order| order.terms.side == Side::Sell;
        let sells = planted!(UnknownCountsBuysOnly) && self.orders.live(seq).is_some_and(is_sell);
        if sells || planted!(UnknownLeavesExposure) {
            self.release(seq, i64::MAX);
        }
    }

    fn handle_canceled(&mut self, id: &ClientOrderId, outcome: &Outcome<OrderReport>) {
        if self.note_cancel(id, outcome) {
            return;
        }
        let Some(seq) = self.known(id) else { return };
        let refused = self.live.as_ref().map(|_| self.now);
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let before = order.state;
        match outcome {
            Outcome::Done(report) => self.take_report(seq, report),
            Outcome::Refused(_) | Outcome::Unknown if planted!(CancelRefusedIsDone) => {
                self.move_order(seq, OrderMove::Cancel, before, false);
            }
            Outcome::Refused(_) | Outcome::Unknown => {
                order.cancel_refused = refused;
                // -2011: usually the order just filled. The stream or a query will report its end.
                // Until then it may still rest, and can be cancelled again.
                if !before.is_final() {
                    self.ask_later(seq);
                }
                self.move_order(seq, OrderMove::CancelRefused, before, false);
            }
        }
    }

    fn handle_queried(&mut self, id: &ClientOrderId, outcome: &Outcome<OrderReport>) {
        let Some(seq) = self.known(id) else { return };
        if let Some(order) = self.orders.known_mut(seq) {
            let code = match outcome {
                Outcome::Refused(refusal) => refusal.code,
                _ => 0,
            };
            order.queries.answered(is_absence(code));
        }
        match outcome {
            Outcome::Done(report) => {
                // The query is answered. The order is queried again only if a fill is missing or
                // the order must not rest.
                self.timers.cancel(Timer::AskForOrder { order: seq });
                self.take_report(seq, report);
                self.cancel_if_must_not_rest(seq);
            }
            Outcome::Refused(refusal) if is_absence(refusal.code) && self.live.is_some() => {
                self.handle_order_not_found(seq);
            }
            // A missing order alone decides nothing (`docs/promises.md#2-unknown-is-a-state`).
            Outcome::Refused(_) | Outcome::Unknown => {
                if self.orders.live(seq).is_some() {
                    self.ask_later(seq);
                }
            }
        }
    }

    /// Cancels an order that rests although it must not. Its cancel was requested and may have been
    /// lost, or the account or its strategy is halted, or its strategy is quarantined.
    pub(super) fn cancel_if_must_not_rest(&mut self, seq: OrderSeq) {
        let Some(order) = self.orders.live(seq) else {
            return;
        };
        let strategy = order.strategy;
        if order.state.is_final() || !self.must_not_rest(order) {
            return;
        }
        let is_unanswered = order.state == OrderState::CancelRequested;
        let (instrument, client_order_id) = (order.instrument(), order.client_order_id);
        self.ask_later(seq);
        if is_unanswered && self.venue_wait(self.surface_of(instrument)).is_none() {
            // The cancel is not answered yet, and the order was seen open: the cancel is sent again
            // at once.
            self.emit(Effect::Send {
                record: 0,
                request: Box::new(Request::Cancel {
                    instrument,
                    client_order_id,
                }),
            });
            return;
        }
        self.request_cancel(strategy, seq);
    }

    /// Whether an order must be cancelled if it still rests.
    pub(super) fn must_not_rest(&self, order: &Order) -> bool {
        order.cancel_wanted || self.is_stopped(order)
    }

    /// Whether the account or the strategy of an order was stopped, and the order with it.
    pub(super) fn is_stopped(&self, order: &Order) -> bool {
        let state = &self.strategies[usize::from(order.strategy.0)];
        let quarantined = state.fault.is_some() && state.config.on_fault != OnFault::Keep;
        let live = self.live.as_ref();
        let stopping = live.is_some_and(|live| live.stopping) && !self.keeps_orders();
        let halted = self.halted() || state.kill_switch == KillSwitch::Halted;
        halted || quarantined || stopping
    }

    /// Takes the venue's state of an order. Its fills arrive on the stream; until then, the order
    /// stays open for the missing quantity.
    pub(super) fn take_report(&mut self, seq: OrderSeq, report: &OrderReport) {
        if self.concerns_triggered_order(seq, report.order_id, report.executed_qty.0) {
            return;
        }
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        order.venue_order_id = Some(report.order_id);
        order.reported_qty = order.reported_qty.max(report.executed_qty.0);
        order.lost = None;
        let seen_again = order.denied.take().is_some();
        if report.status.is_final() {
            order.reported_final = Some(report.update_time);
        }
        let before = order.state;
        let mv = match report.status {
            OrderStatus::Canceled => OrderMove::Cancel,
            OrderStatus::Rejected => OrderMove::Reject,
            OrderStatus::Expired => OrderMove::Expire,
            OrderStatus::Filled if order.executed_qty >= order.reported_qty => OrderMove::FillAll,
            _ => OrderMove::Accept,
        };
        if mv != OrderMove::Reject {
            self.note_accepted(seq);
        }
        self.note_rejected(seq, mv, before);
        self.move_order(seq, mv, before, false);
        self.watch_for_missing_fill(seq, report);
        if seen_again {
            self.reconcile_after_denial(report.instrument);
        }
    }

    /// Handles totals of the venue that are ahead of the booked fills: the fills are in flight, or
    /// were missed.
    fn watch_for_missing_fill(&mut self, seq: OrderSeq, report: &OrderReport) {
        let now = self.now;
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        if order.reported_qty <= order.executed_qty {
            self.end_missing_fill(seq);
            return;
        }
        let since = *order.missing_since.get_or_insert(now);
        let (instrument, reads) = (order.instrument(), order.trade_reads);
        if self.live.is_some() && !self.wait_for_event(seq, report) {
            // Without a user stream, no event will report the fill.
            let on_its_way = self.stream_is_trusted(self.surface_of(instrument));
            let missed_ms = if on_its_way { MISSED_MS } else { 0 };
            if now >= since.plus_ms(missed_ms) {
                self.recover(seq, instrument, report);
                if reads > 0 {
                    self.degrade_for_missing_fill(seq);
                }
            }
        }
        let missing = |order: &&Order| order.reported_qty > order.executed_qty;
        if let Some(order) = self.orders.live(seq).filter(missing) {
            let pause_ms = ASK_AFTER_MS * i64::from(order.trade_reads.max(1));
            let timer = Timer::AskForOrder { order: seq };
            self.timers.set(now.plus_ms(pause_ms), timer);
        }
    }

    /// Handles an event of an order whose total exceeds the booked fills. Either the venue sends
    /// one event for several fills, or events overtake each other. The order is queried soon.
    pub(super) fn note_skipped_fill(&mut self, seq: OrderSeq, update: &OrderUpdate) {
        let (now, is_live) = (self.now, self.live.is_some());
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        if !is_live {
            return;
        }
        if order.reported_qty <= order.executed_qty {
            self.end_missing_fill(seq);
            return;
        }
        self.wait_for_skipped_fill(seq, update);
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let since = now.plus_ms(SKIPPED_MS - MISSED_MS);
        if order.missing_since.is_none_or(|known| since < known) {
            order.missing_since = Some(since);
            let timer = Timer::AskForOrder { order: seq };
            self.timers.set(now.plus_ms(SKIPPED_MS), timer);
        }
    }

    /// Handles an order with no missing fill any more: if the account is degraded because of it, it
    /// is compared at once.
    fn end_missing_fill(&mut self, seq: OrderSeq) {
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        order.trade_reads = 0;
        let (missing, instrument) = (order.missing_since.take(), order.instrument());
        if missing.is_none() {
            return;
        }
        let surface = self.surface_of(instrument);
        let reason = DegradedReason::Reconciliation(surface);
        if self
            .live
            .as_ref()
            .is_some_and(|live| live.is_degraded_for(&[reason]))
        {
            self.reconcile_soon(surface);
        }
    }

    /// Whether an own order executed more than is booked, for longer than events and queries need.
    pub(super) fn is_fill_overdue(&self, surface: Surface) -> bool {
        self.orders.iter().any(|order| {
            order.reported_qty > order.executed_qty
                && self.surface_of(order.instrument()) == surface
                && self.is_missing_too_long(order)
        })
    }

    fn is_missing_too_long(&self, order: &Order) -> bool {
        let overdue = |since: Time| self.now > since.plus_ms(MISSED_MS + SKIPPED_MS);
        order.missing_since.is_some_and(overdue)
    }

    /// Marks the account as not reconciled, because a fill is still missing after the order or the
    /// trades were read.
    pub(super) fn degrade_for_missing_fill(&mut self, seq: OrderSeq) {
        let missing = |order: &Order| order.reported_qty > order.executed_qty;
        let Some(order) = self.orders.known(seq).filter(|order| missing(order)) else {
            return;
        };
        let surface = self.surface_of(order.instrument());
        self.set_degraded(DegradedReason::Reconciliation(surface), true);
        self.update_state();
        self.reconcile_soon(surface);
    }

    /// Closes the gap of an order with the account's trades. If the venue does not list trades, or
    /// not this one, the engine books one fill for the difference of the totals, with an estimated
    /// fee.
    fn recover(&mut self, seq: OrderSeq, instrument: InstrumentId, report: &OrderReport) {
        let surface = self.surface_of(instrument);
        let serves_account_trades = self
            .connection_mut(surface)
            .is_some_and(|connection| !connection.no_trades);
        let now = self.now;
        let may_be_listed = |order: &Order| {
            let behind = order.missing_since.map(|since| since.plus_ms(READ_LAG_MS));
            order.trade_reads < TRADE_READS_MIN || behind.is_some_and(|until| now < until)
        };
        if let Some(order) = self.orders.known_mut(seq)
            && serves_account_trades
            && may_be_listed(order)
        {
            order.trade_reads += 1;
            self.read_trades(surface, instrument);
            return;
        }
        let stated = OrderTotals::of(report);
        self.derive_fill(seq, &stated);
    }

    /// Handles a report that the venue knows no such order. It proves that the order does not exist
    /// only if the query was sent late enough. A request that was sent before the outcome was lost
    /// must be too old to be accepted (`docs/promises.md#2-unknown-is-a-state`), and a query that
    /// is behind must show an order that arrived last. The response itself may be old when it
    /// arrives.
    fn handle_order_not_found(&mut self, seq: OrderSeq) {
        let now = self.now;
        let Some(absence_ms) = self.live.as_ref().map(|live| live.config.absence_ms) else {
            return;
        };
        // Times of an earlier process are counted by its clock until the venue's clock was read:
        // our clock may have been set forward since.
        let is_uncounted = self.orders.known(seq).is_some_and(|order| {
            let surface = self.surface_of(order.instrument());
            self.offsets_before.contains_key(&surface)
        });
        let Some(order) = self
            .orders
            .known_mut(seq)
            .filter(|order| !order.state.is_final())
        else {
            return;
        };
        // The query may be behind the response that confirmed the order.
        let is_young = now <= order.submitted.plus_ms(READ_LAG_MS);
        let forgets = order.reported_qty == 0 && now > order.submitted.plus_ms(FORGOTTEN_MS);
        if order.is_confirmed() && is_young && !planted!(YoungOrderDenied) {
            self.ask_later(seq);
            return;
        }
        if order.is_confirmed() && !forgets {
            self.handle_denial(seq);
            return;
        }
        let lost = *order.lost.get_or_insert(now);
        let over = lost.plus_ms(absence_ms).plus_ms(READ_LAG_MS);
        let is_over = !is_uncounted && order.queries.was_absent_at(over);
        if !is_over && !planted!(AbsenceIsRejected) {
            self.ask_later(seq);
            return;
        }
        // An order that the venue once confirmed is gone (cancelled without a fill, and old:
        // docs/interface/orders.md#query-an-order). An order that was never confirmed did not
        // arrive.
        let mv = if order.is_confirmed() {
            OrderMove::Cancel
        } else {
            OrderMove::Reject
        };
        let before = order.state;
        order.reported_qty = order.executed_qty;
        self.report_adjustment(Adjustment::Absent { order: seq }, Cause::Absence);
        self.move_order(seq, mv, before, false);
    }

    /// Marks an order as unknown: the dead man's switch may have cancelled it.
    pub(super) fn mark_unknown(&mut self, seq: OrderSeq) {
        let now = self.now;
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        order.lost = order.lost.or(Some(now));
        let before = order.state;
        self.forget_exposure(seq);
        self.move_order(seq, OrderMove::MayBeCanceled, before, false);
    }

    /// Moves an order along its state table, reports it to its strategy, and ends it once no fill
    /// is missing.
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
        let over = self.orders.live(seq).map(Order::is_settled);
        // The terminal event is delivered once, after all fills. A strategy that saw an end with
        // fewer fills would order the rest again.
        let tells = match over {
            Some(settled) if state.is_final() => settled,
            _ => moved && (state != before || filled),
        };
        if tells {
            self.deliver_order(seq, strategy);
        }
        if over == Some(true) {
            self.end_order(seq, strategy);
        }
    }

    pub(super) fn deliver_order(&mut self, seq: OrderSeq, strategy: StrategyId) {
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
        let is_end = order.is_settled();
        let event = self.event(EventKind::OrderUpdate, id, 0, fields, seq.0 as i64);
        if is_end {
            self.note_order_end(strategy, seq, event.sequence);
        }
        self.deliver(strategy, event);
    }

    /// Removes an ended order from the live orders and releases its reserved quantity.
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
        self.orders.end(seq, self.now);
        self.note_post_only_end(seq);
        self.notices.push_back(Notice::Ended {
            time: self.now,
            order,
        });
        self.continue_flattening(strategy);
    }

    /// Releases up to `qty` of an order's reserved quantity, in the account's and the strategy's
    /// ledger.
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

    pub(super) fn ask_later(&mut self, order: OrderSeq) {
        let timer = Timer::AskForOrder { order };
        self.timers.set(self.now.plus_ms(ASK_AFTER_MS), timer);
    }

    /// Queries an order by its client order id, repeatedly until a response shows what happened to
    /// it.
    pub(super) fn ask_for_order(&mut self, seq: OrderSeq) {
        let now = self.now;
        if self.orders.live(seq).is_none() {
            return;
        }
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        if order.queries.is_awaited(now) {
            self.ask_later(seq);
            return;
        }
        let instrument = order.instrument();
        if let Some(until) = self.venue_wait(self.surface_of(instrument)) {
            let timer = Timer::AskForOrder { order: seq };
            self.timers.set(until.plus_ms(AFTER_WAIT_MS), timer);
            return;
        }
        let order = self.orders.known(seq);
        if order.is_some_and(|order| self.is_missing_too_long(order)) {
            self.degrade_for_missing_fill(seq);
        }
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        order.queries.ask(now);
        let request = Request::Query {
            instrument: order.instrument(),
            client_order_id: order.client_order_id,
        };
        self.emit(Effect::Send {
            record: 0,
            request: Box::new(request),
        });
        self.ask_later(seq);
    }
}
