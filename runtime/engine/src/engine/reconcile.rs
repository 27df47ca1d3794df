//! Reconciliation: compares the venue's responses with the books
//! (`docs/promises.md#3-the-venue-is-the-authority`).
//!
//! A round requests the open orders, then account trades where some may have been missed
//! (`trades`), then the account (`comparison`). If a balance moved without a known cause, it also
//! requests the income history (`income`). A difference in the account counts after two snapshots
//! that agree, with no user event from the first request to the last response: events that are
//! still in flight explain some differences. For the other differences, the engine accepts the
//! snapshot: it books the venue's values.

use std::collections::VecDeque;

use windvane_evidence::connection::{OF_ANY_ROUTE, RETRY_MS, ResponseMatch, Round, RoundStep};
use windvane_model::effect::{Effect, Notice};
use windvane_model::ids::{InstrumentId, OrderSeq, Time, TradeId};
use windvane_model::order::Surface;
use windvane_model::order_state::OrderMove;
use windvane_model::planted;
use windvane_model::protocol::{Outcome, Request};
use windvane_model::state_report::{AccountSnapshot, OpenOrder, StateReport, Subject};
use windvane_model::timer::Timer;

use super::Engine;
use super::replies::AFTER_WAIT_MS;

/// Without a user stream, only rounds show what happens: this is the longest time between them.
const BLIND_MS: i64 = 5_000;

/// Refusals about the key. A key may be limited to some routes
/// (docs/interface/conventions.md#security-labels).
const OF_THE_KEY: [i32; 2] = [-1002, -2015];
/// After this many failures, a refusal about the key means that the key has no right to the route.
const KEY_TRIES: u32 = 3;

impl Engine {
    /// Begins a round, or restarts the running one.
    pub(super) fn begin_round(&mut self, surface: Surface) {
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        connection.give_up_round();
        connection.round.step = RoundStep::Orders;
        self.ask_next(surface);
    }

    /// Handles the reconciliation timer of a surface: begins the next round, or tries again.
    pub(super) fn reconcile(&mut self, surface: Surface) {
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        match connection.round.step {
            RoundStep::Idle => self.begin_round(surface),
            _ => self.ask_next(surface),
        }
    }

    /// Repeats requests that were not answered at all.
    pub(super) fn retry_round(&mut self, surface: Surface) {
        let now = self.now;
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        if connection.drop_overdue(now) {
            self.ask_next(surface);
        }
    }

    pub(super) fn ask_next(&mut self, surface: Surface) {
        let now = self.now;
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        if connection.round.is_asked() {
            return;
        }
        if let Some(until) = self.venue_wait(surface) {
            let timer = Timer::Reconcile { surface };
            self.timers.set(until.plus_ms(AFTER_WAIT_MS), timer);
            return;
        }
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        match &connection.round.step {
            RoundStep::Trades(left) if left.is_empty() => {
                connection.round.step = RoundStep::Account;
            }
            RoundStep::Fees(left) if left.is_empty() && connection.round.is_of_fees() => {
                connection.round = Round::default();
                self.plan_round(surface, None);
                return;
            }
            RoundStep::Fees(left) if left.is_empty() => connection.round.step = RoundStep::Account,
            _ => {}
        }
        let subject = match &connection.round.step {
            RoundStep::Idle => return,
            RoundStep::Orders => Subject::OpenOrders { surface },
            RoundStep::Account => Subject::Account { surface },
            RoundStep::Income => self.incomes.subject(),
            RoundStep::Trades(left) => {
                let instrument = left.front().copied().unwrap_or_default();
                let verified = self.verified_trade(instrument);
                Subject::Trades {
                    instrument,
                    from: verified.map(|id| TradeId(id.0 + 1)),
                }
            }
            RoundStep::Fees(left) => {
                let instrument = left.front().copied().unwrap_or_default();
                let from = self.evidence().first_late_fee(instrument);
                Subject::Trades { instrument, from }
            }
        };
        if self
            .connection_mut(surface)
            .is_some_and(|connection| !connection.ask(subject, now))
        {
            return;
        }
        self.emit(Effect::Send {
            record: 0,
            request: Box::new(Request::Read(subject)),
        });
    }

