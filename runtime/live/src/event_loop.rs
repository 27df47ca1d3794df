//! The event loop of the engine's thread. It takes each event in order, passes it to the session,
//! and performs the outputs of the session. It waits only for the next event. While it waits, the
//! tasks of its thread run (`thread`).
//!
//! This module makes no decisions. The session and the engine make them.

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use windvane_admin::metrics::table;
use windvane_admin::view::JournalLag;
use windvane_client::streams;
use windvane_client_core::streams::millis;
use windvane_journal::{AppendError, Event, Journal, RollError};
use windvane_model::{Notice, Reply, Request, Surface, Time};
use windvane_session::recovery::{UnownedPosition, strategy_positions};
use windvane_session::{
    CallId, Ended, Input, JournalEvent, Output, STOP_WAITS_MS, Session, SocketEvent, is_public,
};

use super::clock::Clock;
use super::cpu_latency::CpuLatency;
use super::guests::LiveGuests;
use super::http::{self, Http};
use super::mailbox::{CallOutcome, Disk, Inbox, LoopEvent, Wake};
use super::player::Player;
use super::results::Results;
use super::services::Services;
use super::sockets::Sockets;
use super::steering::CarriedOut;
use super::unowned_positions;
use super::{notice_log, venue_wait};
use windvane_config::Leave;
use windvane_report::{ResultError, Summary};

/// The client answers within this time for an order that it does not send.
const SENT_AFTER: Duration = Duration::from_millis(100);
/// How often commands are read and the state is published.
const LOOK_AROUND: Duration = Duration::from_millis(100);
/// A healthy disk writes an order's record in less time.
const LOOK_OUT: Duration = Duration::from_millis(2);
/// How often the code path of an order is rehearsed while the thread polls.
const REHEARSE_EVERY: Duration = Duration::from_micros(200);

/// Everything that the engine's thread owns.
pub struct EventLoop {
    pub clock: Clock,
    pub session: Session<LiveGuests>,
    pub journal: Journal,
    /// Sends requests to the venue; `None` on recordings.
    pub http: Option<Http>,
    /// The connections of user streams.
    pub sockets: Option<Sockets>,
    /// Plays the recordings, if they are the market.
    pub player: Option<Player>,
    /// Collects the results of a run on recordings.
    pub results: Option<Results>,
    pub services: Services,
    pub inbox: Inbox,
    /// The thread polls without sleeping.
    pub busy_poll: bool,
    /// Keeps the processors from sleeping.
    pub _cpu_latency: Option<CpuLatency>,
    /// Receives the request to stop. The run ends once `on_stop` is carried out.
    pub stop: Receiver<()>,
}

/// How a run ended.
pub struct Finish {
    /// The reason of the end.
    pub ended: Ended,
    /// Positions that `on_stop = "flatten"` did not close.
    pub unclosed: Vec<UnownedPosition>,
    /// The gaps in the run's knowledge of the account, as a sentence. Empty if it knows the
    /// account.
    pub unknown: String,
    /// Own orders that may be open at the venue, as text.
    pub resting: String,
    /// The results of a run on recordings.
    pub results: Option<Result<Summary, ResultError>>,
}

/// State that the thread keeps between two events.
#[derive(Default)]
pub(super) struct State {
    /// Requests were handed to tasks of this thread, which need a turn now.
    handed: bool,
    /// Order requests that were handed to the client, with the time. The log reports an order as
    /// sent when its reply arrives, or after [`SENT_AFTER`]: the client replies sooner for an order
    /// that it does not send.
    sent: VecDeque<(Instant, Request)>,
    /// A configuration is being read again.
    pub(super) reloading: bool,
    /// Commands that are carried out except for the write of their latch, each with its time.
    pub(super) carried_out: Vec<CarriedOut>,
    ended: Option<Ended>,
}

impl EventLoop {
    /// Runs until the session ends.
    pub async fn run(mut self) -> Finish {
        let mut state = State::default();
        self.perform(&mut state).await;
        let ended = loop {
            match self.next().await {
                Wake::Event(event) => self.handle_event(event, &mut state).await,
                Wake::Disk(Disk::Journal(event)) => self.take_journal(event, &mut state).await,
                Wake::Disk(Disk::KillSwitch(result)) => {
                    self.handle(Input::KillSwitch(result), &mut state).await;
                }
                Wake::TimeOver => {}
                Wake::Closed => break Ended::Hurried,
            }
            self.keep_time(&mut state).await;
            if let Some(ended) = state.ended {
                break ended;
            }
        };
        self.finish(ended, state).await
    }

