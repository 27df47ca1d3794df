//! Own orders that this process did not send. An own order was sent by a process of this data
//! folder, or of the folder before it was wiped. The engine recognizes it by the client order id
//! (`docs/promises.md#1-order-ids`).

use windvane_evidence::instances::OLDEST_S;
use windvane_model::decimal::Amount;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::{Effect, Notice};
use windvane_model::ids::{ClientOrderId, InstrumentId, OrderSeq, StrategyId};
use windvane_model::live::OnStart;
use windvane_model::order::{OrderTerms, Surface};
use windvane_model::orders::Order;
use windvane_model::planted;
use windvane_model::protocol::{OrderReport, OrderUpdate, Request};
use windvane_model::state_report::OpenOrder;
use windvane_model::timer::Timer;

use super::Engine;

impl Engine {
    /// The strategy whose name a client order id contains.
    fn strategy_of(&self, id: &ClientOrderId) -> Option<StrategyId> {
        let (name, ..) = id.parse_own()?;
        let place = self
            .strategies
            .iter()
            .position(|state| state.config.name.as_str() == name)?;
        Some(StrategyId(place as u16))
    }

    /// Whether an unknown client order id may belong to an own order. The order is either of an
    /// earlier epoch, or of this epoch and so old that the engine has forgotten it. An epoch many
    /// years old, or a number that belongs to another known order, means that another party uses
    /// ids of our form.
    pub(super) fn may_be_own(&mut self, id: &ClientOrderId) -> bool {
        let oldest = self.epoch.saturating_sub(OLDEST_S);
        match id.parse_own() {
            Some((_, epoch, seq)) if epoch == self.epoch => {
                let forgotten = seq < self.next_order && self.orders.known_mut(seq).is_none();
                forgotten && self.strategy_of(id).is_some()
            }
            Some((_, epoch, _)) => (oldest..self.epoch).contains(&epoch),
            None => false,
        }
    }

    /// Takes a resting order that the engine does not know, and returns whether it is an own order
    /// by its id.
    pub(super) fn adopt_open_order(&mut self, open: &OpenOrder) -> bool {
        let id = open.report.client_order_id;
        let surface = self.surface_of(open.report.instrument);
        if self.is_of_another(surface, &id) {
            return false;
        }
        if !self.may_be_own(&id)
            && !self.instances.was_adopted(surface, &id)
            && !planted!(CancelOthers)
        {
            return false;
        }
        match self.strategy_of(&id) {
            // The order's strategy is no longer configured: the order is cancelled
            // (`docs/promises.md#1-order-ids`).
            None => self.cancel_stray(open),
            Some(strategy) => {
                let seq = self.adopt(strategy, &open.report, open.terms);
                self.cancel_at_start(seq);
            }
        }
        true
    }

    /// Cancels an order of an earlier process if `on_start` requires it, or if it could close the
    /// position of another strategy, which this configuration may have added.
    pub(super) fn cancel_at_start(&mut self, seq: OrderSeq) {
        let on_start = self.live.as_ref().map(|live| live.config.on_start);
        let Some(order) = self.orders.live(seq) else {
            return;
        };
        let of_earlier = self.orders.foreign(&order.client_order_id).is_some();
        let strategy = order.strategy;
        let closes_all = order.terms.close_position;
        let closes_others = closes_all && self.is_shared(strategy, order.instrument());
        if of_earlier && (on_start == Some(OnStart::Cancel) || closes_others) {
            self.request_cancel(strategy, seq);
        }
        // If the journal was lost, a restored halt found no orders to cancel. They are cancelled
        // here.
        self.cancel_if_must_not_rest(seq);
    }

