//! One life: the venue, the links, the disk and one process at a time, in virtual time. Events of
//! the same moment happen in the order in which they were added to the queue.
//!
//! Rules of the venue and of the runtime must not enter this module. The world only carries,
//! delays, loses and kills.

mod closing;
mod elsewhere;
mod idle;
mod incidents;
pub mod kill_switch_file;
mod net;
mod rest;
mod second;
mod stops;
pub mod watchdog;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use windvane_client_core::bans::WrittenBan;
use windvane_model::codec::RecordBody;
use windvane_model::record::Block;
use windvane_model::{ClientOrderId, Input, Intent};

use crate::check::ticks::Ticks;
use crate::disk::{Damage, Disk, ROLLED_BACK, Written};
use crate::fault_plan::{FaultPlan, Kind};
use crate::life::Options;
use crate::log::Log;
use crate::process::{Given, In, Out, Process, Setup, StreamKey};
use crate::queue::Queue;
use crate::random::Random;
use crate::tally;
use crate::venue::{LinkName, Venue};
use crate::witness::{Answer, ProcessEvent, WitnessEvent};

use incidents::Incident;
use kill_switch_file::KillSwitchFile;
use net::{Flight, Link};
use second::Second;
use watchdog::{Watch, Watchdogs};

/// A millisecond.
pub const MS: i64 = 1_000_000;
/// A second.
pub const S: i64 = 1_000 * MS;
/// The time at which every life begins, Unix nanoseconds.
pub const BORN_NS: i64 = 1_723_161_253 * S;
/// Interval at which the venue's time advances. The real server looks at countdowns every 10 ms;
/// this world is coarser.
const VENUE_TICK_NS: i64 = 100 * MS;
/// A journal that waits longer for the disk reports a stall.
const DISK_STALL_NS: i64 = windvane_session::JOURNAL_STALL_MS * MS;
/// After a start with a lost journal the operator waits for this time, and then resumes.
const SETTLED_AFTER_NS: i64 = 20 * S;
/// The rule that a process starts and continues.
pub const STARTS: &str = "a process starts and goes on";
/// The rule that segments and blocks follow one another without a gap.
pub const CHAIN: &str = "the journal's chain has no hole";
/// The rule that the runtime agrees with the venue after the faults.
pub const CONVERGES: &str = "everything converges after the faults";
/// The rule that the journal gets no more blocks than it has room for.
pub const ROOM: &str = "the journal is given no more than it has room for";
/// The rule that a process sleeps between its timers.
pub const TIMERS: &str = "no timer is always due";
/// The rule that books equal the venue's books after the faults.
pub const BOOKS: &str = "books are the venue's after the faults";
/// The rule that a flatten after the faults completes in time.
pub const CLOSES: &str = "flatten comes to an end";

/// A future event.
#[derive(Debug)]
pub enum Event {
    /// The venue's time advances.
    Venue,
    /// A request arrives at the venue.
    Arrive(Box<Flight>),
    /// A WebSocket handshake of this link arrives at the venue, with its target (path and query).
    Handshake(LinkName, String),
    /// A client's message arrives at the venue.
    ClientText(LinkName, String),
    /// An input reaches the process of this life.
    Deliver(u32, In),
    /// A frame reaches the process; for user streams with the number of the event.
    Frame(LinkName, Option<u64>, String),
    /// The process asked to be woken; only its latest request counts.
    Wake(u64),
    /// The disk has finished writing.
    Sync(u32),
    /// Checks whether the disk took too long.
    DiskLate(u32, u64),
    /// A process starts.
    Start,
    /// A stopped process continues.
    Resume(u32),
    /// A fault or an act happens.
    Incident(Incident),
    /// The witness gets a sample of truth and view.
    Sample,
    /// The faults end here.
    FaultsEnd,
    /// Something happens to a watchdog process of spot.
    Watchdog(Watch),
    /// The kill switch file of the process of this life is written.
    KillSwitchFile(u32),
    /// The disk refused the kill switch file of this life when it was given for the n-th time:
    /// checks that it is written again.
    LookForKillSwitches(u32, u32),
    /// Checks whether everything is at rest.
    LookForRest,
    /// Checks whether everything is closed.
    LookForFlat,
    /// The witness gets the true state while the operator flattens.
    LookAtCloses,
}

