//! The watchdog processes of spot orders, because spot has no `countdownCancelAll`. Each process
//! drives the session's [`Watchdog`]. Its requests use the links of the run, with faults from a
//! separate random sequence. Its pipes may be slow, it may be stopped for a while, and it may be
//! killed. Then the session's `Keeper`, in the process of the run, starts another one.
//!
//! The watchdog of a dead run works on while the next process and its watchdog run.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use windvane_client_core::bans::BansNow;
use windvane_client_core::budget::Shares;
use windvane_client_core::gateway::{self, Gateway};
use windvane_client_core::nonce::Nonces;
use windvane_client_core::outcome::Lost;
use windvane_live::{exchange, startup_steps};
use windvane_model::{ClientOrderId, Surface, Time};
use windvane_session::watchdog::{
    KeeperOutput, RunMessage, Watchdog, WatchdogEnd, WatchdogInput, WatchdogMessage,
    WatchdogOutput, WatchdogPlan,
};
use windvane_session::{Call, CallAnswer, RequestTerms, Requests};

use super::incidents::Incident;
use super::{Busy, Event, MS, S, TIMERS, World};
use crate::fault_plan::Kind;
use crate::process::{In, REQUEST};
use crate::random::Random;
use crate::tally;
use crate::witness::{Answer, RequestId, WitnessEvent};

/// The rule about what a watchdog cancels.
pub const WATCHES: &str = "the watchdog cancels all spot orders of a dead run, and no others";
/// Shortest and longest time from the start of a process until it runs.
const BEGINS_NS: (i64, i64) = (20 * MS, 200 * MS);
/// Time for a message on a pipe: of a normal message, and the longest of a slow one.
const PIPE_NS: (i64, i64) = (MS / 5, 2 * S);
/// Share of slow messages in a million, while there are faults.
const SLOW_PPM: u32 = 20_000;
/// Share of killed watchdogs in a million, while there are faults.
const KILLED_PPM: u32 = 150_000;
/// The kill comes within this time.
const KILLED_NS: i64 = 120 * S;
/// A watchdog must act within this time after the countdown.
const LATE_NS: i64 = S;
/// In this share of these cases, in a million, the run is killed soon after its watchdog, as by a
/// system without memory. `BOTH_NS` is the longest time between the kills.
const BOTH_PPM: u32 = 300_000;
const BOTH_NS: i64 = 4 * S;
/// Share of stopped watchdogs in a million, while there are faults.
const STOPPED_PPM: u32 = 100_000;
/// The stop comes within the first time and lasts from the second to the third. The keeper waits
/// five seconds for a reply.
const STOPPED_NS: (i64, i64, i64) = (120 * S, S, 30 * S);

/// An event of a watchdog process.
#[derive(Debug)]
pub enum Watch {
    /// A watchdog begins to run.
    Begin(Box<Begin>),
    /// A message of the run reaches it.
    FromRun(u32, RunMessage),
    /// The run is dead.
    RunIsDead(u32),
    /// A response, or `None` if none will come.
    Answer(u32, RequestId, Option<Answer>),
    /// Its timer is due.
    Wake(u32),
    /// It is killed.
    Kill(u32),
    /// It is stopped for this time, nanoseconds.
    Stop(u32, i64),
    /// A countdown has passed since a sign of health: checks whether the watchdog acts.
    Look(u32),
    /// A message of the watchdog reaches the run.
    Message(u32, WatchdogMessage),
    /// The run sees that the watchdog has ended.
    Ended(u32),
}

/// The arguments of a watchdog process.
#[derive(Debug)]
pub struct Begin {
    number: u32,
    life: u32,
    plan: WatchdogPlan,
}

/// The watchdogs of a world.
#[derive(Debug)]
pub struct Watchdogs {
    /// The running watchdogs, by their numbers.
    running: BTreeMap<u32, WatchdogProcess>,
    /// The watchdog of the running process.
    current: Option<u32>,
    started: u32,
    /// The epochs of all watchdogs, by their numbers.
    epochs: BTreeMap<u32, u64>,
    /// The last life that sent a sign of health.
    beaten: u32,
    /// Random sequence for the faults of their requests and pipes.
    pub net: Random,
    /// When the last message arrives: at the watchdogs, and at the run.
    last_ns: [i64; 2],
}

