//! The engine's thread while recordings are played: whatever is due first in the recording's time
//! happens first, so that the same recordings give the same run at any pace.
//!
//! Ties go, in this order, to: what the simulated venue says, the engine's timers, the end of the
//! second, the market. It is the order of a backtest.

use std::time::Duration;

use windvane_engine::{Input, Time};

use super::player::Player;
use super::pulse::{Pulse, State};
use super::results::Results;

/// So many things happen before people and the journal are looked after.
const TURN: usize = 256;
/// While the journal has no room.
const JOURNAL_PAUSE: Duration = Duration::from_millis(10);

impl Pulse {
    /// How long to wait for the next thing of the recording; `None` if none is played.
    pub(super) fn pause_of_playing(&mut self, state: &State) -> Option<Duration> {
        let next = self.next_of_playing()?;
        if state.is_behind() {
            return Some(JOURNAL_PAUSE);
        }
        let now = self.clock.now();
        let player = self.player.as_mut()?;
        Some(player.wait(now, next))
    }

    /// Does what is due; after the last event the run ends as if it was asked to.
    pub(super) fn play(&mut self, state: &mut State) {
        self.append(state);
        for _ in 0..TURN {
            let Some(next) = self.next_of_playing() else {
                return;
            };
            if self.player.as_ref().is_some_and(Player::has_ended) && !state.is_stopping() {
                tracing::info!("the recordings end");
                self.begin_stop(state);
                continue;
            }
            let now = self.clock.now();
            let due = next.max(now);
            let waits = |player: &mut Player| !player.wait(now, due).is_zero();
            let done = state.is_stopping() && self.driver.engine().has_stopped();
            if done || next == Time::NEVER || state.is_behind() {
                return;
            }
            if self.player.as_mut().is_some_and(waits) {
                return;
            }
            self.clock.pass(due);
            self.happen(due, state);
        }
    }

    /// A second of the recording is over: what was recorded of it becomes durable, by the
    /// recording's time, so that the same run makes the same blocks.
    fn end_second(&mut self, state: &mut State) {
        if let Some(results) = &mut self.results {
            results.sample(self.driver.engine());
        }
        self.driver.save(self.clock.now());
        self.driver.seal();
        self.act(state);
    }

    /// The one thing that comes first at a time.
    fn happen(&mut self, now: Time, state: &mut State) {
        if let Some(word) = self.account.poll(now) {
            return self.handle(word.as_input(), state);
        }
        if self.driver.next_timeout().is_some_and(|at| at <= now) {
            return self.handle(Input::Timeout, state);
        }
        let second = self.results.as_ref().map(Results::next_second);
        if second.is_some_and(|at| at <= now) {
            return self.end_second(state);
        }
        let Some(player) = self.player.as_mut().filter(|player| player.time() <= now) else {
            return;
        };
        if let Some((instrument, event)) = player.event() {
            if let Some(rules) = self.driver.engine().instrument(instrument) {
                self.outside.count_frame(rules.surface);
            }
            self.account.market(now, instrument, &event);
            let input = Input::Market { instrument, event };
            if let Some(results) = &mut self.results {
                results.event(&input, player.feed_ns());
            }
            self.driver.handle(now, input);
        }
        if let Err(error) = player.step() {
            tracing::error!(%error, "the recording cannot be read on: it ends here");
            player.end();
        }
        self.act(state);
    }

    fn next_of_playing(&self) -> Option<Time> {
        let player = self.player.as_ref()?;
        let timer = self.driver.next_timeout().unwrap_or(Time::NEVER);
        let next = player.time().min(self.account.next()).min(timer);
        let second = self.results.as_ref().map(Results::next_second);
        // Once nothing else comes, no second does.
        Some(
            second
                .filter(|_| next != Time::NEVER)
                .map_or(next, |at| at.min(next)),
        )
    }
}
