//! The kill switch file in flight to the disk, and what the operator knows of it. A command is
//! answered once its kill switch is durable. If a kill comes before that, the operator repeats the
//! command.

use std::collections::VecDeque;

use windvane_model::StrategyId;
use windvane_model::input::Command;
use windvane_model::kill_switch::{StoredKillSwitch, StoredKillSwitches};
use windvane_session::SaveState;

use super::incidents::Incident;
use super::{Event, MS, S, Standing, World};
use crate::process::{In, Process};
use crate::random::Random;
use crate::witness::WitnessEvent;

/// The rule that the session writes the file again.
pub const AGAIN: &str = "a kill switch that the disk refused is written again";
/// The session must write the file again within this time after the disk accepts data.
const WITHIN_NS: i64 = 3 * S;
/// On this share of full disks, in a million, the operator pauses the run, and resumes it after
/// `GO_ON_NS`.
const COMMANDS_PPM: u32 = 400_000;
const GO_ON_NS: i64 = 30 * S;
/// Share of full disks, in a million, on which the small file still finds room.
const ROOM_PPM: u32 = 500_000;
/// Time from the start of the next process until the operator repeats a command.
const AGAIN_NS: i64 = S;

/// The kill switch file, and the commands that wait for it.
#[derive(Debug)]
pub struct KillSwitchFile {
    chance: Random,
    /// Files that were given to the disk and are not durable yet, in their order.
    pending: VecDeque<StoredKillSwitches>,
    /// The file finds room on a disk that accepts no blocks now.
    has_room: bool,
    /// How often the file was given to the disk or became durable.
    given: u32,
    /// When the process last continued after a stop.
    resumed_ns: i64,
    /// Commands without an answer yet.
    unanswered: Vec<(Command, Option<StrategyId>)>,
}

impl KillSwitchFile {
    /// A world in which no kill switch file is in flight.
    pub fn new(seed: u64) -> Self {
        Self {
            chance: Random::of(seed, "latch file"),
            pending: VecDeque::new(),
            has_room: false,
            given: 0,
            resumed_ns: i64::MIN / 2,
            unanswered: Vec::new(),
        }
    }
}

/// The disk.
impl World {
    /// The disk begins to refuse blocks. If it is full, chance decides whether it has room for the
    /// file.
    pub(super) fn trouble_kill_switches(&mut self, is_full: bool) {
        self.kill_switch_file.has_room = is_full && self.kill_switch_file.chance.chance(ROOM_PPM);
    }

    /// The process writes the file.
    pub(super) fn write_kill_switches(&mut self, kill_switches: StoredKillSwitches) {
        self.kill_switch_file.pending.push_back(kill_switches);
        self.kill_switch_file.given += 1;
        let took_ns = self.kill_switch_file.chance.between(MS / 20, MS);
        let at_ns = self.now_ns + took_ns;
        self.queue.put(at_ns, Event::KillSwitchFile(self.life));
    }

    const fn kill_switches_hang(&self) -> bool {
        self.disk_hangs_until > self.now_ns && !self.kill_switch_file.has_room
    }

    /// The disk has stored the file, or refuses it.
    pub(super) fn kill_switches_written(&mut self, life: u32) {
        if life != self.life || self.process.is_none() {
            return;
        }
        if self.kill_switches_hang() {
            let at_ns = self.disk_hangs_until;
            return self.queue.put(at_ns, Event::KillSwitchFile(life));
        }
        let is_full = self.disk_fails_until > self.now_ns && !self.kill_switch_file.has_room;
        let Some(kill_switches) = self.kill_switch_file.pending.pop_front() else {
            return;
        };
        if is_full {
            self.look_for_kill_switches(life, self.disk_fails_until);
            let refused = Err("the disk is full".to_owned());
            return self.deliver(life, In::KillSwitches(refused));
        }
        self.keep_kill_switches(kill_switches);
        self.deliver(life, In::KillSwitches(Ok(())));
        self.look_for_answers();
    }

    /// Plans a check some time after `since_ns` that the file was given to the disk again.
    fn look_for_kill_switches(&mut self, life: u32, since_ns: i64) {
        let given = self.kill_switch_file.given;
        let look = Event::LookForKillSwitches(life, given);
        self.queue.put(since_ns + WITHIN_NS, look);
    }

