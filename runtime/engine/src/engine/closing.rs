//! Closing the positions of strategies: for `flatten`, at the stop, and after faults.
//!
//! The engine first cancels the strategy's orders. Then it settles opposite positions of strategies
//! that are all being closed against each other (`netting`). It sends one market order for each
//! remaining position. A close never opens a position (`closable_position`). The order has `reduceOnly`
//! wherever the account's net position covers it. Such an order cannot rest, so it needs no
//! countdown.
//!
//! While the account is uncertain, because the user stream is down or the account is not
//! reconciled, an account snapshot bounds the close instead (`close_by_snapshot`).

use std::collections::BTreeSet;

use windvane_model::effect::Notice;
use windvane_model::ids::{InstrumentId, StrategyId};
use windvane_model::instrument::{Instrument, LotSize};
use windvane_model::ledger::Grains;
use windvane_model::order::{OrderTerms, OrderType, PositionSide, Qty, Side, Surface};
use windvane_model::order_state::{OrderMove, OrderState};
use windvane_model::orders::Order;
use windvane_model::planted;
use windvane_model::rules::Rule;

use super::{Engine, OpenOrders};

/// How many quick tries are made to close a position without a fill in between. After that, a live
/// run notifies people and tries slowly. A backtest stops trying, because its venue never changes
/// its decision.
pub(super) const FLATTEN_TRIES: u32 = 10;
/// Pause between two quick tries of a live run, doubled each time up to the second bound. The venue
/// may be unreachable for a while.
const FLATTEN_PAUSE_MS: (i64, i64) = (1_000, 20_000);
/// Pause between two slow tries.
const SLOW_PAUSE_MS: i64 = 60_000;

impl Engine {
    /// A closing fill is progress: the tries of the strategy start anew.
    pub(super) fn count_flattening_fill(&mut self, strategy: StrategyId) {
        let tries = &mut self.strategies[usize::from(strategy.0)].flattening;
        *tries = tries.map(|_| FLATTEN_TRIES);
    }

    /// Cancels the orders of a strategy, then closes its positions at market.
    pub(super) fn flatten(&mut self, strategy: StrategyId) {
        self.begin_flattening(strategy);
        self.cancel_own(strategy);
        self.continue_flattening(strategy);
    }

    /// Flattens every strategy. All begin before the first one closes, so that their opposite
    /// positions are settled against each other.
    pub(super) fn flatten_all(&mut self) {
        let all = (0..self.strategies.len()).map(|index| StrategyId(index as u16));
        let all: Vec<_> = all.collect();
        for strategy in &all {
            self.begin_flattening(*strategy);
        }
        for strategy in &all {
            self.cancel_own(*strategy);
        }
        for strategy in all {
            self.continue_flattening(strategy);
        }
    }

    fn begin_flattening(&mut self, strategy: StrategyId) {
        if !self.is_flattening(strategy) {
            self.closing_since.insert(strategy, self.now);
        }
        self.strategies[usize::from(strategy.0)].flattening = Some(FLATTEN_TRIES);
    }

    fn has_flattened(&mut self, strategy: StrategyId) {
        self.strategies[usize::from(strategy.0)].flattening = None;
        if self.too_small_to_close(strategy).is_empty() {
            self.closing_since.remove(&strategy);
        }
    }

    /// Ends the close of a strategy: closing orders that still wait are not sent.
    pub(super) fn end_flattening(&mut self, strategy: StrategyId) {
        self.closing_since.remove(&strategy);
        if !self.is_flattening(strategy) {
            return;
        }
        self.strategies[usize::from(strategy.0)].flattening = None;
        // Every held order is a closing order: the strategy's own orders were taken back when the
        // close began.
        let held = self.orders.of(strategy, None).filter(|order| order.held);
        for seq in held.map(|order| order.seq).collect::<Vec<_>>() {
            self.take_back(seq, OrderMove::Cancel);
        }
    }

    /// Continues the close of every strategy that is being flattened: its positions may be certain
    /// now.
    pub(super) fn continue_all_flattening(&mut self) {
        for strategy in self.flattening_by_value(None) {
            self.continue_flattening(strategy);
        }
    }

