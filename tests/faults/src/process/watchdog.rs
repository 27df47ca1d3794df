//! The watchdog process of spot orders, from the side of the run. The session's keeper decides, as
//! in `runtime/live/src/watchdog/keeper.rs`.

use windvane_live::startup_steps;
use windvane_model::Time;
use windvane_session::Input;
use windvane_session::watchdog::{Keeper, KeeperInput, KeeperOutput};

use super::{Out, Process};

impl Process {
    /// The run begins: it keeps a watchdog process if it trades spot.
    pub(super) fn begin_watchdog(&mut self) {
        if startup_steps::is_watched(&self.setup.config, &self.setup.names) {
            self.keeper = Some(Keeper::new(Time(self.now_ns)));
            self.perform_keeper();
        }
    }

    /// Sends a sign of health to the watchdog process.
    pub(super) fn heartbeat(&mut self, number: u64) {
        let stopped_ms = self.spot_stopped_ms();
        self.keep(KeeperInput::Heartbeat { number, stopped_ms });
    }

    /// The watchdog process has ended.
    pub(super) fn watchdog_is_gone(&mut self) {
        let stopped_ms = self.spot_stopped_ms();
        self.keep(KeeperInput::ProcessEnded { stopped_ms });
    }

    /// When the keeper's next timer is due.
    pub(super) fn keeper_due_ns(&self) -> Option<i64> {
        Some(self.keeper.as_ref()?.poll_timeout()?.0)
    }

    pub(super) fn keep_watchdog_time(&mut self) {
        if self.keeper_due_ns().is_some_and(|due| due <= self.now_ns) {
            self.keep(KeeperInput::Timeout);
        }
    }

    pub(super) fn keep(&mut self, input: KeeperInput) {
        if let Some(keeper) = &mut self.keeper {
            keeper.handle(Time(self.now_ns), input);
            self.perform_keeper();
        }
    }

    fn perform_keeper(&mut self) {
        while let Some(output) = self.keeper.as_mut().and_then(Keeper::poll_output) {
            match output {
                KeeperOutput::Report(input) => self.input(Input::Live(input)),
                output => self.outs.push_back(Out::Watchdog(output)),
            }
        }
    }
}
