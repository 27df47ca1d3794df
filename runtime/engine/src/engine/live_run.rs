//! The state of a live run: its stage, its degraded reasons and its connections. From these and the
//! operator's kill switch it follows whether the run is booting, syncing, ready, degraded, paused
//! or halted.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_evidence::connection::Connection;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::ids::Time;
use windvane_model::live::LiveConfig;
use windvane_model::order::Surface;
use windvane_model::planted;
use windvane_model::run_state::{KillSwitch, RunState};
use windvane_supervision::countdown::Countdown;
use windvane_supervision::watchdog::Watchdog;

/// How often the age of all evidence is checked.
pub(super) const WATCH_MS: i64 = 1_000;

/// The startup stage of a live run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum StartupStage {
    Booting,
    Syncing,
    Running,
}

/// The state of a live run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LiveRun {
    pub(super) config: LiveConfig,
    stage: StartupStage,
    degraded_reasons: BTreeSet<DegradedReason>,
    pub(super) connections: BTreeMap<Surface, Connection>,
    /// One entry per instrument; those of spot instruments are unused.
    pub(super) countdowns: Vec<Countdown>,
    pub(super) watchdog: Watchdog,
    pub(super) stopping: bool,
    /// When this process began, if it does not know which orders an earlier process sent.
    began_without_journal: Option<Time>,
    /// The state of an earlier process is lost.
    lost: bool,
}

impl LiveRun {
    pub(super) fn new(config: LiveConfig, instruments: usize) -> Self {
        let connections = config
            .surfaces
            .iter()
            .map(|surface| (*surface, Connection::default()));
        Self {
            stage: StartupStage::Booting,
            degraded_reasons: BTreeSet::new(),
            connections: connections.collect(),
            countdowns: vec![Countdown::default(); instruments],
            watchdog: Watchdog::default(),
            stopping: false,
            began_without_journal: None,
            lost: false,
            config,
        }
    }

    /// Begins the startup. Returns whether it did: a run begins once.
    pub(super) fn begin(&mut self, now: Time) -> bool {
        if self.stage != StartupStage::Booting {
            return false;
        }
        self.stage = StartupStage::Syncing;
        self.began_without_journal = self.lost.then_some(now);
        let reasons = self.connections.keys().flat_map(|surface| {
            [
                DegradedReason::Stream(*surface),
                DegradedReason::Clock(*surface),
            ]
        });
        self.degraded_reasons.extend(reasons);
        true
    }

    /// Ends syncing.
    pub(super) const fn end_syncing(&mut self) {
        self.stage = StartupStage::Running;
    }

    /// The state of an earlier process is lost.
    pub(super) const fn note_lost_state(&mut self) {
        self.lost = true;
    }

    /// Sets or clears a degraded reason. Returns whether that changed anything.
    pub(super) fn set_degraded(&mut self, reason: DegradedReason, holds: bool) -> bool {
        if holds {
            self.degraded_reasons.insert(reason)
        } else {
            self.degraded_reasons.remove(&reason)
        }
    }

    /// Offset and error of a surface's clock, in nanoseconds; `None` before it was read.
    pub(super) fn clock_of(&self, surface: Surface) -> Option<(i64, i64)> {
        self.connections.get(&surface)?.clock()
    }

    /// Whether no order of an earlier process can rest unseen. Either its journal is there, or open
    /// orders were listed after the last moment at which one of its requests could arrive.
    pub(super) fn knows_predecessor_orders(&self, surface: Surface) -> bool {
        let listed = self
            .connections
            .get(&surface)
            .and_then(|connection| connection.last_clean_round);
        self.began_without_journal.is_none_or(|begun| {
            listed.is_some_and(|at| at >= begun.plus_ms(self.config.absence_ms))
        })
    }

    pub(super) fn is_running(&self) -> bool {
        self.stage == StartupStage::Running
    }

