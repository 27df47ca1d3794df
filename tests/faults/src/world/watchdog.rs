//! The watchdog processes of spot orders. Spot has no `countdownCancelAll`. Each process drives the session's
//! [`Watchdog`]. Its requests travel over the links of the run, with faults from a random sequence of its
//! own. Its pipes may be slow, and it may be killed. The run's keeper (`runtime/node/src/watchdog/keeper.rs`)
//! then starts another.
//!
//! The watchdog of a dead run goes on beside the next process and its watchdog.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use windvane::live::{exchange, start};
use windvane_client_core::bans::BansNow;
use windvane_client_core::budget::Shares;
use windvane_client_core::gateway::{self, Gateway};
use windvane_client_core::nonce::Nonces;
use windvane_client_core::outcome::Lost;
use windvane_engine::{ClientOrderId, Surface, Time};
use windvane_session::watchdog::{
    RunSays, Watchdog, WatchdogEnd, WatchdogInput, WatchdogOutput, WatchdogPlan, WatchdogSays,
};
use windvane_session::{Call, CallAnswer, RequestTerms, Requests};

use super::{Event, MS, S, World};
use crate::mix::Kind;
use crate::process::{In, Process, REQUEST};
use crate::random::Random;
use crate::tally;
use crate::witness::{Answer, RequestId, Seen};

/// The rule of what a watchdog cancels.
pub const WATCHES: &str = "the watchdog cancels all spot orders of a dead run, and no others";
/// A process begins so long after it was started: from, to.
const BEGINS_NS: (i64, i64) = (20 * MS, 200 * MS);
/// From the end of one to the start of the next.
const PAUSE_NS: i64 = 200 * MS;
/// A word on a pipe takes so long, and this long where it is slow.
const PIPE_NS: (i64, i64) = (MS / 5, 2 * S);
/// One word in so many is slow, while there are faults.
const SLOW_PPM: u32 = 20_000;
/// One watchdog in so many is killed, while there are faults.
const KILLED_PPM: u32 = 150_000;
/// More wakes than these at one moment are a loop.
const BUSY_MAX: u32 = 10_000;
/// It is killed within this.
const KILLED_NS: i64 = 120 * S;

/// An event of a watchdog process.
#[derive(Debug)]
pub enum Watch {
    /// One begins beside the process of this life.
    Begin(u32),
    /// A word of the run reaches it.
    Word(u32, RunSays),
    /// The run is dead.
    RunIsDead(u32),
    /// An answer, or that none will come.
    Answer(u32, RequestId, Option<Answer>),
    /// The time that it asked for has come.
    Wake(u32),
    /// It is killed.
    Kill(u32),
}

/// The watchdogs of a world.
#[derive(Debug)]
pub struct Watchdogs {
    /// Those that run, by their numbers.
    running: BTreeMap<u32, Beside>,
    /// The one of the process that runs.
    current: Option<u32>,
    begun: u32,
    /// The run that runs gave a sign of health.
    orders_may_rest: bool,
    /// Faults of their requests and pipes.
    pub net: Random,
    /// When the last word arrives: to them, and to the run.
    last_ns: [i64; 2],
}

/// One watchdog process.
#[derive(Debug)]
struct Beside {
    life: u32,
    epoch: u64,
    watchdog: Watchdog,
    gateway: Gateway,
    started_ns: i64,
    /// Wall less true time.
    counted_from_ns: i64,
    wake_ns: i64,
    /// Wakes in a row that were due at once.
    busy: u32,
}

impl Watchdogs {
    /// None runs yet.
    pub fn new(seed: u64) -> Self {
        Self {
            running: BTreeMap::new(),
            current: None,
            begun: 0,
            orders_may_rest: false,
            net: Random::of(seed, "watchdogs"),
            last_ns: [0; 2],
        }
    }
}

/// The run's side.
impl World {
    fn has_spot(&self) -> bool {
        self.setup.surfaces.contains(&Surface::Spot)
    }

    /// A process runs: a watchdog is started beside it.
    pub(super) fn begin_watchdog(&mut self) {
        if self.has_spot() {
            self.count(Kind::Spot);
            self.watchdogs.orders_may_rest = false;
            self.start_watchdog(0);
        }
    }

