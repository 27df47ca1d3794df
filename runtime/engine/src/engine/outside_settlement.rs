//! Strategies give up positions that an outside party closed (`outside`).
//!
//! The engine takes the closed quantity from the strategies that held it, in proportion, at the
//! price of the close. The average price of the unowned position may differ, because outside
//! parties may have opened the other side since.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::effect::Notice;
use windvane_model::forced::ForcedCloseReport;
use windvane_model::ids::{InstrumentId, StrategyId, Time};
use windvane_model::order::{PositionSide, Side, Surface};

use super::Engine;
use super::forced::Due;
use super::outside::Taken;
use super::snapshot::Names;

type Key = (InstrumentId, PositionSide);
/// Values of due closes, by position.
pub(super) type CloseValues = BTreeMap<Key, CloseValue>;

/// The value of closes that are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CloseValue {
    /// Signed like the closing orders.
    qty: i64,
    quote: Amount,
}

impl CloseValue {
    /// The value of this part; `None` if it is not known for this quantity.
    pub(super) fn part(&self, closing: Side, qty: i64) -> Option<Amount> {
        let known = closing.sign() * self.qty;
        (qty > 0 && qty <= known).then(|| self.quote.part(qty, known))
    }
}

impl Engine {
    /// Notes the value of an outside close that is due.
    pub(super) fn note_close_value(&mut self, key: Key, qty: i64, quote: Amount) {
        let known = self.close_values.entry(key).or_default();
        if known.qty.signum() == -qty.signum() {
            *known = CloseValue::default();
        }
        known.qty += qty;
        known.quote += quote;
    }

    /// The value of this quantity of the due closes; `None` if it is not known.
    pub(super) fn close_value(&self, key: Key, closing: Side, qty: i64) -> Option<Amount> {
        self.close_values.get(&key)?.part(closing, qty)
    }

    /// Removes this quantity from the due closes: an order explains it, or a strategy gave it up.
    /// `value` is its value, if known.
    pub(super) fn take_close_value(&mut self, key: Key, qty: i64, value: Option<Amount>) {
        let Some(known) = self.close_values.get_mut(&key) else {
            return;
        };
        let whole = known.qty.saturating_abs();
        if qty >= whole {
            self.close_values.remove(&key);
            return;
        }
        let average = known.quote.part(qty, whole);
        let value = value.filter(|value| *value < known.quote);
        known.quote -= value.unwrap_or(average);
        known.qty -= known.qty.signum() * qty;
    }

    /// Takes over the close values of an earlier process.
    pub(super) fn inherit_close_values(&mut self, from: &Self, names: &Names) {
        for ((id, side), value) in &from.close_values {
            if let Some(id) = names.instruments.get(id) {
                self.close_values.insert((*id, *side), *value);
            }
        }
    }

    /// Takes the closed quantities from the strategies that held them, in proportion.
    pub(super) fn settle_outside_closes(&mut self, surface: Surface) {
        if surface != Surface::Futures || self.outside.due.is_empty() || self.misses_fill(surface) {
            return;
        }
        for (key, due) in std::mem::take(&mut self.outside.due) {
            if self.awaits_forced_orders(key.0) {
                // The venue may have closed the position: such a close is settled with the figures
                // of its order.
                self.outside.due.insert(key, due);
                continue;
            }
            self.explained_closes.remove(&key);
            self.stated_closes.remove(&key);
            self.due_gains.remove(&key);
            let value = self.close_values.remove(&key);
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
        (id, side): Key,
        closing: Side,
        (qty, quote): (i64, Option<Amount>),
        made: Time,
    ) {
        let external = &self.ledgers.external.at(id, side).position;
        let whole = external.qty.saturating_abs().max(qty);
        let average = Amount(external.cost.part(qty, whole.max(1)).0.abs());
        let due = Due {
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
        key: Key,
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
        let read = self.outside.read.get(&key).copied();
        let read = read.filter(|read| read.qty.signum() == closing.sign());
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
            if let Some(until) = read.map(|read| read.until) {
                self.note_settled((strategy, key.0, key.1), closing, share, quote, until);
            }
        }
        rest
    }

    fn note_settled(
        &mut self,
        key: (StrategyId, InstrumentId, PositionSide),
        closing: Side,
        qty: i64,
        quote: Amount,
        until: Time,
    ) {
        let settled = self.outside.settled.entry(key).or_default();
        if settled.qty.signum() != closing.sign() {
            *settled = Taken::default();
        }
        settled.qty += closing.sign() * qty;
        settled.quote += quote;
        settled.until = until;
    }

    /// Notes the quantities that strategies gave up for a close that a snapshot showed and no order
    /// explains. A late own fill may still turn out to be the close.
    pub(super) fn note_settled_shares(
        &mut self,
        key: Key,
        closing: Side,
        report: &ForcedCloseReport,
    ) {
        let read = self.outside.read.get(&key).copied();
        let Some(read) = read.filter(|read| read.qty.signum() == closing.sign()) else {
            return;
        };
        for share in &report.shares {
            let quote = report.quote.part(share.qty, report.qty.max(1));
            let key = (share.strategy, key.0, key.1);
            self.note_settled(key, closing, share.qty, quote, read.until);
        }
    }

    /// Cancels orders of a strategy that would close more than it holds, the newest first.
    pub(super) fn cancel_exits(&mut self, strategy: StrategyId, (id, side): Key, closing: Side) {
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
