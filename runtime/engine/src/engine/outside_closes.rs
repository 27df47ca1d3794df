//! Positions that an outside party closed: a person, another program, or the venue. The engine books the
//! close once the evidence suffices (`windvane_evidence::close_evidence`), takes the closed quantity from the
//! strategies that held it, at the same price, and cancels those of their orders that would now open a
//! position.

use windvane_evidence::PositionKey;
use windvane_evidence::close_gains::CloseGain;
use windvane_evidence::position::closing_side;
use windvane_model::decimal::Amount;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::{Adjustment, Cause, Notice};
use windvane_model::ids::{InstrumentId, OrderSeq, StrategyId, Time};
use windvane_model::order::{PositionSide, Side, Surface};
use windvane_model::planted;
use windvane_model::protocol::{Fill, OrderUpdate, PositionUpdate};
use windvane_model::state_report::AccountSnapshot;

use super::Engine;

impl Engine {
    /// Notes which positions a snapshot lists, if no event arrived in between. Positions that an
    /// old snapshot lacks are not noted.
    pub(super) fn note_listed_positions(
        &mut self,
        surface: Surface,
        read: &AccountSnapshot,
        is_old: bool,
    ) {
        if surface != Surface::Futures || planted!(UnlistedPositionKept) {
            return;
        }
        let found = self.evidence().listed_in(surface, read, is_old);
        for key in found.listed {
            self.outside_closes.note_listed(key);
            self.forced_close_evidence.forget(key);
        }
        self.outside_closes.note_unlisted(found.unlisted);
        self.review_unlisted();
    }

    /// Sets a degraded reason if a pending account event shows a smaller position than the books,
    /// and no own order can have closed it. A fill or a snapshot will explain it. Returns whether
    /// there is such a position.
    pub(super) fn degrade_for_stated_closes(&mut self, surface: Surface) -> bool {
        let Some(shrunk) = self.evidence().positions_stated_smaller(surface) else {
            return false;
        };
        // The order event of an earlier stream may have been lost with that stream.
        let up = self.stream_up.get(&surface);
        if up.is_some_and(|up| *up <= shrunk.since) {
            self.note_stated_closes(&shrunk.stated);
        }
        let is_any = !shrunk.unexplained.is_empty();
        if is_any {
            self.outside_closes.note_unlisted(shrunk.unexplained);
            self.review_unlisted();
        }
        is_any
    }

    /// Notes that account events report these positions as closed, at least in part. On a venue
    /// that does not list forced orders, this is the evidence of a forced close: own fills in
    /// flight do not count as outside closes.
    pub(super) fn note_stated_closes(&mut self, keys: &[PositionKey]) {
        for key in keys {
            let stated = self.stated_positions.stated_otherwise_since(*key);
            let made = self.evidence().closed_after(*key, stated);
            self.stated_closes.entry(*key).or_insert(made);
        }
    }

    /// The books agree with an account event without an outside close, so no such close happened.
    pub(super) fn forget_stated_closes(&mut self) {
        let mut stated = std::mem::take(&mut self.stated_closes);
        stated.retain(|key, _| {
            self.outside_closes.is_due(*key) || self.out_of_order.is_shifted(*key)
        });
        self.stated_closes = stated;
    }

    /// Reviews the degraded reasons after an event: a position that the event closed needs none.
    pub(super) fn review_listed_positions(&mut self) {
        if self.outside_closes.are_all_listed() {
            self.update_state();
        } else {
            self.review_unlisted();
        }
    }

    /// Sets and clears the degraded reasons. A position that is flat by now needs none.
    pub(super) fn review_unlisted(&mut self) {
        let unlisted = self.outside_closes.review(&self.ledgers.account);
        self.forced_close_evidence.review(&self.ledgers.account);
        for reason in self.degraded_reasons() {
            if let DegradedReason::Unlisted(id) = reason
                && !unlisted.contains(&id)
            {
                self.set_degraded(reason, false);
            }
        }
        for id in unlisted {
            self.set_degraded(DegradedReason::Unlisted(id), true);
        }
        self.update_state();
    }

    /// Handles a closing order that the venue refused because there is nothing to reduce. That is
    /// evidence of a close if no other own order could have closed the position. The engine reads
    /// the account.
    pub(super) fn note_refused_close(&mut self, seq: OrderSeq) {
        let Some(key) = self.evidence().refused_close(seq) else {
            return;
        };
        self.outside_closes.note_refused(key);
        self.reconcile_soon(self.surface_of(key.0));
    }

    /// Books the close that a snapshot shows, with its profit. Returns whether there is one.
    pub(super) fn take_outside_close(
        &mut self,
        reported: &PositionUpdate,
        gain: CloseGain,
    ) -> bool {
        let Some(closed) = self.evidence().closed_in_snapshot(reported) else {
            return false;
        };
        let key @ (id, side) = (reported.instrument, reported.position_side);
        let closing = closing_side(closed);
        let qty = closed.saturating_abs();
        let position = &mut self.ledgers.account.at_mut(id, side).position;
        let from = position.qty;
        let cost = position.cost.part(qty, from.saturating_abs());
        // A long position sells at its cost plus the profit; a short one buys at its cost minus the
        // profit.
        let quote = match closing {
            Side::Sell => cost + gain.amount,
            Side::Buy => -cost - gain.amount,
        };
        let quote = quote.max(Amount::ZERO);
        position.fill(closing, qty, quote);
        let external = &mut self.ledgers.external.at_mut(id, side).position;
        external.fill(closing, qty, quote);
        let until = self.asked_at_venue(self.surface_of(id));
        self.outside_closes
            .note_snapshot_close(key, closing, qty, quote, until);
        self.outside_closes.add_due(key, closing.sign() * qty);
        self.close_values.note(key, closing.sign() * qty, quote);
        let value = if gain.is_stated { quote } else { Amount::ZERO };
        self.due_gains
            .note(key, closing.sign() * qty, gain.amount, value);
        let adjustment = Adjustment::Position {
            instrument: id,
            side,
            from,
            to: from - closed,
        };
        self.report_adjustment(adjustment, Cause::Reconciliation);
        true
    }

