//! The dead man's switch: `countdownCancelAll` (docs/interface/futures.md#countdowncancelall) for
//! each futures symbol. The venue confirms it before the first order of a symbol is sent, apart from
//! market orders that can only reduce a position. The engine renews it only on evidence of health
//! (`docs/promises.md#4-dead-mans-switch`).
//!
//! An order for a symbol that is not covered is held until the venue has confirmed the countdown.
//! The engine counts from the moment when it sends the request, so that the venue's countdown never
//! ends before the engine's.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::{Effect, HeartbeatNotice, Notice};
use windvane_model::ids::{InstrumentId, OrderSeq, Time};
use windvane_model::order::{NewOrder, Surface};
use windvane_model::order_state::OrderMove;
use windvane_model::orders::Order;
use windvane_model::planted;
use windvane_model::protocol::{Outcome, Refusal, Request};
use windvane_model::refusal::Blame;
use windvane_model::run_state::KillSwitch;
use windvane_model::timer::Timer;
use windvane_supervision::countdown::{
    Countdown, CountdownResponse, CountdownWait, Renewal, RenewalStep, UnsentReason, WithheldReason,
};

use super::Engine;
use super::replies::AFTER_WAIT_MS;

/// Pause after a failed try to arm a countdown.
const RETRY_MS: i64 = 500;
/// Pause before the engine checks again whether it may arm or renew a countdown.
const WITHHELD_MS: i64 = 1_000;
/// The pause before that check while no order waits for the countdown and no order can rest under
/// it.
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

