//! The engine's thread while recordings are played. The earliest event in the recording's time is
//! always handled first, so the same recordings give the same run at any pace.
//!
//! Events at the same time are handled in this order, as in a backtest: messages of the simulated
//! venue, the engine's timers, the end of the second, the market.

use std::time::Duration;

use windvane_model::{Input as EngineInput, Time};
use windvane_session::Input;

use super::loop_state::{EventLoop, State};
use super::player::Player;
use super::results::Results;

/// How many events are handled before commands and the journal get a turn.
const TURN: usize = 256;
/// How long to wait while the journal has no room.
const JOURNAL_PAUSE: Duration = Duration::from_millis(10);

impl EventLoop {
    /// How long to wait for the recording's next event; `None` if no recording is played.
    pub(super) fn pause_of_playing(&mut self) -> Option<Duration> {
        let next = self.next_of_playing()?;
        // A recording waits for the start of a strategy: at full speed it would pass minutes.
        if self.session.is_behind() || self.session.is_starting() {
            return Some(JOURNAL_PAUSE);
        }
        let time = self.session.time(self.clock.now());
        let player = self.player.as_mut()?;
        Some(player.wait(time, next))
    }

    /// Handles the events that are due. After the last event the run stops as if it was asked to.
    pub(super) async fn play(&mut self, state: &mut State) {
        for _ in 0..TURN {
            let Some(next) = self.next_of_playing() else {
                return;
            };
            let is_stopping = self.session.is_stopping();
            if self.player.as_ref().is_some_and(Player::has_ended) && !is_stopping {
                tracing::info!("all recordings were played: the run stops");
                self.begin_stop(state).await;
                continue;
            }
            let time = self.session.time(self.clock.now());
            let due = next.max(time);
            let waits = |player: &mut Player| !player.wait(time, due).is_zero();
            let done = is_stopping && self.session.engine().has_stopped();
            let waits_for_others = self.session.is_behind() || self.session.is_starting();
            if done || next == Time::NEVER || waits_for_others {
                return;
            }
            if self.player.as_mut().is_some_and(waits) {
                return;
            }
            self.happen(due);
            self.perform(state).await;
        }
    }

    /// Handles the one event that comes first at a time of the recording.
    fn happen(&mut self, time: Time) {
        let now = self.clock.now();
        if self.session.play(now, time) {
            return;
        }
        if let Some(results) = &mut self.results
            && results.next_second() <= time
        {
            results.sample(self.session.engine());
            return self.session.end_second(now);
        }
        let Some(player) = self.player.as_mut().filter(|player| player.time() <= time) else {
            return;
        };
        if let Some((instrument, event)) = player.event() {
            if let Some(rules) = self.session.engine().instrument(instrument) {
                self.services.count_frame(rules.surface);
            }
            if let Some(results) = &mut self.results {
                let input = EngineInput::Market { instrument, event };
                results.event(&input, player.feed_ns());
            }
            self.session
                .handle(now, Input::Market { instrument, event });
        }
        if let Err(error) = player.step() {
            tracing::error!(%error, "cannot read the rest of the recording: the run ends here");
            player.end();
        }
    }

    fn next_of_playing(&self) -> Option<Time> {
        let player = self.player.as_ref()?;
        let next = player.time().min(self.session.next_played());
        let second = self.results.as_ref().map(Results::next_second);
        // When no other event follows, the seconds end too.
        Some(
            second
                .filter(|_| next != Time::NEVER)
                .map_or(next, |at| at.min(next)),
        )
    }
}