    /// Adopts an own order that the engine does not know from an event, in the state that the event
    /// reports.
    pub(super) fn adopt_update(&mut self, update: &OrderUpdate) -> Option<OrderSeq> {
        let id = update.client_order_id;
        self.check_event_for_instance(update);
        let surface = self.surface_of(update.instrument);
        if self.is_of_another(surface, &id) {
            return None;
        }
        let ours = self.may_be_own(&id) || self.instances.was_adopted(surface, &id);
        if self.live.is_none() || update.status.is_final() || !ours {
            return None;
        }
        let found = &self.external_trades[usize::from(update.instrument.0)];
        if (update.fill).is_some_and(|fill| found.contains(&fill.trade_id)) {
            return None;
        }
        let strategy = self.strategy_of(&id)?;
        Some(self.adopt(strategy, &update.report(), update.terms()))
    }

    /// Whether the account's initial state is still unknown: the venue's list of trades of this
    /// instrument was not read yet.
    fn is_initial_state_unknown(&mut self, instrument: InstrumentId) -> bool {
        let surface = self.surface_of(instrument);
        let serves_account_trades = self
            .connection_mut(surface)
            .is_some_and(|connection| !connection.no_trades);
        serves_account_trades && self.verified_trades[usize::from(instrument.0)].is_none()
    }

    /// Adopts an order. Its earlier fills belong to the account's initial state. Fills that were
    /// counted as an outside party's stay counted so.
    fn adopt(&mut self, strategy: StrategyId, report: &OrderReport, terms: OrderTerms) -> OrderSeq {
        let seq = self.next_order;
        self.next_order = OrderSeq(seq.0 + 1);
        let worst = self.worst_qty(&terms);
        // The venue's totals cover the first fills, and the counted outside fills may be the last
        // ones. While the initial state is unknown, the totals count as part of it.
        let (found_qty, found_quote) = if self.is_initial_state_unknown(terms.instrument) {
            (report.executed_qty.0, report.cum_quote)
        } else {
            (0, Amount::ZERO)
        };
        let (counted_qty, counted_quote) = self.forced.counted((terms.instrument, report.order_id));
        let executed_qty = report.executed_qty.0.max(found_qty + counted_qty);
        let left = worst.saturating_sub(executed_qty).max(0);
        let mut order = Order::new(seq, report.client_order_id, strategy, terms, self.now, left);
        order.executed_qty = executed_qty;
        order.reported_qty = executed_qty;
        order.cum_quote = report.cum_quote.max(found_quote + counted_quote);
        order.recovered_qty = found_qty;
        order.derived_qty = found_qty;
        order.on_stream = true;
        if let Some((_, epoch, seq)) = report.client_order_id.parse_own() {
            self.degrade_for_unknown_order(epoch, seq);
        }
        self.count_open(&order);
        self.orders.insert_foreign(order);
        self.take_report(seq, report);
        if self.surface_of(terms.instrument) == Surface::Futures {
            // The order may rest without a countdown.
            let instrument = terms.instrument;
            self.timers.set(self.now, Timer::Renew { instrument });
        }
        if let Some(order) = self.orders.live(seq) {
            let order = order.clone();
            self.notices.push_back(Notice::Adopted {
                time: self.now,
                order,
            });
        }
        seq
    }

    /// Sets `Ownership` if a later process placed this order: the number is beyond all that the
    /// journal knows of. Every order is recorded durably before it is sent, so the journal is an
    /// older copy. Such a journal cannot tell which strategy owns the positions.
    pub(super) fn degrade_for_unknown_order(&mut self, epoch: u64, seq: OrderSeq) {
        let is_later = self
            .first_unknown_order
            .is_some_and(|first| (epoch, seq) >= first);
        if is_later && epoch < self.epoch {
            self.set_degraded(DegradedReason::Ownership, true);
        }
    }

    fn cancel_stray(&mut self, open: &OpenOrder) {
        self.notices.push_back(Notice::Stray {
            time: self.now,
            report: open.report,
        });
        self.emit(Effect::Send {
            record: 0,
            request: Box::new(Request::Cancel {
                instrument: open.report.instrument,
                client_order_id: open.report.client_order_id,
            }),
        });
    }
}
