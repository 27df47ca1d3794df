//! Closes that no order explains, on a venue that does not list forced orders.
//!
//! A liquidation may happen while the user stream is down or the process is not running. Then only
//! account snapshots show it. The venue's list of the account's trades may name the order, which
//! the engine then queries. If no trade names one, the close counts as a forced close of kind
//! `unreported`: strategies must not reopen a position that the venue may have liquidated.

use windvane_evidence::PositionKey;
use windvane_evidence::forced::DueClose;
use windvane_model::decimal::Amount;
use windvane_model::forced::{ForcedClose, ForcedCloseReport};
use windvane_model::ids::{InstrumentId, VenueOrderId};
use windvane_model::order::{PositionSide, Side};

use super::Engine;

impl Engine {
    /// Reports closes that no order explains, on a venue that does not list forced orders. Only
    /// account events or snapshots showed them. A person may have closed the position, but nothing
    /// shows it.
    pub(super) fn report_unexplained_closes(&mut self, id: InstrumentId) {
        for position_side in PositionSide::ALL.iter().copied() {
            let key = (id, position_side);
            let is_closed = [Side::Buy, Side::Sell].map(|side| self.due_close(key, side) > 0);
            if is_closed == [false; 2] && !self.out_of_order.is_shifted(key) {
                continue;
            }
            let stated = self.stated_closes.get(&key).copied();
            for side in [Side::Buy, Side::Sell] {
                let external = self.ledgers.external.at(id, position_side).position;
                let named = self.closed_by_queried_orders(key, side)
                    + self.forced_close_evidence.executed(key, side, self.now);
                let due = self.due_close(key, side);
                if due > 0 {
                    self.forced_close_evidence.forget_executed(key, side);
                }
                let open = due - named;
                let value = self.close_values.get(key);
                let closed = self.take_due_close(id, position_side, side, open, |_| None);
                let gained = self.due_gains.take(key, side, closed);
                // If a position reversed, it counts as closed by a forced order only if an event
                // says so.
                let may_be_moved = stated.is_some() && named == 0;
                let limit = if may_be_moved { i64::MAX } else { 0 };
                let moved =
                    self.listed_shifts
                        .take_moved(&mut self.out_of_order, key, side, limit, None);
                let qty = closed + moved;
                if qty == 0 {
                    continue;
                }
                let gained = gained.filter(|_| moved == 0);
                let whole = external.qty.saturating_abs().max(qty);
                let average = Amount(external.cost.part(qty, whole).0.abs());
                let value = value.and_then(|value| value.part(side, qty));
                let due = DueClose {
                    side,
                    position_side,
                    qty,
                    quote: value.filter(|_| moved == 0).unwrap_or(average),
                    fee: Amount::ZERO,
                    made: stated.unwrap_or_default(),
                };
                let (report, rest) =
                    self.settle(id, &due, (ForcedClose::Unreported, VenueOrderId(0)));
                self.note_settled_shares(key, side, &report);
                let report = ForcedCloseReport {
                    kind: ForcedClose::Unreported,
                    realized_pnl: gained.map_or(report.realized_pnl, |gained| gained.realized),
                    ..report
                };
                self.out_of_order.keep_unowned_part(rest, &report, self.now);
                self.report_forced_close(report);
            }
            if !self.outside_orders.queries_outside_order(id) {
                self.stated_closes.remove(&key);
            }
        }
    }

    /// The quantity that orders closed which are being queried: the responses will tell who placed
    /// them.
    fn closed_by_queried_orders(&self, (id, position_side): PositionKey, closing: Side) -> i64 {
        let queried = self.outside_orders.keys();
        let parts = queried.filter_map(|key| Some((key.0, self.forced.unsettled_part(*key)?)));
        let closes = parts.filter(|(of, (side, of_side, _))| {
            (*of, *side, *of_side) == (id, closing, position_side)
        });
        closes.map(|(_, (.., qty))| qty).sum()
    }

    /// Handles a response that a person placed an outside order: the order explains what it closed.
    pub(super) fn explain_close_by_hand(&mut self, order: (InstrumentId, VenueOrderId)) {
        let Some((side, position_side, qty)) = self.forced.unsettled_part(order) else {
            return;
        };
        let key = (order.0, position_side);
        let explained = self.due_close(key, side).min(qty);
        if explained > 0 {
            *self.explained_closes.entry(key).or_default() += side.sign() * explained;
        }
    }
}
