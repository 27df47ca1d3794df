//! The dead man's switch: `countdownCancelAll` (docs/interface/futures.md#countdowncancelall) for
//! each futures symbol. The venue confirms it before the first order of a symbol is sent, and the
//! engine renews it only on evidence of health (`docs/promises.md#4-dead-mans-switch`).
//!
//! An order for a symbol that is not covered is held until the venue has confirmed the countdown.
//! The engine counts from the moment when it sends the request, so that the venue's countdown never
//! ends before the engine's.

use serde::{Deserialize, Serialize};
use windvane_model::doubt::Doubt;
use windvane_model::effect::{Effect, HeartbeatNotice, Notice};
use windvane_model::ids::{InstrumentId, OrderSeq, Time};
use windvane_model::order::{NewOrder, Surface};
use windvane_model::order_state::OrderMove;
use windvane_model::orders::Order;
use windvane_model::planted;
use windvane_model::protocol::{Outcome, Refusal, Request};
use windvane_model::refusal::Blame;
use windvane_model::run_state::Latch;
use windvane_model::timer::Timer;

use super::Engine;
use super::replies::AFTER_WAIT_MS;

/// Number of tries to arm a countdown before the waiting orders are refused.
const TRIES_MAX: u32 = 3;
/// Time after a failed try.
const RETRY_MS: i64 = 500;
/// How often a withheld renewal is checked again.
const WITHHELD_MS: i64 = 1_000;
/// Time after a failed try, while no order waits and none is covered.
const UNCOVERED_MS: i64 = 5_000;
/// The longest pause while the venue keeps refusing. The pause is half of the time since the first
/// refusal.
const REFUSED_MAX_MS: i64 = 10_000;
/// The longest time that an order waits until a countdown can be armed again after a disarm. If it
/// would take longer, the order is refused at once.
const PATIENCE_MS: i64 = 7_000;
/// An order that waited for this long is not sent, because the market may have changed since. Time
/// in which no countdown can be armed is not counted.
const STALE_MS: i64 = 3_000;

/// Why an order that waited for cover was taken back without being sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum NotCovered {
    /// The venue accepts no request.
    VenueWait,
    /// The last countdown was disarmed, and the next one can be armed only after a long time.
    LettingGo,
    /// The venue did not arm the countdown.
    Failed,
    /// The countdown was armed late.
    Late,
    /// The account is degraded.
    Doubt,
    /// The watchdog process of spot orders did not answer.
    Watchdog,
}

