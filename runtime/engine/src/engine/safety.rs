//! What keeps losses and faults where they are: loss limits, quarantine, halt, flatten.

use crate::decimal::Amount;
use crate::effect::Notice;
use crate::event::EventKind;
use crate::holding::Ledger;
use crate::ids::{InstrumentId, StrategyId};
use crate::input::{Command, FaultKind};
use crate::instrument::{Instrument, LotSize};
use crate::ledger::Grains;
use crate::order::{OrderTerms, OrderType, PositionSide, Qty, Side, Surface};
use crate::order_state::OrderMove;
use crate::planted;
use crate::rules::Rule;

use super::session::Doubt;
use super::{Engine, Latch, OpenOrders, RunState};
use crate::config::OnFault;

/// How often a position that will not close is tried again, without a fill in between, before it
/// is left to people.
pub(super) const FLATTEN_TRIES: u32 = 10;
/// From one try of a live run to the next, doubled each time up to the second bound: the venue may
/// be out of reach for a while.
const FLATTEN_PAUSE_MS: (i64, i64) = (1_000, 20_000);

impl Engine {
    /// Compares equity with the loss limits after the price of an instrument changed, where it
    /// is held.
    #[inline]
    pub(super) fn watch_losses(&mut self, instrument: InstrumentId) {
        if !self.knows_account() {
            return;
        }
        if self.start_equity.is_none() {
            self.fix_start_equity();
        }
        if self.limits.watches_equity() && self.ledgers.account.holds(instrument) {
            self.watch_account();
        }
        if self.any_strategy_watches {
            self.watch_strategies(|ledger| ledger.holds(instrument));
        }
    }

    /// Compares equity with the loss limits after a fill: what it realized counts, whether or not
    /// anything is held any more.
    pub(super) fn watch_losses_after_fill(&mut self) {
        if !self.knows_account() {
            return;
        }
        if self.limits.watches_equity() {
            self.watch_account();
        }
        if self.any_strategy_watches {
            self.watch_strategies(|_| true);
        }
    }

    /// Compares equity with the loss limits without an event of the market or of an order. Fills that
    /// are recovered before the account is known count as soon as it is known, although no price
    /// of a held instrument moves afterwards.
    pub(super) fn watch_all_losses(&mut self) {
        if self.start_equity.is_some() && !planted!(LossWhileDownForgotten) {
            self.watch_losses_after_fill();
        }
    }

    /// A halted account is watched, too: its day and its peak go on.
    fn watch_account(&mut self) {
        let Some(equity) = self.equity() else { return };
        let (now, base) = (self.now, Amount::ZERO);
        let breach = match self.best_equity(equity) {
            Some(best) => self.losses.breach(now, best, base, &self.limits),
            None => self.losses.observe(now, equity, base, &self.limits),
        };
        if let Some(limit) = breach
            && !self.halted()
        {
            self.losses.mark_breached();
            self.notices.push_back(Notice::Halted {
                time: self.now,
                limit: Some(limit),
            });
            self.halt();
        }
    }

    /// A strategy's equity is its profit; a drawdown is measured from the account's start equity
    /// plus the strategy's peak profit.
    fn watch_strategies(&mut self, concerned: impl Fn(&Ledger) -> bool) {
        if self.strategies_wait() {
            return;
        }
        let base = self.start_equity.unwrap_or_default();
        for index in 0..self.strategies.len() {
            let state = &self.strategies[index];
            let ledger = &self.ledgers.strategies[index];
            if !state.config.limits.watches_equity() || !concerned(ledger) {
                continue;
            }
            let Some(unrealized) = self.unrealized(ledger) else {
                continue;
            };
            let profit = ledger.total(|p| p.realized_pnl - p.fees + p.funding) + unrealized;
            let state = &mut self.strategies[index];
            let limits = &state.config.limits;
            if state
                .losses
                .observe(self.now, profit, base, limits)
                .is_some()
            {
                self.quarantine(StrategyId(index as u16), FaultKind::Loss);
            }
        }
    }

    /// Puts one strategy out of service; the others never notice.
    pub(super) fn quarantine(&mut self, strategy: StrategyId, kind: FaultKind) {
        let Some(state) = self.strategies.get_mut(usize::from(strategy.0)) else {
            return;
        };
        if state.fault.is_some() {
            return;
        }
        state.fault = Some(kind);
        let on_fault = state.config.on_fault;
        self.trading.faults.insert(strategy, self.now);
        self.timers.cancel_of(strategy);
        self.notices.push_back(Notice::Quarantined {
            time: self.now,
            strategy,
            kind,
        });
        match on_fault {
            OnFault::Keep => {}
            OnFault::Cancel => self.cancel_own(strategy),
            OnFault::Flatten => self.flatten(strategy),
        }
    }

