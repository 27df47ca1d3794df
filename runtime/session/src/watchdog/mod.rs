//! The watchdog of spot orders, without IO. Spot has no `countdownCancelAll`, so a process beside the run
//! cancels the run's own spot orders once the run dies or its signs of health stay away (promise 4).
//!
//! `runtime/node/src/watchdog` and the simulator of faults drive the same [`Watchdog`]: it is told what
//! the run says and what the exchange answers, and says what is to be sent and said.
//!
//! What may never enter here: orders that the run did not place, and placing any.

mod keeper;
mod proof;
mod sweep;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windvane_client_core::budget::Lane;
use windvane_client_core::gateway::Unsigned;
use windvane_client_core::outcome::NotDone;
use windvane_model::{ClientOrderId, Surface, Time, planted};
use windvane_protocol::sign::{PrepareError, Prepared};

use crate::exchange::Question;
use crate::requests::{Call, CallAnswer, CallId, Done, Reading, Requests, venue_surface};
pub use keeper::{Keeper, KeeperInput, KeeperOutput};
use proof::{Proof, Step};
use sweep::{Ask, Sweep};

/// After the countdown, a word that is already there is still heard: this process may have been
/// stopped, not the run.
const GRACE_MS: i64 = 500;
/// A question of a sweep waits so long for its share of the weight.
const PATIENCE_MS: i64 = 5_000;

/// What a watchdog watches. No secret is in it: it is among the arguments of its process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchdogPlan {
    /// Ids of the strategies whose orders are the run's.
    pub strategies: Vec<String>,
    /// Spot symbols that they may trade.
    pub symbols: Vec<String>,
    /// The run's epoch: orders of a later one are a later run's, which has a watchdog of its own.
    pub epoch: u64,
    /// It acts after so long without a sign of health, milliseconds.
    pub countdown_ms: u64,
    /// A request of the run cannot arrive later than so long after it was sent, milliseconds.
    pub absence_ms: u64,
    /// Orders may rest already: the countdown begins at once, not with the first sign.
    pub orders_may_rest: bool,
}

impl WatchdogPlan {
    /// Whether an order is the run's, or of a run before it, by its client order id (promise 1).
    pub fn is_own(&self, client_order_id: &str) -> bool {
        let id = ClientOrderId::new(client_order_id).ok();
        id.as_ref()
            .and_then(ClientOrderId::parse_own)
            .is_some_and(|(strategy, epoch, _)| {
                let is_later = epoch > self.epoch && !planted!(WatchdogTakesLaterOrders);
                !is_later && self.strategies.iter().any(|own| own == strategy)
            })
    }
}

/// What the run says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunSays {
    /// It is healthy.
    Beat {
        /// One more than the last.
        number: u64,
        /// The venue wants nothing at all to be sent for so long, milliseconds.
        stopped_ms: u64,
    },
    /// It ends in order: nothing is to be cancelled.
    End,
}

/// What the watchdog says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchdogSays {
    /// The venue took its key, and its clock was read.
    Armed,
    /// It heard a sign of health.
    Heard {
        /// Its number.
        number: u64,
    },
    /// It cancels.
    Acting,
}

/// What happened.
#[derive(Debug)]
pub enum WatchdogInput<'a> {
    /// The run says something.
    Word(RunSays),
    /// The run is dead: it can say nothing any more.
    RunIsDead,
    /// What came back of a call.
    Answer(CallId, CallAnswer<'a>),
    /// A call was signed, or could not be.
    Signed(CallId, Result<Prepared, PrepareError>),
    /// Bans that others wrote down are heeded now: the answer to [`WatchdogOutput::HeedBans`].
    BansHeeded,
    /// [`Watchdog::poll_timeout`] is over.
    Timeout,
}

