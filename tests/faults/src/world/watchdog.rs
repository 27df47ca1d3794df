//! The watchdog process of spot orders, which has no `countdownCancelAll`: it cancels own spot orders once the signs of
//! health of the process beside it stay away for a countdown, or once that process is gone
//! (`runtime/node/src/watchdog`). It reaches the venue past the links, and no fault is drawn for it.

use serde_json::json;
use windvane_engine::{ClientOrderId, Surface};

use super::{Event, MS, S, World};
use crate::mix::Kind;
use crate::process::In;
use crate::tally;

/// It can do its work so long after the start of the process beside it.
const ARMED_NS: i64 = 300 * MS;
/// A word on its pipes takes so long.
const PIPE_NS: i64 = MS / 5;
/// A request of the process beside it may arrive for so long.
const ARRIVES_NS: i64 = 10 * S;
/// From one sweep to the next.
const SWEEP_NS: i64 = S;

/// What it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// It runs beside this process.
    Arm(u32),
    /// Its countdown may be over.
    Due(u32),
    /// It cancels what it finds of this epoch and those before, until then.
    Sweep(i64, u64),
}

/// The state of the watchdog process.
#[derive(Debug, Default)]
pub struct Watchdog {
    stands: bool,
    /// It acts then.
    due_ns: i64,
}

impl World {
    fn has_spot(&self) -> bool {
        self.setup.surfaces.contains(&Surface::Spot)
    }

    /// A process runs: a watchdog process begins beside it.
    pub(super) fn begin_watchdog(&mut self) {
        if self.has_spot() {
            self.count(Kind::Spot);
            self.watchdog.stands = false;
            let arm = Event::Watchdog(Watch::Arm(self.life));
            self.queue.put(self.now_ns + ARMED_NS, arm);
        }
    }

    /// A sign of health.
    pub(super) fn beat(&mut self, number: u64) {
        if !self.watchdog.stands {
            return;
        }
        self.wind_up();
        let heard = In::BeatHeard(number);
        self.queue
            .put(self.now_ns + 2 * PIPE_NS, Event::Deliver(self.life, heard));
    }

    fn wind_up(&mut self) {
        let countdown_ms = self.mix.terms.countdown_ms.cast_signed();
        self.watchdog.due_ns = self.now_ns + PIPE_NS + countdown_ms * MS;
        let due = Event::Watchdog(Watch::Due(self.life));
        self.queue.put(self.watchdog.due_ns, due);
    }

    /// The process beside it was killed: its pipes end.
    pub(super) fn watchdog_sees_death(&mut self) {
        if self.has_spot() && std::mem::take(&mut self.watchdog.stands) {
            self.sweep_from_now();
        }
    }

    fn sweep_from_now(&mut self) {
        let sweep = Watch::Sweep(self.now_ns + ARRIVES_NS, self.disk.epoch);
        self.queue
            .put(self.now_ns + PIPE_NS, Event::Watchdog(sweep));
    }

    pub(super) fn watch(&mut self, watch: Watch) {
        match watch {
            Watch::Arm(life) => {
                if life == self.life && self.process.is_some() && !self.watchdog.stands {
                    self.watchdog.stands = true;
                    self.wind_up();
                    self.deliver(life, In::Watchdog(true));
                }
            }
            Watch::Due(life) => {
                let is_due = self.watchdog.stands && self.now_ns >= self.watchdog.due_ns;
                if life == self.life && is_due {
                    self.watchdog.stands = false;
                    self.log.count(tally::WATCHDOG_ACTS);
                    self.tell("the watchdog process acts".to_owned());
                    self.sweep_from_now();
                    let arm = Event::Watchdog(Watch::Arm(life));
                    self.queue.put(self.now_ns + ARRIVES_NS + 2 * S, arm);
                    self.deliver(life, In::Watchdog(false));
                }
            }
            Watch::Sweep(until_ns, epoch) => {
                self.sweep(epoch);
                if self.now_ns < until_ns {
                    let next = Event::Watchdog(watch);
                    self.queue.put(self.now_ns + SWEEP_NS, next);
                }
            }
        }
    }

    /// Cancels own spot orders that are open, of this epoch and of those before.
    fn sweep(&mut self, epoch: u64) {
        let truth = self.venue.truth(true, self.now_ns);
        let orders = truth["accounts"][0]["orders"].as_array().cloned();
        for order in orders.unwrap_or_default() {
            let id = order["client_order_id"].as_str().unwrap_or_default();
            let id = ClientOrderId::new(id).ok();
            let own = id.as_ref().and_then(ClientOrderId::parse_own);
            let is_own = own.is_some_and(|(owner, of, _)| {
                of <= epoch && self.mix.terms.strategies.iter().any(|one| one.id == owner)
            });
            if order["surface"] == "spot" && is_own {
                self.act(&json!({"act": "cancel", "order_id": order["order_id"]}));
            }
        }
    }
}
