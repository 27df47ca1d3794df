//! Requests for the venue's forced orders, and what follows from the responses
//! (`windvane_evidence::forced_order_requests`).

use windvane_evidence::forced_order_requests::ForcedOrdersResponse;
use windvane_model::effect::Effect;
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::order::Surface;
use windvane_model::planted;
use windvane_model::protocol::{Outcome, Request};
use windvane_model::state_report::{StateReport, Subject};

use super::Engine;

/// How far the clocks may differ from the measured offset.
const SLACK_MS: i64 = 2_000;

impl Engine {
    /// Called at the end of a reconciliation round that left nothing unexplained. If an outside
    /// party closed positions and no event reported that it was the venue, the engine requests the
    /// forced orders.
    pub(super) fn request_orders_of_outside_closes(
        &mut self,
        surface: Surface,
        asked: Time,
        is_compared: bool,
    ) {
        if surface != Surface::Futures || planted!(LiquidationIgnored) {
            return;
        }
        let offset_ns = self.clock_offset_ns(surface).unwrap_or_default();
        let agreed = Time(asked.0.saturating_add(offset_ns)).plus_ms(-SLACK_MS);
        let since = self.forced.agreed_at(surface);
        if is_compared {
            self.forced.note_agreed(surface, agreed);
        }
        let mut moved = self.outside_closes.instruments_with_due();
        moved.extend(self.out_of_order.moved_at(self.now));
        moved.extend(self.stated_positions.take_unreported_trades());
        for id in moved {
            self.plan_forced_order_request(id, since);
        }
    }

    /// Requests the forced orders of an instrument since the last reconciliation round that left
    /// nothing unexplained.
    pub(super) fn plan_forced_order_request(&mut self, id: InstrumentId, since: Option<Time>) {
        self.forced.requests.plan(id, since);
        self.ask_for_forced_orders(id);
    }

    /// The venue's time of the last reconciliation round that left nothing unexplained, less the
    /// tolerance of the clocks. Also of an earlier process.
    pub(super) fn agreed_at(&self, surface: Surface) -> Option<Time> {
        self.forced.agreed_at(surface)
    }

    /// Repeats requests that were not answered.
    pub(super) fn ask_again_for_forced_orders(&mut self) {
        let overdue = self.forced.requests.overdue(self.now);
        if overdue.is_empty() {
            return;
        }
        for id in overdue {
            self.ask_for_forced_orders(id);
        }
        self.settle_outside_closes(Surface::Futures);
    }

    fn ask_for_forced_orders(&mut self, instrument: InstrumentId) {
        if !self.forced.requests.ask(instrument, self.now) {
            return;
        }
        self.emit(Effect::Send {
            record: 0,
            request: Box::new(Request::Read(Subject::ForcedOrders { instrument })),
        });
    }

    /// Whether a response is still expected about forced orders of an instrument, or about an order
    /// that closed a position of it. A failed request is repeated once before the close counts as
    /// one by an outside party.
    pub(super) fn awaits_forced_orders(&self, id: InstrumentId) -> bool {
        self.forced.requests.awaits_answer(id) || self.outside_orders.queries_outside_order(id)
    }

    /// Handles a response about forced orders. Outside parties closed what the forced orders do not
    /// explain.
    pub(super) fn take_forced_orders(&mut self, id: InstrumentId, outcome: &Outcome<StateReport>) {
        self.report_listed_orders(id, outcome);
        self.ask_for_outside_orders(id);
        self.settle_outside_closes(Surface::Futures);
        self.review_stated_positions();
    }

    /// Reports forced orders that the venue lists and that no event reported.
    fn report_listed_orders(&mut self, id: InstrumentId, outcome: &Outcome<StateReport>) {
        let (listed, since) = match self.forced.requests.take_answer(id, outcome) {
            ForcedOrdersResponse::Nothing => return,
            ForcedOrdersResponse::NotListed => {
                self.report_unexplained_closes(id);
                return;
            }
            ForcedOrdersResponse::Listed(listed, since) => (listed, since),
        };
        let mut ask_again = false;
        for order in listed {
            let report = &order.report;
            if report.instrument == id && report.update_time >= since && report.executed_qty.0 > 0 {
                ask_again |=
                    !self.take_forced_order(order) && !self.note_forced_close_evidence(order);
            }
        }
        if !ask_again {
            self.forced.requests.end(id);
        }
    }
}