impl Engine {
    /// Orders that wait until the countdown of their symbol is armed. For display only: no rule
    /// reads it.
    pub fn countdown_waits(&self) -> Vec<CountdownWait> {
        let countdowns = self.live.iter().flat_map(|live| &live.countdowns);
        let waits = countdowns.enumerate().filter_map(|(index, countdown)| {
            let held = countdown.held();
            let submitted = held.filter_map(|seq| Some(self.orders.live(seq)?.submitted));
            Some(CountdownWait {
                instrument: InstrumentId(index as u16),
                orders: countdown.held().count(),
                since: submitted.min()?,
                barred_until: countdown.not_before().filter(|at| self.now < *at),
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
        live.countdowns.get(usize::from(instrument.0))?.until()
    }

    /// Whether an order that waited may be sent at time `now`, which may be later than the last
    /// input. It must be covered, must have been covered all the time, and must still be wanted. An
    /// order whose cover ran out meanwhile counts as lost: the venue might report it missing while
    /// it is still in flight.
    pub fn may_send_now(&self, order: &NewOrder, now: Time) -> bool {
        self.withheld_reason(order, now).is_none()
    }

    /// Why an order that waited for the journal must not be sent; `None` if it may be sent.
    pub fn withheld_reason(&self, order: &NewOrder, now: Time) -> Option<WithheldReason> {
        let own = order.client_order_id.parse_own();
        let Some(known) = own.and_then(|(.., seq)| self.orders.live(seq)) else {
            return Some(WithheldReason::Ended);
        };
        if self.live.is_none() || planted!(PlaceBeforeArmed) {
            return None;
        }
        if self.is_unwanted(known) {
            // A halt cancels waiting orders.
            let halted = self.is_stopped(known);
            return Some(if halted {
                WithheldReason::Halted
            } else {
                WithheldReason::TakenBack
            });
        }
        let instrument = order.terms.instrument;
        let futures = self.surface_of(instrument) == Surface::Futures;
        let runs = |until: Time| now < until || planted!(LapsedStillCovers);
        let needs_cover = futures && !self.only_reduces(&known.terms);
        let covered = !needs_cover || self.covered_until(instrument).is_some_and(runs);
        if !covered || known.lost.is_some() {
            return Some(WithheldReason::Uncovered);
        }
        self.is_stale(known.seq, now)
            .then_some(WithheldReason::Late)
    }

    /// Whether an order waited too long to be sent.
    fn is_stale(&self, seq: OrderSeq, now: Time) -> bool {
        let Some(order) = self.orders.live(seq) else {
            return false;
        };
        let countdown = self.countdown(order.instrument());
        let barred_until = countdown.and_then(Countdown::not_before);
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
        let halted =
            self.halted() || state.kill_switch == KillSwitch::Halted || state.fault.is_some();
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
            self.refuse_unsent(seq, UnsentReason::VenueWait);
            return;
        }
        if self.is_watched(surface) {
            self.send_or_hold_spot(seq, record);
            return;
        }
        let futures = surface == Surface::Futures;
        let live = self.live.as_ref();
        let healthy = live.is_some_and(|live| live.is_healthy(surface, now));
        let needs_none =
            self.needs_no_countdown(order) || healthy && self.only_reduces(&order.terms);
        let Some(live) = self.live.as_mut().filter(|_| futures && !needs_none) else {
            self.send_order(seq, record);
            return;
        };
        let countdown = &mut live.countdowns[usize::from(instrument.0)];
        if countdown.is_free(now) {
            self.send_order(seq, record);
            return;
        }
        if planted!(PlaceBeforeArmed) {
            self.send_order(seq, record);
            self.arm(instrument);
            return;
        }
        if countdown.is_barred(now, PATIENCE_MS) {
            self.refuse_unsent(seq, UnsentReason::Disarming);
            return;
        }
        countdown.hold(seq, record);
        let healthy = live.is_healthy(Surface::Futures, now) || planted!(RenewUnhealthy);
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
        if countdown.end_idling() {
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
            countdown.forget_held(seq);
            live.watchdog.forget_held(seq);
        }
        self.move_order(seq, mv, before, false);
    }

    /// Refuses an order that was not sent.
    pub(super) fn refuse_unsent(&mut self, seq: OrderSeq, why: UnsentReason) {
        self.note_not_placed(seq, &Refusal::not_sent(why.reason()));
        self.take_back(seq, OrderMove::Reject);
    }

    /// Arms or renews the countdown of a symbol, unless a request for it is in flight.
    fn arm(&mut self, instrument: InstrumentId) {
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        let countdown_ms = live.config.countdown_ms.unsigned_abs();
        let countdown = &mut live.countdowns[usize::from(instrument.0)];
        if let Some(not_before) = countdown.not_before().filter(|at| now < *at) {
            self.timers.set(not_before, Timer::Renew { instrument });
            return;
        }
        self.ask_countdown(instrument, countdown_ms);
    }

    /// Requests the countdown of a symbol that the venue did not arm before. Returns whether the
    /// request was possible.
    pub(super) fn try_countdown(&mut self, instrument: InstrumentId) -> bool {
        let now = self.now;
        let is_free = self.live.as_ref().is_some_and(|live| {
            let countdown = live.countdowns.get(usize::from(instrument.0));
            let asked = countdown.is_some_and(Countdown::is_asked);
            live.is_healthy(Surface::Futures, now) && !live.stopping && !asked
        });
        let can = is_free && !self.is_disarming(instrument);
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
        if countdown.is_asked() {
            return;
        }
        if let Some(until) = wait {
            let at = until.plus_ms(AFTER_WAIT_MS);
            self.timers.set(at, Timer::Renew { instrument });
            return;
        }
        countdown.ask(countdown_ms, live.config.absence_ms, now);
        // The next process must know that a countdown ran, because a disarm request may arrive after
        // it has armed its own.
        let record = if countdown_ms == 0 { self.records() } else { 0 };
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
        let Some(countdown) = live.countdowns.get_mut(usize::from(instrument.0)) else {
            return;
        };
        let Some(answer) = countdown.take_answer(outcome, &live.config, now) else {
            return;
        };
        match answer {
            CountdownResponse::Disarmed(arriving) => {
                self.refuse_barred(instrument);
                if let Some(arriving) = arriving.filter(|_| !self.has_waiting_orders(instrument)) {
                    // An abandoned request may still arm the countdown again.
                    self.timers.set(arriving, Timer::Renew { instrument });
                    return;
                }
            }
            CountdownResponse::Armed { held, asked } => {
                let was_blocked = self.trading_status.lacks_countdown(instrument);
                let blind = !live.is_actionable(Surface::Futures);
                self.notices.push_back(Notice::Heartbeat {
                    time: now,
                    instrument,
                    what: HeartbeatNotice::Renewed,
                });
                self.clear_countdown_reason(instrument);
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
                    let may_send = order.is_none_or(|order| self.may_still_send(order));
                    if blind || !may_send {
                        self.refuse_unsent(seq, UnsentReason::Degraded);
                    } else if self.is_stale(seq, now) {
                        self.refuse_unsent(seq, UnsentReason::Late);
                    } else {
                        self.send_order(seq, record);
                    }
                }
                return;
            }
            CountdownResponse::MayBeDisarmed => self.refuse_barred(instrument),
            CountdownResponse::StillArmed => {}
            CountdownResponse::Failed {
                is_tired,
                is_uncovered,
            } => {
                self.notices.push_back(Notice::Heartbeat {
                    time: now,
                    instrument,
                    what: HeartbeatNotice::Failed,
                });
                if is_tired || is_uncovered {
                    self.degrade_for_countdown(instrument);
                }
                if is_tired {
                    self.refuse_held(instrument, UnsentReason::Failed);
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
        let urgent = self.countdown(instrument).is_some_and(Countdown::is_urgent);
        if urgent || self.keeps_orders() || self.may_rest(instrument) {
            RETRY_MS
        } else {
            UNCOVERED_MS
        }
    }

    /// Whether orders wait for the countdown.
    fn has_waiting_orders(&self, instrument: InstrumentId) -> bool {
        self.countdown(instrument)
            .is_some_and(Countdown::has_waiting_orders)
    }

    /// Sets the degraded reason of a countdown, if orders rest. It holds until the venue confirms a
    /// countdown or nothing rests.
    fn degrade_for_countdown(&mut self, instrument: InstrumentId) {
        if self.may_rest(instrument) {
            self.set_degraded(DegradedReason::Countdown(instrument), true);
            self.update_state();
        }
    }

    fn clear_countdown_reason(&mut self, instrument: InstrumentId) {
        self.set_degraded(DegradedReason::Countdown(instrument), false);
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
        let countdown = self.countdown(instrument);
        if countdown.is_some_and(|it| it.is_barred(self.now, PATIENCE_MS)) {
            self.refuse_held(instrument, UnsentReason::Disarming);
        }
    }

    /// Whether a symbol's countdown is being disarmed, or was just disarmed: a new order would be
    /// refused.
    pub(super) fn is_disarming(&self, instrument: InstrumentId) -> bool {
        let countdown = self.countdown(instrument);
        countdown.is_some_and(|it| it.is_disarming(self.now))
    }

    /// Refuses the orders that wait for a countdown, without sending them. They must not wait for
    /// ever for a countdown that cannot be armed.
    fn refuse_held(&mut self, instrument: InstrumentId, why: UnsentReason) {
        let Some(live) = &mut self.live else { return };
        let countdown = &mut live.countdowns[usize::from(instrument.0)];
        for (seq, _) in countdown.take_held() {
            self.refuse_unsent(seq, why);
        }
    }

    /// Refuses all orders that wait for a countdown: nothing may be sent.
    pub(super) fn refuse_all_held(&mut self) {
        for index in 0..self.instruments.len() {
            let instrument = InstrumentId(index as u16);
            if self.has_waiting_orders(instrument) {
                self.refuse_held(instrument, UnsentReason::VenueWait);
            }
        }
    }

    /// Handles a renewal that is due.
    pub(super) fn renew(&mut self, instrument: InstrumentId) {
        let now = self.now;
        let rests = self.may_rest(instrument) && !planted!(LetGoResting);
        let are_all_stopped = rests && self.are_all_stopped(instrument);
        let keeps_orders = self.keeps_orders();
        let blocks_any = self.trading_status.blocks_any();
        let Some(live) = &mut self.live else { return };
        let healthy = live.is_healthy(Surface::Futures, now) || planted!(RenewUnhealthy);
        let facts = Renewal {
            now,
            next: now.plus_ms(live.config.renew_ms),
            rests,
            are_all_stopped,
            is_healthy: healthy && !(planted!(BlockStopsHeartbeats) && blocks_any),
            keeps_orders,
            knows_predecessor_orders: live.knows_predecessor_orders(Surface::Futures),
        };
        let Some(countdown) = live.countdowns.get_mut(usize::from(instrument.0)) else {
            return;
        };
        match countdown.renew(&facts) {
            RenewalStep::Arm => self.arm(instrument),
            RenewalStep::Disarm => self.ask_countdown(instrument, 0),
            RenewalStep::Nothing => {}
            RenewalStep::Idle => self.timers.set(facts.next, Timer::Renew { instrument }),
            RenewalStep::Refuse => {
                self.refuse_held(instrument, UnsentReason::Degraded);
                self.check_countdown_later(instrument);
            }
            RenewalStep::Wait => self.check_countdown_later(instrument),
            RenewalStep::Withhold { is_armed } => {
                if is_armed {
                    self.notices.push_back(Notice::Heartbeat {
                        time: now,
                        instrument,
                        what: HeartbeatNotice::Withheld,
                    });
                }
                self.check_countdown_later(instrument);
            }
        }
    }

    fn check_countdown_later(&mut self, instrument: InstrumentId) {
        let at = self.now.plus_ms(WITHHELD_MS);
        self.timers.set(at, Timer::Renew { instrument });
    }

    /// Checks for countdowns that were not renewed in time. The venue may have cancelled the
    /// resting orders, so each order of the symbol is unknown until it was queried.
    pub(super) fn watch_countdowns(&mut self) {
        let now = self.now;
        for reason in self.degraded_reasons() {
            if let DegradedReason::Countdown(instrument) = reason
                && !self.may_rest(instrument)
            {
                self.clear_countdown_reason(instrument);
            }
        }
        let Some(live) = &mut self.live else { return };
        let mut lapsed = Vec::new();
        for (index, countdown) in live.countdowns.iter_mut().enumerate() {
            if countdown.expire(now) {
                lapsed.push(InstrumentId(index as u16));
            }
        }
        for instrument in lapsed {
            self.notices.push_back(Notice::Heartbeat {
                time: now,
                instrument,
                what: HeartbeatNotice::Lapsed,
            });
            self.degrade_for_countdown(instrument);
            let of_symbol = self
                .orders
                .iter()
                .filter(|order| order.instrument() == instrument && !order.held);
            for seq in of_symbol.map(|order| order.seq).collect::<Vec<_>>() {
                self.mark_unknown(seq);
                self.ask_for_order(seq);
            }
            self.timers
                .set(now.plus_ms(WITHHELD_MS), Timer::Renew { instrument });
        }
    }

    /// Covers the resting orders when a run becomes ready, including adopted ones.
    pub(super) fn arm_resting_orders(&mut self) {
        self.send_heartbeat();
        for index in 0..self.instruments.len() {
            let instrument = InstrumentId(index as u16);
            if self.surface_of(instrument) == Surface::Futures {
                self.renew(instrument);
            }
        }
    }

    /// Disarms every countdown: orders stay open when the run ends.
    pub(super) fn disarm_all(&mut self) {
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