    fn start_watchdog(&mut self, pause_ns: i64) {
        // Every question makes a ban longer.
        let stopped_ms = self.process.as_ref().map_or(0, Process::spot_stopped_ms);
        let begins_ns = self.watchdogs.net.between(BEGINS_NS.0, BEGINS_NS.1);
        let at_ns = self.now_ns + pause_ns.max(stopped_ms.saturating_mul(MS)) + begins_ns;
        let begin = Event::Watchdog(Watch::Begin(self.life));
        self.queue.put(at_ns, begin);
    }

    /// A sign of health.
    pub(super) fn beat(&mut self, number: u64) {
        let stopped_ms = self.process.as_ref().map_or(0, Process::spot_stopped_ms);
        let stopped_ms = stopped_ms.unsigned_abs();
        self.watchdogs.orders_may_rest = true;
        self.tell_watchdog(RunSays::Beat { number, stopped_ms });
    }

    fn tell_watchdog(&mut self, word: RunSays) {
        if let Some(number) = self.watchdogs.current {
            let at_ns = self.word_arrives_ns(0);
            let word = Event::Watchdog(Watch::Word(number, word));
            self.queue.put(at_ns, word);
        }
    }

    /// The process is gone, killed or in order.
    pub(super) fn leave_watchdog(&mut self, in_order: bool) {
        if in_order {
            self.tell_watchdog(RunSays::End);
        }
        if let Some(number) = self.watchdogs.current.take() {
            let at_ns = self.word_arrives_ns(0);
            let dead = Event::Watchdog(Watch::RunIsDead(number));
            self.queue.put(at_ns, dead);
        }
    }

