//! Strategies give up positions that an outside party closed (`outside_closes`).
//!
//! The engine takes the closed quantity from the strategies that held it, in proportion, at the
//! price of the close. The average price of the unowned position may differ, because outside
//! parties may have opened the other side since.

use windvane_evidence::PositionKey;
use windvane_evidence::close_values::CloseValue;
use windvane_evidence::forced::DueClose;
use windvane_model::decimal::Amount;
use windvane_model::effect::Notice;
use windvane_model::forced::ForcedCloseReport;
use windvane_model::ids::{StrategyId, Time};
use windvane_model::order::{Side, Surface};

use super::Engine;

impl Engine {
    /// Takes the closed quantities from the strategies that held them, in proportion.
    pub(super) fn settle_outside_closes(&mut self, surface: Surface) {
        if surface != Surface::Futures
            || self.outside_closes.has_none_due()
            || self.evidence().misses_fill(surface)
        {
            return;
        }
        for (key, due) in self.outside_closes.take_all_due() {
            if self.awaits_forced_orders(key.0) {
                // The venue may have closed the position: such a close is settled with the figures
                // of its order.
                self.outside_closes.put_back(key, due);
                continue;
            }
            self.explained_closes.remove(&key);
            self.stated_closes.remove(&key);
            self.due_gains.remove(key);
            let value = self.close_values.remove(key);
            let closing = if due > 0 { Side::Buy } else { Side::Sell };
            let external = self.ledgers.external.at(key.0, key.1).position.qty;
            let missing = (closing.sign() * external).max(0).min(due.saturating_abs());
            let rest = self.settle_outside_close(key, closing, missing, value);
            if let Some(made) = self.listed_closes.remove(&key) {
                let quote = value.and_then(|value| value.part(closing, rest));
                self.share_rest_of_close(key, closing, (rest, quote), made);
            }
        }
        self.watch_losses_after_fill();
    }

    /// Gives the part of a close that no strategy holds to the strategies whose fills came after
    /// it: they held it at that time.
    fn share_rest_of_close(
        &mut self,
        (id, side): PositionKey,
        closing: Side,
        (qty, quote): (i64, Option<Amount>),
        made: Time,
    ) {
        let external = &self.ledgers.external.at(id, side).position;
        let whole = external.qty.saturating_abs().max(qty);
        let average = Amount(external.cost.part(qty, whole.max(1)).0.abs());
        let due = DueClose {
            side: closing,
            position_side: side,
            qty,
            quote: quote.unwrap_or(average),
            fee: Amount::ZERO,
            made,
        };
        let (shares, _) = self.share_with_later_fills(id, due, None);
        for share in shares {
            self.notices.push_back(Notice::ClosedOutside {
                time: self.now,
                strategy: share.strategy,
                instrument: id,
                qty: -closing.sign() * share.qty,
                realized_pnl: share.realized_pnl,
            });
        }
    }

    /// Settles one close, and returns the part that no strategy holds.
    fn settle_outside_close(
        &mut self,
        key: PositionKey,
        closing: Side,
        missing: i64,
        value: Option<CloseValue>,
    ) -> i64 {
        let held = |engine: &Self, index: usize| {
            let own = engine.ledgers.strategies[index].at(key.0, key.1);
            (-closing.sign() * own.position.qty).max(0)
        };
        let mut whole: i64 = (0..self.strategies.len())
            .map(|index| held(self, index))
            .sum();
        let mut left = missing.min(whole);
        let rest = missing - left;
        let until = self.outside_closes.snapshot_close_until(key, closing);
        for index in 0..self.strategies.len() {
            let own = held(self, index);
            if own == 0 || left == 0 {
                continue;
            }
            // Rounding remainders go to the strategies that follow.
            let share = i128::from(left) * i128::from(own) / i128::from(whole.max(1));
            let last = whole == own;
            let share = if last {
                left
            } else {
                i64::try_from(share).unwrap_or(left)
            };
            let share = share.max(left - (whole - own)).min(own);
            whole -= own;
            left -= share;
            if share == 0 {
                continue;
            }
            let strategy = StrategyId(index as u16);
            let quote = value.and_then(|value| value.part(closing, share));
            let quote = self.give_up(strategy, key, closing, share, quote);
            self.cancel_exits(strategy, key, closing);
            // Without a snapshot, an outside party's event reported the close, so the close was not
            // an own fill.
            if let Some(until) = until {
                self.outside_closes.note_settled(
                    (strategy, key.0, key.1),
                    closing,
                    share,
                    quote,
                    until,
                );
            }
        }
        rest
    }

    /// Notes the quantities that strategies gave up for a close that a snapshot showed and no order
    /// explains. A late own fill may still turn out to be the close.
    pub(super) fn note_settled_shares(
        &mut self,
        key: PositionKey,
        closing: Side,
        report: &ForcedCloseReport,
    ) {
        let Some(until) = self.outside_closes.snapshot_close_until(key, closing) else {
            return;
        };
        for share in &report.shares {
            let quote = report.quote.part(share.qty, report.qty.max(1));
            let key = (share.strategy, key.0, key.1);
            self.outside_closes
                .note_settled(key, closing, share.qty, quote, until);
        }
    }

    /// Cancels orders of a strategy that would close more than it holds, the newest first.
    pub(super) fn cancel_exits(
        &mut self,
        strategy: StrategyId,
        (id, side): PositionKey,
        closing: Side,
    ) {
        let holding = &self.ledgers.strategies[usize::from(strategy.0)].at(id, side);
        let held = (-closing.sign() * holding.position.qty).max(0);
        let exits = self.orders.of(strategy, Some(id));
        let exits = exits.filter(|order| {
            let terms = &order.terms;
            !order.state.is_final() && (terms.position_side, terms.side) == (side, closing)
        });
        let mut exits: Vec<_> = exits
            .map(|order| (order.seq, order.remaining_qty()))
            .collect();
        exits.sort_unstable();
        let mut open: i64 = exits.iter().map(|(_, qty)| *qty).sum();
        while let Some((seq, qty)) = exits.pop() {
            if open <= held {
                return;
            }
            open -= qty;
            self.request_cancel(strategy, seq);
        }
    }
}