    pub(super) fn handle_command(&mut self, command: Command) {
        match command {
            Command::Pause if !self.halted() => self.latch_at(Latch::Paused),
            Command::Pause => {}
            Command::Resume => self.resume(),
            Command::Halt | Command::Flatten => {
                self.notices.push_back(Notice::Halted {
                    time: self.now,
                    limit: None,
                });
                self.halt();
                if command == Command::Flatten {
                    for index in 0..self.strategies.len() {
                        self.flatten(StrategyId(index as u16));
                    }
                }
            }
        }
    }

    /// Whoever resumes after a breach accepts the loss so far: limits count from here. After a
    /// pause, a margin call or a person's halt the day's loss stays counted.
    fn resume(&mut self) {
        if let Some(equity) = self.equity() {
            self.losses.accept(equity);
        }
        for index in 0..self.strategies.len() {
            let state = &self.strategies[index];
            // What its own fault, or a word about it alone, has closed is closed all the same.
            let by_fault = state.fault.is_some() && state.config.on_fault == OnFault::Flatten;
            if !by_fault && state.latch != Latch::Halted {
                self.end_flattening(StrategyId(index as u16));
            }
        }
        self.accept_forced_closes();
        self.set_doubt(Doubt::MarginCall, false);
        self.set_doubt(Doubt::Ownership, false);
        self.forget_blocks();
        self.accept_instance();
        self.latch_at(Latch::None);
    }

    pub(super) fn halt(&mut self) {
        self.latch_at(Latch::Halted);
        for index in 0..self.strategies.len() {
            self.cancel_own(StrategyId(index as u16));
        }
    }

    pub(super) fn latch_at(&mut self, latch: Latch) {
        self.latch = latch;
        self.update_state();
    }

    pub(super) fn enter(&mut self, state: RunState) {
        let before = self.state;
        self.state = state;
        if state.told() == before.told() {
            return;
        }
        for index in 0..self.strategies.len() {
            let latch = self.strategies[index].latch;
            if state.under(latch).told() != before.under(latch).told() {
                self.tell_state(StrategyId(index as u16));
            }
        }
    }

    /// Tells a strategy what it may do.
    pub(super) fn tell_state(&mut self, strategy: StrategyId) {
        let latch = self.strategies[usize::from(strategy.0)].latch;
        let fields = [self.state.under(latch).told(), 0, 0, 0, 0, 0];
        let event = self.event(EventKind::RuntimeState, InstrumentId(0), 0, fields, 0);
        self.deliver(strategy, event);
    }

    pub(super) fn cancel_own(&mut self, strategy: StrategyId) {
        self.request_cancel_all(strategy, None);
    }

    /// Progress: the tries of a strategy that is being flattened start anew.
    pub(super) fn count_flattening_fill(&mut self, strategy: StrategyId) {
        let tries = &mut self.strategies[usize::from(strategy.0)].flattening;
        *tries = tries.map(|_| FLATTEN_TRIES);
    }

    /// Cancels the orders of a strategy, then closes its positions at market.
    pub(super) fn flatten(&mut self, strategy: StrategyId) {
        self.strategies[usize::from(strategy.0)].flattening = Some(FLATTEN_TRIES);
        self.cancel_own(strategy);
        self.continue_flattening(strategy);
    }

    /// Nobody wants a strategy flat any more: a closing order that still waits is not sent.
    pub(super) fn end_flattening(&mut self, strategy: StrategyId) {
        let state = &mut self.strategies[usize::from(strategy.0)];
        if state.flattening.take().is_none() {
            return;
        }
        // All that is held is closing: the strategy's own orders were taken back when it began.
        let held = self.orders.of(strategy, None).filter(|order| order.held);
        for seq in held.map(|order| order.seq).collect::<Vec<_>>() {
            self.take_back(seq, OrderMove::Cancel);
        }
    }

    /// Goes on with all that are being flattened: what they hold may be certain now.
    pub(super) fn continue_all_flattening(&mut self) {
        for index in 0..self.strategies.len() {
            self.continue_flattening(StrategyId(index as u16));
        }
    }

