//! Requests that wait after the venue refused one for a limit, and the order in which they leave.
//!
//! After a 429, 418 or 403 nothing may be sent to a surface until its time is over: whatever is sent
//! leads to a ban, or makes one longer (spec 1, Limits, 6). Then requests leave by the damage that
//! their absence may do:
//!
//! 1. cancels of orders that may open or add exposure, the largest notional first;
//! 2. closes, the largest notional first;
//! 3. renewals of countdowns, the one that ends first first;
//! 4. cancels of orders that only reduce;
//! 5. questions about orders, and readings of the account.
//!
//! The 429 of the order limit is of one account, and stops new orders alone. Closes are tried again
//! one at a time, with growing pauses, the largest notional first: the venue may count its interval
//! otherwise than we do, and each refusal brings a ban nearer. Where the venue stated the end of the wait,
//! no close is tried before it.

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::{InstrumentId, OrderSeq, StrategyId, Time};
use crate::live::WaitKind;
use crate::order::{OrderTerms, OrderType, Surface};
use crate::orders::Order;
use crate::protocol::Request;
use crate::timer::Timer;

use super::closing::FLATTEN_TRIES;
use super::{Engine, RunState};

/// The readings of a start may use what is reserved for so long after a user stream came up. Later ones
/// must leave weight for a start that may follow: they use it after [`KEPT_BACK`] tries alone, which are
/// seconds apart.
const START_MS: i64 = 30_000;
/// So many tries of one question failed before it may use what is reserved.
const KEPT_BACK: u32 = 3;

/// From a close that the order limit refused to the next, doubled each time up to the second bound.
const CLOSE_PAUSE_MS: (i64, i64) = (2_000, 16_000);

/// The waits of a surface that the venue demanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VenueWait {
    /// Nothing may be sent until then.
    until: Option<Time>,
    /// No new order may be sent until then.
    orders_until: Option<Time>,
    /// The next close is tried then, while new orders may not be sent.
    next_close: Time,
    close_pause_ms: i64,
}

/// The purpose of a request, as far as it decides how urgent the request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It closes a position or only reduces one, or is what a close or a stop waits for.
    Close,
    /// It is read before the run trades.
    Start,
    /// Everything else.
    Ordinary,
}

impl Engine {
    /// Until when nothing may be sent to a surface, as the venue said.
    pub fn venue_wait(&self, surface: Surface) -> Option<Time> {
        let until = self.venue_waits.get(&surface)?.until?;
        (self.now < until).then_some(until)
    }

    /// Until when no new order may be sent to a surface, as the venue's order limit demands.
    pub fn order_wait(&self, surface: Surface) -> Option<Time> {
        let until = self.venue_waits.get(&surface)?.orders_until?;
        (self.now < until).then_some(until)
    }

