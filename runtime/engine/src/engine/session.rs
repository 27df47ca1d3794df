//! The life of a live run: booting, syncing, ready, degraded, halted. One place decides the state,
//! from the stage, the doubts and the operator's latch, and tells of each move with its reason.
//!
//! Doubts are raised and settled by evidence, never by hope: a stream that is silent, a clock that
//! was not read, a journal that stalls, a reconciliation that left something unexplained.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::codec;
use crate::decimal::Amount;
use crate::effect::Notice;
use crate::ids::{InstrumentId, StrategyId, Time};
use crate::live::{LiveConfig, LiveInput, OnStop};
use crate::order::Surface;
use crate::order_state::OrderState;
use crate::orders::Order;
use crate::planted;
use crate::timer::Timer;
use crate::truth::{AccountTruth, Subject};

use super::deadman::Countdown;
use super::doubt::Doubt;
use super::lag::{Newest, Past};
use super::reconcile::Round;
use super::watchdog::Watchdog;
use super::{Engine, Latch, RunState};

/// How often the age of all evidence is looked at.
const WATCH_MS: i64 = 1_000;
/// A user stream that answered no PING and brought no event for so long is in doubt (promise 4:
/// a PING every five seconds, an answer within ten).
const SILENCE_MS: i64 = 15_000;
/// A clock that was read so long ago may have drifted.
const CLOCK_MS: i64 = 600_000;
/// From the end of a user stream to a round without one.
const DOWN_MS: i64 = 1_000;

/// How far a live run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Stage {
    Booting,
    Syncing,
    Running,
}

/// A live run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) config: LiveConfig,
    stage: Stage,
    doubts: BTreeSet<Doubt>,
    pub(super) lines: BTreeMap<Surface, Line>,
    /// One for each instrument; spot ones stay unused.
    pub(super) countdowns: Vec<Countdown>,
    pub(super) watchdog: Watchdog,
    pub(super) stopping: bool,
    /// When this process began, where it does not know what an earlier one sent.
    begun_blind: Option<Time>,
    /// What an earlier process knew is lost.
    lost: bool,
}

/// What is known of one surface's connection.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) stream_up: bool,
    /// The last evidence that the stream lives.
    alive: Time,
    clock: Option<ClockReading>,
    /// User events so far.
    pub(super) events: u64,
    pub(super) round: Round,
    /// Questions of rounds that were given up, which may still be answered, and when they left.
    pub(super) given_up: Vec<(Subject, Time)>,
    /// When the last round that left nothing unexplained asked for open orders, since the stream
    /// came up.
    pub(super) clean: Option<Time>,
    /// The venue refused to tell account trades since the stream came up.
    pub(super) no_trades: bool,
    /// What an account event after a fill told that our fills do not explain yet, since when.
    pub(super) told: Option<(AccountTruth, Time)>,
    /// `E` of the newest account event of each balance and position.
    pub(super) newest: Newest,
    /// What the last fill was worth: the venue rounds at most a small part of it.
    pub(super) fill_value: Amount,
    /// What a source that is behind may still say.
    pub(super) past: Past,
    /// The venue's time up to which the reading that was taken last contains every fill.
    pub(super) taken: Option<Time>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ClockReading {
    offset_ns: i64,
    error_ns: i64,
    read: Time,
}

impl Session {
    pub(super) fn new(config: LiveConfig, instruments: usize) -> Self {
        let lines = config
            .surfaces
            .iter()
            .map(|surface| (*surface, Line::default()));
        Self {
            stage: Stage::Booting,
            doubts: BTreeSet::new(),
            lines: lines.collect(),
            countdowns: vec![Countdown::default(); instruments],
            watchdog: Watchdog::default(),
            stopping: false,
            begun_blind: None,
            lost: false,
            config,
        }
    }

    /// The offset and the error of a surface's clock, nanoseconds; `None` before it was read.
    pub(super) fn clock_of(&self, surface: Surface) -> Option<(i64, i64)> {
        let clock = self.lines.get(&surface)?.clock?;
        Some((clock.offset_ns, clock.error_ns))
    }

    /// Whether nothing of an earlier process can rest unseen: its journal is there, or open orders
    /// were listed when nothing of it could arrive any more.
    pub(super) fn knows_predecessors(&self, surface: Surface) -> bool {
        let listed = self.lines.get(&surface).and_then(|line| line.clean);
        self.begun_blind.is_none_or(|begun| {
            listed.is_some_and(|at| at >= begun.plus_ms(self.config.absence_ms))
        })
    }

