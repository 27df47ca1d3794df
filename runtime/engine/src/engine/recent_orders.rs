//! The venue's list of the account's trades may contain trades of orders that this process does not
//! know. The engine queries these orders (`windvane_evidence::recent_orders`).

use windvane_evidence::recent_orders::{ORDERS_MAX, RECENT_MS};
use windvane_model::effect::Effect;
use windvane_model::ids::{InstrumentId, Time, VenueOrderId};
use windvane_model::order::Surface;
use windvane_model::protocol::{Outcome, Request};
use windvane_model::state_report::{AccountTrade, StateReport, Subject};

use super::Engine;

/// The orders of the newest of these trades, which are listed with the oldest first.
pub fn newest_orders<'a>(
    trades: impl DoubleEndedIterator<Item = &'a AccountTrade>,
) -> Vec<VenueOrderId> {
    let mut orders = Vec::new();
    for trade in trades.rev() {
        if orders.len() < ORDERS_MAX && !orders.contains(&trade.order_id) {
            orders.push(trade.order_id);
        }
    }
    orders
}

impl Engine {
    /// Notes the orders of listed trades that this process does not know and that no event of the
    /// user stream named. Called before the trades are taken.
    pub(super) fn note_recent_orders(&mut self, instrument: InstrumentId, trades: &[AccountTrade]) {
        let (now, index) = (self.now, usize::from(instrument.0));
        let offset_ns = self.clock_offset_ns(self.surface_of(instrument));
        let oldest = now
            .plus_ns(offset_ns.unwrap_or_default())
            .plus_ms(-RECENT_MS);
        let verified = self.verified_trades[index];
        let named = &self.external_trades[index];
        let is_unknown = |trade: &&AccountTrade| {
            let id = trade.fill.trade_id;
            trade.time >= oldest
                && verified.is_none_or(|known| id > known)
                && !named.contains(&id)
                && self.orders.of_venue(trade.order_id).is_none()
        };
        let orders = newest_orders(trades.iter().filter(is_unknown));
        self.recent_orders.note_newest(instrument, &orders, now);
    }

    /// Notes an order that an event names, to query when it was placed.
    pub(super) fn note_recent_order(&mut self, instrument: InstrumentId, order_id: VenueOrderId) {
        self.recent_orders.note((instrument, order_id), self.now);
    }

    /// Whether an order of another instance may be among the queried orders.
    pub(super) fn awaits_recent_orders(&self) -> bool {
        !self.recent_orders.is_empty() || !self.newest_orders.is_empty()
    }

    /// Called after the account of a surface was read. `orders_asked` is when open orders were
    /// requested.
    pub(super) fn handle_account_read(&mut self, surface: Surface, orders_asked: Option<Time>) {
        self.ask_for_recent_orders();
        self.ask_for_newest_orders();
        let watch = self.instance_watch();
        if watch.is_some_and(|watch| orders_asked >= Some(watch.until)) {
            self.recent_orders.note_read_after_watch(surface);
        }
        self.finish_instance_watch();
    }

    fn ask_for_recent_orders(&mut self) {
        let held_back = self.held_back_surfaces();
        let (now, instruments) = (self.now, &self.instruments);
        let is_held_back =
            |id: InstrumentId| held_back.contains(&instruments[usize::from(id.0)].surface);
        for (instrument, order_id) in self.recent_orders.ask(now, is_held_back) {
            let subject = Subject::TradedOrder {
                instrument,
                order_id,
            };
            self.emit(Effect::Send {
                record: 0,
                request: Box::new(Request::Read(subject)),
            });
        }
    }

    /// The surfaces to which the venue accepts no request now.
    fn held_back_surfaces(&self) -> Vec<Surface> {
        let surfaces = Surface::ALL.iter().copied();
        surfaces
            .filter(|surface| self.venue_wait(*surface).is_some())
            .collect()
    }

    /// Repeats queries that were not answered, and removes those that time out.
    pub(super) fn ask_again_for_recent_orders(&mut self) {
        let now = self.now;
        let held_back = self.held_back_surfaces();
        let instruments = &self.instruments;
        let is_held_back =
            |id: InstrumentId| held_back.contains(&instruments[usize::from(id.0)].surface);
        let was_asked = self.recent_orders.give_up(now, is_held_back);
        self.give_up_newest_orders();
        let connections = self.live.iter().flat_map(|live| live.connections.values());
        let was_read = connections
            .map(|connection| connection.last_clean_round)
            .any(|clean| clean.is_some());
        if was_asked || was_read {
            self.ask_for_recent_orders();
            self.ask_for_newest_orders();
        }
        self.finish_instance_watch();
    }

    /// Takes the response about the order of a listed trade.
    pub(super) fn take_traded_order(
        &mut self,
        instrument: InstrumentId,
        order_id: VenueOrderId,
        outcome: &Outcome<StateReport>,
    ) {
        let key = (instrument, order_id);
        let answer = self.recent_orders.take_answer(key, outcome, self.now);
        let Some(order) = answer else {
            return;
        };
        if let Some(order) = order {
            self.check_traded_order(self.surface_of(instrument), order);
        }
        self.finish_instance_watch();
        self.update_state();
    }
}
