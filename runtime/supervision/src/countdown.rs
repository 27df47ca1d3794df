//! The dead man's switch: `countdownCancelAll` (docs/interface/futures.md#countdowncancelall) for
//! each futures symbol. The venue confirms it before the first order of a symbol is sent, apart from
//! market orders that can only reduce a position. The engine renews it only on evidence of health
//! (`docs/promises.md#4-dead-mans-switch`).
//!
//! An order for a symbol that is not covered is held until the venue has confirmed the countdown.
//! The engine counts from the moment when it sends the request, so that the venue's countdown never
//! ends before the engine's.

use serde::{Deserialize, Serialize};
use windvane_model::ids::{InstrumentId, OrderSeq, Time};
use windvane_model::live::LiveConfig;
use windvane_model::planted;
use windvane_model::protocol::Outcome;

/// After this many failed tries to arm a countdown, the waiting orders are refused.
const TRIES_MAX: u32 = 3;

/// Why an order that waited for cover was taken back without being sent.
#[derive(Clone, Copy, Debug)]
pub enum UnsentReason {
    /// The venue accepts no request.
    VenueWait,
    /// The last countdown was disarmed, and the next one can be armed only after a long time.
    Disarming,
    /// The venue did not arm the countdown.
    Failed,
    /// The countdown was armed late.
    Late,
    /// The account is degraded.
    Degraded,
    /// The watchdog process of spot orders did not answer.
    Watchdog,
}

impl UnsentReason {
    /// The reason as a text for people.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::VenueWait => {
                "the venue takes no request, because a limit was exceeded; windvane status says for \
                 how long"
            }
            Self::Disarming => {
                "the countdown of the symbol was stopped, and the venue may still receive a copy of \
                 that request: no countdown can be armed soon enough for this order"
            }
            Self::Failed => "the venue did not arm the countdown of the symbol",
            Self::Late => "the countdown of the symbol was armed too late for this order",
            Self::Degraded => {
                "the run is degraded, and no countdown is armed then; windvane status names the \
                 degraded reason"
            }
            Self::Watchdog => "the watchdog process did not cover it in time",
        }
    }
}

/// Orders of a symbol that wait until its countdown is armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountdownWait {
    /// The symbol.
    pub instrument: InstrumentId,
    /// Number of waiting orders.
    pub orders: usize,
    /// When the first of them was submitted.
    pub since: Time,
    /// Set if a countdown was disarmed a moment ago: a new one can be armed from this time.
    pub barred_until: Option<Time>,
}

/// Why an order that waited for the journal is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithheldReason {
    /// The order ended while it waited.
    Ended,
    /// The order was cancelled.
    TakenBack,
    /// The run or the strategy was halted.
    Halted,
    /// It waited too long.
    Late,
    /// The countdown of its symbol ran out.
    Uncovered,
}

impl WithheldReason {
    /// The reason as a text for people.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Ended => "it ended while it waited for the journal",
            Self::TakenBack => "it was cancelled while it waited for the journal",
            Self::Halted => {
                "the run or its strategy was halted, or its strategy quarantined, while it waited for the \
                 journal"
            }
            Self::Late => {
                "it waited for the journal for more than 3 s, so the market may have moved: check whether the \
                 disk is slow"
            }
            Self::Uncovered => {
                "the countdown of the symbol ran out while it waited for the journal: check whether the disk \
                 is slow"
            }
        }
    }
}

/// The countdown of one symbol.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Countdown {
    /// Orders are covered until this time.
    until: Option<Time>,
    /// The request in flight: the countdown that it requests in milliseconds (0 disarms), and when
    /// it was sent.
    asked: Option<(u64, Time)>,
    /// Set after a disarm: until this time, the request or a copy of it may still arrive and stop a
    /// countdown that was armed later.
    not_before: Option<Time>,
    /// Nothing rested at the last renewal, and no order was sent since.
    idle: bool,
    /// A countdown may run at the venue until this time: one was requested, and no report since
    /// shows that it stopped.
    may_run: Option<Time>,
    /// Until this time, a request for a countdown may arrive although the engine stopped waiting
    /// for its response.
    arriving: Option<Time>,
    /// The last request, to arm or to disarm, has no response that shows its effect.
    unsettled: bool,
    failures: u32,
    /// Orders that wait for the countdown, in order, with the record of their intent.
    held: Vec<(OrderSeq, u64)>,
}

/// The consequence of a response about a countdown.
#[derive(Clone, Debug)]
pub enum CountdownResponse {
    /// The countdown is armed: it covers orders again.
    Armed {
        /// The orders that waited, with the record of the intent of each.
        held: Vec<(OrderSeq, u64)>,
        /// When the request was sent.
        asked: Time,
    },
    /// The countdown is disarmed. Until this time, an abandoned request may still arm it again.
    Disarmed(Option<Time>),
    /// The countdown may be disarmed: the response does not show whether the venue did it.
    MayBeDisarmed,
    /// The venue did not disarm the countdown.
    StillArmed,
    /// The countdown was not armed.
    Failed {
        /// It failed too often: the orders that wait are refused.
        is_tired: bool,
        /// No countdown covers the symbol.
        is_uncovered: bool,
    },
}

