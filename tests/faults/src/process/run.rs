//! The session of a process: what happens goes in, and what it says is done.

use windvane_client::streams::sans_io;
use windvane_engine::input::Command;
use windvane_engine::live::LiveInput;
use windvane_engine::{StrategyId, Surface, Time};
use windvane_session::{Ended, Guests as _, Input, JournalEvent, Output};

use super::{Out, Process, StreamKey, shown};
use crate::client::Wire;
use crate::witness::Seen;

impl Process {
    /// The shell's clock: the wall's at the start, then counted.
    pub(super) const fn shell_time(&self) -> Time {
        Time(self.now_ns + self.counted_from_ns)
    }

    /// Tells the session, if there is one, and does what follows.
    pub(super) fn input(&mut self, input: Input<'_>) {
        let now = self.shell_time();
        let Some((session, shown)) = &mut self.run else {
            return;
        };
        if let Input::Journal(JournalEvent::Durable(record) | JournalEvent::Rolled(record)) = input
        {
            shown.durable(record);
        }
        session.handle(now, input);
        self.perform();
    }

    pub(super) fn live(&mut self, input: LiveInput) {
        self.input(Input::Live(input));
    }

    /// Does what the session says, until it says nothing more.
    pub(super) fn perform(&mut self) {
        if let Some((session, shown)) = &mut self.run {
            shown.overheard(session, &mut self.outs);
        }
        while let Some(output) = self
            .run
            .as_mut()
            .and_then(|(session, _)| session.poll_output())
        {
            self.perform_one(output);
        }
        if let Some((session, shown)) = &mut self.run {
            shown.end_step(session, &mut self.outs);
        }
    }

    fn perform_one(&mut self, output: Output) {
        let Some((session, shown)) = &mut self.run else {
            return;
        };
        match output {
            Output::Append(block) => self.outs.push_back(Out::Append(block)),
            Output::Roll(head, at) => self.outs.push_back(Out::Roll(head, at)),
            Output::Send(call) => self.outs.push_back(Out::Send(Wire::from(call))),
            Output::Abandon(id) => self.outs.push_back(Out::Seen(Seen::Heard {
                request: id,
                answer: None,
            })),
            Output::Handed { request, .. } => {
                let top = shown::top(session, &request);
                self.outs.extend(top.map(Out::Seen));
            }
            Output::Reconnect(surface) => {
                let key = StreamKey {
                    surface,
                    user: true,
                };
                self.stream(key, sans_io::Input::Restart);
            }
            Output::Notice(notice) => shown.notice(session, &notice, &mut self.outs),
            Output::Ended(Ended::AnotherInstance(order)) => {
                let why = format!(
                    "the process ends: another instance placed {}",
                    order.as_str()
                );
                self.outs.push_back(Out::Ended(why));
            }
            // No life here trades spot, and none is stopped in order.
            Output::Beat(_) | Output::Ended(_) | Output::Replied(_) | Output::CallEnded(_) => {}
        }
    }

    /// The operator commands.
    pub(super) fn command(&mut self, command: Command, whom: Option<StrategyId>) {
        let Some((session, _)) = &self.run else {
            return;
        };
        let engine = session.engine();
        let strategy = whom.and_then(|id| engine.strategy_name(id).map(str::to_owned));
        self.outs.push_back(Out::Seen(Seen::Commanded {
            strategy,
            command: format!("{command:?}").to_lowercase(),
        }));
        self.input(Input::Command(command, whom));
    }

    /// Every strategy gets a new instance of its module with the state of the old one, as in
    /// `node/src/live/reload`; one in quarantine keeps its own.
    pub(super) fn reload(&mut self) {
        let now = self.shell_time();
        let Some((session, _)) = &mut self.run else {
            return;
        };
        for place in 0..session.driver().guests().count() {
            let strategy = StrategyId(place as u16);
            if session.engine().fault(strategy).is_some() {
                continue;
            }
            let state = session.state(now, strategy);
            if let Err(reason) = session.renew(now, strategy, state.as_deref(), false) {
                let seen = Seen::Fault(format!("a reload fails: {reason}"));
                self.outs.push_back(Out::Seen(seen));
            }
        }
        self.perform();
    }

    /// Public events of a surface may have been missed.
    pub(super) fn interrupted(&mut self, surface: Surface) {
        let Some((session, _)) = &self.run else {
            return;
        };
        let instruments = session.engine().instruments().iter();
        let of_surface = instruments.filter(|rules| rules.surface == surface);
        let symbols: Vec<_> = of_surface.map(|rules| rules.symbol.clone()).collect();
        let symbols = &symbols;
        self.input(Input::Interrupted { surface, symbols });
    }

    /// The session's timers, and the latch.
    pub(super) fn keep_session_time(&mut self) {
        let now = self.shell_time();
        let Some((session, _)) = &self.run else {
            return;
        };
        if session.poll_timeout().is_some_and(|(due, _)| due <= now) {
            self.input(Input::Timeout);
        }
        let Some((session, shown)) = &mut self.run else {
            return;
        };
        let latch = shown.latch(session.engine().latch());
        self.outs.extend(latch.map(Out::Latch));
    }
}