    /// When a word arrives that leaves now, in order: to the watchdog (0) or to the run (1).
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
        match watch {
            Watch::Begin(life) => self.watchdog_begins(life),
            Watch::Word(number, word) => self.give_watchdog(number, WatchdogInput::Word(word)),
            Watch::RunIsDead(number) => self.give_watchdog(number, WatchdogInput::RunIsDead),
            Watch::Wake(number) => {
                let is_due = |one: &Beside| one.wake_ns <= self.now_ns;
                if self.watchdogs.running.get(&number).is_some_and(is_due) {
                    self.give_watchdog(number, WatchdogInput::Timeout);
                }
            }
            Watch::Kill(number) => {
                if self.watchdogs.running.remove(&number).is_some() {
                    self.tell("a watchdog process is killed".to_owned());
                    self.watchdog_is_over(number);
                }
            }
            Watch::Answer(number, id, answer) => {
                let headers = answer.iter().flat_map(|answer| &answer.headers);
                let headers: Vec<_> = headers.map(|(n, v)| (n.as_str(), v.as_str())).collect();
                let came = match &answer {
                    Some(answer) => CallAnswer::Came(gateway::Answer {
                        status: answer.status,
                        headers: &headers,
                        text: &answer.body,
                    }),
                    None => CallAnswer::Lost(Lost::Cut("the connection broke".to_owned())),
                };
                self.give_watchdog(number, WatchdogInput::Answer(id, came));
            }
        }
    }

    fn watchdog_begins(&mut self, life: u32) {
        if life != self.life || self.process.is_none() || self.watchdogs.current.is_some() {
            return;
        }
        self.watchdogs.begun += 1;
        let number = self.watchdogs.begun;
        let setup = Arc::clone(&self.setup);
        let gateway = Gateway::new(
            setup.identity.clone(),
            Shares::default(),
            Arc::new(Nonces::new()),
        );
        BansNow::new(&gateway, 0, self.wall_ns() / MS).heed(&self.disk.bans);
        let config = &setup.config;
        let spot = setup
            .names
            .iter()
            .filter(|one| one.surface == Surface::Spot);
        let strategies = config.strategies.iter();
        let epoch = self.disk.epoch;
        let plan = WatchdogPlan {
            strategies: strategies.map(|one| one.id.as_str().to_owned()).collect(),
            symbols: spot.map(|one| one.symbol.clone()).collect(),
            epoch,
            countdown_ms: config.heartbeat.countdown_ms,
            absence_ms: start::absence_ms(config).unsigned_abs(),
            orders_may_rest: self.watchdogs.orders_may_rest,
        };
        let now = Time(self.wall_ns());
        let terms = RequestTerms {
            request: REQUEST,
            countdown: REQUEST,
        };
        let first = 1 << 62 | u64::from(number) << 32;
        let spoken = exchange::exchange(config, gateway.clone());
        let requests = Requests::new(spoken, terms, now, vec![Surface::Spot], first);
        let beside = Beside {
            life,
            epoch,
            watchdog: Watchdog::new(now, plan, requests),
            gateway,
            started_ns: self.now_ns,
            counted_from_ns: self.wall_offset_ns,
            wake_ns: i64::MAX,
            busy: 0,
        };
        self.watchdogs.current = Some(number);
        if self.faults_on && self.watchdogs.net.chance(KILLED_PPM) {
            let at_ns = self.now_ns + self.watchdogs.net.between(S, KILLED_NS);
            self.queue.put(at_ns, Event::Watchdog(Watch::Kill(number)));
        }
        self.perform_watchdog(number, beside);
    }

    fn give_watchdog(&mut self, number: u32, input: WatchdogInput<'_>) {
        if let Some(mut one) = self.watchdogs.running.remove(&number) {
            one.watchdog.handle(self.watchdog_time(&one), input);
            self.perform_watchdog(number, one);
        }
    }

    fn watchdog_time(&self, one: &Beside) -> Time {
        Time(self.now_ns + one.counted_from_ns)
    }

    fn perform_watchdog(&mut self, number: u32, mut one: Beside) {
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
                WatchdogOutput::Say(words) => self.watchdog_says(number, one.life, words),
                WatchdogOutput::HeedBans => {
                    self.log.count(tally::WATCHDOG_ACTS);
                    self.tell("a watchdog process acts".to_owned());
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
            return self.watchdog_is_over(number);
        }
        one.wake_ns = one.watchdog.poll_timeout().map_or(i64::MAX, |due| {
            (due.0 - one.counted_from_ns).max(self.now_ns)
        });
        one.busy = if one.wake_ns == self.now_ns {
            one.busy + 1
        } else {
            0
        };
        if one.busy > BUSY_MAX {
            let how = "a timer of a watchdog is always due".to_owned();
            self.log.fail(self.now_ns, WATCHES, how);
            return;
        }
        if one.wake_ns < i64::MAX {
            let wake = Event::Watchdog(Watch::Wake(number));
            self.queue.put(one.wake_ns, wake);
        }
        self.watchdogs.running.insert(number, one);
    }

    /// It is gone. The run's keeper, if the run lives, starts another.
    fn watchdog_is_over(&mut self, number: u32) {
        if self.watchdogs.current == Some(number) {
            self.watchdogs.current = None;
            let at_ns = self.word_arrives_ns(1);
            let gone = Event::Deliver(self.life, In::Watchdog(false));
            self.queue.put(at_ns, gone);
            self.start_watchdog(PAUSE_NS);
        }
    }

    fn watchdog_says(&mut self, number: u32, life: u32, words: WatchdogSays) {
        if self.watchdogs.current != Some(number) {
            return;
        }
        let heard = match words {
            WatchdogSays::Armed => In::Watchdog(true),
            WatchdogSays::Heard { number } => In::BeatHeard(number),
            WatchdogSays::Acting => In::Watchdog(false),
        };
        let at_ns = self.word_arrives_ns(1);
        self.queue.put(at_ns, Event::Deliver(life, heard));
    }

    fn watchdog_sends(&mut self, number: u32, one: &Beside, call: Call) {
        std::mem::swap(&mut self.net, &mut self.watchdogs.net);
        self.send_for_watchdog(number, one.life, call);
        std::mem::swap(&mut self.net, &mut self.watchdogs.net);
    }

    /// A cancel of a watchdog was carried out: was it the run's order?
    pub(super) fn watchdog_cancelled(&mut self, number: u32, symbol: &str, id: &str) {
        self.see(Seen::Act {
            act: json!({"act": "cancel", "by": "watchdog", "symbol": symbol, "id": id}),
            done: true,
        });
        let epoch = self.watchdogs.running.get(&number).map(|one| one.epoch);
        if epoch.is_some_and(|epoch| !self.is_of_run(id, epoch)) {
            let how = format!("it cancels {id}, which is not of its run");
            self.log.fail(self.now_ns, WATCHES, how);
        }
    }

    /// Whether the run of this epoch, or an earlier run, placed the order.
    fn is_of_run(&self, id: &str, epoch: u64) -> bool {
        let id = ClientOrderId::new(id).ok();
        let own = id.as_ref().and_then(ClientOrderId::parse_own);
        own.is_some_and(|(owner, of, _)| {
            of <= epoch && self.mix.terms.strategies.iter().any(|one| one.id == owner)
        })
    }

    /// A watchdog ended: none of these orders may rest.
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
            let how = format!("it ends, and {} rests", left.join(", "));
            self.log.fail(self.now_ns, WATCHES, how);
        }
    }
}