/// One watchdog process.
#[derive(Debug)]
struct WatchdogProcess {
    life: u32,
    epoch: u64,
    watchdog: Watchdog,
    gateway: Gateway,
    started_ns: i64,
    /// Wall clock minus true time.
    counted_from_ns: i64,
    wake_ns: i64,
    /// Counts wakes in a row that were due at once.
    busy: Busy,
    /// It is stopped until this time.
    stopped_until_ns: i64,
    /// The time of the last sign of health; or of its start, if orders may rest already.
    sign_ns: Option<i64>,
    /// The run reported a ban: nothing may be sent before this time.
    quiet_until_ns: i64,
    /// It has started to cancel.
    acts: bool,
}

impl Watchdogs {
    /// A world without watchdogs.
    pub fn new(seed: u64) -> Self {
        Self {
            running: BTreeMap::new(),
            current: None,
            started: 0,
            epochs: BTreeMap::new(),
            beaten: 0,
            net: Random::of(seed, "watchdogs"),
            last_ns: [0; 2],
        }
    }
}

/// The side of the run.
impl World {
    /// Executes an output of the run's keeper.
    pub(super) fn keep_watchdog(&mut self, output: &KeeperOutput) {
        match output {
            KeeperOutput::Start { orders_may_rest } => self.start_watchdog(*orders_may_rest),
            KeeperOutput::SendMessage(message) => {
                if let RunMessage::Heartbeat { .. } = message {
                    self.watchdogs.beaten = self.life;
                }
                if let Some(number) = self.watchdogs.current {
                    let at_ns = self.word_arrives_ns(0);
                    let message = Event::Watchdog(Watch::FromRun(number, *message));
                    self.queue.put(at_ns, message);
                }
            }
            KeeperOutput::Kill => {
                if let Some(number) = self.watchdogs.current.take() {
                    self.record_fault("the run kills its watchdog process".to_owned());
                    self.log.count(tally::WATCHDOG_KILLED);
                    self.watchdogs.running.remove(&number);
                }
                let ended = Event::Deliver(self.life, In::WatchdogEnded);
                self.queue.put(self.now_ns, ended);
            }
            // The process itself passes `Tell` to its session, and after the end nothing is left to
            // do.
            KeeperOutput::Report(_) | KeeperOutput::Over => {}
        }
    }

    /// The process of the run has ended, by a kill or in order: the pipe of its watchdog closes.
    pub(super) fn leave_watchdog(&mut self) {
        if let Some(number) = self.watchdogs.current.take() {
            let at_ns = self.word_arrives_ns(0);
            let dead = Event::Watchdog(Watch::RunIsDead(number));
            self.queue.put(at_ns, dead);
        }
    }

    /// Starts a watchdog process. Messages wait in its pipe until it runs.
    fn start_watchdog(&mut self, orders_may_rest: bool) {
        self.count(Kind::Spot);
        self.watchdogs.started += 1;
        let number = self.watchdogs.started;
        self.watchdogs.current = Some(number);
        let begins_ns = self.watchdogs.net.between(BEGINS_NS.0, BEGINS_NS.1);
        let at_ns = self.now_ns + begins_ns;
        self.watchdogs.last_ns[0] = self.watchdogs.last_ns[0].max(at_ns);
        let setup = &self.setup;
        let plan = startup_steps::watchdog_plan(&setup.config, &setup.names, self.disk.epoch);
        let begin = Box::new(Begin {
            number,
            life: self.life,
            plan: WatchdogPlan {
                orders_may_rest,
                ..plan
            },
        });
        self.queue.put(at_ns, Event::Watchdog(Watch::Begin(begin)));
    }

    /// When a message sent now arrives, in order: at the watchdog (0) or at the run (1).
    fn word_arrives_ns(&mut self, way: usize) -> i64 {
        let is_slow = self.faults_on && self.watchdogs.net.chance(SLOW_PPM);
        let takes_ns = if is_slow {
            self.watchdogs.net.between(PIPE_NS.0, PIPE_NS.1)
        } else {
            PIPE_NS.0
        };
        let last_ns = &mut self.watchdogs.last_ns[way];
        *last_ns = (*last_ns).max(self.now_ns + takes_ns);
        *last_ns
    }
}

