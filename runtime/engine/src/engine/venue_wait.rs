//! Requests that wait after the venue refused one for a limit, and the order in which they are
//! sent.
//!
//! After a 429, 418 or 403, nothing may be sent to a surface until the wait is over: any request
//! causes or extends a ban (docs/interface/limits.md#429-418-and-bans). Then requests are sent in
//! the order of the damage that their absence may cause:
//!
//! 1. cancels of orders that may open or add exposure, the largest notional first;
//! 2. closes, the largest notional first;
//! 3. renewals of countdowns, the one that ends first first;
//! 4. cancels of orders that only reduce;
//! 5. order queries and account snapshots.
//!
//! The 429 of the order limit concerns one account, and stops only new orders. No order is sent
//! before the interval of the limit is over, not even a close, because more orders lead to a ban.
//! Then closes are sent first, the largest notional first. Cancels, renewals, queries and snapshots
//! continue meanwhile.

use windvane_model::decimal::Amount;
use windvane_model::ids::{InstrumentId, OrderSeq, StrategyId, Time};
use windvane_model::live::WaitKind;
use windvane_model::order::{OrderTerms, OrderType, Surface};
use windvane_model::orders::Order;
use windvane_model::protocol::Request;
use windvane_model::run_state::RunState;
use windvane_model::timer::Timer;

use super::Engine;
use super::closing::FLATTEN_TRIES;

/// The account snapshots of a startup may use the reserved weight for this long after a user stream
/// connected. Later ones must leave weight for a startup that may follow: they use the reserve only
/// after [`KEPT_BACK`] tries, which are seconds apart.
const START_MS: i64 = 30_000;
/// A request may use the reserved weight after this many failed tries.
const KEPT_BACK: u32 = 3;

/// The purpose of a request, which decides how urgent it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It closes or only reduces a position, or a close or a stop waits for it.
    Close,
    /// It must be read before the run trades.
    Start,
    /// Any other request.
    Ordinary,
}

impl Engine {
    /// Until when nothing may be sent to a surface, by the venue's demand.
    pub fn venue_wait(&self, surface: Surface) -> Option<Time> {
        self.venue_waits.get(&surface)?.until(self.now)
    }

    /// Until when no new order may be sent to a surface, by the venue's order limit.
    pub fn order_wait(&self, surface: Surface) -> Option<Time> {
        self.venue_waits.get(&surface)?.orders_until(self.now)
    }

    /// The purpose of a request.
    pub fn purpose(&self, request: &Request) -> Purpose {
        let starting = matches!(self.state, RunState::Booting | RunState::Syncing);
        let syncing = self.live.as_ref().is_some_and(super::LiveRun::is_syncing);
        // A startup that lasts longer reads the account again and again.
        let lasts = |up: &Time| self.now > up.plus_ms(START_MS);
        let lasts = self.stream_up.values().max().is_some_and(lasts);
        let is_patient = lasts && !self.was_kept_back();
        // Closes that were refused so often that they are tried slowly do not count: they may last
        // for days.
        let presses =
            |state: &super::StrategyState| state.flattening.is_some_and(|tries| tries > 0);
        let closing = self.strategies.iter().any(presses);
        let stopping = self.live.as_ref().is_some_and(|live| live.stopping);
        match request {
            Request::Place(order) => {
                let own = order.client_order_id.parse_own();
                let order = own.and_then(|(.., seq)| self.orders.live(seq));
                if order
                    .is_some_and(|order| self.is_closing(order) || self.only_reduces(&order.terms))
                {
                    Purpose::Close
                } else {
                    Purpose::Ordinary
                }
            }
            Request::Countdown {
                countdown_ms: 0, ..
            } if stopping => Purpose::Close,
            Request::Query { .. } if closing || stopping || self.halted() => Purpose::Close,
            Request::Read(_) if closing || stopping => Purpose::Close,
            Request::Query { .. } if starting || syncing => Purpose::Start,
            Request::Read(_) if (starting || syncing) && !is_patient => Purpose::Start,
            _ => Purpose::Ordinary,
        }
    }

    /// Whether a snapshot of a startup failed so often that it may use the reserved weight.
    fn was_kept_back(&self) -> bool {
        let connections = self.live.iter().flat_map(|live| live.connections.values());
        connections
            .into_iter()
            .any(|connection| connection.round.failures() >= KEPT_BACK)
    }