    pub(super) fn handle_state_report(
        &mut self,
        subject: &Subject,
        outcome: &Outcome<StateReport>,
    ) {
        let surface = match subject {
            Subject::OpenOrders { surface } | Subject::Account { surface } => *surface,
            Subject::Trades { instrument, .. } => match self.instrument(*instrument) {
                Some(instrument) => instrument.surface,
                None => return,
            },
            Subject::Income { .. } => Surface::Futures,
            // This request belongs to no round.
            Subject::ForcedOrders { instrument } => {
                self.take_forced_orders(*instrument, outcome);
                return;
            }
            Subject::Rules { surface } => {
                self.take_rules_response(*surface, outcome);
                return;
            }
            Subject::OutsideOrder {
                instrument,
                order_id,
            } => {
                self.take_outside_order(*instrument, *order_id, outcome);
                return;
            }
            Subject::TradedOrder {
                instrument,
                order_id,
            } => {
                self.take_traded_order(*instrument, *order_id, outcome);
                return;
            }
            Subject::NewestOrders { instrument } => {
                self.take_newest_orders(*instrument, outcome);
                return;
            }
            Subject::AssetPrice { asset, .. } => {
                self.take_asset_price(*asset, outcome);
                return;
            }
        };
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        match connection.take_answer(subject) {
            ResponseMatch::AbandonedRound => {
                self.ask_next(surface);
                return;
            }
            ResponseMatch::NotRequested => return,
            ResponseMatch::RunningRound => {}
        }
        match outcome {
            Outcome::Done(state_report) => {
                connection.round.succeed();
                self.take_state_report(surface, subject, state_report);
            }
            Outcome::Refused(refusal)
                if matches!(subject, Subject::Trades { .. })
                    && (!OF_ANY_ROUTE.contains(&refusal.code)
                        || (OF_THE_KEY.contains(&refusal.code)
                            && connection.round.failures() >= KEY_TRIES)) =>
            {
                // The venue has no such route for this key: the engine queries orders one by one
                // instead.
                connection.round.succeed();
                connection.no_trades = true;
                connection.round.step = RoundStep::Account;
                self.list_orders_for_trades(surface);
                self.settle_account_event(surface);
                self.ask_next(surface);
            }
            Outcome::Refused(refusal)
                if matches!(subject, Subject::Income { .. })
                    && !OF_ANY_ROUTE.contains(&refusal.code) =>
            {
                self.handle_missing_income(surface, true);
                self.ask_next(surface);
            }
            Outcome::Refused(_) | Outcome::Unknown => {
                let wait_ms = connection.round.fail();
                if matches!(subject, Subject::Income { .. }) {
                    self.handle_missing_income(surface, false);
                }
                self.reconcile_later(surface, wait_ms);
            }
        }
    }

    fn take_state_report(
        &mut self,
        surface: Surface,
        subject: &Subject,
        state_report: &StateReport,
    ) {
        match (subject, state_report) {
            (Subject::OpenOrders { .. }, StateReport::OpenOrders(open)) => {
                self.take_open_orders(surface, open);
                self.plan_trades(surface);
                self.ask_next(surface);
            }
            (Subject::Trades { instrument, .. }, StateReport::Trades { trades, more }) => {
                let step = self
                    .connection_mut(surface)
                    .map(|connection| &connection.round.step);
                if matches!(step, Some(RoundStep::Fees(_))) {
                    self.take_fee_trades(*instrument, trades, *more);
                } else {
                    self.take_trades(surface, *instrument, trades, *more);
                }
            }
            (Subject::Account { .. }, StateReport::Account(account)) => {
                let orders_asked = self.orders_requested_at(surface);
                self.take_account(surface, account);
                self.handle_account_read(surface, orders_asked);
            }
            (Subject::Income { .. }, StateReport::Income { entries, more }) => {
                self.take_income(surface, entries, *more);
            }
            // The response belongs to another request, which is a bug of the driver: the round
            // tries again.
            _ => self.reconcile_later(surface, RETRY_MS.1),
        }
    }

    /// Starts the next round now, unless one runs.
    pub(super) fn reconcile_soon(&mut self, surface: Surface) {
        let now = self.now;
        let connection = self.connection_mut(surface);
        if connection.is_some_and(|connection| {
            connection.stream_up && matches!(connection.round.step, RoundStep::Idle)
        }) {
            self.timers.set(now, Timer::Reconcile { surface });
        }
    }

    /// When the running round requested open orders.
    pub(super) fn orders_requested_at(&mut self, surface: Surface) -> Option<Time> {
        self.connection_mut(surface)?.round.orders_asked
    }

    pub(super) fn reconcile_later(&mut self, surface: Surface, wait_ms: i64) {
        let at = self.now.plus_ms(wait_ms);
        self.timers.set(at, Timer::Reconcile { surface });
    }

