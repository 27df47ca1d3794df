//! The life of a live run: booting, syncing, ready, degraded, halted. One function decides the
//! state from the stage, the degraded reasons and the operator's kill switch. It reports each
//! change with its reasons.
//!
//! Only evidence sets and clears degraded reasons: a silent stream, a clock that was not read, a
//! journal that stalls, a reconciliation that left a difference unexplained.

use windvane_evidence::connection::Connection;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::Notice;
use windvane_model::encode;
use windvane_model::ids::InstrumentId;
use windvane_model::live::OnStop;
use windvane_model::order::Surface;
use windvane_model::order_state::OrderState;
use windvane_model::run_state::RunState;
use windvane_model::timer::Timer;

use super::Engine;
use super::live_run::{LiveRun, WATCH_MS};

impl Engine {
    /// The venue's clock minus ours on a surface, in nanoseconds; `None` before it was read.
    pub fn clock_offset_ns(&self, surface: Surface) -> Option<i64> {
        let (offset_ns, _) = self.live.as_ref()?.connections.get(&surface)?.clock()?;
        Some(offset_ns)
    }

    pub(super) fn surface_of(&self, instrument: InstrumentId) -> Surface {
        self.instruments[usize::from(instrument.0)].surface
    }

    pub(super) fn connection_mut(&mut self, surface: Surface) -> Option<&mut Connection> {
        self.live.as_mut()?.connections.get_mut(&surface)
    }

    /// Whether balances and positions are the account's. Before that, equity means nothing.
    pub(super) fn knows_account(&self) -> bool {
        let live = self.live.as_ref();
        live.is_none_or(LiveRun::is_running)
    }

    /// Whether the run is ending and leaves its orders open.
    pub(super) fn keeps_orders(&self) -> bool {
        let live = self.live.as_ref();
        live.is_some_and(|live| live.stopping && live.config.on_stop == OnStop::Keep)
    }

    /// Records that the state of an earlier process is lost. Unless the account turns out to be
    /// flat, an operator must confirm that strategies may start from zero. Called before any input.
    pub fn degrade_for_lost_state(&mut self) {
        self.set_degraded(DegradedReason::Ownership, true);
        if let Some(live) = &mut self.live {
            live.note_lost_state();
        }
    }

    /// Handles the end of a reconciliation round that left nothing unexplained.
    pub(super) fn handle_clean_round(&mut self, surface: Surface) {
        let Some(live) = &self.live else { return };
        let old = live.is_old(surface, self.now);
        let stream_up = live
            .connections
            .get(&surface)
            .is_some_and(|connection| connection.stream_up);
        let denied = self.has_denied_order(surface);
        let missing = self.is_fill_overdue(surface);
        self.set_degraded(
            DegradedReason::Reconciliation(surface),
            old || denied || missing,
        );
        if stream_up {
            self.set_degraded(DegradedReason::Stream(surface), false);
        }
        self.update_state();
        // While the run is halted, the state does not change, but a close may have waited for this.
        self.continue_all_flattening();
    }

    pub(super) fn set_degraded(&mut self, reason: DegradedReason, holds: bool) {
        let was_on_trial = self.is_on_trial();
        let Some(live) = &mut self.live else { return };
        let changed = live.set_degraded(reason, holds);
        // Strategies may try an order only while there is no other degraded reason. The state
        // itself does not change then.
        let is_degraded = self.state == RunState::Degraded;
        if changed && is_degraded && self.is_on_trial() != was_on_trial {
            self.deliver_trial();
        }
    }

    fn is_flat(&self) -> bool {
        let instruments = (0..self.instruments.len()).map(|index| InstrumentId(index as u16));
        instruments
            .into_iter()
            .all(|id| !self.ledgers.account.holds(id))
    }

    /// Checks the age of all evidence.
    pub(super) fn watch(&mut self) {
        let now = self.now;
        let Some(live) = &self.live else { return };
        let surfaces = live.config.surfaces.clone();
        let running = live.is_running();
        for surface in surfaces {
            let unseen = self.evidence().has_change_missing_on_stream(surface);
            let live = self.live.as_ref();
            let old = live.is_some_and(|live| live.is_old(surface, now));
            let silent = live.is_some_and(|live| live.is_silent(surface, now));
            let Some(connection) = self.connection_mut(surface) else {
                continue;
            };
            let stale = connection.is_clock_old(now);
            self.set_degraded(DegradedReason::Clock(surface), stale);
            if running && old {
                self.set_degraded(DegradedReason::Reconciliation(surface), true);
            }
            if silent || unseen {
                self.reconnect_late_stream(surface);
            }
            self.retry_round(surface);
            self.investigate_account_event(surface);
            self.review_stated_balances(surface);
        }
        self.review_stated_positions();
        self.end_instance_watch();
        self.ask_again_for_forced_orders();
        self.ask_again_for_outside_orders();
        self.ask_again_for_recent_orders();
        self.watch_countdowns();
        self.watch_heartbeats();
        self.watch_trading_status();
        self.ask_for_closes();
        self.check_mark_price_age();
        self.check_stale_markets();
        self.ask_for_asset_prices();
        self.continue_all_flattening();
        self.timers.set(now.plus_ms(WATCH_MS), Timer::Watch);
        self.check_books();
        self.update_state();
        self.watch_all_losses();
    }

    /// Decides the state again and reports a change.
    pub(super) fn update_state(&mut self) {
        let synced = self.leave_syncing();
        self.move_state();
        if synced {
            self.deliver_withheld_markets();
            self.watch_all_losses();
        }
    }

    fn move_state(&mut self) {
        let state = match &self.live {
            Some(live) => live.state(self.kill_switch),
            None => self.kill_switch.alone(),
        };
        if state == self.state {
            return;
        }
        let from = self.state;
        self.enter(state);
        if self.live.is_some() {
            let reasons = self.degraded_reasons();
            encode::record_state(&mut self.recorder, self.now, from, state, &reasons);
            self.notices.push_back(Notice::State {
                time: self.now,
                from,
                to: state,
                reasons,
            });
        }
        if state == RunState::Ready || state == RunState::Halted {
            self.continue_all_flattening();
        }
    }

    /// Ends syncing once every surface is reconciled and no own order has an unknown outcome.
    /// Returns whether it ended now.
    fn leave_syncing(&mut self) -> bool {
        let Some(live) = &self.live else { return false };
        let synced = live.is_syncing()
            && !self.is_watching_instances()
            && !self.awaits_recent_orders()
            && live
                .connections
                .values()
                .all(|connection| connection.last_clean_round.is_some())
            && !live
                .degraded_reasons()
                .any(|reason| matches!(reason, DegradedReason::Clock(_)))
            && !self
                .orders
                .iter()
                .any(|order| order.state == OrderState::Unknown);
        if !synced {
            return false;
        }
        if let Some(live) = &mut self.live {
            live.end_syncing();
        }
        if self.is_flat() {
            self.set_degraded(DegradedReason::Ownership, false);
        }
        if self.start_equity.is_none() {
            // A fill may arrive before the next price: its cost counts as a loss.
            self.fix_known_equity();
        }
        self.arm_resting_orders();
        true
    }
}