    /// Notes a booked fill of an outside party: strategies give up the quantity that it closed. A
    /// fill that the engine read from the venue's list of trades may be older than own fills that
    /// are booked already. It then closed the position that was held before them.
    pub(super) fn note_outside_fill(
        &mut self,
        update: &OrderUpdate,
        before: i64,
        realized: Amount,
        by_event: bool,
    ) {
        let (id, side) = (update.instrument, update.position_side);
        let made = update.transaction_time;
        let later = if by_event {
            0
        } else {
            self.out_of_order.own_fills_after((id, side), made)
        };
        if self.live.is_none() || self.surface_of(id) != Surface::Futures {
            self.review_coins();
            return;
        }
        let evidence = self.evidence();
        let (closed, shifted) = evidence.closed_by_outside(update, before, later);
        if by_event {
            let key = (update.instrument, update.order_id);
            self.outside_orders.forget(key);
            let (booked, _) = self.forced.counted(key);
            self.forced_close_evidence
                .note_executed(update, booked, self.now);
        } else {
            self.stated_positions.note_unreported_trade(id);
            // The venue may have closed a position that strategies reversed meanwhile.
            self.listed_shifts
                .note(&mut self.out_of_order, update, shifted, self.now);
        }
        if closed == 0 {
            if !by_event {
                self.reconcile_soon(Surface::Futures);
            }
            return;
        }
        self.outside_closes.add_due((id, side), closed);
        if let Some(fill) = &update.fill {
            let quote = fill
                .quote_qty
                .part(closed.saturating_abs(), fill.qty.0.max(1));
            self.close_values.note((id, side), closed, quote);
        }
        self.due_gains
            .note((id, side), closed, realized, Amount::ZERO);
        if by_event {
            *self.explained_closes.entry((id, side)).or_default() += closed;
        } else {
            self.listed_closes.insert((id, side), made);
            let known = self.forced.orders_by_venue((id, update.order_id));
            self.outside_orders.plan_query(update, known, self.now);
        }
        self.reconcile_soon(Surface::Futures);
    }

    /// The quantity that orders of this side closed, that is still due, and that no event of
    /// another order explains.
    pub(super) fn due_close(&self, key: PositionKey, closing: Side) -> i64 {
        let explained = self.explained_closes.get(&key).copied();
        self.outside_closes
            .open_due(key, closing, explained.unwrap_or_default())
    }

    /// Takes the part that a forced close explains out of the due closes that no event of another
    /// order explains, and returns that quantity. The strategies give it up at the price of the
    /// forced close: `value` returns the value of a quantity, if known.
    pub(super) fn take_due_close(
        &mut self,
        id: InstrumentId,
        side: PositionSide,
        closing: Side,
        qty: i64,
        value: impl Fn(i64) -> Option<Amount>,
    ) -> i64 {
        let explained = self.explained_closes.get(&(id, side));
        let explained = explained.copied().unwrap_or_default();
        let taken = self
            .outside_closes
            .take_due((id, side), closing, qty, explained);
        let Some(taken) = taken else {
            return 0;
        };
        self.close_values.take((id, side), taken, value(taken));
        taken
    }

    /// Handles a late own fill that may be the close that strategies gave up. They get the quantity
    /// back, the fill's owner first, and the fill is booked instead.
    pub(super) fn undo_settlement(&mut self, owner: StrategyId, update: &OrderUpdate, fill: &Fill) {
        let key @ (id, side) = (update.instrument, update.position_side);
        let others = (0..self.strategies.len()).map(|index| StrategyId(index as u16));
        let others = others.filter(|other| *other != owner);
        let mut left = fill.qty.0;
        for strategy in std::iter::once(owner).chain(others.collect::<Vec<_>>()) {
            let (qty, quote) = self
                .outside_closes
                .take_settled((strategy, id, side), update, left);
            if qty == 0 {
                continue;
            }
            left -= qty;
            let opening = closing_side(update.side.sign());
            self.move_to_external(strategy, key, opening, qty, quote);
            self.notices.push_back(Notice::NotClosedOutside {
                time: self.now,
                strategy,
                instrument: id,
                qty: opening.sign() * qty,
            });
            if strategy != owner {
                self.deliver_position(strategy, id, side);
            }
        }
    }

    /// When the last request was sent, by the venue's clock.
    fn asked_at_venue(&mut self, surface: Surface) -> Time {
        let offset_ns = self.clock_offset_ns(surface).unwrap_or_default();
        let now = self.now;
        let asked = self
            .connection_mut(surface)
            .map_or(now, |connection| connection.round.asked_at);
        Time(asked.0.saturating_add(offset_ns))
    }
}