    /// Whether the next closing orders of a strategy may be sent now. The strategy is being
    /// flattened, has no open order, and the pause after the last try is over.
    pub(super) fn may_close_next(&self, strategy: StrategyId) -> bool {
        let state = &self.strategies[usize::from(strategy.0)];
        state.open_orders == 0 && self.is_close_due(strategy)
    }

    fn is_close_due(&self, strategy: StrategyId) -> bool {
        let state = &self.strategies[usize::from(strategy.0)];
        let pauses = |tries| tries < FLATTEN_TRIES && self.now < state.flatten_again;
        state.flattening.is_some_and(|tries| !pauses(tries))
    }

    /// Sends the closing orders of a strategy that is being flattened, once it has no open order.
    pub(super) fn continue_flattening(&mut self, strategy: StrategyId) {
        if !self.may_close_next(strategy) {
            self.close_despite_unknown_orders(strategy);
            return;
        }
        self.settle_opposite(strategy);
        if !self.may_close_next(strategy) {
            // The settlement cleared a degraded reason or changed the run state, which already
            // continued the close.
            return;
        }
        let closing = self.closing_orders(strategy);
        let (certain, uncertain): (Vec<_>, Vec<_>) =
            closing.into_iter().partition(|terms| self.may_close(terms));
        let mut uncertain_ids: BTreeSet<InstrumentId> =
            uncertain.iter().map(|terms| terms.instrument).collect();
        let uncovered = self.unclosable_parts(strategy);
        let uncovered = uncovered.into_iter().map(|(id, ..)| id);
        uncertain_ids.extend(uncovered.filter(|id| !self.is_certain(*id)));
        let surfaces: BTreeSet<Surface> = uncertain_ids
            .iter()
            .map(|id| self.surface_of(*id))
            .collect();
        for surface in surfaces {
            self.request_snapshot_for_close(surface);
        }
        if !certain.is_empty() {
            self.send_closes(strategy, certain);
        } else if uncertain_ids.is_empty()
            && !self.waits_for_opposite(strategy)
            && !self.waits_for_coins(strategy)
        {
            self.give_up_unclosable_parts(strategy);
            self.give_up_coins_of(strategy);
            self.has_flattened(strategy);
            self.notify_dust(strategy);
        }
    }

    /// Sends closing orders that only reduce while the outcome of every open order of the strategy
    /// is unknown. The engine queries such an unknown order for a long time, and cancels it as soon
    /// as it appears. The unknown orders may have closed a part of the position; that part is left
    /// until their outcome is known. If a closing order itself has an unknown outcome, the engine
    /// waits for it.
    fn close_despite_unknown_orders(&mut self, strategy: StrategyId) {
        let is_lost = |order: &Order| {
            let is_denied = order.cancel_refused.is_some() && !order.is_confirmed();
            let is_unknown = order.state == OrderState::Unknown || is_denied;
            is_unknown && order.terms.order_type != OrderType::Market
        };
        if !self.is_close_due(strategy) || !self.orders.of(strategy, None).all(is_lost) {
            return;
        }
        let mut closing = self.closing_orders(strategy);
        for terms in &mut closing {
            let unknown = self.orders.of(strategy, Some(terms.instrument));
            let unknown = unknown.filter(|order| {
                (order.terms.side, order.terms.position_side) == (terms.side, terms.position_side)
            });
            let may_have_closed = unknown.map(|order| match order.terms.qty {
                Some(_) => order.remaining_qty(),
                None => i64::MAX,
            });
            let may_have_closed = may_have_closed.fold(0, i64::saturating_add);
            let filters = &self.instruments[usize::from(terms.instrument.0)].filters;
            let left = terms
                .qty
                .map_or(0, |qty| qty.0)
                .saturating_sub(may_have_closed);
            terms.qty = Some(Qty(close_qty(
                left.max(0),
                &[filters.lot_size, filters.market_lot_size],
            )));
        }
        closing.retain(|terms| {
            let leaves_some = terms.qty.is_some_and(|qty| qty.0 > 0);
            leaves_some && self.only_reduces(terms) && self.may_close(terms)
        });
        if !closing.is_empty() {
            self.send_closes(strategy, closing);
        }
    }

