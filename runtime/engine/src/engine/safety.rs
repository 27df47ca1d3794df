//! Loss limits, quarantine and halt, which keep losses and faults contained. `closing` closes
//! positions.

use windvane_model::config::OnFault;
use windvane_model::decimal::Amount;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::Notice;
use windvane_model::event::EventKind;
use windvane_model::holding::Ledger;
use windvane_model::ids::{InstrumentId, StrategyId};
use windvane_model::input::{Command, FaultKind};
use windvane_model::live::OnStop;
use windvane_model::planted;
use windvane_model::run_state::{KillSwitch, RunState};

use super::Engine;

impl Engine {
    /// Compares equity with the loss limits after the price of an instrument changed, if the
    /// instrument is held.
    #[inline]
    pub(super) fn watch_losses(&mut self, instrument: InstrumentId) {
        if !self.knows_account() {
            return;
        }
        if self.start_equity.is_none() {
            self.fix_start_equity();
        }
        let is_held = self.ledgers.account.holds(instrument);
        if self.limits.watches_equity()
            && (is_held || self.fills_from_totals.waits_in(instrument, &self.orders))
        {
            self.watch_account();
        }
        if self.any_strategy_watches {
            self.watch_strategies(|ledger| ledger.holds(instrument));
        }
    }

    /// Compares equity with the loss limits after a fill. The realized profit or loss counts even
    /// if no position is left.
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

    /// Compares equity with the loss limits without a market or order event. Fills that were
    /// recovered before the account was known count as soon as it is known, even if no price of a
    /// held instrument changes afterwards.
    pub(super) fn watch_all_losses(&mut self) {
        if self.start_equity.is_some() && !planted!(LossWhileDownForgotten) {
            self.watch_losses_after_fill();
        }
    }

    /// A halted account is checked too, because its daily loss and its peak continue.
    fn watch_account(&mut self) {
        let Some(equity) = self.equity() else { return };
        let evidence = self.evidence();
        let equity = equity + evidence.fees_to_come() + evidence.gain_of_fills_from_totals();
        let best = evidence.best_equity(equity);
        let (now, base) = (self.now, Amount::ZERO);
        let breach = match best {
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

    /// A strategy's equity is its profit. Its drawdown is measured from the account's start equity
    /// plus the strategy's peak profit.
    fn watch_strategies(&mut self, concerned: impl Fn(&Ledger) -> bool) {
        if self.evidence().strategy_limits_wait() {
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

    /// Quarantines one strategy; the other strategies are not affected.
    pub(super) fn quarantine(&mut self, strategy: StrategyId, kind: FaultKind) {
        let Some(state) = self.strategies.get_mut(usize::from(strategy.0)) else {
            return;
        };
        if state.fault.is_some() {
            return;
        }
        state.fault = Some(kind);
        let on_fault = state.config.on_fault;
        self.trading_status.note_fault(strategy, self.now);
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
            Command::Pause if !self.halted() => self.set_kill_switch(KillSwitch::Paused),
            Command::Pause => {}
            Command::Resume => self.resume(),
            Command::Halt | Command::Flatten => {
                self.notices.push_back(Notice::Halted {
                    time: self.now,
                    limit: None,
                });
                self.halt();
                if command == Command::Flatten {
                    self.flatten_all();
                }
            }
        }
    }

    /// `resume` after a breach accepts the loss so far: the limits count from here. After a pause,
    /// a margin call or an operator's halt, the loss of the day stays counted.
    fn resume(&mut self) {
        if let Some(equity) = self.equity() {
            self.losses.accept(equity);
        }
        for index in 0..self.strategies.len() {
            let strategy = StrategyId(index as u16);
            // A flatten command for one strategy continues in spite of the account's resume.
            let is_halted = self.strategies[index].kill_switch == KillSwitch::Halted;
            if !is_halted && !self.must_be_closed(strategy) {
                self.end_flattening(strategy);
            }
        }
        self.accept_forced_closes();
        self.give_up_missing_coins();
        self.set_degraded(DegradedReason::MarginCall, false);
        self.set_degraded(DegradedReason::Ownership, false);
        self.set_degraded(DegradedReason::BrokenInvariant, false);
        let tries = self.try_blocks_again();
        self.accept_instance();
        let before = self.state;
        self.set_kill_switch(KillSwitch::Clear);
        self.check_books();
        if tries && self.state == before {
            // The state does not change, so this event tells strategies that one order may be
            // tried.
            self.deliver_trial();
        }
    }

    /// Whether a strategy is closed because of its own fault or the stop of the run: no `resume`
    /// ends that.
    pub(super) fn must_be_closed(&self, strategy: StrategyId) -> bool {
        let state = &self.strategies[usize::from(strategy.0)];
        let by_fault = state.fault.is_some() && state.config.on_fault == OnFault::Flatten;
        let live = self.live.as_ref();
        let by_stop =
            live.is_some_and(|live| live.stopping && live.config.on_stop == OnStop::Flatten);
        by_fault || by_stop
    }

    pub(super) fn halt(&mut self) {
        self.set_kill_switch(KillSwitch::Halted);
        for index in 0..self.strategies.len() {
            self.cancel_own(StrategyId(index as u16));
        }
    }

    pub(super) fn set_kill_switch(&mut self, kill_switch: KillSwitch) {
        self.kill_switch = kill_switch;
        self.update_state();
    }

    pub(super) fn enter(&mut self, state: RunState) {
        let before = self.state;
        self.state = state;
        if state.as_seen_by_strategies() == before.as_seen_by_strategies() {
            return;
        }
        for index in 0..self.strategies.len() {
            let kill_switch = self.strategies[index].kill_switch;
            if state.under(kill_switch).as_seen_by_strategies()
                != before.under(kill_switch).as_seen_by_strategies()
            {
                self.deliver_state(StrategyId(index as u16));
            }
        }
    }

    /// Reports to a strategy the state that applies to it.
    pub(super) fn deliver_state(&mut self, strategy: StrategyId) {
        let kill_switch = self.strategies[usize::from(strategy.0)].kill_switch;
        let mut state = self.state.under(kill_switch);
        if state == RunState::Degraded
            && self.kill_switch == KillSwitch::Clear
            && self.is_on_trial()
        {
            // One order must show whether the venue accepts orders again.
            state = RunState::Ready.under(kill_switch);
        }
        let fields = [state.as_seen_by_strategies(), 0, 0, 0, 0, 0];
        let event = self.event(EventKind::RuntimeState, InstrumentId(0), 0, fields, 0);
        self.deliver(strategy, event);
    }

    pub(super) fn cancel_own(&mut self, strategy: StrategyId) {
        self.request_cancel_all(strategy, None);
    }
}