/// The watchdogs.
impl World {
    pub(super) fn watch(&mut self, watch: Watch) {
        if let Some(until_ns) = self.stopped_until_ns(&watch) {
            return self.queue.put(until_ns, Event::Watchdog(watch));
        }
        match watch {
            Watch::Begin(begin) => self.watchdog_begins(*begin),
            Watch::Message(number, message) => {
                if self.watchdogs.current == Some(number) {
                    self.deliver(self.life, In::Watchdog(message));
                }
            }
            Watch::Ended(number) => {
                if self.watchdogs.current == Some(number) {
                    self.watchdogs.current = None;
                    self.deliver(self.life, In::WatchdogEnded);
                }
            }
            Watch::Look(number) => self.look_for_act(number),
            Watch::Stop(number, for_ns) => {
                if let Some(one) = self.watchdogs.running.get_mut(&number) {
                    one.stopped_until_ns = self.now_ns + for_ns;
                    self.record_fault("a watchdog process is stopped".to_owned());
                }
            }
            Watch::FromRun(number, message) => {
                if let RunMessage::Heartbeat { stopped_ms, .. } = message {
                    self.sign_comes(number, stopped_ms);
                }
                self.give_watchdog(number, WatchdogInput::Message(message));
            }
            Watch::RunIsDead(number) => self.give_watchdog(number, WatchdogInput::RunIsDead),
            Watch::Wake(number) => {
                let is_due = |one: &WatchdogProcess| one.wake_ns <= self.now_ns;
                if self.watchdogs.running.get(&number).is_some_and(is_due) {
                    self.give_watchdog(number, WatchdogInput::Timeout);
                }
            }
            Watch::Kill(number) => {
                let is_of_run = self.watchdogs.current == Some(number);
                if self.watchdogs.running.remove(&number).is_some() {
                    self.record_fault("a watchdog process is killed".to_owned());
                    self.watchdog_is_over(number);
                    let kills = is_of_run && self.faults_on && self.fault_plan.faults.crash_s > 0;
                    if kills && self.watchdogs.net.chance(BOTH_PPM) {
                        let at_ns = self.now_ns + self.watchdogs.net.between(0, BOTH_NS);
                        self.queue.put(at_ns, Event::Incident(Incident::KillNow));
                    }
                }
            }
            Watch::Answer(number, id, answer) => {
                let headers = answer.iter().flat_map(|answer| &answer.headers);
                let headers: Vec<_> = headers.map(|(n, v)| (n.as_str(), v.as_str())).collect();
                let result = match &answer {
                    Some(answer) => CallAnswer::Received(gateway::Answer {
                        status: answer.status,
                        headers: &headers,
                        text: &answer.body,
                    }),
                    None => CallAnswer::Lost(Lost::Cut("the connection broke".to_owned())),
                };
                self.give_watchdog(number, WatchdogInput::Answer(id, result));
            }
        }
    }

    /// When a stopped process continues, if this input is for a stopped process.
    fn stopped_until_ns(&self, watch: &Watch) -> Option<i64> {
        let (Watch::FromRun(number, _)
        | Watch::RunIsDead(number)
        | Watch::Answer(number, ..)
        | Watch::Wake(number)) = watch
        else {
            return None;
        };
        let one = self.watchdogs.running.get(number)?;
        (one.stopped_until_ns > self.now_ns).then_some(one.stopped_until_ns)
    }