    /// Sends the closing orders of a strategy that is being flattened, once no order of it is
    /// open any more.
    pub(super) fn continue_flattening(&mut self, strategy: StrategyId) {
        let now = self.now;
        let state = &mut self.strategies[usize::from(strategy.0)];
        let Some(tries) = state.flattening else {
            return;
        };
        if state.open_orders > 0 || (tries < FLATTEN_TRIES && now < state.flatten_again) {
            return;
        }
        let closing = self.closing_orders(strategy);
        let uncovered = self.uncovered(strategy);
        let concerned = closing.iter().map(|terms| terms.instrument);
        let mut concerned = concerned.chain(uncovered.iter().map(|(id, ..)| *id));
        if concerned.any(|id| !self.may_close(id)) {
            return;
        }
        if closing.is_empty() {
            self.settle_with_external(strategy);
        }
        if closing.is_empty() || tries == 0 {
            self.strategies[usize::from(strategy.0)].flattening = None;
            if closing.is_empty() {
                self.tell_dust(strategy);
            }
            return;
        }
        let Some((closing, counts)) = self.closes_allowed(strategy, closing) else {
            return;
        };
        let state = &mut self.strategies[usize::from(strategy.0)];
        state.flattening = Some(if counts { tries - 1 } else { tries });
        if self.live.is_some() && counts {
            let pause_ms = FLATTEN_PAUSE_MS.0 << (FLATTEN_TRIES - tries).min(5);
            state.flatten_again = now.plus_ms(pause_ms.min(FLATTEN_PAUSE_MS.1));
        }
        let record = self.recorder.last_record();
        self.recorder.seal();
        for terms in closing {
            self.submit(strategy, record, self.next_order, terms);
        }
    }

    /// A closing order by a position that is not certain could open one; and while its timer cannot
    /// be armed, the journal does not write, or the venue said wait, it would be tried in vain.
    fn may_close(&self, instrument: InstrumentId) -> bool {
        let surface = self.surface_of(instrument);
        let live = self.live.as_ref();
        live.is_none_or(|live| live.healthy(surface, self.now))
            && !self.is_letting_go(instrument)
            && self.venue_wait(surface).is_none()
    }

    /// Tells what is left of a strategy's positions that no order can close: it counts as flat.
    fn tell_dust(&mut self, strategy: StrategyId) {
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

    /// On spot no more can be sold than is there, whatever the ledger says.
    fn sellable(&self, instrument: &Instrument, qty: i64) -> i64 {
        if instrument.surface != Surface::Spot || qty <= 0 {
            return qty;
        }
        let grains = Grains::of(instrument);
        let owned = self.balance(Surface::Spot, instrument.base).total;
        qty.min(grains.qty(grains.of_amount(owned))).max(0)
    }

    /// Whether the venue would refuse a spot order as worth too little; on futures what only
    /// reduces may be of any size.
    fn is_worth_too_little(&self, terms: &OrderTerms) -> bool {
        if self.surface_of(terms.instrument) != Surface::Spot {
            return false;
        }
        let too_little = [Rule::MinNotional, Rule::NotionalMin];
        let checked = self.check_venue_rules(terms, OpenOrders::default());
        checked.is_err_and(|broken| too_little.contains(&broken.rule))
    }

    /// One market order per open position of a strategy, within the market lot size. A close never
    /// opens: it is for no more than what outside orders left of the account's position (see
    /// [`Engine::closable`]), and `reduceOnly` on the wire where the account's net position
    /// covers it. Uncovered closes are sent where strategies net between each other alone.
    pub(super) fn closing_orders(&self, strategy: StrategyId) -> Vec<OrderTerms> {
        let mut orders = Vec::new();
        for (id, position_side, holding) in self.ledgers.strategies[usize::from(strategy.0)].iter()
        {
            let instrument = &self.instruments[usize::from(id.0)];
            let qty = self.sellable(instrument, holding.position.qty);
            let filters = &instrument.filters;
            let side = if qty > 0 { Side::Sell } else { Side::Buy };
            let qty_lots = close_qty(
                self.closable(strategy, id, position_side, side)
                    .min(qty.saturating_abs()),
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
                && covers(account, side, qty_lots);
            if !self.is_worth_too_little(&terms) {
                orders.push(terms);
            }
        }
        orders
    }
}

/// Whether a net position is reduced, and not flipped, by an order.
pub(crate) const fn covers(position: i64, side: Side, qty: i64) -> bool {
    match side {
        Side::Sell => position >= qty,
        Side::Buy => position <= -qty,
    }
}

/// The largest quantity up to `qty` that the lot sizes allow; 0 if none.
fn close_qty(qty: i64, lots: &[Option<LotSize>]) -> i64 {
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
