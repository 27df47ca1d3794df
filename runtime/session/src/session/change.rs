//! Configuration changes of a running session, played recordings, and the end of a run.

use windvane_model::Input as EngineInput;
use windvane_model::config::Reconfiguration;
use windvane_model::forced::OnLiquidation;
use windvane_model::live::OnStop;
use windvane_model::{StrategyId, Time, planted};

use super::Session;
use super::events::Ended;
use crate::guests::Guests;
use crate::requests::Requests;

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