    /// Sends closing orders. A live run repeats refused closes without limit, because the venue may
    /// accept them at any time. A backtest stops after a fixed number of tries.
    pub(super) fn send_closes(&mut self, strategy: StrategyId, closing: Vec<OrderTerms>) {
        let Some(tries) = self.strategies[usize::from(strategy.0)].flattening else {
            return;
        };
        let is_live = self.live.is_some();
        if tries == 0 && !is_live {
            self.has_flattened(strategy);
            self.notify_unclosed(strategy, &closing);
            return;
        }
        let closing = self.closes_allowed(closing);
        if closing.is_empty() {
            return;
        }
        if tries == 1 && is_live {
            self.notify_unclosed(strategy, &closing);
        }
        let now = self.now;
        let state = &mut self.strategies[usize::from(strategy.0)];
        state.flattening = Some(tries.saturating_sub(1));
        if is_live {
            state.flatten_again = now.plus_ms(pause_after(tries));
        }
        let record = self.recorder.last_record();
        self.recorder.seal();
        // In this mode, sent orders follow from the journal.
        if self.takes_sent {
            return;
        }
        for terms in closing {
            self.submit(strategy, record, self.next_order, terms);
        }
    }

    /// Whether the position in an instrument is certain and requests may be sent. Otherwise a
    /// closing order could open a position, or would fail.
    pub(super) fn is_certain(&self, instrument: InstrumentId) -> bool {
        let surface = self.surface_of(instrument);
        let live = self.live.as_ref();
        live.is_none_or(|live| live.is_healthy(surface, self.now))
            && self.venue_wait(surface).is_none()
    }

    /// Whether a closing order may be sent now. An order that may open a position needs the
    /// countdown.
    pub(super) fn may_close(&self, terms: &OrderTerms) -> bool {
        let covered = self.only_reduces(terms) || !self.is_disarming(terms.instrument);
        self.is_certain(terms.instrument) && covered
    }

    /// Whether an order closes a side of this account in hedge mode.
    pub(crate) fn closes_side_of(&self, terms: &OrderTerms) -> bool {
        self.hedge_mode
            && self
                .instrument(terms.instrument)
                .is_some_and(|instrument| instrument.surface == Surface::Futures)
            && closes_side(terms)
            && !terms.close_position
            && !planted!(SideUnbound)
    }

    /// Whether the venue guarantees that an order cannot open a position and cannot rest.
    pub(super) fn only_reduces(&self, terms: &OrderTerms) -> bool {
        self.surface_of(terms.instrument) == Surface::Futures
            && terms.order_type == OrderType::Market
            && (terms.reduce_only || closes_side(terms))
    }

    /// Whether an order needs no countdown, even while the run is degraded: it only reduces and
    /// never rests.
    pub(super) fn needs_no_countdown(&self, order: &Order) -> bool {
        self.only_reduces(&order.terms) && !planted!(CloseWaitsForCountdown)
    }

    /// Notifies people of positions that the venue does not let the engine close.
    fn notify_unclosed(&mut self, strategy: StrategyId, closing: &[OrderTerms]) {
        for terms in closing {
            let ledger = &self.ledgers.strategies[usize::from(strategy.0)];
            let holding = ledger.at(terms.instrument, terms.position_side);
            self.notices.push_back(Notice::Unclosed {
                time: self.now,
                strategy,
                instrument: terms.instrument,
                qty: holding.position.qty,
            });
        }
    }

    /// Reports the remainders of a strategy's positions that no order can close. The strategy
    /// counts as flat.
    fn notify_dust(&mut self, strategy: StrategyId) {
        let ledger = &self.ledgers.strategies[usize::from(strategy.0)];
        for (instrument, _, holding) in ledger.iter() {
            if holding.position.is_flat() {
                continue;
            }
            let grains = Grains::of(&self.instruments[usize::from(instrument.0)]);
            self.notices.push_back(Notice::Dust {
                time: self.now,
                strategy,
                instrument,
                left: grains.amount(holding.position.held(grains)),
            });
        }
    }

    /// The quantity that can be sold. On spot, this is at most the account's balance, whatever the
    /// ledger shows.
    fn sellable(&self, instrument: &Instrument, qty: i64) -> i64 {
        if instrument.surface != Surface::Spot || qty <= 0 {
            return qty;
        }
        let grains = Grains::of(instrument);
        let owned = self.balance(Surface::Spot, instrument.base).total;
        qty.min(grains.qty(grains.of_amount(owned))).max(0)
    }

