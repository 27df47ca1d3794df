//! The stages of a call: it is wanted, waits for its budget, waits for its signature, and is in
//! flight.

use std::time::Duration;

use windvane_client_core::budget::{Cost, Departed, Lane};
use windvane_client_core::gateway::Unsigned;
use windvane_model::Time;
use windvane_protocol::adapter::EncodedCall;

use super::call::Purpose;

/// Timeout of a signature. It is also limited to one `SIGN_PART`th of the response timeout. A call
/// without a signature did not leave, so another call may be made. A heartbeat whose signature is
/// lost must not use up the time of the next heartbeat.
const SIGN_WITHIN: Duration = Duration::from_secs(3);
const SIGN_PART: i64 = 3;

/// A call that must be made.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) call: EncodedCall,
    pub(super) lane: Lane,
    /// How long it may wait for the budget, in nanoseconds.
    pub(super) patience_ns: i64,
    /// Response timeout.
    pub(super) within: Duration,
    pub(super) leave_by: Option<Time>,
    pub(super) since: Option<Time>,
    pub(super) purpose: Purpose,
}

/// A call that waits for its budget.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) at: Time,
    /// When the call was requested.
    pub(super) requested_at: Time,
    pub(super) give_up: Time,
    pub(super) wanted: Wanted,
}

/// A call that waits for its signature.
#[derive(Debug)]
pub(super) struct PendingSignature {
    pub(super) began: Time,
    pub(super) by: Time,
    pub(super) unsigned: Unsigned,
    pub(super) cost: Cost,
    pub(super) departed: Departed,
    pub(super) leave_by: Option<Time>,
    pub(super) since: Option<Time>,
    pub(super) purpose: Purpose,
}

impl PendingSignature {
    /// When the session stops waiting for the signature, at `leave_by` at the latest.
    pub(super) fn by(&self) -> Time {
        let by = self.leave_by.map_or(self.by, |by| by.min(self.by));
        let part_ns = (self.by.0 - self.began.0) / SIGN_PART;
        by.min(self.began.plus_ns(part_ns.min(ns(SIGN_WITHIN))))
    }
}

/// A call that waits for its response.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) unsigned: Unsigned,
    pub(super) cost: Cost,
    pub(super) departed: Departed,
    pub(super) left: Time,
    /// When the session stops waiting for the response; `None` if it did already.
    pub(super) by: Option<Time>,
    pub(super) purpose: Purpose,
}

/// A duration in nanoseconds.
pub(super) const fn ns(duration: Duration) -> i64 {
    let ns = duration.as_nanos();
    if ns > i64::MAX as u128 {
        i64::MAX
    } else {
        ns as i64
    }
}
