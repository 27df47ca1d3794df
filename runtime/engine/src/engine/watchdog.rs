//! The dead man's switch of spot: orders wait for cover by the watchdog process, and heartbeats
//! leave on evidence of health alone (`windvane_supervision::watchdog`).

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::{Effect, HeartbeatNotice, Notice};
use windvane_model::ids::OrderSeq;
use windvane_model::order::Surface;
use windvane_model::timer::Timer;
use windvane_supervision::countdown::UnsentReason;

use super::Engine;

/// Heartbeats per countdown.
const HEARTBEATS_PER_COUNTDOWN: i64 = 10;

impl Engine {
    /// Whether orders of a surface need the watchdog process.
    pub(super) fn is_watched(&self, surface: Surface) -> bool {
        let live = self.live.as_ref();
        surface == Surface::Spot && live.is_some_and(|live| live.config.watchdog)
    }

    /// Begins a live run, in which no watchdog covers spot orders yet.
    pub(super) fn begin_watchdog(&mut self) {
        if self.is_watched(Surface::Spot) {
            self.set_degraded(DegradedReason::Watchdog, true);
            self.timers.set(self.now, Timer::Heartbeat);
        }
    }

    /// Sends a new spot order, or holds it until it is covered.
    pub(super) fn send_or_hold_spot(&mut self, seq: OrderSeq, record: u64) {
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        let watchdog = &mut live.watchdog;
        if watchdog.is_free(now) {
            self.send_order(seq, record);
            return;
        }
        watchdog.hold(seq, record, now);
        if let Some(order) = self.orders.known_mut(seq) {
            order.held = true;
        }
        self.send_heartbeat();
    }

    /// Handles a report that the watchdog process can do its work, or is gone. If it is gone,
    /// resting orders stay, and no new order is sent.
    pub(super) fn handle_watchdog(&mut self, armed: bool) {
        self.watch_heartbeats();
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        if live.watchdog.set_ready(armed) {
            self.notices
                .push_back(Notice::Watchdog { time: now, armed });
        }
        if armed {
            self.send_heartbeat();
        } else {
            self.set_degraded(DegradedReason::Watchdog, self.is_watched(Surface::Spot));
        }
    }

    /// Handles an acknowledged heartbeat.
    pub(super) fn handle_heartbeat_ack(&mut self, number: u64) {
        self.watch_heartbeats();
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        let countdown_ms = live.config.countdown_ms;
        let Some(held) = live.watchdog.acknowledge(number, countdown_ms, now) else {
            return;
        };
        self.set_degraded(DegradedReason::Watchdog, false);
        for (seq, record) in held {
            self.send_order(seq, record);
        }
    }

    /// Handles the heartbeat timer.
    pub(super) fn heartbeat_due(&mut self) {
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        let next = now.plus_ms((live.config.countdown_ms / HEARTBEATS_PER_COUNTDOWN).max(1));
        self.timers.set(next, Timer::Heartbeat);
        for (seq, _) in live.watchdog.take_overdue(now) {
            self.refuse_unsent(seq, UnsentReason::Watchdog);
        }
        self.send_heartbeat();
        self.update_state();
    }

    /// Sends a heartbeat, if the run is healthy and the watchdog works. At most one waits for its
    /// acknowledgement.
    pub(super) fn send_heartbeat(&mut self) {
        self.watch_heartbeats();
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        if !live.is_healthy(Surface::Spot, now) {
            return;
        }
        let Some(number) = live.watchdog.next_heartbeat(now) else {
            return;
        };
        self.emit(Effect::Heartbeat { number });
    }

    /// Checks whether heartbeats stayed away for too long. Resting spot orders may then have been
    /// cancelled, so each order is unknown until it was queried.
    pub(super) fn watch_heartbeats(&mut self) {
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        if !live.watchdog.expire(now) {
            return;
        }
        self.set_degraded(DegradedReason::Watchdog, true);
        let spot = self
            .orders
            .iter()
            .filter(|order| self.surface_of(order.instrument()) == Surface::Spot && !order.held);
        for (seq, instrument) in spot
            .map(|order| (order.seq, order.instrument()))
            .collect::<Vec<_>>()
        {
            self.notices.push_back(Notice::Heartbeat {
                time: now,
                instrument,
                what: HeartbeatNotice::Lapsed,
            });
            self.mark_unknown(seq);
            self.ask_for_order(seq);
        }
    }
}
