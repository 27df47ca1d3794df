//! Requests for the newest orders of each instrument, at a start and if the venue does not list the
//! account's trades (`windvane_evidence::newest_orders`).

use windvane_evidence::newest_orders::NewestOrdersResponse;
use windvane_evidence::recent_orders::RECENT_MS;
use windvane_model::effect::{Effect, Notice};
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::order::Surface;
use windvane_model::protocol::{Outcome, Request};
use windvane_model::state_report::{StateReport, Subject, TradedOrder};

use super::Engine;

impl Engine {
    /// Plans requests for the newest orders, because the venue does not list the account's trades,
    /// or lists them late. They are sent once the account is read.
    pub(super) fn list_orders_for_trades(&mut self, surface: Surface) {
        let instruments = self.evidence().instruments_of(surface);
        self.newest_orders.plan(surface, instruments, self.now);
    }

    /// Requests the orders of the next instrument of each surface.
    pub(super) fn ask_for_newest_orders(&mut self) {
        let now = self.now;
        for surface in Surface::ALL.iter().copied() {
            let Some(instrument) = self.next_newest_orders(surface) else {
                continue;
            };
            let held_back = self.venue_wait(surface).is_some();
            if held_back || !self.newest_orders.ask(instrument, now) {
                continue;
            }
            self.emit(Effect::Send {
                record: 0,
                request: Box::new(Request::Read(Subject::NewestOrders { instrument })),
            });
        }
    }

    fn next_newest_orders(&self, surface: Surface) -> Option<InstrumentId> {
        self.newest_orders.next(surface, &self.instruments)
    }

    /// Stops waiting for lists that get no response: startup must end even if the route fails.
    pub(super) fn give_up_newest_orders(&mut self) {
        for surface in Surface::ALL.iter().copied() {
            let next = self.next_newest_orders(surface);
            let is_over = next.is_some_and(|id| self.newest_orders.is_over(id, self.now));
            if is_over && self.venue_wait(surface).is_none() {
                self.end_newest_orders(surface);
            }
        }
    }

    /// Takes the response about the newest orders of an instrument.
    pub(super) fn take_newest_orders(
        &mut self,
        instrument: InstrumentId,
        outcome: &Outcome<StateReport>,
    ) {
        let surface = self.surface_of(instrument);
        match self.newest_orders.take_answer(instrument, outcome) {
            NewestOrdersResponse::Nothing => return,
            NewestOrdersResponse::Refused => self.end_newest_orders(surface),
            NewestOrdersResponse::Listed(orders) => {
                self.check_newest_orders(surface, orders);
                self.ask_for_newest_orders();
            }
        }
        self.finish_instance_watch();
        self.update_state();
    }

    fn check_newest_orders(&mut self, surface: Surface, orders: &[TradedOrder]) {
        let offset_ns = self.clock_offset_ns(surface).unwrap_or_default();
        let oldest = self.now.plus_ns(offset_ns).plus_ms(-RECENT_MS);
        let is_recent =
            |order: &&TradedOrder| order.placed == Time::default() || order.placed >= oldest;
        for order in orders.iter().filter(is_recent) {
            self.check_traded_order(surface, order);
        }
    }

    /// Handles a venue that does not list the orders of a surface.
    fn end_newest_orders(&mut self, surface: Surface) {
        if self.newest_orders.end(surface, &self.instruments) {
            let time = self.now;
            let notice = Notice::InstancesUnseen { time, surface };
            self.notices.push_back(notice);
        }
    }
}
