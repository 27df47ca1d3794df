//! Commands of the operator for one strategy, and changes of the configuration, during the run.

use windvane_model::config::Reconfiguration;
use windvane_model::decimal::Amount;
use windvane_model::ids::StrategyId;
use windvane_model::input::{Command, FaultKind};
use windvane_model::risk::LossWatch;
use windvane_model::run_state::KillSwitch;

use super::Engine;

impl Engine {
    /// The kill switch that the operator set for one strategy, apart from the account's kill
    /// switch.
    pub fn kill_switch_of(&self, strategy: StrategyId) -> KillSwitch {
        let state = self.strategies.get(usize::from(strategy.0));
        state.map_or(KillSwitch::Clear, |state| state.kill_switch)
    }

    /// Whether a strategy's positions are being closed.
    pub fn is_flattening(&self, strategy: StrategyId) -> bool {
        let state = self.strategies.get(usize::from(strategy.0));
        state.is_some_and(|state| state.flattening.is_some())
    }

    /// Applies a command to one strategy: the same as for the account, but only for its orders and
    /// positions. It does not end a quarantine: [`Input::Renew`](windvane_model::Input::Renew)
    /// does.
    pub(super) fn handle_strategy_command(&mut self, strategy: StrategyId, command: Command) {
        let Some(state) = self.strategies.get(usize::from(strategy.0)) else {
            return;
        };
        match command {
            Command::Pause if state.kill_switch == KillSwitch::Halted => {}
            Command::Pause => self.set_strategy_kill_switch(strategy, KillSwitch::Paused),
            Command::Resume => self.resume_one(strategy),
            Command::Halt => {
                self.set_strategy_kill_switch(strategy, KillSwitch::Halted);
                self.cancel_own(strategy);
            }
            Command::Flatten => {
                self.set_strategy_kill_switch(strategy, KillSwitch::Halted);
                self.flatten(strategy);
            }
        }
    }

    fn set_strategy_kill_switch(&mut self, strategy: StrategyId, kill_switch: KillSwitch) {
        let run = self.state;
        let state = &mut self.strategies[usize::from(strategy.0)];
        let before = run.under(state.kill_switch).as_seen_by_strategies();
        state.kill_switch = kill_switch;
        if run.under(kill_switch).as_seen_by_strategies() != before {
            self.deliver_state(strategy);
        }
    }

    /// Resumes a strategy. If it lost too much, `resume` accepts the loss: its limits count from
    /// here.
    fn resume_one(&mut self, strategy: StrategyId) {
        self.accept_loss(strategy);
        if !self.must_be_closed(strategy) {
            self.end_flattening(strategy);
        }
        self.set_strategy_kill_switch(strategy, KillSwitch::Clear);
    }

    fn accept_loss(&mut self, strategy: StrategyId) {
        if self.strategies[usize::from(strategy.0)].fault != Some(FaultKind::Loss) {
            return;
        }
        let ledger = &self.ledgers.strategies[usize::from(strategy.0)];
        let settled = ledger.total(|p| p.realized_pnl - p.fees + p.funding);
        let profit = settled + self.unrealized(ledger).unwrap_or(Amount::ZERO);
        self.strategies[usize::from(strategy.0)].losses = LossWatch::starting_at(profit);
    }

    /// Starts a new instance of a strategy's module. The timers belonged to the old instance;
    /// orders, positions and kill switch belong to the strategy. The engine reports them to the new
    /// instance, as after a restart, because nothing else would manage the resting orders.
    pub(super) fn renew_strategy(&mut self, strategy: StrategyId) {
        if usize::from(strategy.0) >= self.strategies.len() {
            return;
        }
        self.accept_loss(strategy);
        let state = &mut self.strategies[usize::from(strategy.0)];
        let was_faulty = state.fault.take().is_some();
        self.trading_status.end_fault(strategy);
        if was_faulty && state.kill_switch != KillSwitch::Halted {
            self.end_flattening(strategy);
        }
        self.timers.cancel_of(strategy);
        self.deliver_all_rules(strategy);
        self.deliver_positions(strategy);
        // The run state comes last, because it lets an instance place orders.
        self.report_unsaved_order_ends(strategy);
        // An order that ended but waits for its fills is reported when they are booked.
        let open = self
            .orders
            .of(strategy, None)
            .filter(|order| !order.state.is_final());
        let open: Vec<_> = open.map(|order| order.seq).collect();
        for seq in open {
            self.deliver_order(seq, strategy);
        }
        self.deliver_state(strategy);
    }

    /// Ends the start of a new instance beside the run. The caller delivers the events that it kept,
    /// then the run state from here. So an instance that acts on the run state has its fills.
    pub(super) fn end_start(&mut self, strategy: StrategyId) {
        if usize::from(strategy.0) < self.strategies.len() {
            self.deliver_state(strategy);
        }
    }

    /// Applies the settings that may change during a run. A configuration with another number of
    /// strategies is ignored.
    pub(super) fn reconfigure(&mut self, next: &Reconfiguration) {
        if next.strategies.len() != self.strategies.len() {
            return;
        }
        self.limits = next.limits.clone();
        for (state, terms) in self.strategies.iter_mut().zip(&next.strategies) {
            state.config.limits = terms.limits.clone();
            state.config.on_fault = terms.on_fault;
        }
        let mut strategies = self.strategies.iter();
        self.any_strategy_watches = strategies.any(|state| state.config.limits.watches_equity());
        if let Some(live) = &mut self.live {
            live.config.on_stop = next.on_stop;
        }
    }
}