/// The state of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Ended,
    Running,
    Paused,
}

/// A world.
pub struct World {
    setup: Arc<Setup>,
    fault_plan: FaultPlan,
    /// The ticks to which the venue may have rounded the entry prices that it reported.
    ticks: Ticks,
    venue: Venue,
    disk: Disk,
    process: Option<Process>,
    standing: Standing,
    backlog: VecDeque<In>,
    life: u32,
    queue: Queue<Event>,
    /// The witness.
    pub log: Log,
    now_ns: i64,
    /// The process's wall clock minus the true time.
    wall_offset_ns: i64,
    net: Random,
    chance: Random,
    actors: Random,
    /// For the weight that others use.
    weight: Random,
    /// Another instance on the account.
    second: Second,
    /// For trades on a symbol that is not configured.
    elsewhere: Random,
    /// For frequent trades on such a symbol.
    busy: Random,
    /// Others trade frequently until this time.
    busy_until_ns: i64,
    /// For positions that a person closes by hand.
    hand: Random,
    /// For losses of a paused run.
    idle: Random,
    /// For flattens while the user stream is down.
    blind: Random,
    /// The watchdog processes of spot.
    watchdogs: Watchdogs,
    /// The kill switch file in flight to the disk.
    kill_switch_file: KillSwitchFile,
    /// How often in a row a timer of the process was due right after it was called.
    overdue: Busy,
    /// For orderly stops.
    stops: Random,
    /// For the changes of reloads.
    reloads: Random,
    /// For changes of the account's modes.
    modes: Random,
    /// Whether somebody turned on the multi-assets mode, and changed the position mode.
    modes_on: (bool, bool),
    /// For the position sides of what others do in hedge mode.
    sides: Random,
    /// For a disk that accepts nothing for a long time.
    full: Random,
    links: BTreeMap<LinkName, Link>,
    /// For each channel, until when it is held back, and the delay of its release.
    stalls: [(i64, i64); 3],
    /// The process is killed after this many outputs.
    crash_after: Option<u64>,
    /// The process is stopped when the next order is about to be sent.
    pause_at_order: bool,
    wake_ns: i64,
    wakes: u64,
    user_events: u64,
    disk_sync_put: bool,
    disk_hangs_until: i64,
    disk_fails_until: i64,
    /// Number of times that data was given to the disk.
    disk_given: u64,
    disk_reported_late: bool,
    /// Client order ids of the intents in blocks in flight.
    intended: BTreeMap<u64, Vec<String>>,
    /// A process was ready at least once.
    was_ready: bool,
    faults_on: bool,
    faults_ended_ns: i64,
    /// The end of the last ban that a response reported. The runtime waits until then, although the
    /// venue may have forgotten the ban.
    banned_until_ns: i64,
    /// When the final flatten of the operator began.
    flattened_ns: Option<i64>,
    /// When the operator began to flatten while faults go on.
    closing_since: Option<i64>,
    /// No user stream can connect until this time.
    blind_until_ns: i64,
    /// The last response of each route of the account, and whether it was false.
    last_answers: BTreeMap<String, (String, bool)>,
    done: bool,
}