/// What is to be done.
#[derive(Debug)]
pub enum WatchdogOutput {
    /// A call is to be signed elsewhere.
    Sign(CallId, Unsigned),
    /// A call leaves.
    Send(Call),
    /// A call is given up. It is answered with what became of it.
    Abandon(CallId),
    /// The run is told something.
    Say(WatchdogSays),
    /// The bans that the run wrote down are to be read: it may have been told of one after its last sign.
    HeedBans,
}

/// How a watchdog ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchdogEnd {
    /// The run ended in order.
    InOrder,
    /// The run died before it took over any order: those that rest may be another instance's.
    NothingTakenOver,
    /// No order of the run rests any more. So many were cancelled.
    Swept(usize),
    /// It cannot do its work, or not to the end. Why.
    Failed(String),
}

/// What a question was for.
#[derive(Debug)]
enum Errand {
    Proof,
    Clock { of_sweep: bool },
    List(String),
    Cancel(String),
}

/// What it does.
#[derive(Debug)]
enum Phase {
    /// It listens, and shows again and again that it can do its work.
    Listening {
        proof: Proof,
        /// The countdown is over. It acts then.
        grace: Option<Time>,
    },
    /// It waits until bans were read.
    Heeding,
    /// The venue wants nothing to be sent before.
    Waiting(Time),
    Sweeping(Box<Sweep>),
    Over,
}

/// A watchdog. See the module's page.
#[derive(Debug)]
pub struct Watchdog {
    plan: WatchdogPlan,
    requests: Requests,
    phase: Phase,
    /// It acts then; `None` before the first sign of health.
    deadline: Option<Time>,
    /// The venue wants nothing to be sent before.
    quiet_until: Time,
    reading: Option<Reading>,
    errands: BTreeMap<u64, Errand>,
    next_errand: u64,
    outputs: VecDeque<WatchdogOutput>,
    end: Option<WatchdogEnd>,
}

