//! The event loop of the engine's thread. It takes each event in order, passes it to the session,
//! and performs the outputs of the session (`outputs`). It waits only for the next event. While it
//! waits, the tasks of its thread run (`thread`).
//!
//! This module makes no decisions. The session and the engine make them.

use std::time::{Duration, Instant};

use windvane_client::streams;
use windvane_client_core::streams::millis;
use windvane_journal::Event;
use windvane_model::{Surface, Time};
use windvane_session::recovery::{UnownedPosition, strategy_positions};
use windvane_session::{CallId, Ended, Input, JournalEvent, SocketEvent, is_public};

use super::loop_state::{EventLoop, Finish, SENT_AFTER, State};
use super::mailbox::{CallOutcome, Disk, LoopEvent, Wake};
use super::notice_log;
use super::services::Services;
use super::signer::SignerLink;
use super::unowned_positions;
use windvane_config::Leave;
/// How often commands are read and the state is published.
const LOOK_AROUND: Duration = Duration::from_millis(100);
/// A healthy disk writes an order's record in less time.
const LOOK_OUT: Duration = Duration::from_millis(2);
/// After this much work the tasks of the thread have a turn, so that connections make progress
/// while events follow without a pause.
const WORK: Duration = Duration::from_millis(1);
/// How often the code path of an order is rehearsed while the thread polls.
const REHEARSE_EVERY: Duration = Duration::from_micros(200);

impl EventLoop {
    /// Runs until the session ends.
    pub async fn run(mut self) -> Finish {
        let mut state = State::default();
        self.perform(&mut state).await;
        let mut worked = Duration::ZERO;
        let ended = loop {
            let wake = self.next().await;
            let begin = Instant::now();
            match wake {
                Wake::Event(event) => self.handle_event(event, &mut state).await,
                Wake::Disk(Disk::Journal(event)) => self.take_journal(event, &mut state).await,
                Wake::Disk(Disk::KillSwitch(result)) => {
                    self.handle(Input::KillSwitch(result), &mut state).await;
                }
                Wake::Signed((id, prepared)) => {
                    self.handle(Input::Signed(id, prepared), &mut state).await;
                }
                Wake::TimeOver => {}
                Wake::Closed => break Ended::Hurried,
            }
            self.keep_time(&mut state).await;
            if let Some(ended) = state.ended {
                break ended;
            }
            worked += begin.elapsed();
            if worked >= WORK {
                worked = Duration::ZERO;
                tokio::task::yield_now().await;
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

    /// How long the thread polls before it sleeps: while an order waits for the disk or a request for
    /// its signature, waking up would take longer.
    fn busy_poll_time(&self) -> Duration {
        let lately = |at: Time| self.clock.moment(at).elapsed() < LOOK_OUT;
        let signs = |signer: &SignerLink| signer.client.asked_within(LOOK_OUT);
        let awaits_disk =
            self.session.driver().waiting() > 0 && self.session.newest_block().is_some_and(lately);
        if self.busy_poll {
            Duration::MAX
        } else if awaits_disk || self.signer.as_ref().is_some_and(signs) {
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
            LoopEvent::Reload(reload) => self.test_reload(*reload, state).await,
            LoopEvent::Tested(tested) => self.apply_reload(*tested, state).await,
            LoopEvent::Started(job) => self.end_start(*job, state).await,
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

    /// Handles the operator's stop and commands, then the recording and the timers, which may call
    /// strategies.
    async fn keep_time(&mut self, state: &mut State) {
        if self.stop.try_recv().is_ok() {
            self.begin_stop(state).await;
        }
        while let Some(steer) = self.services.next_command() {
            self.command(steer, state).await;
        }
        if self.player.is_some() {
            self.play(state).await;
        }
        let due = self.session.poll_timeout();
        if due.is_some_and(|(due, _)| due <= self.clock.now()) {
            self.handle(Input::Timeout, state).await;
        }
        self.next_start(state).await;
        self.answer_commands(state);
        let lag = self.lag();
        self.services.publish(&self.session, lag, false);
        while let Some((_, request)) = state
            .sent
            .pop_front_if(|(handed, _)| handed.elapsed() >= SENT_AFTER)
        {
            notice_log::sent(self.session.engine(), &request);
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