impl World {
    /// A world whose process is about to start.
    pub fn new(setup: Arc<Setup>, fault_plan: FaultPlan, venue: Venue, options: &Options) -> Self {
        let seed = fault_plan.terms.seed;
        let log = Log::new(&fault_plan.terms, BORN_NS, options.keep_all, options.rules);
        let mut world = Self {
            setup,
            venue,
            disk: Disk::new(),
            process: None,
            standing: Standing::Ended,
            backlog: VecDeque::new(),
            life: 0,
            queue: Queue::default(),
            log,
            now_ns: BORN_NS,
            wall_offset_ns: 0,
            net: Random::of(seed, "net"),
            chance: Random::of(seed, "incidents"),
            actors: Random::of(seed, "acts"),
            weight: Random::of(seed, "weights"),
            second: Second::new(seed),
            elsewhere: Random::of(seed, "trades elsewhere"),
            busy: Random::of(seed, "busy trades"),
            busy_until_ns: 0,
            hand: Random::of(seed, "closes by hand"),
            idle: Random::of(seed, "idle acts"),
            blind: Random::of(seed, "blind flattens"),
            watchdogs: Watchdogs::new(seed),
            kill_switch_file: KillSwitchFile::new(seed),
            overdue: Busy::default(),
            stops: Random::of(seed, "orderly stops"),
            reloads: Random::of(seed, "changes of reloads"),
            full: Random::of(seed, "a full disk"),
            modes: Random::of(seed, "changes of modes"),
            modes_on: (false, false),
            sides: Random::of(seed, "sides of others"),
            links: BTreeMap::new(),
            stalls: [(0, 0); 3],
            crash_after: None,
            pause_at_order: false,
            wake_ns: i64::MAX,
            wakes: 0,
            user_events: 0,
            disk_sync_put: false,
            disk_hangs_until: 0,
            disk_fails_until: 0,
            disk_given: 0,
            disk_reported_late: false,
            intended: BTreeMap::new(),
            was_ready: false,
            faults_on: true,
            faults_ended_ns: i64::MAX,
            banned_until_ns: 0,
            flattened_ns: None,
            closing_since: None,
            blind_until_ns: 0,
            last_answers: BTreeMap::new(),
            done: false,
            fault_plan,
            ticks: Ticks::default(),
        };
        world.queue.put(BORN_NS + VENUE_TICK_NS, Event::Venue);
        world.queue.put(BORN_NS + 10 * MS, Event::Start);
        let sample_ns = world.fault_plan.terms.sample_ns();
        world.queue.put(BORN_NS + sample_ns, Event::Sample);
        world
            .queue
            .put(BORN_NS + options.faults_ms * MS, Event::FaultsEnd);
        world.record_choices();
        world.begin_hedge_mode();
        world.plan_incidents();
        world.plan_idle();
        world.count_missing_trades();
        world
    }

    /// Records the values of the open points that are not the default.
    fn record_choices(&mut self) {
        for (point, value) in self.fault_plan.choices.changed() {
            self.log.count_choice(point, value);
            self.see(WitnessEvent::Fault(format!(
                "open point: {point} = {value}"
            )));
        }
    }

    /// Runs the life to its end: at rest, or a broken rule.
    pub fn live(&mut self) {
        while !self.done && self.log.broken.is_none() {
            let Some((at_ns, event)) = self.queue.take() else {
                return;
            };
            self.now_ns = at_ns;
            self.happen(event);
        }
        if let Some(chain) = self.process.as_ref().and_then(Process::chain) {
            self.log.effect(&chain.hash);
        }
    }