/// The engine's state when a renewal is due.
#[derive(Clone, Copy, Debug)]
pub struct Renewal {
    /// Time of the last input.
    pub now: Time,
    /// When the next renewal would be due.
    pub next: Time,
    /// Orders of the symbol rest.
    pub rests: bool,
    /// All of them were stopped by a halt, a quarantine or the end of the run.
    pub are_all_stopped: bool,
    /// The runtime is healthy.
    pub is_healthy: bool,
    /// The run ends and leaves its orders open.
    pub keeps_orders: bool,
    /// No order of an earlier process can rest unseen.
    pub knows_predecessor_orders: bool,
}

/// The action when a renewal is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewalStep {
    /// The countdown is armed or renewed.
    Arm,
    /// The orders that wait are refused. Resting orders still depend on the countdown: it is
    /// renewed once the run is healthy again.
    Refuse,
    /// The countdown is not renewed now. The engine decides again at the next renewal.
    Idle,
    /// The countdown is disarmed.
    Disarm,
    /// Nothing is done.
    Nothing,
    /// The countdown is not renewed: the cancels of the resting orders may be lost, and it then
    /// cancels them.
    Wait,
    /// The countdown is not renewed, because the runtime is not healthy.
    Withhold {
        /// The countdown is armed.
        is_armed: bool,
    },
}

impl Countdown {
    /// Whether no countdown runs at the venue, as far as is known, and no request is in flight.
    pub fn is_off(&self, now: Time) -> bool {
        self.until.is_none() && self.asked.is_none() && !self.may_run(now)
    }

    /// Whether a countdown may run at the venue.
    pub fn may_run(&self, now: Time) -> bool {
        self.may_run.is_some_and(|until| now < until)
    }

    /// Takes over the countdown of the previous process. If that process was disarming, or had just
    /// done so, the pause continues. Its countdown still runs. Deadlines that have passed are
    /// dropped.
    pub fn inherit(&mut self, old: &Self, now: Time, absence_ms: i64) {
        let was_disarming = old.asked.is_some_and(|(length_ms, _)| length_ms == 0);
        let not_before = was_disarming.then(|| now.plus_ms(absence_ms));
        let in_force = |at: Option<Time>| at.filter(|at| now < *at);
        self.not_before = not_before.max(in_force(old.not_before));
        self.may_run = old.may_run;
        let under_way = old.asked.filter(|(length_ms, _)| *length_ms > 0);
        let arriving = under_way.map(|(_, asked)| asked.plus_ms(absence_ms));
        self.arriving = arriving.max(in_force(old.arriving));
    }

    /// Moves the deadlines of an earlier process to a later time by this process's clock.
    pub fn extend_deadlines(&mut self, by_ms: i64) {
        for at in [&mut self.not_before, &mut self.may_run, &mut self.arriving] {
            *at = at.map(|at| at.plus_ms(by_ms));
        }
    }

    /// Whether no countdown can be armed within this time, because one was just disarmed.
    pub fn is_barred(&self, now: Time, ms: i64) -> bool {
        let barred = self.not_before.is_some_and(|at| now.plus_ms(ms) < at);
        barred && !planted!(PlaceBeforeArmed)
    }

    fn covers(&self, now: Time) -> bool {
        let looked_at = !planted!(LapsedStillCovers);
        self.until.is_some_and(|until| now < until || !looked_at)
    }

    /// Whether an order may be sent at once.
    pub fn is_free(&self, now: Time) -> bool {
        self.covers(now) && self.held.is_empty()
    }

    /// Until when orders are covered.
    pub const fn until(&self) -> Option<Time> {
        self.until
    }

    /// Until when no countdown can be armed, because one was disarmed.
    pub const fn not_before(&self) -> Option<Time> {
        self.not_before
    }

    /// The orders that wait for the countdown.
    pub fn held(&self) -> impl Iterator<Item = OrderSeq> {
        self.held.iter().map(|(seq, _)| *seq)
    }

    /// Whether orders wait for the countdown.
    pub fn has_waiting_orders(&self) -> bool {
        !self.held.is_empty()
    }

    /// An order waits for the countdown; `record` is the record of its intent.
    pub fn hold(&mut self, seq: OrderSeq, record: u64) {
        self.held.push((seq, record));
    }

    /// An order does not wait any more.
    pub fn forget_held(&mut self, seq: OrderSeq) {
        self.held.retain(|(held, _)| *held != seq);
    }

    /// Takes the orders that wait: they are refused.
    pub fn take_held(&mut self) -> Vec<(OrderSeq, u64)> {
        self.failures = 0;
        std::mem::take(&mut self.held)
    }

    /// An order needs the countdown. Returns whether it was about to be disarmed.
    pub fn end_idling(&mut self) -> bool {
        std::mem::take(&mut self.idle)
    }

