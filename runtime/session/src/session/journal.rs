//! The journal and the timers: when blocks and segments end, and which timers are due.

use windvane_model::Input as EngineInput;
use windvane_model::live::LiveInput;
use windvane_model::{Surface, Time, planted};

use super::Session;
use super::events::{JournalEvent, Output};
use crate::checkpoint::new_checkpoint;
use crate::guests::Guests;

impl<G: Guests> Session<G> {
    pub(super) fn journal(&mut self, now: Time, event: JournalEvent) {
        let healthy = |healthy| LiveInput::Journal { healthy };
        match event {
            JournalEvent::Durable(record) => {
                self.since = self.writer.settle(record);
                self.release(now, record);
                self.since = None;
            }
            JournalEvent::Rolled(record) => {
                let had_failed = self.writer.rolled(now);
                self.writer.settle(record);
                self.release(now, record);
                if had_failed {
                    self.live(now, healthy(true));
                }
                // Only a journal that failed begins a segment during a reload. A replay of this segment
                // must know the instances that start in it.
                if let Some(change) = self.starts.open_change() {
                    self.engine_input(now, EngineInput::Reconfigure(&change));
                }
            }
            JournalEvent::NotRolled => self.writer.not_rolled(now),
            JournalEvent::Stalled => self.live(now, healthy(false)),
            JournalEvent::Healthy => self.live(now, healthy(!self.writer.has_failed())),
            JournalEvent::Failed => {
                self.checkpoint = None;
                self.writer.fail(now);
                self.live(now, healthy(false));
            }
        }
    }

    pub(super) fn release(&mut self, now: Time, record: u64) {
        self.driver.durable(self.clock.at(now), record);
        self.act(now);
    }

    /// Handles all due timers: of the requests, streams, simulated account, engine, journal and
    /// kill switch file.
    pub(super) fn timeout(&mut self, now: Time) {
        if let Some(requests) = &mut self.requests {
            requests.timeout(now);
        }
        self.streams_timeout(now);
        if !self.clock.is_played() {
            while self.handle_account_outputs(now) {}
            self.engine_timeout(now);
        }
        if self.writer.seal_at() <= now {
            self.writer.seal(now);
            if planted!(WatchdogSignAfterFault) && self.surfaces.contains(&Surface::Spot) {
                self.outputs.push_back(Output::Heartbeat(0));
            }
            // The blocks of a recording end by its own time.
            if !self.clock.is_played() {
                self.save(now);
            }
        }
        if self.writer.is_roll_due(now) && self.may_roll() {
            if self.writer.may_roll() {
                self.roll(now);
            } else {
                // Without room, the states would be recorded again at each attempt.
                self.writer.not_rolled(now);
            }
        }
        self.kill_switch.timeout(now);
    }

    /// Handles the next message of the simulated account, if it is due.
    pub(super) fn handle_account_outputs(&mut self, now: Time) -> bool {
        let Some(word) = self.account.poll(self.clock.at(now)) else {
            return false;
        };
        self.engine_input(now, word.as_input());
        true
    }

    pub(super) fn engine_timeout(&mut self, now: Time) -> bool {
        let time = self.clock.at(now);
        let is_due = self.driver.next_timeout().is_some_and(|at| at <= time);
        if is_due {
            self.engine_input(now, EngineInput::Timeout);
        }
        is_due
    }

    /// Records the states of the strategies and ends the open block.
    pub(super) fn save(&mut self, now: Time) {
        self.driver.save(self.clock.at(now));
        self.driver.seal();
        self.act(now);
    }

    pub(super) fn has_unsealed(&self) -> bool {
        let engine = self.driver.engine();
        engine.records() > engine.chain().last_record || self.driver.has_unsaved()
    }

    /// Begins a new segment. Its checkpoint contains everything that the run needs to continue.
    pub(super) fn roll(&mut self, now: Time) {
        let (engine, states) = self.driver.snapshot();
        self.act(now);
        if !self.writer.may_roll() {
            return self.writer.not_rolled(now);
        }
        let made = self.driver.guests().made();
        let paper = self.account.to_bytes();
        let checkpoint = new_checkpoint(engine, states, &self.modules, made, paper).to_bytes();
        self.writer.roll(now, checkpoint.len());
        self.checkpoint = Some((checkpoint, self.driver.engine().chain()));
    }
}