    /// The age of the life in seconds.
    pub const fn age_s(&self) -> i64 {
        (self.now_ns - BORN_NS) / S
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Venue => {
                self.venue.advance(self.now_ns);
                self.carry_frames();
                self.queue.put(self.now_ns + VENUE_TICK_NS, Event::Venue);
            }
            Event::Arrive(flight) => self.arrive(*flight),
            Event::Handshake(name, target) => self.handshake(name, &target),
            Event::ClientText(name, text) => {
                self.venue.send_text(name, &text, self.now_ns);
                self.carry_frames();
            }
            Event::Deliver(life, happened) => self.deliver(life, happened),
            Event::Frame(name, event, text) => self.frame_comes(name, event, text),
            Event::Wake(nth) => {
                if nth == self.wakes {
                    self.wake_ns = i64::MAX;
                    self.deliver(self.life, In::Wake);
                }
            }
            Event::Sync(life) if life == self.life => self.sync(),
            Event::Sync(_) => {}
            Event::DiskLate(life, given) => self.disk_late(life, given),
            Event::Start => self.start(),
            Event::Resume(life) => self.resume(life),
            Event::Incident(incident) => self.incident(incident),
            Event::Sample => {
                self.sample();
                let sample_ns = self.fault_plan.terms.sample_ns();
                self.queue.put(self.now_ns + sample_ns, Event::Sample);
            }
            Event::Watchdog(watch) => self.watch(watch),
            Event::KillSwitchFile(life) => self.kill_switches_written(life),
            Event::LookForKillSwitches(life, given) => self.kill_switches_were_given(life, given),
            Event::FaultsEnd => self.end_faults(),
            Event::LookForRest => self.look_for_rest(),
            Event::LookForFlat => self.look_for_flat(),
            Event::LookAtCloses => self.look_at_closes(),
        }
    }

    fn count(&mut self, kind: Kind) {
        self.log.count(kind.name());
    }

    fn see(&mut self, seen: WitnessEvent) {
        self.ticks.learn(&seen);
        self.log.see(self.now_ns, seen);
    }

    fn wall_ns(&self) -> i64 {
        self.now_ns + self.wall_offset_ns
    }
}

/// The process.
impl World {
    fn start(&mut self) {
        if self.standing != Standing::Ended {
            return;
        }
        self.life += 1;
        self.standing = Standing::Running;
        self.wake_ns = i64::MAX;
        self.see(WitnessEvent::Process(ProcessEvent::Started {
            process: self.life,
        }));
        let unix_s = (self.wall_ns() / S).unsigned_abs();
        let given = Given {
            remembered: self.disk.recover(),
            verdict: self.disk.verdict(),
            epoch_before: self.disk.last_epoch(),
            epoch: self.disk.reserve_epoch(unix_s),
            kill_switches: self.disk.kill_switches.clone(),
            bans: self.bans_left(),
        };
        let setup = Arc::clone(&self.setup);
        let process = Process::start(setup, self.life, given, self.now_ns, self.wall_ns());
        self.process = Some(process);
        if self.disk.verdict() == ROLLED_BACK {
            // The journal is lost, so the operator must confirm the positions.
            let at_ns = self.now_ns + SETTLED_AFTER_NS;
            self.queue.put(at_ns, Event::Incident(Incident::GoOn(None)));
        }
        self.drain();
    }

    /// The bans in the file of bans. The witness is notified if one of them still holds.
    fn bans_left(&mut self) -> Vec<WrittenBan> {
        let wall_ms = self.wall_ns() / MS;
        let bans = self.disk.bans.iter();
        let left_ms = bans.map(|ban| ban.left_ms(wall_ms)).max().unwrap_or(0);
        let left_ms = i64::try_from(left_ms).unwrap_or(i64::MAX);
        if left_ms > 0 {
            self.log.count(tally::BAN_HEEDED);
            let until_ns = self.now_ns.saturating_add(left_ms.saturating_mul(MS));
            self.banned_until_ns = self.banned_until_ns.max(until_ns);
            if !self.faults_on {
                // A wall clock that was set back makes the process wait longer.
                self.faults_ended_ns = self.faults_ended_ns.max(until_ns);
            }
            self.see(WitnessEvent::BanRemembered { until_ns });
        }
        self.disk.bans.clone()
    }

    pub(in crate::world) fn deliver(&mut self, life: u32, happened: In) {
        if life != self.life {
            return;
        }
        match self.standing {
            Standing::Ended => {}
            Standing::Paused => self.backlog.push_back(happened),
            Standing::Running => {
                self.witness_delivery(&happened);
                if let Some(process) = &mut self.process {
                    process.handle(self.now_ns, happened);
                }
                self.drain();
            }
        }
    }