    pub(super) fn is_running(&self) -> bool {
        self.stage == Stage::Running
    }

    /// Whether the account is still to be found as it is, after a process whose journal is lost: what that one
    /// filled a moment ago may be in readings, and not in the list of trades yet.
    pub(super) fn finds_lost_account(&self, surface: Surface) -> bool {
        let line = self.lines.get(&surface);
        self.lost && !self.is_running() && line.is_some_and(|line| line.clean.is_none())
    }

    pub(super) fn doubts(&self) -> impl Iterator<Item = Doubt> {
        self.doubts.iter().copied()
    }

    /// Whether something is in doubt, and all of it is of this kind.
    pub(super) fn is_doubted_only_for(&self, kind: impl Fn(&Doubt) -> bool) -> bool {
        !self.doubts.is_empty() && self.doubts.iter().all(kind)
    }

    /// Whether one of these is in doubt.
    pub(super) fn doubts_any(&self, doubts: &[Doubt]) -> bool {
        doubts.iter().any(|doubt| self.doubts.contains(doubt))
    }

    pub(super) fn is_syncing(&self) -> bool {
        self.stage == Stage::Syncing
    }

    pub(super) fn state(&self, latch: Latch) -> RunState {
        match (latch, self.stage) {
            _ if self.stopping => RunState::Halted,
            (Latch::Halted, _) => RunState::Halted,
            (_, Stage::Booting) => RunState::Booting,
            (_, Stage::Syncing) => RunState::Syncing,
            _ if !self.doubts.is_empty() => RunState::Degraded,
            (Latch::Paused, _) => RunState::Paused,
            (Latch::None, _) => RunState::Ready,
        }
    }

    /// Whether what is known of a surface can be acted on: promise 5.
    pub(super) fn sees(&self, surface: Surface) -> bool {
        self.stage == Stage::Running
            && !self.doubts.contains(&Doubt::Stream(surface))
            && !self.doubts.contains(&Doubt::Reconciliation(surface))
    }

    /// Whether a surface's account is not reconciled.
    pub(super) fn is_unexplained(&self, surface: Surface) -> bool {
        self.doubts.contains(&Doubt::Reconciliation(surface))
    }

    /// Whether what was read of a surface is too old to be believed: promise 4.
    fn is_old(&self, surface: Surface, now: Time) -> bool {
        let line = self.lines.get(&surface);
        let read = line.and_then(|line| line.clean);
        read.is_some_and(|asked| now > asked.plus_ms(3 * self.config.reconcile_ms))
    }

    fn is_silent(&self, surface: Surface, now: Time) -> bool {
        let line = self.lines.get(&surface);
        let silent = line.is_some_and(|line| now > line.alive.plus_ms(SILENCE_MS));
        silent && !planted!(SilenceIgnored)
    }

    /// The evidence on which heartbeats are renewed: promise 4. Its age is looked at here too: after
    /// a stop of the process nobody has yet.
    pub(super) fn healthy(&self, surface: Surface, now: Time) -> bool {
        let doubted = [
            Doubt::Journal,
            Doubt::Clock(surface),
            Doubt::Stream(surface),
            Doubt::Reconciliation(surface),
        ];
        let aged = self.is_old(surface, now) || self.is_silent(surface, now);
        let doubted = doubted.iter().any(|doubt| self.doubts.contains(doubt));
        self.stage == Stage::Running && !doubted && !aged
    }
}

impl Engine {
    /// Whether everything that `on_stop` asks for is done.
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

    /// The venue's time minus ours on a surface, nanoseconds; `None` before it was read.
    pub fn clock_offset_ns(&self, surface: Surface) -> Option<i64> {
        let clock = self.live.as_ref()?.lines.get(&surface)?.clock?;
        Some(clock.offset_ns)
    }