    /// Updates own orders by the list of open orders. Listed orders take the listed state; the
    /// engine queries each order that is not listed.
    fn take_open_orders(&mut self, surface: Surface, open: &[OpenOrder]) {
        self.check_orders_for_instance(surface, open);
        let mut external = Vec::new();
        for order in open {
            if !self.take_open_order(order) {
                external.push(*order);
            }
        }
        self.list_external_orders(surface, external);
        let listed = |id| open.iter().any(|order| order.report.client_order_id == id);
        let missing: Vec<OrderSeq> = self
            .orders
            .iter()
            .filter(|order| {
                self.surface_of(order.instrument()) == surface
                    && !order.held
                    && !listed(order.client_order_id)
            })
            .map(|order| order.seq)
            .collect();
        for seq in missing {
            if planted!(WipeOnMissing) {
                self.end_unlisted(seq);
            }
            let order = self.orders.known_mut(seq);
            if let Some(denied) = order.and_then(|order| order.denied.as_mut()) {
                denied.unlisted += 1;
            }
            if !planted!(MissingNotAsked) {
                self.ask_for_order(seq);
            }
        }
    }

    /// For the planted bug under which unlisted orders count as ended.
    fn end_unlisted(&mut self, seq: OrderSeq) {
        if let Some(order) = self.orders.live(seq) {
            let before = order.state;
            self.move_order(seq, OrderMove::Cancel, before, false);
        }
    }

    /// Adopts resting orders that were listed while they counted as those of another instance.
    pub(super) fn adopt_listed(&mut self) {
        for order in self.external_orders.take_all() {
            if !self.take_open_order(&order) {
                self.external_orders.insert(order);
            }
        }
    }

    /// Updates an order by its entry in the list, and returns whether it is an own order.
    fn take_open_order(&mut self, open: &OpenOrder) -> bool {
        let id = open.report.client_order_id;
        if usize::from(open.report.instrument.0) >= self.instruments.len() {
            return true;
        }
        match self.known(&id) {
            Some(seq) if self.orders.live(seq).is_some() => {
                self.take_report(seq, &open.report);
                self.cancel_at_start(seq);
            }
            Some(seq) => self.revive_listed(seq, open),
            None => return self.adopt_open_order(open),
        }
        true
    }

    pub(super) fn instruments_of(&self, surface: Surface) -> VecDeque<InstrumentId> {
        let ids = (0..self.instruments.len()).map(|index| InstrumentId(index as u16));
        ids.filter(|id| self.surface_of(*id) == surface).collect()
    }

    /// Ends a round that left nothing unexplained. The result is as old as the request for open
    /// orders; a round about trades only does not renew it.
    pub(super) fn end_round(&mut self, surface: Surface) {
        self.end_round_with(surface, true);
    }

    /// Ends a round whose snapshot shows an earlier state of the account: nothing newer was
    /// compared.
    pub(super) fn end_round_with_stale_snapshot(
        &mut self,
        surface: Surface,
        account: &AccountSnapshot,
    ) {
        if self.evidence().was_true_since_connect(surface, account) {
            self.clear_lost_events(surface);
        }
        self.end_round_with(surface, false);
    }

    fn end_round_with(&mut self, surface: Surface, is_compared: bool) {
        if is_compared {
            self.clear_lost_events(surface);
        }
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        let whole = std::mem::take(&mut connection.round).orders_asked;
        self.plan_round(surface, whole);
        self.settle_account_event(surface);
        self.drop_account_event(surface, whole);
        self.notify_round(surface, true);
        if let Some(asked) = whole {
            self.handle_clean_round(surface);
            self.request_orders_of_outside_closes(surface, asked, is_compared);
            self.settle_outside_closes(surface);
        }
        if surface == Surface::Spot && is_compared {
            self.review_coins();
        }
    }

    /// Sets when the next round begins. `whole` is when the ended round requested open orders;
    /// `None` if it did not.
    fn plan_round(&mut self, surface: Surface, whole: Option<Time>) {
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        let (reconcile_ms, is_unexplained) =
            (live.config.reconcile_ms, live.is_unexplained(surface));
        let Some(connection) = live.connections.get_mut(&surface) else {
            return;
        };
        connection.last_clean_round = whole.or(connection.last_clean_round);
        let most_ms = if connection.stream_up {
            i64::MAX
        } else {
            BLIND_MS
        };
        let reconcile_ms = reconcile_ms.min(most_ms);
        let due = match connection.last_clean_round {
            _ if whole.is_none() && is_unexplained => now,
            asked => asked.unwrap_or(now).plus_ms(reconcile_ms).max(now),
        };
        let due = self
            .lost_events_end(surface)
            .map_or(due, |ends| due.min(ends.max(now)));
        if !planted!(ForgetToReconcile) {
            self.timers.set(due, Timer::Reconcile { surface });
        }
    }

    pub(super) fn notify_round(&mut self, surface: Surface, clean: bool) {
        self.notices.push_back(Notice::Reconciled {
            time: self.now,
            surface,
            clean,
        });
    }
}