    fn witness_delivery(&mut self, happened: &In) {
        match happened {
            In::Answer(request, answer) => {
                let (request, answer) = (*request, answer.clone());
                if let Some(answer) = &answer {
                    self.heed_refusal(answer);
                }
                self.see(WitnessEvent::AnswerReceived { request, answer });
            }
            In::Opened(key, link) => self.see_stream(*key, *link, true),
            In::Closed(key, link) => self.see_stream(*key, *link, false),
            In::Stalled => self.see(WitnessEvent::Journal("stalled".to_owned())),
            In::Healthy => self.see(WitnessEvent::Journal("flows".to_owned())),
            In::Failed => self.see(WitnessEvent::Journal("failed".to_owned())),
            In::Rolled(_) => self.see(WitnessEvent::Journal("rolled".to_owned())),
            In::Pong(key, link) if key.user => {
                let stream = net::link_name(self.life, *key, *link);
                self.see(WitnessEvent::Pong { stream });
            }
            _ => {}
        }
    }

    /// A refusal because of a limit makes the process wait for the time that it names.
    fn heed_refusal(&mut self, answer: &Answer) {
        let named = answer.header("retry-after");
        let named = named.and_then(|text| text.parse::<i64>().ok());
        if let (418 | 429, Some(seconds)) = (answer.status, named) {
            let until_ns = self.now_ns.saturating_add(seconds.saturating_mul(S));
            self.banned_until_ns = self.banned_until_ns.max(until_ns);
            if !self.faults_on {
                self.faults_ended_ns = self.faults_ended_ns.max(until_ns);
                self.flattened_ns = self.flattened_ns.map(|since| since.max(until_ns));
            }
        }
    }

    fn see_stream(&mut self, key: StreamKey, link: u64, up: bool) {
        self.see(WitnessEvent::Stream {
            stream: net::link_name(self.life, key, link),
            surface: key.surface.to_string(),
            user: key.user,
            up,
        });
    }

    /// Executes the outputs of the process, and kills it in the middle if a kill is due.
    fn drain(&mut self) {
        while self.process.as_ref().is_some_and(Process::wants) {
            // The kill comes before the next output is taken, because a killed process shows
            // nothing more.
            if let Some(left) = &mut self.crash_after {
                if *left == 0 {
                    return self.crash();
                }
                *left -= 1;
            }
            let Some(out) = self.process.as_mut().and_then(Process::poll) else {
                continue;
            };
            let is_order =
                matches!(&out, Out::Send(wire) if wire.route.name == "futures.new_order");
            if is_order && std::mem::take(&mut self.pause_at_order) {
                if let Some(process) = &mut self.process {
                    process.put_back(out);
                }
                return self.pause();
            }
            self.carry_out(out);
        }
        let Some(process) = &mut self.process else {
            return;
        };
        if let Some(how) = process.broken.take() {
            self.log.fail(self.now_ns, STARTS, how);
            self.done = true;
            return;
        }
        let due_ns = process.wake_ns();
        if self.overdue.is_always(due_ns <= self.now_ns) {
            self.log.fail(
                self.now_ns,
                TIMERS,
                "a timer of the run is always due".to_owned(),
            );
        }
        // A timer that is always due must not stop the world, so it fires a little later.
        let wake_ns = due_ns.max(self.now_ns + MS / 10);
        if wake_ns < self.wake_ns {
            self.wake_ns = wake_ns;
            self.wakes += 1;
            self.queue.put(wake_ns, Event::Wake(self.wakes));
        }
    }

