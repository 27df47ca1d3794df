//! The watchdog of spot orders, without IO. The venue has no `countdownCancelAll` for spot. So a
//! separate process cancels the run's own spot orders if the run dies or its heartbeats stop
//! (`docs/promises.md#4-dead-mans-switch`).
//!
//! The watchdog process (`runtime/live/src/watchdog`) and the fault simulator drive the same
//! [`Watchdog`]. It receives the messages of the run and the responses of the exchange, and returns
//! requests and messages to send.
//!
//! This module must never touch orders that the run did not place, and must never place an order.

mod keeper;
mod messages;
mod plan;
mod proof;
mod sweep;
#[cfg(test)]
mod tests;
mod time;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use windvane_client_core::budget::Lane;
use windvane_client_core::gateway::Unsigned;
use windvane_client_core::outcome::NotDone;
use windvane_model::{Surface, Time, planted};
use windvane_protocol::sign::{PrepareError, Prepared};

use crate::exchange::Query;
use crate::requests::{Call, CallAnswer, CallId, ClockRead, Done, Requests};
use crate::surface::venue_surface;
pub use keeper::{Keeper, KeeperInput, KeeperOutput};
pub use messages::{RunMessage, WatchdogMessage};
pub use plan::WatchdogPlan;
use proof::{Proof, Step};
use sweep::{Sweep, SweepStep};
use time::ms;

/// Extra time after the countdown, to read messages that have already arrived. This process may
/// have been suspended instead of the run.
const GRACE_MS: i64 = 500;
/// How long a request of a sweep may wait for its weight budget.
const PATIENCE_MS: i64 = 5_000;

/// An event for the watchdog.
#[derive(Debug)]
pub enum WatchdogInput<'a> {
    /// A message of the run.
    Message(RunMessage),
    /// The run is dead and can send no more messages.
    RunIsDead,
    /// The result of a call.
    Answer(CallId, CallAnswer<'a>),
    /// A call was signed, or could not be signed.
    Signed(CallId, Result<Prepared, PrepareError>),
    /// The bans that other processes wrote down apply now. This follows
    /// [`WatchdogOutput::HeedBans`].
    BansHeeded,
    /// The time of [`Watchdog::poll_timeout`] has come.
    Timeout,
}

/// Work for the shell.
#[derive(Debug)]
pub enum WatchdogOutput {
    /// Have this call signed elsewhere.
    Sign(CallId, Unsigned),
    /// Send this call.
    Send(Call),
    /// Give up this call. The shell must report its result.
    Abandon(CallId),
    /// Send this message to the run.
    SendMessage(WatchdogMessage),
    /// Read the bans that the run wrote down: it may have been banned after its last heartbeat.
    HeedBans,
}

/// How a watchdog ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchdogEnd {
    /// The run stopped in an orderly way.
    InOrder,
    /// The run died before it took over any order. Orders that rest may belong to another instance.
    NothingTakenOver,
    /// No order of the run rests any more. This many were cancelled.
    Swept(usize),
    /// It cannot do its work, or cannot finish it, for this reason.
    Failed(String),
}

/// The purpose of a request.
#[derive(Debug)]
enum Errand {
    Proof,
    Clock { of_sweep: bool },
    List(String),
    Cancel(String),
}

/// The state of a watchdog.
#[derive(Debug)]
enum Phase {
    /// It waits for heartbeats, and proves regularly that it can do its work.
    Listening {
        proof: Proof,
        /// The countdown is over. The watchdog acts at this time.
        grace: Option<Time>,
    },
    /// It waits until the bans were read.
    Heeding,
    /// The venue wants no requests before this time.
    Waiting(Time),
    Sweeping(Box<Sweep>),
    Over,
}

/// A watchdog. See the module documentation.
#[derive(Debug)]
pub struct Watchdog {
    plan: WatchdogPlan,
    requests: Requests,
    phase: Phase,
    /// The watchdog acts at this time; `None` before the first heartbeat.
    deadline: Option<Time>,
    /// The venue wants no requests before this time.
    quiet_until: Time,
    reading: Option<ClockRead>,
    errands: BTreeMap<u64, Errand>,
    next_errand: u64,
    outputs: VecDeque<WatchdogOutput>,
    end: Option<WatchdogEnd>,
}

