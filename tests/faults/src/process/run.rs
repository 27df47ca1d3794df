//! Gives inputs to the session of a process and executes its outputs.

use std::time::Duration;

use windvane_client_core::outcome::Lost;
use windvane_model::input::Command;
use windvane_model::{Request, StrategyId, Time};
use windvane_session::watchdog::KeeperInput;
use windvane_session::{
    Call, CallAnswer, Ended, Input, JournalEvent, Output, SocketAction, is_public,
};

use super::{Out, Process, REQUEST, StreamKey, Wire, shown};
use crate::witness::{RequestId, WitnessEvent};

impl Process {
    /// The shell's clock: the wall clock at the start, then counted.
    pub(super) const fn shell_time(&self) -> Time {
        Time(self.now_ns + self.counted_from_ns)
    }

    /// Gives an input to the session, if there is one, and executes its outputs.
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

    /// Executes the outputs of the session until there are no more.
    pub(super) fn perform(&mut self) {
        if let Some((session, shown)) = &mut self.run {
            shown.observed(session, &mut self.outs);
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
            Output::Roll(checkpoint, at) => self.outs.push_back(Out::Roll(checkpoint, at)),
            Output::BugReport { broken, snapshot } => {
                self.outs
                    .push_back(Out::WitnessEvent(WitnessEvent::InvariantBroken {
                        text: broken.to_string(),
                        report: snapshot.len(),
                    }));
            }
            Output::Sign(id, unsigned) => self.signer.take(self.now_ns, id, unsigned),
            Output::Send(call) => self.send(call),
            Output::Abandon(id) => self.abandon(id),
            Output::KillSwitch(kill_switches) => {
                self.outs.push_back(Out::KillSwitches(kill_switches));
            }
            Output::Handed { request, .. } => {
                let top = shown::top(session, &request);
                self.outs.extend(top.map(Out::WitnessEvent));
                if let Request::Place(order) = &request {
                    self.outs
                        .push_back(Out::WitnessEvent(WitnessEvent::Released {
                            client_order_id: order.client_order_id.as_str().to_owned(),
                            at_ns: self.now_ns,
                        }));
                }
            }
            Output::Socket(surface, link, action) => {
                let key = StreamKey {
                    surface,
                    user: !is_public(link),
                };
                if matches!(action, SocketAction::Open(_)) {
                    let surface = surface.to_string();
                    self.outs
                        .push_back(Out::WitnessEvent(WitnessEvent::Handshake { surface }));
                }
                self.outs.push_back(match action {
                    SocketAction::Open(path) => Out::Open(key, link, path),
                    SocketAction::SendText(text) => Out::SendText(key, link, text),
                    SocketAction::Ping => Out::Ping(key, link),
                    SocketAction::Close => Out::Close(key, link),
                });
            }
            Output::Notice(notice) => shown.notice(session, &notice, &mut self.outs),
            Output::Ended(ended) => {
                if ended.lets_watchdog_go() {
                    self.keep(KeeperInput::End);
                }
                self.outs.push_back(match ended {
                    Ended::Stopped => Out::Stopped("stopped"),
                    Ended::Hurried => Out::Stopped("hurried"),
                    Ended::AnotherInstance(order) => Out::Ended(format!(
                        "the process ends: another instance placed {}",
                        order.as_str()
                    )),
                });
            }
            Output::Heartbeat(number) => {
                self.outs
                    .push_back(Out::WitnessEvent(WitnessEvent::Heartbeat));
                self.heartbeat(number);
            }
            Output::Replied(_)
            | Output::CallEnded(_)
            | Output::BudgetWait(..)
            | Output::Stream { .. } => {}
        }
    }

    /// Passes a call to the socket.
    pub(super) fn send(&mut self, call: Call) {
        let ns = |by: Time| by.0.saturating_sub(self.counted_from_ns);
        self.outs.push_back(Out::Send(Wire {
            id: call.id,
            route: call.route,
            prepared: call.prepared,
            leave_by_ns: call.leave_by.map(ns),
        }));
    }

    /// Abandons a call. If it has not left, the runtime knows that.
    pub(super) fn abandon(&mut self, id: RequestId) {
        let is_it = |out: &Out| matches!(out, Out::Send(wire) if wire.id == id);
        if let Some(place) = self.outs.iter().position(is_it) {
            self.outs.remove(place);
            return self.called(id, CallAnswer::Late(Duration::ZERO));
        }
        self.outs
            .push_back(Out::WitnessEvent(WitnessEvent::AnswerReceived {
                request: id,
                answer: None,
            }));
        let lost = CallAnswer::Lost(Lost::Timeout(REQUEST));
        self.called(id, lost);
    }

    /// Gives a command of the operator to the session.
    pub(super) fn command(&mut self, command: Command, whom: Option<StrategyId>) {
        let Some((session, _)) = &self.run else {
            return;
        };
        let engine = session.engine();
        let strategy = whom.and_then(|id| engine.strategy_name(id).map(str::to_owned));
        self.outs
            .push_back(Out::WitnessEvent(WitnessEvent::Commanded {
                strategy,
                command: format!("{command:?}").to_lowercase(),
            }));
        self.input(Input::Command(command, whom));
    }

    /// Asks the run for an orderly end.
    pub(super) fn stop(&mut self) {
        if self.run.is_some() {
            let process = self.life;
            self.outs
                .push_back(Out::WitnessEvent(WitnessEvent::Stopping { process }));
            self.input(Input::Stop);
        }
    }

    /// Handles the session's timers.
    pub(super) fn keep_session_time(&mut self) {
        let now = self.shell_time();
        let Some((session, _)) = &self.run else {
            return;
        };
        if session.poll_timeout().is_some_and(|(due, _)| due <= now) {
            self.input(Input::Timeout);
        }
    }
}