    async fn finish(self, ended: Ended, mut state: State) -> Finish {
        let unclosed = self.unclosed_positions();
        notice_log::unclosed(&unclosed);
        if self.session.account().is_of_venue() {
            notice_log::stays_open(self.session.engine(), !unclosed.is_empty());
        }
        let unknown = unowned_positions::unknown_text(self.session.engine());
        let resting = unowned_positions::resting_text(self.session.driver());
        if ended.lets_watchdog_go() {
            self.services.let_watchdog_go();
        }
        for (_, request) in state.sent.drain(..) {
            notice_log::sent(self.session.engine(), &request);
        }
        // The disk is awaited on another thread, so that requests on this thread can still leave.
        let journal = self.journal;
        match tokio::task::spawn_blocking(move || journal.close()).await {
            Ok(Ok(_)) => {}
            Ok(Err(failure)) => {
                tracing::error!(
                    %failure,
                    "could not write the end of the journal: its last records may be lost; the next \
                     start reconciles with the venue"
                );
            }
            Err(error) => {
                tracing::error!(
                    %error,
                    "the journal was not closed properly: its last records may be lost; the next \
                     start reconciles with the venue"
                );
            }
        }
        let session = self.session;
        let results = self.results;
        let results = results.map(|results| results.finish(session.into_driver()));
        Finish {
            ended,
            unclosed,
            unknown,
            resting,
            results,
        }
    }

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
                // A signer process would sign later; the keys of this process sign at once.
                if let Some(requests) = self.session.requests() {
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

    /// Waits for the next event. The thread polls without sleeping for a moment while an order
    /// waits for the disk, and always with `busy_poll`.
    async fn next(&mut self) -> Wake {
        let pause = self.pause();
        let begin = Instant::now();
        let busy_poll_time = self.busy_poll_time().min(pause);
        while begin.elapsed() < busy_poll_time {
            let look_out = REHEARSE_EVERY.min(busy_poll_time.saturating_sub(begin.elapsed()));
            if let Some(wake) = self.inbox.look_out(look_out).await {
                return wake;
            }
            if let (Some(http), Some((surface, prepared))) =
                (&self.http, self.session.rehearse_order())
            {
                http.rehearse(surface, prepared);
            }
        }
        self.inbox.wait(pause.saturating_sub(begin.elapsed())).await
    }

    /// How long the thread polls before it sleeps.
    fn busy_poll_time(&self) -> Duration {
        let lately = |at: Time| self.clock.moment(at).elapsed() < LOOK_OUT;
        if self.busy_poll {
            Duration::MAX
        } else if self.session.driver().waiting() > 0
            && self.session.newest_block().is_some_and(lately)
        {
            LOOK_OUT
        } else {
            Duration::ZERO
        }
    }

    /// How long to wait for the next event.
    fn pause(&mut self) -> Duration {
        if let Some(pause) = self.pause_of_playing() {
            return pause.min(LOOK_AROUND);
        }
        let Some((due, _)) = self.session.poll_timeout() else {
            return LOOK_AROUND;
        };
        let left = due.0.saturating_sub(self.clock.now().0).max(0);
        Duration::from_nanos(left.unsigned_abs()).min(LOOK_AROUND)
    }

    async fn handle_event(&mut self, event: LoopEvent, state: &mut State) {
        match event {
            LoopEvent::Socket(surface, link, event) => {
                self.take_socket((surface, link), event, state).await;
            }
            LoopEvent::CallEnded(id, outcome) => self.take_call_outcome(id, outcome, state).await,
            LoopEvent::Live(input) => self.handle(Input::Live(input), state).await,
            LoopEvent::Reload(reload) => self.apply_reload(*reload, state).await,
            LoopEvent::Nudge => {}
        }
    }

    async fn take_socket(
        &mut self,
        (surface, link): (Surface, u64),
        event: streams::SocketEvent,
        state: &mut State,
    ) {
        use streams::SocketEvent as ClientEvent;
        if let (Some(sockets), ClientEvent::NotOpened(..) | ClientEvent::Closed) =
            (&mut self.sockets, &event)
        {
            sockets.ended(surface, link);
        }
        let binary;
        let event = match &event {
            ClientEvent::Opened => SocketEvent::Opened,
            ClientEvent::NotOpened(why, refused) => SocketEvent::NotOpened {
                why,
                status: refused.status,
                pause_ms: refused.pause.map(millis),
            },
            ClientEvent::Text(received) => {
                if is_public(link) {
                    self.services.count_frame(surface);
                }
                SocketEvent::Text(&received.text, self.clock.at(received.at))
            }
            ClientEvent::Binary(length) => {
                binary = format!("a binary frame of {length} bytes");
                SocketEvent::Text(&binary, self.clock.now())
            }
            ClientEvent::Pong => SocketEvent::Pong,
            ClientEvent::Closed => SocketEvent::Closed,
        };
        self.handle(Input::Socket(surface, link, event), state)
            .await;
    }

    async fn take_call_outcome(&mut self, id: CallId, outcome: CallOutcome, state: &mut State) {
        if let Some(http) = &mut self.http {
            http.remove(id);
        }
        self.pass_call_outcome(id, outcome);
        self.perform(state).await;
    }

    /// Passes the result of a request to the session.
    fn pass_call_outcome(&mut self, id: CallId, outcome: CallOutcome) {
        let now = self.clock.now();
        outcome.with_answer(|answer| self.session.handle(now, Input::Answer(id, answer)));
    }

    async fn take_journal(&mut self, event: Event, state: &mut State) {
        let event = match event {
            Event::Durable { chain, took, .. } => {
                Services::durable(took);
                JournalEvent::Durable(chain.last_record)
            }
            Event::Rolled { chain, segment, .. } => {
                tracing::info!(segment, "started a new segment of the journal");
                JournalEvent::Rolled(chain.last_record)
            }
            Event::Stalled { waiting } => {
                tracing::error!(
                    waiting_ms = waiting.as_millis(),
                    "the journal stalls: the disk does not write; no opening order is sent until \
                     it does. Check the disk"
                );
                JournalEvent::Stalled
            }
            Event::Healthy { .. } => JournalEvent::Healthy,
            Event::Packed { .. } => {
                // The packing of this segment is over. So the ledger can normally read it without
                // sled, which uses much memory. `prune` first enters it into the ledger, then
                // deletes old segments.
                self.services.prune(self.session.modules());
                return;
            }
            Event::Failed(failure) => {
                tracing::error!(
                    %failure,
                    "the journal failed: no opening order is sent until it writes again. Check the \
                     data folder's disk"
                );
                JournalEvent::Failed
            }
        };
        self.handle(Input::Journal(event), state).await;
    }

    /// Handles timers, the recording and the operator's commands.
    async fn keep_time(&mut self, state: &mut State) {
        if self.player.is_some() {
            self.play(state).await;
        }
        let due = self.session.poll_timeout();
        if due.is_some_and(|(due, _)| due <= self.clock.now()) {
            self.handle(Input::Timeout, state).await;
        }
        while let Some(steer) = self.services.next_command() {
            self.command(steer, state).await;
        }
        self.answer_commands(state);
        let lag = self.lag();
        self.services.publish(&self.session, lag, false);
        while let Some((_, request)) = state
            .sent
            .pop_front_if(|(handed, _)| handed.elapsed() >= SENT_AFTER)
        {
            notice_log::sent(self.session.engine(), &request);
        }
        if self.stop.try_recv().is_ok() {
            self.begin_stop(state).await;
        }
    }

    pub(super) fn lag(&self) -> JournalLag {
        let lag = self.session.durability_lag(self.clock.now());
        JournalLag {
            written: self.session.engine().records(),
            durable: lag.durable,
            behind_ms: lag.behind_ns.unsigned_abs() / 1_000_000,
        }
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

    /// Positions that strategies still hold although `on_stop` requires their close.
    fn unclosed_positions(&self) -> Vec<UnownedPosition> {
        let is_flattened = self.services.config.run.on_stop == Leave::Flatten;
        if !self.session.is_stopping() || !is_flattened {
            return Vec::new();
        }
        strategy_positions(self.session.engine(), |strategy, instrument| {
            !self.session.is_dust(strategy, instrument)
        })
    }
}