impl NotCovered {
    const fn reason(self) -> &'static str {
        match self {
            Self::VenueWait => {
                "the venue takes no request, because a limit was exceeded; windvane status says for \
                 how long"
            }
            Self::LettingGo => {
                "the countdown of the symbol was stopped, and the venue may still receive a copy of \
                 that request: no countdown can be armed soon enough for this order"
            }
            Self::Failed => "the venue did not arm the countdown of the symbol",
            Self::Late => "the countdown of the symbol was armed too late for this order",
            Self::Doubt => {
                "the state of the account is in doubt, and no countdown is armed then; windvane \
                 status names the doubt"
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
pub enum KeptBack {
    /// It ended while it waited.
    Ended,
    /// It was cancelled.
    TakenBack,
    /// The run or the strategy was halted.
    Halted,
    /// It waited too long.
    Late,
    /// The countdown of its symbol ran out.
    Uncovered,
}

impl KeptBack {
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
pub(super) struct Countdown {
    /// Orders are covered until this time.
    until: Option<Time>,
    /// The request in flight: its length in milliseconds and when it was sent.
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

impl Countdown {
    /// Whether no countdown runs at the venue, as far as is known, and no request is in flight.
    pub(super) fn is_off(&self, now: Time) -> bool {
        self.until.is_none() && self.asked.is_none() && !self.may_run(now)
    }

    fn may_run(&self, now: Time) -> bool {
        self.may_run.is_some_and(|until| now < until)
    }

    /// Takes over the countdown of the previous process. If that process was disarming, or had just
    /// done so, the pause continues. Its countdown still runs. Deadlines that have passed are
    /// dropped.
    pub(super) fn inherit(&mut self, old: &Self, now: Time, absence_ms: i64) {
        let letting_go = old.asked.is_some_and(|(length_ms, _)| length_ms == 0);
        let not_before = letting_go.then(|| now.plus_ms(absence_ms));
        let in_force = |at: Option<Time>| at.filter(|at| now < *at);
        self.not_before = not_before.max(in_force(old.not_before));
        self.may_run = old.may_run;
        let under_way = old.asked.filter(|(length_ms, _)| *length_ms > 0);
        let arriving = under_way.map(|(_, asked)| asked.plus_ms(absence_ms));
        self.arriving = arriving.max(in_force(old.arriving));
    }

    /// Moves the deadlines of an earlier process to a later time by this process's clock.
    pub(super) fn end_later(&mut self, by_ms: i64) {
        for at in [&mut self.not_before, &mut self.may_run, &mut self.arriving] {
            *at = at.map(|at| at.plus_ms(by_ms));
        }
    }

    /// Whether no countdown can be armed within this time, because one was just disarmed.
    fn is_barred(&self, now: Time, ms: i64) -> bool {
        let barred = self.not_before.is_some_and(|at| now.plus_ms(ms) < at);
        barred && !planted!(PlaceBeforeArmed)
    }

    fn covers(&self, now: Time) -> bool {
        let looked_at = !planted!(LapsedStillCovers);
        self.until.is_some_and(|until| now < until || !looked_at)
    }
}

impl Engine {
    /// Orders that wait until the countdown of their symbol is armed. For display only: no rule
    /// reads it.
    pub fn countdown_waits(&self) -> Vec<CountdownWait> {
        let countdowns = self.live.iter().flat_map(|live| &live.countdowns);
        let waits = countdowns.enumerate().filter_map(|(index, countdown)| {
            let held = countdown.held.iter();
            let submitted = held.filter_map(|(seq, _)| Some(self.orders.live(*seq)?.submitted));
            Some(CountdownWait {
                instrument: InstrumentId(index as u16),
                orders: countdown.held.len(),
                since: submitted.min()?,
                barred_until: countdown.not_before.filter(|at| self.now < *at),
            })
        });
        waits.collect()
    }

    /// Until when the orders of an instrument are covered; `None` while its countdown is not armed,
    /// or on spot while no watchdog process covers it.
    pub fn covered_until(&self, instrument: InstrumentId) -> Option<Time> {
        let live = self.live.as_ref()?;
        if self.instrument(instrument)?.surface == Surface::Spot {
            return live.watchdog.until();
        }
        live.countdowns.get(usize::from(instrument.0))?.until
    }

    /// Whether an order that waited may be sent at time `now`, which may be later than the last
    /// input. It must be covered, must have been covered all the time, and must still be wanted. An
    /// order whose cover ran out meanwhile counts as lost: the venue might report it missing while
    /// it is still in flight.
    pub fn may_leave(&self, order: &NewOrder, now: Time) -> bool {
        self.kept_back(order, now).is_none()
    }

    /// Why an order that waited for the journal must not be sent; `None` if it may be sent.
    pub fn kept_back(&self, order: &NewOrder, now: Time) -> Option<KeptBack> {
        let own = order.client_order_id.parse_own();
        let Some(known) = own.and_then(|(.., seq)| self.orders.live(seq)) else {
            return Some(KeptBack::Ended);
        };
        if self.live.is_none() || planted!(PlaceBeforeArmed) {
            return None;
        }
        if self.is_unwanted(known) {
            // A halt cancels waiting orders.
            let halted = self.is_stopped(known);
            return Some(if halted {
                KeptBack::Halted
            } else {
                KeptBack::TakenBack
            });
        }
        let instrument = order.terms.instrument;
        let futures = self.surface_of(instrument) == Surface::Futures;
        let runs = |until: Time| now < until || planted!(LapsedStillCovers);
        let needs_cover = futures && !self.only_reduces(&known.terms);
        let covered = !needs_cover || self.covered_until(instrument).is_some_and(runs);
        if !covered || known.lost.is_some() {
            return Some(KeptBack::Uncovered);
        }
        self.is_stale(known.seq, now).then_some(KeptBack::Late)
    }

    /// Whether an order waited too long to be sent.
    fn is_stale(&self, seq: OrderSeq, now: Time) -> bool {
        let Some(order) = self.orders.live(seq) else {
            return false;
        };
        let countdown = self.countdown(order.instrument());
        let barred_until = countdown.and_then(|it| it.not_before);
        let since = barred_until.max(Some(order.submitted));
        since.is_some_and(|since| now >= since.plus_ms(STALE_MS))
    }

    fn countdown(&self, instrument: InstrumentId) -> Option<&Countdown> {
        let countdowns = &self.live.as_ref()?.countdowns;
        countdowns.get(usize::from(instrument.0))
    }

    /// Whether an order was taken back, or its strategy may no longer send orders.
    fn is_unwanted(&self, order: &Order) -> bool {
        let state = &self.strategies[usize::from(order.strategy.0)];
        let closing = state.flattening.is_some();
        let halted = self.halted() || state.latch == Latch::Halted || state.fault.is_some();
        order.cancel_wanted || halted && !closing
    }

    /// Sends a new order, or holds it until its symbol is covered.
    pub(super) fn send_or_hold(&mut self, seq: OrderSeq, record: u64) {
        let Some(order) = self.orders.live(seq) else {
            return;
        };
        let (instrument, now) = (order.instrument(), self.now);
        let surface = self.surface_of(instrument);
        if self.venue_wait(surface).is_some() {
            self.refuse_unsent(seq, NotCovered::VenueWait);
            return;
        }
        if self.is_watched(surface) {
            self.send_or_hold_spot(seq, record);
            return;
        }
        let futures = surface == Surface::Futures;
        let live = self.live.as_ref();
        let healthy = live.is_some_and(|live| live.healthy(surface, now));
        let needs_none =
            self.needs_no_countdown(order) || healthy && self.only_reduces(&order.terms);
        let Some(live) = self.live.as_mut().filter(|_| futures && !needs_none) else {
            self.send_order(seq, record);
            return;
        };
        let countdown = &mut live.countdowns[usize::from(instrument.0)];
        if countdown.covers(now) && countdown.held.is_empty() {
            self.send_order(seq, record);
            return;
        }
        if planted!(PlaceBeforeArmed) {
            self.send_order(seq, record);
            self.arm(instrument);
            return;
        }
        if countdown.is_barred(now, PATIENCE_MS) {
            self.refuse_unsent(seq, NotCovered::LettingGo);
            return;
        }
        countdown.held.push((seq, record));
        let healthy = live.healthy(Surface::Futures, now) || planted!(RenewUnhealthy);
        if let Some(order) = self.orders.known_mut(seq) {
            order.held = true;
        }
        if healthy {
            self.arm(instrument);
        } else {
            // No countdown is armed while degraded: the order waits a moment for health, or is
            // refused.
            let at = now.plus_ms(WITHHELD_MS);
            self.timers.set(at, Timer::Renew { instrument });
        }
    }

    pub(super) fn send_order(&mut self, seq: OrderSeq, record: u64) {
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        order.held = false;
        let (instrument, request) = (order.instrument(), Request::Place(order.request()));
        self.emit(Effect::Send {
            record,
            request: Box::new(request),
        });
        self.end_idling(instrument);
    }

    /// Renews a countdown that was about to be disarmed: an order needs it.
    fn end_idling(&mut self, instrument: InstrumentId) {
        let Some(live) = &mut self.live else { return };
        let countdown = &mut live.countdowns[usize::from(instrument.0)];
        if std::mem::take(&mut countdown.idle) {
            self.timers.set(self.now, Timer::Renew { instrument });
        }
    }

    /// Takes back an order that was held: nothing was sent.
    pub(super) fn take_back(&mut self, seq: OrderSeq, mv: OrderMove) {
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let (instrument, before) = (order.instrument(), order.state);
        order.held = false;
        if let Some(live) = &mut self.live {
            let countdown = &mut live.countdowns[usize::from(instrument.0)];
            countdown.held.retain(|(held, _)| *held != seq);
            live.watchdog.forget_held(seq);
        }
        self.move_order(seq, mv, before, false);
    }

    /// Refuses an order that was not sent.
    pub(super) fn refuse_unsent(&mut self, seq: OrderSeq, why: NotCovered) {
        self.note_not_placed(seq, &Refusal::not_sent(why.reason()));
        self.take_back(seq, OrderMove::Reject);
    }

    /// Arms or renews the countdown of a symbol, unless a request for it is in flight.
    fn arm(&mut self, instrument: InstrumentId) {
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        let countdown_ms = live.config.countdown_ms.unsigned_abs();
        let countdown = &mut live.countdowns[usize::from(instrument.0)];
        if let Some(not_before) = countdown.not_before.filter(|at| now < *at) {
            self.timers.set(not_before, Timer::Renew { instrument });
            return;
        }
        self.ask_countdown(instrument, countdown_ms);
    }

    /// Requests the countdown of a symbol that the venue did not arm before. Returns whether the
    /// request was possible.
    pub(super) fn arm_on_trial(&mut self, instrument: InstrumentId) -> bool {
        let now = self.now;
        let is_free = self.live.as_ref().is_some_and(|live| {
            let countdown = live.countdowns.get(usize::from(instrument.0));
            let asked = countdown.is_some_and(|it| it.asked.is_some());
            live.healthy(Surface::Futures, now) && !live.stopping && !asked
        });
        let can = is_free && !self.is_letting_go(instrument);
        if can {
            self.arm(instrument);
        }
        can
    }

    fn ask_countdown(&mut self, instrument: InstrumentId, countdown_ms: u64) {
        let now = self.now;
        let wait = self.venue_wait(Surface::Futures);
        let Some(live) = &mut self.live else { return };
        let countdown = &mut live.countdowns[usize::from(instrument.0)];
        if countdown.asked.is_some() {
            return;
        }
        if let Some(until) = wait {
            let at = until.plus_ms(AFTER_WAIT_MS);
            self.timers.set(at, Timer::Renew { instrument });
            return;
        }
        countdown.asked = Some((countdown_ms, now));
        countdown.idle = false;
        countdown.unsettled = true;
        let mut record = 0;
        if countdown_ms == 0 {
            // No order may count on a countdown that is about to stop. The next process must know
            // that one ran, because this disarm request may arrive after it has armed its own.
            countdown.until = None;
            record = self.records();
        } else {
            let length_ms = i64::try_from(countdown_ms).unwrap_or(i64::MAX);
            let ends = now.plus_ms(live.config.absence_ms).plus_ms(length_ms);
            countdown.may_run = Some(ends);
        }
        self.emit(Effect::Send {
            record,
            request: Box::new(Request::Countdown {
                instrument,
                countdown_ms,
            }),
        });
    }

    pub(super) fn handle_countdown(&mut self, instrument: InstrumentId, outcome: &Outcome<u64>) {
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        let renew_ms = live.config.renew_ms;
        let (absence_ms, copy_ms) = (live.config.absence_ms, live.config.copy_ms);
        let margin_ms = margin_ms(live.config.countdown_ms);
        let Some(countdown) = live.countdowns.get_mut(usize::from(instrument.0)) else {
            return;
        };
        let Some((length_ms, asked)) = countdown.asked.take() else {
            return;
        };
        match (outcome, length_ms) {
            (Outcome::Done(0), 0) => {
                countdown.until = None;
                countdown.not_before = (copy_ms > 0).then(|| now.plus_ms(copy_ms));
                countdown.arriving = countdown.arriving.filter(|at| now < *at);
                let arriving = countdown.arriving;
                if arriving.is_none() {
                    countdown.may_run = None;
                    countdown.unsettled = false;
                }
                self.refuse_barred(instrument);
                if let Some(arriving) = arriving.filter(|_| !self.is_waited_for(instrument)) {
                    // An abandoned request may still arm the countdown again.
                    self.timers.set(arriving, Timer::Renew { instrument });
                    return;
                }
            }
            (Outcome::Done(granted_ms @ 1..), 1..) => {
                countdown.failures = 0;
                countdown.unsettled = false;
                let was_blocked = self.trading.lacks_countdown(instrument);
                let length_ms = i64::try_from(length_ms.min(*granted_ms)).unwrap_or(i64::MAX);
                countdown.until = Some(asked.plus_ms(length_ms - margin_ms));
                let held = std::mem::take(&mut countdown.held);
                let blind = !live.sees(Surface::Futures);
                self.notices.push_back(Notice::Heartbeat {
                    time: now,
                    instrument,
                    what: HeartbeatNotice::Renewed,
                });
                self.trust_countdown(instrument);
                if was_blocked {
                    self.countdown_is_armed(instrument);
                }
                if !planted!(ForgetToRenew) {
                    let due = if self.keeps_orders() {
                        now
                    } else {
                        asked.plus_ms(renew_ms).max(now)
                    };
                    self.timers.set(due, Timer::Renew { instrument });
                }
                for (seq, record) in held {
                    // The strategy decided on a state that is degraded now
                    // (`docs/promises.md#5-blind-means-careful`), or too long ago.
                    let order = self.orders.live(seq);
                    let may_leave = order.is_none_or(|order| self.may_still_leave(order));
                    if blind || !may_leave {
                        self.refuse_unsent(seq, NotCovered::Doubt);
                    } else if self.is_stale(seq, now) {
                        self.refuse_unsent(seq, NotCovered::Late);
                    } else {
                        self.send_order(seq, record);
                    }
                }
                return;
            }
            (Outcome::Done(1..) | Outcome::Unknown, 0) => {
                countdown.until = None;
                countdown.not_before = Some(now.plus_ms(absence_ms));
                self.refuse_barred(instrument);
            }
            (Outcome::Refused(_), 0) => {}
            // A countdown of zero means disarmed.
            (Outcome::Done(0) | Outcome::Refused(_) | Outcome::Unknown, _) => {
                countdown.failures += 1;
                let tired = countdown.failures >= TRIES_MAX;
                let uncovered = countdown.until.is_none();
                let arriving = asked.plus_ms(absence_ms);
                countdown.arriving = countdown.arriving.max(Some(arriving));
                self.notices.push_back(Notice::Heartbeat {
                    time: now,
                    instrument,
                    what: HeartbeatNotice::Failed,
                });
                if tired || uncovered {
                    self.doubt_countdown(instrument);
                }
                if tired {
                    self.refuse_held(instrument, NotCovered::Failed);
                    match outcome {
                        Outcome::Refused(refusal) if refusal.is_not_sent() => {}
                        // The key's trading block already reports this, because cancels and closes
                        // fail too.
                        Outcome::Refused(refusal) if refusal.blame() == Blame::Key => {}
                        Outcome::Refused(refusal) => {
                            self.block_for_countdown(instrument, refusal.code);
                        }
                        _ => self.block_for_countdown(instrument, 0),
                    }
                }
            }
        }
        let is_refused = matches!(outcome, Outcome::Refused(refusal) if !refusal.is_not_sent());
        let refused_since = self.countdown_refused_since(instrument);
        let lasting_ms = refused_since.filter(|_| is_refused);
        let lasting_ms = lasting_ms.map_or(0, |since| now.millis() - since.millis());
        let pause_ms = self.retry_ms(instrument);
        let pause_ms = pause_ms.max((lasting_ms / 2).min(REFUSED_MAX_MS));
        self.timers
            .set(now.plus_ms(pause_ms), Timer::Renew { instrument });
    }

    /// The pause before the next try. Nothing is urgent if no order waits and no countdown runs.
    fn retry_ms(&self, instrument: InstrumentId) -> i64 {
        let countdowns = self.live.as_ref().map(|live| &live.countdowns);
        let countdown = countdowns.and_then(|all| all.get(usize::from(instrument.0)));
        let urgent = countdown.is_some_and(|it| !it.held.is_empty() || it.until.is_some());
        if urgent || self.keeps_orders() || self.may_rest(instrument) {
            RETRY_MS
        } else {
            UNCOVERED_MS
        }
    }

    /// Whether orders wait for the countdown.
    fn is_waited_for(&self, instrument: InstrumentId) -> bool {
        let live = self.live.as_ref();
        let countdown = live.and_then(|live| live.countdowns.get(usize::from(instrument.0)));
        countdown.is_some_and(|it| !it.held.is_empty())
    }

    /// Sets the degraded reason of a countdown, if orders rest. It holds until the venue confirms a
    /// countdown or nothing rests.
    fn doubt_countdown(&mut self, instrument: InstrumentId) {
        if self.may_rest(instrument) {
            self.set_doubt(Doubt::Countdown(instrument), true);
            self.update_state();
        }
    }

    fn trust_countdown(&mut self, instrument: InstrumentId) {
        self.set_doubt(Doubt::Countdown(instrument), false);
        self.update_state();
    }

    /// Whether orders of an instrument rest at the venue, as far as is known.
    fn may_rest(&self, instrument: InstrumentId) -> bool {
        self.orders
            .iter()
            .any(|order| order.instrument() == instrument && !order.held)
    }

    /// Whether every resting order was stopped by a halt, a quarantine or the end of the run.
    fn are_all_stopped(&self, instrument: InstrumentId) -> bool {
        let mut resting = self
            .orders
            .iter()
            .filter(|order| order.instrument() == instrument && !order.held);
        resting.all(|order| self.is_stopped(order))
    }

    fn refuse_barred(&mut self, instrument: InstrumentId) {
        let live = self.live.as_ref();
        let countdown = live.and_then(|live| live.countdowns.get(usize::from(instrument.0)));
        if countdown.is_some_and(|it| it.is_barred(self.now, PATIENCE_MS)) {
            self.refuse_held(instrument, NotCovered::LettingGo);
        }
    }

    /// Whether a symbol's countdown is being disarmed, or was just disarmed: a new order would be
    /// refused.
    pub(super) fn is_letting_go(&self, instrument: InstrumentId) -> bool {
        let live = self.live.as_ref();
        let countdown = live.and_then(|live| live.countdowns.get(usize::from(instrument.0)));
        countdown.is_some_and(|it| {
            let asked = it.asked.is_some_and(|(length_ms, _)| length_ms == 0);
            asked || it.is_barred(self.now, 0)
        })
    }

    /// Refuses the orders that wait for a countdown, without sending them. They must not wait for
    /// ever for a countdown that cannot be armed.
    fn refuse_held(&mut self, instrument: InstrumentId, why: NotCovered) {
        let Some(live) = &mut self.live else { return };
        let countdown = &mut live.countdowns[usize::from(instrument.0)];
        countdown.failures = 0;
        for (seq, _) in std::mem::take(&mut countdown.held) {
            self.refuse_unsent(seq, why);
        }
    }

    /// Refuses all orders that wait for a countdown: nothing may be sent.
    pub(super) fn refuse_all_held(&mut self) {
        for index in 0..self.instruments.len() {
            let instrument = InstrumentId(index as u16);
            if self.is_waited_for(instrument) {
                self.refuse_held(instrument, NotCovered::VenueWait);
            }
        }
    }

    /// Handles a renewal that is due: renews while orders rest and the runtime is healthy. The
    /// countdown of a symbol is disarmed after a whole renewal interval without orders. Otherwise a
    /// strategy that only replaces its orders would have to wait for the next countdown.
    pub(super) fn renew(&mut self, instrument: InstrumentId) {
        let now = self.now;
        let sent = self.may_rest(instrument) && !planted!(LetGoResting);
        let Some(live) = &mut self.live else { return };
        let healthy = live.healthy(Surface::Futures, now) || planted!(RenewUnhealthy);
        let healthy = healthy && !(planted!(BlockStopsHeartbeats) && self.trading.blocks_any());
        let index = usize::from(instrument.0);
        let Some(countdown) = live.countdowns.get(index) else {
            return;
        };
        let (armed, waited_for) = (countdown.until.is_some(), !countdown.held.is_empty());
        let unsettled = countdown.unsettled;
        let may_run = countdown.may_run(now);
        let knows = live.knows_predecessors(Surface::Futures);
        let next = now.plus_ms(live.config.renew_ms);
        let may_idle = !countdown.idle && countdown.until.is_some_and(|until| next < until);
        let keeps = self.keeps_orders();
        if waited_for && healthy {
            self.arm(instrument);
        } else if waited_for {
            self.refuse_held(instrument, NotCovered::Doubt);
            // Resting orders still depend on the countdown: it is renewed once the run is healthy
            // again.
            self.timers
                .set(now.plus_ms(WITHHELD_MS), Timer::Renew { instrument });
        } else if !sent && !keeps && (may_idle || armed && !knows) && !planted!(LetGoResting) {
            if let Some(live) = &mut self.live {
                live.countdowns[index].idle = true;
            }
            self.timers.set(next, Timer::Renew { instrument });
        } else if !sent || keeps {
            // Disarm again: if the first disarm was lost, a live countdown would cancel orders that
            // are kept. It would also cancel orders of outside parties when no own order needs it.
            if armed || may_run && (keeps || unsettled) {
                self.ask_countdown(instrument, 0);
            }
        } else if self.are_all_stopped(instrument) {
            // Their cancels may be lost: the countdown then runs out and cancels the orders anyway.
            self.timers
                .set(now.plus_ms(WITHHELD_MS), Timer::Renew { instrument });
        } else if healthy {
            // Armed even without a running countdown: an order may have arrived after its countdown
            // ran out.
            self.arm(instrument);
        } else {
            if armed {
                self.notices.push_back(Notice::Heartbeat {
                    time: now,
                    instrument,
                    what: HeartbeatNotice::Withheld,
                });
            }
            self.timers
                .set(now.plus_ms(WITHHELD_MS), Timer::Renew { instrument });
        }
    }

    /// Checks for countdowns that were not renewed in time. The venue may have cancelled the
    /// resting orders, so each order of the symbol is unknown until it was queried.
    pub(super) fn watch_countdowns(&mut self) {
        let now = self.now;
        for doubt in self.doubts() {
            if let Doubt::Countdown(instrument) = doubt
                && !self.may_rest(instrument)
            {
                self.trust_countdown(instrument);
            }
        }
        let Some(live) = &mut self.live else { return };
        let mut lapsed = Vec::new();
        for (index, countdown) in live.countdowns.iter_mut().enumerate() {
            let over = countdown.until.is_some_and(|until| now >= until);
            if over && !planted!(LapsedStillCovers) {
                countdown.until = None;
                lapsed.push(InstrumentId(index as u16));
            }
        }
        for instrument in lapsed {
            self.notices.push_back(Notice::Heartbeat {
                time: now,
                instrument,
                what: HeartbeatNotice::Lapsed,
            });
            self.doubt_countdown(instrument);
            let of_symbol = self
                .orders
                .iter()
                .filter(|order| order.instrument() == instrument && !order.held);
            for seq in of_symbol.map(|order| order.seq).collect::<Vec<_>>() {
                self.lose(seq);
                self.ask_for_order(seq);
            }
            self.timers
                .set(now.plus_ms(WITHHELD_MS), Timer::Renew { instrument });
        }
    }

    /// Covers the resting orders when a run becomes ready, including adopted ones.
    pub(super) fn arm_what_rests(&mut self) {
        self.beat();
        for index in 0..self.instruments.len() {
            let instrument = InstrumentId(index as u16);
            if self.surface_of(instrument) == Surface::Futures {
                self.renew(instrument);
            }
        }
    }

    /// Disarms every countdown: orders stay open when the run ends.
    pub(super) fn let_all_go(&mut self) {
        for index in 0..self.instruments.len() {
            let instrument = InstrumentId(index as u16);
            let live = self.live.as_ref();
            let countdown = live.and_then(|live| live.countdowns.get(index));
            if countdown.is_some_and(|it| it.may_run(self.now)) {
                self.ask_countdown(instrument, 0);
            }
        }
    }
}

/// Safety margin in milliseconds: the engine's cover ends this long before the venue's countdown.
pub(super) const fn margin_ms(countdown_ms: i64) -> i64 {
    let tenth = countdown_ms / 10;
    if tenth < 2_000 { tenth } else { 2_000 }
}
