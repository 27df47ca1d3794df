//! The file of the latches on its way to the disk, and what the operator knows of it: a command is
//! answered once its latch is durable. After a kill that came before, the operator commands again.

use windvane_engine::StrategyId;
use windvane_engine::input::Command;
use windvane_engine::latches::Latches;
use windvane_session::Kept;

use super::incidents::Incident;
use super::{Event, MS, S, Standing, World, latched};
use crate::process::{In, Process};
use crate::random::Random;

/// A small file may still find room on a full disk: it is refused one time in two.
const REFUSED_PPM: u32 = 500_000;
/// The operator commands again so long after the next process runs.
const AGAIN_NS: i64 = S;

/// The file of the latches, and the commands that wait for it.
#[derive(Debug)]
pub struct LatchFile {
    chance: Random,
    /// When the last one that was given is written.
    last_ns: i64,
    /// Commands that are not answered yet.
    unanswered: Vec<(Command, Option<StrategyId>)>,
}

impl LatchFile {
    /// Nothing is on its way.
    pub fn new(seed: u64) -> Self {
        Self {
            chance: Random::of(seed, "latch file"),
            last_ns: 0,
            unanswered: Vec::new(),
        }
    }
}

impl World {
    /// The process has the file written.
    pub(super) fn write_latches(&mut self, latches: Latches) {
        let took_ns = self.latch_file.chance.between(MS / 20, MS);
        let at_ns = (self.now_ns + took_ns).max(self.disk_hangs_until);
        let at_ns = at_ns.max(self.latch_file.last_ns);
        self.latch_file.last_ns = at_ns;
        self.put_latches(at_ns, Box::new(latches));
    }

    fn put_latches(&mut self, at_ns: i64, latches: Box<Latches>) {
        let written = Event::LatchFile(self.life, latches);
        self.queue.put(at_ns, written);
    }

    /// The disk has the file, or refuses it.
    pub(super) fn latches_written(&mut self, life: u32, latches: Box<Latches>) {
        if life != self.life || self.process.is_none() {
            return;
        }
        if self.disk_hangs_until > self.now_ns {
            self.latch_file.last_ns = self.disk_hangs_until;
            return self.put_latches(self.disk_hangs_until, latches);
        }
        let is_full = self.disk_fails_until > self.now_ns;
        if is_full && self.latch_file.chance.chance(REFUSED_PPM) {
            let refused = Err("the disk is full".to_owned());
            return self.deliver(life, In::Latches(refused));
        }
        self.see(latched(&latches));
        self.disk.latches = *latches;
        self.deliver(life, In::Latches(Ok(())));
        self.look_for_answers();
    }

    /// The operator commands.
    pub(super) fn command(&mut self, command: Command, whom: Option<StrategyId>) {
        let runs = self.process.as_ref().and_then(Process::latches_kept);
        if runs.is_some() && self.standing == Standing::Running {
            self.latch_file.unanswered.push((command, whom));
        }
        self.deliver(self.life, In::Command(command, whom));
        self.look_for_answers();
    }

    fn look_for_answers(&mut self) {
        let process = self.process.as_ref();
        if process.and_then(Process::latches_kept) == Some(Kept::Durable) {
            self.latch_file.unanswered.clear();
        }
    }

    /// A process runs: commands that the one before did not answer are given again.
    pub(super) fn command_again(&mut self) {
        for (command, whom) in std::mem::take(&mut self.latch_file.unanswered) {
            let again = Event::Incident(Incident::Command(command, whom));
            self.queue.put(self.now_ns + AGAIN_NS, again);
        }
    }
}