    /// Checks that a refused file was given to the disk again while the process runs.
    pub(super) fn kill_switches_were_given(&mut self, life: u32, given: u32) {
        if life != self.life || given != self.kill_switch_file.given {
            return;
        }
        match self.standing {
            // The process was notified of the refusal when it continued.
            Standing::Running if self.now_ns < self.kill_switch_file.resumed_ns + WITHIN_NS => {
                self.look_for_kill_switches(life, self.kill_switch_file.resumed_ns);
            }
            Standing::Running => {
                let how = "the kill switch file was not given to the disk again".to_owned();
                self.log.fail(self.now_ns, AGAIN, how);
            }
            Standing::Paused => self.look_for_kill_switches(life, self.now_ns),
            Standing::Ended => {}
        }
    }

    fn keep_kill_switches(&mut self, kill_switches: StoredKillSwitches) {
        self.see(kill_switch_seen(&kill_switches));
        self.disk.kill_switches = kill_switches;
        self.kill_switch_file.given += 1;
    }

    /// The disk works again: the waiting files are written.
    pub(super) fn kill_switches_go_on(&mut self) {
        for _ in 0..self.kill_switch_file.pending.len() {
            self.queue
                .put(self.now_ns, Event::KillSwitchFile(self.life));
        }
    }

    /// A stopped process continues.
    pub(super) fn resume_kill_switches(&mut self) {
        self.kill_switch_file.resumed_ns = self.now_ns;
        self.look_for_answers();
    }

    /// The operator gives a command while a full disk may refuse the file.
    pub(super) fn command_on_full_disk(&mut self) {
        if self.fault_plan.faults.operator_s > 0
            && self.kill_switch_file.chance.chance(COMMANDS_PPM)
        {
            let after_ns = self.kill_switch_file.chance.between(MS, S);
            let pause = Incident::Command(Command::Pause, None);
            self.queue
                .put(self.now_ns + after_ns, Event::Incident(pause));
            let go_on = Event::Incident(Incident::GoOn(None));
            self.queue.put(self.now_ns + GO_ON_NS, go_on);
        }
    }

    /// The process has ended. The file that was being written may have been stored: the process
    /// died before it was notified.
    pub(super) fn leave_kill_switches(&mut self) {
        let first = std::mem::take(&mut self.kill_switch_file.pending).pop_front();
        let is_full = self.disk_fails_until > self.now_ns && !self.kill_switch_file.has_room;
        let is_lost = self.kill_switches_hang() || is_full;
        let is_kept = self.kill_switch_file.chance.chance(500_000) && !is_lost;
        if let Some(kill_switches) = first.filter(|_| is_kept) {
            self.keep_kill_switches(kill_switches);
        }
    }
}

/// The operator.
impl World {
    /// The operator gives a command.
    pub(super) fn command(&mut self, command: Command, whom: Option<StrategyId>) {
        let runs = self.process.as_ref().and_then(Process::kill_switches_kept);
        if runs.is_some() {
            self.kill_switch_file.unanswered.push((command, whom));
        }
        self.deliver(self.life, In::Command(command, whom));
        self.look_for_answers();
    }

    /// Marks commands as answered once the process reports that their kill switches are durable.
    pub(super) fn look_for_answers(&mut self) {
        let kept = self.process.as_ref().and_then(Process::kill_switches_kept);
        let is_answered = self.standing == Standing::Running && kept == Some(SaveState::Durable);
        if is_answered && !std::mem::take(&mut self.kill_switch_file.unanswered).is_empty() {
            self.see(WitnessEvent::CommandsKept);
        }
    }

    /// Called when a new process runs: the simulated operator gives the commands again that the
    /// previous process did not answer.
    pub(super) fn command_again(&mut self) {
        for (command, whom) in std::mem::take(&mut self.kill_switch_file.unanswered) {
            let again = Event::Incident(Incident::Command(command, whom));
            self.queue.put(self.now_ns + AGAIN_NS, again);
        }
    }
}

/// The content of the kill switch file, for the witness.
pub(super) fn kill_switch_seen(kill_switches: &StoredKillSwitches) -> WitnessEvent {
    let word = |kill_switch: &StoredKillSwitch| {
        kill_switch
            .words()
            .map_or("none", |(word, _)| word)
            .to_owned()
    };
    let strategies = kill_switches.strategies.iter();
    WitnessEvent::KillSwitchesStored {
        account: word(&kill_switches.account),
        strategies: strategies
            .map(|(id, own)| (id.clone(), word(&own.switch)))
            .collect(),
    }
}