impl Watchdog {
    /// A watchdog that begins at `now` and sends its requests through `requests`.
    pub fn new(now: Time, plan: WatchdogPlan, requests: Requests) -> Self {
        let countdown_ms = ms(plan.countdown_ms);
        let mut watchdog = Self {
            deadline: plan.orders_may_rest.then(|| now.plus_ms(countdown_ms)),
            phase: Phase::Listening {
                proof: Proof::new(now),
                grace: None,
            },
            quiet_until: now,
            reading: None,
            errands: BTreeMap::new(),
            next_errand: 0,
            outputs: VecDeque::new(),
            end: None,
            requests,
            plan,
        };
        watchdog.advance(now);
        watchdog
    }

    /// Handles one event. `now` never runs backwards. Drain [`Self::poll_output`] after it.
    pub fn handle(&mut self, now: Time, input: WatchdogInput<'_>) {
        match input {
            WatchdogInput::Message(message) => self.handle_run_message(now, message),
            WatchdogInput::RunIsDead => self.run_is_dead(),
            WatchdogInput::Answer(id, answer) => self.requests.handle_answer(now, (id, answer)),
            WatchdogInput::Signed(id, prepared) => self.requests.signed(now, id, prepared),
            WatchdogInput::BansHeeded => self.bans_heeded(now),
            WatchdogInput::Timeout => self.requests.timeout(now),
        }
        self.advance(now);
    }

    /// The next work for the shell.
    pub fn poll_output(&mut self) -> Option<WatchdogOutput> {
        self.outputs.pop_front()
    }

