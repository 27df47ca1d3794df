//! The dead man's switch of spot, which has no `countdownCancelAll`. A separate watchdog process
//! cancels own spot orders when it misses this process's heartbeats
//! (docs/promises.md#4-dead-mans-switch).
//!
//! The rules are those of the futures countdowns. No order is sent before it is covered, and
//! heartbeats are sent only on evidence of health. The engine counts from the moment when a
//! heartbeat is sent, so that the watchdog never acts before the engine knows that it may have.

use serde::{Deserialize, Serialize};
use windvane_model::ids::{OrderSeq, Time};

use crate::countdown::margin_ms;

/// Orders wait this long for cover before they are refused.
const HELD_MS: i64 = 10_000;

/// The state of the watchdog process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Watchdog {
    /// The watchdog reported that it can do its work.
    is_ready: bool,
    /// Spot orders are covered until this time.
    until: Option<Time>,
    /// The heartbeat that the watchdog has not acknowledged: its number and when it was sent.
    asked: Option<(u64, Time)>,
    heartbeats: u64,
    /// Orders that wait for cover, in order, with the record of their intent.
    held: Vec<(OrderSeq, u64)>,
    held_since: Time,
}

impl Watchdog {
    /// Until when orders are covered.
    pub const fn until(&self) -> Option<Time> {
        self.until
    }

    /// An order does not wait any more.
    pub fn forget_held(&mut self, seq: OrderSeq) {
        self.held.retain(|(held, _)| *held != seq);
    }

    fn covers(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Whether an order may be sent at once.
    pub fn is_free(&self, now: Time) -> bool {
        self.covers(now) && self.held.is_empty()
    }

    /// An order waits for cover; `record` is the record of its intent.
    pub fn hold(&mut self, seq: OrderSeq, record: u64, now: Time) {
        if self.held.is_empty() {
            self.held_since = now;
        }
        self.held.push((seq, record));
    }

    /// The watchdog process can do its work, or is gone. Returns whether that is new.
    pub fn set_ready(&mut self, armed: bool) -> bool {
        let was = std::mem::replace(&mut self.is_ready, armed);
        self.asked = None;
        if !armed {
            self.until = None;
        }
        was != armed
    }

    /// A heartbeat was acknowledged. Returns the orders that waited, if they are covered now.
    pub fn acknowledge(
        &mut self,
        number: u64,
        countdown_ms: i64,
        now: Time,
    ) -> Option<Vec<(OrderSeq, u64)>> {
        let (_, asked) = self.asked.filter(|(asked, _)| *asked == number)?;
        self.asked = None;
        let until = asked.plus_ms(countdown_ms - margin_ms(countdown_ms));
        if now >= until {
            return None;
        }
        self.until = Some(until);
        Some(std::mem::take(&mut self.held))
    }

    /// Takes the orders that waited too long for cover.
    pub fn take_overdue(&mut self, now: Time) -> Vec<(OrderSeq, u64)> {
        if now >= self.held_since.plus_ms(HELD_MS) {
            // Orders must not wait for ever for cover that does not come.
            std::mem::take(&mut self.held)
        } else {
            Vec::new()
        }
    }

    /// The number of the heartbeat that is sent now, if the watchdog works. At most one waits for
    /// its acknowledgement.
    pub fn next_heartbeat(&mut self, now: Time) -> Option<u64> {
        if !self.is_ready || self.asked.is_some() {
            return None;
        }
        self.heartbeats += 1;
        self.asked = Some((self.heartbeats, now));
        Some(self.heartbeats)
    }

    /// Whether heartbeats stayed away for too long.
    pub fn expire(&mut self, now: Time) -> bool {
        let lapses = self.until.is_some_and(|until| now >= until);
        if lapses {
            self.until = None;
        }
        lapses
    }
}