    /// The purpose of a request.
    pub fn purpose(&self, request: &Request) -> Purpose {
        let starting = matches!(self.state, RunState::Booting | RunState::Syncing);
        let syncing = self.live.as_ref().is_some_and(super::Session::is_syncing);
        // One that lasts reads the account again and again.
        let lasts = |up: &Time| self.now > up.plus_ms(START_MS);
        let lasts = self.stream_up.values().max().is_some_and(lasts);
        let is_patient = lasts && !self.was_kept_back();
        let flattening = |state: &super::StrategyState| state.flattening.is_some();
        let closing = self.strategies.iter().any(flattening);
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

    /// Whether a reading of a start failed so often that it may use what is reserved.
    fn was_kept_back(&self) -> bool {
        let lines = self.live.iter().flat_map(|live| live.lines.values());
        lines
            .into_iter()
            .any(|line| line.round.failures() >= KEPT_BACK)
    }

    /// Whether an order closes a position for its strategy: it sends no other ones then.
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

    /// Futures whose orders count on a countdown, with its end as we count it: the first to end first.
    pub fn covered(&self) -> Vec<(InstrumentId, Time)> {
        let resting = self.instruments_by_cover().into_iter().filter(|id| {
            let mut orders = self.orders.iter();
            orders.any(|order| order.instrument() == *id && !order.held)
        });
        resting
            .filter_map(|id| Some((id, self.covered_until(id)?)))
            .collect()
    }

    /// The venue refused a request for a limit.
    pub(super) fn handle_venue_wait(&mut self, surface: Surface, kind: WaitKind, wait_ms: i64) {
        let now = self.now;
        let until = now.plus_ms(wait_ms.max(0));
        let wait = self.venue_waits.entry(surface).or_default();
        match kind {
            WaitKind::All => wait.until = wait.until.max(Some(until)),
            WaitKind::Orders => {
                let again = wait.orders_until.is_some();
                wait.close_pause_ms = if again {
                    (wait.close_pause_ms * 2).clamp(CLOSE_PAUSE_MS.0, CLOSE_PAUSE_MS.1)
                } else {
                    CLOSE_PAUSE_MS.0
                };
                let next = now.plus_ms(wait.close_pause_ms);
                wait.next_close = wait.next_close.max(next);
                wait.orders_until = wait.orders_until.max(Some(until));
            }
            WaitKind::OrdersUntil => {
                wait.next_close = wait.next_close.max(until);
                wait.orders_until = wait.orders_until.max(Some(until));
            }
        }
        if kind == WaitKind::All && surface == Surface::Futures {
            self.refuse_all_held();
        }
        let Some(wait) = self.venue_waits.get(&surface) else {
            return;
        };
        let timer = Timer::VenueWait { surface };
        let ends = [wait.until, wait.orders_until].into_iter().flatten();
        if let Some(first) = ends.filter(|at| *at > now).min() {
            self.timers.set(first, timer);
        }
    }

    /// A wait of the venue is over: requests that waited leave, the most dangerous first.
    pub(super) fn venue_wait_over(&mut self, surface: Surface) {
        let now = self.now;
        let Some(wait) = self.venue_waits.get_mut(&surface) else {
            return;
        };
        let all_over = wait.until.take_if(|until| *until <= now).is_some();
        if wait.orders_until.take_if(|until| *until <= now).is_some() {
            wait.close_pause_ms = 0;
        }
        let left = [wait.until, wait.orders_until].into_iter().flatten().min();
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
        self.start_closes_anew(surface);
        if all_over && surface == Surface::Futures {
            for instrument in self.instruments_by_cover() {
                self.renew(instrument);
            }
        }
        self.cancel_in_order(reducing);
    }

    /// Whether closes are tried before the end of a wait for the order limit. Not where the venue
    /// stated the end.
    pub fn tries_closes(&self, surface: Surface) -> bool {
        let wait = self.venue_waits.get(&surface);
        wait.is_none_or(|wait| Some(wait.next_close) < wait.orders_until)
    }

    /// An order was accepted although the order limit was refused before: its interval is over. It
    /// may be an order that left before the refusal, so that an end that the venue stated stays.
    pub(super) fn order_limit_is_over(&mut self, surface: Surface) {
        if !self.tries_closes(surface) {
            return;
        }
        if let Some(wait) = self.venue_waits.get_mut(&surface) {
            wait.orders_until = None;
            wait.close_pause_ms = 0;
        }
    }

    /// The closing orders that may leave now, of those that a strategy needs, and whether they count
    /// as a try; `None`: all have to wait. While the order limit of a surface holds, they are one for
    /// the surface, and the largest.
    pub(super) fn closes_allowed(
        &mut self,
        strategy: StrategyId,
        mut closing: Vec<OrderTerms>,
    ) -> Option<(Vec<OrderTerms>, bool)> {
        closing.sort_by_key(|terms| std::cmp::Reverse(self.closing_value(terms)));
        let (mut allowed, limited): (Vec<_>, Vec<_>) = closing
            .into_iter()
            .partition(|terms| self.order_wait(self.surface_of(terms.instrument)).is_none());
        let counts = !allowed.is_empty();
        for surface in Surface::ALL {
            let mut of_surface = limited.iter();
            let largest = of_surface.find(|terms| self.surface_of(terms.instrument) == *surface);
            if let Some(largest) = largest
                && self.may_try_close(strategy, *surface, largest)
            {
                allowed.push(*largest);
            }
        }
        (!allowed.is_empty()).then_some((allowed, counts))
    }

    /// Whether it is this close's turn, although the order limit of its surface holds.
    fn may_try_close(
        &mut self,
        strategy: StrategyId,
        surface: Surface,
        close: &OrderTerms,
    ) -> bool {
        let value = Some(self.closing_value(close));
        let mut others = (0..self.strategies.len())
            .map(|index| StrategyId(index as u16))
            .filter(|other| *other != strategy);
        let larger = others.any(|other| self.largest_close(other, surface) > value);
        let now = self.now;
        let Some(wait) = self.venue_waits.get_mut(&surface) else {
            return true;
        };
        if larger || now < wait.next_close {
            return false;
        }
        wait.next_close = now.plus_ms(wait.close_pause_ms.max(CLOSE_PAUSE_MS.0));
        true
    }

    fn largest_close(&self, strategy: StrategyId, surface: Surface) -> Option<Amount> {
        let state = &self.strategies[usize::from(strategy.0)];
        if state.flattening.is_none() || state.open_orders > 0 {
            return None;
        }
        let closing = self.closing_orders(strategy).into_iter();
        let closing = closing.filter(|terms| self.surface_of(terms.instrument) == surface);
        closing.map(|terms| self.closing_value(&terms)).max()
    }

    /// Closing begins anew for strategies that wait for a surface, the largest position first.
    fn start_closes_anew(&mut self, surface: Surface) {
        let all = (0..self.strategies.len()).map(|index| StrategyId(index as u16));
        let mut waiting: Vec<(Option<Amount>, StrategyId)> = all
            .filter(|id| self.strategies[usize::from(id.0)].flattening.is_some())
            .map(|id| (self.largest_close(id, surface), id))
            .collect();
        waiting.sort_by_key(|(value, id)| (std::cmp::Reverse(*value), *id));
        for (_, strategy) in waiting {
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

    /// Orders of a surface whose cancel waits: whether each may open exposure, and what it is worth.
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

    /// Whether an order needs a cancel as soon as the venue allows one. A market order does not rest:
    /// the engine queries it and does not cancel it.
    fn waits_for_cancel(&self, order: &Order) -> bool {
        let rests = !order.held && order.terms.order_type != OrderType::Market;
        rests && !order.state.is_final() && self.must_not_rest(order)
    }

    /// Instruments with orders that count on a countdown, the one that ends first first.
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

    /// The value of a quantity: by this price, or the mark, or the last trade.
    fn value(&self, id: InstrumentId, price: Option<i64>, qty: i64) -> Amount {
        /// Digits of a mark price.
        const MARK_SCALE: u8 = 8;
        let rules = &self.instruments[usize::from(id.0)];
        let qty = qty.saturating_abs();
        match (price, self.mark(id)) {
            (None, Some(mark)) => Amount::notional(mark.mark, MARK_SCALE, qty, rules.qty_scale),
            (price, _) => rules.notional(price.or(self.last_price(id)).unwrap_or(0), qty),
        }
    }
}
