//! The dead man's switch of spot, which has no `countdownCancelAll`: a process beside this one that
//! cancels own spot orders once it misses its signs of health (promise 4).
//!
//! As with the timers of futures, no order leaves before it is covered, signs are given on evidence
//! of health only, and the time that we count with begins when a sign leaves, so that the process
//! never acts before we know that it may have.

use serde::{Deserialize, Serialize};

use crate::effect::{Effect, HeartbeatNotice, Notice};
use crate::ids::{OrderSeq, Time};
use crate::order::Surface;
use crate::timer::Timer;

use super::Engine;
use super::deadman::{NotCovered, margin_ms};
use super::doubt::Doubt;

/// Signs of health in one countdown.
const BEATS: i64 = 10;
/// Orders wait so long for cover before they are refused.
const HELD_MS: i64 = 10_000;

/// What is known of the watchdog process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Watchdog {
    /// It said that it can do its work.
    stands: bool,
    /// Spot orders are covered until then.
    until: Option<Time>,
    /// The sign that it has not answered: its number and when it left.
    asked: Option<(u64, Time)>,
    beats: u64,
    /// Orders that wait for cover, in their order, with the record of their intent.
    held: Vec<(OrderSeq, u64)>,
    held_since: Time,
}

impl Watchdog {
    pub(super) const fn until(&self) -> Option<Time> {
        self.until
    }

    pub(super) fn forget_held(&mut self, seq: OrderSeq) {
        self.held.retain(|(held, _)| *held != seq);
    }

    fn covers(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

impl Engine {
    /// Whether orders of a surface need the watchdog process.
    pub(super) fn is_watched(&self, surface: Surface) -> bool {
        let live = self.live.as_ref();
        surface == Surface::Spot && live.is_some_and(|live| live.config.watchdog)
    }

    /// A live run begins: nothing watches yet.
    pub(super) fn begin_watchdog(&mut self) {
        if self.is_watched(Surface::Spot) {
            self.set_doubt(Doubt::Watchdog, true);
            self.timers.set(self.now, Timer::Beat);
        }
    }

    /// Sends a new spot order, or holds it until it is covered.
    pub(super) fn send_or_hold_spot(&mut self, seq: OrderSeq, record: u64) {
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        let watchdog = &mut live.watchdog;
        if watchdog.covers(now) && watchdog.held.is_empty() {
            self.send_order(seq, record);
            return;
        }
        if watchdog.held.is_empty() {
            watchdog.held_since = now;
        }
        watchdog.held.push((seq, record));
        if let Some(order) = self.orders.known_mut(seq) {
            order.held = true;
        }
        self.beat();
    }

    /// The watchdog process can do its work, or is gone: what rests stays, nothing new leaves.
    pub(super) fn handle_watchdog(&mut self, armed: bool) {
        self.watch_cover();
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        let was = live.watchdog.stands;
        live.watchdog.stands = armed;
        live.watchdog.asked = None;
        if was != armed {
            self.notices
                .push_back(Notice::Watchdog { time: now, armed });
        }
        if armed {
            self.beat();
        } else {
            live.watchdog.until = None;
            self.set_doubt(Doubt::Watchdog, self.is_watched(Surface::Spot));
        }
    }

    /// The watchdog process heard a sign of health.
    pub(super) fn handle_beat_heard(&mut self, number: u64) {
        self.watch_cover();
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        let countdown_ms = live.config.countdown_ms;
        let watchdog = &mut live.watchdog;
        let Some((_, asked)) = watchdog.asked.filter(|(asked, _)| *asked == number) else {
            return;
        };
        watchdog.asked = None;
        let until = asked.plus_ms(countdown_ms - margin_ms(countdown_ms));
        if now >= until {
            return;
        }
        watchdog.until = Some(until);
        let held = std::mem::take(&mut watchdog.held);
        self.set_doubt(Doubt::Watchdog, false);
        for (seq, record) in held {
            self.send_order(seq, record);
        }
    }

    /// The timer of the signs of health.
    pub(super) fn beat_due(&mut self) {
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        let next = now.plus_ms((live.config.countdown_ms / BEATS).max(1));
        self.timers.set(next, Timer::Beat);
        if now >= live.watchdog.held_since.plus_ms(HELD_MS) {
            // Orders do not wait for ever for cover that does not come.
            for (seq, _) in std::mem::take(&mut live.watchdog.held) {
                self.refuse_unsent(seq, NotCovered::Watchdog);
            }
        }
        self.beat();
        self.update_state();
    }

    /// Gives a sign of health, where there is health and somebody to see it; one at a time.
    pub(super) fn beat(&mut self) {
        self.watch_cover();
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        let healthy = live.healthy(Surface::Spot, now);
        let watchdog = &mut live.watchdog;
        if !healthy || !watchdog.stands || watchdog.asked.is_some() {
            return;
        }
        watchdog.beats += 1;
        let number = watchdog.beats;
        watchdog.asked = Some((number, now));
        self.emit(Effect::Beat { number });
    }

    /// Signs that stayed away too long: what rested on spot may have been cancelled, so that each
    /// order is unknown until it was asked for.
    pub(super) fn watch_cover(&mut self) {
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        if live.watchdog.until.is_none_or(|until| now < until) {
            return;
        }
        live.watchdog.until = None;
        self.set_doubt(Doubt::Watchdog, true);
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
            self.lose(seq);
            self.ask_for_order(seq);
        }
    }
}