    fn carry_out(&mut self, out: Out) {
        match out {
            Out::Send(wire) => self.send(wire),
            Out::Open(key, link, target) => self.open(key, link, target),
            Out::SendText(key, link, text) => self.send_text(key, link, text),
            Out::Ping(key, link) => self.ping(key, link),
            Out::Close(key, link) => self.close(key, link),
            Out::Begin(checkpoint, base) => self.disk.begin(checkpoint, base),
            Out::Append(block) => self.append(block),
            Out::Roll(checkpoint, base) => {
                if self.disk_fails_until > self.now_ns {
                    self.queue
                        .put(self.now_ns + MS, Event::Deliver(self.life, In::Failed));
                } else {
                    if !self.disk.goes_on_at(base) {
                        let how = format!(
                            "the checkpoint of the next segment begins at block {}, which leaves a gap",
                            base.next_block
                        );
                        self.log.fail(self.now_ns, CHAIN, how);
                    }
                    self.disk.roll(checkpoint, base);
                    self.disk_is_given();
                }
            }
            Out::Bans => {
                let wall_ns = self.wall_ns();
                if let Some(process) = &self.process {
                    self.disk.bans = process.bans(wall_ns);
                }
            }
            Out::KillSwitches(kill_switches) => self.write_kill_switches(kill_switches),
            Out::WitnessEvent(WitnessEvent::LossHalt) => {
                self.see(WitnessEvent::LossHalt);
                self.sample();
            }
            // The loss of a process counts from the moment in which it first knows the account.
            Out::WitnessEvent(WitnessEvent::State {
                from,
                to,
                degraded_reasons,
            }) if matches!(to.as_str(), "ready" | "paused") && !self.was_ready => {
                self.was_ready = true;
                self.see(WitnessEvent::State {
                    from,
                    to,
                    degraded_reasons,
                });
                self.sample();
            }
            Out::Ended(why) => {
                self.see(WitnessEvent::Fault(why));
                self.kill(Damage::None);
            }
            Out::Stopped(how) => self.process_stopped(how),
            Out::Watchdog(output) => self.keep_watchdog(&output),
            Out::WitnessEvent(seen @ WitnessEvent::Process(ProcessEvent::Running { .. })) => {
                self.see(seen);
                self.command_again();
            }
            Out::WitnessEvent(seen) => self.see(seen),
        }
    }

    /// Kills the process: only the data on the disk is left.
    fn crash(&mut self) {
        self.count(Kind::Crash);
        let faults = &self.fault_plan.faults;
        let damage = if self.chance.chance(faults.rolled_back_ppm) {
            self.log.count(tally::ROLLED_BACK);
            Damage::RolledBack
        } else if self.chance.chance(faults.torn_ppm) {
            self.log.count(tally::TORN);
            Damage::Torn
        } else {
            Damage::None
        };
        self.kill(damage);
    }

    /// Ends the process; the next one starts after a while.
    fn kill(&mut self, damage: Damage) {
        self.end_process(Some(damage));
        let longest_ms = if self.chance.chance(200_000) {
            60_000
        } else {
            5_000
        };
        let away_ms = self.chance.between(50, longest_ms);
        self.queue.put(self.now_ns + away_ms * MS, Event::Start);
    }

    /// Ends the process. Only the data on the disk is left; after an orderly end that is
    /// everything.
    fn end_process(&mut self, damage: Option<Damage>) {
        (self.crash_after, self.pause_at_order) = (None, false);
        if let Some(chain) = self.process.as_ref().and_then(Process::chain) {
            self.log.effect(&chain.hash);
        }
        self.leave_watchdog();
        self.leave_kill_switches();
        let process = self.process.take();
        self.standing = Standing::Ended;
        // The journal of the next process reports a hanging disk again.
        (self.disk_sync_put, self.disk_reported_late) = (false, false);
        self.backlog.clear();
        self.see(WitnessEvent::Process(ProcessEvent::Crashed {
            process: self.life,
        }));
        match damage {
            Some(damage) => self.disk.crash(damage, &mut self.chance),
            None => self.disk.close(),
        }
        let kept = self.disk.last_record();
        for close in process.iter().flat_map(|old| old.closes_after(kept)) {
            self.see(close.clone().undone());
        }
        self.intended.clear();
        let names: Vec<_> = self.links.keys().copied().collect();
        for name in names {
            self.venue.hang_up(name);
        }
        self.links.clear();
    }

    fn resume(&mut self, life: u32) {
        if life != self.life || self.standing != Standing::Paused {
            return;
        }
        self.standing = Standing::Running;
        self.see(WitnessEvent::Process(ProcessEvent::Resumed {
            process: life,
        }));
        // The process continues in the middle of its outputs.
        self.drain();
        for happened in std::mem::take(&mut self.backlog) {
            self.deliver(life, happened);
        }
        self.deliver(life, In::Wake);
        self.resume_kill_switches();
    }
}

