//! Closing positions by an account snapshot, while the account is uncertain: the user stream is
//! down or silent, or the account is not reconciled.
//!
//! A close that only reduces cannot do harm. So it waits neither for the stream nor for two
//! snapshots that agree. One snapshot suffices if it was requested after the last order of the
//! strategy ended. The close is bounded by the position in the snapshot and by the strategy's
//! position. If a snapshot is behind, or lacks a position, the engine closes less, and closes the
//! rest by the next snapshot.
//!
//! A startup that lasts longer than a snapshot can lag closes in the same way. Outside parties may
//! move the account all the time, or the outcome of another strategy's order may stay unknown.
//!
//! Fills of such a close are learned over REST: the engine queries the order and reads its trades.

use windvane_evidence::connection::{Round, RoundStep};
use windvane_evidence::lag::READ_LAG_MS;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::ids::{StrategyId, Time};
use windvane_model::order::{OrderTerms, OrderType, PositionSide, Qty, Surface};
use windvane_model::planted;
use windvane_model::state_report::AccountSnapshot;
use windvane_model::timer::Timer;

use super::Engine;
use super::closing::close_qty;
use super::live_run::LiveRun;

/// Pause between two account snapshots for a close.
const READ_MS: i64 = 1_000;
/// Pause after a full reconciliation round for a close. It is longer, because a round costs more
/// request weight.
const ROUND_MS: i64 = 3_000;
/// If a request of a reconciliation round is unanswered for this long, an account snapshot for a
/// close goes first.
const QUESTION_MS: i64 = 2_000;
/// An account snapshot for a close also goes first after a request of a round failed this often.
const FAILURES: u32 = 3;
/// A close is queried after this time, if the user stream does not show its fills.
const QUERY_MS: i64 = 500;

impl Engine {
    /// Whether the user stream of a surface can be trusted.
    pub(super) fn stream_is_trusted(&self, surface: Surface) -> bool {
        let live = self.live.as_ref();
        live.is_none_or(|live| !live.is_degraded_for(&[DegradedReason::Stream(surface)]))
    }

    /// Requests an account snapshot for a close. Without a user stream, nothing else would request
    /// one.
    pub(super) fn request_snapshot_for_close(&mut self, surface: Surface) {
        let now = self.now;
        let timer = Timer::CloseSnapshot { surface };
        let Some(live) = &self.live else { return };
        let running = live.is_running() || self.is_long_start();
        let can_run = running || live.is_syncing();
        // The account alone is read first, which is fastest. Full rounds resolve the differences
        // later.
        let had_round = self.timers.is_set(Timer::Reconcile { surface });
        let waits = self.timers.is_set(timer) || self.venue_wait(surface).is_some();
        if waits || !can_run || surface != Surface::Futures {
            return;
        }
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        let pause_ms = match (&connection.round.step, connection.round.asked_since()) {
            (RoundStep::Account, None) => {
                self.ask_next(surface);
                READ_MS
            }
            (RoundStep::Idle, _) if had_round || !running => {
                self.begin_round(surface);
                ROUND_MS
            }
            (RoundStep::Idle, _) => {
                connection.round = Round::of_account();
                self.ask_next(surface);
                READ_MS
            }
            (RoundStep::Orders | RoundStep::Trades(_) | RoundStep::Income, asked)
                if running
                    && asked.map_or(connection.round.failures() >= FAILURES, |asked| {
                        now >= asked.plus_ms(QUESTION_MS)
                    }) =>
            {
                connection.give_up_round();
                connection.round = Round::of_account();
                self.ask_next(surface);
                READ_MS
            }
            // A response is already on its way.
            _ => return,
        };
        self.timers.set(now.plus_ms(pause_ms), timer);
    }

