//! Handles the inputs of a live run: its beginning and end, user streams that come and go, readings
//! of the venue's clock, and events of the journal and the watchdog.

use windvane_evidence::account_history::NewestEvents;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::ids::StrategyId;
use windvane_model::live::{LiveInput, OnStop};
use windvane_model::order::Surface;
use windvane_model::orders::Order;
use windvane_model::planted;
use windvane_model::timer::Timer;

use super::Engine;
use super::live_run::WATCH_MS;

/// Delay from the loss of a user stream to a reconciliation round without one.
const DOWN_MS: i64 = 1_000;

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

    pub(super) fn handle_live(&mut self, input: &LiveInput) {
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        match *input {
            LiveInput::Begin => {
                if live.begin(now) {
                    self.begin_live_run();
                }
            }
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

    fn begin_live_run(&mut self) {
        self.began = Some(self.now);
        self.timers.set(self.now.plus_ms(WATCH_MS), Timer::Watch);
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
}
