//! The venue contradicts itself about an own order: it denies an order that it had confirmed, or
//! shows an order that had ended in the books. The engine does not book such a report at
//! once. It keeps counting a denied order and queries it. It takes an ended order that is shown open
//! back into the live orders (`docs/promises.md#2-unknown-is-a-state` and
//! `#3-the-venue-is-the-authority`).

use windvane_evidence::lag::READ_LAG_MS;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::{Adjustment, Cause, Notice};
use windvane_model::ids::{InstrumentId, OrderSeq, Time};
use windvane_model::order::Surface;
use windvane_model::order_state::{OrderMove, OrderState};
use windvane_model::orders::{Denied, Order};
use windvane_model::planted;
use windvane_model::protocol::OrderUpdate;
use windvane_model::state_report::OpenOrder;
use windvane_model::timer::Timer;

use super::Engine;
use super::live_run::LiveRun;
use super::triggers::shows_successor;

/// A confirmed order counts as ended once every query and every list has denied it for this long.
const DENIED_MS: i64 = 600_000;
/// The time of denials after which an order counts as ended during startup, which waits for this
/// order alone and has no evidence against the denial yet. It is short so that a start on a venue
/// that was reset does not wait for long. If the order is shown later, the engine takes it back.
const DENIED_AT_START_MS: i64 = 60_000;

impl Engine {
    /// The venue reports that an order which it had confirmed does not exist. According to its
    /// documents, the venue does not forget such young orders, so another server of the venue may
    /// be behind. The order stays open with state unknown, and the engine queries it with growing
    /// pauses. It counts as ended only after ten minutes of contact ([`DENIED_MS`]) in which every
    /// query and every list denied it.
    pub(super) fn handle_denial(&mut self, seq: OrderSeq) {
        let now = self.now;
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let (before, instrument) = (order.state, order.instrument());
        match &mut order.denied {
            Some(denied) => denied.again(now),
            None => order.denied = Some(Denied::first(now)),
        }
        let Some(denied) = order.denied else { return };
        let is_syncing = self.live.as_ref().is_some_and(LiveRun::is_syncing);
        let patience_ms = if is_syncing {
            DENIED_AT_START_MS
        } else {
            DENIED_MS
        };
        if denied.is_conclusive_after(patience_ms) {
            order.reported_qty = order.executed_qty;
            self.report_adjustment(Adjustment::Absent { order: seq }, Cause::Denial);
            self.move_order(seq, OrderMove::Expire, before, false);
            self.reconcile_after_denial(instrument);
            return;
        }
        let timer = Timer::AskForOrder { order: seq };
        self.timers.set(now.plus_ms(denied.pause_ms()), timer);
        if denied.times != 2 {
            return;
        }
        let order = order.clone();
        self.notices.push_back(Notice::Denied { time: now, order });
        self.move_order(seq, OrderMove::MayBeCanceled, before, false);
        let surface = self.surface_of(instrument);
        self.set_degraded(DegradedReason::Reconciliation(surface), true);
        self.update_state();
    }

    /// Whether the venue denies an order of this surface that it had confirmed.
    pub(super) fn has_denied_order(&self, surface: Surface) -> bool {
        self.orders.iter().any(|order| {
            let denied = order.denied.is_some_and(|denied| denied.times > 1);
            denied && self.surface_of(order.instrument()) == surface
        })
    }

    /// When no order is denied any more, nothing is left unexplained: the next round will confirm
    /// it.
    pub(super) fn reconcile_after_denial(&mut self, instrument: InstrumentId) {
        let surface = self.surface_of(instrument);
        if !self.has_denied_order(surface) {
            self.reconcile_soon(surface);
        }
    }

    /// Handles an order that had ended in the books and that a list shows as resting. A list may be
    /// behind the stream, and may contain orders that ended a moment ago. Only a list that was
    /// requested long enough after the end is evidence.
    pub(super) fn revive_listed(&mut self, seq: OrderSeq, open: &OpenOrder) {
        let surface = self.surface_of(open.report.instrument);
        let Some(asked) = self.orders_requested_at(surface) else {
            return;
        };
        let offset_ns = self.clock_offset_ns(surface);
        let asked_by_venue = offset_ns.map(|offset_ns| Time(asked.0.saturating_add(offset_ns)));
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let lag_ms = if planted!(OldListBelieved) {
            0
        } else {
            READ_LAG_MS
        };
        // Checked by both clocks: ours may have been set forward since, with a restart in between.
        let ended_before = order.ended.is_none_or(|at| asked > at.plus_ms(lag_ms))
            && (order.reported_final)
                .is_none_or(|at| asked_by_venue.is_some_and(|asked| asked > at.plus_ms(lag_ms)));
        if open.report.status.is_final() {
            return;
        }
        if may_live(order) && ended_before {
            self.revive(seq, Cause::Reconciliation);
            self.take_report(seq, &open.report);
            self.cancel_at_start(seq);
        }
    }

    /// Handles an event that shows an ended order as open. The engine takes the order back in three
    /// cases: the event is newer than the venue's report of the end, the engine had only inferred
    /// the end, or the order triggered and continues as another order.
    pub(super) fn revive_by_event(&mut self, seq: OrderSeq, update: &OrderUpdate) {
        if self.live.is_none() || update.status.is_final() || self.orders.live(seq).is_some() {
            return;
        }
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let is_newer = |over: Time| update.transaction_time > over;
        let goes_on = order.reported_final.is_none_or(is_newer) || shows_successor(order, update);
        if may_live(order) && goes_on {
            self.revive(seq, Cause::Event);
        }
    }

    /// Takes an ended order back into the live orders, with its owner and exposure, and queries it.
    fn revive(&mut self, seq: OrderSeq, cause: Cause) {
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let (terms, executed) = (order.terms, order.executed_qty);
        let left = self.worst_qty(&terms).saturating_sub(executed).max(0);
        let Some(order) = self.orders.revive(seq, left) else {
            return;
        };
        let order = order.clone();
        self.count_open(&order);
        self.report_adjustment(Adjustment::Alive { order: seq }, cause);
        let instrument = terms.instrument;
        if self.surface_of(instrument) == Surface::Futures {
            // The order may rest without a countdown.
            self.timers.set(self.now, Timer::Renew { instrument });
        }
        self.ask_for_order(seq);
    }
}

/// An order that was filled entirely cannot rest, whatever a list shows.
fn may_live(order: &Order) -> bool {
    order.state != OrderState::Filled && (order.terms.qty.is_none() || order.remaining_qty() > 0)
}