impl Watchdog {
    /// A watchdog that begins `now`, and asks by `requests`.
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
        watchdog.go_on(now);
        watchdog
    }

    /// Takes in what happened. `now` never runs backwards. After it, [`Self::poll_output`] has to be
    /// drained.
    pub fn handle(&mut self, now: Time, input: WatchdogInput<'_>) {
        match input {
            WatchdogInput::Word(word) => self.hear(now, word),
            WatchdogInput::RunIsDead => self.run_is_dead(),
            WatchdogInput::Answer(id, answer) => self.requests.answered(now, (id, answer)),
            WatchdogInput::Signed(id, prepared) => self.requests.signed(now, id, prepared),
            WatchdogInput::BansHeeded => self.bans_heeded(now),
            WatchdogInput::Timeout => self.requests.timeout(now),
        }
        self.go_on(now);
    }

    /// The next thing to do.
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

    /// How it ended, once it has. The shell performs what [`Self::poll_output`] says first.
    pub fn take_end(&mut self) -> Option<WatchdogEnd> {
        self.end.take()
    }

    fn hear(&mut self, now: Time, word: RunSays) {
        let Phase::Listening { grace, .. } = &mut self.phase else {
            return;
        };
        match word {
            RunSays::Beat { number, stopped_ms } => {
                *grace = None;
                self.deadline = Some(now.plus_ms(ms(self.plan.countdown_ms)));
                self.quiet_until = now.plus_ms(ms(stopped_ms));
                let heard = WatchdogSays::Heard { number };
                self.outputs.push_back(WatchdogOutput::Say(heard));
            }
            RunSays::End => {
                tracing::info!("the run ends in order: nothing is cancelled");
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
                "the run died before it took over spot orders: none is cancelled, for they may be \
                 of another instance"
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

    /// Does everything that can be done now.
    fn go_on(&mut self, now: Time) {
        loop {
            match &mut self.phase {
                Phase::Listening { .. } => self.listen(now),
                Phase::Waiting(until) if *until <= now => {
                    let sweep = Sweep::new(now, self.plan.clone());
                    self.phase = Phase::Sweeping(Box::new(sweep));
                    continue;
                }
                Phase::Sweeping(sweep) => {
                    sweep.go_on(now);
                    self.ask_for_sweep(now);
                }
                Phase::Heeding | Phase::Waiting(_) | Phase::Over => {}
            }
            if !self.hear_requests(now) {
                return;
            }
        }
    }

    /// When it acts if no other sign of health comes.
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
                    "no sign of health: the run's spot orders are cancelled"
                );
                return self.act();
            }
            None if is_over => *grace = Some(now.plus_ms(GRACE_MS)),
            _ => {}
        }
        if self.quiet_until <= now && proof.due().is_some_and(|due| due <= now) {
            let step = proof.begin(self.plan.symbols.first());
            self.ask_for_proof(now, step);
        }
    }

    fn ask_for_proof(&mut self, now: Time, step: Option<Step>) {
        if step.is_some() && self.proof_waits(now) {
            return;
        }
        match step {
            Some(Step::Listing) => {
                let question = Question::Listing(Surface::Spot);
                self.ask(now, question, (Lane::Heartbeat, 0), Errand::Proof);
            }
            Some(Step::Clock) => self.read_clock(now, Lane::Heartbeat, false),
            Some(Step::OpenOrders(symbol)) => {
                let question = Question::OpenOrders(Surface::Spot, &symbol);
                self.ask(now, question, (Lane::Heartbeat, 0), Errand::Proof);
            }
            None => {
                if let Phase::Listening { proof, .. } = &mut self.phase {
                    proof.proven(now);
                    let armed = WatchdogOutput::Say(WatchdogSays::Armed);
                    self.outputs.push_back(armed);
                }
            }
        }
    }

    /// Whether the venue wants nothing to be sent now: the proof begins anew after that.
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
        let reading = self.reading.insert(Reading::new(Surface::Spot, now));
        let question = reading.ask(now);
        self.ask(now, question, (lane, 0), Errand::Clock { of_sweep });
    }

    fn ask_for_sweep(&mut self, now: Time) {
        while let Phase::Sweeping(sweep) = &mut self.phase
            && let Some(ask) = sweep.poll()
        {
            let with = (Lane::Cancel, PATIENCE_MS);
            match ask {
                Ask::Tell => {
                    let acting = WatchdogOutput::Say(WatchdogSays::Acting);
                    self.outputs.push_back(acting);
                }
                Ask::List(symbol) => {
                    let question = Question::OpenOrders(Surface::Spot, &symbol);
                    self.ask(now, question, with, Errand::List(symbol.clone()));
                }
                Ask::Cancel(symbol, id) => {
                    let question = Question::Cancel(Surface::Spot, &symbol, &id);
                    self.ask(now, question, with, Errand::Cancel(id.clone()));
                }
                Ask::Clock => self.read_clock(now, Lane::Cancel, true),
                Ask::Ended(Ok(orders)) => {
                    tracing::warn!(orders, "no spot order of the run rests any more");
                    self.over(WatchdogEnd::Swept(orders));
                }
                Ask::Ended(Err(why)) => self.over(WatchdogEnd::Failed(why)),
            }
        }
    }

    fn ask(&mut self, now: Time, question: Question<'_>, with: (Lane, i64), errand: Errand) {
        self.next_errand += 1;
        self.errands.insert(self.next_errand, errand);
        if !self.requests.ask(now, question, with, self.next_errand) {
            let route = "the exchange has no such call".to_owned();
            self.over(WatchdogEnd::Failed(route));
        }
    }

    /// Takes in what became of calls; answers whether something was for the watchdog.
    fn hear_requests(&mut self, now: Time) -> bool {
        let mut heard = false;
        while let Some(done) = self.requests.poll() {
            match done {
                Done::Sign(id, unsigned) => {
                    self.outputs.push_back(WatchdogOutput::Sign(id, unsigned));
                }
                Done::Send(call) => self.outputs.push_back(WatchdogOutput::Send(call)),
                Done::Abandon(id) => self.outputs.push_back(WatchdogOutput::Abandon(id)),
                Done::Asked(number, became) => {
                    // What was asked before it acts concerns nobody any more.
                    if let Some(errand) = self.errands.remove(&number) {
                        self.errand_done(now, errand, became);
                        heard = true;
                    }
                }
                // It makes no call of these, and no engine is told of stops.
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
        heard
    }

    fn errand_done(&mut self, now: Time, errand: Errand, became: Result<String, NotDone>) {
        match errand {
            Errand::Proof => self.proof_came(now, became.map(drop)),
            Errand::Clock { of_sweep } => self.clock_came(now, of_sweep, became),
            Errand::List(symbol) => {
                let exchange = self.requests.exchange();
                let listed = became.map(|text| exchange.open_orders(&text));
                if let Phase::Sweeping(sweep) = &mut self.phase {
                    sweep.listed(now, &symbol, listed);
                }
            }
            Errand::Cancel(id) => {
                let exchange = self.requests.exchange();
                let became = match became {
                    // It was filled or cancelled meanwhile: the next listing shows it.
                    Err(not_done) if exchange.is_nothing_to_cancel(&not_done) => {
                        tracing::info!(id, %not_done, "not cancelled");
                        Ok(())
                    }
                    Ok(_) => {
                        tracing::warn!(id, "cancelled");
                        Ok(())
                    }
                    Err(not_done) => Err(not_done),
                };
                if let Phase::Sweeping(sweep) = &mut self.phase {
                    sweep.cancelled(now, id, became);
                }
            }
        }
    }

    fn proof_came(&mut self, now: Time, became: Result<(), NotDone>) {
        let Phase::Listening { proof, .. } = &mut self.phase else {
            return;
        };
        match became {
            Ok(()) => {
                let next = proof.next();
                self.ask_for_proof(now, next);
            }
            Err(NotDone::Refused(refusal)) => {
                self.over(WatchdogEnd::Failed(refusal.to_string()));
            }
            Err(not_done) => {
                tracing::warn!(%not_done, "not armed; it is tried again");
                let wanted = match not_done {
                    NotDone::Wait(wait) => wait.after,
                    _ => Duration::ZERO,
                };
                proof.failed(now, wanted);
            }
        }
    }

    fn clock_came(&mut self, now: Time, of_sweep: bool, became: Result<String, NotDone>) {
        let lane = if of_sweep {
            Lane::Cancel
        } else {
            Lane::Heartbeat
        };
        let Some(mut reading) = self.reading.take() else {
            return;
        };
        let read = match became {
            Ok(text) => match reading.take(now, &text, self.requests.exchange()) {
                Ok(None) if self.proof_waits(now) => return,
                Ok(None) => {
                    let question = reading.ask(now);
                    self.reading = Some(reading);
                    return self.ask(now, question, (lane, 0), Errand::Clock { of_sweep });
                }
                Ok(Some(offset)) => {
                    let spot = venue_surface(Surface::Spot);
                    self.requests.gateway().set_offset(spot, offset);
                    Ok(())
                }
                Err(why) => {
                    tracing::warn!(why, "the venue's clock was not read");
                    Err(None)
                }
            },
            Err(not_done) => Err(Some(not_done)),
        };
        match (&mut self.phase, read) {
            (Phase::Sweeping(sweep), _) => sweep.clock_was_read(now),
            (Phase::Listening { proof, .. }, Err(None)) => proof.failed(now, Duration::ZERO),
            (_, Ok(())) => self.proof_came(now, Ok(())),
            (_, Err(Some(not_done))) => self.proof_came(now, Err(not_done)),
            (_, Err(None)) => {}
        }
    }
}

/// Milliseconds as the engine counts them.
fn ms(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX / 1_000_000)
}