    /// Whether an order closes a position for its strategy, which sends no other orders meanwhile.
    fn is_closing(&self, order: &Order) -> bool {
        let state = &self.strategies[usize::from(order.strategy.0)];
        state.flattening.is_some()
    }

    /// Positions of strategies that are being closed on a surface, and orders whose cancel waits.
    pub fn left_open(
        &self,
        surface: Surface,
    ) -> (Vec<(StrategyId, InstrumentId, i64)>, Vec<&Order>) {
        let mut positions = Vec::new();
        for (index, state) in self.strategies.iter().enumerate() {
            if state.flattening.is_none() {
                continue;
            }
            let holdings = self.ledgers.strategies[index].iter();
            let open = holdings.filter(|(id, _, holding)| {
                self.surface_of(*id) == surface && !holding.position.is_flat()
            });
            positions.extend(
                open.map(|(id, _, holding)| (StrategyId(index as u16), id, holding.position.qty)),
            );
        }
        let orders = self.orders.iter().filter(|order| {
            self.surface_of(order.instrument()) == surface && self.waits_for_cancel(order)
        });
        (positions, orders.collect())
    }

    /// Futures instruments whose orders depend on a countdown, with its end by the engine's count,
    /// the first to end first.
    pub fn covered(&self) -> Vec<(InstrumentId, Time)> {
        let resting = self.instruments_by_cover().into_iter().filter(|id| {
            let mut orders = self.orders.iter();
            orders.any(|order| order.instrument() == *id && !order.held)
        });
        resting
            .filter_map(|id| Some((id, self.covered_until(id)?)))
            .collect()
    }

    /// Handles a request that the venue refused for a limit.
    pub(super) fn handle_venue_wait(&mut self, surface: Surface, kind: WaitKind, wait_ms: i64) {
        let now = self.now;
        let until = now.plus_ms(wait_ms.max(0));
        let wait = self.venue_waits.entry(surface).or_default();
        wait.note(kind, until);
        if kind == WaitKind::All && surface == Surface::Futures {
            self.refuse_all_held();
        }
        let Some(wait) = self.venue_waits.get(&surface) else {
            return;
        };
        let timer = Timer::VenueWait { surface };
        if let Some(first) = wait.next_end_after(now) {
            self.timers.set(first, timer);
        }
    }

    /// Takes over order limits: they do not end with a process.
    pub(super) fn inherit_order_waits(&mut self, from: &Self) {
        for (surface, old) in &from.venue_waits {
            let Some(until) = old.orders_until(self.now) else {
                continue;
            };
            let wait = self.venue_waits.entry(*surface).or_default();
            wait.note(WaitKind::Orders, until);
            let timer = Timer::VenueWait { surface: *surface };
            self.timers.set(until, timer);
        }
    }

    /// Handles the end of a wait: sends the requests that waited, the most dangerous first.
    pub(super) fn venue_wait_over(&mut self, surface: Surface) {
        let now = self.now;
        let Some(wait) = self.venue_waits.get_mut(&surface) else {
            return;
        };
        let all_over = wait.expire(now);
        let left = wait.next_end();
        match left {
            Some(next) => self.timers.set(next, Timer::VenueWait { surface }),
            None => drop(self.venue_waits.remove(&surface)),
        }
        if self.venue_wait(surface).is_some() {
            return;
        }
        let unwanted = self.unwanted_orders(surface);
        let (opening, reducing): (Vec<_>, Vec<_>) =
            unwanted.into_iter().partition(|(opens, ..)| *opens);
        self.cancel_in_order(opening);
        self.restart_closes(surface);
        if all_over && surface == Surface::Futures {
            for instrument in self.instruments_by_cover() {
                self.renew(instrument);
            }
        }
        self.cancel_in_order(reducing);
    }

    /// The closing orders that may be sent now, the largest first. Orders on a surface whose order
    /// limit was exceeded wait.
    pub(super) fn closes_allowed(&self, mut closing: Vec<OrderTerms>) -> Vec<OrderTerms> {
        closing.retain(|terms| self.order_wait(self.surface_of(terms.instrument)).is_none());
        closing.sort_by_key(|terms| std::cmp::Reverse(self.closing_value(terms)));
        closing
    }