    /// Whether the initial state of an account is still unknown after a process whose journal is
    /// lost. Fills that the lost process made a moment ago may be in account snapshots before the
    /// list of trades has them.
    pub(super) fn is_recovering_lost_account(&self, surface: Surface) -> bool {
        let connection = self.connections.get(&surface);
        self.lost
            && !self.is_running()
            && connection.is_some_and(|connection| connection.last_clean_round.is_none())
    }

    pub(super) fn degraded_reasons(&self) -> impl Iterator<Item = DegradedReason> {
        self.degraded_reasons.iter().copied()
    }

    pub(super) const fn degraded_reason_set(&self) -> &BTreeSet<DegradedReason> {
        &self.degraded_reasons
    }

    /// Whether the run is degraded, and `kind` is true for every degraded reason.
    pub(super) fn is_degraded_only_for(&self, kind: impl Fn(&DegradedReason) -> bool) -> bool {
        !self.degraded_reasons.is_empty() && self.degraded_reasons.iter().all(kind)
    }

    /// Whether one of these degraded reasons holds.
    pub(super) fn is_degraded_for(&self, reasons: &[DegradedReason]) -> bool {
        reasons
            .iter()
            .any(|reason| self.degraded_reasons.contains(reason))
    }

    pub(super) fn is_syncing(&self) -> bool {
        self.stage == StartupStage::Syncing
    }

    pub(super) fn state(&self, kill_switch: KillSwitch) -> RunState {
        match (kill_switch, self.stage) {
            _ if self.stopping => RunState::Halted,
            (KillSwitch::Halted, _) => RunState::Halted,
            (_, StartupStage::Booting) => RunState::Booting,
            (_, StartupStage::Syncing) => RunState::Syncing,
            _ if !self.degraded_reasons.is_empty() => RunState::Degraded,
            (KillSwitch::Paused, _) => RunState::Paused,
            (KillSwitch::Clear, _) => RunState::Ready,
        }
    }

    /// Whether the state of a surface can be acted on (`docs/promises.md#5-blind-means-careful`).
    pub(super) fn is_actionable(&self, surface: Surface) -> bool {
        self.stage == StartupStage::Running
            && !self
                .degraded_reasons
                .contains(&DegradedReason::Stream(surface))
            && !self
                .degraded_reasons
                .contains(&DegradedReason::Reconciliation(surface))
    }

    /// Whether a surface's account is not reconciled.
    pub(super) fn is_unexplained(&self, surface: Surface) -> bool {
        self.degraded_reasons
            .contains(&DegradedReason::Reconciliation(surface))
    }

    /// Whether the last reconciliation of a surface is too old to be trusted
    /// (`docs/promises.md#4-dead-mans-switch`).
    pub(super) fn is_old(&self, surface: Surface, now: Time) -> bool {
        let connection = self.connections.get(&surface);
        let read = connection.and_then(|connection| connection.last_clean_round);
        read.is_some_and(|asked| now > asked.plus_ms(3 * self.config.reconcile_ms))
    }

    /// Whether the user stream of a surface delivered nothing for too long.
    pub(super) fn is_silent(&self, surface: Surface, now: Time) -> bool {
        let connection = self.connections.get(&surface);
        let silent = connection.is_some_and(|connection| connection.is_silent(now));
        silent && !planted!(SilenceIgnored)
    }

    /// The evidence that is required to renew heartbeats (`docs/promises.md#4-dead-mans-switch`).
    /// Its age is checked here too: after the process was suspended, the watch has not yet run.
    pub(super) fn is_healthy(&self, surface: Surface, now: Time) -> bool {
        let reasons = [
            DegradedReason::Journal,
            DegradedReason::Clock(surface),
            DegradedReason::Stream(surface),
            DegradedReason::Reconciliation(surface),
        ];
        let aged = self.is_old(surface, now) || self.is_silent(surface, now);
        let is_degraded = reasons
            .iter()
            .any(|reason| self.degraded_reasons.contains(reason));
        self.stage == StartupStage::Running && !is_degraded && !aged
    }
}