    fn watchdog_begins(&mut self, begin: Begin) {
        let Begin { number, life, plan } = begin;
        let (epoch, orders_may_rest) = (plan.epoch, plan.orders_may_rest);
        let setup = Arc::clone(&self.setup);
        let gateway = Gateway::new(
            setup.identity.clone(),
            Shares::default(),
            Arc::new(Nonces::new()),
        );
        BansNow::new(&gateway, 0, self.wall_ns() / MS).heed(&self.disk.bans);
        let now = Time(self.wall_ns());
        let terms = RequestTerms {
            request: REQUEST,
            countdown: REQUEST,
        };
        let first = 1 << 62 | u64::from(number) << 32;
        let spoken = exchange::exchange(&setup.config, gateway.clone());
        let requests = Requests::new(spoken, terms, now, vec![Surface::Spot], first);
        let process = WatchdogProcess {
            life,
            epoch,
            watchdog: Watchdog::new(now, plan, requests),
            gateway,
            started_ns: self.now_ns,
            counted_from_ns: self.wall_offset_ns,
            wake_ns: i64::MAX,
            busy: Busy::default(),
            stopped_until_ns: 0,
            sign_ns: orders_may_rest.then_some(self.now_ns),
            quiet_until_ns: 0,
            acts: false,
        };
        self.watchdogs.epochs.insert(number, epoch);
        if self.faults_on && self.watchdogs.net.chance(KILLED_PPM) {
            let at_ns = self.now_ns + self.watchdogs.net.between(S, KILLED_NS);
            self.queue.put(at_ns, Event::Watchdog(Watch::Kill(number)));
        }
        if self.faults_on && self.watchdogs.net.chance(STOPPED_PPM) {
            let (within_ns, least_ns, most_ns) = STOPPED_NS;
            let at_ns = self.now_ns + self.watchdogs.net.between(S, within_ns);
            let stop = Watch::Stop(number, self.watchdogs.net.between(least_ns, most_ns));
            self.queue.put(at_ns, Event::Watchdog(stop));
        }
        self.perform_watchdog(number, process);
    }

    fn give_watchdog(&mut self, number: u32, input: WatchdogInput<'_>) {
        if let Some(mut one) = self.watchdogs.running.remove(&number) {
            one.watchdog.handle(self.watchdog_time(&one), input);
            self.perform_watchdog(number, one);
        }
    }

    fn watchdog_time(&self, one: &WatchdogProcess) -> Time {
        Time(self.now_ns + one.counted_from_ns)
    }

    fn perform_watchdog(&mut self, number: u32, mut one: WatchdogProcess) {
        let now = self.watchdog_time(&one);
        while let Some(output) = one.watchdog.poll_output() {
            match output {
                WatchdogOutput::Sign(id, unsigned) => {
                    let prepared = one.gateway.sign(&unsigned);
                    let signed = WatchdogInput::Signed(id, prepared);
                    one.watchdog.handle(now, signed);
                }
                WatchdogOutput::Send(call) => self.watchdog_sends(number, &one, call),
                WatchdogOutput::Abandon(id) => {
                    let lost = CallAnswer::Lost(Lost::Timeout(REQUEST));
                    one.watchdog.handle(now, WatchdogInput::Answer(id, lost));
                }
                WatchdogOutput::SendMessage(message) => self.send_watchdog_message(number, message),
                WatchdogOutput::HeedBans => {
                    self.log.count(tally::WATCHDOG_ACTS);
                    self.record_fault("a watchdog process acts".to_owned());
                    one.acts = true;
                    let since_ms = (self.now_ns - one.started_ns) / MS;
                    let wall_ms = self.wall_ns() / MS;
                    BansNow::new(&one.gateway, since_ms.unsigned_abs(), wall_ms)
                        .heed(&self.disk.bans);
                    one.watchdog.handle(now, WatchdogInput::BansHeeded);
                }
            }
        }
        if let Some(end) = one.watchdog.take_end() {
            if matches!(end, WatchdogEnd::Swept(_)) {
                self.nothing_is_left(one.epoch);
            }
            let has_orders = one.sign_ns.is_some() || self.watchdogs.beaten == one.life;
            if end == WatchdogEnd::NothingTakenOver && has_orders {
                let how =
                    "the watchdog leaves the orders of a run that sent signs of health".to_owned();
                self.log.fail(self.now_ns, WATCHES, how);
            }
            return self.watchdog_is_over(number);
        }
        one.wake_ns = one.watchdog.poll_timeout().map_or(i64::MAX, |due| {
            (due.0 - one.counted_from_ns).max(self.now_ns)
        });
        if one.busy.is_always(one.wake_ns == self.now_ns) {
            let how = "a timer of a watchdog is always due".to_owned();
            self.log.fail(self.now_ns, TIMERS, how);
            return;
        }
        if one.wake_ns < i64::MAX {
            let wake = Event::Watchdog(Watch::Wake(number));
            self.queue.put(one.wake_ns, wake);
        }
        self.watchdogs.running.insert(number, one);
    }

    /// The watchdog ended: the run sees the end of its pipe.
    fn watchdog_is_over(&mut self, number: u32) {
        let at_ns = self.word_arrives_ns(1);
        let ended = Event::Watchdog(Watch::Ended(number));
        self.queue.put(at_ns, ended);
    }