    /// Whether the venue would refuse a spot order because its value is too small. On futures, an
    /// order that only reduces may have any size.
    fn is_worth_too_little(&self, terms: &OrderTerms) -> bool {
        if self.surface_of(terms.instrument) != Surface::Spot {
            return false;
        }
        let too_little = [Rule::MinNotional, Rule::NotionalMin];
        let checked = self.check_venue_rules(terms, OpenOrders::default());
        checked.is_err_and(|broken| too_little.contains(&broken.rule))
    }

    /// One market order per open position of a strategy, within the market lot size. A close never
    /// opens a position: its quantity is at most what outside orders left of the account's position
    /// (see [`Engine::closable`]). The order has `reduceOnly` where the account's net position
    /// covers it. An uncovered close is sent only where strategies net against each other.
    pub(super) fn closing_orders(&self, strategy: StrategyId) -> Vec<OrderTerms> {
        let mut orders = Vec::new();
        for (id, position_side, holding) in self.ledgers.strategies[usize::from(strategy.0)].iter()
        {
            let instrument = &self.instruments[usize::from(id.0)];
            let qty = self.sellable(instrument, holding.position.qty);
            let filters = &instrument.filters;
            let side = if qty > 0 { Side::Sell } else { Side::Buy };
            let whole = self.closable(strategy, id, position_side, side);
            let whole = whole.min(qty.saturating_abs());
            let qty_lots = close_qty(
                whole - self.left_to_opposite(strategy, (id, position_side), side, whole),
                &[filters.lot_size, filters.market_lot_size],
            );
            if qty_lots == 0 {
                continue;
            }
            let mut terms = OrderTerms::new(id, side, OrderType::Market);
            terms.position_side = position_side;
            match (instrument.surface, side) {
                (Surface::Spot, Side::Buy) => {
                    let Some(ask) = self.book_level(id, Side::Sell, 0) else {
                        continue;
                    };
                    terms.quote_qty = Some(instrument.notional(ask.price, qty_lots));
                }
                _ => terms.qty = Some(Qty(qty_lots)),
            }
            let account = self.ledgers.account.at(id, position_side).position.qty;
            terms.reduce_only = instrument.surface == Surface::Futures
                && position_side == PositionSide::Both
                && covers(account, side, qty_lots)
                && !planted!(ExitMayOpen);
            if !self.is_worth_too_little(&terms) {
                orders.push(terms);
            }
        }
        orders
    }
}

/// The pause in milliseconds after a closing order. `tries` is the number of quick tries that were
/// left, including this one.
const fn pause_after(tries: u32) -> i64 {
    if tries <= 1 {
        return SLOW_PAUSE_MS;
    }
    let done = FLATTEN_TRIES.saturating_sub(tries);
    let pause_ms = FLATTEN_PAUSE_MS.0 << (if done < 5 { done } else { 5 });
    if pause_ms < FLATTEN_PAUSE_MS.1 {
        pause_ms
    } else {
        FLATTEN_PAUSE_MS.1
    }
}

/// Whether an order closes a side in hedge mode: the venue lets it open nothing.
pub(super) const fn closes_side(terms: &OrderTerms) -> bool {
    matches!(
        (terms.position_side, terms.side),
        (PositionSide::Long, Side::Sell) | (PositionSide::Short, Side::Buy)
    )
}

/// Whether an order reduces a net position without flipping it.
pub(crate) const fn covers(position: i64, side: Side, qty: i64) -> bool {
    match side {
        Side::Sell => position >= qty,
        Side::Buy => position <= -qty,
    }
}

/// The largest quantity up to `qty` that the lot sizes allow; 0 if they allow none.
pub(super) fn close_qty(qty: i64, lots: &[Option<LotSize>]) -> i64 {
    let mut allowed = qty;
    for lot in lots.iter().flatten() {
        if lot.max_qty > 0 {
            allowed = allowed.min(lot.max_qty);
        }
        if lot.step_size > 0 && allowed >= lot.min_qty {
            allowed -= (allowed - lot.min_qty) % lot.step_size;
        }
        if allowed < lot.min_qty {
            return 0;
        }
    }
    allowed
}