    fn largest_close(&self, strategy: StrategyId, surface: Option<Surface>) -> Option<Amount> {
        if self.strategies[usize::from(strategy.0)].open_orders > 0 {
            return None;
        }
        let closing = self.closing_orders(strategy).into_iter();
        let closing = closing
            .filter(|terms| surface.is_none_or(|of| self.surface_of(terms.instrument) == of));
        closing.map(|terms| self.closing_value(&terms)).max()
    }

    /// Strategies that are being flattened, the one with the largest position to close first.
    pub(super) fn flattening_by_value(&self, surface: Option<Surface>) -> Vec<StrategyId> {
        let all = (0..self.strategies.len()).map(|index| StrategyId(index as u16));
        let mut flattening: Vec<_> = all
            .filter(|id| self.is_flattening(*id))
            .map(|id| (std::cmp::Reverse(self.largest_close(id, surface)), id))
            .collect();
        flattening.sort();
        flattening.into_iter().map(|(_, id)| id).collect()
    }

    /// Restarts the closes of strategies that wait for a surface, the largest position first.
    fn restart_closes(&mut self, surface: Surface) {
        for strategy in self.flattening_by_value(Some(surface)) {
            let state = &mut self.strategies[usize::from(strategy.0)];
            state.flattening = Some(FLATTEN_TRIES);
            state.flatten_again = self.now;
            self.continue_flattening(strategy);
        }
    }

    fn cancel_in_order(&mut self, mut orders: Vec<(bool, Amount, OrderSeq, StrategyId)>) {
        orders.sort_by_key(|(_, value, seq, _)| (std::cmp::Reverse(*value), *seq));
        for (_, _, seq, strategy) in orders {
            self.request_cancel(strategy, seq);
        }
    }

    /// Orders of a surface whose cancel waits: whether each may open exposure, and its value.
    fn unwanted_orders(&self, surface: Surface) -> Vec<(bool, Amount, OrderSeq, StrategyId)> {
        let unwanted = self.orders.iter().filter(|order| {
            self.surface_of(order.instrument()) == surface && self.waits_for_cancel(order)
        });
        let row = |order: &Order| {
            let opens = !order.terms.reduce_only && !order.terms.close_position;
            let value = self.value(
                order.instrument(),
                order.terms.price.map(|price| price.0),
                order.remaining_qty(),
            );
            (opens, value, order.seq, order.strategy)
        };
        unwanted.map(row).collect()
    }

    /// Whether an order needs a cancel as soon as the venue allows one. A market order does not
    /// rest: the engine queries it and does not cancel it.
    fn waits_for_cancel(&self, order: &Order) -> bool {
        let rests = !order.held && order.terms.order_type != OrderType::Market;
        rests && !order.state.is_final() && self.must_not_rest(order)
    }

    /// Futures instruments, ordered by the end of their countdown, the first to end first.
    fn instruments_by_cover(&self) -> Vec<InstrumentId> {
        let all = (0..self.instruments.len()).map(|index| InstrumentId(index as u16));
        let mut covered: Vec<_> = all
            .filter(|id| self.surface_of(*id) == Surface::Futures)
            .map(|id| (self.covered_until(id), id))
            .collect();
        covered.sort();
        covered.into_iter().map(|(_, id)| id).collect()
    }

    fn closing_value(&self, terms: &OrderTerms) -> Amount {
        let qty = terms.qty.map_or_else(|| self.worst_qty(terms), |qty| qty.0);
        self.value(terms.instrument, None, qty)
    }

    /// The value of a quantity at this price, or at the mark price, or at the last trade.
    fn value(&self, id: InstrumentId, price: Option<i64>, qty: i64) -> Amount {
        /// Decimals of a mark price.
        const MARK_SCALE: u8 = 8;
        let rules = &self.instruments[usize::from(id.0)];
        let qty = qty.saturating_abs();
        match (price, self.mark(id)) {
            (None, Some(mark)) => Amount::notional(mark.mark, MARK_SCALE, qty, rules.qty_scale),
            (price, _) => rules.notional(price.or(self.last_price(id)).unwrap_or(0), qty),
        }
    }
}