    /// Sends the closes that an account snapshot allows.
    pub(super) fn close_by_snapshot(&mut self, surface: Surface, read: &AccountSnapshot) {
        let waits = planted!(CloseWaitsForStream) || !self.may_close_uncertain(surface);
        if surface != Surface::Futures || waits {
            return;
        }
        let Some(asked) = self
            .connection_mut(surface)
            .map(|connection| connection.round.asked_at)
        else {
            return;
        };
        for strategy in (0..self.strategies.len()).map(|index| StrategyId(index as u16)) {
            if self.may_close_next(strategy) && self.all_ended_before(strategy, asked) {
                self.settle_opposite(strategy);
                let closing = self.closes_within(strategy, surface, read);
                if !closing.is_empty() {
                    self.send_closes(strategy, closing);
                }
            }
        }
    }

    /// Whether closes may be sent although the account is uncertain: no other condition prevents
    /// it.
    fn may_close_uncertain(&self, surface: Surface) -> bool {
        let Some(live) = &self.live else { return false };
        (live.is_running() || self.is_long_start())
            && !live.is_degraded_for(&[DegradedReason::Journal, DegradedReason::Clock(surface)])
            && self.venue_wait(surface).is_none()
    }

    /// Whether startup has lasted so long that snapshots contain everything from before it.
    fn is_long_start(&self) -> bool {
        let live = self.live.as_ref();
        let is_over = |began: Time| self.now > began.plus_ms(READ_LAG_MS);
        live.is_some_and(LiveRun::is_syncing)
            && self.began.is_some_and(is_over)
            && !planted!(MovingAccountWaits)
            && !self.is_watching_instances()
    }

    /// Whether all orders of the strategy ended before this time, so that a snapshot requested then
    /// contains their fills.
    fn all_ended_before(&self, strategy: StrategyId, asked: Time) -> bool {
        let (_, ended) = self.orders.all();
        let mut own = ended.filter(|order| order.strategy == strategy);
        own.all(|order| order.ended.is_none_or(|ended| ended <= asked))
    }

    /// The closing orders of a strategy in instruments whose account is uncertain, bounded by a
    /// snapshot.
    fn closes_within(
        &self,
        strategy: StrategyId,
        surface: Surface,
        read: &AccountSnapshot,
    ) -> Vec<OrderTerms> {
        let mut closing = self.closing_orders(strategy);
        closing.retain(|terms| {
            self.surface_of(terms.instrument) == surface && !self.is_certain(terms.instrument)
        });
        for terms in &mut closing {
            let key = (terms.instrument, terms.position_side);
            let mut positions = read.positions.iter();
            let shown =
                positions.find(|reported| (reported.instrument, reported.position_side) == key);
            let shown = shown.map_or(0, |reported| -terms.side.sign() * reported.qty.0);
            let left = shown - self.closes_under_way(key, terms.side);
            let filters = &self.instruments[usize::from(terms.instrument.0)].filters;
            let lots = [filters.lot_size, filters.market_lot_size];
            let wanted = terms.qty.map_or(0, |qty| qty.0);
            terms.qty = Some(Qty(close_qty(wanted.min(left.max(0)), &lots)));
            terms.reduce_only = terms.position_side == PositionSide::Both && !planted!(ExitMayOpen);
        }
        closing.retain(|terms| terms.qty.is_some_and(|qty| qty.0 > 0));
        closing
    }

    /// Queries closes whose fills the user stream does not show.
    pub(super) fn ask_for_closes(&mut self) {
        let due = self.orders.iter().filter(|order| {
            let sent = !order.held && order.terms.order_type == OrderType::Market;
            sent && self.is_flattening(order.strategy)
                && self.now >= order.submitted.plus_ms(QUERY_MS)
                && !self.stream_is_trusted(self.surface_of(order.instrument()))
                && !self.timers.is_set(Timer::AskForOrder { order: order.seq })
        });
        for seq in due.map(|order| order.seq).collect::<Vec<_>>() {
            self.ask_for_order(seq);
        }
    }
}