    pub(super) fn handle_live(&mut self, input: &LiveInput) {
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        match *input {
            LiveInput::Begin if live.stage == Stage::Booting => {
                live.stage = Stage::Syncing;
                self.began = Some(now);
                live.begun_blind = live.lost.then_some(now);
                let doubts = live
                    .lines
                    .keys()
                    .flat_map(|surface| [Doubt::Stream(*surface), Doubt::Clock(*surface)]);
                live.doubts.extend(doubts);
                self.timers.set(now.plus_ms(WATCH_MS), Timer::Watch);
                self.begin_modes();
                self.begin_watchdog();
                self.begin_trading();
                self.begin_listing();
                for strategy in (0..self.strategies.len()).map(|index| StrategyId(index as u16)) {
                    self.tell_state(strategy);
                    self.tell_positions(strategy);
                    self.tell_ends(strategy);
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
                if let Some(line) = live.lines.get_mut(&surface) {
                    line.alive = now;
                }
            }
            LiveInput::Clock {
                surface,
                offset_ns,
                error_ns,
            } => {
                if let Some(line) = live.lines.get_mut(&surface) {
                    line.clock = Some(ClockReading {
                        offset_ns,
                        error_ns,
                        read: now,
                    });
                    self.set_doubt(Doubt::Clock(surface), false);
                }
                self.count_predecessors_by(surface, offset_ns);
            }
            LiveInput::Journal { healthy } => self.set_doubt(Doubt::Journal, !healthy),
            LiveInput::Stop => self.stop(),
            LiveInput::Watchdog { armed } => self.handle_watchdog(armed),
            LiveInput::BeatHeard { number } => self.handle_beat_heard(number),
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

    /// What an earlier process sent may arrive for a while, which was counted by the clock of then. Where
    /// that was set forward since, as the first reading of the venue's clock shows, the time ends later by
    /// this clock.
    fn count_predecessors_by(&mut self, surface: Surface, offset_ns: i64) {
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
            countdowns.for_each(|countdown| countdown.end_later(by_ms));
        }
    }

    fn stream_up(&mut self, surface: Surface) {
        let now = self.now;
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        line.stream_up = true;
        line.alive = now;
        line.clean = None;
        // One refusal may have been of that moment.
        line.no_trades = false;
        line.newest = Newest::default();
        let is_first = self.stream_up.insert(surface, now).is_none();
        // A new connection brings new events. It cannot show what was sent before it.
        let instruments = &self.instruments;
        let of_surface =
            |order: &&mut Order| instruments[usize::from(order.instrument().0)].surface == surface;
        self.orders
            .all_mut()
            .filter(of_surface)
            .for_each(|order| order.on_stream = true);
        self.incomes.stream_up();
        self.list_orders_again(surface);
        if is_first {
            // A start looks for another instance here too: account trades may be behind.
            self.list_orders_for_trades(surface);
        }
        self.begin_cut(surface);
        self.begin_round(surface);
    }

    pub(super) fn stream_down(&mut self, surface: Surface) {
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        let was_up = std::mem::replace(&mut line.stream_up, false);
        line.clean = None;
        if was_up {
            line.give_up_round();
            // Mostly it comes back at once. While it does not, rounds are all that shows what happens.
            self.later(surface, DOWN_MS);
        }
        if surface == Surface::Futures {
            // Order events may have been lost with it.
            self.stated_closes.clear();
            self.forget_stated_positions();
        }
        self.forget_stated_balances(surface);
        self.set_doubt(Doubt::Stream(surface), true);
    }

    pub(super) fn line_mut(&mut self, surface: Surface) -> Option<&mut Line> {
        self.live.as_mut()?.lines.get_mut(&surface)
    }

    /// Counts an event of a user stream: evidence that it lives, and that the account moved.
    pub(super) fn note_user_event(&mut self, surface: Surface) {
        let now = self.now;
        if let Some(line) = self.line_mut(surface) {
            line.alive = now;
            line.events += 1;
        }
    }

    /// The venue refused a request for its time: no other will pass before its clock is read.
    pub(super) fn doubt_clock(&mut self, surface: Surface) {
        if let Some(line) = self.line_mut(surface) {
            line.clock = None;
            self.set_doubt(Doubt::Clock(surface), true);
            self.update_state();
        }
    }

    /// A round of reconciliation left nothing unexplained.
    pub(super) fn round_is_clean(&mut self, surface: Surface) {
        let Some(live) = &self.live else { return };
        let old = live.is_old(surface, self.now);
        let stream_up = live.lines.get(&surface).is_some_and(|line| line.stream_up);
        let denied = self.is_denied_an_order(surface);
        let missing = self.is_fill_overdue(surface);
        self.set_doubt(Doubt::Reconciliation(surface), old || denied || missing);
        if stream_up {
            self.set_doubt(Doubt::Stream(surface), false);
        }
        self.update_state();
        // A halt is no move of the state, but closing may have waited for this.
        self.continue_all_flattening();
    }

    pub(super) fn set_doubt(&mut self, doubt: Doubt, doubted: bool) {
        let was_on_trial = self.is_on_trial();
        let Some(live) = &mut self.live else { return };
        let changed = if doubted {
            live.doubts.insert(doubt)
        } else {
            live.doubts.remove(&doubt)
        };
        // Strategies may try an order only while nothing else is in doubt. The state does not move then.
        let is_degraded = self.state == RunState::Degraded;
        if changed && is_degraded && self.is_on_trial() != was_on_trial {
            self.tell_trial();
        }
    }

    /// What an earlier process knew is lost: unless the account turns out to be flat, a person is
    /// to say that strategies may begin at nothing. Before any input.
    pub fn doubt_ownership(&mut self) {
        self.set_doubt(Doubt::Ownership, true);
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

    /// Looks at the age of everything that is believed.
    pub(super) fn watch(&mut self) {
        let now = self.now;
        let Some(live) = &self.live else { return };
        let surfaces = live.config.surfaces.clone();
        let running = live.stage == Stage::Running;
        for surface in surfaces {
            let unseen = self.has_unseen_change(surface);
            let live = self.live.as_ref();
            let old = live.is_some_and(|live| live.is_old(surface, now));
            let silent = live.is_some_and(|live| live.is_silent(surface, now));
            let Some(line) = self.line_mut(surface) else {
                continue;
            };
            let stale = line
                .clock
                .is_none_or(|clock| now > clock.read.plus_ms(CLOCK_MS));
            self.set_doubt(Doubt::Clock(surface), stale);
            if running && old {
                self.set_doubt(Doubt::Reconciliation(surface), true);
            }
            if silent || unseen {
                self.distrust_stream(surface);
            }
            self.retry_round(surface);
            self.look_into_statement(surface);
            self.review_stated_balances(surface);
        }
        self.review_stated_positions();
        self.end_instance_watch();
        self.ask_again_for_forced_orders();
        self.ask_again_for_outside_orders();
        self.ask_again_for_recent_orders();
        self.watch_countdowns();
        self.watch_cover();
        self.watch_trading();
        self.ask_for_closes();
        self.watch_marks();
        self.watch_feeds();
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

    /// Whether balances and positions are the account's: equity means nothing before.
    pub(super) fn knows_account(&self) -> bool {
        let live = self.live.as_ref();
        live.is_none_or(|live| live.stage == Stage::Running)
    }

    /// Whether the run is ending and leaves its orders behind.
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
            OnStop::Keep => self.let_all_go(),
            OnStop::Cancel => {
                for index in 0..self.strategies.len() {
                    self.cancel_own(StrategyId(index as u16));
                }
            }
            OnStop::Flatten => self.flatten_all(),
        }
    }

    /// Decides the state anew and tells of a move.
    pub(super) fn update_state(&mut self) {
        let synced = self.leave_syncing();
        self.move_state();
        if synced {
            self.tell_markets();
            self.watch_all_losses();
        }
    }

    fn move_state(&mut self) {
        let state = match &self.live {
            Some(live) => live.state(self.latch),
            None => self.latch.alone(),
        };
        if state == self.state {
            return;
        }
        let from = self.state;
        self.enter(state);
        if self.live.is_some() {
            let doubts = self.doubts();
            codec::record_state(&mut self.recorder, self.now, from, state, &doubts);
            self.notices.push_back(Notice::State {
                time: self.now,
                from,
                to: state,
                doubts,
            });
        }
        if state == RunState::Ready || state == RunState::Halted {
            self.continue_all_flattening();
        }
    }

    /// Syncing ends when every surface was reconciled and no own order is of unknown outcome;
    /// answers whether it ended now.
    fn leave_syncing(&mut self) -> bool {
        let Some(live) = &self.live else { return false };
        let synced = live.stage == Stage::Syncing
            && !self.is_watching_instances()
            && !self.awaits_recent_orders()
            && live.lines.values().all(|line| line.clean.is_some())
            && !live
                .doubts
                .iter()
                .any(|doubt| matches!(doubt, Doubt::Clock(_)))
            && !self
                .orders
                .iter()
                .any(|order| order.state == OrderState::Unknown);
        if !synced {
            return false;
        }
        if let Some(live) = &mut self.live {
            live.stage = Stage::Running;
        }
        if self.is_flat() {
            self.set_doubt(Doubt::Ownership, false);
        }
        if self.start_equity.is_none() {
            // A fill may come before the next price: what it costs counts as a loss.
            self.fix_known_equity();
        }
        self.arm_what_rests();
        true
    }
}