    /// When [`WatchdogInput::Timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Time> {
        let own = match &self.phase {
            Phase::Listening { proof, grace } => {
                let proof = proof.due().map(|due| due.max(self.quiet_until));
                [proof, grace.or(self.countdown_end())]
                    .into_iter()
                    .flatten()
                    .min()
            }
            Phase::Heeding | Phase::Over => None,
            Phase::Waiting(until) => Some(*until),
            Phase::Sweeping(sweep) => sweep.due(),
        };
        [own, self.requests.next()].into_iter().flatten().min()
    }

    /// How it ended, once it has. The shell must drain [`Self::poll_output`] first.
    pub fn take_end(&mut self) -> Option<WatchdogEnd> {
        self.end.take()
    }

    fn handle_run_message(&mut self, now: Time, message: RunMessage) {
        let Phase::Listening { grace, .. } = &mut self.phase else {
            return;
        };
        match message {
            RunMessage::Heartbeat { number, stopped_ms } => {
                *grace = None;
                self.deadline = Some(now.plus_ms(ms(self.plan.countdown_ms)));
                self.quiet_until = now.plus_ms(ms(stopped_ms));
                let acknowledged = WatchdogMessage::Acknowledged { number };
                self.outputs
                    .push_back(WatchdogOutput::SendMessage(acknowledged));
            }
            RunMessage::End => {
                tracing::info!("the run stopped in an orderly way: no order is cancelled");
                self.over(WatchdogEnd::InOrder);
            }
        }
    }

    fn run_is_dead(&mut self) {
        let Phase::Listening { .. } = self.phase else {
            return;
        };
        if self.deadline.is_none() {
            tracing::warn!(
                "the run died before it took over spot orders: no order is cancelled, because they \
                 may belong to another instance"
            );
            return self.over(WatchdogEnd::NothingTakenOver);
        }
        tracing::error!("the run is dead: its spot orders are cancelled");
        self.act();
    }

    fn act(&mut self) {
        self.errands.clear();
        self.reading = None;
        self.phase = Phase::Heeding;
        self.outputs.push_back(WatchdogOutput::HeedBans);
    }

    fn bans_heeded(&mut self, now: Time) {
        if let Phase::Heeding = self.phase {
            let stopped_ms = self.requests.stopped_ms(now, Surface::Spot);
            let stopped = now.plus_ms(ms(stopped_ms.unwrap_or(0)));
            self.phase = Phase::Waiting(stopped.max(self.quiet_until));
        }
    }

    fn over(&mut self, end: WatchdogEnd) {
        self.phase = Phase::Over;
        self.errands.clear();
        self.end = Some(end);
    }

    /// Does everything that is possible now.
    fn advance(&mut self, now: Time) {
        loop {
            match &mut self.phase {
                Phase::Listening { .. } => self.listen(now),
                Phase::Waiting(until) if *until <= now => {
                    let sweep = Sweep::new(now, self.plan.clone());
                    self.phase = Phase::Sweeping(Box::new(sweep));
                    continue;
                }
                Phase::Sweeping(sweep) => {
                    sweep.advance(now);
                    self.perform_sweep(now);
                }
                Phase::Heeding | Phase::Waiting(_) | Phase::Over => {}
            }
            if !self.handle_request_results(now) {
                return;
            }
        }
    }

    /// When it acts if no other heartbeat comes.
    fn countdown_end(&self) -> Option<Time> {
        self.deadline.filter(|_| !planted!(CountdownIgnored))
    }

    fn listen(&mut self, now: Time) {
        let countdown_end = self.countdown_end();
        let Phase::Listening { proof, grace } = &mut self.phase else {
            return;
        };
        let is_over = countdown_end.is_some_and(|end| end <= now);
        match grace {
            Some(grace) if *grace <= now => {
                let countdown_ms = self.plan.countdown_ms;
                tracing::error!(
                    countdown_ms,
                    "no heartbeat within the countdown: the run's spot orders are cancelled"
                );
                return self.act();
            }
            None if is_over => *grace = Some(now.plus_ms(GRACE_MS)),
            _ => {}
        }
        if self.quiet_until <= now && proof.due().is_some_and(|due| due <= now) {
            let step = proof.begin(self.plan.symbols.first());
            self.query_for_proof(now, step);
        }
    }

    fn query_for_proof(&mut self, now: Time, step: Option<Step>) {
        if step.is_some() && self.proof_waits(now) {
            return;
        }
        match step {
            Some(Step::Listing) => {
                let query = Query::Listing(Surface::Spot);
                self.send_query(now, query, (Lane::Heartbeat, 0), Errand::Proof);
            }
            Some(Step::Clock) => self.read_clock(now, Lane::Heartbeat, false),
            Some(Step::OpenOrders(symbol)) => {
                let query = Query::OpenOrders(Surface::Spot, &symbol);
                self.send_query(now, query, (Lane::Heartbeat, 0), Errand::Proof);
            }
            None => {
                if let Phase::Listening { proof, .. } = &mut self.phase {
                    proof.proven(now);
                    let armed = WatchdogOutput::SendMessage(WatchdogMessage::Armed);
                    self.outputs.push_back(armed);
                }
            }
        }
    }

    /// Whether the venue wants no requests now. If so, the proof starts again afterwards.
    fn proof_waits(&mut self, now: Time) -> bool {
        let quiet_ns = self.quiet_until.0 - now.0;
        let Phase::Listening { proof, .. } = &mut self.phase else {
            return false;
        };
        if quiet_ns > 0 {
            proof.failed(now, Duration::from_nanos(quiet_ns.unsigned_abs()));
        }
        quiet_ns > 0
    }

    fn read_clock(&mut self, now: Time, lane: Lane, of_sweep: bool) {
        let reading = self.reading.insert(ClockRead::new(Surface::Spot, now));
        let query = reading.next_query(now);
        self.send_query(now, query, (lane, 0), Errand::Clock { of_sweep });
    }

    fn perform_sweep(&mut self, now: Time) {
        while let Phase::Sweeping(sweep) = &mut self.phase
            && let Some(ask) = sweep.poll()
        {
            let with = (Lane::Cancel, PATIENCE_MS);
            match ask {
                SweepStep::Report => {
                    let acting = WatchdogOutput::SendMessage(WatchdogMessage::Acting);
                    self.outputs.push_back(acting);
                }
                SweepStep::List(symbol) => {
                    let query = Query::OpenOrders(Surface::Spot, &symbol);
                    self.send_query(now, query, with, Errand::List(symbol.clone()));
                }
                SweepStep::Cancel(symbol, id) => {
                    let query = Query::Cancel(Surface::Spot, &symbol, &id);
                    self.send_query(now, query, with, Errand::Cancel(id.clone()));
                }
                SweepStep::Clock => self.read_clock(now, Lane::Cancel, true),
                SweepStep::Ended(Ok(orders)) => {
                    tracing::warn!(
                        orders,
                        "all spot orders of the run were cancelled or have ended"
                    );
                    self.over(WatchdogEnd::Swept(orders));
                }
                SweepStep::Ended(Err(why)) => self.over(WatchdogEnd::Failed(why)),
            }
        }
    }

    fn send_query(&mut self, now: Time, query: Query<'_>, with: (Lane, i64), errand: Errand) {
        self.next_errand += 1;
        self.errands.insert(self.next_errand, errand);
        if !self
            .requests
            .send_numbered_query(now, query, with, self.next_errand)
        {
            let route = "the exchange has no such call".to_owned();
            self.over(WatchdogEnd::Failed(route));
        }
    }

    /// Handles the results of calls. Returns whether one of them was for the watchdog.
    fn handle_request_results(&mut self, now: Time) -> bool {
        let mut is_handled = false;
        while let Some(done) = self.requests.poll() {
            match done {
                Done::Sign(id, unsigned) => {
                    self.outputs.push_back(WatchdogOutput::Sign(id, unsigned));
                }
                Done::Send(call) => self.outputs.push_back(WatchdogOutput::Send(call)),
                Done::Abandon(id) => self.outputs.push_back(WatchdogOutput::Abandon(id)),
                Done::QueryEnded(number, result) => {
                    // Results of requests that were sent before it acts are ignored.
                    if let Some(errand) = self.errands.remove(&number) {
                        self.errand_done(now, errand, result);
                        is_handled = true;
                    }
                }
                // The watchdog makes no calls of these kinds, and has no engine that needs reports
                // of stops.
                Done::Live(_)
                | Done::Waited(..)
                | Done::Replies(_)
                | Done::Depth(..)
                | Done::Polled(..)
                | Done::Key(..)
                | Done::Renewed(..)
                | Done::Ended(_) => {}
            }
        }
        is_handled
    }

    fn errand_done(&mut self, now: Time, errand: Errand, result: Result<String, NotDone>) {
        match errand {
            Errand::Proof => self.proof_result(now, result.map(drop)),
            Errand::Clock { of_sweep } => self.clock_received(now, of_sweep, result),
            Errand::List(symbol) => {
                let exchange = self.requests.exchange();
                let listed = result.map(|text| exchange.open_orders(&text));
                if let Phase::Sweeping(sweep) = &mut self.phase {
                    sweep.listed(now, &symbol, listed);
                }
            }
            Errand::Cancel(id) => {
                let exchange = self.requests.exchange();
                let result = match result {
                    // The order was filled or cancelled meanwhile; the next list shows it.
                    Err(not_done) if exchange.is_nothing_to_cancel(&not_done) => {
                        tracing::info!(id, %not_done, "the order has ended already");
                        Ok(())
                    }
                    Ok(_) => {
                        tracing::warn!(id, "the order was cancelled");
                        Ok(())
                    }
                    Err(not_done) => Err(not_done),
                };
                if let Phase::Sweeping(sweep) = &mut self.phase {
                    sweep.cancelled(now, id, result);
                }
            }
        }
    }

    fn proof_result(&mut self, now: Time, result: Result<(), NotDone>) {
        let Phase::Listening { proof, .. } = &mut self.phase else {
            return;
        };
        match result {
            Ok(()) => {
                let next = proof.next();
                self.query_for_proof(now, next);
            }
            Err(NotDone::Refused(refusal)) => {
                self.over(WatchdogEnd::Failed(refusal.to_string()));
            }
            Err(not_done) => {
                tracing::warn!(%not_done, "the watchdog is not armed; it is tried again");
                let wanted = match not_done {
                    NotDone::Wait(wait) => wait.after,
                    _ => Duration::ZERO,
                };
                proof.failed(now, wanted);
            }
        }
    }

    fn clock_received(&mut self, now: Time, of_sweep: bool, result: Result<String, NotDone>) {
        let lane = if of_sweep {
            Lane::Cancel
        } else {
            Lane::Heartbeat
        };
        let Some(mut reading) = self.reading.take() else {
            return;
        };
        let read = match result {
            Ok(text) => match reading.take(now, &text, self.requests.exchange()) {
                Ok(None) if self.proof_waits(now) => return,
                Ok(None) => {
                    let query = reading.next_query(now);
                    self.reading = Some(reading);
                    return self.send_query(now, query, (lane, 0), Errand::Clock { of_sweep });
                }
                Ok(Some(offset)) => {
                    let spot = venue_surface(Surface::Spot);
                    self.requests.gateway().set_offset(spot, offset);
                    Ok(())
                }
                Err(why) => {
                    tracing::warn!(why, "the venue's clock could not be read");
                    Err(None)
                }
            },
            Err(not_done) => Err(Some(not_done)),
        };
        match (&mut self.phase, read) {
            (Phase::Sweeping(sweep), _) => sweep.clock_was_read(now),
            (Phase::Listening { proof, .. }, Err(None)) => proof.failed(now, Duration::ZERO),
            (_, Ok(())) => self.proof_result(now, Ok(())),
            (_, Err(Some(not_done))) => self.proof_result(now, Err(not_done)),
            (_, Err(None)) => {}
        }
    }
}
