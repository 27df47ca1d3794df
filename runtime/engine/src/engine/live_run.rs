//! The life of a live run: booting, syncing, ready, degraded, halted. One function decides the
//! state from the stage, the degraded reasons and the operator's latch. It reports each change with
//! its reasons.
//!
//! Only evidence sets and clears degraded reasons: a silent stream, a clock that was not read, a
//! journal that stalls, a reconciliation that left a difference unexplained.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_evidence::account_history::NewestEvents;
use windvane_evidence::connection::Connection;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::Notice;
use windvane_model::ids::{InstrumentId, StrategyId, Time};
use windvane_model::live::{LiveConfig, LiveInput, OnStop};
use windvane_model::order::Surface;
use windvane_model::order_state::OrderState;
use windvane_model::orders::Order;
use windvane_model::run_state::{KillSwitch, RunState};
use windvane_model::timer::Timer;
use windvane_model::{codec, planted};
use windvane_supervision::countdown::Countdown;
use windvane_supervision::watchdog::Watchdog;

use super::Engine;

/// How often the age of all evidence is checked.
const WATCH_MS: i64 = 1_000;

/// Delay from the loss of a user stream to a reconciliation round without one.
const DOWN_MS: i64 = 1_000;

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

    /// Whether there are degraded reasons, and all of them are of this kind.
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
    fn is_old(&self, surface: Surface, now: Time) -> bool {
        let connection = self.connections.get(&surface);
        let read = connection.and_then(|connection| connection.last_clean_round);
        read.is_some_and(|asked| now > asked.plus_ms(3 * self.config.reconcile_ms))
    }

    fn is_silent(&self, surface: Surface, now: Time) -> bool {
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

impl Engine {
    /// Whether everything that `on_stop` requires is done.
    pub fn has_stopped(&self) -> bool {
        let Some(live) = &self.live else { return true };
        let flattening = self
            .strategies
            .iter()
            .any(|state| state.flattening.is_some());
        let left = match live.config.on_stop {
            OnStop::Keep => !live.countdowns.iter().all(|it| it.is_off(self.now)),
            OnStop::Cancel | OnStop::Flatten => !self.orders.is_empty() || flattening,
        };
        live.stopping && !left
    }

    /// The venue's clock minus ours on a surface, in nanoseconds; `None` before it was read.
    pub fn clock_offset_ns(&self, surface: Surface) -> Option<i64> {
        let (offset_ns, _) = self.live.as_ref()?.connections.get(&surface)?.clock()?;
        Some(offset_ns)
    }

    pub(super) fn handle_live(&mut self, input: &LiveInput) {
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        match *input {
            LiveInput::Begin if live.stage == StartupStage::Booting => {
                live.stage = StartupStage::Syncing;
                self.began = Some(now);
                live.began_without_journal = live.lost.then_some(now);
                let reasons = live.connections.keys().flat_map(|surface| {
                    [
                        DegradedReason::Stream(*surface),
                        DegradedReason::Clock(*surface),
                    ]
                });
                live.degraded_reasons.extend(reasons);
                self.timers.set(now.plus_ms(WATCH_MS), Timer::Watch);
                self.begin_account_modes();
                self.begin_watchdog();
                self.begin_trading_status();
                self.schedule_rules_refresh();
                for strategy in (0..self.strategies.len()).map(|index| StrategyId(index as u16)) {
                    self.deliver_state(strategy);
                    self.deliver_positions(strategy);
                    self.report_unsaved_order_ends(strategy);
                }
            }
            LiveInput::Begin => {}
            LiveInput::StreamUp { .. } if planted!(OneStreamServesBoth) => {
                self.stream_up(Surface::Spot);
                self.stream_up(Surface::Futures);
            }
            LiveInput::StreamUp { surface } => self.stream_up(surface),
            LiveInput::StreamDown { .. } if planted!(StreamDownIgnored) => {}
            LiveInput::StreamDown { surface } => self.stream_down(surface),
            LiveInput::StreamAlive { surface } => {
                if let Some(connection) = live.connections.get_mut(&surface) {
                    connection.note_alive(now);
                }
            }
            LiveInput::Clock {
                surface,
                offset_ns,
                error_ns,
            } => {
                if let Some(connection) = live.connections.get_mut(&surface) {
                    connection.read_clock(offset_ns, error_ns, now);
                    self.set_degraded(DegradedReason::Clock(surface), false);
                }
                self.shift_predecessor_deadlines(surface, offset_ns);
            }
            LiveInput::Journal { healthy } => self.set_degraded(DegradedReason::Journal, !healthy),
            LiveInput::Stop => self.stop(),
            LiveInput::Watchdog { armed } => self.handle_watchdog(armed),
            LiveInput::HeartbeatAcknowledged { number } => self.handle_heartbeat_ack(number),
            LiveInput::Stopped {
                surface,
                why,
                for_ms,
            } => self.note_stop(surface, why, for_ms),
            LiveInput::VenueWait {
                surface,
                kind,
                wait_ms,
            } => self.handle_venue_wait(surface, kind, wait_ms),
            LiveInput::ModesPending => self.note_pending_modes(),
        }
        self.update_state();
    }

    /// Corrects deadlines of requests that an earlier process sent and that may still arrive. They
    /// were computed by that process's clock. If the clock was set forward since, as the first
    /// reading of the venue's clock shows, the deadlines are later by this clock.
    fn shift_predecessor_deadlines(&mut self, surface: Surface, offset_ns: i64) {
        let Some(before_ns) = self.offsets_before.remove(&surface) else {
            return;
        };
        let by_ms = before_ns.saturating_sub(offset_ns) / 1_000_000;
        if by_ms <= 0 {
            return;
        }
        let instruments = &self.instruments;
        let of_surface = |order: &&mut Order| {
            let id = usize::from(order.instrument().0);
            instruments[id].surface == surface
        };
        for order in self.orders.iter_mut().filter(of_surface) {
            order.lost = order.lost.map(|at| at.plus_ms(by_ms));
        }
        if let Some(live) = self.live.as_mut().filter(|_| surface == Surface::Futures) {
            let countdowns = live.countdowns.iter_mut();
            countdowns.for_each(|countdown| countdown.extend_deadlines(by_ms));
        }
    }

    fn stream_up(&mut self, surface: Surface) {
        let now = self.now;
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        connection.stream_up = true;
        connection.note_alive(now);
        connection.last_clean_round = None;
        // The venue may have refused only at that moment.
        connection.no_trades = false;
        connection.newest_events = NewestEvents::default();
        let is_first = self.stream_up.insert(surface, now).is_none();
        // The new connection delivers new events. It cannot show what was sent before it.
        let instruments = &self.instruments;
        let of_surface =
            |order: &&mut Order| instruments[usize::from(order.instrument().0)].surface == surface;
        self.orders
            .all_mut()
            .filter(of_surface)
            .for_each(|order| order.on_stream = true);
        self.incomes.stream_up();
        self.newest_orders.allow(surface);
        if is_first {
            // A startup also looks for another instance in the newest orders, because the list of
            // the account's trades may be behind.
            self.list_orders_for_trades(surface);
        }
        self.degrade_for_lost_events(surface);
        self.begin_round(surface);
    }

    pub(super) fn stream_down(&mut self, surface: Surface) {
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        let was_up = std::mem::replace(&mut connection.stream_up, false);
        connection.last_clean_round = None;
        if was_up {
            connection.give_up_round();
            // Usually the stream returns at once. While it does not, only reconciliation rounds
            // show what happens.
            self.reconcile_later(surface, DOWN_MS);
        }
        if surface == Surface::Futures {
            // Order events may have been lost with the stream.
            self.stated_closes.clear();
            self.forget_stated_positions();
        }
        self.forget_stated_balances(surface);
        self.set_degraded(DegradedReason::Stream(surface), true);
    }

    pub(super) fn connection_mut(&mut self, surface: Surface) -> Option<&mut Connection> {
        self.live.as_mut()?.connections.get_mut(&surface)
    }

    /// Counts an event of a user stream: it shows that the stream is alive and that the account
    /// changed.
    pub(super) fn note_user_event(&mut self, surface: Surface) {
        let now = self.now;
        if let Some(connection) = self.connection_mut(surface) {
            connection.note_alive(now);
            connection.events += 1;
        }
    }

    /// Handles a refusal because of the request's time: no other request will pass before the
    /// venue's clock is read.
    pub(super) fn degrade_for_clock(&mut self, surface: Surface) {
        if let Some(connection) = self.connection_mut(surface) {
            connection.forget_clock();
            self.set_degraded(DegradedReason::Clock(surface), true);
            self.update_state();
        }
    }

    /// Handles the end of a reconciliation round that left nothing unexplained.
    pub(super) fn handle_clean_round(&mut self, surface: Surface) {
        let Some(live) = &self.live else { return };
        let old = live.is_old(surface, self.now);
        let stream_up = live
            .connections
            .get(&surface)
            .is_some_and(|connection| connection.stream_up);
        let denied = self.has_denied_order(surface);
        let missing = self.is_fill_overdue(surface);
        self.set_degraded(
            DegradedReason::Reconciliation(surface),
            old || denied || missing,
        );
        if stream_up {
            self.set_degraded(DegradedReason::Stream(surface), false);
        }
        self.update_state();
        // While the run is halted, the state does not change, but a close may have waited for this.
        self.continue_all_flattening();
    }

    pub(super) fn set_degraded(&mut self, reason: DegradedReason, holds: bool) {
        let was_on_trial = self.is_on_trial();
        let Some(live) = &mut self.live else { return };
        let changed = if holds {
            live.degraded_reasons.insert(reason)
        } else {
            live.degraded_reasons.remove(&reason)
        };
        // Strategies may try an order only while there is no other degraded reason. The state
        // itself does not change then.
        let is_degraded = self.state == RunState::Degraded;
        if changed && is_degraded && self.is_on_trial() != was_on_trial {
            self.deliver_trial();
        }
    }

    /// Records that the state of an earlier process is lost. Unless the account turns out to be
    /// flat, an operator must confirm that strategies may start from zero. Called before any input.
    pub fn degrade_for_lost_state(&mut self) {
        self.set_degraded(DegradedReason::Ownership, true);
        if let Some(live) = &mut self.live {
            live.lost = true;
        }
    }

    fn is_flat(&self) -> bool {
        let instruments = (0..self.instruments.len()).map(|index| InstrumentId(index as u16));
        instruments
            .into_iter()
            .all(|id| !self.ledgers.account.holds(id))
    }

    /// Checks the age of all evidence.
    pub(super) fn watch(&mut self) {
        let now = self.now;
        let Some(live) = &self.live else { return };
        let surfaces = live.config.surfaces.clone();
        let running = live.stage == StartupStage::Running;
        for surface in surfaces {
            let unseen = self.evidence().has_change_missing_on_stream(surface);
            let live = self.live.as_ref();
            let old = live.is_some_and(|live| live.is_old(surface, now));
            let silent = live.is_some_and(|live| live.is_silent(surface, now));
            let Some(connection) = self.connection_mut(surface) else {
                continue;
            };
            let stale = connection.is_clock_old(now);
            self.set_degraded(DegradedReason::Clock(surface), stale);
            if running && old {
                self.set_degraded(DegradedReason::Reconciliation(surface), true);
            }
            if silent || unseen {
                self.reconnect_late_stream(surface);
            }
            self.retry_round(surface);
            self.investigate_account_event(surface);
            self.review_stated_balances(surface);
        }
        self.review_stated_positions();
        self.end_instance_watch();
        self.ask_again_for_forced_orders();
        self.ask_again_for_outside_orders();
        self.ask_again_for_recent_orders();
        self.watch_countdowns();
        self.watch_heartbeats();
        self.watch_trading_status();
        self.ask_for_closes();
        self.check_mark_price_age();
        self.check_stale_markets();
        self.ask_for_asset_prices();
        self.continue_all_flattening();
        self.timers.set(now.plus_ms(WATCH_MS), Timer::Watch);
        self.check_books();
        self.update_state();
        self.watch_all_losses();
    }

    pub(super) fn surface_of(&self, instrument: InstrumentId) -> Surface {
        self.instruments[usize::from(instrument.0)].surface
    }

    /// Whether balances and positions are the account's. Before that, equity means nothing.
    pub(super) fn knows_account(&self) -> bool {
        let live = self.live.as_ref();
        live.is_none_or(|live| live.stage == StartupStage::Running)
    }

    /// Whether the run is ending and leaves its orders open.
    pub(super) fn keeps_orders(&self) -> bool {
        let live = self.live.as_ref();
        live.is_some_and(|live| live.stopping && live.config.on_stop == OnStop::Keep)
    }

    /// Applies `on_stop`.
    fn stop(&mut self) {
        let Some(live) = &mut self.live else { return };
        live.stopping = true;
        let on_stop = live.config.on_stop;
        match on_stop {
            OnStop::Keep => self.disarm_all(),
            OnStop::Cancel => {
                for index in 0..self.strategies.len() {
                    self.cancel_own(StrategyId(index as u16));
                }
            }
            OnStop::Flatten => self.flatten_all(),
        }
    }

    /// Decides the state again and reports a change.
    pub(super) fn update_state(&mut self) {
        let synced = self.leave_syncing();
        self.move_state();
        if synced {
            self.deliver_withheld_markets();
            self.watch_all_losses();
        }
    }

    fn move_state(&mut self) {
        let state = match &self.live {
            Some(live) => live.state(self.kill_switch),
            None => self.kill_switch.alone(),
        };
        if state == self.state {
            return;
        }
        let from = self.state;
        self.enter(state);
        if self.live.is_some() {
            let reasons = self.degraded_reasons();
            codec::record_state(&mut self.recorder, self.now, from, state, &reasons);
            self.notices.push_back(Notice::State {
                time: self.now,
                from,
                to: state,
                reasons,
            });
        }
        if state == RunState::Ready || state == RunState::Halted {
            self.continue_all_flattening();
        }
    }

    /// Ends syncing once every surface is reconciled and no own order has an unknown outcome.
    /// Returns whether it ended now.
    fn leave_syncing(&mut self) -> bool {
        let Some(live) = &self.live else { return false };
        let synced = live.stage == StartupStage::Syncing
            && !self.is_watching_instances()
            && !self.awaits_recent_orders()
            && live
                .connections
                .values()
                .all(|connection| connection.last_clean_round.is_some())
            && !live
                .degraded_reasons
                .iter()
                .any(|reason| matches!(reason, DegradedReason::Clock(_)))
            && !self
                .orders
                .iter()
                .any(|order| order.state == OrderState::Unknown);
        if !synced {
            return false;
        }
        if let Some(live) = &mut self.live {
            live.stage = StartupStage::Running;
        }
        if self.is_flat() {
            self.set_degraded(DegradedReason::Ownership, false);
        }
        if self.start_equity.is_none() {
            // A fill may arrive before the next price: its cost counts as a loss.
            self.fix_known_equity();
        }
        self.arm_resting_orders();
        true
    }
}
