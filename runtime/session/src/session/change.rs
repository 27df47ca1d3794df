//! Configuration changes of a running session, played recordings, and the end of a run.

use windvane_model::Input as EngineInput;
use windvane_model::config::Reconfiguration;
use windvane_model::forced::OnLiquidation;
use windvane_model::input::Command;
use windvane_model::live::OnStop;
use windvane_model::{StrategyId, Time, planted};

use super::Session;
use super::events::{Ended, Input};
use crate::driver::Renewed;
use crate::guests::Guests;
use crate::requests::Requests;

/// How a strategy left quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freed {
    /// How its new instance began.
    pub renewed: Renewed,
    /// A saved state existed.
    pub had_state: bool,
}

/// Configuration changes. Drain [`Session::poll_output`] after each call.
impl<G: Guests> Session<G> {
    /// The strategies, mutable, for changes between inputs.
    pub const fn guests_mut(&mut self) -> &mut G {
        self.driver.guests_mut()
    }

    /// The present state of a strategy, or its last saved state if it cannot save any more.
    pub(super) fn state(&mut self, now: Time, strategy: StrategyId) -> Option<Vec<u8>> {
        let state = self.driver.state(self.clock.at(now), strategy);
        self.act(now);
        self.settle(now);
        state
    }

    /// Tests whether a strategy's module starts with this state. The test has no effect.
    ///
    /// # Errors
    /// The reason why it does not start.
    pub(super) fn rehearse(
        &mut self,
        strategy: StrategyId,
        state: Option<&[u8]>,
    ) -> Result<(), String> {
        self.driver.rehearse(strategy, state)
    }

    /// Handles an operator command for one strategy. A resume of a strategy in quarantine first
    /// starts a new instance of its module with the last saved state, or without it if the instance
    /// cannot load it. Returns how the instance began.
    ///
    /// # Errors
    /// The reason why the new instance does not start. The strategy stays in quarantine, and the
    /// command has no effect.
    pub fn steer(
        &mut self,
        now: Time,
        strategy: StrategyId,
        command: Command,
    ) -> Result<Option<Freed>, String> {
        let mut freed = None;
        if command == Command::Resume && self.engine().fault(strategy).is_some() {
            let saved = self.driver.guests().saved(strategy);
            freed = Some(Freed {
                renewed: self.renew(now, strategy, saved.as_deref(), true)?,
                had_state: saved.is_some(),
            });
        }
        self.handle(now, Input::Command(command, Some(strategy)));
        Ok(freed)
    }

    /// Starts a new instance of a strategy's module, see [`Driver::renew`].
    ///
    /// # Errors
    /// The reason why it does not start. The strategy is in quarantine then.
    pub(super) fn renew(
        &mut self,
        now: Time,
        strategy: StrategyId,
        state: Option<&[u8]>,
        may_be_fresh: bool,
    ) -> Result<Renewed, String> {
        let time = self.clock.at(now);
        if planted!(ReloadAppliedTwice) {
            drop(self.driver.renew(time, strategy, state, may_be_fresh));
        }
        let renewed = self.driver.renew(time, strategy, state, may_be_fresh);
        self.act(now);
        self.settle(now);
        renewed
    }

    /// Sets the hash of a strategy's module, for the checkpoint of the next segment.
    pub(super) fn replace_module(&mut self, strategy: StrategyId, sha256: [u8; 32]) {
        if let Some(module) = self.modules.get_mut(usize::from(strategy.0)) {
            module.1 = sha256;
        }
    }

    /// Applies new limits and reactions. The next segment begins as soon as possible, with the new
    /// modules and the present states.
    pub(super) fn reconfigure(
        &mut self,
        now: Time,
        next: &Reconfiguration,
        reaction: OnLiquidation,
    ) {
        self.engine_input(now, EngineInput::Reconfigure(next));
        if self.engine().on_liquidation() != reaction {
            self.engine_input(now, EngineInput::OnLiquidation(reaction));
        }
        self.settle(now);
        self.flattens = next.on_stop == OnStop::Flatten;
        self.writer.want_roll();
    }
}

/// The end of a run.
impl<G: Guests> Session<G> {
    pub(super) fn look_for_end(&mut self, now: Time) {
        if self.ended.is_some() {
            return;
        }
        if let Some(order) = self.driver.engine().other_instance() {
            return self.end(now, Ended::AnotherInstance(order));
        }
        let Some(stop) = &mut self.stop else { return };
        let engine = self.driver.engine();
        let is_idle = self.requests.as_ref().is_none_or(Requests::is_idle);
        if engine.has_stopped() || (is_idle && planted!(StopLeavesAnOrder)) {
            return self.end(now, Ended::Stopped);
        }
        stop.sit_out(now, engine, (&self.surfaces, self.flattens));
        if stop.by() <= now {
            self.end(now, Ended::Hurried);
        }
    }

    /// Ends the run and its last block. Unless the stop was cut short, a last segment begins. Its
    /// checkpoint holds the states of the strategies, and the next start restores them.
    pub(super) fn end(&mut self, now: Time, ended: Ended) {
        self.ended = Some(ended);
        self.driver.seal();
        self.act(now);
        if ended == Ended::Hurried {
            return;
        }
        if self.writer.has_failed() || self.writer.is_behind() {
            tracing::warn!(
                "the journal has no room for the final states: after a restart, strategies \
                 continue from their last saved states"
            );
            return;
        }
        self.roll(now);
    }
}

/// A played recording: events happen in the order of the recording's time.
impl<G: Guests> Session<G> {
    /// When the simulated account or the engine has something to do, by the engine's clock.
    pub fn next_played(&self) -> Time {
        let timer = self.driver.next_timeout().unwrap_or(Time::NEVER);
        timer.min(self.account.next())
    }

    /// Advances the recording to `time` and handles the one event that comes first: a message of
    /// the simulated account, or a timer of the engine. Returns whether there was one.
    pub fn play(&mut self, now: Time, time: Time) -> bool {
        self.clock.pass(time);
        let has_happened = self.handle_account_outputs(now) || self.engine_timeout(now);
        self.settle(now);
        self.look_for_end(now);
        has_happened
    }

    /// A second of the recording is over: its records become durable. This depends on the
    /// recording's time, so that the same run makes the same blocks.
    pub fn end_second(&mut self, now: Time) {
        self.save(now);
    }
}
