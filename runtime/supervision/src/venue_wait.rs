//! Waits that the venue demands after it refused a request for a limit. After a 429, 418 or 403,
//! nothing may be sent to a surface until the wait is over: any request causes or extends a ban
//! (docs/interface/limits.md#429-418-and-bans). The 429 of the order limit concerns one account,
//! and stops only new orders.

use serde::{Deserialize, Serialize};
use windvane_model::ids::Time;
use windvane_model::live::WaitKind;

/// The waits that the venue demanded for a surface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VenueWait {
    /// Nothing may be sent until this time.
    until: Option<Time>,
    /// No new order may be sent until this time.
    orders_until: Option<Time>,
    /// Earlier versions tried closes in between. Kept for the layout of snapshots.
    unused: (Time, i64),
}

impl VenueWait {
    /// Until when nothing may be sent.
    pub fn until(&self, now: Time) -> Option<Time> {
        self.until.filter(|until| now < *until)
    }

    /// Until when no new order may be sent.
    pub fn orders_until(&self, now: Time) -> Option<Time> {
        self.orders_until.filter(|until| now < *until)
    }

    /// The venue demands a wait until this time.
    pub fn note(&mut self, kind: WaitKind, until: Time) {
        match kind {
            WaitKind::All => self.until = self.until.max(Some(until)),
            WaitKind::Orders | WaitKind::OrdersUntil => {
                self.orders_until = self.orders_until.max(Some(until));
            }
        }
    }

    /// When the first of the waits ends; `None` without a wait.
    pub fn next_end(&self) -> Option<Time> {
        [self.until, self.orders_until].into_iter().flatten().min()
    }

    /// When the first of the waits that last ends.
    pub fn next_end_after(&self, now: Time) -> Option<Time> {
        let ends = [self.until, self.orders_until].into_iter().flatten();
        ends.filter(|at| *at > now).min()
    }

    /// Ends the waits that are over. Returns whether the one for all requests is among them.
    pub fn expire(&mut self, now: Time) -> bool {
        self.orders_until.take_if(|until| *until <= now);
        self.until.take_if(|until| *until <= now).is_some()
    }
}
