//! Performs the outputs of the session on the engine's thread: passes blocks to the journal,
//! requests and sockets to their tasks, and reports to the services.
//!
//! This module makes no decisions. The session and the engine make them.

use std::time::{Duration, Instant};

use windvane_admin::metrics::table;
use windvane_journal::{AppendError, RollError};
use windvane_model::{Notice, Reply, Request};
use windvane_session::{CallId, Input, JournalEvent, Output, STOP_WAITS_MS};

use super::http;
use super::loop_state::{EventLoop, State};
use super::mailbox::CallOutcome;
use super::{notice_log, venue_wait};

impl EventLoop {
    /// Passes an input to the session and performs its outputs.
    pub(super) async fn handle(&mut self, input: Input<'_>, state: &mut State) {
        self.session.handle(self.clock.now(), input);
        self.perform(state).await;
    }

    /// Performs the session's outputs. Requests leave before any log line is written and before the
    /// journal is woken, because the journal's thread may take this processor. Only when an order
    /// waits for the journal does the journal go first.
    pub(super) async fn perform(&mut self, state: &mut State) {
        while let Some(output) = self.session.poll_output() {
            let leaves = matches!(output, Output::Send(_) | Output::Handed { .. });
            let awaits = matches!(output, Output::Append(_)) && self.session.driver().waiting() > 0;
            if state.handed && !leaves && !awaits {
                state.handed = false;
                tokio::task::yield_now().await;
            }
            self.perform_one(output, state);
        }
        if std::mem::take(&mut state.handed) {
            tokio::task::yield_now().await;
        }
    }

    fn perform_one(&mut self, output: Output, state: &mut State) {
        match output {
            Output::Append(block) => match self.journal.append(block) {
                // The journal reports its failure itself. It is then started again with a
                // checkpoint that contains everything.
                Ok(()) | Err(AppendError::Failed(_)) => {}
                Err(error @ (AppendError::OutOfOrder(_) | AppendError::Full { .. })) => {
                    tracing::error!(
                        %error,
                        "the journal did not accept a block: a new segment is started; orders wait \
                         for it"
                    );
                    let now = self.clock.now();
                    let failed = Input::Journal(JournalEvent::Failed);
                    self.session.handle(now, failed);
                }
            },
            Output::Roll(checkpoint, at) => {
                if let Err(error) = self.journal.roll(checkpoint, at) {
                    if matches!(error, RollError::OutOfPlace { .. }) {
                        tracing::error!(
                            %error,
                            "the journal and the engine are at different positions: a new segment \
                             is tried again"
                        );
                    }
                    let now = self.clock.now();
                    let not_rolled = Input::Journal(JournalEvent::NotRolled);
                    self.session.handle(now, not_rolled);
                }
            }
            Output::Sign(id, unsigned) => {
                if let Some(signer) = &self.signer {
                    // The reply comes through the mailbox.
                    signer.client.sign(id, &unsigned);
                } else if let Some(requests) = self.session.requests() {
                    let prepared = requests.gateway().sign(&unsigned);
                    let now = self.clock.now();
                    self.session.handle(now, Input::Signed(id, prepared));
                }
            }
            Output::Send(call) => {
                if let Some(http) = &mut self.http {
                    state.handed |= call.changes;
                    http.send(call);
                }
            }
            Output::Abandon(id) => {
                let outcome = self.http.as_mut().and_then(|http| http.abandon(id));
                if let Some(outcome) = outcome {
                    self.pass_call_outcome(id, outcome);
                }
            }
            Output::Handed { request, since } => {
                let is_simulated = !self.session.account().is_of_venue();
                if let (Request::Place(_), Some(since), true) = (&request, since, is_simulated) {
                    let latency = self.clock.moment(since).elapsed().as_secs_f64();
                    table::ORDER_LATENCY.of([]).record(latency);
                }
                state.sent.push_back((Instant::now(), request));
            }
            Output::Replied(reply) => {
                self.report_whether_sent(&reply, state);
                self.services
                    .unsettled
                    .handle_reply(self.session.engine(), &reply);
            }
            Output::KillSwitch(content) => self.services.kill_switch_file.write(content),
            Output::CallEnded(ended) => http::count(&ended),
            Output::BudgetWait(lane, waited_ns) => {
                let waited = Duration::from_nanos(waited_ns.unsigned_abs()).as_secs_f64();
                table::BUDGET_WAIT.of([lane.as_str()]).record(waited);
            }
            Output::Socket(surface, link, action) => {
                if let Some(sockets) = &mut self.sockets {
                    sockets.act(surface, link, action);
                }
            }
            Output::Stream {
                surface,
                is_public,
                is_up,
            } => {
                let kind = if is_public { "market" } else { "user" };
                let name = [surface.as_str(), kind];
                table::STREAM_UP.of(name).set(f64::from(u8::from(is_up)));
                if !is_up {
                    table::STREAM_GAPS.of(name).increment(1);
                }
            }
            Output::Heartbeat(number) => self.services.heartbeat(number),
            Output::BugReport { broken, snapshot } => {
                let now = self.session.engine().now();
                self.services.keep_report(now, broken, snapshot);
            }
            Output::Notice(notice) => self.notice(&notice),
            Output::Ended(ended) => state.ended = Some(ended),
        }
    }

    fn notice(&mut self, notice: &Notice) {
        let engine = self.session.engine();
        if let Some(results) = &mut self.results {
            results.notice(engine, notice);
        }
        self.services.notice(engine, notice);
    }

    /// Logs an order as sent, or drops it from the list, by the reply to it.
    fn report_whether_sent(&self, reply: &Reply, state: &mut State) {
        let Reply::Placed {
            client_order_id,
            outcome,
        } = reply
        else {
            return;
        };
        let is_it = |(_, request): &(Instant, Request)| {
            notice_log::placed_by(request) == Some(client_order_id)
        };
        let handed = state.sent.iter().position(is_it);
        if let Some((_, request)) = handed.and_then(|place| state.sent.remove(place))
            && !notice_log::never_left(outcome)
        {
            notice_log::sent(self.session.engine(), &request);
        }
    }

    /// Passes the result of a request to the session.
    pub(super) fn pass_call_outcome(&mut self, id: CallId, outcome: CallOutcome) {
        let now = self.clock.now();
        outcome.with_answer(|answer| self.session.handle(now, Input::Answer(id, answer)));
    }

    /// Applies `on_stop`. A second call ends the run at once.
    pub(super) async fn begin_stop(&mut self, state: &mut State) {
        let is_first = !self.session.is_stopping();
        self.handle(Input::Stop, state).await;
        if is_first {
            let longest = Duration::from_millis(STOP_WAITS_MS.unsigned_abs());
            venue_wait::report_stop(self.session.engine(), longest);
        }
    }
}