    /// Whether a request is in flight.
    pub const fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether the countdown is being disarmed, or was just disarmed.
    pub fn is_disarming(&self, now: Time) -> bool {
        let asked = self.asked.is_some_and(|(length_ms, _)| length_ms == 0);
        asked || self.is_barred(now, 0)
    }

    /// Whether orders wait for the countdown, or one runs.
    pub fn is_urgent(&self) -> bool {
        self.has_waiting_orders() || self.until.is_some()
    }

    /// A request is sent; a length of 0 disarms. It may arrive within `absence_ms`.
    pub fn ask(&mut self, length_ms: u64, absence_ms: i64, now: Time) {
        self.asked = Some((length_ms, now));
        self.idle = false;
        self.unsettled = true;
        if length_ms == 0 {
            // No order may count on a countdown that is about to stop.
            self.until = None;
        } else {
            let length_ms = i64::try_from(length_ms).unwrap_or(i64::MAX);
            let ends = now.plus_ms(absence_ms).plus_ms(length_ms);
            self.may_run = Some(ends);
        }
    }

    /// Takes the response to the request in flight; `None` if no request is in flight.
    pub fn take_answer(
        &mut self,
        outcome: &Outcome<u64>,
        config: &LiveConfig,
        now: Time,
    ) -> Option<CountdownResponse> {
        let (length_ms, asked) = self.asked.take()?;
        Some(match (outcome, length_ms) {
            (Outcome::Done(0), 0) => {
                self.until = None;
                let copy_ms = config.copy_ms;
                self.not_before = (copy_ms > 0).then(|| now.plus_ms(copy_ms));
                self.arriving = self.arriving.filter(|at| now < *at);
                if self.arriving.is_none() {
                    self.may_run = None;
                    self.unsettled = false;
                }
                CountdownResponse::Disarmed(self.arriving)
            }
            (Outcome::Done(granted_ms @ 1..), 1..) => {
                self.failures = 0;
                self.unsettled = false;
                let length_ms = i64::try_from(length_ms.min(*granted_ms)).unwrap_or(i64::MAX);
                let margin_ms = margin_ms(config.countdown_ms);
                self.until = Some(asked.plus_ms(length_ms - margin_ms));
                let held = std::mem::take(&mut self.held);
                CountdownResponse::Armed { held, asked }
            }
            (Outcome::Done(1..) | Outcome::Unknown, 0) => {
                self.until = None;
                self.not_before = Some(now.plus_ms(config.absence_ms));
                CountdownResponse::MayBeDisarmed
            }
            (Outcome::Refused(_), 0) => CountdownResponse::StillArmed,
            // A countdown of zero means disarmed.
            (Outcome::Done(0) | Outcome::Refused(_) | Outcome::Unknown, _) => {
                self.failures += 1;
                let arriving = asked.plus_ms(config.absence_ms);
                self.arriving = self.arriving.max(Some(arriving));
                CountdownResponse::Failed {
                    is_tired: self.failures >= TRIES_MAX,
                    is_uncovered: self.until.is_none(),
                }
            }
        })
    }

    /// Decides what is done when a renewal is due: it is renewed while orders rest and the runtime
    /// is healthy. The countdown of a symbol is disarmed after a whole renewal interval without
    /// orders. Otherwise a strategy that only replaces its orders would have to wait for the next
    /// countdown.
    pub fn renew(&mut self, facts: &Renewal) -> RenewalStep {
        let (now, keeps) = (facts.now, facts.keeps_orders);
        let is_armed = self.until.is_some();
        let may_idle = !self.idle && self.until.is_some_and(|until| facts.next < until);
        let may_idle = may_idle || is_armed && !facts.knows_predecessor_orders;
        if self.has_waiting_orders() {
            if facts.is_healthy {
                RenewalStep::Arm
            } else {
                RenewalStep::Refuse
            }
        } else if !facts.rests && !keeps && may_idle && !planted!(LetGoResting) {
            self.idle = true;
            RenewalStep::Idle
        } else if !facts.rests || keeps {
            // Disarm again: if the first disarm was lost, a live countdown would cancel orders that
            // are kept. It would also cancel orders of outside parties when no own order needs it.
            if is_armed || self.may_run(now) && (keeps || self.unsettled) {
                RenewalStep::Disarm
            } else {
                RenewalStep::Nothing
            }
        } else if facts.are_all_stopped {
            RenewalStep::Wait
        } else if facts.is_healthy {
            // Armed even without a running countdown: an order may have arrived after its countdown
            // ran out.
            RenewalStep::Arm
        } else {
            RenewalStep::Withhold { is_armed }
        }
    }

    /// Whether the countdown was not renewed in time.
    pub fn expire(&mut self, now: Time) -> bool {
        let over = self.until.is_some_and(|until| now >= until);
        let lapses = over && !planted!(LapsedStillCovers);
        if lapses {
            self.until = None;
        }
        lapses
    }
}

/// Safety margin in milliseconds: the engine's cover ends this long before the venue's countdown.
pub(crate) const fn margin_ms(countdown_ms: i64) -> i64 {
    let tenth = countdown_ms / 10;
    if tenth < 2_000 { tenth } else { 2_000 }
}