/// The disk.
impl World {
    fn append(&mut self, block: Block) {
        let ids = intents(&block, &self.setup.config.strategies, self.disk.epoch);
        if !ids.is_empty() {
            self.intended.insert(block.last_record, ids);
        }
        self.disk.append(block);
        if self.disk.waiting() > self.setup.disk_room {
            let how = format!(
                "{} blocks wait for the disk, more than it has room for",
                self.disk.waiting()
            );
            self.log.fail(self.now_ns, ROOM, how);
        }
        self.disk_is_given();
    }

    fn disk_is_given(&mut self) {
        self.disk_given += 1;
        if !self.disk_sync_put && self.disk.is_busy() {
            self.disk_sync_put = true;
            let slow_ms = if self.net.chance(2_000) { 40 } else { 1 };
            let took = self.net.between(MS / 20, slow_ms * MS);
            let at_ns = (self.now_ns + took).max(self.disk_hangs_until);
            self.queue.put(at_ns, Event::Sync(self.life));
            let late = Event::DiskLate(self.life, self.disk_given);
            if at_ns > self.now_ns + DISK_STALL_NS {
                self.queue.put(self.now_ns + DISK_STALL_NS, late);
            }
        }
    }

    /// Everything in flight becomes durable.
    fn sync(&mut self) {
        self.disk_sync_put = false;
        if self.disk_hangs_until > self.now_ns {
            return self.disk_is_given();
        }
        let mut last = None;
        while let Some(written) = self.disk.sync() {
            let (record, happened) = match written {
                Written::Block(block) => (block.last_record, In::Durable(block.last_record)),
                Written::Checkpoint(chain) => (chain.last_record, In::Rolled(chain.last_record)),
            };
            let later = self.intended.split_off(&(record + 1));
            let durable = std::mem::replace(&mut self.intended, later);
            for client_order_ids in durable.into_values() {
                self.see(WitnessEvent::Durable {
                    process: self.life,
                    client_order_ids,
                });
            }
            if matches!(happened, In::Rolled(_)) {
                self.deliver(self.life, happened);
            } else {
                last = Some(happened);
            }
            if self.process.is_none() {
                return;
            }
        }
        if let Some(happened) = last {
            self.deliver(self.life, happened);
        }
        if std::mem::take(&mut self.disk_reported_late) {
            self.deliver(self.life, In::Healthy);
        }
    }

    fn disk_late(&mut self, life: u32, _given: u64) {
        if life == self.life && self.disk_sync_put && !self.disk_reported_late {
            self.disk_reported_late = true;
            self.deliver(life, In::Stalled);
        }
    }
}

/// Client order ids of the orders that strategies intended in a block.
fn intents(block: &Block, strategies: &[windvane_config::Strategy], epoch: u64) -> Vec<String> {
    let mut ids = Vec::new();
    for record in block.records().filter_map(|(_, record)| record.ok()) {
        let RecordBody::Input(input) = &record.body else {
            continue;
        };
        let Input::Answer { strategy, intents } = input.as_input() else {
            continue;
        };
        let Some(strategy) = strategies.get(usize::from(strategy.0)) else {
            continue;
        };
        for intent in intents {
            if let Intent::Submit { order, .. } = intent {
                let id = ClientOrderId::own(&strategy.id, epoch, *order);
                ids.push(id.as_str().to_owned());
            }
        }
    }
    ids
}

/// Counts how often in a row a timer is due at once.
#[derive(Clone, Copy, Debug, Default)]
struct Busy(u32);

impl Busy {
    /// A higher count is not a coincidence.
    const MAX: u32 = 1_000;

    /// Counts one call; returns whether a timer is always due.
    const fn is_always(&mut self, is_due: bool) -> bool {
        self.0 = if is_due { self.0 + 1 } else { 0 };
        self.0 > Self::MAX
    }
}