    fn send_watchdog_message(&mut self, number: u32, message: WatchdogMessage) {
        let at_ns = self.word_arrives_ns(1);
        let message = Event::Watchdog(Watch::Message(number, message));
        self.queue.put(at_ns, message);
    }

    /// A sign of health arrives.
    fn sign_comes(&mut self, number: u32, stopped_ms: u64) {
        let now_ns = self.now_ns;
        let look = Event::Watchdog(Watch::Look(number));
        self.queue.put(now_ns + self.acts_within_ns() + 1, look);
        // A watchdog that has started to act ignores signs of health.
        let running = self.watchdogs.running.get_mut(&number);
        if let Some(one) = running.filter(|one| !one.acts) {
            one.sign_ns = Some(now_ns);
            one.quiet_until_ns = now_ns + stopped_ms.cast_signed().saturating_mul(MS);
        }
    }

    /// Longest time from the last sign of health until a watchdog acts.
    fn acts_within_ns(&self) -> i64 {
        self.setup.config.heartbeat.countdown_ms.cast_signed() * MS + LATE_NS
    }

    /// Checks that a watchdog acts if it got no sign of health for a countdown.
    fn look_for_act(&mut self, number: u32) {
        let within_ns = self.acts_within_ns();
        let Some(one) = self.watchdogs.running.get(&number) else {
            return;
        };
        let sleeps = one.sign_ns.is_some_and(|since| {
            self.now_ns > since + within_ns && !one.acts && one.stopped_until_ns <= since
        });
        if sleeps {
            let how =
                "no sign of health came for a countdown, and the watchdog did not act".to_owned();
            self.log.fail(self.now_ns, WATCHES, how);
        }
    }

    /// Whether the watchdog of a dead run still works.
    pub(super) fn watches_the_dead(&self) -> bool {
        let mut running = self.watchdogs.running.keys();
        running.any(|number| self.watchdogs.current != Some(*number))
    }

    fn watchdog_sends(&mut self, number: u32, one: &WatchdogProcess, call: Call) {
        if self.now_ns < one.quiet_until_ns {
            let route = call.route.name;
            let how = format!("the watchdog sends {route}, although the run reported a ban to it");
            self.log.fail(self.now_ns, WATCHES, how);
        }
        std::mem::swap(&mut self.net, &mut self.watchdogs.net);
        self.send_for_watchdog(number, one.life, call);
        std::mem::swap(&mut self.net, &mut self.watchdogs.net);
    }

    /// A cancel of a watchdog was executed: checks that the order belongs to its run.
    pub(super) fn watchdog_cancelled(&mut self, number: u32, symbol: &str, id: &str) {
        self.see(WitnessEvent::Act {
            act: json!({"act": "cancel", "by": "watchdog", "symbol": symbol, "id": id}),
            done: true,
        });
        let epoch = self.watchdogs.epochs.get(&number);
        if epoch.is_some_and(|epoch| !self.is_of_run(id, *epoch)) {
            let how = format!("the watchdog cancels {id}, which does not belong to its run");
            self.log.fail(self.now_ns, WATCHES, how);
        }
    }

    /// Whether the run of this epoch, or an earlier run, placed the order.
    fn is_of_run(&self, id: &str, epoch: u64) -> bool {
        let id = ClientOrderId::new(id).ok();
        let own = id.as_ref().and_then(ClientOrderId::parse_own);
        own.is_some_and(|(owner, of, _)| {
            of <= epoch
                && self
                    .fault_plan
                    .terms
                    .strategies
                    .iter()
                    .any(|one| one.id == owner)
        })
    }

    /// A watchdog ended: checks that none of its orders rests.
    fn nothing_is_left(&mut self, epoch: u64) {
        let truth = self.venue.truth(true, self.now_ns);
        let orders = truth["accounts"][0]["orders"].as_array();
        let id = |order: &Value| {
            order["client_order_id"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let spot = orders
            .into_iter()
            .flatten()
            .filter(|order| order["surface"] == "spot");
        let left: Vec<_> = spot
            .map(id)
            .filter(|id| self.is_of_run(id, epoch))
            .collect();
        if !left.is_empty() {
            let how = format!(
                "the watchdog ended, but these orders still rest: {}",
                left.join(", ")
            );
            self.log.fail(self.now_ns, WATCHES, how);
        }
    }
}
